//! APIs as developers see them: published ones, the latest version of each.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::admin::{categories, environments, key_managers, throttling};
use crate::http::Response;
use crate::identity::{SUPER_ORGANIZATION, shown};
use crate::page::Page;
use crate::problem::Problem;
use crate::publisher::{api, definition, documents, revisions};
use crate::route::{Call, Registration};
use crate::store::{Filter, Kind, Object, Order, Term, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/apis", list),
    ("GET", "/apis/{apiId}", get),
    ("GET", "/apis/{apiId}/swagger", swagger),
    ("GET", "/apis/{apiId}/thumbnail", thumbnail),
    ("GET", "/apis/{apiId}/subscription-policies", plans),
    ("GET", "/apis/{apiId}/documents", list_documents),
    ("GET", "/apis/{apiId}/documents/{documentId}", get_document),
    ("GET", "/apis/{apiId}/documents/{documentId}/content", document_content),
    ("GET", "/search", search),
    ("GET", "/tags", tags),
    ("GET", "/settings", settings),
    ("GET", "/api-categories", |call| categories::list_for_portals(call)),
    ("GET", "/key-managers", |call| key_managers::list_for_portals(call)),
    ("GET", "/throttling-policies/{policyLevel}", throttling_policies),
    ("GET", "/throttling-policies/{policyLevel}/{policyId}", throttling_policy),
    ("GET", "/mcp-servers", list_servers),
    ("GET", "/mcp-servers/{mcpServerId}", get),
    ("GET", "/mcp-servers/{mcpServerId}/documents", list_documents),
    ("GET", "/mcp-servers/{mcpServerId}/documents/{documentId}", get_document),
    ("GET", "/mcp-servers/{mcpServerId}/documents/{documentId}/content", document_content),
    ("GET", "/mcp-servers/{mcpServerId}/thumbnail", thumbnail),
    ("GET", "/mcp-servers/{mcpServerId}/subscription-policies", plans),
];

/// States that the portal lists.
const LISTED: [&str; 3] = crate::store::LISTED_STATES;

/// States in which an API can be read by its id.
const READABLE: [&str; 4] = ["PUBLISHED", "PROTOTYPED", "BLOCKED", "DEPRECATED"];

/// Tags of one list when the client does not say how many.
const TAGS: usize = 1000;

/// An API by id that the caller may see.
pub(crate) fn by_id(tx: &Transaction<'_>, call: &Call<'_>, id: &str) -> Result<Object, Problem> {
    let found = tx.get(Kind::Api, call.organization(), id)?.ok_or_else(|| Problem::not_found("API", id))?;
    let is_hidden = found.text("visibility") == "RESTRICTED"
        && !call.caller.is_admin()
        && found.owner != call.caller.name
        && !call.caller.has_role_of(&found.texts("visibleRoles"));
    if is_hidden {
        return Err(Problem::not_found("API", id));
    }
    if !READABLE.contains(&found.state.as_str()) {
        return Err(Problem::forbidden("User is not authorized to access the API"));
    }
    Ok(found)
}

fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    by_id(tx, call, call.id())
}

/// APIs that the portal shows to a caller.
fn shown_to(call: &Call<'_>) -> Filter {
    let filter = Filter::new(Kind::Api, call.organization()).states(&LISTED);
    if call.caller.is_admin() { filter } else { filter.visible_to(&call.caller.roles) }
}

pub(super) fn info(api: &Object) -> Value {
    let member = |name: &str| api.document.get(name).cloned().unwrap_or_default();
    let average = Some(api.text(super::ratings::AVERAGE)).filter(|text| !text.is_empty()).unwrap_or("0.0");
    let thumbnail = api.flag("hasThumbnail").then(|| format!("/apis/{}/thumbnail", api.id));
    json!({
        "id": api.id, "name": api.name, "displayName": member("displayName"), "description": member("description"),
        "context": revisions::versioned_context(api), "version": member("version"), "type": member("type"),
        "createdTime": api.created_ms.to_string(), "provider": shown(&api.owner, &api.organization),
        "lifeCycleStatus": api.state, "thumbnailUri": thumbnail, "avgRating": average,
        "throttlingPolicies": member("policies"), "advertiseInfo": member("advertiseInfo"),
        "businessInformation": member("businessInformation"), "isSubscriptionAvailable": true, "monetizationLabel": null,
        "gatewayType": member("gatewayType"), "gatewayVendor": "wso2",
        "additionalProperties": member("additionalProperties"), "monetizedInfo": false, "egress": false,
        "subtype": "DEFAULT",
    })
}

fn listed(call: &Call<'_>, path: &str, filter: Filter) -> Result<Response, Problem> {
    let query = call.query.get("query").unwrap_or_default();
    let order = match api::order(call) {
        Order::Created { descending: true } if call.query.get("sortBy").is_none() => Order::Name { descending: false },
        order => order,
    };
    let filter = filter.query(&Term::parse(query)).latest().sorted(order);
    api::page_of(call, path, filter, info)
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    listed(call, "/apis", shown_to(call).without_member("type", &["MCP"]))
}

