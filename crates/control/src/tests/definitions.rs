//! APIs made from definitions: GraphQL schemas, WSDL, AsyncAPI, MCP servers; by file and by address.

use super::*;

const PUBLISHER: &str = "/api/am/publisher/v4";
const SCOPES: &str =
    "apim:api_create apim:api_publish apim:api_view apim:api_manage apim:mcp_server_create apim:mcp_server_view";
const SCHEMA: &str = "type Query { hero: Hero } type Mutation { add(name: String): Hero } type Hero { name: String }";

impl Server {
    fn send_form(&self, method: &str, path: &str, token: &str, parts: &[(&str, &str, &str)]) -> (u16, Value) {
        self.form(method, &format!("{PUBLISHER}{path}"), token, parts)
    }

    fn publisher(&self, status: u16, method: &str, path: &str, token: &str, body: &Value) -> Value {
        self.expect(status, method, &format!("{PUBLISHER}{path}"), token, body)
    }

    /// The files that the gateway gets of an API that is deployed.
    fn deployed(&self, token: &str, kind: &str, api: &str) -> Vec<(String, Bytes)> {
        let revision = text(&self.publisher(201, "POST", &format!("/{kind}/{api}/revisions"), token, &json!({}))["id"]);
        let path = format!("/{kind}/{api}/deploy-revision?revisionId={revision}");
        self.publisher(201, "POST", &path, token, &json!([{"name": "Default", "vhost": "localhost"}]));
        let served = self.gateway.served.lock().unwrap().clone();
        served.apis.last().unwrap().files.clone()
    }
}

impl Server {
    /// Publishes an API without its checks; its path in the developer portal.
    fn shown(&self, id: &str) -> String {
        let publish = |tx: &crate::store::Transaction<'_>| {
            let mut api = tx.get(crate::store::Kind::Api, "carbon.super", id)?.unwrap();
            api.state = "PUBLISHED".to_owned();
            tx.update(&mut api)
        };
        self.control.store.change(publish).unwrap();
        format!("/api/am/devportal/v3/apis/{id}")
    }
}

fn properties(name: &str) -> String {
    json!({"name": name, "context": format!("/{name}"), "version": "1.0.0"}).to_string()
}

fn operations(api: &Value) -> Vec<String> {
    let list = api["operations"].as_array().unwrap();
    list.iter().map(|one| format!("{} {}", text(&one["verb"]), text(&one["target"]))).collect()
}

#[test]
fn a_graphql_schema_gives_the_operations() {
    let server = Server::start();
    let token = server.token("admin", "admin", SCOPES);
    let validate = "/apis/validate-graphql-schema";
    let (status, valid) = server.send_form("POST", validate, &token, &[("file", "s.graphql", SCHEMA)]);
    assert_eq!((status, &valid["isValid"]), (200, &json!(true)));
    assert_eq!(operations(&valid["graphQLInfo"]), ["QUERY hero", "MUTATION add"]);
    let (_, broken) = server.send_form("POST", validate, &token, &[("file", "s.graphql", "type Query {")]);
    assert_eq!(broken["isValid"], json!(false));
    assert!(text(&broken["errorMessage"]).contains("line 1, column"), "{broken}");
    assert_eq!(server.send_form("POST", validate, &token, &[("other", "", "x")]).0, 400);
    let parts = [("file", "s.graphql", SCHEMA), ("additionalProperties", "", &properties("stars"))];
    let (status, api) = server.send_form("POST", "/apis/import-graphql-schema", &token, &parts);
    assert_eq!((status, &api["type"]), (201, &json!("GRAPHQL")), "{api}");
    let own = format!("/apis/{}", text(&api["id"]));
    let types = server.publisher(200, "GET", &format!("{own}/graphql-policies/complexity/types"), &token, &Value::Null);
    assert_eq!(types["typeList"][0], json!({"type": "Hero", "fieldList": ["name"]}));
    let complexity = format!("{own}/graphql-policies/complexity");
    let entry = |field: &str| json!({"list": [{"type": "Hero", "field": field, "complexityValue": 2}]});
    server.publisher(400, "PUT", &complexity, &token, &entry("size"));
    server.publisher(200, "PUT", &complexity, &token, &entry("name"));
    assert_eq!(server.publisher(200, "GET", &complexity, &token, &Value::Null), entry("name"));
    let other = SCHEMA.replace("hero", "heroes");
    let path = format!("{own}/graphql-schema");
    assert_eq!(server.send_form("PUT", &path, &token, &[("schemaDefinition", "", &other)]).0, 200);
    assert_eq!(operations(&server.publisher(200, "GET", &own, &token, &Value::Null)), ["QUERY heroes", "MUTATION add"]);
    assert_eq!(server.publisher(200, "GET", &path, &token, &Value::Null)["schemaDefinition"], json!(other));
    let files = server.deployed(&token, "apis", &text(&api["id"]));
    assert!(files.iter().any(|(path, content)| path == "Definitions/schema.graphql" && *content == other));
    let http = server.published(&token, "Http", "/http");
    let problem =
        server.publisher(400, "GET", &format!("/apis/{http}/graphql-policies/complexity"), &token, &Value::Null);
    assert_eq!(problem["code"], 900_870);
    let portal = server.shown(&text(&api["id"]));
    assert_eq!(server.send("GET", &format!("{portal}/graphql-schema"), "", "", "").body, other);
    let read = |path: &str| server.expect(200, "GET", &format!("{portal}{path}"), &token, &Value::Null);
    assert_eq!(read("/graphql-policies/complexity"), entry("name"));
    assert_eq!(read("/graphql-policies/complexity/types")["typeList"][0]["type"], "Hero");
    server.expect(404, "GET", &format!("{portal}/wsdl"), &token, &Value::Null);
}

