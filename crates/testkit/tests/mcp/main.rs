//! MCP servers over real sockets: tools over HTTP backends, over APIs that are served here, and over a real MCP server.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod apis;
mod example;
mod generated;
mod hostile;
mod protocol;
mod proxy;
mod rights;
mod tools;

use penstock_compile::Input;
use penstock_testkit::gateway::{Answer, Backend, Client, NOWHERE, Received, Reply, Setup, TestGateway, project};
use serde_json::{Value, json};

/// Where the servers of these tests are.
const PATH: &str = "/pets/1.0.0/mcp";

/// A descriptor of an MCP server called `Pets`.
fn descriptor(subtype: &str, more: Value, operations: Value) -> String {
    let mut data = json!({
        "name": "Pets", "version": "1.0.0", "context": "/pets", "lifeCycleStatus": "PUBLISHED",
        "subtypeConfiguration": { "subtype": subtype }, "operations": operations,
    });
    data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "type": "mcp_server", "version": "v4.7.0", "data": data }).to_string()
}

fn backends(list: Value) -> String {
    json!({ "type": "backends", "version": "v4.7.0", "data": list }).to_string()
}

fn backend(id: &str, url: &str) -> Value {
    let config = json!({ "endpoint_type": "http", "production_endpoints": { "url": url } });
    json!({ "id": id, "name": id, "endpointConfig": config })
}

/// A tool over HTTP, its schema as the publisher writes it.
fn tool(name: &str, verb: &str, target: &str, schema: Value, more: Value) -> Value {
    let mut tool = json!({
        "target": name, "feature": "TOOL", "authType": "Any", "description": format!("Does {name}"),
        "schemaDefinition": schema.to_string(),
        "backendOperationMapping": { "backendId": "b1", "backendOperation": { "target": target, "verb": verb } },
    });
    tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    tool
}

fn getting() -> Value {
    let properties = json!({ "path_id": { "type": "string" }, "query_verbose": { "type": "boolean" } });
    tool("getPet", "GET", "/pet/{id}", json!({ "properties": properties, "required": ["path_id"] }), json!({}))
}

/// The files of a server over one HTTP backend.
fn direct(backend_url: &str, more: Value, operations: Value) -> Vec<Input> {
    let (server, backends) =
        (descriptor("DIRECT_BACKEND", more, operations), backends(json!([backend("b1", backend_url)])));
    project("pets", &[("mcp_server.yaml", &server), ("backends.yaml", &backends)])
}

fn served(inputs: Vec<Input>) -> TestGateway {
    TestGateway::start(Setup { inputs, ..Setup::of([]) })
}

/// A backend that returns its request.
fn telling() -> Backend {
    Backend::start(|request: &Received| {
        let fields = ["x-trace", "content-type", "accept", "mcp-session-id", "authorization", "x-policy"];
        let fields = fields.iter().filter_map(|name| Some(((*name).to_owned(), request.header(name)?.into())));
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let fields: serde_json::Map<String, Value> = fields.collect();
        Answer::json(&json!({ "method": request.method, "target": request.target, "body": body, "fields": fields }))
    })
}

/// Talks to a server as one client.
struct Talk {
    client: Client,
    bearer: String,
    session: Option<String>,
}

impl Talk {
    fn with(gateway: &TestGateway, claims: Value) -> Talk {
        Talk { client: gateway.client(), bearer: gateway.bearer(&claims), session: None }
    }

    /// Sends a message.
    fn send(&mut self, message: &Value) -> Reply {
        let mut fields = vec![
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Authorization", self.bearer.as_str()),
        ];
        if let Some(session) = &self.session {
            fields.extend([("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", "2025-06-18")]);
        }
        self.client.request("POST", PATH, &fields, message.to_string().as_bytes())
    }

    /// Asks and gets the whole answer.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let reply = self.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }));
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")), "{}", reply.text());
        let answer = reply.json();
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(7)), "{answer}");
        answer
    }

    /// Begins a session.
    fn initialize(&mut self) -> Value {
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        });
        let reply = self.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }));
        assert_eq!(reply.status, 200, "{}", reply.text());
        self.session = reply.header("mcp-session-id").map(str::to_owned);
        let noted = self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assert_eq!((noted.status, noted.body.len()), (202, 0), "{}", noted.text());
        reply.json()["result"].clone()
    }

    /// The result of a tool.
    fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": name, "arguments": arguments }))["result"].clone()
    }

    fn tools(&mut self) -> Vec<String> {
        let answer = self.ask("tools/list", json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// The request of a tool to such a backend.
#[track_caller]
fn told(result: &Value) -> Value {
    assert_eq!(result["isError"], json!(false), "{result}");
    let content = result["content"].as_array().unwrap();
    assert_eq!((content.len(), &content[0]["type"]), (1, &json!("text")), "{result}");
    serde_json::from_str(content[0]["text"].as_str().unwrap()).unwrap()
}
