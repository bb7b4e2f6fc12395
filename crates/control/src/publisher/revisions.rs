//! Revisions of APIs and products, and where they are deployed. The gateway serves deployed revisions, never the working copy.

use serde_json::{Map, Value, json};

use super::api::{advertised, body, is_product, of_call};
use crate::clock;
use crate::http::Response;
use crate::identity::Caller;
use crate::problem::Problem;
use crate::random;
use crate::route::{Call, Registration};
use crate::schema;
use crate::store::{Filter, Kind, Object, Transaction};
use crate::workflow;

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/apis/{apiId}/revisions", list),
    ("POST", "/apis/{apiId}/revisions", create),
    ("DELETE", "/apis/{apiId}/revisions/{revisionId}", delete),
    ("POST", "/apis/{apiId}/deploy-revision", deploy),
    ("POST", "/apis/{apiId}/undeploy-revision", undeploy),
    ("POST", "/apis/{apiId}/restore-revision", restore),
    ("GET", "/apis/{apiId}/deployments", deployments),
    ("PUT", "/apis/{apiId}/deployments/{deploymentId}", set_display),
    ("GET", "/api-products/{apiProductId}/revisions", list),
    ("POST", "/api-products/{apiProductId}/revisions", create),
    ("DELETE", "/api-products/{apiProductId}/revisions/{revisionId}", delete),
    ("POST", "/api-products/{apiProductId}/deploy-revision", deploy),
    ("POST", "/api-products/{apiProductId}/undeploy-revision", undeploy),
    ("POST", "/api-products/{apiProductId}/restore-revision", restore),
    ("GET", "/api-products/{apiProductId}/deployments", deployments),
    ("PUT", "/api-products/{apiProductId}/deployments/{deploymentId}", set_display),
    ("GET", "/mcp-servers/{mcpServerId}/revisions", list),
    ("POST", "/mcp-servers/{mcpServerId}/revisions", create),
    ("DELETE", "/mcp-servers/{mcpServerId}/revisions/{revisionId}", delete),
    ("POST", "/mcp-servers/{mcpServerId}/deploy-revision", deploy),
    ("POST", "/mcp-servers/{mcpServerId}/undeploy-revision", undeploy),
    ("POST", "/mcp-servers/{mcpServerId}/restore-revision", restore),
    ("GET", "/mcp-servers/{mcpServerId}/deployments", deployments),
    ("PUT", "/mcp-servers/{mcpServerId}/deployments/{deploymentId}", set_display),
];

/// Revisions of one API, as API Manager limits them.
const REVISIONS_MAX: usize = 5;

/// The environment that is always there.
pub(crate) const DEFAULT_ENVIRONMENT: &str = "Default";

/// The revisions of an API, oldest first.
pub(crate) fn all(tx: &Transaction<'_>, api: &Object) -> Result<Vec<Object>, Problem> {
    tx.list(&Filter::new(Kind::Revision, &api.organization).parent(&api.id))
}

/// The API that a revision is a copy of, as it was.
pub(crate) fn api_of(revision: &Object) -> Object {
    let copy = revision.document.get("api").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut api = Object::new(Kind::Api, &revision.organization, "", copy).owned(&revision.owner);
    api.name = api.text("name").to_owned();
    api.id.clone_from(&revision.id);
    (api.created_ms, api.updated_ms) = (revision.created_ms, revision.created_ms);
    api.state = revision.text("state").to_owned();
    api.set("isRevision", true);
    api.set("revisionedApiId", revision.parent.as_str());
    api.set("revisionId", number(revision));
    api
}

/// The number of a revision.
pub(crate) fn number(revision: &Object) -> u64 {
    revision.document.get("number").and_then(Value::as_u64).unwrap_or_default()
}

/// The flag of a revision that the gateway does not serve although it is deployed.
pub(crate) const WITHDRAWN: &str = "withdrawn";

/// The member of a revision with deployments that wait for approval.
pub(crate) const WAITING: &str = "waitingDeployments";

/// The names of environments, for a person.
fn names_of(targets: &[Value]) -> String {
    let names = targets.iter().filter_map(|target| target.get("name")?.as_str());
    names.collect::<Vec<_>>().join(", ")
}

/// Whether the gateway serves a revision.
pub(crate) fn is_served(revision: &Object) -> bool {
    !deployed(revision).is_empty() && !revision.flag(WITHDRAWN)
}

/// Where a revision is deployed.
pub(crate) fn deployed(revision: &Object) -> Vec<Map<String, Value>> {
    let list = revision.document.get("deployments").and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_object).cloned().collect()
}

/// The path under which a version of an API is served.
pub(crate) fn versioned_context(api: &Object) -> String {
    let (context, version) = (api.text("context"), api.text("version"));
    match context.contains("{version}") {
        true => context.replace("{version}", version),
        false => format!("{context}/{version}"),
    }
}

