//! Deny policies.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use crate::http::Response;
use crate::identity::SUPER_ORGANIZATION;
use crate::problem::Problem;
use crate::publisher::{api::text, revisions};
use crate::route::{Call, Registration};
use crate::schema::{self, Is, Members};
use crate::store::{Filter, Kind, Object, Term, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/throttling/deny-policies", list),
    ("POST", "/throttling/deny-policies", create),
    ("GET", "/throttling/deny-policy/{conditionId}", get),
    ("PATCH", "/throttling/deny-policy/{conditionId}", set_status),
    ("DELETE", "/throttling/deny-policy/{conditionId}", delete),
];

const MEMBERS: Members = &[
    ("conditionId", Is::Text),
    ("conditionType", Is::OneOf(&["APPLICATION", "API", "IP", "IPRANGE", "USER"])),
    ("conditionValue", Is::Any),
    ("conditionStatus", Is::Flag),
];

/// The condition in the notation of the configuration; `None` while it is off.
pub(crate) fn condition(deny: &Object) -> Option<String> {
    if deny.state != "ON" {
        return None;
    }
    let value = deny.document.get("conditionValue")?;
    let member = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let not = if value.get("invert").and_then(Value::as_bool) == Some(true) { "not " } else { "" };
    Some(match deny.text("conditionType") {
        "IP" => format!("{not}ip {}", member("fixedIp")),
        "IPRANGE" => format!("{not}ip {}-{}", member("startingIp"), member("endingIp")),
        "API" => format!("api {}", value.as_str()?),
        "APPLICATION" => format!("application {}", value.as_str()?),
        // Subjects of tokens have no organization when it is the first one.
        "USER" => {
            let name = value.as_str()?;
            format!("user {}", name.strip_suffix(&format!("@{SUPER_ORGANIZATION}")).unwrap_or(name))
        }
        _ => return None,
    })
}

fn body(deny: &Object) -> Value {
    json!({
        "conditionId": deny.id, "conditionType": deny.text("conditionType"),
        "conditionValue": deny.document.get("conditionValue"), "conditionStatus": deny.state == "ON",
    })
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let terms = Term::parse(call.query.get("query").unwrap_or_default());
    let all = call.control.store.read(|tx| tx.list(&Filter::new(Kind::Deny, call.organization())))?;
    let fits = |deny: &&Object| {
        terms.iter().all(|term| {
            let value = match term.key.as_str() {
                "conditiontype" => return deny.text("conditionType").eq_ignore_ascii_case(&term.value),
                _ => deny
                    .document
                    .get("conditionValue")
                    .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
            };
            value.is_some_and(|value| if term.exact { value == term.value } else { value.contains(&term.value) })
        })
    };
    let list: Vec<Value> = all.iter().filter(fits).map(body).collect();
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

fn address(value: &Value, name: &str) -> Result<(), Problem> {
    let text = value.get(name).and_then(Value::as_str).unwrap_or_default();
    match text.parse::<IpAddr>() {
        Ok(_) => Ok(()),
        // API Manager's own tests expect this status.
        Err(_) => Err(Problem::new(500, 900_967, "General Error", format!("{text} is an invalid ip address format"))),
    }
}

fn check(tx: &Transaction<'_>, call: &Call<'_>, given: &Map<String, Value>) -> Result<(), Problem> {
    let value = given.get("conditionValue").cloned().unwrap_or_default();
    match text(given, "conditionType") {
        "IP" => address(&value, "fixedIp"),
        "IPRANGE" => address(&value, "startingIp").and_then(|()| address(&value, "endingIp")),
        "API" => {
            let context = value.as_str().unwrap_or_default();
            let apis = tx.list(&Filter::new(Kind::Api, call.organization()))?;
            match apis.iter().any(|api| revisions::versioned_context(api) == context) {
                true => Ok(()),
                false => {
                    Err(Problem::rejected(900_977, "Invalid context", format!("No API has the context {context}")))
                }
            }
        }
        "APPLICATION" => {
            let (owner, name) = value.as_str().and_then(|value| value.split_once(':')).unwrap_or_default();
            let found = tx.count(&Filter::new(Kind::Application, call.organization()).owner(owner).named(name))?;
            match found {
                0 => {
                    Err(Problem::rejected(900_978, "Invalid application", format!("No application {name} of {owner}")))
                }
                _ => Ok(()),
            }
        }
        _ if value.as_str().is_some_and(|value| !value.is_empty()) => Ok(()),
        _ => Err(Problem::invalid("conditionValue", "the value must be a text")),
    }
}

fn create(call: &Call<'_>) -> Result<Response, Problem> {
    let mut given = schema::body(call.request, MEMBERS, &["conditionType", "conditionValue"])?;
    let is_on = given.get("conditionStatus").and_then(Value::as_bool).unwrap_or(true);
    given.retain(|name, _| matches!(name.as_str(), "conditionType" | "conditionValue"));
    let deny = call.control.change_served(|tx| {
        check(tx, call, &given)?;
        if text(&given, "conditionType") == "USER" {
            let name = text(&given, "conditionValue");
            let organization = format!("@{}", call.organization());
            if !name.ends_with(&organization) {
                let full = format!("{name}{organization}");
                given.insert("conditionValue".into(), full.into());
            }
        }
        let key =
            format!("{}:{}", text(&given, "conditionType"), given.get("conditionValue").cloned().unwrap_or_default());
        let mut deny =
            Object::new(Kind::Deny, call.organization(), text(&given, "conditionType"), given.clone()).keyed(key);
        deny.state = if is_on { "ON" } else { "OFF" }.to_owned();
        if tx.insert(&deny)?.is_none() {
            let text = "A deny policy with the same type and value exists";
            return Err(Problem::conflict(900_979, "Deny policy already exists", text));
        }
        tx.audit(call.organization(), &call.caller.shown(), "create", Kind::Deny, &deny.id)?;
        Ok(deny)
    })?;
    Ok(Response::json(201, &body(&deny)).with("Location", format!("/throttling/deny-policy/{}", deny.id)))
}

fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    tx.get(Kind::Deny, call.organization(), call.id())?.ok_or_else(|| Problem::not_found("Deny Policy", call.id()))
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let deny = call.control.store.read(|tx| of_call(tx, call))?;
    Ok(Response::json(200, &body(&deny)))
}

fn set_status(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::body(call.request, MEMBERS, &["conditionStatus"])?;
    let is_on = given.get("conditionStatus").and_then(Value::as_bool).unwrap_or_default();
    let deny = call.control.change_served(|tx| {
        let mut deny = of_call(tx, call)?;
        deny.state = if is_on { "ON" } else { "OFF" }.to_owned();
        tx.update(&mut deny)?;
        Ok(deny)
    })?;
    Ok(Response::json(200, &body(&deny)))
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.change_served(|tx| tx.delete(&of_call(tx, call)?))?;
    Ok(Response::empty(200))
}