#[test]
fn a_wsdl_makes_a_soap_api_or_resources() {
    let server = Server::start();
    let token = server.token("admin", "admin", SCOPES);
    let wsdl = crate::publisher::WSDL_OF_TESTS;
    let (_, valid) = server.send_form("POST", "/apis/validate-wsdl", &token, &[("file", "q.wsdl", wsdl)]);
    assert_eq!(valid["wsdlInfo"]["endpoints"][0]["location"], "http://backend/quotes", "{valid}");
    let (_, invalid) = server.send_form("POST", "/apis/validate-wsdl", &token, &[("file", "q.wsdl", "<x/>")]);
    assert_eq!((&invalid["isValid"], &invalid["errors"][0]["code"]), (&json!(false), &json!("900682")));
    let (status, problem) = server.send_form("POST", "/apis/validate-wsdl", &token, &[("file", "q.txt", wsdl)]);
    assert_eq!((status, &problem["code"]), (400, &json!(900_686)));
    let import = |name: &str, kind: &str| {
        let properties = properties(name);
        let parts =
            [("file", "q.wsdl", wsdl), ("additionalProperties", "", &properties), ("implementationType", "", kind)];
        server.send_form("POST", "/apis/import-wsdl", &token, &parts)
    };
    let (status, soap) = import("quotes", "SOAP");
    assert_eq!((status, operations(&soap)), (201, vec!["POST /*".to_owned()]), "{soap}");
    let own = format!("/apis/{}", text(&soap["id"]));
    assert_eq!(server.publisher(200, "GET", &format!("{own}/wsdl-info"), &token, &Value::Null)["type"], "WSDL");
    let (status, resources) = import("quotesOverRest", "SOAPTOREST");
    assert_eq!((status, operations(&resources)), (201, vec!["POST /getQuote".to_owned()]), "{resources}");
    let files = server.deployed(&token, "apis", &text(&resources["id"]));
    let names: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
    assert!(names.contains(&"Policies/soapToRest_getQuote_request_v1.j2"), "{names:?}");
    let descriptor: Value = serde_json::from_slice(&files[0].1).unwrap();
    assert_eq!(descriptor["data"]["type"], "HTTP");
    let flow = &descriptor["data"]["operations"][0]["operationPolicies"]["request"];
    assert_eq!(flow[0]["policyName"], "soapToRest_getQuote_request");
    assert_eq!(import("x", "OTHER").0, 400);
    let http = server.published(&token, "Http", "/http");
    let problem = server.publisher(404, "GET", &format!("/apis/{http}/wsdl"), &token, &Value::Null);
    assert_eq!(problem["code"], 900_684);
}

