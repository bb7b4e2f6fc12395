//! Requests that wait for approval, and settings of organizations.

use serde_json::json;

use super::*;

const ADMIN: &str = "/api/am/admin/v4";
const PORTAL: &str = "/api/am/devportal/v3";

/// A server on which requests of all types wait.
fn server_with_approval() -> (Server, String) {
    let server = Server::start();
    let token = server.admin();
    let all: Value = crate::workflow::TYPES.iter().map(|name| ((*name).to_owned(), json!(true))).collect();
    server.expect(200, "PUT", &format!("{ADMIN}/tenant-config"), &token, &json!({"Workflows": all}));
    (server, token)
}

impl Server {
    /// The reference of the only request of a type that waits.
    fn waiting(&self, token: &str, workflow: &str) -> String {
        let path = format!("{ADMIN}/workflows?workflowType={workflow}");
        let list = self.expect(200, "GET", &path, token, &Value::Null);
        assert_eq!((&list["count"], &list["list"][0]["workflowStatus"]), (&json!(1), &json!("CREATED")));
        text(&list["list"][0]["referenceId"])
    }

    fn complete(&self, token: &str, workflow: &str, status: &str) {
        let reference = self.waiting(token, workflow);
        let path = format!("{ADMIN}/workflows/update-workflow-status?workflowReferenceId={reference}");
        let body = json!({"status": status, "attributes": {}, "description": "checked"});
        assert_eq!(self.expect(200, "POST", &path, token, &body)["status"], status);
        assert_eq!(self.expect(400, "POST", &path, token, &body)["code"], 900_552);
        let path = format!("{ADMIN}/workflows/{reference}");
        assert_eq!(self.expect(200, "GET", &path, token, &Value::Null)["workflowStatus"], status);
    }
}

#[test]
fn applications_keys_and_subscriptions_wait_for_approval() {
    let (server, token) = server_with_approval();
    let api = json!({"name": "Echo", "context": "/echo", "version": "1.0.0", "policies": ["Gold"],
        "endpointConfig": {"endpoint_type": "http", "production_endpoints": {"url": "http://backend/"}}});
    let api = text(&server.expect(201, "POST", "/api/am/publisher/v4/apis", &token, &api)["id"]);
    let publish = format!("/api/am/publisher/v4/apis/change-lifecycle?action=Publish&apiId={api}");
    let waiting = server.expect(200, "POST", &publish, &token, &Value::Null);
    assert_eq!(
        (&waiting["workflowStatus"], &waiting["lifecycleState"]["state"]),
        (&json!("CREATED"), &json!("Created"))
    );
    assert_eq!(server.expect(409, "POST", &publish, &token, &Value::Null)["code"], 900_553);
    server.complete(&token, "API_STATE", "APPROVED");
    let path = format!("/api/am/publisher/v4/apis/{api}");
    assert_eq!(server.expect(200, "GET", &path, &token, &Value::Null)["lifeCycleStatus"], "PUBLISHED");

    let body = json!({"name": "Shop", "throttlingPolicy": "Unlimited"});
    let made = server.expect(201, "POST", &format!("{PORTAL}/applications"), &token, &body);
    assert_eq!(made["status"], "CREATED");
    let application = text(&made["applicationId"]);
    let keys = format!("{PORTAL}/applications/{application}/generate-keys");
    let wanted = json!({"keyType": "PRODUCTION", "grantTypesToBeSupported": ["client_credentials"]});
    assert_eq!(server.expect(409, "POST", &keys, &token, &wanted)["code"], 900_553);
    let is_known = || server.gateway.access.lock().unwrap().applications.iter().any(|known| *known.name == *"Shop");
    assert!(!is_known());
    server.complete(&token, "APPLICATION_CREATION", "APPROVED");
    assert!(is_known());

    let pending = server.expect(200, "POST", &keys, &token, &wanted);
    assert_eq!((&pending["keyState"], &pending["consumerKey"]), (&json!("CREATED"), &Value::Null));
    server.complete(&token, "APPLICATION_REGISTRATION_PRODUCTION", "APPROVED");
    let path = format!("{PORTAL}/applications/{application}/keys/PRODUCTION");
    let granted = server.expect(200, "GET", &path, &token, &Value::Null);
    let client = (text(&granted["consumerKey"]), text(&granted["consumerSecret"]));
    assert_eq!(server.token_response(&client, "grant_type=client_credentials").0, 200);

    let body = json!({"apiId": api, "applicationId": application, "throttlingPolicy": "Gold"});
    let made = server.expect(201, "POST", &format!("{PORTAL}/subscriptions"), &token, &body);
    assert_eq!(made["status"], "ON_HOLD");
    server.complete(&token, "SUBSCRIPTION_CREATION", "REJECTED");
    let path = format!("{PORTAL}/subscriptions/{}", text(&made["subscriptionId"]));
    assert_eq!(server.expect(200, "GET", &path, &token, &Value::Null)["status"], "REJECTED");
    let list = server.expect(200, "GET", &format!("{ADMIN}/workflows"), &token, &Value::Null);
    assert_eq!(list["count"], 0, "completed requests are not listed");
}

