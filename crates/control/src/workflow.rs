//! Approval: requests that wait until an administrator approves or rejects them. An organization sets in its configuration
//! which types of requests wait (`Workflows` of `/tenant-config`).

use serde_json::{Map, Value, json};

use crate::clock;
use crate::devportal::keys;
use crate::http::Response;
use crate::page::Page;
use crate::problem::Problem;
use crate::publisher::{api::text, lifecycle, revisions};
use crate::route::{Api, Call, Registration};
use crate::schema::{self, Is, Members};
use crate::settings;
use crate::store::{Filter, Kind, Object, Transaction};

/// Of the publisher and the admin REST APIs.
pub(crate) const HANDLERS: &[Registration] = &[
    ("GET", "/workflows", list),
    ("GET", "/workflows/{externalWorkflowRef}", get),
    ("POST", "/workflows/update-workflow-status", complete),
];

/// Of the publisher REST API: a publisher withdraws a request.
pub(crate) const PUBLISHER_HANDLERS: &[Registration] = &[
    ("DELETE", "/apis/{apiId}/lifecycle-state/pending-tasks", cancel_state),
    ("DELETE", "/api-products/{apiProductId}/lifecycle-state/pending-tasks", cancel_state),
    ("DELETE", "/mcp-servers/{mcpServerId}/lifecycle-state/pending-tasks", cancel_state),
    ("DELETE", "/apis/{apiId}/cancel-revision-workflow/{revisionId}/{envName}", cancel_deployment),
    ("DELETE", "/mcp-servers/{mcpServerId}/cancel-revision-workflow/{revisionId}/{envName}", cancel_deployment),
];

pub(crate) const APPLICATION_CREATION: &str = "APPLICATION_CREATION";
pub(crate) const SUBSCRIPTION_CREATION: &str = "SUBSCRIPTION_CREATION";
pub(crate) const PRODUCTION_KEYS: &str = "APPLICATION_REGISTRATION_PRODUCTION";
pub(crate) const SANDBOX_KEYS: &str = "APPLICATION_REGISTRATION_SANDBOX";
pub(crate) const REVISION_DEPLOYMENT: &str = "REVISION_DEPLOYMENT";
pub(crate) const API_STATE: &str = "API_STATE";

/// The types that can wait for approval.
pub(crate) const TYPES: [&str; 6] =
    [APPLICATION_CREATION, SUBSCRIPTION_CREATION, PRODUCTION_KEYS, SANDBOX_KEYS, REVISION_DEPLOYMENT, API_STATE];

/// Those that publishers approve as well.
const OF_PUBLISHER: [&str; 2] = [REVISION_DEPLOYMENT, API_STATE];

/// States of what waits, was approved, was rejected.
pub(crate) const CREATED: &str = "CREATED";
pub(crate) const APPROVED: &str = "APPROVED";
pub(crate) const REJECTED: &str = "REJECTED";

/// Begins the approval of a request; `false` when requests of its type do not wait. `pending` is what its completion needs.
pub(crate) fn begin(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    workflow: &str,
    target: &Object,
    properties: Value,
    pending: Value,
) -> Result<bool, Problem> {
    let organization = target.organization.as_str();
    if !settings::needs_approval(tx, organization, workflow)? {
        return Ok(false);
    }
    let mut document = Map::new();
    document.insert("properties".into(), properties);
    document.insert("pending".into(), pending);
    let mut request = Object::new(Kind::Workflow, organization, workflow, document);
    request = request.owned(&call.caller.name).keyed(format!("{workflow}:{}", target.id));
    request.target.clone_from(&target.id);
    request.state = CREATED.to_owned();
    tx.insert(&request)?.ok_or_else(pending_already)?;
    Ok(true)
}

/// The refusal of a request for something that waits for approval.
pub(crate) fn pending_already() -> Problem {
    let text = "Pending workflow task exists for the selected API/Application";
    Problem::conflict(900_553, "Workflow exception", text)
}

/// Whether a request about an object waits.
pub(crate) fn is_pending(tx: &Transaction<'_>, workflow: &str, target: &Object) -> Result<bool, Problem> {
    Ok(tx.find(Kind::Workflow, &target.organization, &format!("{workflow}:{}", target.id))?.is_some())
}

/// Removes the requests about an object that is removed.
pub(crate) fn forget(tx: &Transaction<'_>, target: &Object) -> Result<(), Problem> {
    let requests = tx.list(&Filter::new(Kind::Workflow, &target.organization).target(&target.id))?;
    requests.iter().try_for_each(|request| tx.delete(request))
}

fn body(request: &Object) -> Value {
    json!({
        "workflowType": request.name, "workflowStatus": request.state, "createdTime": clock::shown(request.created_ms),
        "updatedTime": clock::shown(request.updated_ms), "referenceId": request.id,
        "properties": request.document.get("properties"), "description": request.text("description"),
    })
}

/// Whether the API of a call shows a request.
fn is_shown(call: &Call<'_>, request: &Object) -> bool {
    call.api == Api::Admin || OF_PUBLISHER.contains(&request.name.as_str())
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let wanted = call.query.get("workflowType");
    let filter = Filter::new(Kind::Workflow, call.organization()).states(&[CREATED]);
    let mut requests = call.control.store.read(|tx| tx.list(&filter))?;
    requests.retain(|request| is_shown(call, request) && wanted.is_none_or(|wanted| wanted == request.name));
    let mut page = Page::of(&call.query).cut("/workflows", requests.iter().map(body).collect());
    for name in ["next", "previous"] {
        page[name] = page["pagination"][name].clone();
    }
    Ok(Response::json(200, &page))
}

