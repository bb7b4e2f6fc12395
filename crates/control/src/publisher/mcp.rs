//! MCP servers: tools made from the operations of a definition, or of APIs. Revisions, lifecycle, documents and what else they
//! share with APIs are in the files of those.

use serde_json::{Map, Value, json};

use super::archive::{Purpose, parts};
use super::import::Project;
use super::{api, definition, given, members};
use crate::http::Response;
use crate::problem::Problem;
use crate::random;
use crate::route::{Call, Registration};
use crate::schema;
use crate::store::{Filter, Kind, Object, Term, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/mcp-servers", list),
    ("POST", "/mcp-servers/generate-from-openapi", from_definition),
    ("POST", "/mcp-servers/generate-from-api", from_apis),
    ("GET", "/mcp-servers/{mcpServerId}", get),
    ("PUT", "/mcp-servers/{mcpServerId}", update),
    ("DELETE", "/mcp-servers/{mcpServerId}", delete),
    ("POST", "/mcp-servers/copy-mcp-server", copy),
    ("GET", "/mcp-servers/{mcpServerId}/backends", backends),
    ("GET", "/mcp-servers/{mcpServerId}/backends/{backendId}", backend),
    ("PUT", "/mcp-servers/{mcpServerId}/backends/{backendId}", update_backend),
    ("GET", "/apis/{apiId}/mcp-servers-usage", usage),
];

/// The names the descriptor of an MCP server may have.
pub(super) const DESCRIPTORS: [&str; 3] = ["mcp_server.yaml", "mcp_server.yml", "mcp_server.json"];

/// The member of a server that keeps its backends, which are a resource of their own.
pub(crate) const BACKENDS: &str = "backends";

const DIRECT: &str = "DIRECT_BACKEND";
const EXISTING: &str = "EXISTING_API";
pub(super) const PROXY: &str = "SERVER_PROXY";

/// A server by the id of a path.
fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    let found = tx.get(Kind::Api, call.organization(), call.id())?.filter(|api| api.text("type") == "MCP");
    match found {
        Some(server) => api::by_id(tx, &call.caller, &server.id, "MCP Server"),
        None => {
            let text = format!("Requested MCP Server with id '{}' not found", call.id());
            Err(Problem::new(404, 904_005, "MCP Server Not Found", text))
        }
    }
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let query = call.query.get("query").unwrap_or_default();
    let filter = Filter::new(Kind::Api, call.organization()).member("type", &["MCP"]);
    api::listed(call, "/mcp-servers", filter.query(&Term::parse(query)).sorted(api::order(call)))
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| match tx.get(Kind::Revision, call.organization(), call.id())? {
        Some(revision) => Ok(api::body(&super::revisions::api_of(&revision))),
        None => Ok(api::body(&of_call(tx, call)?)),
    })?;
    Ok(Response::json(200, &body))
}

/// The tools of a body.
pub(super) fn tools(document: &mut Map<String, Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    let list = document.get_mut("operations").and_then(Value::as_array_mut).into_iter().flatten();
    list.filter_map(Value::as_object_mut)
}

pub(super) fn created(server: &Object) -> Response {
    api::created(server, "/mcp-servers")
}

pub(super) fn insert(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    mut given: Map<String, Value>,
    kind: &str,
) -> Result<Object, Problem> {
    schema::check(&given, members::MEMBERS, &["name", "context", "version"])?;
    given.insert("type".into(), "MCP".into());
    given.insert("subtypeConfiguration".into(), json!({"subtype": kind}));
    for tool in tools(&mut given) {
        tool.insert("feature".into(), "TOOL".into());
    }
    api::create_in(tx, &call.caller, given, None)
}

/// A server whose tools call a backend that a definition describes.
fn from_definition(call: &Call<'_>) -> Result<Response, Problem> {
    let parts = parts(call)?;
    let described = definition::read(call, &given::definition(call, &parts, definition::INLINE)?.content)?;
    let mut given = given::additional_properties(&parts)?;
    let backend = random::uuid();
    let is_given = given.get("operations").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if !is_given {
        given.insert("operations".into(), described.operations.iter().map(tool).collect());
    }
    for tool in tools(&mut given) {
        let mapping = tool.entry("backendOperationMapping").or_insert_with(|| json!({}));
        if !mapping.is_object() {
            *mapping = json!({});
        }
        mapping["backendId"] = backend.as_str().into();
        let operation = mapping.get("backendOperation").cloned().unwrap_or_default();
        let known = described
            .operations
            .iter()
            .any(|known| ["target", "verb"].iter().all(|name| known.get(*name) == operation.get(*name)));
        if !known {
            return Err(Problem::bad_request(format!("The definition has no operation {operation}")));
        }
    }
    let config = given.shift_remove("endpointConfig").filter(Value::is_object);
    let from_servers = || {
        let server = described.server.as_ref()?;
        Some(json!({
            "endpoint_type": "http", "production_endpoints": {"url": server}, "sandbox_endpoints": {"url": server},
        }))
    };
    let config = config.or_else(from_servers).ok_or_else(|| {
        Problem::bad_request("The backend has no address: give `endpointConfig`, or a definition with a server")
    })?;
    let definition = String::from_utf8_lossy(&described.file.content).into_owned();
    let server = call.control.store.change(|tx| {
        let mut server = insert(tx, call, given, DIRECT)?;
        let name = format!("{}-backend", server.name);
        let backend = json!({"id": backend, "name": name, "endpointConfig": config, "definition": definition});
        server.set(BACKENDS, json!([backend]));
        tx.update(&mut server)?;
        Ok(server)
    })?;
    Ok(created(&server))
}

