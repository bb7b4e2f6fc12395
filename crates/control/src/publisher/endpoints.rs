//! Endpoints of an API that are kept besides `endpointConfig`, and the check of an address.

use serde_json::{Map, Value, json};

use super::api::{self, of_call};
use crate::host::{FetchError, FetchRequest};
use crate::http::Response;
use crate::page::Page;
use crate::problem::Problem;
use crate::random;
use crate::route::{Call, Registration};
use crate::schema::{self, Is, Members};
use crate::store::Object;

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/apis/{apiId}/endpoints", list),
    ("POST", "/apis/{apiId}/endpoints", create),
    ("GET", "/apis/{apiId}/endpoints/{endpointId}", get),
    ("PUT", "/apis/{apiId}/endpoints/{endpointId}", update),
    ("DELETE", "/apis/{apiId}/endpoints/{endpointId}", delete),
    ("POST", "/apis/validate-endpoint", validate),
    ("POST", "/mcp-servers/validate-endpoint", validate),
];

/// The member of an API that keeps its endpoints, which are a resource of their own.
pub(crate) const ENDPOINTS: &str = "endpoints";

/// What the endpoints of `endpointConfig` are called, by stage.
const DEFAULTS: [(&str, &str, &str); 2] = [
    ("default_production_endpoint", "PRODUCTION", "production_endpoints"),
    ("default_sandbox_endpoint", "SANDBOX", "sandbox_endpoints"),
];

/// The members that name the endpoints that are used, with the member of `endpointConfig` that they stand for.
const PRIMARY: [(&str, &str, &str); 2] = [
    ("primaryProductionEndpointId", "production_endpoints", "production"),
    ("primarySandboxEndpointId", "sandbox_endpoints", "sandbox"),
];

/// Endpoints of one API.
const ENDPOINTS_MAX: usize = 100;

const MEMBERS: Members = &[
    ("id", Is::Text),
    ("name", Is::Short(255)),
    ("deploymentStage", Is::OneOf(&["PRODUCTION", "SANDBOX"])),
    ("endpointConfig", Is::Map),
    ("apiDefinition", Is::Text),
];

