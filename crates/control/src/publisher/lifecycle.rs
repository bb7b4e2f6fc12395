//! The lifecycle of APIs and products.

use serde_json::{Value, json};

use super::api::{by_id, has_backend, is_product, of_call};
use crate::clock;
use crate::http::Response;
use crate::identity::Caller;
use crate::problem::Problem;
use crate::route::{Call, Registration};
use crate::store::{Filter, Kind, Object, Transaction};
use crate::workflow;

pub(super) const HANDLERS: &[Registration] = &[
    ("POST", "/apis/change-lifecycle", |call| change(call, "apiId", "API")),
    ("GET", "/apis/{apiId}/lifecycle-state", get),
    ("GET", "/apis/{apiId}/lifecycle-history", history),
    ("POST", "/api-products/change-lifecycle", |call| change(call, "apiProductId", "API Product")),
    ("GET", "/api-products/{apiProductId}/lifecycle-state", get),
    ("GET", "/api-products/{apiProductId}/lifecycle-history", history),
    ("POST", "/mcp-servers/change-lifecycle", |call| change(call, "mcpServerId", "MCP Server")),
    ("GET", "/mcp-servers/{mcpServerId}/lifecycle-state", get),
    ("GET", "/mcp-servers/{mcpServerId}/lifecycle-history", history),
];

/// State, action, target.
const TRANSITIONS: &[(&str, &str, &str)] = &[
    ("CREATED", "Publish", "PUBLISHED"),
    ("CREATED", "Deploy as a Prototype", "PROTOTYPED"),
    ("PROTOTYPED", "Publish", "PUBLISHED"),
    ("PROTOTYPED", "Demote to Created", "CREATED"),
    ("PUBLISHED", "Block", "BLOCKED"),
    ("PUBLISHED", "Deploy as a Prototype", "PROTOTYPED"),
    ("PUBLISHED", "Demote to Created", "CREATED"),
    ("PUBLISHED", "Deprecate", "DEPRECATED"),
    ("BLOCKED", "Re-Publish", "PUBLISHED"),
    ("BLOCKED", "Deprecate", "DEPRECATED"),
    ("DEPRECATED", "Retire", "RETIRED"),
];

const DEPRECATE_OLD: &str = "Deprecate old versions after publishing the API";
const RESUBSCRIBE: &str = "Requires re-subscription when publishing the API";

/// The member of an API whose change of state waits for approval.
pub(crate) const WAITING: &str = "workflowStatus";

/// Events that are kept of one API.
const HISTORY_MAX: usize = 1_000;

/// A state as this API shows it: `Published`.
fn shown(state: &str) -> String {
    let mut letters = state.chars();
    let first = letters.next().map(String::from).unwrap_or_default();
    first + &letters.as_str().to_lowercase()
}

fn state_body(tx: &Transaction<'_>, api: &Object) -> Result<Value, Problem> {
    let from = TRANSITIONS.iter().filter(|(from, _, _)| *from == api.state);
    let transitions: Vec<Value> =
        from.map(|(_, event, target)| json!({"event": event, "targetState": shown(target)})).collect();
    let others = tx.count(&Filter::new(Kind::Api, &api.organization).named(&api.name))? > 1;
    let items: Vec<Value> = match others {
        true => [DEPRECATE_OLD, RESUBSCRIBE]
            .iter()
            .map(|name| json!({"name": name, "value": false, "requiredStates": []}))
            .collect(),
        false => Vec::new(),
    };
    Ok(json!({"state": shown(&api.state), "checkItems": items, "availableTransitions": transitions}))
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| state_body(tx, &of_call(tx, call)?))?;
    Ok(Response::json(200, &body))
}

fn history(call: &Call<'_>) -> Result<Response, Problem> {
    let api = call.control.store.read(|tx| of_call(tx, call))?;
    let entries = api.document.get("lifecycleHistory").and_then(Value::as_array).cloned().unwrap_or_default();
    Ok(Response::json(200, &json!({"count": entries.len(), "list": entries})))
}

fn change(call: &Call<'_>, parameter: &str, what: &str) -> Result<Response, Problem> {
    let (action, id) = (call.needed("action")?, call.needed(parameter)?);
    let checked = |item: &str| {
        let list = call.query.get("lifecycleChecklist").unwrap_or_default();
        list.split(',').any(|pair| pair.trim() == format!("{item}:true"))
    };
    let (deprecate_old, resubscribe) = (checked(DEPRECATE_OLD), checked(RESUBSCRIBE));
    let (state, is_waiting) = call.control.change_served(|tx| {
        let mut api = by_id(tx, &call.caller, id, what)?;
        if workflow::is_pending(tx, workflow::API_STATE, &api)? {
            return Err(workflow::pending_already());
        }
        if TRANSITIONS.iter().any(|(from, event, _)| *from == api.state && *event == action) {
            let properties = json!({
                "apiName": api.name, "apiVersion": api.text("version"), "apiProvider": call.caller.shown(),
                "currentState": api.state, "action": action,
            });
            if workflow::begin(tx, call, workflow::API_STATE, &api, properties, action.into())? {
                api.set(WAITING, workflow::CREATED);
                tx.update(&mut api)?;
                return Ok((state_body(tx, &api)?, true));
            }
        }
        apply(tx, &call.caller, &mut api, action)?;
        if api.state == "PUBLISHED" && deprecate_old {
            deprecate_others(tx, &call.caller, &api)?;
        }
        if api.state == "PUBLISHED" && !resubscribe && action == "Publish" {
            super::subscriptions::carry_over(tx, &api)?;
        }
        Ok((state_body(tx, &api)?, false))
    })?;
    let status = if is_waiting { workflow::CREATED } else { workflow::APPROVED };
    Ok(Response::json(200, &json!({"workflowStatus": status, "jsonPayload": null, "lifecycleState": state})))
}