/// The tool of an operation: its name is the method and the words of the path.
fn tool(operation: &Value) -> Value {
    let text = |name: &str| operation.get(name).and_then(Value::as_str).unwrap_or_default();
    let words = text("target").split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name: Vec<String> = std::iter::once(text("verb").to_lowercase()).chain(words.map(str::to_owned)).collect();
    json!({
        "target": name.join("_"), "feature": "TOOL", "authType": operation.get("authType"),
        "scopes": operation.get("scopes"), "throttlingPolicy": operation.get("throttlingPolicy"),
        "backendOperationMapping": {"backendOperation": {"target": text("target"), "verb": text("verb")}},
    })
}

/// A server whose tools call operations of APIs.
fn from_apis(call: &Call<'_>) -> Result<Response, Problem> {
    let mut given = schema::object(call.request)?;
    let server = call.control.store.change(|tx| {
        resolve_apis(tx, call, &mut given)?;
        if tools(&mut given).next().is_none() {
            return Err(Problem::invalid("operations", "an MCP server needs at least one tool"));
        }
        insert(tx, call, given, EXISTING)
    })?;
    Ok(created(&server))
}

/// Completes what the tools say of the APIs that they call, and checks that the APIs have the operations.
fn resolve_apis(tx: &Transaction<'_>, call: &Call<'_>, given: &mut Map<String, Value>) -> Result<(), Problem> {
    for tool in tools(given) {
        let name = api::text(tool, "target").to_owned();
        let missing = || Problem::bad_request(format!("The tool `{name}` needs `apiOperationMapping`"));
        let mapping = tool.get_mut("apiOperationMapping").and_then(Value::as_object_mut).ok_or_else(missing)?;
        let source = api::by_id(tx, &call.caller, api::text(mapping, "apiId"), "API")?;
        let operation = mapping.get("backendOperation").cloned().unwrap_or_default();
        let has = api::operations(&source.document)
            .iter()
            .any(|known| known["target"] == operation["target"] && known["verb"] == operation["verb"]);
        if !has {
            return Err(Problem::bad_request(format!("The API {} has no operation {operation}", source.name)));
        }
        mapping.insert("apiName".into(), source.name.as_str().into());
        mapping.insert("apiVersion".into(), source.text("version").into());
        mapping.insert("apiContext".into(), super::revisions::versioned_context(&source).into());
    }
    Ok(())
}

fn update(call: &Call<'_>) -> Result<Response, Problem> {
    let mut given = schema::body(call.request, members::MEMBERS, &[])?;
    given.shift_remove("type");
    let server = call.control.store.change(|tx| {
        let server = of_call(tx, call)?;
        if server.document.get("subtypeConfiguration").is_some_and(|config| config["subtype"] == EXISTING) {
            resolve_apis(tx, call, &mut given)?;
        }
        for tool in tools(&mut given) {
            tool.insert("feature".into(), "TOOL".into());
        }
        api::update_in(tx, &call.caller, server, given)
    })?;
    Ok(Response::json(200, &api::body(&server)))
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.change_served(|tx| api::delete_in(tx, &call.caller, &of_call(tx, call)?))?;
    Ok(Response::empty(200))
}

fn copy(call: &Call<'_>) -> Result<Response, Problem> {
    let (id, version) = (call.needed("mcpServerId")?, call.needed("newVersion")?);
    let is_default = call.query.flag("defaultVersion");
    let server = call.control.store.change(|tx| {
        let source = api::by_id(tx, &call.caller, id, "MCP Server")?;
        api::copy_in(tx, &call.caller, &source, version, is_default)
    })?;
    Ok(created(&server))
}

