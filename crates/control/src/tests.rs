//! The REST APIs without sockets: a store in a folder of its own, and a gateway that notes what it is given.

mod api_keys;
mod approval;
mod bodies;
mod definitions;
mod foreign;
mod key_managers;
mod mcp;
mod oauth;
mod resources;
mod scim;
mod soap;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use penstock_catalog::{Access, AccessChange};
use serde_json::{Value, json};

use crate::host::{FetchError, FetchRequest, Fetched, Host, Login, Prepared, Snapshot};
use crate::http::{Request, Response, encode};
use crate::identity::keys::test_key;
use crate::identity::scopes::full;
use crate::route::{self, Routes};
use crate::store::{Scratch, scratch};
use crate::{Control, ControlConfig, PasswordCost};

/// What a gateway was given.
#[derive(Default)]
struct Gateway {
    served: Arc<Mutex<Snapshot>>,
    access: Mutex<Access>,
    revoked: Mutex<Vec<String>>,
    errors: Mutex<Vec<String>>,
    /// What addresses respond with.
    web: Mutex<Vec<(String, String)>>,
    /// Method, address and `Authorization` of requests to other servers, and their bodies.
    fetched: Mutex<Vec<String>>,
}

impl Host for Gateway {
    fn login(&self, _: &str, _: IpAddr, verify: &mut dyn FnMut() -> bool) -> Login {
        if verify() { Login::Accepted } else { Login::Refused }
    }

    fn parse_yaml(&self, text: &[u8]) -> Result<Value, String> {
        serde_json::from_slice(text).map_err(|error| error.to_string())
    }

    fn fetch(&self, request: &FetchRequest<'_>) -> Result<Fetched, FetchError> {
        let authorization =
            request.headers.iter().find(|(name, _)| *name == "Authorization").map_or("", |(_, value)| *value);
        let body = String::from_utf8_lossy(&request.body);
        self.fetched.lock().unwrap().push(format!("{} {} {authorization} {body}", request.method, request.url));
        let found = self.web.lock().unwrap().iter().find(|(url, _)| url == request.url).map(|(_, body)| body.clone());
        let body = found.ok_or_else(|| FetchError::NotAllowed(request.url.to_owned()))?;
        Ok(Fetched { status: 200, headers: Vec::new(), body: body.into() })
    }

    fn unzip(&self, _: Bytes) -> Result<Vec<(String, Bytes)>, String> {
        Err("archives are read by the server".to_owned())
    }

    fn prepare(&self, snapshot: &Snapshot) -> Result<Prepared, Vec<String>> {
        let broken = |name: &str| snapshot.apis.iter().any(|api| api.name.starts_with(name));
        if broken("Broken") {
            return Err(vec!["api.yaml:1:1: broken".to_owned()]);
        }
        let (served, snapshot) = (self.served.clone(), snapshot.clone());
        Ok(Box::new(move || *served.lock().unwrap() = snapshot))
    }

    fn set_access(&self, access: Access) {
        *self.access.lock().unwrap() = access;
    }

    fn change_access(&self, steps: Vec<AccessChange>) {
        let mut access = self.access.lock().unwrap();
        for step in steps {
            match step {
                AccessChange::Application(application) => access.applications.push(application),
                AccessChange::NoApplication(id) => access.applications.retain(|known| known.id != id),
                AccessChange::Key(key) => access.keys.push(key),
                AccessChange::NoKey(key) => access.keys.retain(|known| *known != key),
                AccessChange::Subscription(subscription) => access.subscriptions.push(subscription),
                AccessChange::NoSubscription(gone) => access.subscriptions.retain(|known| *known != gone),
            }
        }
    }

    fn revoke(&self, id: &str, _: u64) {
        self.revoked.lock().unwrap().push(id.to_owned());
    }

    fn reset_application_plan(&self, application: &str, user: &str) {
        self.errors.lock().unwrap().push(format!("reset {application} {user}"));
    }

