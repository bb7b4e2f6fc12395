//! Applications.

use serde_json::{Map, Value, json};

use crate::http::Response;
use crate::identity::shown;
use crate::page::Page;
use crate::problem::Problem;
use crate::publisher::api::{order, text};
use crate::route::{Call, Registration};
use crate::schema::{self, Is, Members};
use crate::store::{Filter, Kind, Object, Transaction};
use crate::workflow;

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/applications", list),
    ("POST", "/applications", create),
    ("GET", "/applications/{applicationId}", get),
    ("PUT", "/applications/{applicationId}", update),
    ("DELETE", "/applications/{applicationId}", delete),
];

const MEMBERS: Members = &[
    ("applicationId", Is::Text),
    ("name", Is::Short(100)),
    ("throttlingPolicy", Is::Text),
    ("description", Is::Short(512)),
    ("tokenType", Is::OneOf(&["OAUTH", "JWT", "DEFAULT"])),
    ("status", Is::Text),
    ("groups", Is::Texts),
    ("subscriptionCount", Is::Number),
    ("keys", Is::List),
    ("attributes", Is::Map),
    ("subscriptionScopes", Is::List),
    ("owner", Is::Text),
    ("hashEnabled", Is::Flag),
    ("createdTime", Is::Text),
    ("updatedTime", Is::Text),
    ("visibility", Is::Text),
];

/// What is kept of a body.
pub(super) const KEPT: [&str; 5] = ["throttlingPolicy", "description", "groups", "attributes", "tokenType"];

/// The application that every user has.
pub(super) const DEFAULT_APPLICATION: &str = "DefaultApplication";

/// The application of a path, when it is the caller's.
pub(super) fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    by_id(tx, call, call.id())
}

pub(super) fn by_id(tx: &Transaction<'_>, call: &Call<'_>, id: &str) -> Result<Object, Problem> {
    let found = tx.get(Kind::Application, call.organization(), id)?;
    let found = found.ok_or_else(|| Problem::not_found("Application", id))?;
    let may = found.owner == call.caller.name || call.caller.has("apim:app_import_export") && call.caller.is_admin();
    if may { Ok(found) } else { Err(Problem::forbidden("The application is of another user")) }
}

pub(super) fn key(owner: &str, name: &str) -> String {
    format!("{owner}/{}", name.to_lowercase())
}

/// An application as responses have it.
pub(crate) fn info(tx: &Transaction<'_>, application: &Object) -> Result<Value, Problem> {
    let member = |name: &str| application.document.get(name).cloned().unwrap_or_default();
    let count = tx.count(&Filter::new(Kind::Subscription, &application.organization).parent(&application.id))?;
    Ok(json!({
        "applicationId": application.id, "name": application.name, "throttlingPolicy": member("throttlingPolicy"),
        "description": member("description"), "status": status(application), "groups": groups(application),
        "subscriptionCount": count, "attributes": attributes(application),
        "owner": shown(&application.owner, &application.organization), "tokenType": "JWT",
        "createdTime": application.created_ms.to_string(), "updatedTime": application.updated_ms.to_string(),
    }))
}

/// Whether an application may be used: one that waits for approval may not.
fn status(application: &Object) -> &str {
    Some(application.state.as_str()).filter(|state| !state.is_empty()).unwrap_or(workflow::APPROVED)
}

/// Refuses an application that was not approved.
pub(super) fn check_approved(application: &Object) -> Result<(), Problem> {
    match status(application) {
        workflow::APPROVED => Ok(()),
        workflow::CREATED => Err(workflow::pending_already()),
        _ => Err(Problem::new(403, 900_558, "Workflow error", "The application was rejected")),
    }
}

fn groups(application: &Object) -> Value {
    application.document.get("groups").filter(|groups| groups.is_array()).cloned().unwrap_or_else(|| json!([]))
}

fn attributes(application: &Object) -> Value {
    application.document.get("attributes").filter(|map| map.is_object()).cloned().unwrap_or_else(|| json!({}))
}

fn body(tx: &Transaction<'_>, call: &Call<'_>, application: &Object) -> Result<Value, Problem> {
    let mut body = info(tx, application)?;
    body["keys"] = super::keys::of_application(tx, call.control, application)?.into();
    body["subscriptionScopes"] = subscription_scopes(tx, application)?.into();
    body["hashEnabled"] = false.into();
    body["visibility"] = "PRIVATE".into();
    Ok(body)
}

/// The scopes of all APIs that an application subscribed to.
fn subscription_scopes(tx: &Transaction<'_>, application: &Object) -> Result<Vec<Value>, Problem> {
    let mut found: Vec<Value> = Vec::new();
    for subscription in tx.list(&Filter::new(Kind::Subscription, &application.organization).parent(&application.id))? {
        let Some(api) = tx.get(Kind::Api, &application.organization, &subscription.target)? else { continue };
        let scopes = api.document.get("scopes").and_then(Value::as_array).cloned().unwrap_or_default();
        for scope in scopes.into_iter().filter_map(|entry| entry.get("scope").cloned()) {
            let entry = json!({
                "key": scope["name"], "name": scope["displayName"], "roles": scope["bindings"],
                "description": scope["description"],
            });
            if !found.contains(&entry) {
                found.push(entry);
            }
        }
    }
    Ok(found)
}