fn backends_of(server: &Object) -> Vec<Value> {
    server.document.get(BACKENDS).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// A backend as responses have it: secrets are left out.
fn shown(mut backend: Value) -> Value {
    if let Some(config) = backend.get_mut("endpointConfig") {
        api::without_secrets(config);
    }
    backend
}

fn backends(call: &Call<'_>) -> Result<Response, Problem> {
    let server = call.control.store.read(|tx| of_call(tx, call))?;
    let list: Vec<Value> = backends_of(&server).into_iter().map(shown).collect();
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

fn backend(call: &Call<'_>) -> Result<Response, Problem> {
    let server = call.control.store.read(|tx| of_call(tx, call))?;
    let id = call.parameter("backendId");
    let found = backends_of(&server).into_iter().find(|backend| backend["id"] == id);
    Ok(Response::json(200, &shown(found.ok_or_else(|| Problem::not_found("Backend", id))?)))
}

fn update_backend(call: &Call<'_>) -> Result<Response, Problem> {
    const MEMBERS: schema::Members = &[
        ("id", schema::Is::Text),
        ("name", schema::Is::Text),
        ("endpointConfig", schema::Is::Map),
        ("definition", schema::Is::Text),
    ];
    let given = schema::body(call.request, MEMBERS, &[])?;
    let id = call.parameter("backendId");
    let body = call.control.store.change(|tx| {
        let mut server = of_call(tx, call)?;
        let mut backends = backends_of(&server);
        let found = backends.iter_mut().find(|backend| backend["id"] == id);
        let backend = found.ok_or_else(|| Problem::not_found("Backend", id))?;
        for (name, value) in given.iter().filter(|(name, value)| *name != "id" && !value.is_null()) {
            let before = backend[name.as_str()].take();
            let mut value = value.clone();
            api::keep_secrets(&mut value, &before);
            backend[name.as_str()] = value;
        }
        let body = shown(backend.clone());
        server.set(BACKENDS, backends);
        tx.update(&mut server)?;
        Ok(body)
    })?;
    Ok(Response::json(200, &body))
}

/// `backends.yaml` of the project of a server; none when its tools call APIs.
pub(super) fn backends_file(server: &Object, purpose: Purpose) -> Option<Value> {
    let backends = backends_of(server);
    let list: Vec<Value> = match purpose {
        Purpose::Serve => backends,
        Purpose::Export => backends.into_iter().map(shown).collect(),
    };
    (!list.is_empty()).then(|| json!({"type": "backends", "version": "v4.7.0", "data": list}))
}

/// The ids of APIs are those of the server that exported; here they are found by name and version.
pub(super) fn prepare_import(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    data: &mut Map<String, Value>,
) -> Result<(), Problem> {
    data.insert("type".into(), "MCP".into());
    for tool in tools(data) {
        let Some(mapping) = tool.get_mut("apiOperationMapping").and_then(Value::as_object_mut) else { continue };
        let (name, version) = (api::text(mapping, "apiName").to_owned(), api::text(mapping, "apiVersion").to_owned());
        let same = tx.list(&Filter::new(Kind::Api, call.organization()).named(&name))?;
        let found = same.into_iter().find(|api| api.text("version") == version && api.text("type") != "MCP");
        let found = found.ok_or_else(|| {
            let text = format!("The API {name} {version}, which a tool calls, does not exist");
            Problem::new(404, 900_308, "API Not Found", text)
        })?;
        mapping.insert("apiId".into(), found.id.into());
    }
    Ok(())
}

/// Takes the backends of an imported project. An empty secret keeps the one that is known.
pub(super) fn import_backends(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    server: &mut Object,
    project: &Project,
) -> Result<(), Problem> {
    let Some(data) = project.data(call, &["backends.yaml", "backends.yml", "backends.json"])? else { return Ok(()) };
    let list = data.get("list").unwrap_or(&data).as_array().cloned();
    let mut list = list.ok_or_else(|| Problem::bad_request("backends.yaml: `data` must be a list"))?;
    let known = backends_of(server);
    for backend in &mut list {
        if let Some(before) = known.iter().find(|known| known["id"] == backend["id"]) {
            api::keep_secrets(backend, before);
        }
    }
    server.set(BACKENDS, list);
    tx.update(server).map(|_| ())
}

/// The servers with tools that call an API.
pub(super) fn servers_of(tx: &Transaction<'_>, api: &Object) -> Result<Vec<Object>, Problem> {
    let servers = tx.list(&Filter::new(Kind::Api, &api.organization).member("type", &["MCP"]))?;
    let calls = |server: &Object| {
        api::operations(&server.document).iter().any(|tool| tool["apiOperationMapping"]["apiId"] == api.id.as_str())
    };
    Ok(servers.into_iter().filter(calls).collect())
}

fn usage(call: &Call<'_>) -> Result<Response, Problem> {
    let servers = call.control.store.read(|tx| servers_of(tx, &api::of_call(tx, call)?))?;
    let list: Vec<Value> = servers.iter().map(api::info).collect();
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}
