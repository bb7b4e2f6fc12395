//! The OpenAPI definition of an API: generated from its operations, replaced by the client, imported.

use serde_json::{Map, Value, json};

use super::api::{self, created, of_call};
use super::{archive, given, members};
use crate::http::Response;
use crate::problem::Problem;
use crate::route::{Call, Registration};
use crate::schema;
use crate::store::{File, Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/apis/{apiId}/swagger", get),
    ("PUT", "/apis/{apiId}/swagger", put),
    ("POST", "/apis/import-openapi", import),
    ("POST", "/apis/validate-openapi", validate),
    ("GET", "/api-products/{apiProductId}/swagger", get),
    ("POST", "/mcp-servers/validate-openapi", validate),
];

/// Where the definition of an API is kept, and its place in a project.
pub(crate) const FILE: &str = "Definitions/swagger.json";

/// The part of a form with the definition as text.
pub(super) const INLINE: &str = "inlineAPIDefinition";

/// The methods of OpenAPI.
pub(super) const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// The definition of an API that has none.
pub(super) fn generated(api: &Object) -> File {
    let empty = json!({
        "openapi": "3.0.1",
        "info": {"title": api.name, "version": api.text("version")},
        "paths": {},
    });
    File::new(FILE, "application/json", synchronized(empty, api).to_string())
}

/// Brings the definition in step with the operations of an API.
pub(super) fn refresh(tx: &Transaction<'_>, api: &Object) -> Result<(), Problem> {
    let Some(file) = tx.file(&api.id, FILE)? else { return Ok(()) };
    let Ok(definition) = serde_json::from_slice::<Value>(&file.content) else { return Ok(()) };
    let content = synchronized(definition, api).to_string();
    tx.put_file(&api.organization, &api.id, &File::new(FILE, "application/json", content))
}

/// A definition with exactly the operations of an API; what it says about an operation that stays is kept.
fn synchronized(mut definition: Value, api: &Object) -> Value {
    let is_swagger_2 = definition.get("swagger").is_some();
    let known = definition.get("paths").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut paths: Map<String, Value> = Map::new();
    for operation in api::operations(&api.document).iter().filter_map(Value::as_object) {
        let (target, verb) = (api::text(operation, "target"), api::text(operation, "verb").to_lowercase());
        if !METHODS.contains(&verb.as_str()) {
            continue;
        }
        let path = paths.entry(target).or_insert_with(|| {
            let mut kept = known.get(target).and_then(Value::as_object).cloned().unwrap_or_default();
            kept.retain(|name, _| !METHODS.contains(&name.as_str()));
            Value::Object(kept)
        });
        let before = known.get(target).and_then(|path| path.get(&verb)).cloned();
        let described = described(before, operation, target, is_swagger_2);
        if let Some(path) = path.as_object_mut() {
            path.insert(verb, described);
        }
    }
    definition["paths"] = Value::Object(paths);
    if let Some(info) = definition.get_mut("info").and_then(Value::as_object_mut) {
        info.insert("title".into(), api.name.as_str().into());
        info.insert("version".into(), api.text("version").into());
    }
    definition
}

/// An operation of a definition, with what the gateway needs to know of it.
fn described(before: Option<Value>, operation: &Map<String, Value>, target: &str, is_swagger_2: bool) -> Value {
    let parameters = || -> Vec<Value> {
        let names = target.split('{').skip(1).filter_map(|rest| rest.split('}').next());
        let parameter = |name: &str| match is_swagger_2 {
            true => json!({"name": name, "in": "path", "required": true, "type": "string"}),
            false => json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}),
        };
        names.map(parameter).collect()
    };
    let mut described =
        before.unwrap_or_else(|| json!({"parameters": parameters(), "responses": {"200": {"description": "OK"}}}));
    let Some(members) = described.as_object_mut() else { return described };
    members.insert("x-auth-type".into(), operation.get("authType").cloned().unwrap_or_default());
    members.insert("x-throttling-tier".into(), operation.get("throttlingPolicy").cloned().unwrap_or_default());
    let scopes = operation.get("scopes").cloned().unwrap_or_default();
    let has_scopes = scopes.as_array().is_some_and(|scopes| !scopes.is_empty());
    if has_scopes {
        members.insert("security".into(), json!([{"default": scopes}]));
    } else {
        members.shift_remove("security");
    }
    described
}

/// Operations, name and version that a definition describes.
pub(super) struct Described {
    pub(super) title: String,
    pub(super) version: String,
    pub(super) description: Option<String>,
    pub(super) operations: Vec<Value>,
    pub(super) file: File,
    /// The first absolute address among its servers.
    pub(super) server: Option<String>,
}

/// Reads an OpenAPI or Swagger definition, in JSON or YAML.
pub(super) fn read(call: &Call<'_>, bytes: &[u8]) -> Result<Described, Problem> {
    let definition = call.control.host.parse_yaml(bytes).map_err(|why| invalid(&why))?;
    if definition.get("openapi").is_none() && definition.get("swagger").is_none() {
        return Err(invalid("attribute openapi is missing"));
    }
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let paths = definition.get("paths").and_then(Value::as_object);
    let Some(paths) = paths.filter(|paths| !paths.is_empty()) else {
        return Err(invalid("attribute paths is missing"));
    };
    let title = text("/info/title").ok_or_else(|| invalid("attribute info.title is missing"))?;
    let version = text("/info/version").ok_or_else(|| invalid("attribute info.version is missing"))?;
    let mut operations = Vec::new();
    for (path, item) in paths {
        if !path.starts_with('/') {
            return Err(invalid(&format!("the path `{path}` does not begin with a slash")));
        }
        for (method, details) in item.as_object().into_iter().flatten() {
            if !METHODS.contains(&method.as_str()) {
                continue;
            }
            let member = |name: &str| details.get(name).filter(|value| value.is_string()).cloned();
            let mut given = Map::new();
            given.insert("target".into(), path.as_str().into());
            given.insert("verb".into(), method.to_uppercase().into());
            given.insert("authType".into(), member("x-auth-type").unwrap_or_default());
            given.insert("throttlingPolicy".into(), member("x-throttling-tier").unwrap_or_default());
            given.insert("scopes".into(), scopes(details));
            operations.push(Value::Object(members::operation(&given)));
        }
    }
    if operations.is_empty() {
        return Err(invalid("the paths have no operations"));
    }
    let servers = definition.get("servers").and_then(Value::as_array).into_iter().flatten();
    let mut urls = servers.filter_map(|server| server.get("url")?.as_str());
    let server = urls.find(|url| url.starts_with("http")).map(str::to_owned);
    let description = text("/info/description");
    let file = File::new(FILE, "application/json", definition.to_string());
    Ok(Described { title, version, description, operations, file, server })
}