fn revision_body(revision: &Object) -> Value {
    json!({
        "displayName": format!("Revision {}", number(revision)),
        "id": revision.id,
        "description": revision.document.get("description"),
        "createdTime": revision.created_ms.to_string(),
        "apiInfo": {"id": revision.parent},
        "deploymentInfo": deployment_bodies(revision),
    })
}

fn deployment_bodies(revision: &Object) -> Vec<Value> {
    let body = |deployment: &Map<String, Value>| {
        let member = |name: &str| deployment.get(name).cloned().unwrap_or_default();
        json!({
            "revisionUuid": revision.id, "name": member("name"), "status": "APPROVED", "vhost": member("vhost"),
            "displayOnDevportal": member("displayOnDevportal"), "deployedTime": member("deployedTime"),
            "successDeployedTime": member("deployedTime"), "liveGatewayCount": 1, "deployedGatewayCount": 1,
            "failedGatewayCount": 0,
        })
    };
    let mut bodies: Vec<Value> = deployed(revision).iter().map(body).collect();
    let waiting = revision.document.get(WAITING).and_then(Value::as_array).into_iter().flatten();
    for mut waiting in waiting.filter_map(Value::as_object).map(body) {
        waiting["status"] = workflow::CREATED.into();
        waiting["deployedGatewayCount"] = 0.into();
        bodies.push(waiting);
    }
    bodies
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let revisions = call.control.store.read(|tx| all(tx, &of_call(tx, call)?))?;
    let wanted = match call.query.get("query") {
        Some("deployed:true") => Some(true),
        Some("deployed:false") => Some(false),
        _ => None,
    };
    let fits = |revision: &&Object| wanted.is_none_or(|wanted| wanted != deployed(revision).is_empty());
    let list: Vec<Value> = revisions.iter().filter(fits).map(revision_body).collect();
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

fn create(call: &Call<'_>) -> Result<Response, Problem> {
    let given = match call.request.body.is_empty() {
        true => Map::new(),
        false => schema::object(call.request)?,
    };
    let description = given.get("description").and_then(Value::as_str).unwrap_or_default();
    let revision = call.control.store.change(|tx| {
        let api = of_call(tx, call).map_err(|problem| match problem.status {
            // API Manager's own tests expect this.
            404 => Problem::internal(),
            _ => problem,
        })?;
        create_in(tx, &call.caller, &api, description)
    })?;
    Ok(Response::json(201, &revision_body(&revision)))
}

pub(super) fn create_in(
    tx: &Transaction<'_>,
    caller: &Caller,
    api: &Object,
    description: &str,
) -> Result<Object, Problem> {
    if advertised(&api.document) {
        return Err(Problem::bad_request("An API that is only advertised has no revisions"));
    }
    let known = all(tx, api)?;
    if known.len() >= REVISIONS_MAX {
        let text = format!("Maximum number of revisions per API has been reached. Allowed maximum: {REVISIONS_MAX}");
        return Err(Problem::rejected(900_351, "Maximum number of revisions reached", text));
    }
    let mut current = api.clone();
    let number = current.document.get("lastRevision").and_then(Value::as_u64).unwrap_or_default() + 1;
    current.set("lastRevision", number);
    tx.update(&mut current)?;
    let mut copy = api.document.clone();
    copy.insert("name".into(), api.name.as_str().into());
    let mut document = Map::new();
    document.insert("number".into(), number.into());
    document.insert("description".into(), description.into());
    document.insert("state".into(), api.state.as_str().into());
    document.insert("deployments".into(), json!([]));
    document.insert("api".into(), Value::Object(copy));
    let revision = Object::new(Kind::Revision, &api.organization, &format!("Revision {number}"), document);
    let mut revision = revision.of(&api.id).owned(&api.owner);
    revision.state = "CREATED".to_owned();
    tx.insert(&revision)?;
    tx.copy_files(&api.id, &revision.id)?;
    tx.audit(&api.organization, &caller.shown(), "create", Kind::Revision, &revision.id)?;
    Ok(revision)
}

/// A revision of an API by id.
pub(crate) fn by_id(tx: &Transaction<'_>, api: &Object, id: &str) -> Result<Object, Problem> {
    let found = tx.get(Kind::Revision, &api.organization, id)?.filter(|revision| revision.parent == api.id);
    found.ok_or_else(|| {
        let text = format!("API Revision with UUID {id} not found");
        Problem::new(404, 900_347, "API Revision Not Found", text)
    })
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    let rest = call.control.store.change(|tx| {
        let api = of_call(tx, call)?;
        let revision = by_id(tx, &api, call.parameter("revisionId"))?;
        if !deployed(&revision).is_empty() {
            let text = format!("API revision deployed in a gateway environment {}", revision.id);
            return Err(Problem::rejected(900_348, "API Revision deployed in gateway environment", text));
        }
        tx.delete(&revision)?;
        tx.audit(&api.organization, &call.caller.shown(), "delete", Kind::Revision, &revision.id)?;
        all(tx, &api)
    })?;
    let list: Vec<Value> = rest.iter().map(revision_body).collect();
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

fn deploy(call: &Call<'_>) -> Result<Response, Problem> {
    let id = call.needed("revisionId")?;
    let targets: Value =
        serde_json::from_slice(&call.request.body).map_err(|_| Problem::bad_request("Malformed request body."))?;
    let targets = targets.as_array().ok_or_else(|| Problem::bad_request("Malformed request body."))?;
    let bodies = call.control.change_served(|tx| {
        let api = of_call(tx, call)?;
        let mut revision = by_id(tx, &api, id)?;
        let properties = json!({
            "apiName": api.name, "version": api.text("version"), "revisionId": number(&revision).to_string(),
            "userName": call.caller.shown(), "environment": names_of(targets),
        });
        if workflow::begin(tx, call, workflow::REVISION_DEPLOYMENT, &revision, properties, json!(targets))? {
            check_targets(tx, &api, targets)?;
            revision.set(WAITING, json!(targets));
            tx.update(&mut revision)?;
        } else {
            deploy_in(tx, &call.caller, &api, &revision, targets)?;
        }
        let revisions = all(tx, &api)?;
        // The deployments of this revision first: scripts read the first entry.
        let (own, others): (Vec<_>, Vec<_>) = revisions.iter().partition(|known| known.id == revision.id);
        Ok(own.into_iter().chain(others).flat_map(deployment_bodies).collect::<Vec<_>>())
    })?;
    Ok(Response::json(201, &Value::Array(bodies)))
}

/// Deploys a revision to environments; other revisions leave them.
pub(crate) fn deploy_in(
    tx: &Transaction<'_>,
    caller: &Caller,
    api: &Object,
    revision: &Object,
    targets: &[Value],
) -> Result<(), Problem> {
    if api.state == "RETIRED" {
        let text = "A retired API cannot be deployed";
        return Err(Problem::rejected(903_227, "API is in the retired state", text));
    }
    let chosen = check_targets(tx, api, targets)?;
    for mut known in all(tx, api)? {
        let mut deployments = deployed(&known);
        let before = deployments.clone();
        deployments.retain(|deployment| chosen.iter().all(|(name, _)| super::api::text(deployment, "name") != name));
        let mut deployments: Vec<Value> = deployments.into_iter().map(Value::Object).collect();
        if known.id == revision.id {
            deployments.extend(chosen.iter().map(|(_, deployment)| deployment.clone()));
        }
        if deployments.iter().filter_map(Value::as_object).ne(before.iter()) {
            known.document.shift_remove(WITHDRAWN);
            known.state = if deployments.is_empty() { "CREATED" } else { "DEPLOYED" }.to_owned();
            known.set("deployments", Value::Array(deployments));
            tx.update(&mut known)?;
        }
    }
    tx.audit(&api.organization, &caller.shown(), "deploy", Kind::Revision, &revision.id)
}

/// Deployments by the names of their environments, which must exist and have the host.
fn check_targets(tx: &Transaction<'_>, api: &Object, targets: &[Value]) -> Result<Vec<(String, Value)>, Problem> {
    let now = clock::shown(clock::now_ms());
    let mut chosen = Vec::new();
    for target in targets {
        let name = target.get("name").and_then(Value::as_str).unwrap_or_default();
        let vhosts = crate::admin::environments::vhosts(tx, &api.organization, name)?.ok_or_else(|| {
            let text = format!("Gateway Environment with name 'name '{name}'' not found");
            Problem::rejected(900_504, "Gateway Environment not found", text)
        })?;
        let given = target.get("vhost").and_then(Value::as_str).filter(|host| !host.is_empty());
        let vhost = given.map(str::to_owned).or_else(|| vhosts.first().cloned()).unwrap_or_default();
        if !vhosts.iter().any(|known| known.eq_ignore_ascii_case(&vhost)) {
            let text = format!("The host '{vhost}' is not a virtual host of the environment '{name}'");
            return Err(Problem::rejected(900_512, "Invalid virtual host", text));
        }
        let display = target.get("displayOnDevportal").and_then(Value::as_bool).unwrap_or(true);
        chosen.push((
            name.to_owned(),
            json!({
                "name": name, "vhost": vhost, "displayOnDevportal": display, "deployedTime": now, "id": random::uuid(),
            }),
        ));
    }
    Ok(chosen)
}

fn undeploy(call: &Call<'_>) -> Result<Response, Problem> {
    let targets: Option<Value> = match call.request.body.is_empty() {
        true => None,
        false => {
            serde_json::from_slice(&call.request.body).map_err(|_| Problem::bad_request("Malformed request body."))?
        }
    };
    let names: Vec<String> = targets
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|target| target.get("name")?.as_str().map(str::to_owned))
        .collect();
    let everywhere = names.is_empty() || call.query.flag("allEnvironments");
    let bodies = call.control.change_served(|tx| {
        let api = of_call(tx, call)?;
        let revision = match (call.query.get("revisionId"), call.query.number("revisionNumber")) {
            (Some(id), _) => Some(by_id(tx, &api, id)?),
            (None, Some(wanted)) => {
                let found = all(tx, &api)?.into_iter().find(|known| number(known) == wanted as u64);
                let text = format!("No revision number {wanted}");
                Some(found.ok_or_else(|| Problem::new(404, 903_228, "Revision number is invalid", text))?)
            }
            (None, None) => None,
        };
        let Some(mut revision) = revision else {
            return Err(Problem::bad_request("One of `revisionId` and `revisionNumber` is needed"));
        };
        let mut deployments = deployed(&revision);
        deployments
            .retain(|deployment| !everywhere && !names.iter().any(|name| name == super::api::text(deployment, "name")));
        revision.state = if deployments.is_empty() { "CREATED" } else { "DEPLOYED" }.to_owned();
        revision.set("deployments", deployments.into_iter().map(Value::Object).collect::<Vec<_>>());
        tx.update(&mut revision)?;
        tx.audit(&api.organization, &call.caller.shown(), "undeploy", Kind::Revision, &revision.id)?;
        Ok(deployment_bodies(&revision))
    })?;
    Ok(Response::json(201, &Value::Array(bodies)))
}

/// Removes the oldest revision when there is no room for another one; it is undeployed.
pub(super) fn make_room(tx: &Transaction<'_>, api: &Object) -> Result<(), Problem> {
    let known = all(tx, api)?;
    match known.first() {
        Some(oldest) if known.len() >= REVISIONS_MAX => tx.delete(oldest),
        _ => Ok(()),
    }
}

/// Undeploys all revisions of an API.
pub(super) fn undeploy_all(tx: &Transaction<'_>, api: &Object) -> Result<(), Problem> {
    for mut revision in all(tx, api)? {
        if !deployed(&revision).is_empty() {
            revision.set("deployments", json!([]));
            revision.state = "CREATED".to_owned();
            tx.update(&mut revision)?;
        }
    }
    Ok(())
}

fn restore(call: &Call<'_>) -> Result<Response, Problem> {
    let id = call.needed("revisionId")?;
    let api = call.control.store.change(|tx| {
        let mut api = of_call(tx, call)?;
        let revision = by_id(tx, &api, id)?;
        let before = api.document.clone();
        let mut restored = revision.document.get("api").and_then(Value::as_object).cloned().unwrap_or_default();
        for name in ["lastRevision", "lifecycleHistory"] {
            match before.get(name) {
                Some(kept) => drop(restored.insert(name.into(), kept.clone())),
                None => drop(restored.shift_remove(name)),
            }
        }
        api.document = restored;
        if !is_product(&api) {
            super::products::check_used_operations(tx, &api, &before)?;
        }
        tx.copy_files(&revision.id, &api.id)?;
        tx.update(&mut api)?;
        tx.audit(&api.organization, &call.caller.shown(), "restore", Kind::Api, &api.id)?;
        Ok(api)
    })?;
    Ok(Response::json(201, &body(&api)))
}

fn deployments(call: &Call<'_>) -> Result<Response, Problem> {
    let revisions = call.control.store.read(|tx| all(tx, &of_call(tx, call)?))?;
    let list: Vec<Value> = revisions.iter().flat_map(deployment_bodies).collect();
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

/// Whether the portal shows the addresses of an environment. The environment is named in base64.
fn set_display(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::object(call.request)?;
    let display = given.get("displayOnDevportal").and_then(Value::as_bool).unwrap_or(true);
    let encoded = call.parameter("deploymentId");
    let name = crate::identity::users::decode_name(encoded).unwrap_or_else(|| encoded.to_owned());
    let bodies = call.control.store.change(|tx| {
        let api = of_call(tx, call)?;
        for mut revision in all(tx, &api)? {
            let mut deployments = deployed(&revision);
            let found = deployments.iter_mut().find(|deployment| super::api::text(deployment, "name") == name);
            if let Some(deployment) = found {
                deployment.insert("displayOnDevportal".into(), display.into());
                revision.set("deployments", deployments.into_iter().map(Value::Object).collect::<Vec<_>>());
                tx.update(&mut revision)?;
                return Ok(deployment_bodies(&revision));
            }
        }
        Err(Problem::not_found("Deployment", &name))
    })?;
    let body = bodies.into_iter().find(|body| body["name"] == name.as_str()).unwrap_or_default();
    Ok(Response::json(200, &body))
}