fn kept(api: &Object) -> Vec<Value> {
    api.document.get(ENDPOINTS).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// The endpoints of `endpointConfig`.
fn defaults(api: &Object) -> Vec<Value> {
    let Some(config) = api.document.get("endpointConfig").and_then(Value::as_object) else { return Vec::new() };
    let present = DEFAULTS.iter().filter(|(_, _, member)| config.get(*member).is_some_and(|value| !value.is_null()));
    let one = |(id, stage, member): &(&str, &str, &str)| {
        let mut own = Map::new();
        for name in ["endpoint_type", member, "endpoint_security"] {
            own.extend(config.get(name).map(|value| (name.to_owned(), value.clone())));
        }
        let name = if *stage == "PRODUCTION" { "Default Production Endpoint" } else { "Default Sandbox Endpoint" };
        json!({"id": id, "name": name, "deploymentStage": stage, "endpointConfig": own})
    };
    present.map(one).collect()
}

fn shown(mut endpoint: Value) -> Value {
    if let Some(config) = endpoint.get_mut("endpointConfig") {
        api::without_secrets(config);
    }
    endpoint
}

fn not_found(id: &str) -> Problem {
    let text = format!("Requested API endpoint with id '{id}' not found.");
    Problem::new(404, 902_040, "Cannot find the required API endpoint details.", text)
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let api = call.control.store.read(|tx| of_call(tx, call))?;
    let all = defaults(&api).into_iter().chain(kept(&api)).map(shown).collect();
    Ok(Response::json(200, &Page::of(&call.query).cut(&format!("/apis/{}/endpoints", api.id), all)))
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let api = call.control.store.read(|tx| of_call(tx, call))?;
    let id = call.parameter("endpointId");
    let found = defaults(&api).into_iter().chain(kept(&api)).find(|endpoint| endpoint["id"] == id);
    Ok(Response::json(200, &shown(found.ok_or_else(|| not_found(id))?)))
}

/// The endpoint of a request.
fn given(call: &Call<'_>) -> Result<Map<String, Value>, Problem> {
    let mut given = schema::body(call.request, MEMBERS, &["name"])?;
    let config = given.get("endpointConfig").filter(|config| config.as_object().is_some_and(|map| !map.is_empty()));
    let Some(config) = config else {
        let text = "Mandatory endpoint config is either missing or empty";
        return Err(Problem::rejected(902_012, "Endpoint config value(s) is(are) not valid", text));
    };
    api::check_endpoint_urls(Some(config))?;
    if given.get("deploymentStage").is_none_or(Value::is_null) {
        given.insert("deploymentStage".into(), "PRODUCTION".into());
    }
    Ok(given)
}

fn named(endpoints: &[Value], name: &str, except: &str) -> bool {
    endpoints.iter().any(|known| known["name"] == name && known["id"] != except)
}

fn already_exists(name: &str) -> Problem {
    Problem::conflict(900_451, "Endpoint already exists", format!("An endpoint with the name '{name}' exists"))
}

fn create(call: &Call<'_>) -> Result<Response, Problem> {
    let mut given = given(call)?;
    let id = random::uuid();
    given.insert("id".into(), id.as_str().into());
    let name = api::text(&given, "name").to_owned();
    let api_id = call.control.store.change(|tx| {
        let mut api = of_call(tx, call)?;
        let mut endpoints = kept(&api);
        if named(&endpoints, &name, "") {
            return Err(already_exists(&name));
        }
        if endpoints.len() >= ENDPOINTS_MAX {
            return Err(Problem::bad_request(format!("An API must not have more than {ENDPOINTS_MAX} endpoints")));
        }
        endpoints.push(Value::Object(given.clone()));
        api.set(ENDPOINTS, endpoints);
        tx.update(&mut api)?;
        Ok(api.id)
    })?;
    let location = format!("/apis/{api_id}/endpoints/{id}");
    Ok(Response::json(201, &shown(Value::Object(given))).with("Location", location))
}

/// The endpoints of `endpointConfig` change with the API.
fn check_changeable(id: &str) -> Result<(), Problem> {
    match DEFAULTS.iter().any(|(known, _, _)| *known == id) {
        true => {
            let text = format!("API endpoint with UUID {id} is read only");
            Err(Problem::rejected(902_042, "API endpoint is read only", text))
        }
        false => Ok(()),
    }
}

fn update(call: &Call<'_>) -> Result<Response, Problem> {
    let mut given = given(call)?;
    let id = call.parameter("endpointId");
    check_changeable(id)?;
    given.insert("id".into(), id.into());
    let body = call.control.store.change(|tx| {
        let mut api = of_call(tx, call)?;
        let mut endpoints = kept(&api);
        if named(&endpoints, api::text(&given, "name"), id) {
            return Err(already_exists(api::text(&given, "name")));
        }
        let found = endpoints.iter_mut().find(|endpoint| endpoint["id"] == id).ok_or_else(|| not_found(id))?;
        let mut new = Value::Object(given.clone());
        api::keep_secrets(&mut new, found);
        found.clone_from(&new);
        api.set(ENDPOINTS, endpoints);
        tx.update(&mut api)?;
        Ok(new)
    })?;
    Ok(Response::json(200, &shown(body)))
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    let id = call.parameter("endpointId");
    check_changeable(id)?;
    call.control.store.change(|tx| {
        let mut api = of_call(tx, call)?;
        if PRIMARY.iter().any(|(member, _, _)| api.text(member) == id) {
            let text =
                format!("Failed to delete API endpoint with UUID '{id}' since it is defined as a primary endpoint.");
            let message = "Failed to delete API endpoint since endpoint is defined as a primary endpoint";
            return Err(Problem::rejected(902_048, message, text));
        }
        let mut endpoints = kept(&api);
        let before = endpoints.len();
        endpoints.retain(|endpoint| endpoint["id"] != id);
        if endpoints.len() == before {
            return Err(not_found(id));
        }
        api.set(ENDPOINTS, endpoints);
        tx.update(&mut api).map(|_| ())
    })?;
    Ok(Response::empty(200))
}

/// Puts the endpoints that an API uses into `endpointConfig`, for the gateway.
pub(super) fn resolve_primary(api: &Object, data: &mut Map<String, Value>) {
    let endpoints = kept(api);
    for (member, kind, stage) in PRIMARY {
        let id = data.shift_remove(member);
        let id = id.as_ref().and_then(Value::as_str).unwrap_or_default();
        let Some(chosen) = endpoints.iter().find(|endpoint| endpoint["id"] == id) else { continue };
        let config = data.entry("endpointConfig").or_insert_with(|| json!({}));
        if !config.is_object() {
            *config = json!({});
        }
        config["endpoint_type"] = chosen["endpointConfig"]["endpoint_type"].clone();
        if let Some(address) = chosen["endpointConfig"].get(kind) {
            config[kind] = address.clone();
        }
        if let Some(security) = chosen["endpointConfig"]["endpoint_security"].get(stage) {
            config["endpoint_security"][stage] = security.clone();
        }
    }
}

/// The endpoints of an API as a file of its project.
pub(super) fn file(api: &Object) -> Option<Value> {
    let list: Vec<Value> = kept(api).into_iter().map(shown).collect();
    (!list.is_empty()).then(|| json!({"type": "endpoints", "version": "v4.7.0", "data": list}))
}

/// Takes the endpoints of an imported project. An empty secret keeps the one that is known.
pub(super) fn import(api: &mut Object, data: Value) -> Result<(), Problem> {
    let list = data.get("list").cloned().unwrap_or(data);
    let Value::Array(mut list) = list else {
        let text = "Error while reading API endpoints from the endpoints file";
        return Err(Problem::rejected(902_045, text, "endpoints.yaml: `data` must be a list"));
    };
    let known = kept(api);
    for endpoint in &mut list {
        if let Some(before) = known.iter().find(|known| known["id"] == endpoint["id"]) {
            api::keep_secrets(endpoint, before);
        }
    }
    api.set(ENDPOINTS, list);
    Ok(())
}

/// Whether an address responds. A status is a response, whichever it is.
fn validate(call: &Call<'_>) -> Result<Response, Problem> {
    let url = call.needed("endpointUrl")?;
    let request =
        FetchRequest { method: "HEAD", url, headers: Vec::new(), body: bytes::Bytes::new(), bytes_max: 64 << 10 };
    let body = match call.control.host.fetch(&request) {
        Ok(found) => json!({"statusCode": found.status, "statusMessage": reason(found.status), "error": null}),
        Err(FetchError::TooLarge) => json!({"statusCode": 200, "statusMessage": "OK", "error": null}),
        Err(error) => json!({"statusCode": 0, "statusMessage": "", "error": error.to_string()}),
    };
    Ok(Response::json(200, &body))
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "",
    }
}
