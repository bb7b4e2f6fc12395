//! The protocol itself: initialize, sessions, versions, notifications, what is not a message.

use super::*;

#[test]
fn a_client_begins_a_session_and_goes_on_in_it() {
    let backend = telling();
    let gateway = served(direct(&backend.url(), json!({}), json!([getting()])));
    let mut talk = Talk::with(&gateway, json!({}));
    let expected = json!({
        "protocolVersion": "2025-06-18", "capabilities": { "tools": { "listChanged": false } },
        "serverInfo": { "name": "Pets", "version": "1.0.0", "description": "This is an MCP Server" },
    });
    assert_eq!(talk.initialize(), expected);
    assert!(talk.session.as_ref().unwrap().bytes().all(|byte| byte.is_ascii_graphic()));
    assert_eq!(talk.ask("ping", json!({}))["result"], json!({}));
    assert_eq!(talk.tools(), ["getPet"]);
    // Another connection goes on in the same session.
    talk.client = gateway.client();
    assert_eq!(told(&talk.call("getPet", json!({ "id": "7" })))["target"], "/pet/7");
    // Sessions survive a deployment.
    let mut gateway = gateway;
    assert_eq!(gateway.deploy(&direct(&backend.url(), json!({}), json!([getting()])), &[]), Vec::<String>::new());
    assert_eq!(talk.tools(), ["getPet"]);
}

#[test]
fn a_session_is_ended_once_and_only_by_its_owner() {
    let backend = telling();
    let gateway = served(direct(&backend.url(), json!({}), json!([getting()])));
    let mut talk = Talk::with(&gateway, json!({}));
    talk.initialize();
    let session = talk.session.clone().unwrap();
    let fields: &[(&str, &str)] = &[("Mcp-Session-Id", &session)];
    let mut client = gateway.client();
    assert_eq!(client.request("DELETE", PATH, &[], b"").status, 400);
    let strange = [fields[0], ("MCP-Protocol-Version", "x")];
    assert_eq!(client.request("DELETE", PATH, &strange, b"").status, 400);
    assert_eq!(client.request("DELETE", PATH, fields, b"").status, 204);
    assert_eq!(client.request("DELETE", PATH, fields, b"").status, 404);
    let list = json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/list" });
    for other in [session.as_str(), "made-up", ""] {
        talk.session = Some(other.to_owned());
        let reply = talk.send(&list);
        let expected = json!({ "code": -32001, "message": "Session not found", "data": "The session is over" });
        assert_eq!((reply.status, &reply.json()["error"], &reply.json()["id"]), (404, &expected, &json!("a")));
    }
    talk.initialize();
    assert_eq!(talk.tools(), ["getPet"]);
}

#[test]
fn versions_are_agreed_on() {
    let backend = telling();
    let gateway = served(direct(&backend.url(), json!({}), json!([getting()])));
    let mut talk = Talk::with(&gateway, json!({}));
    for version in ["2025-06-18", "2025-03-26", "2024-11-05", "2025-11-25", "2099-01-01"] {
        let result = &talk.ask("initialize", json!({ "protocolVersion": version }))["result"];
        assert_eq!(result["protocolVersion"], "2025-06-18", "{version}");
    }
    for version in ["1.0.0", "1999-01-01", "latest", "2025-06-1x"] {
        let error = &talk.ask("initialize", json!({ "protocolVersion": version }))["error"];
        let supported = json!(["2025-06-18", "2025-03-26", "2024-11-05"]);
        let data = json!({ "requested": version, "supported": supported });
        assert_eq!(*error, json!({ "code": -32602, "message": "Unsupported protocol version", "data": data }));
    }
    for (params, data) in [
        (json!({}), "Missing params field"),
        (json!({ "capabilities": {} }), "Missing protocolVersion field"),
        (json!({ "protocolVersion": 1 }), "protocolVersion is not a text"),
    ] {
        assert_eq!(talk.ask("initialize", params)["error"]["data"], data);
    }
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    for (version, status) in [("2025-06-18", 200), ("2024-11-05", 200), ("2030-01-01", 400), ("x", 400)] {
        let fields: &[(&str, &str)] = &[("MCP-Protocol-Version", version)];
        assert_eq!(gateway.client().request("POST", PATH, fields, message.as_bytes()).status, status, "{version}");
    }
}

#[test]
fn unsupported_methods_are_reported() {
    let backend = telling();
    let gateway = served(direct(&backend.url(), json!({}), json!([getting()])));
    let mut client = gateway.client();
    let reply = client.get(PATH, &[("Accept", "text/event-stream")]);
    assert_eq!((reply.status, reply.header("allow")), (405, Some("POST, DELETE")));
    assert_eq!(reply.json()["error"]["message"], "Server-Sent Events (SSE) not supported");
    assert_eq!(client.request("PUT", PATH, &[], b"{}").status, 405);
    assert_eq!(client.get("/pets/1.0.0/other", &[]).status, 404);
    let options = client.request("OPTIONS", PATH, &[], b"");
    assert_eq!((options.status, options.header("allow")), (204, Some("OPTIONS, POST, GET, DELETE")));
    let mut talk = Talk::with(&gateway, json!({}));
    for method in ["resources/read", "prompts/get", "tools/delete", "logging/setLevel", "server/discover"] {
        let data = format!("Method {method} not found");
        let expected = json!({ "code": -32601, "message": "Method not found", "data": data });
        assert_eq!(talk.ask(method, json!({}))["error"], expected);
    }
    assert_eq!(talk.ask("resources/list", json!({}))["result"], json!({ "resources": [] }));
    assert_eq!(talk.ask("prompts/list", json!({}))["result"], json!({ "prompts": [] }));
    // Notifications and answers are taken note of.
    for message in [
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }),
        json!({ "jsonrpc": "2.0", "id": 3, "result": {} }),
    ] {
        assert_eq!(talk.send(&message).status, 202, "{message}");
    }
    assert!(backend.received().is_empty());
}

#[test]
fn scripts_of_other_sites_may_talk_when_the_rules_say_so() {
    let backend = telling();
    let rules = json!({ "corsConfiguration": {
        "corsConfigurationEnabled": true, "accessControlAllowOrigins": ["https://inspector.example"],
        "accessControlAllowMethods": ["POST"], "accessControlAllowHeaders": ["Mcp-Session-Id"],
    } });
    let gateway = served(direct(&backend.url(), rules, json!([getting()])));
    let origin = ("Origin", "https://inspector.example");
    let mut client = gateway.client();
    let preflight = client.request("OPTIONS", PATH, &[origin, ("Access-Control-Request-Method", "POST")], b"");
    assert_eq!(preflight.header("access-control-allow-headers"), Some("Mcp-Session-Id"));
    let message = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
    let bearer = gateway.bearer(&json!({}));
    let reply = client.request("POST", PATH, &[origin, ("Authorization", &bearer)], message);
    assert_eq!(reply.header("access-control-allow-origin"), Some("https://inspector.example"));
    assert_eq!(reply.header("access-control-expose-headers"), Some("Mcp-Session-Id"));
    let refused = client.request("POST", PATH, &[origin], b"{");
    assert_eq!((refused.status, refused.header("access-control-allow-origin").is_some()), (400, true));
    // A page that may not ask is not only kept from the answer.
    let evil = [("Origin", "https://evil.example"), ("Authorization", &bearer)];
    assert_eq!(client.request("POST", PATH, &evil, message).status, 403);
}
