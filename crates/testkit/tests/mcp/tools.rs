//! Tools that are operations of a backend.

use std::time::Duration;

use super::*;

#[test]
fn arguments_become_a_request_and_its_answer_a_result() {
    let backend = telling();
    let schema = json!({
        "type": "object",
        "properties": {
            "path_shop": { "type": "string" }, "query_tag": { "type": "array" }, "header_X-Trace": { "type": "string" },
            "requestBody": { "type": "object", "contentType": "application/json" },
        },
        "required": ["path_shop", "requestBody"],
    });
    let operations = json!([getting(), tool("addPet", "POST", "/shops/{shop}/pets", schema, json!({}))]);
    let gateway = served(direct(&format!("{}/base", backend.url()), json!({}), operations));
    let mut talk = Talk::with(&gateway, json!({}));
    talk.initialize();
    let got = told(&talk.call("getPet", json!({ "id": "a b", "verbose": true })));
    assert_eq!((&got["method"], &got["target"]), (&json!("GET"), &json!("/base/pet/a%20b?verbose=true")));
    // What is between client and gateway stays there.
    assert_eq!(got["fields"], json!({ "accept": "application/json" }));
    let arguments = json!({ "shop": 3, "tag": ["x", "y"], "X-Trace": "t1", "requestBody": { "name": "Ä" } });
    let got = told(&talk.call("addPet", arguments));
    assert_eq!((&got["method"], &got["target"]), (&json!("POST"), &json!("/base/shops/3/pets?tag=x&tag=y")));
    assert_eq!(got["body"], "{\"name\":\"Ä\"}");
    assert_eq!((&got["fields"]["x-trace"], &got["fields"]["content-type"]), (&json!("t1"), &json!("application/json")));
    for (name, arguments, data) in [
        ("getPet", json!({}), "Required param id is not defined"),
        ("addPet", json!({ "shop": "s" }), "Required param requestBody is not defined"),
        ("getPet", json!({ "id": "../secret" }), "A param makes the path one of another operation"),
        ("getPet", json!([]), "arguments is not an object"),
    ] {
        let answer = talk.ask("tools/call", json!({ "name": name, "arguments": arguments }));
        let expected = json!({ "code": -32602, "message": "Invalid params", "data": data });
        assert_eq!(answer["error"], expected, "{arguments}");
    }
    let unknown = talk.ask("tools/call", json!({ "name": "sellPet" }))["error"].clone();
    let data = "The requested tool does not exist";
    assert_eq!(unknown, json!({ "code": -32602, "message": "Unknown tool: sellPet", "data": data }));
    assert_eq!(talk.ask("tools/call", json!({}))["error"]["data"], "Missing toolName field");
    assert_eq!(backend.received().len(), 2);
}

#[test]
fn agents_see_what_tools_take_and_everything_else_that_is_said_of_them() {
    let backend = telling();
    let output = json!({ "type": "object", "properties": { "method": { "type": "string" } } });
    let envelope = json!({
        "inputSchema": { "type": "object", "properties": { "path_id": { "type": "string" } }, "required": ["path_id"] },
        "title": "A pet", "outputSchema": output, "annotations": { "readOnlyHint": true },
        "_meta": { "com.example/owner": "zoo" }, "icons": [{ "src": "https://example.com/i.png" }],
    });
    let described = tool("described", "GET", "/pet/{id}", envelope, json!({}));
    let mut bare = getting();
    bare.as_object_mut().unwrap().remove("schemaDefinition");
    bare["target"] = "bare".into();
    bare["backendOperationMapping"]["backendOperation"]["target"] = "/all".into();
    let gateway = served(direct(&backend.url(), json!({}), json!([described, bare])));
    let mut talk = Talk::with(&gateway, json!({}));
    let listed = talk.ask("tools/list", json!({}))["result"].clone();
    let expected = json!({ "tools": [
        {
            "name": "described", "title": "A pet", "description": "Does described",
            "inputSchema": { "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"] },
            "outputSchema": output, "annotations": { "readOnlyHint": true },
            "icons": [{ "src": "https://example.com/i.png" }], "_meta": { "com.example/owner": "zoo" },
        },
        { "name": "bare", "description": "Does getPet", "inputSchema": { "type": "object", "properties": {} } },
    ] });
    assert_eq!(listed, expected);
    // A tool with an output schema returns structured content (MCP).
    let result = talk.call("described", json!({ "id": "1" }));
    assert_eq!(result["structuredContent"], told(&result));
    let result = talk.call("bare", json!({}));
    assert!(result.get("structuredContent").is_none());
}

#[test]
fn many_tools_come_in_pages() {
    let backend = telling();
    let tools: Vec<Value> = (0..1100)
        .map(|number| tool(&format!("t{number}"), "GET", "/x", json!({ "properties": {} }), json!({})))
        .collect();
    let gateway = served(direct(&backend.url(), json!({}), tools.into()));
    let mut talk = Talk::with(&gateway, json!({}));
    let (mut counts, mut params) = (Vec::new(), json!({}));
    loop {
        let result = talk.ask("tools/list", params)["result"].clone();
        counts.push(result["tools"].as_array().unwrap().len());
        let Some(cursor) = result.get("nextCursor") else { break };
        params = json!({ "cursor": cursor });
    }
    assert_eq!(counts, [500, 500, 100]);
    for cursor in [json!("3"), json!("-1"), json!("x"), json!(1)] {
        let answer = talk.ask("tools/list", json!({ "cursor": cursor }));
        assert_eq!(answer["error"]["code"], -32602, "{cursor}");
    }
}