fn list_servers(call: &Call<'_>) -> Result<Response, Problem> {
    listed(call, "/mcp-servers", shown_to(call).member("type", &["MCP"]))
}

fn search(call: &Call<'_>) -> Result<Response, Problem> {
    listed(call, "/search", shown_to(call))
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| {
        let api = of_call(tx, call)?;
        let mut body = info(&api);
        let member = |name: &str| api.document.get(name).cloned().unwrap_or_default();
        let plans = throttling::choices(tx, &api.organization, "subscription")?;
        let plans: Vec<Value> = plans
            .into_iter()
            .filter(|plan| api.texts("policies").iter().any(|name| plan["name"] == *name))
            .map(|plan| json!({"tierName": plan["name"], "tierPlan": plan["tierPlan"], "monetizationAttributes": null}))
            .collect();
        let file = tx.file(&api.id, definition::FILE)?;
        body["apiDefinition"] = file.map(|file| String::from_utf8_lossy(&file.content).into_owned()).into();
        body["tiers"] = plans.into();
        body["endpointURLs"] = endpoint_urls(tx, call, &api)?;
        body["isDefaultVersion"] = api.flag("isDefaultVersion").into();
        for name in [
            "transport",
            "authorizationHeader",
            "apiKeyHeader",
            "securityScheme",
            "tags",
            "categories",
            "keyManagers",
            "wsdlUri",
        ] {
            body[name] = member(name);
        }
        body["hasThumbnail"] = api.flag("hasThumbnail").into();
        let operations: Vec<Value> = api::operations(&api.document)
            .iter()
            .map(|operation| json!({"id": operation["id"], "target": operation["target"], "verb": operation["verb"]}))
            .collect();
        body["operations"] = operations.into();
        let scopes = member("scopes");
        let scopes = scopes.as_array().into_iter().flatten().filter_map(|scope| scope.get("scope").cloned());
        let key = |scope: Value| {
            json!({
                "key": scope["name"], "name": scope["displayName"], "roles": scope["bindings"],
                "description": scope["description"],
            })
        };
        body["scopes"] = scopes.map(key).collect::<Vec<_>>().into();
        body["environmentList"] = json!([revisions::DEFAULT_ENVIRONMENT]);
        body["subscriptions"] = tx.count(&Filter::new(Kind::Subscription, &api.organization).target(&api.id))?.into();
        Ok(body)
    })?;
    Ok(Response::json(200, &body))
}

/// The addresses of an API in each environment where it is deployed.
fn endpoint_urls(tx: &Transaction<'_>, call: &Call<'_>, api: &Object) -> Result<Value, Problem> {
    let path = match api.organization == SUPER_ORGANIZATION {
        true => revisions::versioned_context(api),
        false => format!("/t/{}{}", api.organization, revisions::versioned_context(api)),
    };
    let all = environments::all(tx, call.control, &api.organization)?;
    let transports = api.texts("transport");
    let mut urls = Vec::new();
    for revision in revisions::all(tx, api)? {
        for deployment in revisions::deployed(&revision) {
            if deployment.get("displayOnDevportal").and_then(Value::as_bool) == Some(false) {
                continue;
            }
            let name = api::text(&deployment, "name");
            let host = api::text(&deployment, "vhost");
            let Some(environment) = all.iter().find(|environment| environment["name"] == name) else { continue };
            let vhosts = environment["vhosts"].as_array().into_iter().flatten();
            let vhost = vhosts.into_iter().find(|vhost| vhost["host"] == host).cloned().unwrap_or_default();
            let url = |scheme: &str, port: &str, path: &str| -> Value {
                match transports.contains(&scheme) {
                    true => format!("{scheme}://{host}:{}{path}", vhost[port]).into(),
                    false => Value::Null,
                }
            };
            let set = |path: &str| json!({"http": url("http", "httpPort", path), "https": url("https", "httpsPort", path), "ws": null, "wss": null});
            let default = match api.flag("isDefaultVersion") {
                true => set(api.text("context")),
                false => json!({"http": null, "https": null, "ws": null, "wss": null}),
            };
            urls.push(json!({
                "environmentName": name, "environmentDisplayName": environment["displayName"],
                "environmentType": environment["type"], "URLs": set(&path), "defaultVersionURLs": default,
            }));
        }
    }
    Ok(urls.into())
}

fn swagger(call: &Call<'_>) -> Result<Response, Problem> {
    let file = call.control.store.read(|tx| {
        let api = of_call(tx, call)?;
        tx.file(&api.id, definition::FILE)
    })?;
    let file =
        file.ok_or_else(|| Problem::new(404, 900_330, "API definition not found", "API definition not found"))?;
    Ok(Response::of_type(200, "application/json", file.content))
}