    fn report_error(&self, text: &str) {
        self.errors.lock().unwrap().push(text.to_owned());
    }
}

/// A control plane with `admin`/`admin`.
struct Server {
    control: Arc<Control>,
    gateway: Arc<Gateway>,
    folder: Scratch,
}

fn config(folder: &Scratch) -> ControlConfig {
    ControlConfig {
        folder: folder.0.clone(),
        hostname: "localhost".to_owned(),
        port: 9443,
        gateway_ports: (8280, 8243),
        admin_password: Some("admin".to_owned()),
        signing_key: Some(test_key()),
        password_cost: PasswordCost { memory_kib: 8, passes: 1 },
    }
}

impl Server {
    fn start() -> Server {
        let folder = scratch("server");
        let gateway = Arc::new(Gateway::default());
        let control = Control::open(config(&folder), gateway.clone()).unwrap().control;
        Server { control, gateway, folder }
    }

    fn send(&self, method: &str, target: &str, authorization: &str, content_type: &str, body: &str) -> Response {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut headers = vec![("content-type".to_owned(), content_type.to_owned())];
        if !authorization.is_empty() {
            headers.push(("Authorization".to_owned(), authorization.to_owned()));
        }
        self.control.respond(&Request {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers,
            body: Bytes::copy_from_slice(body.as_bytes()),
            client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        })
    }

    /// The status and the JSON body of a response.
    fn call(&self, method: &str, target: &str, token: &str, body: &Value) -> (u16, Value) {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let response = self.send(method, target, &format!("Bearer {token}"), "application/json", &text);
        (response.status, serde_json::from_slice(&response.body).unwrap_or_default())
    }

    /// The same, with the status that is expected.
    fn expect(&self, status: u16, method: &str, target: &str, token: &str, body: &Value) -> Value {
        let (got, response) = self.call(method, target, token, body);
        let errors = self.gateway.errors.lock().unwrap().join("; ");
        assert_eq!(got, status, "{method} {target}: {response} {errors}");
        response
    }

    fn register(&self, user: &str, password: &str) -> (String, String) {
        let body = json!({
            "callbackUrl": "https://client", "clientName": format!("client_of_{user}"), "owner": user,
            "grantType": "password client_credentials refresh_token", "saasApp": true,
        });
        let response = self.send(
            "POST",
            "/client-registration/v0.17/register",
            &basic(user, password),
            "application/json",
            &body.to_string(),
        );
        assert_eq!(response.status, 200);
        let body: Value = serde_json::from_slice(&response.body).unwrap();
        (text(&body["clientId"]), text(&body["clientSecret"]))
    }

    fn token_response(&self, client: &(String, String), form: &str) -> (u16, Value) {
        let authorization = basic(&client.0, &client.1);
        let response = self.send("POST", "/oauth2/token", &authorization, "application/x-www-form-urlencoded", form);
        (response.status, serde_json::from_slice(&response.body).unwrap())
    }

    fn token(&self, user: &str, password: &str, scopes: &str) -> String {
        let client = self.register(user, password);
        let form = format!("grant_type=password&username={user}&password={password}&scope={}", encode(scopes));
        let (status, body) = self.token_response(&client, &form);
        assert_eq!(status, 200, "{body}");
        text(&body["access_token"])
    }

    fn admin(&self) -> String {
        let scopes = "apim:api_create apim:api_publish apim:api_view apim:api_delete apim:api_manage apim:subscribe \
                      apim:app_manage apim:sub_manage apim:admin apim:shared_scope_manage \
                      apim:common_operation_policy_manage apim:comment_write";
        self.token("admin", "admin", scopes)
    }