/// The operations of a definition, each as it is among the known ones when it is there.
pub(super) fn overlaid(described: &Described, known: &[Value]) -> Value {
    let is = |left: &Value, right: &Value| ["target", "verb"].iter().all(|name| left.get(*name) == right.get(*name));
    let one = |operation: &Value| known.iter().find(|known| is(known, operation)).unwrap_or(operation).clone();
    described.operations.iter().map(one).collect()
}

/// The scopes that `security` of an operation names under `default`, which is how API Manager writes them.
fn scopes(operation: &Value) -> Value {
    let security = operation.get("security").and_then(Value::as_array).into_iter().flatten();
    let named: Vec<&Value> = security.filter_map(|entry| entry.get("default")?.as_array()).flatten().collect();
    json!(named)
}

fn invalid(why: &str) -> Problem {
    let mut problem =
        Problem::rejected(900_754, "Error while validating OpenAPI definition", "Invalid OpenAPI definition");
    problem.errors.push(("900754".to_owned(), why.to_owned()));
    problem
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let file = call.control.store.read(|tx| {
        let api = of_call(tx, call)?;
        tx.file(&api.id, FILE)
    })?;
    let file =
        file.ok_or_else(|| Problem::new(404, 900_330, "API definition not found", "API definition not found"))?;
    Ok(Response::of_type(200, "application/json", file.content))
}

/// Replaces the definition and with it the operations; what an operation that stays has besides is kept.
fn put(call: &Call<'_>) -> Result<Response, Problem> {
    let parts = archive::parts(call)?;
    let given = given::definition(call, &parts, "apiDefinition")?;
    let described = read(call, &given.content)?;
    let content = call.control.store.change(|tx| {
        let mut api = of_call(tx, call)?;
        let before = api.document.clone();
        let mut operations = described.operations.clone();
        for operation in operations.iter_mut().filter_map(Value::as_object_mut) {
            let same = |name: &str, known: &Value| known.get(name) == operation.get(name);
            let known = api::operations(&before).iter().find(|known| same("target", known) && same("verb", known));
            if let Some(known) = known {
                operation.insert("operationPolicies".into(), known["operationPolicies"].clone());
            }
        }
        api.set("operations", Value::Array(operations));
        super::products::check_used_operations(tx, &api, &before)?;
        tx.put_file(&api.organization, &api.id, &described.file)?;
        refresh(tx, &api)?;
        tx.update(&mut api)?;
        tx.file(&api.id, FILE)
    })?;
    Ok(Response::of_type(200, "application/json", content.map(|file| file.content).unwrap_or_default()))
}

/// Creates an API from a definition and the members in `additionalProperties`.
fn import(call: &Call<'_>) -> Result<Response, Problem> {
    let parts = archive::parts(call)?;
    let given = given::definition(call, &parts, INLINE)?;
    let described = read(call, &given.content)?;
    let mut body = given::additional_properties(&parts)?;
    schema::check(&body, members::MEMBERS, &[])?;
    let mut or = |name: &str, value: Value| given::set_default(&mut body, name, value);
    let plain: String = described.title.chars().filter(|letter| letter.is_ascii_alphanumeric()).collect();
    or("name", plain.as_str().into());
    or("version", described.version.as_str().into());
    or("context", format!("/{}", plain.to_lowercase()).into());
    if let Some(description) = &described.description {
        or("description", description.as_str().into());
    }
    if let Some(server) = &described.server {
        let endpoint = json!({"url": server});
        or("endpointConfig", json!({"endpoint_type": "http", "production_endpoints": endpoint}));
    }
    body.insert("operations".into(), Value::Array(described.operations));
    let api = call.control.store.change(|tx| {
        let api = api::create_in(tx, &call.caller, body, Some(described.file))?;
        refresh(tx, &api)?;
        Ok(api)
    })?;
    Ok(created(&api, "/apis"))
}

fn validate(call: &Call<'_>) -> Result<Response, Problem> {
    let parts = archive::parts(call)?;
    let read = given::definition(call, &parts, INLINE).and_then(|given| read(call, &given.content));
    let body = match read {
        Ok(described) => {
            let endpoints: Vec<&String> = described.server.iter().collect();
            json!({
                "isValid": true,
                "content": String::from_utf8_lossy(&described.file.content),
                "info": {
                    "name": described.title, "version": described.version, "context": null,
                    "description": described.description, "openAPIVersion": "3.0", "endpoints": endpoints,
                },
                "errors": [],
            })
        }
        // Without a definition there is nothing to validate.
        Err(problem) if problem.code == 400 => return Err(problem),
        Err(problem) => {
            json!({"isValid": false, "content": null, "info": null, "errors": given::errors_of(&problem)})
        }
    };
    Ok(Response::json(200, &body))
}
