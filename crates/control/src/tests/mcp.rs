//! MCP servers: tools of a definition and of APIs.

use super::*;

const PUBLISHER: &str = "/api/am/publisher/v4";
const SCOPES: &str = "apim:api_create apim:api_publish apim:api_view apim:api_delete apim:api_manage apim:subscribe \
                      apim:mcp_server_view apim:mcp_server_create apim:mcp_server_manage apim:mcp_server_publish \
                      apim:mcp_server_delete apim:mcp_server_import_export";

#[test]
fn the_tools_of_a_server_call_operations_of_an_api() {
    let server = Server::start();
    let token = server.token("admin", "admin", SCOPES);
    let api = server.published(&token, "Orders", "/orders");
    let tool = |verb: &str| {
        let operation = json!({"target": "/*", "verb": verb});
        json!({"target": "order", "apiOperationMapping": {"apiId": api, "backendOperation": operation}})
    };
    let body = |verb: &str| json!({"name": "Tools", "context": "/tools", "version": "1.0.0", "policies": ["Gold"], "operations": [tool(verb)]});
    let path = format!("{PUBLISHER}/mcp-servers/generate-from-api");
    server.expect(400, "POST", &path, &token, &body("DELETE"));
    let made = server.expect(201, "POST", &path, &token, &body("POST"));
    assert_eq!(made["operations"][0]["apiOperationMapping"]["apiName"], "Orders");
    assert_eq!(made["operations"][0]["feature"], "TOOL");
    let own = format!("{PUBLISHER}/mcp-servers/{}", text(&made["id"]));
    // An API that a tool calls stays.
    assert_eq!(server.expect(409, "DELETE", &format!("{PUBLISHER}/apis/{api}"), &token, &Value::Null)["code"], 409);
    let usage = server.expect(200, "GET", &format!("{PUBLISHER}/apis/{api}/mcp-servers-usage"), &token, &Value::Null);
    assert_eq!((&usage["count"], &usage["list"][0]["name"]), (&json!(1), &json!("Tools")));
    let revision = text(&server.expect(201, "POST", &format!("{own}/revisions"), &token, &json!({}))["id"]);
    let deploy = format!("{own}/deploy-revision?revisionId={revision}");
    server.expect(201, "POST", &deploy, &token, &json!([{"name": "Default", "vhost": "localhost"}]));
    let served = server.gateway.served.lock().unwrap().clone();
    let files = |name: &str| served.apis.iter().find(|api| api.name == name).unwrap().files[0].0.clone();
    assert_eq!(files("Tools-1.0.0"), "mcp_server.yaml");
    // What was read can be written back.
    let read = server.expect(200, "GET", &own, &token, &Value::Null);
    server.expect(200, "PUT", &own, &token, &read);
    let path = format!("{PUBLISHER}/mcp-servers/change-lifecycle?action=Publish&mcpServerId={}", text(&made["id"]));
    server.expect(200, "POST", &path, &token, &Value::Null);
    let listed = server.expect(200, "GET", "/api/am/devportal/v3/mcp-servers", &token, &Value::Null);
    assert_eq!((&listed["count"], &listed["list"][0]["name"]), (&json!(1), &json!("Tools")));
    assert_eq!(server.expect(200, "GET", "/api/am/devportal/v3/apis", &token, &Value::Null)["count"], 1);
    server.expect(200, "DELETE", &own, &token, &Value::Null);
    assert_eq!(server.expect(404, "GET", &own, &token, &Value::Null)["code"], 904_005);
    assert_eq!(
        server.expect(404, "GET", &format!("{PUBLISHER}/mcp-servers/{api}"), &token, &Value::Null)["code"],
        904_005
    );
}

#[test]
fn the_tools_of_a_server_are_the_operations_of_a_definition() {
    let server = Server::start();
    let token = server.token("admin", "admin", SCOPES);
    let definition = json!({
        "openapi": "3.0.1", "info": {"title": "Stock", "version": "1.0.0"}, "servers": [{"url": "http://stock"}],
        "paths": {"/items/{id}": {"get": {"responses": {}}, "put": {"responses": {}}}},
    })
    .to_string();
    let properties = |more: Value| {
        let mut body = json!({"name": "Stock", "context": "/stock", "version": "1.0.0"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body.to_string()
    };
    let path = format!("{PUBLISHER}/mcp-servers/generate-from-openapi");
    let send = |more: Value| {
        let properties = properties(more);
        let parts = [("file", "d.json", definition.as_str()), ("additionalProperties", "", properties.as_str())];
        server.form("POST", &path, &token, &parts)
    };
    let unknown =
        json!({"target": "x", "backendOperationMapping": {"backendOperation": {"target": "/x", "verb": "GET"}}});
    assert_eq!(send(json!({"operations": [unknown]})).0, 400);
    let (status, made) = send(json!({"endpointConfig": {
        "endpoint_type": "http", "production_endpoints": {"url": "http://stock"},
        "endpoint_security": {"production": {"enabled": true, "type": "BASIC", "username": "u", "password": "p"}},
    }}));
    assert_eq!(status, 201, "{made}");
    let names: Vec<&str> =
        made["operations"].as_array().unwrap().iter().filter_map(|tool| tool["target"].as_str()).collect();
    assert_eq!(names, ["get_items_id", "put_items_id"]);
    let own = format!("{PUBLISHER}/mcp-servers/{}/backends", text(&made["id"]));
    let backends = server.expect(200, "GET", &own, &token, &Value::Null);
    let backend = &backends["list"][0];
    assert_eq!(backend["id"], made["operations"][0]["backendOperationMapping"]["backendId"]);
    assert_eq!(backend["endpointConfig"]["endpoint_security"]["production"]["password"], "");
    // An empty secret keeps the one that is known.
    let one = format!("{own}/{}", text(&backend["id"]));
    server.expect(200, "PUT", &one, &token, backend);
    server.expect(404, "GET", &format!("{own}/other"), &token, &Value::Null);
    let id = text(&made["id"]);
    server.deploy_at(&token, "mcp-servers", &id);
    let served = server.gateway.served.lock().unwrap().clone();
    let file = served.apis[0].files.iter().find(|(path, _)| path == "backends.yaml").unwrap();
    assert!(String::from_utf8_lossy(&file.1).contains("\"password\":\"p\""));
}
