//! Categories of APIs.

use serde_json::{Map, Value, json};

use crate::http::Response;
use crate::problem::Problem;
use crate::publisher::api::text;
use crate::route::{Call, Registration};
use crate::schema::{self, Is, Members};
use crate::store::{Filter, Kind, Object, Term, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/api-categories", list),
    ("POST", "/api-categories", create),
    ("PUT", "/api-categories/{apiCategoryId}", update),
    ("DELETE", "/api-categories/{apiCategoryId}", delete),
];

const MEMBERS: Members =
    &[("id", Is::Text), ("name", Is::Short(255)), ("description", Is::Short(1024)), ("numberOfAPIs", Is::Number)];

fn used_by(tx: &Transaction<'_>, category: &Object) -> Result<usize, Problem> {
    let term = Term { key: "api-category".into(), value: category.name.clone(), exact: true };
    tx.count(&Filter::new(Kind::Api, &category.organization).query(&[term]))
}

fn body(tx: &Transaction<'_>, category: &Object) -> Result<Value, Problem> {
    Ok(json!({
        "id": category.id, "name": category.name, "description": category.document.get("description"),
        "numberOfAPIs": used_by(tx, category)?,
    }))
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let list = call.control.store.read(|tx| {
        let all = tx.list(&Filter::new(Kind::Category, call.organization()))?;
        all.iter().map(|category| body(tx, category)).collect::<Result<Vec<_>, _>>()
    })?;
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

/// The same for publishers and developers.
pub(crate) fn list_for_portals(call: &Call<'_>) -> Result<Response, Problem> {
    let all = call.control.store.read(|tx| tx.list(&Filter::new(Kind::Category, call.organization())))?;
    let entry = |category: &Object| json!({"id": category.id, "name": category.name, "description": category.document.get("description")});
    let list: Vec<Value> = all.iter().map(entry).collect();
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

fn check(given: &Map<String, Value>) -> Result<(), Problem> {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_ ".contains(letter);
    match text(given, "name").chars().all(is_plain) {
        true => Ok(()),
        false => Err(Problem::invalid("name", "the name of a category must not contain special characters")),
    }
}

fn taken(name: &str) -> Problem {
    let text = format!("Error while adding new API Category '{name}' - Category with name '{name}' already exists");
    // API Manager's own tests expect this status.
    Problem::new(500, 900_967, "General Error", text)
}

fn create(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::body(call.request, MEMBERS, &["name"])?;
    check(&given)?;
    let name = text(&given, "name").trim().to_owned();
    let category = Object::new(Kind::Category, call.organization(), &name, given).keyed(name.to_lowercase());
    let body = call.control.store.change(|tx| {
        tx.insert(&category)?.ok_or_else(|| taken(&name))?;
        body(tx, &category)
    })?;
    Ok(Response::json(201, &body).with("Location", format!("/api-categories/{}", category.id)))
}

fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    tx.get(Kind::Category, call.organization(), call.id())?.ok_or_else(|| Problem::not_found("API Category", call.id()))
}

fn update(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::body(call.request, MEMBERS, &["name"])?;
    check(&given)?;
    let body = call.control.store.change(|tx| {
        let mut category = of_call(tx, call)?;
        let name = text(&given, "name").trim().to_owned();
        if name != category.name && used_by(tx, &category)? > 0 {
            return Err(Problem::conflict(409, "Conflict", "The category has APIs and cannot be renamed"));
        }
        category.unique_key = Some(name.to_lowercase());
        category.name = name.clone();
        category.document = given;
        tx.update(&mut category)?.ok_or_else(|| taken(&name))?;
        body(tx, &category)
    })?;
    Ok(Response::json(200, &body))
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.store.change(|tx| {
        let category = of_call(tx, call)?;
        if used_by(tx, &category)? > 0 {
            let text = format!("The category {} has APIs and cannot be deleted", category.name);
            return Err(Problem::conflict(409, "Conflict", text));
        }
        tx.delete(&category)
    })?;
    Ok(Response::empty(200))
}
