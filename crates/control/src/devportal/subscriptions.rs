//! Subscriptions of applications to APIs.

use serde_json::{Map, Value, json};

use super::{apis, applications};
use crate::http::Response;
use crate::page::Page;
use crate::problem::Problem;
use crate::publisher::api::text;
use crate::route::{Call, Registration};
use crate::schema::{self, Is, Members};
use crate::store::{Filter, Kind, Object, Transaction};
use crate::workflow;

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/subscriptions", list),
    ("POST", "/subscriptions", create),
    ("POST", "/subscriptions/multiple", create_several),
    ("GET", "/subscriptions/{subscriptionId}", get),
    ("PUT", "/subscriptions/{subscriptionId}", update),
    ("DELETE", "/subscriptions/{subscriptionId}", delete),
];

const MEMBERS: Members = &[
    ("subscriptionId", Is::Text),
    ("applicationId", Is::Text),
    ("apiId", Is::Text),
    ("apiInfo", Is::Any),
    ("applicationInfo", Is::Any),
    ("throttlingPolicy", Is::Text),
    ("requestedThrottlingPolicy", Is::Text),
    ("status", Is::Text),
    ("redirectionParams", Is::Any),
];

/// Subscriptions of one request.
const SEVERAL_MAX: usize = 100;

/// States in which an API can be subscribed to.
const OPEN: [&str; 2] = ["PUBLISHED", "PROTOTYPED"];

fn body(tx: &Transaction<'_>, subscription: &Object) -> Result<Value, Problem> {
    let organization = subscription.organization.as_str();
    let api = tx.get(Kind::Api, organization, &subscription.target)?.map(|api| apis::info(&api));
    let application = match tx.get(Kind::Application, organization, &subscription.parent)? {
        Some(application) => Some(applications::info(tx, &application)?),
        None => None,
    };
    let plan = subscription.text("throttlingPolicy");
    Ok(json!({
        "subscriptionId": subscription.id, "applicationId": subscription.parent, "apiId": subscription.target,
        "apiInfo": api, "applicationInfo": application, "throttlingPolicy": plan, "requestedThrottlingPolicy": plan,
        "status": subscription.state, "redirectionParams": null,
    }))
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let page = Page::of(&call.query);
    let body = call.control.store.read(|tx| {
        let mut filter = Filter::new(Kind::Subscription, call.organization()).owner(&call.caller.name);
        let mut extra = Vec::new();
        if let Some(id) = call.query.get("applicationId") {
            filter = filter.parent(&applications::by_id(tx, call, id)?.id);
            extra.push(("applicationId", id));
        }
        if let Some(id) = call.query.get("apiId") {
            filter = filter.target(id);
            extra.push(("apiId", id));
        }
        let total = tx.count(&filter)?;
        let entries = tx.list(&filter.page(page.offset, page.limit))?;
        let list = entries.iter().map(|entry| body(tx, entry)).collect::<Result<Vec<_>, _>>()?;
        Ok(page.body("/subscriptions", &extra, list, total))
    })?;
    Ok(Response::json(200, &body))
}

pub(super) fn insert(tx: &Transaction<'_>, call: &Call<'_>, given: &Map<String, Value>) -> Result<Object, Problem> {
    let application = applications::by_id(tx, call, text(given, "applicationId"))?;
    let id = text(given, "apiId");
    let api = tx.get(Kind::Api, call.organization(), id)?.ok_or_else(|| Problem::not_found("API", id))?;
    if !OPEN.contains(&api.state.as_str()) {
        return Err(Problem::forbidden(format!("Subscriptions are not allowed in the state {} of the API", api.state)));
    }
    let api = apis::by_id(tx, call, id)?;
    let plan = text(given, "throttlingPolicy");
    let allowed = api.texts("policies");
    let is_free = allowed.is_empty() && api.state == "PROTOTYPED";
    if !is_free && !allowed.contains(&plan) {
        let text = format!(
            "Tier {plan} is not allowed for API {}-{}. Only [{}] Tiers are allowed.",
            api.name,
            api.text("version"),
            allowed.join(", ")
        );
        return Err(Problem::new(403, 902_003, "Subscription is not allowed", text));
    }
    let mut document = Map::new();
    document.insert("throttlingPolicy".into(), plan.into());
    document.insert("apiName".into(), api.name.as_str().into());
    document.insert("apiVersion".into(), api.text("version").into());
    let subscription = Object::new(Kind::Subscription, call.organization(), &api.name, document);
    let mut subscription =
        subscription.of(&application.id).owned(&application.owner).keyed(format!("{}:{}", application.id, api.id));
    subscription.target.clone_from(&api.id);
    subscription.state = "UNBLOCKED".to_owned();
    applications::check_approved(&application)?;
    if tx.insert(&subscription)?.is_none() {
        let text =
            format!("Specified subscription already exists for API {}, for application {}", api.name, application.name);
        return Err(Problem::conflict(900_336, "Subscription already exists", text));
    }
    let properties = json!({
        "apiName": api.name, "apiVersion": api.text("version"), "subscriber": call.caller.shown(), "tierName": plan,
        "applicationName": application.name,
    });
    if workflow::begin(tx, call, workflow::SUBSCRIPTION_CREATION, &subscription, properties, Value::Null)? {
        subscription.state = "ON_HOLD".to_owned();
        tx.update(&mut subscription)?;
    }
    tx.audit(call.organization(), &call.caller.shown(), "create", Kind::Subscription, &subscription.id)?;
    Ok(subscription)
}

