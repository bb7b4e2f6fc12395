//! Labels that publishers attach to APIs; an administrator makes them.

use serde_json::{Map, Value, json};

use crate::http::Response;
use crate::identity::users::texts;
use crate::page::Page;
use crate::problem::Problem;
use crate::publisher::api;
use crate::route::{Call, Registration};
use crate::schema::{self, Is, Members};
use crate::store::{Filter, Kind, Object, Term, Transaction};

/// Of the admin REST API.
pub(crate) const ADMIN_HANDLERS: &[Registration] = &[
    ("GET", "/labels", list),
    ("POST", "/labels", create),
    ("PUT", "/labels/{labelId}", update),
    ("DELETE", "/labels/{labelId}", delete),
    ("GET", "/labels/{labelId}/usage", usage),
];

/// Of the publisher REST API.
pub(crate) const PUBLISHER_HANDLERS: &[Registration] = &[
    ("GET", "/labels", list),
    ("GET", "/apis/{apiId}/labels", of_api),
    ("POST", "/apis/{apiId}/attach-labels", attach),
    ("POST", "/apis/{apiId}/detach-labels", detach),
    ("GET", "/mcp-servers/{mcpServerId}/labels", of_api),
    ("POST", "/mcp-servers/{mcpServerId}/attach-labels", attach),
    ("POST", "/mcp-servers/{mcpServerId}/detach-labels", detach),
];

const MEMBERS: Members = &[("id", Is::Text), ("name", Is::Short(255)), ("description", Is::Short(1024))];

/// The member of an API with the names of its labels.
pub(crate) const LABELS: &str = "labels";

fn body(label: &Object) -> Value {
    json!({"id": label.id, "name": label.name, "description": label.document.get("description")})
}

fn all(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Vec<Object>, Problem> {
    tx.list(&Filter::new(Kind::Label, call.organization()))
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let labels = call.control.store.read(|tx| all(tx, call))?;
    Ok(Response::json(200, &Page::of(&call.query).cut("/labels", labels.iter().map(body).collect())))
}

fn taken(name: &str) -> Problem {
    Problem::conflict(900_650, "Label Name Already Exists", format!("Label with name '{name}' already exists"))
}

fn create(call: &Call<'_>) -> Result<Response, Problem> {
    let mut given = schema::body(call.request, MEMBERS, &["name"])?;
    let name = api::text(&given, "name").trim().to_owned();
    let label = call.control.store.change(|tx| {
        given.shift_remove("id");
        let label = Object::new(Kind::Label, call.organization(), &name, given).keyed(name.to_lowercase());
        tx.insert(&label)?.ok_or_else(|| taken(&name))?;
        tx.audit(call.organization(), &call.caller.shown(), "create", Kind::Label, &label.id)?;
        Ok(label)
    })?;
    Ok(Response::json(201, &body(&label)).with("Location", format!("/labels/{}", label.id)))
}

fn not_found(id: &str) -> Problem {
    Problem::new(404, 900_651, "Label Not Found", format!("Label not found for the given label ID: {id}"))
}

fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    tx.get(Kind::Label, call.organization(), call.id())?.ok_or_else(|| not_found(call.id()))
}

/// APIs with a label.
fn used_by(tx: &Transaction<'_>, label: &Object) -> Result<Vec<Object>, Problem> {
    let term = Term { key: "label".into(), value: label.name.clone(), exact: true };
    tx.list(&Filter::new(Kind::Api, &label.organization).query(&[term]))
}

fn update(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::body(call.request, MEMBERS, &["name"])?;
    let label = call.control.store.change(|tx| {
        let mut label = of_call(tx, call)?;
        let name = api::text(&given, "name").trim().to_owned();
        for mut api in used_by(tx, &label)? {
            let labels: Vec<String> = texts(api.document.get(LABELS));
            let renamed: Vec<&str> =
                labels.iter().map(|known| if *known == label.name { name.as_str() } else { known }).collect();
            api.set(LABELS, json!(renamed));
            tx.update(&mut api)?;
        }
        label.name.clone_from(&name);
        label.unique_key = Some(name.to_lowercase());
        label.document = given;
        label.document.shift_remove("id");
        tx.update(&mut label)?.ok_or_else(|| taken(&name))?;
        Ok(label)
    })?;
    Ok(Response::json(200, &body(&label)))
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.store.change(|tx| {
        let label = of_call(tx, call)?;
        if !used_by(tx, &label)?.is_empty() {
            let text = "The label cannot be deleted as it is associated with API(s).";
            return Err(Problem::conflict(900_654, "Label Deletion Failed", text));
        }
        tx.delete(&label)
    })?;
    Ok(Response::empty(200))
}

fn usage(call: &Call<'_>) -> Result<Response, Problem> {
    let apis = call.control.store.read(|tx| used_by(tx, &of_call(tx, call)?))?;
    let list: Vec<Value> = apis.iter().map(crate::admin::apis::entry).collect();
    Ok(Response::json(200, &json!({"apis": {"count": list.len(), "list": list}})))
}

/// The labels of an API as a list.
fn attached(tx: &Transaction<'_>, call: &Call<'_>, api: &Object) -> Result<Value, Problem> {
    let names = api.texts(LABELS);
    let labels = all(tx, call)?;
    let own = labels.iter().filter(|label| names.contains(&label.name.as_str())).map(body).collect();
    Ok(Page::of(&call.query).cut(&format!("/apis/{}/labels", api.id), own))
}

fn of_api(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| attached(tx, call, &api::of_call(tx, call)?))?;
    Ok(Response::json(200, &body))
}

/// The names of the labels that a body lists by id.
fn named(tx: &Transaction<'_>, call: &Call<'_>, given: &Map<String, Value>) -> Result<Vec<String>, Problem> {
    let mut names = Vec::new();
    for id in texts(given.get("labels")) {
        let label = tx.get(Kind::Label, call.organization(), &id)?;
        names.push(label.ok_or_else(|| not_found(&id))?.name);
    }
    Ok(names)
}

fn change(call: &Call<'_>, run: fn(&mut Vec<String>, Vec<String>)) -> Result<Response, Problem> {
    let given = schema::body(call.request, &[("labels", Is::Texts)], &["labels"])?;
    let body = call.control.store.change(|tx| {
        let mut api = api::of_call(tx, call)?;
        let mut labels = texts(api.document.get(LABELS));
        run(&mut labels, named(tx, call, &given)?);
        api.set(LABELS, json!(labels));
        tx.update(&mut api)?;
        attached(tx, call, &api)
    })?;
    Ok(Response::json(200, &body))
}

fn attach(call: &Call<'_>) -> Result<Response, Problem> {
    change(call, |labels, named| {
        for name in named {
            if !labels.contains(&name) {
                labels.push(name);
            }
        }
    })
}

fn detach(call: &Call<'_>) -> Result<Response, Problem> {
    change(call, |labels, named| labels.retain(|label| !named.contains(label)))
}
