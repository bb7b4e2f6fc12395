//! Gateway environments and their virtual hosts.

use serde_json::{Map, Value, json};

use crate::Control;
use crate::http::Response;
use crate::problem::Problem;
use crate::publisher::api::text;
use crate::publisher::revisions::{self, DEFAULT_ENVIRONMENT};
use crate::route::{Call, Registration};
use crate::schema;
use crate::store::{Filter, Kind, Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/environments", list),
    ("POST", "/environments", create),
    ("GET", "/environments/{environmentId}", get),
    ("PUT", "/environments/{environmentId}", update),
    ("DELETE", "/environments/{environmentId}", delete),
];

/// The environment of the gateway in this process.
fn default_environment(control: &Control) -> Value {
    let (http, https) = control.config.gateway_ports;
    json!({
        "id": DEFAULT_ENVIRONMENT, "name": DEFAULT_ENVIRONMENT, "displayName": DEFAULT_ENVIRONMENT, "type": "hybrid",
        "gatewayType": "Regular", "description": "The gateway of this server", "provider": "wso2", "isReadOnly": true,
        "mode": "WRITE_ONLY", "showInApiConsole": true, "serverUrl": control.base_url(), "additionalProperties": [],
        "vhosts": [{
            "host": control.config.hostname, "httpContext": "", "httpPort": http, "httpsPort": https, "wsPort": 9099,
            "wssPort": 8099,
        }],
    })
}

fn body(environment: &Object) -> Value {
    let mut body = Value::Object(environment.document.clone());
    body["id"] = environment.id.as_str().into();
    body["name"] = environment.name.as_str().into();
    body["isReadOnly"] = false.into();
    let defaults = json!({
        "type": "hybrid", "gatewayType": "Regular", "provider": "wso2", "mode": "WRITE_ONLY", "additionalProperties": [],
    });
    for (name, default) in defaults.as_object().into_iter().flatten() {
        if body[name].is_null() {
            body[name] = default.clone();
        }
    }
    body
}

/// All environments of an organization.
pub(crate) fn all(tx: &Transaction<'_>, control: &Control, organization: &str) -> Result<Vec<Value>, Problem> {
    let own = tx.list(&Filter::new(Kind::Environment, organization))?;
    Ok(std::iter::once(default_environment(control)).chain(own.iter().map(body)).collect())
}

/// The hosts of an environment; `None` when there is no such environment. The first environment has any host.
pub(crate) fn vhosts(tx: &Transaction<'_>, organization: &str, name: &str) -> Result<Option<Vec<String>>, Problem> {
    if name == DEFAULT_ENVIRONMENT {
        return Ok(Some(vec!["localhost".to_owned()]));
    }
    let found = tx.find(Kind::Environment, organization, &name.to_lowercase())?;
    Ok(found.map(|found| hosts(&found.document).into_iter().map(str::to_owned).collect()))
}

fn hosts(document: &Map<String, Value>) -> Vec<&str> {
    let vhosts = document.get("vhosts").and_then(Value::as_array).into_iter().flatten();
    vhosts.filter_map(|vhost| vhost.get("host")?.as_str()).collect()
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let list = call.control.store.read(|tx| all(tx, call.control, call.organization()))?;
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

fn check(given: &Map<String, Value>) -> Result<(), Problem> {
    let name = text(given, "name");
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(Problem::invalid("name", "the name must consist of letters, digits, - and _"));
    }
    if given.get("displayName").is_some_and(|shown| shown.as_str() == Some("")) {
        return Err(Problem::invalid("displayName", "the displayed name must not be empty"));
    }
    let hosts = hosts(given);
    let is_host = |host: &&str| {
        !host.is_empty() && host.chars().all(|letter| letter.is_ascii_alphanumeric() || "-.*:[]".contains(letter))
    };
    if hosts.is_empty() || !hosts.iter().all(is_host) {
        return Err(Problem::rejected(
            900_510,
            "Invalid virtual host",
            "An environment needs virtual hosts with valid names",
        ));
    }
    let mut distinct: Vec<String> = hosts.iter().map(|host| host.to_lowercase()).collect();
    distinct.sort_unstable();
    distinct.dedup();
    if distinct.len() < hosts.len() {
        return Err(Problem::rejected(900_509, "Duplicate virtual hosts", "A virtual host is given twice"));
    }
    Ok(())
}

fn taken(name: &str) -> Problem {
    Problem::rejected(900_507, "Environment already exists", format!("An environment with the name {name} exists"))
}

fn read_only() -> Problem {
    Problem::rejected(900_508, "Environment is read only", "The environment of this server cannot be changed")
}

fn create(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::object(call.request)?;
    check(&given)?;
    let name = text(&given, "name").to_owned();
    if name.eq_ignore_ascii_case(DEFAULT_ENVIRONMENT) {
        return Err(taken(&name));
    }
    let environment = Object::new(Kind::Environment, call.organization(), &name, given).keyed(name.to_lowercase());
    call.control.store.change(|tx| {
        tx.insert(&environment)?.ok_or_else(|| taken(&name))?;
        tx.audit(call.organization(), &call.caller.shown(), "create", Kind::Environment, &environment.id)
    })?;
    Ok(Response::json(201, &body(&environment)).with("Location", format!("/environments/{}", environment.id)))
}

fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    if call.id() == DEFAULT_ENVIRONMENT {
        return Err(read_only());
    }
    let found = tx.get(Kind::Environment, call.organization(), call.id())?;
    found.ok_or_else(|| Problem::new(404, 900_506, "Environment not found", format!("No environment {}", call.id())))
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    if call.id() == DEFAULT_ENVIRONMENT {
        return Ok(Response::json(200, &default_environment(call.control)));
    }
    let environment = call.control.store.read(|tx| of_call(tx, call))?;
    Ok(Response::json(200, &body(&environment)))
}

fn update(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::object(call.request)?;
    let environment = call.control.change_served(|tx| {
        let mut environment = of_call(tx, call)?;
        check(&given)?;
        if text(&given, "name") != environment.name {
            return Err(Problem::bad_request("The name of an environment cannot be changed"));
        }
        environment.document = given;
        tx.update(&mut environment)?;
        Ok(environment)
    })?;
    Ok(Response::json(200, &body(&environment)))
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.store.change(|tx| {
        let environment = of_call(tx, call)?;
        let deployed = tx.list(&Filter::new(Kind::Revision, call.organization()).states(&["DEPLOYED"]))?;
        let is_used = deployed.iter().flat_map(revisions::deployed).any(|one| text(&one, "name") == environment.name);
        if is_used {
            let text = "APIs are deployed to the environment";
            return Err(Problem::conflict(409, "Conflict", text));
        }
        tx.delete(&environment)?;
        tx.audit(call.organization(), &call.caller.shown(), "delete", Kind::Environment, &environment.id)
    })?;
    Ok(Response::empty(200))
}