const NEEDED: [&str; 3] = ["applicationId", "apiId", "throttlingPolicy"];

fn create(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::body(call.request, MEMBERS, &NEEDED)?;
    let (id, body) = call.control.change_access(|tx| {
        let subscription = insert(tx, call, &given)?;
        Ok((subscription.id.clone(), body(tx, &subscription)?))
    })?;
    Ok(Response::json(201, &body).with("Location", format!("/subscriptions/{id}")))
}

/// All of them, or none.
fn create_several(call: &Call<'_>) -> Result<Response, Problem> {
    let given: Value =
        serde_json::from_slice(&call.request.body).map_err(|_| Problem::bad_request("Malformed request body."))?;
    let given = given.as_array().ok_or_else(|| Problem::bad_request("Malformed request body."))?;
    if given.len() > SEVERAL_MAX {
        return Err(Problem::bad_request(format!("A request makes at most {SEVERAL_MAX} subscriptions")));
    }
    let bodies = call.control.change_access(|tx| {
        let one = |given: &Value| {
            let given = given.as_object().ok_or_else(|| Problem::bad_request("Malformed request body."))?;
            schema::check(given, MEMBERS, &NEEDED)?;
            body(tx, &insert(tx, call, given)?)
        };
        given.iter().map(one).collect::<Result<Vec<_>, _>>()
    })?;
    Ok(Response::json(200, &bodies.into()))
}

fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    let id = call.id();
    let found = tx.get(Kind::Subscription, call.organization(), id)?;
    let found = found.ok_or_else(|| {
        let text = format!("The requested subscription with ID '{id}' was not found.");
        Problem::new(404, 900_310, "Subscription not found", text)
    })?;
    let may = found.owner == call.caller.name || call.caller.is_admin();
    if may { Ok(found) } else { Err(Problem::forbidden("The subscription is of another user")) }
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| body(tx, &of_call(tx, call)?))?;
    Ok(Response::json(200, &body))
}

/// Another plan.
fn update(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::body(call.request, MEMBERS, &["throttlingPolicy"])?;
    let requested = Some(text(&given, "requestedThrottlingPolicy")).filter(|plan| !plan.is_empty());
    let plan = requested.unwrap_or(text(&given, "throttlingPolicy"));
    let body = call.control.change_access(|tx| {
        let mut subscription = of_call(tx, call)?;
        let api = tx.get(Kind::Api, call.organization(), &subscription.target)?;
        if !api.is_some_and(|api| api.texts("policies").contains(&plan)) {
            return Err(Problem::new(
                403,
                902_003,
                "Subscription is not allowed",
                format!("Tier {plan} is not allowed."),
            ));
        }
        subscription.set("throttlingPolicy", plan);
        tx.update(&mut subscription)?;
        body(tx, &subscription)
    })?;
    Ok(Response::json(200, &body))
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.change_access(|tx| {
        let subscription = of_call(tx, call)?;
        workflow::forget(tx, &subscription)?;
        tx.delete(&subscription)?;
        tx.audit(call.organization(), &call.caller.shown(), "delete", Kind::Subscription, &subscription.id)
    })?;
    Ok(Response::empty(200))
}