fn by_id(tx: &Transaction<'_>, call: &Call<'_>, id: &str) -> Result<Object, Problem> {
    let found = tx.get(Kind::Workflow, call.organization(), id)?.filter(|request| is_shown(call, request));
    found.ok_or_else(|| {
        let text = "Workflow entry cannot be found for the given reference id";
        Problem::new(404, 900_551, "Workflow error", text)
    })
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let request = call.control.store.read(|tx| by_id(tx, call, call.id()))?;
    Ok(Response::json(200, &body(&request)))
}

const MEMBERS: Members = &[("status", Is::Text), ("attributes", Is::Map), ("description", Is::Text)];

/// Approves or rejects a request.
fn complete(call: &Call<'_>) -> Result<Response, Problem> {
    let id = call.needed("workflowReferenceId")?;
    let given = schema::body(call.request, MEMBERS, &[])?;
    let is_approved = match text(&given, "status") {
        APPROVED => true,
        REJECTED => false,
        "" => return Err(Problem::rejected(900_556, "Workflow error", "Workflow status is not defined")),
        other => return Err(Problem::invalid("status", format!("`{other}` is neither APPROVED nor REJECTED"))),
    };
    let body = call.control.change_served(|tx| {
        let mut request = by_id(tx, call, id)?;
        if request.state != CREATED {
            return Err(Problem::rejected(900_552, "Workflow error", "Workflow is already completed"));
        }
        finish(tx, call, &request, is_approved)?;
        request.state = if is_approved { APPROVED } else { REJECTED }.to_owned();
        request.unique_key = None;
        request.document.shift_remove("pending");
        request.set("description", text(&given, "description"));
        tx.update(&mut request)?;
        tx.audit(call.organization(), &call.caller.shown(), &request.state, Kind::Workflow, &request.id)?;
        Ok(json!({
            "status": request.state, "attributes": given.get("attributes"), "description": request.text("description"),
        }))
    })?;
    Ok(Response::json(200, &body))
}

/// Removes the request of a type about an object.
fn withdraw(tx: &Transaction<'_>, call: &Call<'_>, workflow: &str, target: &Object) -> Result<(), Problem> {
    let found = tx.find(Kind::Workflow, call.organization(), &format!("{workflow}:{}", target.id))?;
    let text = "Requested resource does not have a pending workflow task";
    let request = found.ok_or_else(|| Problem::new(412, 900_557, "Workflow error", text))?;
    tx.delete(&request)?;
    tx.audit(call.organization(), &call.caller.shown(), "withdraw", Kind::Workflow, &request.id)
}

fn cancel_state(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.store.change(|tx| {
        let mut api = crate::publisher::api::of_call(tx, call)?;
        withdraw(tx, call, API_STATE, &api)?;
        api.document.shift_remove(lifecycle::WAITING);
        tx.update(&mut api)
    })?;
    Ok(Response::empty(200))
}

fn cancel_deployment(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.store.change(|tx| {
        let api = crate::publisher::api::of_call(tx, call)?;
        let id = call.parameter("revisionId");
        let mut revision = revisions::by_id(tx, &api, id)?;
        withdraw(tx, call, REVISION_DEPLOYMENT, &revision)?;
        revision.document.shift_remove(revisions::WAITING);
        tx.update(&mut revision)
    })?;
    Ok(Response::empty(200))
}

/// Does what a request waited for.
fn finish(tx: &Transaction<'_>, call: &Call<'_>, request: &Object, is_approved: bool) -> Result<(), Problem> {
    let pending = request.document.get("pending").cloned().unwrap_or_default();
    let organization = request.organization.as_str();
    let state = if is_approved { APPROVED } else { REJECTED };
    let target = |kind: Kind| {
        let found = tx.get(kind, organization, &request.target)?;
        found.ok_or_else(|| Problem::rejected(900_552, "Workflow error", "The object of the request was removed"))
    };
    match request.name.as_str() {
        APPLICATION_CREATION => {
            let mut application = target(Kind::Application)?;
            application.state = state.to_owned();
            tx.update(&mut application)?;
        }
        SUBSCRIPTION_CREATION => {
            let mut subscription = target(Kind::Subscription)?;
            subscription.state = if is_approved { "UNBLOCKED" } else { REJECTED }.to_owned();
            tx.update(&mut subscription)?;
        }
        PRODUCTION_KEYS | SANDBOX_KEYS => keys::finish(tx, &target(Kind::KeyMapping)?, &pending, is_approved)?,
        REVISION_DEPLOYMENT => {
            let revision = target(Kind::Revision)?;
            let api = tx.get(Kind::Api, organization, &revision.parent)?;
            let api = api.ok_or_else(|| Problem::not_found("API", &revision.parent))?;
            let mut revision = revision;
            revision.document.shift_remove(revisions::WAITING);
            tx.update(&mut revision)?;
            if let (true, Some(targets)) = (is_approved, pending.as_array()) {
                revisions::deploy_in(tx, &call.caller, &api, &revision, targets)?;
            }
        }
        API_STATE => {
            let mut api = target(Kind::Api)?;
            api.document.shift_remove(lifecycle::WAITING);
            tx.update(&mut api)?;
            if let (true, Some(action)) = (is_approved, pending.as_str()) {
                lifecycle::apply(tx, &call.caller, &mut api, action)?;
            }
        }
        _ => {}
    }
    Ok(())
}
