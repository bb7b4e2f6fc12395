//! Subscriptions as publishers see them: lists, blocking, plans.

use serde_json::{Value, json};

use super::api;
use crate::http::Response;
use crate::identity::shown;
use crate::page::Page;
use crate::problem::Problem;
use crate::random;
use crate::route::{Call, Registration};
use crate::store::{Filter, Kind, Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/subscriptions", list),
    ("POST", "/subscriptions/block-subscription", block),
    ("POST", "/subscriptions/unblock-subscription", unblock),
    ("POST", "/subscriptions/change-business-plan", change_plan),
    ("GET", "/subscriptions/{subscriptionId}/subscriber-info", subscriber),
];

/// States in which a subscription can be blocked to.
const BLOCKED: [&str; 2] = ["BLOCKED", "PROD_ONLY_BLOCKED"];

fn body(tx: &Transaction<'_>, subscription: &Object) -> Result<Value, Problem> {
    let application = tx.get(Kind::Application, &subscription.organization, &subscription.parent)?;
    let count = tx.count(&Filter::new(Kind::Subscription, &subscription.organization).parent(&subscription.parent))?;
    let info = application.map(|application| {
        json!({
            "applicationId": application.id, "name": application.name,
            "subscriber": shown(&application.owner, &application.organization),
            "description": application.text("description"), "subscriptionCount": count,
        })
    });
    Ok(json!({
        "subscriptionId": subscription.id, "applicationInfo": info,
        "throttlingPolicy": subscription.text("throttlingPolicy"), "subscriptionStatus": subscription.state,
    }))
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let page = Page::of(&call.query);
    let body = call.control.store.read(|tx| {
        let mut filter = Filter::new(Kind::Subscription, call.organization());
        if let Some(id) = call.query.get("apiId") {
            let api = api::by_id(tx, &call.caller, id, "API")?;
            filter = filter.target(&api.id);
        }
        let total = tx.count(&filter)?;
        let entries = tx.list(&filter.page(page.offset, page.limit))?;
        let list = entries.iter().map(|entry| body(tx, entry)).collect::<Result<Vec<_>, _>>()?;
        Ok(page.body("/subscriptions", &[], list, total))
    })?;
    Ok(Response::json(200, &body))
}

fn by_id(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    let id = call.needed("subscriptionId")?;
    let found = tx.get(Kind::Subscription, call.organization(), id)?;
    found.ok_or_else(|| {
        let text = format!("The requested subscription with ID '{id}' was not found.");
        Problem::new(404, 900_310, "Subscription not found", text)
    })
}

/// Who subscribed.
fn subscriber(call: &Call<'_>) -> Result<Response, Problem> {
    let found = call.control.store.read(|tx| tx.get(Kind::Subscription, call.organization(), call.id()))?;
    let found = found.ok_or_else(|| Problem::not_found("Subscription", call.id()))?;
    let name = shown(&found.owner, &found.organization);
    Ok(Response::json(200, &json!({"name": name, "claims": []})))
}

fn set_state(call: &Call<'_>, state: &str) -> Result<Response, Problem> {
    let body = call.control.change_access(|tx| {
        let mut subscription = by_id(tx, call)?;
        subscription.state = state.to_owned();
        tx.update(&mut subscription)?;
        tx.audit(call.organization(), &call.caller.shown(), state, Kind::Subscription, &subscription.id)?;
        body(tx, &subscription)
    })?;
    Ok(Response::json(200, &body))
}

fn block(call: &Call<'_>) -> Result<Response, Problem> {
    let state = call.needed("blockState")?;
    if !BLOCKED.contains(&state) {
        return Err(Problem::bad_request("blockState must be BLOCKED or PROD_ONLY_BLOCKED"));
    }
    set_state(call, state)
}

fn unblock(call: &Call<'_>) -> Result<Response, Problem> {
    set_state(call, "UNBLOCKED")
}

fn change_plan(call: &Call<'_>) -> Result<Response, Problem> {
    let plan = call.needed("businessPlan")?;
    let body = call.control.change_access(|tx| {
        let mut subscription = by_id(tx, call)?;
        let api = tx.get(Kind::Api, call.organization(), &subscription.target)?;
        if !api.is_some_and(|api| api.texts("policies").contains(&plan)) {
            let text = format!("The business plan {plan} is not one of the API");
            return Err(Problem::rejected(902_018, "Invalid business plan", text));
        }
        subscription.set("throttlingPolicy", plan);
        tx.update(&mut subscription)?;
        body(tx, &subscription)
    })?;
    Ok(Response::json(200, &body))
}

/// Gives the subscribers of the version before a subscription to a version that is published for the first time.
pub(super) fn carry_over(tx: &Transaction<'_>, api: &Object) -> Result<(), Problem> {
    if api::is_product(api) || tx.count(&Filter::new(Kind::Subscription, &api.organization).target(&api.id))? > 0 {
        return Ok(());
    }
    let states = ["PUBLISHED", "DEPRECATED", "BLOCKED"];
    let same = tx.list(&Filter::new(Kind::Api, &api.organization).named(&api.name).states(&states))?;
    let before = same.into_iter().rfind(|other| other.id != api.id && other.created_ms <= api.created_ms);
    let Some(before) = before else { return Ok(()) };
    for subscription in tx.list(&Filter::new(Kind::Subscription, &api.organization).target(&before.id))? {
        if !api.texts("policies").contains(&subscription.text("throttlingPolicy")) {
            continue;
        }
        let mut copy = subscription.clone();
        (copy.id, copy.version) = (random::uuid(), 0);
        copy.target.clone_from(&api.id);
        copy.unique_key = Some(format!("{}:{}", copy.parent, api.id));
        copy.set("apiVersion", api.text("version"));
        tx.insert(&copy)?;
    }
    Ok(())
}