/// A user who uses the portal for the first time gets an application.
fn with_default(call: &Call<'_>) -> Result<(), Problem> {
    let known = call.control.store.read(|tx| {
        let mark = key(&call.caller.name, DEFAULT_APPLICATION);
        let user = tx.find(Kind::User, call.organization(), &call.caller.name)?;
        Ok(user.is_none_or(|user| user.flag("isSubscriber"))
            || tx.find(Kind::Application, call.organization(), &mark)?.is_some())
    })?;
    if known {
        return Ok(());
    }
    call.control.change_access(|tx| {
        let mut document = Map::new();
        document.insert("throttlingPolicy".into(), "Unlimited".into());
        let application = Object::new(Kind::Application, call.organization(), DEFAULT_APPLICATION, document);
        tx.insert(&application.owned(&call.caller.name).keyed(key(&call.caller.name, DEFAULT_APPLICATION)))?;
        // The application may be deleted; it is not made again.
        if let Some(mut user) = tx.find(Kind::User, call.organization(), &call.caller.name)? {
            user.set("isSubscriber", true);
            tx.update(&mut user)?;
        }
        Ok(())
    })
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    with_default(call)?;
    let page = Page::of(&call.query);
    let query = call.query.get("query").unwrap_or_default();
    let mut filter = Filter::new(Kind::Application, call.organization()).owner(&call.caller.name).sorted(order(call));
    if !query.is_empty() {
        filter = filter.name_contains(query);
    }
    let body = call.control.store.read(|tx| {
        let total = tx.count(&filter)?;
        let entries = tx.list(&filter.page(page.offset, page.limit))?;
        let list = entries.iter().map(|entry| info(tx, entry)).collect::<Result<Vec<_>, _>>()?;
        Ok(page.body("/applications", &[], list, total))
    })?;
    Ok(Response::json(200, &body))
}

pub(super) fn check(tx: &Transaction<'_>, call: &Call<'_>, given: &Map<String, Value>) -> Result<(), Problem> {
    let plan = text(given, "throttlingPolicy");
    match crate::admin::throttling::exists(tx, call.organization(), "application", plan)? {
        true => Ok(()),
        false => {
            Err(Problem::rejected(900_305, "The tier name is invalid.", format!("The tier name is invalid: {plan}")))
        }
    }
}

pub(super) fn taken(name: &str) -> Problem {
    let text = format!("An application already exists with name {name}");
    Problem::conflict(900_301, "The application already exists.", text)
}

fn create(call: &Call<'_>) -> Result<Response, Problem> {
    with_default(call)?;
    let mut given = schema::body(call.request, MEMBERS, &["name", "throttlingPolicy"])?;
    let name = text(&given, "name").trim().to_owned();
    given.retain(|member, _| KEPT.contains(&member.as_str()));
    let (id, body) = call.control.change_access(|tx| {
        check(tx, call, &given)?;
        let application = Object::new(Kind::Application, call.organization(), &name, given);
        let application = application.owned(&call.caller.name).keyed(key(&call.caller.name, &name));
        tx.insert(&application)?.ok_or_else(|| taken(&name))?;
        let properties = json!({
            "applicationName": name, "userName": call.caller.shown(),
            "applicationTier": application.text("throttlingPolicy"), "description": application.text("description"),
        });
        let mut application = application;
        if workflow::begin(tx, call, workflow::APPLICATION_CREATION, &application, properties, Value::Null)? {
            application.state = workflow::CREATED.to_owned();
            tx.update(&mut application)?;
        }
        tx.audit(call.organization(), &call.caller.shown(), "create", Kind::Application, &application.id)?;
        let body = body(tx, call, &application)?;
        Ok((application.id, body))
    })?;
    Ok(Response::json(201, &body).with("Location", format!("/applications/{id}")))
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| body(tx, call, &of_call(tx, call)?))?;
    Ok(Response::json(200, &body))
}

fn update(call: &Call<'_>) -> Result<Response, Problem> {
    let mut given = schema::body(call.request, MEMBERS, &["name", "throttlingPolicy"])?;
    let name = text(&given, "name").trim().to_owned();
    given.retain(|member, _| KEPT.contains(&member.as_str()));
    let body = call.control.change_access(|tx| {
        check(tx, call, &given)?;
        let mut application = of_call(tx, call)?;
        application.name.clone_from(&name);
        application.unique_key = Some(key(&application.owner, &name));
        application.document = given;
        tx.update(&mut application)?.ok_or_else(|| taken(&name))?;
        body(tx, call, &application)
    })?;
    Ok(Response::json(200, &body))
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.change_access(|tx| {
        let application = of_call(tx, call)?;
        remove(tx, &application)?;
        tx.audit(call.organization(), &call.caller.shown(), "delete", Kind::Application, &application.id)
    })?;
    Ok(Response::empty(200))
}

/// Removes an application with its subscriptions, keys and clients.
pub(crate) fn remove(tx: &Transaction<'_>, application: &Object) -> Result<(), Problem> {
    let organization = application.organization.as_str();
    for subscription in tx.list(&Filter::new(Kind::Subscription, organization).parent(&application.id))? {
        workflow::forget(tx, &subscription)?;
        tx.delete(&subscription)?;
    }
    super::api_keys::remove_of(tx, application)?;
    workflow::forget(tx, application)?;
    for mapping in tx.list(&Filter::new(Kind::KeyMapping, organization).parent(&application.id))? {
        super::keys::remove(tx, &mapping)?;
    }
    tx.delete(application)
}