/// Does an action of the lifecycle.
pub(crate) fn apply(tx: &Transaction<'_>, caller: &Caller, api: &mut Object, action: &str) -> Result<(), Problem> {
    let found = TRANSITIONS.iter().find(|(from, event, _)| *from == api.state && *event == action);
    let Some((_, _, target)) = found else {
        let allowed = TRANSITIONS.iter().filter(|(from, _, _)| *from == api.state);
        let allowed: Vec<&str> = allowed.map(|(_, event, _)| *event).collect();
        let text = format!("Action '{action}' is not allowed. Allowed actions are [{}]", allowed.join(", "));
        return Err(Problem::rejected(903_234, "Unsupported state change action", text));
    };
    if matches!(*target, "PUBLISHED" | "PROTOTYPED") {
        if !has_backend(api) {
            let text = format!("The API {}:{} has no endpoint", api.name, api.text("version"));
            return Err(Problem::rejected(903_223, "Error while publishing the API. No endpoint selected", text));
        }
        if *target == "PUBLISHED" && api.texts("policies").is_empty() && !super::api::advertised(&api.document) {
            let text = format!("The API {}:{} has no business plan", api.name, api.text("version"));
            return Err(Problem::rejected(903_224, "Error while publishing the API. No tiers selected", text));
        }
    }
    set_state(api, caller, target);
    if *target == "CREATED" || *target == "RETIRED" {
        super::revisions::undeploy_all(tx, api)?;
    }
    if *target == "RETIRED" {
        for subscription in tx.list(&Filter::new(Kind::Subscription, &api.organization).target(&api.id))? {
            tx.delete(&subscription)?;
        }
    }
    tx.update(api)?;
    tx.audit(&api.organization, &caller.shown(), action, Kind::Api, &api.id)
}

/// Begins the history of a new API.
pub(super) fn record_creation(api: &mut Object, caller: &Caller) {
    let entry = json!({
        "previousState": null, "postState": shown(&api.state), "user": caller.shown(),
        "updatedTime": clock::shown(clock::now_ms()),
    });
    api.set("lifecycleHistory", json!([entry]));
}

fn set_state(api: &mut Object, caller: &Caller, target: &str) {
    let mut history = api.document.get("lifecycleHistory").and_then(Value::as_array).cloned().unwrap_or_default();
    history.push(json!({
        "previousState": shown(&api.state), "postState": shown(target), "user": caller.shown(),
        "updatedTime": clock::shown(clock::now_ms()),
    }));
    let surplus = history.len().saturating_sub(HISTORY_MAX);
    history.drain(..surplus);
    api.set("lifecycleHistory", Value::Array(history));
    api.state = target.to_owned();
}

/// The actions that lead from one state to another, the shortest way.
pub(super) fn path(from: &str, to: &str) -> Option<Vec<&'static str>> {
    let mut paths: Vec<(&str, Vec<&'static str>)> = vec![(from, Vec::new())];
    let mut seen = vec![from];
    while !paths.is_empty() {
        if let Some((_, actions)) = paths.iter().find(|(state, _)| *state == to) {
            return Some(actions.clone());
        }
        let mut next = Vec::new();
        for (state, actions) in &paths {
            for (_, event, target) in TRANSITIONS.iter().filter(|(from, _, _)| from == state) {
                if !seen.contains(target) {
                    seen.push(target);
                    let mut actions = actions.clone();
                    actions.push(*event);
                    next.push((*target, actions));
                }
            }
        }
        paths = next;
    }
    None
}

fn deprecate_others(tx: &Transaction<'_>, caller: &Caller, api: &Object) -> Result<(), Problem> {
    let same = tx.list(&Filter::new(Kind::Api, &api.organization).named(&api.name).states(&["PUBLISHED"]))?;
    let older = same.into_iter().filter(|other| {
        other.id != api.id && is_product(other) == is_product(api) && other.created_ms <= api.created_ms
    });
    for mut other in older {
        set_state(&mut other, caller, "DEPRECATED");
        tx.update(&mut other)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_reached_by_the_shortest_way() {
        for (from, to, expected) in [
            ("CREATED", "PUBLISHED", Some(vec!["Publish"])),
            ("CREATED", "RETIRED", Some(vec!["Publish", "Deprecate", "Retire"])),
            ("PUBLISHED", "PUBLISHED", Some(vec![])),
            ("RETIRED", "CREATED", None),
        ] {
            assert_eq!(path(from, to), expected, "{from} {to}");
        }
        assert_eq!(shown("PUBLISHED"), "Published");
    }
}
