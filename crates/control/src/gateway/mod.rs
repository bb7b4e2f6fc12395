//! The gateway REST API: what the gateway of this process serves, and its deployments.

mod artifacts;
mod lists;

use serde_json::{Value, json};

use crate::http::Response;
use crate::identity::SUPER_ORGANIZATION;
use crate::problem::Problem;
use crate::publisher::revisions::{self, WITHDRAWN};
use crate::route::{Call, Registration};
use crate::store::{Filter, Kind, Object, Transaction};

/// Handlers, by file.
pub(crate) const HANDLERS: &[&[Registration]] = &[OWN, artifacts::HANDLERS, lists::HANDLERS];

const OWN: &[Registration] = &[
    ("POST", "/redeploy-api", |call| set_withdrawn(call, false)),
    ("POST", "/undeploy-api", |call| set_withdrawn(call, true)),
    ("GET", "/server-startup-healthcheck", |_| Ok(Response::empty(200))),
];

/// The organization that a call names; the first one otherwise.
fn organization<'c>(call: &'c Call<'_>) -> &'c str {
    call.query.get("tenantDomain").unwrap_or(SUPER_ORGANIZATION)
}

/// The API of `apiName` and `version`, with its deployed revisions.
fn deployed(tx: &Transaction<'_>, call: &Call<'_>) -> Result<(Object, Vec<Object>), Problem> {
    let (name, version) = (call.needed("apiName")?, call.needed("version")?);
    let same = tx.list(&Filter::new(Kind::Api, organization(call)).named(name))?;
    let api = same.into_iter().find(|api| api.text("version") == version);
    let not_found = || {
        let text = format!("No API with the name {name} and the version {version} is deployed");
        Problem::new(404, 404, "Not Found", text)
    };
    let api = api.ok_or_else(not_found)?;
    let mut revisions = revisions::all(tx, &api)?;
    revisions.retain(|revision| !revisions::deployed(revision).is_empty());
    if revisions.is_empty() { Err(not_found()) } else { Ok((api, revisions)) }
}

/// Takes an API from the gateway, or serves it again. Its deployments stay: the next one of a revision serves it as well.
fn set_withdrawn(call: &Call<'_>, is_withdrawn: bool) -> Result<Response, Problem> {
    call.control.change_served(|tx| {
        let (api, revisions) = deployed(tx, call)?;
        for mut revision in revisions {
            revision.set(WITHDRAWN, is_withdrawn);
            tx.update(&mut revision)?;
        }
        let action = if is_withdrawn { "undeploy-from-gateway" } else { "redeploy-to-gateway" };
        tx.audit(&api.organization, &call.caller.shown(), action, Kind::Api, &api.id)
    })?;
    let status = if is_withdrawn { "UNDEPLOYED" } else { "DEPLOYED" };
    Ok(Response::json(200, &json!({"deployStatus": status, "jsonPayload": Value::Null})))
}
