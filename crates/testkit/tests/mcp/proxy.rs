//! An MCP server behind this one.

use super::*;

/// A small MCP server with sessions of its own. It responds with events to calls of the tool `stream`.
fn mcp_backend() -> Backend {
    Backend::start(|request: &Received| {
        if request.method == "GET" {
            return Answer::new(200, "text/event-stream", "data: {}\n\n");
        }
        if request.method == "DELETE" {
            return Answer::status(204);
        }
        let message: Value = serde_json::from_slice(&request.body).unwrap();
        let answer = |result: Value| json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => Answer::json(&answer(json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "small", "version": "0.1" },
            })))
            .with("Mcp-Session-Id", "s-1"),
            _ if request.header("mcp-session-id") != Some("s-1") => Answer::status(404),
            "ping" => Answer::json(&answer(json!({}))),
            "resources/list" => Answer::json(&answer(json!({ "resources": [{ "uri": "a:b", "name": "b" }] }))),
            "tools/call" => match message["params"]["name"].as_str().unwrap() {
                "stream" => {
                    let event = answer(json!({ "content": [] }));
                    Answer::new(200, "text/event-stream", format!("event: message\ndata: {event}\n\n"))
                }
                "fail" => Answer::json(&json!({ "jsonrpc": "2.0", "id": message["id"],
                    "error": { "code": -32000, "message": "no" } })),
                _ => {
                    let text = message["params"]["arguments"]["text"].as_str().unwrap_or_default();
                    Answer::json(&answer(json!({ "content": [{ "type": "text", "text": text }] })))
                }
            },
            _ => Answer::status(202),
        }
    })
}

fn proxied(name: &str, target: &str) -> Value {
    let schema =
        json!({ "type": "object", "properties": { "path_text": { "type": "string" } }, "additionalProperties": false });
    tool(name, "TOOL", target, schema, json!({}))
}

fn files(url: &str, operations: Value) -> Vec<Input> {
    let (server, list) = (descriptor("SERVER_PROXY", json!({}), operations), backends(json!([backend("b1", url)])));
    project("pets", &[("mcp_server.yaml", &server), ("backends.yaml", &list)])
}

#[test]
fn everything_but_the_list_of_tools_is_the_other_servers() {
    let backend = mcp_backend();
    let operations = json!([proxied("say", "echo"), proxied("stream", "stream"), proxied("fail", "fail")]);
    // With and without the path in the address.
    for url in [backend.url(), format!("{}/mcp", backend.url())] {
        let gateway = served(files(&url, operations.clone()));
        let mut talk = Talk::with(&gateway, json!({}));
        let expected = json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "small", "version": "0.1" },
        });
        assert_eq!(talk.initialize(), expected);
        assert_eq!(talk.session.as_deref(), Some("s-1"));
        assert_eq!(backend.last().target, "/mcp");
        let listed = talk.ask("tools/list", json!({}))["result"]["tools"].clone();
        // What looks like a prefix is a part of the name here.
        assert_eq!(listed[0]["inputSchema"]["properties"], json!({ "path_text": { "type": "string" } }));
        assert_eq!(talk.tools(), ["say", "stream", "fail"]);
        let result = talk.call("say", json!({ "text": "hello" }));
        assert_eq!(result, json!({ "content": [{ "type": "text", "text": "hello" }] }));
        let sent: Value = serde_json::from_slice(&backend.last().body).unwrap();
        assert_eq!(sent["params"], json!({ "name": "echo", "arguments": { "text": "hello" } }));
        assert_eq!(backend.last().header("authorization"), None);
        let failed = talk.ask("tools/call", json!({ "name": "fail" }));
        assert_eq!(failed["error"], json!({ "code": -32000, "message": "no" }));
        assert_eq!(talk.ask("ping", json!({}))["result"], json!({}));
        assert_eq!(talk.ask("resources/list", json!({}))["result"]["resources"][0]["uri"], "a:b");
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "stream" } });
        let reply = talk.send(&call);
        assert_eq!(reply.header("content-type"), Some("text/event-stream"));
        assert!(reply.text().starts_with("event: message\ndata: {"), "{}", reply.text());
        let fields: &[(&str, &str)] = &[("Authorization", &talk.bearer), ("Mcp-Session-Id", "s-1")];
        let mut client = gateway.client();
        assert_eq!(client.get(PATH, fields).text(), "data: {}\n\n");
        assert_eq!(client.request("DELETE", PATH, fields, b"").status, 204);
        assert_eq!((backend.last().method.as_str(), backend.last().target.as_str()), ("DELETE", "/mcp"));
    }
}

#[test]
fn only_tools_of_the_project_are_called_and_only_by_those_who_may() {
    let backend = mcp_backend();
    let gateway = served(files(&backend.url(), json!([proxied("say", "echo")])));
    let mut talk = Talk::with(&gateway, json!({}));
    talk.initialize();
    backend.forget();
    for params in [
        json!({ "name": "echo" }),
        json!({ "name": "say", "Name": "stream" }),
        json!({ "name": "say", "ARGUMENTS": {} }),
    ] {
        assert_eq!(talk.ask("tools/call", params.clone())["error"]["code"], -32602, "{params}");
    }
    for method in ["resources/read", "prompts/get", "completion/complete"] {
        assert_eq!(talk.ask(method, json!({}))["error"]["code"], -32601);
    }
    // Twice the same member: what was looked at is what is sent.
    let twice = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stream","n\u0061me":"say","arguments":{"text":"x"}}}"#;
    let fields: &[(&str, &str)] = &[("Authorization", &talk.bearer), ("Mcp-Session-Id", "s-1")];
    let reply = gateway.client().request("POST", PATH, fields, twice);
    assert_eq!(reply.json()["result"]["content"][0]["text"], "x");
    assert_eq!(backend.received().len(), 1);
    backend.forget();
    talk.bearer = "Bearer a.b.c".to_owned();
    let messages = ["initialize", "ping", "resources/list", "tools/list", "tools/call"];
    for method in messages {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "name": "say" } });
        assert_eq!(talk.send(&message).status, 401, "{method}");
    }
    for (method, message) in
        [("GET", ""), ("DELETE", ""), ("POST", r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#)]
    {
        let reply = gateway.client().request(method, PATH, &[("Mcp-Session-Id", "s-1")], message.as_bytes());
        assert_eq!(reply.status, 401, "{method}");
    }
    assert!(backend.received().is_empty());
}

#[test]
fn a_server_that_is_away_is_an_error_of_http() {
    let gateway = served(files(NOWHERE, json!([proxied("say", "echo")])));
    let mut talk = Talk::with(&gateway, json!({}));
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "say" } });
    assert_eq!(talk.send(&call).status, 503);
    assert_eq!(talk.tools(), ["say"]);
}
