//! Resources around APIs: certificates, comments, ratings, labels, custom policies, the gateway API, the service catalog.

use super::*;

const CERTIFICATE: &str = include_str!("../../tests/certificate.pem");

const PUBLISHER: &str = "/api/am/publisher/v4";
const DEVPORTAL: &str = "/api/am/devportal/v3";
const ADMIN: &str = "/api/am/admin/v4";

/// A form with text fields and files: name, file name, content.
fn form(parts: &[(&str, &str, &str)]) -> String {
    let mut body = String::new();
    for (name, file, content) in parts {
        let file = if file.is_empty() { String::new() } else { format!("; filename=\"{file}\"") };
        body += &format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{content}\r\n");
    }
    body + "--b--\r\n"
}

impl Server {
    /// The status and the body of a response to a form.
    pub(super) fn form(&self, method: &str, target: &str, token: &str, parts: &[(&str, &str, &str)]) -> (u16, Value) {
        let kind = "multipart/form-data; boundary=b";
        let response = self.send(method, target, &format!("Bearer {token}"), kind, &form(parts));
        (response.status, serde_json::from_slice(&response.body).unwrap_or_default())
    }

    fn served_files(&self) -> Vec<String> {
        let served = self.gateway.served.lock().unwrap();
        served.apis.iter().flat_map(|api| &api.files).map(|(path, _)| path.clone()).collect()
    }
}

#[test]
fn certificates_of_backends_are_part_of_the_apis_that_need_them() {
    let server = Server::start();
    let token = server.admin();
    server.published(&token, "Orders", "/orders");
    let path = format!("{PUBLISHER}/endpoint-certificates");
    let parts =
        |alias, endpoint| [("alias", "", alias), ("endpoint", "", endpoint), ("certificate", "a.crt", CERTIFICATE)];
    let (status, body) = server.form("POST", &path, &token, &parts("own", "http://backend:9000/other"));
    assert_eq!((status, &body["alias"]), (201, &json!("own")), "{body}");
    assert!(server.served_files().contains(&"Endpoint-certificates/own.crt".to_owned()), "{:?}", server.served_files());
    assert_eq!(server.form("POST", &path, &token, &parts("own", "http://backend:9000")).0, 409);
    assert_eq!(server.form("POST", &path, &token, &parts("other", "https://elsewhere")).0, 201);
    assert_eq!(server.form("POST", &path, &token, &[("alias", "", "x"), ("endpoint", "", "http://y")]).0, 400);
    let broken = [("alias", "", "x"), ("endpoint", "", "http://y"), ("certificate", "a.crt", "text")];
    assert_eq!(server.form("POST", &path, &token, &broken).0, 400);
    let listed = server.expect(200, "GET", &format!("{path}?alias=own"), &token, &Value::Null);
    assert_eq!(listed["certificates"], json!([{"alias": "own", "endpoint": "http://backend:9000/other"}]));
    let known = server.expect(200, "GET", &format!("{path}/own"), &token, &Value::Null);
    assert_eq!((&known["subject"], &known["status"]), (&json!("CN=backend.example"), &json!("Active")));
    let usage = server.expect(200, "GET", &format!("{path}/own/usage"), &token, &Value::Null);
    assert_eq!((&usage["count"], &usage["list"][0]["name"]), (&json!(1), &json!("Orders")));
    server.expect(200, "DELETE", &format!("{path}/own"), &token, &Value::Null);
    assert!(!server.served_files().iter().any(|path| path.starts_with("Endpoint-certificates/")));
    server.expect(404, "GET", &format!("{path}/own"), &token, &Value::Null);
}

#[test]
fn certificates_of_clients_belong_to_a_key_type_and_a_plan() {
    let server = Server::start();
    let token = server.admin();
    let id = server.published(&token, "Orders", "/orders");
    let path = format!("{PUBLISHER}/apis/{id}/client-certs/SANDBOX");
    let parts = |tier| [("alias", "", "shop"), ("tier", "", tier), ("certificate", "a.crt", CERTIFICATE)];
    assert_eq!(server.form("POST", &path, &token, &parts("Nothing")).1["code"], 900_305);
    assert_eq!(server.form("POST", &path, &token, &parts("Gold")).0, 201);
    assert_eq!(server.form("POST", &path, &token, &parts("Gold")).0, 409);
    assert!(server.served_files().contains(&"Client-certificates/SANDBOX/shop.crt".to_owned()));
    let production =
        server.expect(200, "GET", &format!("{PUBLISHER}/apis/{id}/client-certificates"), &token, &Value::Null);
    assert_eq!(production["count"], 0);
    let (status, body) = server.form("PUT", &format!("{path}/shop"), &token, &[("tier", "", "Bronze")]);
    assert_eq!((status, &body["tier"]), (200, &json!("Bronze")));
    let wrong = format!("{PUBLISHER}/apis/{id}/client-certs/OTHER");
    server.expect(400, "GET", &wrong, &token, &Value::Null);
    server.expect(200, "DELETE", &format!("{path}/shop"), &token, &Value::Null);
    server.expect(404, "GET", &format!("{path}/shop"), &token, &Value::Null);
}

