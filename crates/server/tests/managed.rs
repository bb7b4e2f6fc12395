//! Managed APIs on the running binary: ports of their own, reload, deploying over HTTPS.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "managed/control_plane.rs"]
mod control_plane;
mod support;

use std::io::{Cursor, Read, Write};
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use penstock_engine::ports::{HttpOptions, Outbound, Outgoing, SendOptions};
use penstock_message::{Body, Form, Headers, Message, Method};
use penstock_transports::http::tls::{ClientTrust, TlsClient};
use penstock_transports::http::{HttpSender, PerCore, SenderConfig};
use support::{Connection, Folder, Server, api, penstock};

/// A backend that answers with the request line; its port.
fn backend() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut head = Vec::new();
                let mut byte = [0];
                while let Ok(1) = socket.read(&mut byte) {
                    head.push(byte[0]);
                    if head.ends_with(b"\r\n\r\n") {
                        let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
                        let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{line}", line.len());
                        let _ = socket.write_all(reply.as_bytes());
                        head.clear();
                    }
                }
            });
        }
    });
    port
}

const PORTS: &str = "gateway.http_port = 0\ngateway.https_port = 0";

fn port_after(server: &Server, text: &str) -> u16 {
    let log = server.log();
    let (_, rest) = log.split_once(text).unwrap_or_else(|| panic!("no `{text}` in\n{log}"));
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

fn definition(title: &str, base: &str, backend: u16) -> String {
    format!(
        "openapi: 3.0.1\ninfo: {{title: {title}, version: 1.0.0}}\nx-wso2-basePath: {base}\nx-wso2-disable-security: true\n\
         x-wso2-production-endpoints: {{urls: ['http://127.0.0.1:{backend}/b']}}\npaths: {{'/items/{{id}}': {{get: {{}}}}}}\n"
    )
}

fn descriptor(name: &str, backend: u16) -> String {
    format!(
        "type: api\ndata:\n  name: {name}\n  context: /{name}\n  version: 1.0.0\n  isDefaultVersion: true\n  endpointConfig:\n    \
         endpoint_type: http\n    production_endpoints: {{url: 'http://127.0.0.1:{backend}/p'}}\n  operations:\n    \
         - {{target: /items/*, verb: GET, authType: None}}\n"
    )
}

fn project(name: &str, backend: u16) -> Vec<u8> {
    zip(&[(&format!("{name}-1.0.0/api.yaml"), &descriptor(name, backend))])
}

fn zip(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in entries {
        writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn projects_definitions_and_integrations_side_by_side() {
    let (folder, backend) = (Folder::new("managed"), backend());
    folder.write("all/api.xml", api("one"));
    folder.write("all/bare.yaml", definition("Bare", "/bare", backend));
    folder.write("all/Shop-1.0.0/api.yaml", descriptor("shop", backend));
    folder.write("all/zipped.zip", project("zipped", backend));
    let server = Server::start(&folder, &["run", "all"], PORTS);
    let port = port_after(&server, "  APIs     http://localhost:");
    let mut client = Connection::open(port);
    for (path, status, body) in [
        ("/bare/items/7?x=1", 200, "GET /b/items/7?x=1 HTTP/1.1"),
        ("/shop/1.0.0/items/7", 200, "GET /p/items/7 HTTP/1.1"),
        ("/shop/items/7", 200, "GET /p/items/7 HTTP/1.1"),
        ("/zipped/1.0.0/items", 200, "GET /p/items HTTP/1.1"),
        ("/bare/other", 404, "The requested resource is not available."),
        // Integrations have their own port.
        ("/a", 404, "The requested resource is not available."),
    ] {
        let reply = client.request("GET", path, &[], b"");
        assert_eq!(reply.status, status, "{path}: {}", reply.body);
        assert!(reply.body.contains(body), "{path}: {}", reply.body);
    }
    assert_eq!(client.request("POST", "/bare/items/7", &[], b"").status, 405);
    let options = client.request("OPTIONS", "/bare/items/7", &[], b"");
    assert!(options.status == 204 && options.head.to_ascii_lowercase().contains("allow: options, get"), "{options:?}");
    assert_eq!(server.get("/a").body, "{\"text\": \"one\"}");
    assert_eq!(server.get("/bare/items/7").status, 404);
}

#[test]
fn ports_open_with_the_first_api_and_a_broken_change_keeps_the_old_one() {
    let (folder, backend) = (Folder::new("managed-reload"), backend());
    folder.write("all/api.xml", api("one"));
    let mut server = Server::start(&folder, &["run", "all"], PORTS);
    assert!(!server.log().contains("  APIs "));
    folder.write("all/bare.yaml", definition("Bare", "/bare", backend));
    server.wait_for_log("the first managed API: the ports ");
    let mut client = Connection::open(port_after(&server, "the first managed API: the ports "));
    assert_eq!(client.request("GET", "/bare/items/7", &[], b"").status, 200);
    folder.write("all/bare.yaml", definition("Bare", "no-slash", backend));
    server.wait_for_log("keeping the previous configuration");
    server.wait_for_log("bare.yaml:3:18: error: a base path begins with `/`");
    assert_eq!(client.request("GET", "/bare/items/7", &[], b"").status, 200);
    folder.write("all/bare.yaml", definition("Bare", "/moved", backend));
    server.wait_for_log("bare.yaml is changed: 2 artifacts are served now");
    assert_eq!(client.request("GET", "/bare/items/7", &[], b"").status, 404);
    assert_eq!(client.request("GET", "/moved/items/7", &[], b"").status, 200);
}

#[test]
fn a_file_that_a_definition_refers_to_is_served_and_watched() {
    let (folder, backend) = (Folder::new("managed-references"), backend());
    let text = definition("Parts", "/parts", backend);
    folder.write("all/api.yaml", text.replace("{'/items/{id}': {get: {}}}", "{'/items': {$ref: 'ops/items.yaml'}}"));
    folder.write("all/ops/items.yaml", "get: {}\n");
    let mut server = Server::start(&folder, &["run", "all"], PORTS);
    let mut client = Connection::open(port_after(&server, "APIs     http://localhost:"));
    assert_eq!(client.request("GET", "/parts/items", &[], b"").status, 200);
    assert_eq!(client.request("PUT", "/parts/items", &[], b"").status, 405);
    folder.write("all/ops/items.yaml", "get: {}\nput: {}\n");
    server.wait_for_log("items.yaml is changed: 1 artifacts are served now");
    assert_eq!(client.request("PUT", "/parts/items", &[], b"").status, 200);
}

#[test]
fn one_port_may_serve_both_and_a_port_in_use_is_named() {
    let (folder, backend) = (Folder::new("managed-ports"), backend());
    folder.write("all/api.xml", api("one"));
    folder.write("all/bare.yaml", definition("Bare", "/bare", backend));
    let free = support::ports::free();
    let toml = format!(
        "listener.http_port = {free}\nlistener.https_port = 0\nadmin.port = 0\nworkers = 2\ngateway.http_port = {free}\ngateway.https_port = 0\n"
    );
    let server = Server::start_with(&folder, &["run", "all"], &toml);
    assert_eq!(server.get("/a").body, "{\"text\": \"one\"}");
    assert_eq!(server.get("/bare/items/7").status, 200);
    drop(server);
    let taken = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    folder.write(
        "penstock.toml",
        format!("listener.http_port = 0\nlistener.https_port = 0\nadmin.port = 0\ngateway.http_port = {port}\n"),
    );
    let ended = penstock(&folder.0, &["run", "all"]);
    assert_eq!(ended.status, 3);
    assert!(ended.stderr.contains("set `gateway.http_port`") && !ended.stderr.contains("--offset"), "{}", ended.stderr);
}

/// A client for HTTPS that trusts all certificates.
struct Https {
    runtime: tokio::runtime::Runtime,
    port: u16,
}

impl Https {
    fn new(port: u16) -> Https {
        Https { runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(), port }
    }

    fn ask(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> (u16, serde_json::Value) {
        let trust = ClientTrust { trust_everything: true, ..ClientTrust::default() };
        let config = SenderConfig { tls: Arc::new(TlsClient::new(trust)), ..SenderConfig::default() };
        let url = format!("https://127.0.0.1:{}/api/mgw/adapter/0.1{path}", self.port);
        let mut message = Message { headers: Headers::new(), body: Body::bytes(body), ..Message::default() };
        headers.iter().for_each(|(name, value)| message.headers.set(name, value));
        let options = SendOptions {
            http: HttpOptions { content_length: true, ..HttpOptions::default() },
            ..SendOptions::within(Duration::from_secs(20))
        };
        let outgoing = Outgoing { url: url.into(), method, message, options };
        let local = tokio::task::LocalSet::new();
        local.block_on(&self.runtime, async move {
            let core = PerCore::start();
            let sender: Rc<dyn Outbound> = Rc::new(HttpSender::new(&core, config));
            let mut reply = sender.send(outgoing).await.unwrap();
            std::future::poll_fn(|cx| reply.body.poll_pull(cx, usize::MAX, 1 << 20)).await.unwrap();
            let Form::Bytes(bytes) = reply.body.take() else { panic!("no body") };
            (reply.status, serde_json::from_slice(&bytes).unwrap())
        })
    }

    fn deploy(&self, authorization: &str, query: &str, archive: &[u8]) -> (u16, serde_json::Value) {
        let mut body = b"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.zip\"\r\n\r\n".to_vec();
        body.extend_from_slice(archive);
        body.extend_from_slice(b"\r\n--x--\r\n");
        let kind = ("Content-Type", "multipart/form-data; boundary=x");
        self.ask(Method::Post, &format!("/apis{query}"), &[("Authorization", authorization), kind], body)
    }
}

/// `anna:secret`
const BASIC: &str = "Basic YW5uYTpzZWNyZXQ=";

#[test]
fn apis_are_deployed_over_https_and_survive_a_restart() {
    let (folder, backend) = (Folder::new("managed-adapter"), backend());
    let toml = format!("{PORTS}\n[adapter]\nenabled = true\nport = 0\nstate = 'kept'\nusers.anna = 'secret'\n");
    let server = Server::start(&folder, &["run"], &toml);
    let https = Https::new(port_after(&server, "  adapter  https://localhost:"));
    let mut client = Connection::open(port_after(&server, "  APIs     http://localhost:"));

    let credentials = br#"{"username": "anna", "password": "secret"}"#.to_vec();
    let json = [("Content-Type", "application/json")];
    let (status, reply) = https.ask(Method::Post, "/oauth2/token", &json, credentials);
    assert_eq!(status, 200);
    let bearer = format!("Bearer {}", reply["accessToken"].as_str().unwrap());
    let wrong = br#"{"username": "anna", "password": "Secret"}"#.to_vec();
    assert_eq!(https.ask(Method::Post, "/oauth2/token", &json, wrong).0, 401);
    assert_eq!(https.ask(Method::Get, "/apis", &[], Vec::new()).0, 401);

    let (status, reply) = https.deploy(&bearer, "", &project("books", backend));
    assert_eq!((status, &reply["info"]), (200, &"books:1.0.0".into()), "{reply}");
    assert_eq!(client.request("GET", "/books/1.0.0/items/7", &[], b"").status, 200);
    assert_eq!(https.deploy(BASIC, "", &project("books", backend)).0, 409);
    assert_eq!(https.deploy(BASIC, "?override=true", &project("books", backend)).0, 200);

    // Calls during the replacement succeed.
    let stop = Arc::new(AtomicBool::new(false));
    let (port, until) = (port_after(&server, "  APIs     http://localhost:"), stop.clone());
    let caller = std::thread::spawn(move || {
        let mut client = Connection::open(port);
        let mut calls = 0;
        while !until.load(Ordering::Relaxed) {
            assert_eq!(client.request("GET", "/books/1.0.0/items/7", &[], b"").status, 200);
            calls += 1;
        }
        calls
    });
    for _ in 0..10 {
        assert_eq!(https.deploy(BASIC, "?override=true", &project("books", backend)).0, 200);
    }
    stop.store(true, Ordering::Relaxed);
    assert!(caller.join().unwrap() > 10);

    // A faulty one changes nothing and gets its errors.
    let broken = zip(&[("api.yaml", &descriptor("books", backend).replace("/items/*", "items"))]);
    let broken = [broken, zip(&[("api.yaml", "type: api\ndata: {name: books, version: 1.0.0}\n")])];
    assert_eq!(https.deploy(BASIC, "?override=true", &broken[0]).0, 200);
    let (status, reply) = https.deploy(BASIC, "?override=true", &broken[1]);
    assert_eq!(status, 400);
    assert!(reply["description"].as_str().unwrap().ends_with("api.yaml:2:7: error: an API needs `context`"), "{reply}");
    // One that takes the place of another is refused as well.
    let elsewhere = descriptor("other", backend).replace("context: /other", "context: /books");
    let (status, reply) = https.deploy(BASIC, "", &zip(&[("api.yaml", &elsewhere)]));
    assert_eq!(status, 409, "{reply}");
    assert!(reply["description"].as_str().unwrap().contains("is served already, by "), "{reply}");

    let (_, list) = https.ask(Method::Get, "/apis?query=type:http&limit=1", &[("Authorization", BASIC)], Vec::new());
    assert_eq!((&list["total"], &list["count"]), (&1.into(), &1.into()));
    assert_eq!((&list["list"][0]["apiName"], &list["list"][0]["vhost"]), (&"books".into(), &"*".into()));
    drop(server);

    let server = Server::start(&folder, &["run"], &toml);
    let https = Https::new(port_after(&server, "  adapter  https://localhost:"));
    let mut client = Connection::open(port_after(&server, "  APIs     http://localhost:"));
    assert_eq!(client.request("GET", "/books/1.0.0/items", &[], b"").status, 200);
    let delete =
        |query: &str| https.ask(Method::Delete, &format!("/apis?{query}"), &[("Authorization", BASIC)], Vec::new()).0;
    assert_eq!(delete("apiName=books"), 400);
    assert_eq!(delete("apiName=books&version=2.0.0"), 404);
    assert_eq!(delete("apiName=books&version=1.0.0"), 200);
    assert_eq!(client.request("GET", "/books/1.0.0/items", &[], b"").status, 404);
    assert_eq!(delete("apiName=books&version=1.0.0"), 404);
}

/// A token that is revoked is refused at once, with every token that a core remembers, and after a restart.
#[test]
fn tokens_are_revoked_over_https_and_stay_so() {
    let (folder, backend) = (Folder::new("managed-revoked"), backend());
    let adapter = "[adapter]\nenabled = true\nport = 0\nstate = 'kept'\nusers.anna = 'secret'\n";
    let toml = format!("{PORTS}\n{adapter}");
    folder.write("all/shop/api.yaml", descriptor("shop", backend).replace(", authType: None", ""));
    let token = |id: &str| {
        let claim = format!("jti={id}");
        let made = penstock(&folder.0, &["token", "--config", "penstock.toml", "--claim", &claim]);
        assert_eq!(made.status, 0, "{}", made.stderr);
        made.stdout.trim().to_owned()
    };
    let server = Server::start(&folder, &["run", "all"], &toml);
    let https = Https::new(port_after(&server, "  adapter  https://localhost:"));
    let mut client = Connection::open(port_after(&server, "  APIs     http://localhost:"));
    let mut call = |token: &str| {
        let bearer = format!("Bearer {token}");
        client.request("GET", "/shop/1.0.0/items/7", &[("Authorization", &bearer)], b"").status
    };
    let (first, second, third) = (token("one"), token("two"), token("three"));
    assert_eq!([&first, &second, &third].map(|token| call(token)), [200, 200, 200]);

    let revoke = |body: serde_json::Value| {
        https.ask(Method::Post, "/revoked-tokens", &[("Authorization", BASIC)], body.to_string().into_bytes())
    };
    assert_eq!(https.ask(Method::Get, "/revoked-tokens", &[], Vec::new()).0, 401);
    let (status, reply) = revoke(serde_json::json!({ "token": first }));
    assert_eq!((status, &reply["jti"], &reply["revoked"]), (200, &"one".into(), &true.into()), "{reply}");
    assert!(reply["expires"].as_u64().is_some_and(|expires| expires > 1_700_000_000), "{reply}");
    assert_eq!(call(&first), 401);
    assert_eq!(revoke(serde_json::json!({ "token": first })).1["revoked"], false);
    assert_eq!(revoke(serde_json::json!({ "jti": "two" })).0, 200);
    for bad in ["{}", "[", r#"{"token":"a.b"}"#, r#"{"token":"a.b.c","jti":"x"}"#, r#"{"jti":"x","expires":"soon"}"#] {
        let (status, _) =
            https.ask(Method::Post, "/revoked-tokens", &[("Authorization", BASIC)], bad.as_bytes().to_vec());
        assert_eq!(status, 400, "{bad}");
    }
    assert_eq!([&second, &third].map(|token| call(token)), [401, 200]);
    let (_, list) = https.ask(Method::Get, "/revoked-tokens?limit=1", &[("Authorization", BASIC)], Vec::new());
    assert_eq!((&list["total"], &list["list"][0]["jti"]), (&2.into(), &"one".into()));
    assert!(!server.log().contains(&first));
    drop(server);

    let server = Server::start(&folder, &["run", "all"], &toml);
    let https = Https::new(port_after(&server, "  adapter  https://localhost:"));
    let mut client = Connection::open(port_after(&server, "  APIs     http://localhost:"));
    let mut call = |token: &str| {
        let bearer = format!("Bearer {token}");
        client.request("GET", "/shop/1.0.0/items/7", &[("Authorization", &bearer)], b"").status
    };
    assert_eq!([&first, &second, &third].map(|token| call(token)), [401, 401, 200]);
    let delete = |id: &str| {
        let path = format!("/revoked-tokens?jti={id}");
        https.ask(Method::Delete, &path, &[("Authorization", BASIC)], Vec::new()).0
    };
    assert_eq!([delete("two"), delete("two")], [200, 404]);
    assert_eq!(call(&second), 200);
}