#[test]
fn a_deployment_waits_for_approval() {
    let (server, token) = server_with_approval();
    let api = json!({"name": "Echo", "context": "/echo", "version": "1.0.0",
        "endpointConfig": {"endpoint_type": "http", "production_endpoints": {"url": "http://backend/"}}});
    let path = text(&server.expect(201, "POST", "/api/am/publisher/v4/apis", &token, &api)["id"]);
    let path = format!("/api/am/publisher/v4/apis/{path}");
    let revision = text(&server.expect(201, "POST", &format!("{path}/revisions"), &token, &json!({}))["id"]);
    let deploy = format!("{path}/deploy-revision?revisionId={revision}");
    let target = json!([{"name": "Default", "vhost": "localhost"}]);
    let waiting = server.expect(201, "POST", &deploy, &token, &target);
    assert_eq!((&waiting[0]["status"], &waiting[0]["name"]), (&json!("CREATED"), &json!("Default")));
    assert!(server.gateway.served.lock().unwrap().apis.is_empty());
    let cancel = format!("{path}/cancel-revision-workflow/{revision}/Default");
    server.expect(200, "DELETE", &cancel, &token, &Value::Null);
    assert_eq!(server.expect(412, "DELETE", &cancel, &token, &Value::Null)["code"], 900_557);
    server.expect(201, "POST", &deploy, &token, &target);
    server.complete(&token, "REVISION_DEPLOYMENT", "APPROVED");
    assert_eq!(server.gateway.served.lock().unwrap().apis.len(), 1);
    let deployments = server.expect(200, "GET", &format!("{path}/deployments"), &token, &Value::Null);
    assert_eq!((&deployments["count"], &deployments["list"][0]["status"]), (&json!(1), &json!("APPROVED")));
}

#[test]
fn roles_of_scopes_are_set() {
    let server = Server::start();
    let token = server.admin();
    server.add_user("anna", "Internal/subscriber");
    let scopes = format!("{ADMIN}/system-scopes");
    let has = |scope: &str| {
        let client = server.register("anna", "password");
        let form = format!("grant_type=password&username=anna&password=password&scope={}", encode(scope));
        server.token_response(&client, &form).1["scope"] == scope
    };
    assert!(!has("apim:api_view"));
    let body = json!({"count": 1, "list": [{"name": "apim:api_view", "roles": ["Internal/subscriber"]}]});
    let set = server.expect(200, "PUT", &scopes, &token, &body);
    let of_view = set["list"].as_array().unwrap().iter().find(|scope| scope["name"] == "apim:api_view").unwrap();
    assert_eq!(of_view["roles"], json!(["admin", "Internal/subscriber"]));
    assert!(has("apim:api_view"));
    let encoded = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode("apim:api_view");
    let of_user = format!("{scopes}/{encoded}?username=anna");
    assert_eq!(server.expect(200, "GET", &of_user, &token, &Value::Null)["name"], "apim:api_view");
    let body = json!({"list": [{"role": "Internal/creator", "aliases": ["Internal/subscriber"]}]});
    assert!(!has("apim:api_create"));
    server.expect(200, "PUT", &format!("{scopes}/role-aliases"), &token, &body);
    assert!(has("apim:api_create"), "a subscriber counts as a creator now");
    let unknown = json!({"list": [{"name": "apim:nothing", "roles": []}]});
    server.expect(400, "PUT", &scopes, &token, &unknown);
}

