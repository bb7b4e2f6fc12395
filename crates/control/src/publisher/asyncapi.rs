//! APIs of events: the AsyncAPI definition of WebSocket, WebSub and server-sent events APIs, and their topics.

use serde_json::{Map, Value, json};

use super::api::{self, created, of_call};
use super::{archive, given, members};
use crate::http::Response;
use crate::problem::Problem;
use crate::route::{Call, Registration};
use crate::schema::{self, Is, Members};
use crate::store::{File, Kind, Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("POST", "/apis/import-asyncapi", import),
    ("POST", "/apis/validate-asyncapi", validate),
    ("GET", "/apis/{apiId}/asyncapi", get),
    ("PUT", "/apis/{apiId}/asyncapi", put),
    ("PUT", "/apis/{apiId}/topics", set_topics),
];

/// Where the definition is kept.
pub(crate) const FILE: &str = "Definitions/asyncapi.json";

/// Where projects have it.
pub(super) const NAMES: [&str; 3] = ["Definitions/asyncapi.yaml", "Definitions/asyncapi.yml", FILE];

/// Types of APIs that such a definition describes.
pub(super) const TYPES: [&str; 5] = ["WS", "WEBSUB", "SSE", "WEBHOOK", "ASYNC"];

const PUBLISH: &str = "PUBLISH";
const SUBSCRIBE: &str = "SUBSCRIBE";

/// Whether an API is one of events.
pub(super) fn is_async(api: &Object) -> bool {
    TYPES.contains(&api.text("type"))
}

/// What a definition says.
struct Described {
    title: String,
    version: String,
    description: Option<String>,
    /// The version of AsyncAPI.
    specification: String,
    /// The protocol of the first server.
    protocol: Option<String>,
    endpoints: Vec<String>,
    operations: Vec<Value>,
    definition: Value,
}

fn invalid(why: &str) -> Problem {
    let text = format!("Invalid AsyncAPI definition found. {why}");
    let mut problem =
        Problem::rejected(903_231, "Error occurred while importing the API. Invalid AsyncAPI definition found.", text);
    problem.errors.push(("903231".to_owned(), why.to_owned()));
    problem
}

fn operation(target: &str, verb: &str) -> Value {
    let mut given = Map::new();
    given.insert("target".into(), target.into());
    given.insert("verb".into(), verb.into());
    Value::Object(members::operation(&given))
}

impl Described {
    fn read(call: &Call<'_>, content: &[u8]) -> Result<Described, Problem> {
        let definition = call.control.host.parse_yaml(content).map_err(|why| invalid(&why))?;
        let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let specification = text("/asyncapi").ok_or_else(|| invalid("attribute asyncapi is missing"))?;
        if !specification.starts_with("2.") && !specification.starts_with("3.") {
            return Err(invalid(&format!("AsyncAPI {specification} is not supported")));
        }
        let title = text("/info/title").ok_or_else(|| invalid("attribute info.title is missing"))?;
        let version = text("/info/version").ok_or_else(|| invalid("attribute info.version is missing"))?;
        let is_version_3 = specification.starts_with('3');
        if definition.get("channels").and_then(Value::as_object).is_none() {
            return Err(invalid("attribute channels is missing"));
        }
        let servers = definition.get("servers").and_then(Value::as_object);
        let servers: Vec<&Value> = servers.into_iter().flat_map(Map::values).collect();
        let protocol = servers.iter().find_map(|server| server.get("protocol")?.as_str()).map(str::to_owned);
        let endpoints = servers.iter().filter_map(|server| address(server)).collect();
        let operations = if is_version_3 { operations_of_3(&definition) } else { operations_of_2(&definition) };
        let description = text("/info/description");
        Ok(Described { title, version, description, specification, protocol, endpoints, operations, definition })
    }

    fn file(&self) -> File {
        File::new(FILE, "application/json", self.definition.to_string())
    }