#[test]
fn comments_have_replies_and_owners() {
    let server = Server::start();
    let token = server.admin();
    let id = server.published(&token, "Orders", "/orders");
    server.add_user("anna", "Internal/subscriber");
    let anna = server.token("anna", "password", "apim:subscribe");
    let path = format!("{DEVPORTAL}/apis/{id}/comments");
    let first = server.expect(201, "POST", &path, &anna, &json!({"content": "good"}));
    assert_eq!((&first["createdBy"], &first["entryPoint"]), (&json!("anna"), &json!("devPortal")));
    let comment = text(&first["id"]);
    let in_publisher = format!("{PUBLISHER}/apis/{id}/comments");
    let reply = format!("{in_publisher}?replyTo={comment}");
    let reply = server.expect(201, "POST", &reply, &token, &json!({"content": "thanks", "category": "general"}));
    let again = format!("{path}?replyTo={}", text(&reply["id"]));
    server.expect(400, "POST", &again, &anna, &json!({"content": "reply to a reply"}));
    server.expect(400, "POST", &path, &anna, &json!({"content": "x".repeat(513)}));
    server.expect(400, "POST", &path, &anna, &json!({}));
    let listed = server.expect(200, "GET", &path, &anna, &Value::Null);
    assert_eq!((&listed["count"], &listed["list"][0]["replies"]["count"]), (&json!(1), &json!(1)));
    let foreign = format!("{path}/{}", text(&reply["id"]));
    assert_eq!(server.expect(403, "PATCH", &foreign, &anna, &json!({"content": "mine"}))["code"], 901_100);
    let own = format!("{path}/{comment}");
    assert_eq!(server.expect(200, "PATCH", &own, &anna, &json!({"content": "very good"}))["content"], "very good");
    server.expect(200, "DELETE", &own, &anna, &Value::Null);
    assert_eq!(server.expect(404, "GET", &foreign, &anna, &Value::Null)["code"], 901_102);
}

#[test]
fn ratings_have_an_average_that_lists_show() {
    let server = Server::start();
    let token = server.admin();
    let id = server.published(&token, "Orders", "/orders");
    server.add_user("anna", "Internal/subscriber");
    let anna = server.token("anna", "password", "apim:subscribe");
    let path = format!("{DEVPORTAL}/apis/{id}/user-rating");
    server.expect(200, "PUT", &path, &token, &json!({"rating": 5}));
    server.expect(200, "PUT", &path, &anna, &json!({"rating": 1}));
    server.expect(200, "PUT", &path, &anna, &json!({"rating": 2}));
    assert_eq!(server.expect(400, "PUT", &path, &anna, &json!({"rating": 6}))["code"], 900_325);
    let listed = server.expect(200, "GET", &format!("{DEVPORTAL}/apis/{id}/ratings"), &anna, &Value::Null);
    assert_eq!((&listed["avgRating"], &listed["userRating"], &listed["count"]), (&json!("3.5"), &json!(2), &json!(2)));
    assert_eq!(
        server.expect(200, "GET", &format!("{DEVPORTAL}/apis"), &anna, &Value::Null)["list"][0]["avgRating"],
        "3.5"
    );
    server.expect(200, "DELETE", &path, &anna, &Value::Null);
    assert_eq!(server.expect(200, "GET", &path, &anna, &Value::Null)["rating"], 0);
    // The document of the API does not show what is kept with it.
    let api = server.expect(200, "GET", &format!("{PUBLISHER}/apis/{id}"), &token, &Value::Null);
    assert_eq!(api.get("avgRating"), None);
    server.expect(200, "PUT", &format!("{PUBLISHER}/apis/{id}"), &token, &api);
    assert_eq!(
        server.expect(200, "GET", &format!("{DEVPORTAL}/apis"), &anna, &Value::Null)["list"][0]["avgRating"],
        "5.0"
    );
}