#[test]
fn topics_are_those_of_the_asyncapi_definition() {
    let server = Server::start();
    let token = server.token("admin", "admin", SCOPES);
    let definition = json!({
        "asyncapi": "2.0.0", "info": {"title": "Chat Rooms", "version": "1.0.0"},
        "servers": {"main": {"url": "ws://backend/chat", "protocol": "ws"}},
        "channels": {"/room": {"publish": {}, "subscribe": {"summary": "kept"}}},
    })
    .to_string();
    let (_, valid) = server.send_form("POST", "/apis/validate-asyncapi", &token, &[("file", "a.json", &definition)]);
    assert_eq!((&valid["isValid"], &valid["info"]["protocol"]), (&json!(true), &json!("ws")));
    let (_, invalid) = server.send_form("POST", "/apis/validate-asyncapi", &token, &[("file", "a.json", "{}")]);
    assert_eq!(invalid["isValid"], json!(false));
    let (status, api) = server.send_form("POST", "/apis/import-asyncapi", &token, &[("file", "a.json", &definition)]);
    assert_eq!((status, &api["type"], &api["name"]), (201, &json!("WS"), &json!("ChatRooms")), "{api}");
    assert_eq!(operations(&api), ["PUBLISH /room", "SUBSCRIBE /room"]);
    let own = format!("/apis/{}", text(&api["id"]));
    let topics = json!({"list": [
        {"name": "/room", "mode": "SUBSCRIBE", "description": ""}, {"name": "/news", "mode": "publish", "description": ""},
    ]});
    let changed = server.publisher(200, "PUT", &format!("{own}/topics"), &token, &topics);
    assert_eq!(operations(&changed), ["SUBSCRIBE /room", "PUBLISH /news"]);
    let stored = server.publisher(200, "GET", &format!("{own}/asyncapi"), &token, &Value::Null);
    assert_eq!(stored["channels"]["/room"]["subscribe"]["summary"], "kept");
    assert!(stored["channels"]["/room"].get("publish").is_none() && stored["channels"].get("/news").is_some());
    let portal = server.shown(&text(&api["id"]));
    let shown = server.expect(200, "GET", &format!("{portal}/topics"), &token, &Value::Null);
    assert_eq!((&shown["list"][1]["name"], &shown["list"][1]["type"]), (&json!("/news"), &json!("PUBLISH")));
    let definition = server.expect(200, "GET", &format!("{portal}/async-api-specification"), &token, &Value::Null);
    assert_eq!(definition, stored);
    let history = server.publisher(200, "GET", &format!("{own}/lifecycle-history"), &token, &Value::Null);
    assert_eq!((&history["count"], &history["list"][0]["postState"]), (&json!(1), &json!("Created")));
    let by_content = |word: &str| {
        let path = format!("/apis?query=content:{word}");
        server.publisher(200, "GET", &path, &token, &Value::Null)["count"].clone()
    };
    assert_eq!((by_content("KEPT"), by_content("absent")), (json!(1), json!(0)));
    let by_provider = |name: &str| {
        let path = format!("/apis?query=provider:%22{name}%22");
        server.publisher(200, "GET", &path, &token, &Value::Null)["count"].clone()
    };
    assert_eq!((by_provider("admin@carbon.super"), by_provider("admin@test.com")), (json!(1), json!(0)));
    // One that is made by hand has a definition too.
    let body = json!({"name": "Plain", "context": "/plain", "version": "1.0.0", "type": "WS"});
    let plain = server.publisher(201, "POST", "/apis", &token, &body);
    assert_eq!(operations(&plain), ["PUBLISH /*", "SUBSCRIBE /*"]);
    let path = format!("/apis/{}/asyncapi", text(&plain["id"]));
    assert_eq!(server.publisher(200, "GET", &path, &token, &Value::Null)["info"]["title"], "Plain");
}