    /// The type of API that the protocol stands for.
    fn kind(&self) -> Result<&'static str, Problem> {
        match self.protocol.as_deref().map(str::to_ascii_lowercase).as_deref() {
            Some("ws" | "wss") => Ok("WS"),
            Some("sse") => Ok("SSE"),
            Some("websub") => Ok("WEBSUB"),
            Some(_) => {
                let text = "Unsupported protocol specified in Async API Definition";
                Err(Problem::rejected(900_912, text, text))
            }
            None => {
                let text = "Missing protocol in Async API Definition";
                Err(Problem::rejected(900_911, text, text))
            }
        }
    }

    /// The operations, each as it is among the known ones when it is there.
    fn overlaid(&self, known: &[Value]) -> Value {
        let is =
            |left: &Value, right: &Value| ["target", "verb"].iter().all(|name| left.get(*name) == right.get(*name));
        let one = |operation: &Value| known.iter().find(|known| is(known, operation)).unwrap_or(operation).clone();
        self.operations.iter().map(one).collect()
    }
}

/// The address of a server: `url` of version 2, `host` and `pathname` of version 3.
fn address(server: &Value) -> Option<String> {
    let text = |name: &str| server.get(name).and_then(Value::as_str);
    let protocol = text("protocol").unwrap_or("ws");
    let address = match text("url") {
        Some(url) => url.to_owned(),
        None => format!("{}{}", text("host")?, text("pathname").unwrap_or_default()),
    };
    Some(if address.contains("://") { address } else { format!("{protocol}://{address}") })
}

fn operations_of_2(definition: &Value) -> Vec<Value> {
    let channels = definition.get("channels").and_then(Value::as_object).into_iter().flatten();
    let of_channel = |(name, channel): (&String, &Value)| {
        let verbs = [("publish", PUBLISH), ("subscribe", SUBSCRIBE)];
        let declared = verbs.into_iter().filter(|(member, _)| channel.get(member).is_some());
        declared.map(|(_, verb)| operation(name, verb)).collect::<Vec<_>>()
    };
    channels.flat_map(of_channel).collect()
}

fn operations_of_3(definition: &Value) -> Vec<Value> {
    let declared = definition.get("operations").and_then(Value::as_object).into_iter().flatten();
    let one = |(_, declared): (&String, &Value)| {
        let verb = match declared.get("action")?.as_str()? {
            "receive" => PUBLISH,
            "send" => SUBSCRIBE,
            _ => return None,
        };
        let reference = declared.pointer("/channel/$ref")?.as_str()?.strip_prefix('#')?;
        let channel = definition.pointer(reference)?;
        Some(operation(channel.get("address")?.as_str()?, verb))
    };
    declared.filter_map(one).collect()
}

fn validate(call: &Call<'_>) -> Result<Response, Problem> {
    let parts = archive::parts(call)?;
    let read =
        given::definition(call, &parts, "inlineAPIDefinition").and_then(|given| Described::read(call, &given.content));
    let body = match read {
        Ok(described) => {
            let protocols: Vec<&String> = described.protocol.iter().collect();
            let content = call.query.flag("returnContent").then(|| described.definition.to_string());
            json!({
                "isValid": true, "content": content, "errors": [],
                "info": {
                    "name": described.title, "version": described.version, "context": null,
                    "description": described.description, "asyncAPIVersion": described.specification,
                    "protocol": described.protocol, "endpoints": described.endpoints, "gatewayVendor": null,
                    "asyncTransportProtocols": protocols,
                },
            })
        }
        Err(problem) if problem.code == 400 => return Err(problem),
        Err(problem) => {
            json!({"isValid": false, "content": null, "info": null, "errors": given::errors_of(&problem)})
        }
    };
    Ok(Response::json(200, &body))
}

