//! Organizations of consumers, which share an organization of this server; and what an administrator asks of its own one.

use serde_json::{Map, Value, json};

use crate::http::Response;
use crate::identity::{SUPER_ORGANIZATION, users};
use crate::problem::Problem;
use crate::publisher::api::text;
use crate::route::{Call, Registration};
use crate::schema::{self, Is, Members};
use crate::store::{Filter, Kind, Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/organizations", list),
    ("POST", "/organizations", create),
    ("GET", "/organizations/{organizationId}", get),
    ("PUT", "/organizations/{organizationId}", update),
    ("DELETE", "/organizations/{organizationId}", delete),
    ("GET", "/me/organization-information", own),
    ("GET", "/tenant-info/{username}", tenant_info),
];

const MEMBERS: Members = &[
    ("organizationId", Is::Text),
    ("externalOrganizationId", Is::Short(255)),
    ("parentOrganizationId", Is::Text),
    ("displayName", Is::Short(255)),
    ("description", Is::Short(1024)),
];

/// The number of the first organization in API Manager.
const SUPER_NUMBER: i64 = -1234;

fn body(organization: &Object) -> Value {
    json!({
        "organizationId": organization.id, "externalOrganizationId": organization.name,
        "parentOrganizationId": organization.organization, "displayName": organization.text("displayName"),
        "description": organization.text("description"),
    })
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let filter = Filter::new(Kind::ConsumerOrganization, call.organization());
    let list: Vec<Value> = call.control.store.read(|tx| tx.list(&filter))?.iter().map(body).collect();
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

fn taken(name: &str) -> Problem {
    Problem::conflict(409, "Conflict", format!("The organization {name} exists"))
}

/// The document of a body, and the id of the organization at its identity provider.
fn given(call: &Call<'_>) -> Result<(String, Map<String, Value>), Problem> {
    let mut given = schema::body(call.request, MEMBERS, &["externalOrganizationId"])?;
    let name = text(&given, "externalOrganizationId").trim().to_owned();
    given.retain(|member, _| matches!(member.as_str(), "displayName" | "description"));
    Ok((name, given))
}

fn create(call: &Call<'_>) -> Result<Response, Problem> {
    let (name, document) = given(call)?;
    let added = Object::new(Kind::ConsumerOrganization, call.organization(), &name, document).keyed(&*name);
    call.control.store.change(|tx| {
        tx.insert(&added)?.ok_or_else(|| taken(&name))?;
        tx.audit(call.organization(), &call.caller.shown(), "create", Kind::ConsumerOrganization, &added.id)
    })?;
    Ok(Response::json(201, &body(&added)).with("Location", format!("/organizations/{}", added.id)))
}

fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    let found = tx.get(Kind::ConsumerOrganization, call.organization(), call.id())?;
    found.ok_or_else(|| Problem::not_found("Organization", call.id()))
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    Ok(Response::json(200, &body(&call.control.store.read(|tx| of_call(tx, call))?)))
}

fn update(call: &Call<'_>) -> Result<Response, Problem> {
    let (name, document) = given(call)?;
    let changed = call.control.store.change(|tx| {
        let mut organization = of_call(tx, call)?;
        organization.name.clone_from(&name);
        organization.unique_key = Some(name.clone());
        organization.document = document;
        tx.update(&mut organization)?.ok_or_else(|| taken(&name))?;
        Ok(organization)
    })?;
    Ok(Response::json(200, &body(&changed)))
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.store.change(|tx| {
        let organization = of_call(tx, call)?;
        tx.delete(&organization)?;
        tx.audit(call.organization(), &call.caller.shown(), "delete", Kind::ConsumerOrganization, &organization.id)
    })?;
    Ok(Response::empty(200))
}

fn own(call: &Call<'_>) -> Result<Response, Problem> {
    Ok(Response::json(200, &json!({"organizationId": call.organization(), "name": call.organization()})))
}

/// The organization of a user name, which need not exist.
fn tenant_info(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| {
        let (name, organization) = users::identify(tx, call.id())?;
        let known = tx.find(Kind::Organization, SUPER_ORGANIZATION, &organization)?;
        let number = known.and_then(|known| known.document.get("number").and_then(Value::as_i64));
        Ok(json!({"username": name, "tenantDomain": organization, "tenantId": number.unwrap_or(SUPER_NUMBER)}))
    })?;
    Ok(Response::json(200, &body))
}
