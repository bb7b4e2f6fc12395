//! Scopes that several APIs share.

use serde_json::{Map, Value, json};

use crate::http::Response;
use crate::identity::users;
use crate::page::Page;
use crate::problem::Problem;
use crate::route::{Call, Registration};
use crate::schema::{self, Is, Members};
use crate::store::{Filter, Kind, Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/scopes", list),
    ("POST", "/scopes", create),
    ("GET", "/scopes/{scopeId}", get),
    ("PUT", "/scopes/{scopeId}", update),
    ("DELETE", "/scopes/{scopeId}", delete),
    ("HEAD", "/scopes/{scopeId}", exists),
    ("GET", "/scopes/{scopeId}/usage", usage),
    ("HEAD", "/roles/{roleId}", role_exists),
    ("HEAD", "/me/roles/{roleId}", own_role),
];

const MEMBERS: Members = &[
    ("id", Is::Text),
    ("name", Is::Short(255)),
    ("displayName", Is::Short(255)),
    ("description", Is::Short(512)),
    ("bindings", Is::Texts),
    ("usageCount", Is::Number),
];

fn used_by(tx: &Transaction<'_>, scope: &Object) -> Result<Vec<Object>, Problem> {
    tx.list(&Filter::new(Kind::Api, &scope.organization).with_scope(&scope.name))
}

fn body(tx: &Transaction<'_>, scope: &Object) -> Result<Value, Problem> {
    let member = |name: &str| scope.document.get(name).cloned().unwrap_or_default();
    Ok(json!({
        "id": scope.id, "name": scope.name, "displayName": member("displayName"), "description": member("description"),
        "bindings": member("bindings"), "usageCount": used_by(tx, scope)?.len(),
    }))
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let bodies = call.control.store.read(|tx| {
        let scopes = tx.list(&Filter::new(Kind::Scope, call.organization()))?;
        scopes.iter().map(|scope| body(tx, scope)).collect::<Result<Vec<_>, _>>()
    })?;
    Ok(Response::json(200, &Page::of(&call.query).cut("/scopes", bodies)))
}

fn check_bindings(tx: &Transaction<'_>, call: &Call<'_>, given: &Map<String, Value>) -> Result<(), Problem> {
    let bindings = users::texts(given.get("bindings"));
    let bindings: Vec<&str> = bindings.iter().map(String::as_str).collect();
    let unknown = users::unknown_roles(tx, call.organization(), &bindings)?;
    if unknown.is_empty() {
        return Ok(());
    }
    Err(Problem::rejected(900_610, "Invalid user roles", format!("Unknown roles: {}", unknown.join(", "))))
}

fn create(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::body(call.request, MEMBERS, &["name"])?;
    let (scope, body) = call.control.store.change(|tx| {
        check_bindings(tx, call, &given)?;
        let name = super::api::text(&given, "name").to_owned();
        let mut scope = Object::new(Kind::Scope, call.organization(), &name, given).keyed(name);
        scope.document.shift_remove("id");
        if tx.insert(&scope)?.is_none() {
            let text = format!("Scope Key {} is already registered", scope.name);
            return Err(Problem::conflict(900_984, "Scope already registered", text));
        }
        tx.audit(call.organization(), &call.caller.shown(), "create", Kind::Scope, &scope.id)?;
        let body = body(tx, &scope)?;
        Ok((scope, body))
    })?;
    Ok(Response::json(201, &body).with("Location", format!("/scopes/{}", scope.id)))
}

fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    let found = tx.get(Kind::Scope, call.organization(), call.id())?;
    found.ok_or_else(|| {
        Problem::new(404, 900_981, "Scope not found", format!("No shared scope with the id {}", call.id()))
    })
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| body(tx, &of_call(tx, call)?))?;
    Ok(Response::json(200, &body))
}

fn update(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::body(call.request, MEMBERS, &["name"])?;
    let body = call.control.store.change(|tx| {
        check_bindings(tx, call, &given)?;
        let mut scope = of_call(tx, call)?;
        if super::api::text(&given, "name") != scope.name {
            return Err(Problem::bad_request("The name of a scope cannot be changed"));
        }
        scope.document = given;
        scope.document.shift_remove("id");
        tx.update(&mut scope)?;
        body(tx, &scope)
    })?;
    Ok(Response::json(200, &body))
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.store.change(|tx| {
        let scope = of_call(tx, call)?;
        if !used_by(tx, &scope)?.is_empty() {
            let text = format!("Cannot remove the shared scope {} as it is used by one or more APIs", scope.name);
            return Err(Problem::conflict(900_985, "Shared scope is used", text));
        }
        tx.delete(&scope)
    })?;
    Ok(Response::empty(200))
}

fn exists(call: &Call<'_>) -> Result<Response, Problem> {
    let name = users::decode_name(call.id()).unwrap_or_default();
    let is_known = call.control.store.read(|tx| {
        let shared = tx.find(Kind::Scope, call.organization(), &name)?.is_some();
        Ok(shared || tx.count(&Filter::new(Kind::Api, call.organization()).with_scope(&name))? > 0)
    })?;
    Ok(Response::empty(if is_known { 200 } else { 404 }))
}

fn usage(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| {
        let scope = of_call(tx, call)?;
        let apis: Vec<Value> = used_by(tx, &scope)?
            .iter()
            .map(|api| {
                let uses = |operation: &&Value| {
                    let scopes = operation.get("scopes").and_then(Value::as_array);
                    scopes.is_some_and(|scopes| scopes.iter().any(|known| *known == scope.name.as_str()))
                };
                let operations = super::api::operations(&api.document).iter().filter(uses);
                let resources: Vec<Value> = operations
                    .map(|operation| json!({"target": operation["target"], "verb": operation["verb"]}))
                    .collect();
                json!({
                    "name": api.name, "context": api.text("context"), "version": api.text("version"),
                    "provider": api.owner, "revisionID": 0, "usedResourceList": resources,
                })
            })
            .collect();
        Ok(json!({"id": scope.id, "name": scope.name, "usedApiList": apis}))
    })?;
    Ok(Response::json(200, &body))
}

/// Whether a role exists; its name is in base64url.
pub(crate) fn role_exists(call: &Call<'_>) -> Result<Response, Problem> {
    let name = users::decode_name(call.id()).unwrap_or_default();
    let unknown = call.control.store.read(|tx| users::unknown_roles(tx, call.organization(), &[&name]))?;
    Ok(Response::empty(if unknown.is_empty() && !name.is_empty() { 200 } else { 404 }))
}

fn own_role(call: &Call<'_>) -> Result<Response, Problem> {
    let name = users::decode_name(call.id()).unwrap_or_default();
    Ok(Response::empty(if call.caller.has_role_of(&[&name]) { 200 } else { 404 }))
}