fn import(call: &Call<'_>) -> Result<Response, Problem> {
    let parts = archive::parts(call)?;
    let given = given::definition(call, &parts, "inlineAPIDefinition")?;
    let described = Described::read(call, &given.content)?;
    let mut body = given::additional_properties(&parts)?;
    schema::check(&body, members::MEMBERS, &[])?;
    match api::text(&body, "type") {
        "" | "HTTP" => drop(body.insert("type".into(), described.kind()?.into())),
        kind if TYPES.contains(&kind) => {}
        _ => {
            let text = "API Creation is supported only for WebSocket, WebSub and SSE APIs";
            return Err(Problem::rejected(900_915, text, text));
        }
    }
    let plain: String = described.title.chars().filter(char::is_ascii_alphanumeric).collect();
    given::set_default(&mut body, "name", plain.as_str().into());
    given::set_default(&mut body, "version", described.version.as_str().into());
    given::set_default(&mut body, "context", format!("/{}", plain.to_lowercase()).into());
    if let Some(description) = &described.description {
        given::set_default(&mut body, "description", description.as_str().into());
    }
    if let Some(address) = described.endpoints.first().filter(|_| api::text(&body, "type") == "WS") {
        let endpoint = json!({"url": address});
        given::set_default(
            &mut body,
            "endpointConfig",
            json!({"endpoint_type": "ws", "production_endpoints": endpoint}),
        );
    }
    body.insert("operations".into(), described.overlaid(api::operations(&body)));
    let api = call.control.store.change(|tx| {
        let api = api::create_in(tx, &call.caller, body, Some(described.file()))?;
        refresh(tx, &api)?;
        Ok(api)
    })?;
    Ok(created(&api, "/apis"))
}

/// The operations and the definition of a project that is imported.
pub(super) fn imported(call: &Call<'_>, content: &[u8], known: &[Value]) -> Result<(Value, File), Problem> {
    let described = Described::read(call, content)?;
    Ok((described.overlaid(known), described.file()))
}