#[test]
fn failures_of_a_backend_are_results_that_say_so() {
    let backend = Backend::start(|request: &Received| match request.target.as_str() {
        "/404" => Answer::new(404, "application/json", "{\"why\":\"gone\"}"),
        "/500" => Answer::status(500),
        "/204" => Answer::status(204),
        "/text" => Answer::new(200, "text/plain; charset=utf-8", "plain"),
        "/png" => Answer::new(200, "image/png", vec![0x89, b'P', 0xff]),
        "/broken" => Answer::new(200, "text/plain", vec![0xff, 0xfe]),
        "/garbage" => Answer::garbage("not http\r\n\r\n"),
        "/slow" => Answer::json(&json!({})).after(Duration::from_secs(3)),
        _ => Answer::json(&json!({})).with("Set-Cookie", "a=b").with("ETag", "\"1\""),
    });
    let named = ["404", "500", "204", "text", "png", "broken", "garbage", "slow", "ok"];
    let mut operations: Vec<Value> = named
        .iter()
        .map(|name| tool(name, "GET", &format!("/{name}"), json!({ "properties": {} }), json!({})))
        .collect();
    let mut away = tool("away", "GET", "/x", json!({ "properties": {} }), json!({}));
    away["backendOperationMapping"]["backendId"] = "b2".into();
    operations.push(away);
    let quick = json!({ "endpoint_type": "http", "production_endpoints": {
        "url": backend.url(), "config": { "actionDuration": "500" } } });
    let list = json!([{ "id": "b1", "endpointConfig": quick }, self::backend("b2", NOWHERE)]);
    let (server, list) = (descriptor("DIRECT_BACKEND", json!({}), operations.into()), backends(list));
    let gateway = served(project("pets", &[("mcp_server.yaml", &server), ("backends.yaml", &list)]));
    let mut talk = Talk::with(&gateway, json!({}));
    let mut result = |name: &str| talk.call(name, json!({}));
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    assert_eq!(result("404"), json!({ "isError": true, "content": text("{\"why\":\"gone\"}") }));
    let failed = "Error occurred during tool call. HTTP Status Code: 500";
    assert_eq!(result("500"), json!({ "isError": true, "content": text(failed) }));
    assert_eq!(result("204"), json!({ "isError": false, "content": text("") }));
    assert_eq!(result("text"), json!({ "isError": false, "content": text("plain") }));
    for (name, why) in [
        ("garbage", "HTTP protocol error in upstream request"),
        ("slow", "Upstream connection timeout"),
        ("away", "Upstream connection failed"),
    ] {
        let result = result(name);
        assert_eq!(result["isError"], true, "{name}: {result}");
        assert!(result["content"][0]["text"].as_str().unwrap().starts_with(why), "{name}: {result}");
    }
    for name in ["png", "broken"] {
        let answer = talk.ask("tools/call", json!({ "name": name }));
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
    }
    let reply = talk.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "ok" } }));
    assert_eq!((reply.header("set-cookie"), reply.header("etag")), (Some("a=b"), None));
}

#[test]
fn arguments_are_validated_when_enabled() {
    let backend = telling();
    let checked = json!({ "enableSchemaValidation": true });
    let gateway = served(direct(&backend.url(), checked, json!([getting()])));
    let mut talk = Talk::with(&gateway, json!({}));
    assert_eq!(told(&talk.call("getPet", json!({ "id": "1", "verbose": false })))["target"], "/pet/1?verbose=false");
    let answer = talk.ask("tools/call", json!({ "name": "getPet", "arguments": { "id": "1", "verbose": "maybe" } }));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_eq!(backend.received().len(), 1);
}

#[test]
fn policies_of_the_server_and_of_a_tool_see_the_request_and_its_answer() {
    let backend = telling();
    let set = |value: &str| {
        json!({ "policyName": "addHeader", "policyVersion": "v1",
            "parameters": { "headerName": "x-policy", "headerValue": value } })
    };
    let own = json!({ "operationPolicies": { "request": [set("tool")], "response": [set("back")] } });
    let with_policy = tool("policed", "GET", "/x", json!({ "properties": {} }), own);
    let gateway = served(direct(&backend.url(), json!({}), json!([getting(), with_policy])));
    let mut talk = Talk::with(&gateway, json!({}));
    assert_eq!(told(&talk.call("policed", json!({})))["fields"]["x-policy"], "tool");
    assert_eq!(told(&talk.call("getPet", json!({ "id": "1" })))["fields"].get("x-policy"), None);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "policed" } });
    assert_eq!(talk.send(&call).header("x-policy"), Some("back"));
}