#[test]
fn settings_and_organizations_are_kept() {
    let server = Server::start();
    let token = server.admin();
    let config = format!("{ADMIN}/tenant-config");
    server.expect(400, "PUT", &config, &token, &json!({"Workflows": {"NOTHING": true}}));
    server.expect(200, "PUT", &config, &token, &json!({"Workflows": {}, "Own": {"a": 1}}));
    assert_eq!(server.expect(200, "GET", &config, &token, &Value::Null)["Own"]["a"], 1);
    let path = format!("{ADMIN}/organizations");
    let body = json!({"externalOrganizationId": "acme", "displayName": "Acme"});
    let made = server.expect(201, "POST", &path, &token, &body);
    server.expect(409, "POST", &path, &token, &body);
    let one = format!("{path}/{}", text(&made["organizationId"]));
    let changed = json!({"externalOrganizationId": "acme", "displayName": "Acme Inc"});
    assert_eq!(server.expect(200, "PUT", &one, &token, &changed)["displayName"], "Acme Inc");
    server.expect(200, "DELETE", &one, &token, &Value::Null);
    server.expect(404, "GET", &one, &token, &Value::Null);
    let info = server.expect(200, "GET", &format!("{ADMIN}/tenant-info/anna@carbon.super"), &token, &Value::Null);
    assert_eq!((&info["username"], &info["tenantId"]), (&json!("anna"), &json!(-1234)));
    let gateways = server.expect(200, "GET", &format!("{ADMIN}/environments/Default/gateways"), &token, &Value::Null);
    assert_eq!(gateways["list"][0]["status"], "ACTIVE");
    let body = json!({"currentPassword": "wrong", "newPassword": "another"});
    let path = format!("{PORTAL}/me/change-password");
    assert_eq!(server.expect(400, "POST", &path, &token, &body)["code"], 901_451);
    let body = json!({"currentPassword": "admin", "newPassword": "a b c d e"});
    assert_eq!(server.expect(400, "POST", &path, &token, &body)["code"], 901_452);
    let body = json!({"currentPassword": "admin", "newPassword": "another"});
    server.expect(200, "POST", &path, &token, &body);
    server.token("admin", "another", "apim:admin");
    let tenants = server.send("GET", &format!("{PORTAL}/tenants?state=active"), "", "", "").body;
    let tenants: Value = serde_json::from_slice(&tenants).unwrap();
    assert_eq!(tenants["list"][0]["domain"], "carbon.super");
}

#[test]
fn log_levels_are_kept() {
    let server = Server::start();
    let token = server.admin();
    let api = server.published(&token, "Echo", "/echo");
    let send = |method: &str, path: &str, body: Value| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let path = format!("/api/am/devops/v0{path}");
        let response = server.send(method, &path, &basic("admin", "admin"), "application/json", &body);
        (response.status, serde_json::from_slice::<Value>(&response.body).unwrap_or_default())
    };
    let one = format!("/tenant-logs/carbon.super/apis/{api}");
    let (_, before) = send("GET", "/tenant-logs/carbon.super/apis", Value::Null);
    assert_eq!(before["apis"][0], json!({"context": "/echo/1.0.0", "logLevel": "OFF", "apiId": api}));
    assert_eq!(send("PUT", &one, json!({"logLevel": "loud"})).1["code"], 901_401);
    assert_eq!(send("PUT", &one, json!({"logLevel": "full"})).1["apis"][0]["logLevel"], "FULL");
    let of_resource = json!({"logLevel": "basic", "resourceMethod": "post", "resourcePath": "/*"});
    send("PUT", &one, of_resource);
    let (_, after) = send("GET", &one, Value::Null);
    assert_eq!((&after["apis"][0]["logLevel"], &after["apis"][1]["resourceMethod"]), (&json!("FULL"), &json!("POST")));
    assert_eq!(
        send("GET", "/tenant-logs/carbon.super/apis?log-level=basic", Value::Null).1["apis"].as_array().unwrap().len(),
        1
    );
    assert_eq!(send("GET", "/tenant-logs/unknown.com/apis", Value::Null).0, 404);
    let body = json!({"components": [{"name": "http", "enabled": "true", "properties": []}]});
    assert_eq!(send("PUT", "/config/correlation", body).0, 200);
    let (_, components) = send("GET", "/config/correlation/", Value::Null);
    assert_eq!(components["components"][0], json!({"name": "http", "enabled": "true", "properties": []}));
    let body = json!({"components": [{"name": "unknown", "enabled": "true"}]});
    assert_eq!(send("PUT", "/config/correlation", body).1["code"], 902_021);
}