#[test]
fn labels_are_attached_renamed_and_kept_while_they_are_used() {
    let server = Server::start();
    let token = server.admin();
    let id = text(&server.expect(201, "POST", &format!("{PUBLISHER}/apis"), &token, &api("Orders", "/orders"))["id"]);
    let label = server.expect(201, "POST", &format!("{ADMIN}/labels"), &token, &json!({"name": "red"}));
    let label = text(&label["id"]);
    assert_eq!(
        server.expect(409, "POST", &format!("{ADMIN}/labels"), &token, &json!({"name": "Red"}))["code"],
        900_650
    );
    let (attach, detach) =
        (format!("{PUBLISHER}/apis/{id}/attach-labels"), format!("{PUBLISHER}/apis/{id}/detach-labels"));
    let body = server.expect(200, "POST", &attach, &token, &json!({"labels": [label]}));
    assert_eq!(body["list"][0]["name"], "red");
    server.expect(404, "POST", &attach, &token, &json!({"labels": ["nothing"]}));
    let path = format!("{ADMIN}/labels/{label}");
    server.expect(409, "DELETE", &path, &token, &Value::Null);
    server.expect(200, "PUT", &path, &token, &json!({"name": "blue"}));
    let found = server.expect(200, "GET", &format!("{PUBLISHER}/apis?query=label:blue"), &token, &Value::Null);
    assert_eq!(found["count"], 1);
    assert_eq!(server.expect(200, "GET", &format!("{path}/usage"), &token, &Value::Null)["apis"]["count"], 1);
    server.expect(200, "POST", &detach, &token, &json!({"labels": [label]}));
    server.expect(200, "DELETE", &path, &token, &Value::Null);
}

#[test]
fn custom_policies_are_kept() {
    let server = Server::start();
    let token = server.admin();
    let path = format!("{ADMIN}/throttling/policies/custom");
    let rule = json!({"policyName": "one", "siddhiQuery": "FROM RequestStream", "keyTemplate": "$userId:$apiContext"});
    let added = server.expect(201, "POST", &path, &token, &rule);
    assert_eq!((&added["type"], &added["isDeployed"]), (&json!("CustomRule"), &json!(false)));
    server.expect(409, "POST", &path, &token, &rule);
    let wrong = json!({"policyName": "two", "siddhiQuery": "x", "keyTemplate": "$nothing"});
    server.expect(400, "POST", &path, &token, &wrong);
    let found = server.expect(
        200,
        "GET",
        &format!("{ADMIN}/throttling/policies/search?query=type:global"),
        &token,
        &Value::Null,
    );
    assert_eq!((&found["count"], &found["list"][0]["type"]), (&json!(1), &json!("global")));
    let exported = server.expect(
        200,
        "GET",
        &format!("{ADMIN}/throttling/policies/export?name=one&type=global"),
        &token,
        &Value::Null,
    );
    assert_eq!(exported["subtype"], "custom rule");
    server.expect(200, "DELETE", &format!("{path}/{}", text(&added["policyId"])), &token, &Value::Null);
    let again = exported.to_string();
    let (status, _) =
        server.form("POST", &format!("{ADMIN}/throttling/policies/import"), &token, &[("file", "p.json", &again)]);
    assert_eq!(status, 201);
}

#[test]
fn the_gateway_api_withdraws_an_api_and_serves_it_again() {
    let server = Server::start();
    let token = server.admin();
    server.published(&token, "Orders", "/orders");
    let admin = basic("admin", "admin");
    let call = |method: &str, target: &str| {
        let response = server.send(method, &format!("/api/am/gateway/v2{target}"), &admin, "application/json", "");
        (response.status, serde_json::from_slice::<Value>(&response.body).unwrap_or_default())
    };
    assert_eq!(call("GET", "/server-startup-healthcheck").0, 200);
    let (_, apis) = call("GET", "/apis");
    assert_eq!((&apis["count"], &apis["list"][0]["context"]), (&json!(1), &json!("/orders/1.0.0")));
    let id = text(&apis["list"][0]["apiUUID"]);
    assert_eq!(call("GET", &format!("/apis/{id}")).1["urlMappings"][0]["httpMethod"], "POST");
    assert_eq!(call("GET", "/apis?context=/orders").0, 400);
    let (status, body) = call("POST", "/undeploy-api?apiName=Orders&version=1.0.0");
    assert_eq!((status, &body["deployStatus"]), (200, &json!("UNDEPLOYED")));
    assert!(server.gateway.served.lock().unwrap().apis.is_empty());
    assert_eq!(call("GET", "/apis").1["count"], 0);
    assert_eq!(call("POST", "/redeploy-api?apiName=Orders&version=1.0.0").1["deployStatus"], "DEPLOYED");
    assert_eq!(server.gateway.served.lock().unwrap().apis.len(), 1);
    assert_eq!(call("POST", "/redeploy-api?apiName=Nothing&version=1.0.0").0, 404);
}

