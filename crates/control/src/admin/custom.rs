//! Custom throttling policies: rules in the query language of Siddhi, of the first organization only. They are kept, exported
//! and imported; the gateway does not run them, and `isDeployed` is false.

use serde_json::{Map, Value, json};

use super::throttling::{self, CUSTOM};
use crate::http::Response;
use crate::identity::SUPER_ORGANIZATION;
use crate::problem::Problem;
use crate::publisher::api::text;
use crate::route::{Call, Registration};
use crate::schema::{self, Is, Members};
use crate::store::{Filter, Kind, Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/throttling/policies/custom", list),
    ("POST", "/throttling/policies/custom", create),
    ("GET", "/throttling/policies/custom/{ruleId}", get),
    ("PUT", "/throttling/policies/custom/{ruleId}", update),
    ("DELETE", "/throttling/policies/custom/{ruleId}", delete),
];

const MEMBERS: Members = &[
    ("policyId", Is::Text),
    ("policyName", Is::Short(60)),
    ("displayName", Is::Short(512)),
    ("description", Is::Short(1024)),
    ("isDeployed", Is::Flag),
    ("type", Is::Text),
    ("siddhiQuery", Is::Text),
    ("keyTemplate", Is::Text),
];

/// Values that a key template may name, as `$userId:$apiContext`.
const KEYS: [&str; 7] = ["resourceKey", "userId", "apiContext", "apiVersion", "appTenant", "apiTenant", "appId"];

/// Another key: the address of the client.
const KEY_CLIENT: &str = "clientIp";

/// Rules count requests of all organizations, so only the first one has them.
fn check_organization(call: &Call<'_>) -> Result<(), Problem> {
    match call.organization() == SUPER_ORGANIZATION {
        true => Ok(()),
        false => Err(Problem::forbidden("You are not allowed to access this resource")),
    }
}

/// Checks a rule from a client or a file.
pub(super) fn check(given: &Map<String, Value>) -> Result<(), Problem> {
    schema::check(given, MEMBERS, &["policyName", "siddhiQuery", "keyTemplate"])?;
    let keys = text(given, "keyTemplate").split(':');
    let is_known = |key: &str| key.strip_prefix('$').is_some_and(|key| KEYS.contains(&key) || key == KEY_CLIENT);
    if let Some(wrong) = keys.into_iter().find(|key| !is_known(key.trim())) {
        return Err(Problem::invalid("keyTemplate", format!("`{wrong}` is not a key of a custom policy")));
    }
    Ok(())
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    check_organization(call)?;
    let filter = Filter::new(Kind::Throttling, call.organization()).parent(CUSTOM);
    let list: Vec<Value> = call.control.store.read(|tx| tx.list(&filter))?.iter().map(throttling::body).collect();
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

fn create(call: &Call<'_>) -> Result<Response, Problem> {
    check_organization(call)?;
    let given = schema::object(call.request)?;
    let policy = call.control.store.change(|tx| throttling::insert(tx, call, CUSTOM, given))?;
    let location = format!("/throttling/policies/custom/{}", policy.id);
    Ok(Response::json(201, &throttling::body(&policy)).with("Location", location))
}

fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    check_organization(call)?;
    throttling::of_call(tx, call, CUSTOM)
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let policy = call.control.store.read(|tx| of_call(tx, call))?;
    Ok(Response::json(200, &throttling::body(&policy)))
}

fn update(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::object(call.request)?;
    let policy = call.control.store.change(|tx| {
        let mut policy = of_call(tx, call)?;
        throttling::replace(tx, &mut policy, given)?;
        Ok(policy)
    })?;
    Ok(Response::json(200, &throttling::body(&policy)))
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.store.change(|tx| {
        let policy = of_call(tx, call)?;
        tx.delete(&policy)?;
        tx.audit(call.organization(), &call.caller.shown(), "delete", Kind::Throttling, &policy.id)
    })?;
    Ok(Response::empty(200))
}