    fn add_user(&self, name: &str, role: &str) {
        let body = format!(
            "<e:Envelope><e:Body><s:addUser><s:userName>{name}</s:userName><s:credential>password</s:credential>\
             <s:roleList>{role}</s:roleList></s:addUser></e:Body></e:Envelope>"
        );
        let path = "/services/RemoteUserStoreManagerService";
        let response = self.send("POST", path, &basic("admin", "admin"), "text/xml", &body);
        assert_eq!(response.status, 500, "without an action no operation runs");
        let mut request = Request {
            method: "POST".to_owned(),
            path: path.to_owned(),
            query: String::new(),
            headers: vec![("Authorization".to_owned(), basic("admin", "admin"))],
            body: body.into(),
            client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        request.headers.push(("SOAPAction".to_owned(), "urn:addUser".to_owned()));
        assert_eq!(self.control.respond(&request).status, 202);
    }

    /// An API that is deployed and published; its id.
    fn published(&self, token: &str, name: &str, context: &str) -> String {
        let api = self.expect(201, "POST", "/api/am/publisher/v4/apis", token, &api(name, context));
        let id = text(&api["id"]);
        self.deploy(token, &id);
        let path = format!("/api/am/publisher/v4/apis/change-lifecycle?action=Publish&apiId={id}");
        let changed = self.expect(200, "POST", &path, token, &Value::Null);
        assert_eq!(changed["lifecycleState"]["state"], "Published");
        id
    }

    fn deploy(&self, token: &str, id: &str) -> String {
        self.deploy_at(token, "apis", id)
    }

    /// Deploys an API, a product or an MCP server; the id of the revision.
    fn deploy_at(&self, token: &str, kind: &str, id: &str) -> String {
        let path = format!("/api/am/publisher/v4/{kind}/{id}/revisions");
        let revision = text(&self.expect(201, "POST", &path, token, &json!({"description": "first"}))["id"]);
        let path = format!("/api/am/publisher/v4/{kind}/{id}/deploy-revision?revisionId={revision}");
        let targets = json!([{"name": "Default", "vhost": "localhost", "displayOnDevportal": true}]);
        let deployments = self.expect(201, "POST", &path, token, &targets);
        assert_eq!(deployments[0]["revisionUuid"], revision.as_str());
        revision
    }
}

fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

fn api(name: &str, context: &str) -> Value {
    let endpoint = json!({"url": "http://backend:9000/"});
    json!({
        "name": name, "context": context, "version": "1.0.0", "policies": ["Unlimited", "Gold"],
        "endpointConfig": {"endpoint_type": "http", "production_endpoints": endpoint, "sandbox_endpoints": endpoint},
        "operations": [{"target": "/*", "verb": "POST", "throttlingPolicy": "Unlimited"}],
    })
}

#[test]
fn an_api_is_published_subscribed_to_and_served() {
    let server = Server::start();
    let token = server.admin();
    let found = server.expect(200, "GET", "/api/am/publisher/v4/apis?query=name:Echo$", &token, &Value::Null);
    assert_eq!(found["count"], 0);
    let id = server.published(&token, "Echo", "/echo");
    let served = server.gateway.served.lock().unwrap().clone();
    assert_eq!(served.apis[0].name, "Echo-1.0.0");
    let descriptor: Value = serde_json::from_slice(&served.apis[0].files[0].1).unwrap();
    assert_eq!(descriptor["data"]["lifeCycleStatus"], "PUBLISHED");
    assert!(served.plans.iter().any(|plan| plan.name == "Gold" && plan.text == "5000/1min"));

    // A path without a version is the same.
    let application = json!({"name": "Shop", "throttlingPolicy": "Unlimited", "tokenType": "JWT", "attributes": {}});
    let application = server.expect(201, "POST", "/api/am/devportal/applications", &token, &application);
    let application = text(&application["applicationId"]);
    let path = format!("/api/am/devportal/v3/applications/{application}");
    let keys = server.send("GET", &format!("{path}/keys/PRODUCTION"), &format!("Bearer {token}"), "", "");
    assert_eq!((keys.status, keys.body.len()), (200, 0), "without keys the body is empty");
    let wanted =
        json!({"keyType": "PRODUCTION", "grantTypesToBeSupported": ["client_credentials"], "validityTime": 60});
    let keys = server.expect(200, "POST", &format!("{path}/generate-keys"), &token, &wanted);
    assert_eq!(keys["token"]["validityTime"], 60);
    assert_eq!(server.expect(409, "POST", &format!("{path}/generate-keys"), &token, &wanted)["code"], 901_409);
    let wanted = json!({"apiId": id, "applicationId": application, "throttlingPolicy": "Gold"});
    server.expect(201, "POST", "/api/am/devportal/v3/subscriptions", &token, &wanted);
    assert_eq!(server.expect(409, "POST", "/api/am/devportal/v3/subscriptions", &token, &wanted)["code"], 900_336);
    let access = server.gateway.access.lock().unwrap();
    let key = text(&keys["consumerKey"]);
    let of_key = access.keys.iter().find(|known| *known.key == *key).unwrap();
    assert_eq!(&*access.applications.iter().find(|one| one.id == of_key.application).unwrap().name, "Shop");
    let subscription = access.subscriptions.iter().find(|one| one.application == of_key.application).unwrap();
    assert_eq!((&*subscription.api, &*subscription.tier), ("Echo", "Gold"));
}

#[test]
fn a_deployed_revision_is_served_until_the_next_one() {
    let server = Server::start();
    let token = server.admin();
    let id = server.published(&token, "Orders", "/orders");
    let path = format!("/api/am/publisher/v4/apis/{id}");
    let mut api = server.expect(200, "GET", &path, &token, &Value::Null);
    api["operations"][0]["target"] = "/changed".into();
    api["securityScheme"] = Value::Null;
    let changed = server.expect(200, "PUT", &path, &token, &api);
    assert_eq!(changed["securityScheme"], json!(["oauth_basic_auth_api_key_mandatory", "oauth2"]));
    let target = || {
        let served = server.gateway.served.lock().unwrap();
        let descriptor: Value = serde_json::from_slice(&served.apis[0].files[0].1).unwrap();
        text(&descriptor["data"]["operations"][0]["target"])
    };
    assert_eq!(target(), "/*", "the working copy is not served");
    server.deploy(&token, &id);
    assert_eq!((target().as_str(), server.gateway.served.lock().unwrap().apis.len()), ("/changed", 1));
    let revisions = server.expect(200, "GET", &format!("{path}/revisions?query=deployed:true"), &token, &Value::Null);
    assert_eq!((&revisions["count"], &revisions["list"][0]["displayName"]), (&json!(1), &json!("Revision 2")));
    let undeploy = format!("{path}/undeploy-revision?revisionNumber=2");
    server.expect(201, "POST", &undeploy, &token, &Value::Null);
    assert!(server.gateway.served.lock().unwrap().apis.is_empty());
}

#[test]
fn a_change_publishes_what_it_touched_only() {
    let server = Server::start();
    let token = server.admin();
    let first = server.published(&token, "First", "/first");
    let served = || server.gateway.served.lock().unwrap().apis.clone();
    let before = served();
    let second = server.published(&token, "Second", "/second");
    assert!(served().len() == 2 && Arc::ptr_eq(&served()[0], &before[0]), "the other API is not made again");
    let lifecycle = "/api/am/publisher/v4/apis/change-lifecycle?action=Block&apiId=";
    server.expect(200, "POST", &format!("{lifecycle}{first}"), &token, &Value::Null);
    assert!(!Arc::ptr_eq(&served()[0], &before[0]) && served()[0].name == "First-1.0.0");

    let applications = "/api/am/devportal/v3/applications";
    let mut application = json!({"name": "Shop", "throttlingPolicy": "Unlimited"});
    let id = text(&server.expect(201, "POST", applications, &token, &application)["applicationId"]);
    application["name"] = "Store".into();
    server.expect(200, "PUT", &format!("{applications}/{id}"), &token, &application);
    let wanted = json!({"apiId": second, "applicationId": id, "throttlingPolicy": "Gold"});
    let made = server.expect(201, "POST", "/api/am/devportal/v3/subscriptions", &token, &wanted);
    let access = || server.gateway.access.lock().unwrap().clone();
    let names: Vec<String> = access().applications.iter().map(|known| known.name.to_string()).collect();
    assert!(names.contains(&"Store".to_owned()) && !names.contains(&"Shop".to_owned()), "{names:?}");
    assert_eq!(access().subscriptions.len(), 1);
    let subscription = format!("/api/am/devportal/v3/subscriptions/{}", text(&made["subscriptionId"]));
    server.expect(200, "DELETE", &subscription, &token, &Value::Null);
    assert!(access().subscriptions.is_empty());
    let changed = access();
    server.control.publish_access().unwrap();
    let sorted = |mut access: Access| {
        access.applications.sort_by(|one, other| one.id.cmp(&other.id));
        access
    };
    assert_eq!(sorted(access()), sorted(changed), "changes lead where a start would");
}

#[test]
fn a_revision_that_does_not_compile_is_not_deployed() {
    let server = Server::start();
    let token = server.admin();
    let api = server.expect(201, "POST", "/api/am/publisher/v4/apis", &token, &api("Broken", "/broken"));
    let path = format!("/api/am/publisher/v4/apis/{}", text(&api["id"]));
    let revision = server.expect(201, "POST", &format!("{path}/revisions"), &token, &json!({}));
    let deploy = format!("{path}/deploy-revision?revisionId={}", text(&revision["id"]));
    let targets = json!([{"name": "Default", "vhost": "localhost"}]);
    let refused = server.expect(400, "POST", &deploy, &token, &targets);
    assert_eq!(refused["description"], "api.yaml:1:1: broken");
    let deployments = server.expect(200, "GET", &format!("{path}/deployments"), &token, &Value::Null);
    assert_eq!(deployments["count"], 0);
}

/// Every operation needs a token with one of its scopes, or responds with 501 when it is not implemented.
#[test]
fn every_operation_compares_scopes() {
    let server = Server::start();
    server.add_user("stranger", "Internal/everyone");
    let stranger = server.token("stranger", "password", "profile");
    let mut wrong = Vec::new();
    for operation in Routes::new().operations() {
        let base = match operation.api {
            route::Api::Publisher => "/api/am/publisher/v4",
            route::Api::Devportal => "/api/am/devportal/v3",
            route::Api::Admin => "/api/am/admin/v4",
            route::Api::ServiceCatalog => "/api/am/service-catalog/v1",
            route::Api::Gateway => "/api/am/gateway/v2",
            route::Api::Devops => "/api/am/devops/v0",
            route::Api::Internal => "/internal/data/v1",
        };
        let path = format!("{base}{}", operation.path.replace(['{', '}'], ""));
        let is_open = operation.access() == route::Access::Anonymous;
        let without = server.send(operation.method, &path, "", "application/json", "").status;
        let with = server.send(operation.method, &path, &format!("Bearer {stranger}"), "application/json", "").status;
        let invalid = server.send(operation.method, &path, "Bearer x.y.z", "application/json", "").status;
        let needs_no_scope = operation.access() == route::Access::Scopes && operation.needs_no_scope();
        let expected_with = is_open || needs_no_scope;
        if (without == 401) == is_open || invalid != 401 || (with == 401) == expected_with {
            wrong.push(format!("{} {path}: {without} {invalid} {with}", operation.method));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let (status, body) = server.call("GET", "/api/am/admin/v4/bot-detection-data", &server.admin(), &Value::Null);
    assert_eq!(
        (status, &body["description"]),
        (501, &json!("The operation `GET /bot-detection-data` is not implemented"))
    );
    let (status, _) = server.call("GET", "/api/am/admin/v4/nothing", &server.admin(), &Value::Null);
    assert_eq!(status, 404);
}

#[test]
fn scopes_follow_from_roles() {
    let server = Server::start();
    server.add_user("anna", "Internal/creator");
    let client = server.register("anna", "password");
    let form = "grant_type=password&username=anna&password=password&scope=apim:api_create+apim:api_publish+apim:admin";
    let (_, body) = server.token_response(&client, form);
    assert_eq!(body["scope"], "apim:api_create");
    let token = text(&body["access_token"]);
    let created = server.expect(201, "POST", "/api/am/publisher/v4/apis", &token, &api("Own", "/own"));
    let publish = format!("/api/am/publisher/v4/apis/change-lifecycle?action=Publish&apiId={}", text(&created["id"]));
    server.expect(401, "POST", &publish, &token, &Value::Null);
    let (_, body) = server.token_response(&client, "grant_type=password&username=anna&password=password");
    assert_eq!(body["scope"], "default");
    assert_eq!(full("api_view"), "apim:api_view");
}

#[test]
fn tokens_are_refreshed_once_and_revoked() {
    let server = Server::start();
    let client = server.register("admin", "admin");
    let form = "grant_type=password&username=admin&password=admin&scope=apim:api_view+openid";
    let (_, first) = server.token_response(&client, form);
    assert!(first["id_token"].is_string());
    let refresh = format!("grant_type=refresh_token&refresh_token={}", text(&first["refresh_token"]));
    let (status, second) = server.token_response(&client, &refresh);
    assert_eq!((status, &second["scope"]), (200, &json!("apim:api_view openid")));
    server.expect(401, "GET", "/api/am/publisher/v4/apis", &text(&first["access_token"]), &Value::Null);
    let token = text(&second["access_token"]);
    server.expect(200, "GET", "/api/am/publisher/v4/apis", &token, &Value::Null);
    let other = server.send("POST", "/oauth2/revoke", &basic("x", "y"), "", &format!("token={token}"));
    assert_eq!(other.status, 401);
    let revoked = server.send("POST", "/oauth2/revoke", &basic(&client.0, &client.1), "", &format!("token={token}"));
    assert_eq!(revoked.status, 200);
    server.expect(401, "GET", "/api/am/publisher/v4/apis", &token, &Value::Null);
    assert_eq!(server.gateway.revoked.lock().unwrap().len(), 2);
    let body = server.send("POST", "/oauth2/introspect", &basic("admin", "admin"), "", &format!("token={token}")).body;
    assert_eq!(&*body, br#"{"active":false}"#);
}

#[test]
fn refusals_of_the_token_endpoint() {
    let server = Server::start();
    let client = server.register("admin", "admin");
    for (form, status, error) in [
        ("grant_type=password&username=admin&password=wrong", 400, "invalid_grant"),
        ("grant_type=password&username=nobody&password=wrong", 400, "invalid_grant"),
        ("grant_type=magic", 400, "unsupported_grant_type"),
        ("username=admin", 400, "invalid_request"),
    ] {
        let (got, body) = server.token_response(&client, form);
        assert_eq!((got, &body["error"]), (status, &json!(error)), "{form}");
    }
    let (status, body) =
        server.token_response(&(client.0.clone(), "wrong".to_owned()), "grant_type=client_credentials");
    assert_eq!((status, &body["error"]), (401, &json!("invalid_client")));
    let json = json!({"grant_type": "client_credentials", "client_id": client.0, "client_secret": client.1});
    let response = server.send("POST", "/oauth2/token", "", "", &json.to_string());
    assert_eq!(response.status, 200, "a JSON body without credentials in the header");
    assert_eq!(server.register("admin", "admin"), client, "a name is registered once");
}

#[test]
fn what_is_kept_outlives_a_restart() {
    let server = Server::start();
    let token = server.admin();
    server.published(&token, "Echo", "/echo");
    let Server { control, folder, .. } = server;
    drop(control);
    let gateway = Arc::new(Gateway::default());
    let started = Control::open(ControlConfig { admin_password: None, ..config(&folder) }, gateway.clone()).unwrap();
    assert_eq!(started.generated_password, None);
    assert_eq!(started.control.snapshot().unwrap().apis.len(), 1);
    let server = Server { control: started.control, gateway, folder };
    server.expect(200, "GET", "/api/am/publisher/v4/apis", &token, &Value::Null);
}

#[test]
fn a_backup_is_restored_with_its_keys() {
    let server = Server::start();
    let client = server.register("admin", "admin");
    server.published(&server.admin(), "Echo", "/echo");
    let (copy, restored) = (server.folder.0.join("copy"), scratch("restored"));
    crate::backup(&server.folder.0, &copy).unwrap();
    server.published(&server.admin(), "Later", "/later");
    assert!(crate::backup(&server.folder.0, &copy).is_err(), "a backup replaces nothing");
    assert!(crate::restore(&copy, &server.folder.0).unwrap_err().contains("has a database"));
    assert!(crate::restore(&restored.0, &copy).unwrap_err().contains("is not a backup"));
    crate::restore(&copy, &restored.0).unwrap();
    let gateway = Arc::new(Gateway::default());
    let control = Control::open(config(&restored), gateway.clone()).unwrap().control;
    assert_eq!(control.snapshot().unwrap().apis.len(), 1);
    let server = Server { control, gateway, folder: restored };
    assert_eq!(server.token_response(&client, "grant_type=client_credentials").0, 200, "the secret is the same");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(server.folder.0.join("control.sqlite")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn organizations_do_not_see_each_other() {
    let server = Server::start();
    let id = server.published(&server.admin(), "Echo", "/echo");
    let body = "<e><domain/><n:tenantDomain>test.com</n:tenantDomain><n:admin>admin</n:admin>\
                <n:adminPassword>admin</n:adminPassword></e>";
    let mut request = Request {
        method: "POST".to_owned(),
        path: "/services/TenantMgtAdminService".to_owned(),
        query: String::new(),
        headers: vec![("Authorization".to_owned(), basic("admin", "admin"))],
        body: body.into(),
        client: IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    request.headers.push(("SOAPAction".to_owned(), "urn:addSkeletonTenant".to_owned()));
    assert_eq!(server.control.respond(&request).status, 200);
    let scopes = "apim:api_view apim:api_create apim:api_publish apim:api_delete apim:admin";
    let token = server.token("admin@test.com", "admin", scopes);
    let list = server.expect(200, "GET", "/api/am/publisher/v4/apis", &token, &Value::Null);
    assert_eq!(list["count"], 0);
    for (method, path) in [
        ("GET", format!("/api/am/publisher/v4/apis/{id}")),
        ("DELETE", format!("/api/am/publisher/v4/apis/{id}")),
        ("POST", format!("/api/am/publisher/v4/apis/change-lifecycle?action=Block&apiId={id}")),
        ("GET", format!("/api/am/publisher/v4/apis/{id}/revisions")),
        ("GET", format!("/api/am/publisher/v4/apis/export?apiId={id}")),
    ] {
        server.expect(404, method, &path, &token, &Value::Null);
    }
    let id = server.published(&token, "Echo", "/echo");
    let served = server.gateway.served.lock().unwrap().clone();
    let of_tenant: Value = serde_json::from_slice(&served.apis[1].files[0].1).unwrap();
    assert_eq!(of_tenant["data"]["context"], "/t/test.com/echo");
    let token = server.admin();
    server.expect(404, "GET", &format!("/api/am/publisher/v4/apis/{id}"), &token, &Value::Null);
}