fn thumbnail(call: &Call<'_>) -> Result<Response, Problem> {
    let file = call.control.store.read(|tx| {
        let api = of_call(tx, call)?;
        tx.file(&api.id, api::THUMBNAIL)
    })?;
    Ok(match file {
        Some(file) => Response::of_type(200, &file.media_type, file.content),
        None => Response::empty(204),
    })
}

fn plans(call: &Call<'_>) -> Result<Response, Problem> {
    let list = call.control.store.read(|tx| {
        let api = of_call(tx, call)?;
        let all = throttling::choices(tx, &api.organization, "subscription")?;
        let names: Vec<String> = api.texts("policies").into_iter().map(str::to_owned).collect();
        Ok(all.into_iter().filter(|plan| names.iter().any(|name| plan["name"] == name.as_str())).collect::<Vec<_>>())
    })?;
    Ok(Response::json(200, &list.into()))
}

/// Documents that developers may read.
fn is_public(document: &Object) -> bool {
    document.text("visibility") == "API_LEVEL"
}

fn list_documents(call: &Call<'_>) -> Result<Response, Problem> {
    let documents = call.control.store.read(|tx| documents::of_api(tx, &of_call(tx, call)?))?;
    let list = documents.iter().filter(|document| is_public(document)).map(documents::body).collect();
    Ok(Response::json(200, &Page::of(&call.query).cut(&format!("/apis/{}/documents", call.id()), list)))
}

fn document(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    let id = call.parameter("documentId");
    let found = documents::by_id(tx, &of_call(tx, call)?, id)?;
    if is_public(&found) { Ok(found) } else { Err(Problem::not_found("Document", id)) }
}

fn get_document(call: &Call<'_>) -> Result<Response, Problem> {
    let found = call.control.store.read(|tx| document(tx, call))?;
    Ok(Response::json(200, &documents::body(&found)))
}

fn document_content(call: &Call<'_>) -> Result<Response, Problem> {
    let (document, file) = call.control.store.read(|tx| {
        let found = document(tx, call)?;
        let file = documents::content_file(tx, &found)?;
        Ok((found, file))
    })?;
    documents::content_response(&document, file)
}

/// Tags with the number of APIs that have them.
fn tags(call: &Call<'_>) -> Result<Response, Problem> {
    let apis = call.control.store.read(|tx| tx.list(&shown_to(call).latest()))?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for tag in apis.iter().flat_map(|api| api.texts("tags")) {
        *counts.entry(tag).or_default() += 1;
    }
    let list = counts.into_iter().map(|(value, count)| json!({"value": value, "count": count})).collect();
    Ok(Response::json(200, &Page::with_default(&call.query, TAGS).cut("/tags", list)))
}

fn settings(call: &Call<'_>) -> Result<Response, Problem> {
    let of_portal = call.control.routes.scopes_of(crate::route::Api::Devportal);
    let (http, https) = call.control.config.gateway_ports;
    let host = &call.control.config.hostname;
    let body = json!({
        "grantTypes": crate::oauth::token::GRANT_TYPES,
        "scopes": of_portal,
        "applicationSharingEnabled": false,
        "mapExistingAuthApps": true,
        "apiGatewayEndpoint": format!("http://{host}:{http},https://{host}:{https}"),
        "monetizationEnabled": false,
        "recommendationEnabled": false,
        "IsUnlimitedTierPaid": false,
        "identityProvider": {"external": false},
        "IsAnonymousModeEnabled": true,
        "IsPasswordChangeEnabled": true,
        "IsJWTEnabledForLoginTokens": true,
        "orgAccessControlEnabled": false,
        "apiChatEnabled": false,
        "aiAuthTokenProvided": false,
        "marketplaceAssistantEnabled": false,
        "orgWideAppUpdateEnabled": false,
        "devportalMode": "API_ONLY",
    });
    Ok(Response::json(200, &body))
}

fn level<'c>(call: &'c Call<'_>) -> Result<&'c str, Problem> {
    match call.id() {
        level @ ("application" | "subscription") => Ok(level),
        other => {
            let text = format!("'{other}' is not a level of throttling policies; 'application' and 'subscription' are");
            Err(Problem::bad_request(text))
        }
    }
}

fn throttling_policies(call: &Call<'_>) -> Result<Response, Problem> {
    let level = level(call)?;
    let list = call.control.store.read(|tx| throttling::choices(tx, call.organization(), level))?;
    Ok(Response::json(200, &Page::of(&call.query).cut(&format!("/throttling-policies/{level}"), list)))
}

fn throttling_policy(call: &Call<'_>) -> Result<Response, Problem> {
    let level = level(call)?;
    let name = call.parameter("policyId");
    let list = call.control.store.read(|tx| throttling::choices(tx, call.organization(), level))?;
    let found = list.into_iter().find(|policy| policy["name"] == name);
    Ok(Response::json(200, &found.ok_or_else(|| Problem::not_found("Throttling Policy", name))?))
}