#[test]
fn definitions_are_fetched_where_that_is_allowed() {
    let server = Server::start();
    let token = server.token("admin", "admin", SCOPES);
    let definition = json!({
        "openapi": "3.0.1", "info": {"title": "Pets", "version": "1.0.0"},
        "paths": {"/pets": {"get": {"responses": {"200": {"content": {"application/json": {"example": [1]}}}}}}},
    });
    let page = ("https://definitions/pets".to_owned(), definition.to_string());
    server.gateway.web.lock().unwrap().push(page);
    let validate = |url: &str| server.send_form("POST", "/apis/validate-openapi", &token, &[("url", "", url)]).1;
    assert_eq!(validate("https://definitions/pets")["isValid"], json!(true));
    let refused = validate("http://169.254.169.254/");
    assert_eq!((&refused["isValid"], &refused["errors"][0]["code"]), (&json!(false), &json!("900756")));
    let parts = [("url", "", "https://definitions/pets")];
    let (status, api) = server.send_form("POST", "/apis/import-openapi", &token, &parts);
    assert_eq!((status, operations(&api)), (201, vec!["GET /pets".to_owned()]), "{api}");
    let own = format!("/apis/{}", text(&api["id"]));
    let made = server.publisher(200, "POST", &format!("{own}/generate-mock-scripts"), &token, &Value::Null);
    assert!(text(&made["paths"]["/pets"]["get"]["x-mediation-script"]).contains("\"200\":[1]"), "{made}");
    let endpoint = |url: &str| json!({"name": "Second", "endpointConfig": {"endpoint_type": "http", "production_endpoints": {"url": url}}});
    server.publisher(400, "POST", &format!("{own}/endpoints"), &token, &endpoint("nowhere"));
    let made = server.publisher(201, "POST", &format!("{own}/endpoints"), &token, &endpoint("http://second"));
    server.publisher(409, "POST", &format!("{own}/endpoints"), &token, &endpoint("http://second"));
    let mut read = server.publisher(200, "GET", &own, &token, &Value::Null);
    read["primaryProductionEndpointId"] = made["id"].clone();
    server.publisher(200, "PUT", &own, &token, &read);
    let path = format!("{own}/endpoints/{}", text(&made["id"]));
    assert_eq!(server.publisher(400, "DELETE", &path, &token, &Value::Null)["code"], 902_048);
    let files = server.deployed(&token, "apis", &text(&api["id"]));
    let descriptor: Value = serde_json::from_slice(&files[0].1).unwrap();
    assert_eq!(descriptor["data"]["endpointConfig"]["production_endpoints"]["url"], "http://second");
}

#[test]
fn the_tools_of_another_mcp_server_are_offered() {
    let server = Server::start();
    let token = server.token("admin", "admin", SCOPES);
    let result =
        json!({"jsonrpc": "2.0", "id": 2, "result": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}});
    server.gateway.web.lock().unwrap().push(("http://tools/mcp".to_owned(), result.to_string()));
    let body = json!({"url": "http://tools"});
    let valid = server.publisher(200, "POST", "/mcp-servers/validate-mcp-server", &token, &body);
    assert_eq!(valid["toolInfo"]["operations"][0]["target"], "echo", "{valid}");
    let away = json!({"url": "http://away"});
    let invalid = server.publisher(200, "POST", "/mcp-servers/validate-mcp-server", &token, &away);
    assert_eq!(invalid["isValid"], json!(false));
    server.publisher(400, "POST", "/mcp-servers/validate-mcp-server", &token, &json!({}));
    let body = json!({
        "url": "http://tools", "securityInfo": {"isSecure": true, "header": "X-Key", "value": "secret"},
        "additionalProperties": {"name": "Proxy", "context": "/proxy", "version": "1.0.0"},
    });
    let made = server.publisher(201, "POST", "/mcp-servers/generate-from-mcp-server", &token, &body);
    let path = format!("/mcp-servers/{}/backends", text(&made["id"]));
    let backends = server.publisher(200, "GET", &path, &token, &Value::Null);
    let security = &backends["list"][0]["endpointConfig"]["endpoint_security"]["production"];
    assert_eq!((&security["apiKeyIdentifier"], &security["apiKeyValue"]), (&json!("X-Key"), &json!("")));
}
