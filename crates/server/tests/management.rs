//! The management API of Micro Integrator: what operators and their tools see and change.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::io::{Read, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use support::{Folder, Reply, Server, penstock};

const USERS: &str = "[management]\nport = 0\nstate = 'state'\n[management.users.root]\npassword = 'r00t'\nadmin = true\n\
                     [management.users.anna]\npassword = 'secret'\n";

fn synapse(text: &str) -> String {
    text.replacen('>', " xmlns='http://ws.apache.org/ns/synapse'>", 1)
}

/// One artifact of each kind.
fn artifacts(folder: &Folder) {
    for (file, text) in [
        (
            "api.xml",
            "<api name='Orders' context='/orders'><resource methods='GET' uri-template='/{id}'><inSequence>\
             <property name='x' value='1'/><payloadFactory media-type='text'><format>order</format><args/></payloadFactory>\
             <respond/></inSequence></resource></api>",
        ),
        (
            "proxy.xml",
            "<proxy name='Stock' transports='http'><target><inSequence><respond/></inSequence></target></proxy>",
        ),
        ("sequence.xml", "<sequence name='Greet'><log/><property name='a' value='1'/></sequence>"),
        (
            "endpoint.xml",
            "<endpoint name='Warehouse'><http method='get' uri-template='http://localhost:1/{uri.var.id}'/></endpoint>",
        ),
        (
            "store.xml",
            "<messageStore name='Later'><parameter name='store.jdbc.password'>hush</parameter></messageStore>",
        ),
        (
            "processor.xml",
            "<messageProcessor name='Send' messageStore='Later' \
             class='org.apache.synapse.message.processor.impl.sampler.SamplingProcessor'>\
             <parameter name='interval'>60000</parameter><parameter name='sequence'>Greet</parameter></messageProcessor>",
        ),
        (
            "task.xml",
            "<task name='Nightly'><trigger cron='0 0 3 * * ?'/><property name='injectTo' value='sequence'/>\
             <property name='sequenceName' value='Greet'/><property name='message' value='x'/></task>",
        ),
        (
            "template.xml",
            "<template name='Say'><parameter name='word' isMandatory='true'/><sequence><log/></sequence></template>",
        ),
        ("entry.xml", "<localEntry key='Box'><box><password>hush</password></box></localEntry>"),
        (
            "inbound.xml",
            "<inboundEndpoint name='Door' protocol='http' sequence='Greet' onError='Greet' suspend='false'><parameters>\
             <parameter name='inbound.http.port'>0</parameter></parameters></inboundEndpoint>",
        ),
    ] {
        folder.write(&format!("artifacts/{file}"), synapse(text));
    }
}

struct Api {
    server: Server,
    port: u16,
}

impl Api {
    fn start(folder: &Folder, toml: &str) -> Api {
        let server = Server::start(folder, &["run", "artifacts"], toml);
        let port = server.port_after("manage   https://localhost:");
        Api { server, port }
    }

    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        request(self.port, method, path, headers, body)
    }

    fn token(&self, name: &str, password: &str) -> String {
        let reply = self.send("GET", "/management/login", &[("Authorization", &basic(name, password))], b"");
        assert_eq!(reply.status, 200, "{reply:?}");
        let body: Value = serde_json::from_str(&reply.body).unwrap();
        format!("Bearer {}", body["AccessToken"].as_str().unwrap())
    }

    fn as_root(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let reply = self.send(
            method,
            &format!("/management{path}"),
            &[("Authorization", &basic("root", "r00t")), ("Content-Type", "application/json")],
            body.as_bytes(),
        );
        (reply.status, serde_json::from_str(&reply.body).unwrap_or(Value::String(reply.body)))
    }

    fn get(&self, path: &str) -> Value {
        let (status, body) = self.as_root("GET", path, "");
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.as_root("POST", path, &body.to_string())
    }
}

fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