#[test]
fn services_of_the_catalog_have_definitions_and_hashes() {
    let server = Server::start();
    let token = server.token("admin", "admin", "service_catalog:service_view service_catalog:service_write");
    let path = "/api/am/service-catalog/v1/services";
    let metadata = json!({"name": "Stock", "version": "1.0.0", "definitionType": "OAS3", "serviceUrl": "http://stock"});
    let definition =
        json!({"openapi": "3.0.1", "info": {"title": "Stock", "version": "1.0.0"}, "paths": {}}).to_string();
    let metadata_text = metadata.to_string();
    let parts = [("serviceMetadata", "", metadata_text.as_str()), ("definitionFile", "d.json", definition.as_str())];
    let (status, added) = server.form("POST", path, &token, &parts);
    assert_eq!((status, &added["serviceKey"]), (200, &json!("Stock-1.0.0")), "{added}");
    assert_eq!(server.form("POST", path, &token, &parts).0, 409);
    assert_eq!(server.form("POST", path, &token, &parts[..1]).0, 400);
    let wrong = [("serviceMetadata", "", metadata_text.as_str()), ("inlineContent", "", "{\"swagger\": \"2.0\"}")];
    assert_eq!(server.form("POST", path, &token, &wrong).0, 400);
    let found = server.expect(200, "GET", &format!("{path}?key=Stock-1.0.0&shrink=true"), &token, &Value::Null);
    assert_eq!((&found["list"][0]["md5"], found["list"][0].get("serviceUrl")), (&added["md5"], None));
    let own = format!("{path}/{}", text(&added["id"]));
    assert_eq!(server.expect(200, "GET", &format!("{own}/definition"), &token, &Value::Null)["openapi"], "3.0.1");
    assert_eq!(server.expect(200, "GET", &format!("{own}/usage"), &token, &Value::Null)["count"], 0);
    let changed = metadata_text.replace("http://stock", "https://stock");
    let parts = [("serviceMetadata", "", changed.as_str()), ("inlineContent", "", definition.as_str())];
    let (status, updated) = server.form("PUT", &own, &token, &parts);
    assert_eq!((status, &updated["serviceUrl"]), (200, &json!("https://stock")));
    assert_ne!(updated["md5"], added["md5"]);
    server.expect(204, "DELETE", &own, &token, &Value::Null);
    server.expect(404, "GET", &own, &token, &Value::Null);
}

#[test]
fn conditional_groups_limit_some_requests() {
    let server = Server::start();
    let token = server.admin();
    let limit = |count: u64| json!({"type": "REQUESTCOUNTLIMIT", "requestCount": {"timeUnit": "min", "unitTime": 1, "requestCount": count}});
    let ip = json!({"ipConditionType": "IPRANGE", "startingIP": "10.0.0.1", "endingIP": "10.0.0.9"});
    let header = json!({"headerName": "X-Partner", "headerValue": "a: b;c"});
    let groups = json!([{"description": "partners", "limit": limit(3), "conditions": [
        {"type": "IPCONDITION", "invertCondition": true, "ipCondition": ip},
        {"type": "HEADERCONDITION", "invertCondition": false, "headerCondition": header},
    ]}]);
    let policy = json!({"policyName": "grouped", "defaultLimit": limit(9), "conditionalGroups": groups});
    let path = "/api/am/admin/v4/throttling/policies/advanced";
    let made = server.expect(201, "POST", path, &token, &policy);
    assert_eq!(made["conditionalGroups"], groups);
    let plans = server.gateway.served.lock().unwrap().plans.clone();
    let plan = plans.iter().find(|plan| plan.name == "grouped").unwrap();
    let expected = r"9/1min; not ip 10.0.0.1-10.0.0.9 and header X-Partner=a\x3a\x20b\x3bc: 3/1min";
    assert_eq!(plan.text, expected);
    for conditions in [
        json!([]),
        json!([{"type": "UNKNOWN"}]),
        json!([{"type": "IPCONDITION", "ipCondition": {"ipConditionType": "IPSPECIFIC", "specificIP": "10.0.0.300"}}]),
        json!([{"type": "HEADERCONDITION", "headerCondition": {"headerName": "a=b", "headerValue": "x"}}]),
        json!([{"type": "QUERYPARAMETERCONDITION", "queryParameterCondition": {"parameterName": "a", "parameterValue": "("}}]),
    ] {
        let groups = json!([{"limit": limit(3), "conditions": conditions}]);
        let policy = json!({"policyName": "wrong", "defaultLimit": limit(9), "conditionalGroups": groups});
        server.expect(400, "POST", path, &token, &policy);
    }
}