/// The type of API that a definition describes.
pub(super) fn kind_of(call: &Call<'_>, content: &[u8]) -> Result<&'static str, Problem> {
    Described::read(call, content)?.kind()
}

/// The definition of an API that has none.
pub(super) fn generated(api: &Object) -> File {
    let protocol = match api.text("type") {
        "SSE" => "sse",
        "WEBSUB" | "WEBHOOK" => "websub",
        _ => "ws",
    };
    let mut servers = Map::new();
    let config = api.document.get("endpointConfig");
    for (member, name) in [("production_endpoints", "production"), ("sandbox_endpoints", "sandbox")] {
        let url = config.and_then(|config| config.get(member)?.get("url")?.as_str());
        if let Some(url) = url {
            servers.insert(name.into(), json!({"url": url, "protocol": protocol}));
        }
    }
    let empty = json!({
        "asyncapi": "2.0.0", "info": {"title": api.name, "version": api.text("version")},
        "servers": servers, "channels": {},
    });
    File::new(FILE, "application/json", synchronized(empty, api).to_string())
}

/// A definition of version 2 with exactly the topics of an API. One of version 3 stays as it is.
fn synchronized(mut definition: Value, api: &Object) -> Value {
    if definition.get("asyncapi").and_then(Value::as_str).is_none_or(|version| !version.starts_with("2.")) {
        return definition;
    }
    let known = definition.get("channels").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut channels: Map<String, Value> = Map::new();
    for operation in api::operations(&api.document).iter().filter_map(Value::as_object) {
        let target = api::text(operation, "target");
        let member = match api::text(operation, "verb") {
            PUBLISH => "publish",
            SUBSCRIBE => "subscribe",
            _ => continue,
        };
        let channel = channels.entry(target).or_insert_with(|| {
            let mut kept = known.get(target).and_then(Value::as_object).cloned().unwrap_or_default();
            kept.retain(|name, _| !matches!(name.as_str(), "publish" | "subscribe"));
            Value::Object(kept)
        });
        let before = known.get(target).and_then(|channel| channel.get(member)).filter(|before| before.is_object());
        let mut described = before.cloned().unwrap_or_else(|| json!({}));
        described["x-auth-type"] = operation.get("authType").cloned().unwrap_or_default();
        described["x-scopes"] = operation.get("scopes").cloned().unwrap_or_else(|| json!([]));
        if let Some(mapping) = operation.get("uriMapping").filter(|mapping| mapping.is_string()) {
            described["x-uri-mapping"] = mapping.clone();
        }
        channel[member] = described;
    }
    definition["channels"] = Value::Object(channels);
    if let Some(info) = definition.get_mut("info").and_then(Value::as_object_mut) {
        info.insert("title".into(), api.name.as_str().into());
        info.insert("version".into(), api.text("version").into());
    }
    definition
}

/// Brings the definition in step with the topics of an API.
pub(super) fn refresh(tx: &Transaction<'_>, api: &Object) -> Result<(), Problem> {
    let file = match tx.file(&api.id, FILE)? {
        Some(file) => {
            let Ok(definition) = serde_json::from_slice::<Value>(&file.content) else { return Ok(()) };
            File::new(FILE, "application/json", synchronized(definition, api).to_string())
        }
        None => generated(api),
    };
    tx.put_file(&api.organization, &api.id, &file)
}

fn async_api(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    let api = of_call(tx, call)?;
    match is_async(&api) {
        true => Ok(api),
        false => Err(Problem::bad_request(format!("The API {} is not one of events", api.name))),
    }
}

/// The definition of an API.
pub(crate) fn stored(tx: &Transaction<'_>, api: &Object) -> Result<File, Problem> {
    let missing = || Problem::new(404, 404, "Not Found", format!("The API {} has no AsyncAPI definition", api.name));
    tx.file(&api.id, FILE)?.ok_or_else(missing)
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let file = call.control.store.read(|tx| stored(tx, &async_api(tx, call)?))?;
    Ok(Response::of_type(200, "application/json", file.content))
}

fn put(call: &Call<'_>) -> Result<Response, Problem> {
    let parts = archive::parts(call)?;
    let given = given::definition(call, &parts, "apiDefinition")?;
    let described = Described::read(call, &given.content)?;
    let content = call.control.store.change(|tx| {
        let mut api = async_api(tx, call)?;
        let operations = described.overlaid(api::operations(&api.document));
        api.set("operations", operations);
        api.set("updatedBy", call.caller.shown());
        tx.put_file(&api.organization, &api.id, &described.file())?;
        refresh(tx, &api)?;
        tx.update(&mut api)?;
        stored(tx, &api)
    })?;
    Ok(Response::of_type(200, "application/json", content.content))
}

/// Replaces the topics of an API; topics that stay keep what is known of them.
fn set_topics(call: &Call<'_>) -> Result<Response, Problem> {
    const MEMBERS: Members = &[("count", Is::Number), ("list", Is::List), ("pagination", Is::Map)];
    const TOPIC: Members =
        &[("id", Is::Text), ("name", Is::Short(50)), ("mode", Is::Short(20)), ("description", Is::Text)];
    let given = schema::body(call.request, MEMBERS, &[])?;
    let list = given.get("list").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut wanted = Vec::new();
    for topic in &list {
        let topic = topic.as_object().ok_or_else(|| Problem::invalid("list", "a topic is not an object"))?;
        schema::check(topic, TOPIC, &["name", "mode"])?;
        let verb = match api::text(topic, "mode").to_ascii_uppercase().as_str() {
            PUBLISH => PUBLISH,
            SUBSCRIBE => SUBSCRIBE,
            other => return Err(Problem::invalid("mode", format!("`{other}` is not publish or subscribe"))),
        };
        wanted.push(operation(api::text(topic, "name"), verb));
    }
    let api = call.control.store.change(|tx| {
        let mut api = async_api(tx, call)?;
        let known = api::operations(&api.document).to_vec();
        let same = |left: &Value, right: &Value| left["target"] == right["target"] && left["verb"] == right["verb"];
        let kept = |topic: &Value| known.iter().find(|known| same(known, topic)).unwrap_or(topic).clone();
        api.set("operations", wanted.iter().map(kept).collect::<Vec<_>>());
        api.set("updatedBy", call.caller.shown());
        refresh(tx, &api)?;
        tx.update(&mut api)?;
        tx.audit(&api.organization, &call.caller.shown(), "update", Kind::Api, &api.id)?;
        Ok(api)
    })?;
    Ok(Response::json(200, &api::body(&api)))
}