fn request(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    let mut stream = support::tls::connect(port, "localhost");
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    text.push_str("\r\n");
    stream.write_all(text.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut bytes = Vec::new();
    // A server that closes without a TLS alert has sent everything that its length announces.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response: {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Reply { status, head: head.to_owned(), body: body.to_owned() }
}

fn names(body: &Value) -> Vec<&str> {
    assert_eq!(body["count"], body["list"].as_array().unwrap().len());
    body["list"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

#[test]
fn nothing_is_served_without_credentials() {
    let folder = Folder::new("management-access");
    artifacts(&folder);
    let mut api = Api::start(&folder, USERS);
    let send = |path: &str, authorization: Option<&str>| {
        let headers: Vec<(&str, &str)> = authorization.iter().map(|value| ("Authorization", *value)).collect();
        api.send("GET", path, &headers, b"").status
    };
    for path in ["/management/apis", "/management/login", "/management/users", "/management/openapi.json"] {
        assert_eq!(send(path, None), 401, "{path}");
        assert_eq!(send(path, Some(&basic("anna", "wrong"))), 401, "{path}");
        assert_eq!(send(path, Some("Bearer x")), 401, "{path}");
    }
    assert_eq!(send("/management/nothing", Some(&basic("root", "r00t"))), 404);
    assert_eq!(send("/elsewhere", None), 404);
    let token = api.token("anna", "secret");
    assert_eq!(send("/management/apis", Some(&token)), 200);
    assert_eq!(send("/management/login", Some(&token)), 401, "a token issues no token");
    for path in ["/management/users", "/management/roles", "/management/configs?configName=correlation"] {
        assert_eq!(send(path, Some(&token)), 403, "{path}");
    }
    assert_eq!(send("/management/logout", Some(&token)), 200);
    assert_eq!(send("/management/apis", Some(&token)), 401, "the token has ended");
    let (status, body) = api.as_root("PUT", "/apis", "{}");
    assert_eq!((status, &body["Error"]), (405, &json!("Unsupported HTTP method, PUT. Only GET, POST are supported")));
    let reply = api.send("OPTIONS", "/management/apis", &[("Origin", "https://dashboard")], b"");
    assert!(reply.status == 200 && reply.head.contains("Access-Control-Allow-Origin: *"), "{reply:?}");
    let mut refused = 0;
    for _ in 0..12 {
        refused = send("/management/login", Some(&basic("anna", "guess")));
    }
    assert_eq!(refused, 429, "failed logins are limited");
    api.server.wait_for_log("anna logged in at [");
    assert!(!api.server.log().contains("secret") && !api.server.log().contains("r00t"));
}

#[test]
fn a_login_beyond_the_limit_ends_the_oldest_token_or_is_refused() {
    let folder = Folder::new("management-tokens");
    artifacts(&folder);
    let toml = USERS.replace("state =", "tokens_max = 1\nstate =");
    let api = Api::start(&folder, &toml);
    let status = |token: &str| api.send("GET", "/management/apis", &[("Authorization", token)], b"").status;
    let first = api.token("anna", "secret");
    let second = api.token("root", "r00t");
    assert_eq!((status(&first), status(&second)), (401, 200));
    drop(api);
    let api = Api::start(&folder, &toml.replace("tokens_max", "replaces_oldest_token = false\ntokens_max"));
    api.token("anna", "secret");
    let reply = api.send("GET", "/management/login", &[("Authorization", &basic("root", "r00t"))], b"");
    assert_eq!((reply.status, reply.body.contains("Max concurrent access limit exceeded")), (500, true));
}

#[test]
fn without_a_user_there_is_no_port() {
    let folder = Folder::new("management-closed");
    artifacts(&folder);
    let server = Server::start(&folder, &["run", "artifacts"], "");
    assert!(!server.log().contains("manage   https://"), "{}", server.log());
    folder.write("wrong.toml", "[management]\nenabled = true\n");
    let done = penstock(&folder.0, &["check", "artifacts", "--config", "wrong.toml"]);
    assert!(done.stderr.contains("`management.enabled` needs a user"), "{}", done.stderr);
}

#[test]
fn artifacts_are_listed_searched_and_described() {
    let folder = Folder::new("management-lists");
    artifacts(&folder);
    let api = Api::start(&folder, USERS);
    for (path, name) in [
        ("/apis", "Orders"),
        ("/proxy-services", "Stock"),
        ("/sequences", "Greet"),
        ("/endpoints", "Warehouse"),
        ("/message-stores", "Later"),
        ("/message-processors", "Send"),
        ("/tasks", "Nightly"),
        ("/templates", "Say"),
        ("/local-entries", "Box"),
        ("/inbound-endpoints", "Door"),
    ] {
        assert_eq!(names(&api.get(path)), [name], "{path}");
        assert_eq!(names(&api.get(&format!("{path}?searchKey={}", name.to_uppercase()))), [name], "{path}");
        assert_eq!(names(&api.get(&format!("{path}?searchKey=nothing"))), [""; 0], "{path}");
        assert_eq!(api.get(&format!("{path}?limit=0"))["count"], 1);
    }
    for (path, status) in [
        ("/apis?apiName=No", 404),
        ("/proxy-services?proxyServiceName=No", 404),
        ("/endpoints?endpointName=No", 404),
        ("/sequences?sequenceName=No", 404),
        ("/inbound-endpoints?inboundEndpointName=No", 404),
        ("/message-stores?name=No", 404),
        ("/message-processors?name=No", 404),
        ("/tasks?taskName=No", 404),
        ("/local-entries?name=No", 404),
        ("/templates?type=sequence&name=No", 404),
        ("/templates?type=other", 400),
        ("/data-services?dataServiceName=No", 404),
        ("/data-sources?name=No", 404),
        ("/applications?carbonAppName=No", 404),
        ("/applications/No", 404),
        ("/logs?file=No", 404),
        ("/logging?loggerName=No", 400),
        ("/users/No", 404),
        ("/roles/No", 404),
        ("/registry-resources", 400),
        ("/registry-resources?path=elsewhere", 400),
        ("/registry-resources/content?path=registry/governance/../secret", 400),
        ("/configs", 400),
        ("/transactions/other", 404),
    ] {
        assert_eq!(api.as_root("GET", path, "").0, status, "{path}");
    }
    let orders = api.get("/apis?apiName=Orders");
    let expected = format!("http://localhost:{}/orders", api.server.http);
    assert_eq!(
        (&orders["url"], &orders["context"], &orders["version"]),
        (&json!(expected), &json!("/orders"), &json!("N/A"))
    );
    assert_eq!(orders["resources"], json!([{ "methods": ["GET"], "url": "/{id}" }]));
    assert_eq!((&orders["tracing"], &orders["stats"]), (&json!("disabled"), &json!("disabled")));
    assert!(orders["configuration"].as_str().unwrap().starts_with("<api"));
    assert_eq!(api.get("/sequences?sequenceName=Greet")["mediators"], json!(["LogMediator", "PropertyMediator"]));
    let endpoint = api.get("/endpoints?endpointName=Warehouse");
    assert_eq!(
        (&endpoint["type"], &endpoint["method"], &endpoint["isActive"]),
        (&json!("HTTP Endpoint"), &json!("get"), &json!(true))
    );
    let store = api.get("/message-stores?name=Later");
    assert_eq!(
        (&store["type"], &store["size"], &store["file"]),
        (&json!("in-memory-message-store"), &json!(0), &json!("store.xml"))
    );
    let processor = api.get("/message-processors?name=Send");
    assert_eq!((&processor["type"], &processor["messageStore"]), (&json!("Sampling-processor"), &json!("Later")));
    let task = api.get("/tasks?taskName=Nightly");
    assert_eq!((&task["triggerType"], &task["cronExpression"]), (&json!("cron"), &json!("0 0 3 * * ?")));
    assert_eq!(api.get("/templates?type=sequence&name=Say")["Parameters"][0]["mandatory"], true);
    let all = [store, api.get("/local-entries?name=Box"), api.get("/inbound-endpoints?inboundEndpointName=Door")];
    assert!(!json!(all).to_string().contains("hush"), "passwords are masked: {all:?}");
    assert_eq!(api.get("/server")["productName"], "Penstock");
    assert_eq!(api.get("/transactions/count")["TransactionCount"], 0);
    let described = api.get("/openapi.json");
    assert!(described["paths"]["/apis"]["post"]["requestBody"].is_object());
}

#[test]
fn services_are_stopped_and_started_and_stay_so() {
    let folder = Folder::new("management-switches");
    artifacts(&folder);
    let toml = format!("{USERS}[registry]\nfolder = 'registry'\n");
    let mut api = Api::start(&folder, &toml);
    let status = |path: &str, name: &str, wanted: &str| api.post(path, json!({ "name": name, "status": wanted }));
    let message = |text: &str| (200, json!({ "Message": text }));
    assert_eq!(status("/proxy-services", "Stock", "inactive"), message("Proxy service Stock stopped successfully"));
    assert_eq!(api.get("/proxy-services?proxyServiceName=Stock")["isRunning"], false);
    let stopped = |server: &Server| server.post("/services/Stock", "application/json", "{}").status;
    assert_eq!(stopped(&api.server), 500);
    assert_eq!(status("/endpoints", "Warehouse", "inactive"), message("Warehouse is switched Off"));
    assert_eq!(api.get("/endpoints")["list"][0]["isActive"], false);
    assert_eq!(status("/inbound-endpoints", "Door", "inactive"), message("Door : is deactivated"));
    assert_eq!(api.get("/inbound-endpoints")["list"][0]["status"], "inactive");
    assert_eq!(status("/message-processors", "Send", "inactive"), message("Send : is deactivated"));
    assert_eq!(status("/tasks", "Nightly", "inactive"), message("Task [Nightly] is successfully deactivated."));
    assert_eq!(status("/tasks", "Nightly", "trigger"), message("Task [Nightly] is successfully triggered."));
    for (path, name) in [
        ("/proxy-services", "Stock"),
        ("/endpoints", "Warehouse"),
        ("/inbound-endpoints", "Door"),
        ("/message-processors", "Send"),
        ("/tasks", "Nightly"),
    ] {
        assert_eq!(status(path, name, "loud"), (400, json!({ "Error": "Provided state is not valid" })), "{path}");
        assert_eq!(status(path, "No", "active").0, 404, "{path}");
        assert_eq!(api.as_root("POST", path, "").1["Error"], "JSON payload is missing", "{path}");
        assert_eq!(api.as_root("POST", path, "{").1["Error"], "Error when parsing JSON payload", "{path}");
        assert_eq!(api.post(path, json!({})).0, 400, "{path}");
    }
    api.server.wait_for_log("{task:Nightly}");
    let line =
        r#"{"performedBy":"root","action":"disabled","type":"proxy_service","info":"{\"proxyName\":\"Stock\"}"}"#;
    api.server.wait_for_log(line);
    api.server.wait_for_log(r#""action":"triggered","type":"task""#);
    // Another artifact changes: what operators switched stays.
    folder.write("artifacts/more.xml", synapse("<sequence name='More'><log/></sequence>"));
    api.server.wait_for_log("artifacts are served now");
    assert_eq!(names(&api.get("/sequences")), ["Greet", "More"]);
    assert_eq!(stopped(&api.server), 500);
    assert_eq!(api.get("/endpoints")["list"][0]["isActive"], false);
    drop(api);
    let api = Api::start(&folder, &toml);
    assert_eq!(api.get("/proxy-services?proxyServiceName=Stock")["isRunning"], false, "over a restart, too");
    assert_eq!(api.get("/message-processors")["list"][0]["status"], "inactive");
    let started = api.post("/proxy-services", json!({ "name": "Stock", "status": "active" }));
    assert_eq!(started, message("Proxy service Stock started successfully"));
    assert_eq!(stopped(&api.server), 200);
}

#[test]
fn trace_shows_the_requests_of_one_artifact() {
    let folder = Folder::new("management-trace");
    artifacts(&folder);
    let mut api = Api::start(&folder, USERS);
    assert_eq!(api.server.get("/orders/1").body, "order");
    let enabled = api.post("/apis", json!({ "name": "Orders", "trace": "enable" }));
    assert_eq!(enabled, (200, json!({ "message": "Enabled tracing for ('Orders')" })));
    assert_eq!(api.get("/apis?apiName=Orders")["tracing"], "enabled");
    api.server.get("/orders/2");
    api.server.wait_for_log("property x = 1");
    api.server.wait_for_log("GET /orders/2: route");
    assert!(!api.server.log().contains("GET /orders/1: route"), "its trace was not enabled yet");
    api.server.wait_for_log(r#""action":"enabled","type":"api_trace""#);
    for (path, name) in [("/sequences", "Greet"), ("/endpoints", "Warehouse"), ("/inbound-endpoints", "Door")] {
        assert_eq!(api.post(path, json!({ "name": name, "statistics": "enable" })).0, 200, "{path}");
        assert_eq!(api.post(path, json!({ "name": name, "trace": "loud" })).0, 400, "{path}");
        assert_eq!(api.post(path, json!({ "name": "No", "trace": "enable" })).0, 400, "{path}");
    }
    assert_eq!(api.get("/sequences?sequenceName=Greet")["stats"], "enabled");
    let (status, _) = api.post("/templates", json!({ "name": "Say", "type": "sequence", "trace": "enable" }));
    assert_eq!(status, 200);
}

#[test]
fn users_and_roles_are_managed() {
    let folder = Folder::new("management-users");
    artifacts(&folder);
    let api = Api::start(&folder, USERS);
    let added = api.post("/users", json!({ "userId": "ben", "password": "b3n", "isAdmin": "false" }));
    assert_eq!(added, (200, json!({ "userId": "ben", "status": "Added" })));
    assert_eq!(api.post("/users", json!({ "userId": "ben", "password": "x" })).0, 400);
    assert_eq!(api.post("/users", json!({ "userId": "cleo" })).0, 400);
    assert_eq!(api.post("/users", json!({ "userId": "cleo", "password": "x", "domain": "other" })).0, 400);
    let token = api.token("ben", "b3n");
    let status = |token: &str| api.send("GET", "/management/apis", &[("Authorization", token)], b"").status;
    assert_eq!(status(&token), 200);
    let kept = std::fs::read_to_string(folder.0.join("state/users.json")).unwrap();
    assert!(kept.contains("$argon2id$") && !kept.contains("b3n"), "{kept}");
    assert_eq!(
        api.post("/roles", json!({ "role": "tester", "domain": "" })),
        (200, json!({ "role": "tester", "status": "Added" }))
    );
    assert_eq!(api.post("/roles", json!({ "role": "tester" })).0, 400);
    let assigned = json!({ "userId": "ben", "addedRoles": ["tester"], "removedRoles": [], "domain": "" });
    assert_eq!(api.as_root("PUT", "/roles", &assigned.to_string()).1["status"], "Added/removed the roles");
    assert_eq!(api.get("/roles/tester"), json!({ "role": "tester", "users": ["ben"] }));
    assert_eq!(
        api.get("/users/ben"),
        json!({ "userId": "ben", "isAdmin": false, "roles": ["Internal/everyone", "tester"] })
    );
    let ids: Vec<Value> =
        api.get("/users?pattern=*n*")["list"].as_array().unwrap().iter().map(|user| user["userId"].clone()).collect();
    assert_eq!(ids, [json!("anna"), json!("ben")]);
    assert_eq!(api.get("/users?role=admin")["list"], json!([{ "userId": "root" }]));
    let changed = json!({ "newPassword": "n3w", "confirmPassword": "n3w" }).to_string();
    assert_eq!(api.as_root("PATCH", "/users/ben", &changed).0, 200);
    assert_eq!(status(&token), 401, "a token ends with the password");
    api.token("ben", "n3w");
    assert_eq!(api.as_root("PATCH", "/users/anna", &changed).0, 403, "the configuration has the password");
    assert_eq!(api.as_root("DELETE", "/users/root", "").0, 400, "users do not delete their own account");
    assert_eq!(api.as_root("DELETE", "/roles/tester", "").1, json!({ "role": "tester", "status": "Deleted" }));
    assert_eq!(api.as_root("DELETE", "/users/ben", "").1, json!({ "userId": "ben", "status": "Deleted" }));
    assert_eq!(api.as_root("DELETE", "/users/ben", "").0, 404);
}

#[test]
fn log_levels_are_changed() {
    let folder = Folder::new("management-logging");
    artifacts(&folder);
    let mut api = Api::start(&folder, USERS);
    let patch = |body: Value| api.as_root("PATCH", "/logging", &body.to_string());
    assert_eq!(api.get("/logging?loggerName=rootLogger")["level"], "INFO");
    assert_eq!(patch(json!({ "loggerName": "No", "loggingLevel": "DEBUG" })).0, 400);
    assert_eq!(patch(json!({ "loggerName": "rootLogger", "loggingLevel": "LOUD" })).0, 400);
    assert_eq!(patch(json!({ "loggerName": "rootLogger" })).1["Error"], "Log level is missing");
    let added =
        patch(json!({ "loggerName": "requests", "loggerClass": "org.example.Request", "loggingLevel": "DEBUG" }));
    let text = "Successfully added logger for ('requests') with level DEBUG for class org.example.Request";
    assert_eq!(added, (200, json!({ "message": text })));
    assert_eq!(api.get("/logging?loggerName=requests")["componentName"], "Request");
    assert_eq!(api.get("/configs?configName=correlation")["configs"]["enabled"], false);
    api.server.get("/orders/1");
    api.server.wait_for_log("GET /orders/1: route /orders/{id}, status 200");
    let delete = |name: &str| api.as_root("DELETE", &format!("/logging?loggerName={name}"), "").0;
    assert_eq!((delete("rootLogger"), delete("requests"), delete("requests")), (403, 200, 404));
    let configured = json!({ "configName": "correlation", "configs": { "enabled": true } }).to_string();
    assert_eq!(
        api.as_root("PUT", "/configs", &configured).1["message"],
        "Successfully Updated Correlation Logs Status"
    );
    assert_eq!(api.get("/configs?configName=correlation")["configs"]["enabled"], true);
}

#[test]
fn resources_of_the_registry_are_read_and_written() {
    let folder = Folder::new("management-registry");
    artifacts(&folder);
    let api = Api::start(&folder, &format!("{USERS}[registry]\nfolder = 'registry'\n"));
    let content = "/registry-resources/content?path=registry/governance/words/hello.txt";
    assert_eq!(api.as_root("PUT", content, "x").0, 400, "there is none to change");
    assert_eq!(api.as_root("POST", content, "hello").1["message"], "Successfully added the registry resource");
    assert_eq!(api.as_root("POST", content, "again").0, 400);
    assert_eq!(api.get(content), json!("hello"));
    assert_eq!(std::fs::read_to_string(folder.0.join("registry/governance/words/hello.txt")).unwrap(), "hello");
    assert_eq!(names(&api.get("/registry-resources?path=registry")), ["config", "governance", "local"]);
    assert_eq!(names(&api.get("/registry-resources?path=registry/governance/words")), ["hello.txt"]);
    let properties = "/registry-resources/properties?path=registry/governance/words/hello.txt";
    let set = json!([{ "name": "lang", "value": "en" }]);
    assert_eq!(api.post(properties, set).1["message"], "Successfully added the registry property");
    assert_eq!(api.get(&format!("{properties}&name=lang")), json!({ "lang": "en" }));
    assert_eq!(
        api.get("/registry-resources/metadata?path=registry/governance/words/hello.txt")["mediaType"],
        "text/plain"
    );
    assert_eq!(api.as_root("DELETE", content, "").1["message"], "Successfully deleted the registry resource");
    assert_eq!(api.as_root("GET", content, "").0, 400);
    assert!(!folder.0.join("registry/governance/words/hello.txt").exists());
}

fn application(name: &str, artifact: &str) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (file, text) in [
        (
            "artifacts.xml".to_owned(),
            format!(
                "<artifacts><artifact name='{name}' version='1.0.0' type='carbon/application'><dependency artifact='Part' \
                 version='1.0.0' include='true'/></artifact></artifacts>"
            ),
        ),
        (
            "Part_1.0.0/artifact.xml".to_owned(),
            "<artifact name='Part' version='1.0.0' type='synapse/api'><file>part.xml</file></artifact>".to_owned(),
        ),
        ("Part_1.0.0/part.xml".to_owned(), artifact.to_owned()),
    ] {
        archive.start_file(file, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(text.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn applications_are_deployed_and_undeployed() {
    let folder = Folder::new("management-applications");
    artifacts(&folder);
    let api = Api::start(&folder, USERS);
    let upload = |file: &str, content: &[u8]| {
        let mut body =
            format!("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{file}\"\r\n\r\n").into_bytes();
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n--b--\r\n");
        let root = basic("root", "r00t");
        let headers = [("Authorization", root.as_str()), ("Content-Type", "multipart/form-data; boundary=b")];
        let reply = api.send("POST", "/management/applications", &headers, &body);
        (reply.status, reply.body)
    };
    let part = |text: &str| application("Shop", &support::api(text));
    let (status, body) = upload("shop.car", &part("one"));
    assert_eq!((status, body.as_str()), (200, r#"{"Message":"Successfully added Carbon Application : shop.car"}"#));
    assert_eq!(api.server.get("/a").body, r#"{"text": "one"}"#, "it is served when the response arrives");
    let listed = api.get("/applications");
    assert_eq!((&listed["totalCount"], &listed["activeList"][0]["name"]), (&json!(1), &json!("Shop")));
    assert_eq!(api.get("/applications/Shop")["artifacts"], json!([{ "name": "Part", "type": "api" }]));
    assert_eq!(upload("shop.car", &part("two")).0, 200);
    assert_eq!(api.server.get("/a").body, r#"{"text": "two"}"#);
    let broken = application("Shop", &support::api("three").replace("<respond/>", "<nothing/>"));
    let (status, body) = upload("shop.car", &broken);
    assert!(status == 400 && body.contains("nothing was changed"), "{body}");
    assert_eq!(api.server.get("/a").body, r#"{"text": "two"}"#);
    for name in ["shop.zip", "../shop.car", ".shop.car"] {
        assert_eq!(upload(name, &part("four")).0, 400, "{name}");
    }
    let anna = basic("anna", "secret");
    assert_eq!(api.send("DELETE", "/management/applications/Shop", &[("Authorization", &anna)], b"").status, 403);
    assert_eq!(
        api.as_root("DELETE", "/applications/Shop", "").1["Message"],
        "Successfully removed Carbon Application Shop"
    );
    assert_eq!((api.server.get("/a").status, api.get("/applications")["totalCount"].clone()), (404, json!(0)));
    assert_eq!(api.as_root("DELETE", "/applications/Shop", "").0, 404);
}

#[test]
fn an_operator_ends_the_server() {
    let folder = Folder::new("management-end");
    artifacts(&folder);
    let mut api = Api::start(&folder, USERS);
    let patch = |body: Value| api.as_root("PATCH", "/server", &body.to_string());
    assert_eq!(patch(json!({ "status": "restart" })).0, 400);
    assert_eq!(patch(json!({})).0, 400);
    assert_eq!(
        patch(json!({ "status": "shutdownGracefully" })).1["Message"],
        "The server will start to shutdown gracefully."
    );
    assert!(api.server.wait().success());
}

#[test]
fn the_dashboard_gets_heartbeats() {
    let folder = Folder::new("heartbeat");
    folder.write("artifacts/api.xml", support::api("a"));
    let (port, beats) = support::broker::backend();
    let toml = format!(
        "{USERS}[management.dashboard]\nurl = 'http://127.0.0.1:{port}/dashboard/api/'\ngroup = 'blue'\nnode = 'n1'\ninterval = '1s'\n\
         host = 'gateway.example'\nport = 9164\n"
    );
    let _server = Server::start(&folder, &["run", "artifacts"], &toml);
    for _ in 0..2 {
        let beat: Value = serde_json::from_str(&beats.recv().unwrap()).unwrap();
        let expected = json!({
            "product": "mi", "groupId": "blue", "nodeId": "n1", "interval": 1,
            "mgtApiUrl": "https://gateway.example:9164/management/",
        });
        assert_eq!(beat, expected);
    }
}
