//! What a user sees of a deployment: `list`, standard input, completions, and the log at `debug` and `trace`.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::{Folder, Server, penstock};

const ORDERS: &str = r#"<api xmlns="http://ws.apache.org/ns/synapse" name="Orders" context="/orders">
  <resource methods="GET POST" uri-template="/{id}">
    <inSequence>
      <property name="kept" value="yes"/>
      <sequence key="Ask"/>
      <respond/>
    </inSequence>
  </resource>
</api>"#;

const ASK: &str = r#"<sequence xmlns="http://ws.apache.org/ns/synapse" name="Ask">
  <call><endpoint key="Warehouse"/></call>
</sequence>"#;

fn endpoint(port: u16) -> String {
    format!(
        "<endpoint xmlns='http://ws.apache.org/ns/synapse' name='Warehouse'><address uri='http://localhost:{port}/w'/></endpoint>"
    )
}

#[test]
fn a_list_names_resources_and_endpoints() {
    let folder = Folder::new("list");
    folder.write("a/orders.xml", ORDERS);
    folder.write("a/ask.xml", ASK);
    folder.write("a/warehouse.xml", endpoint(1));
    folder.write("b/broken.xml", "<api xmlns='http://ws.apache.org/ns/synapse' name='Broken' context='/b'><resource methods='GET'><inSequence><nothing/></inSequence></resource></api>");
    let done = penstock(&folder.0, &["list", "a", "--json"]);
    assert_eq!(done.status, 0, "{}{}", done.stdout, done.stderr);
    let rows: Value = serde_json::from_str(&done.stdout).unwrap();
    let api = &rows[0];
    assert_eq!((&api["kind"], &api["name"], &api["context"]), (&json!("api"), &json!("Orders"), &json!("/orders")));
    assert_eq!(api["resources"], json!([{"methods": ["GET", "POST"], "path": "/{id}"}]));
    // By way of the sequence.
    assert_eq!((&api["endpoints"], &api["file"]), (&json!(["Warehouse"]), &json!("a/orders.xml")));
    let warehouse = rows.as_array().unwrap().iter().find(|row| row["kind"] == "endpoint").unwrap();
    assert_eq!(warehouse["url"], "http://localhost:1/w");
    let done = penstock(&folder.0, &["list", "a", "b"]);
    assert_eq!(done.status, 1, "{}", done.stdout);
    assert!(done.stdout.contains("GET POST /{id}") && done.stdout.contains("endpoints: Warehouse"), "{}", done.stdout);
    let broken = done.stdout.lines().find(|line| line.contains("Broken")).unwrap();
    assert!(broken.contains("FAILED") && broken.contains("b/broken.xml:1:1"), "{broken}");
}

#[test]
fn a_list_has_the_operations_of_managed_apis() {
    let folder = Folder::new("list-managed");
    let definition = "openapi: 3.0.1\ninfo: { title: Pets, version: '1' }\nx-wso2-basePath: /pets\n\
         servers: [{ url: 'http://localhost:9/p' }]\npaths: { /cat: { get: { responses: {} } } }\n";
    folder.write("pets.yaml", definition);
    let done = penstock(&folder.0, &["list", "pets.yaml", "--json"]);
    let rows: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{}{}", done.stdout, done.stderr));
    assert_eq!(rows[0]["kind"], "managed-api", "{}", done.stdout);
    assert_eq!(rows[0]["resources"], json!([{"methods": ["GET"], "path": "/cat"}]), "{}", done.stdout);
    assert_eq!(rows[0]["endpoints"], json!(["http://localhost:9/p"]));
}

fn with_input(folder: &Folder, arguments: &[&str], input: &[u8]) -> (i32, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_penstock"))
        .args(arguments)
        .current_dir(&folder.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_dash_is_standard_input() {
    let folder = Folder::new("stdin");
    let (status, text) = with_input(&folder, &["check", "-"], ORDERS.as_bytes());
    assert!(text.starts_with("<stdin>:5:17: warning: unknown sequence `Ask`"), "{text}");
    assert!(status == 0 && text.ends_with("1 artifact, 1 good: 0 errors, 1 warning\n"), "{text}");
    let (status, text) = with_input(&folder, &["list", "-", "--json"], ORDERS.as_bytes());
    assert!(status == 0 && text.contains("\"<stdin>\""), "{text}");
    let (status, text) = with_input(&folder, &["check", "-"], b"plain text");
    assert!(status == 1 && text.contains("<stdin>:1:1: error: neither an artifact"), "{text}");
    folder.write("a.xml", ASK);
    let (status, text) = with_input(&folder, &["check", "--config", "-", "a.xml"], b"wrokers = 2\n");
    assert!(status == 1 && text.is_empty(), "{text}");
}

#[test]
fn completions_and_help_know_every_command() {
    let folder = Folder::new("completions");
    for shell in ["bash", "zsh", "fish"] {
        let done = penstock(&folder.0, &["completions", shell]);
        assert_eq!(done.status, 0, "{}", done.stderr);
        for word in ["run", "list", "echo", "bench", "log-level", "delay", "completions"] {
            assert!(done.stdout.contains(word), "{shell} does not complete `{word}`");
        }
    }
    let done = penstock(&folder.0, &["help", "list"]);
    assert!(done.status == 0 && done.stdout.contains("--json"), "{}{}", done.stdout, done.stderr);
    let done = penstock(&folder.0, &["bench"]);
    assert!(done.status == 2 && !done.stderr.contains("error"), "{}", done.stderr);
}

/// Two servers: the second is the backend of the first.
fn servers(name: &str, level: &str) -> (Folder, Server, Server) {
    let folder = Folder::new(name);
    let backend = Folder::new(&format!("{name}-backend"));
    let answer = "<payloadFactory media-type='json'><format>{\"ok\": true}</format><args/></payloadFactory><respond/>";
    let api = format!(
        "<api xmlns='http://ws.apache.org/ns/synapse' name='W' context='/w'><resource methods='GET'><inSequence>{answer}</inSequence></resource></api>"
    );
    backend.write("w.xml", api);
    let second = Server::start(&backend, &["run", "w.xml"], "");
    folder.write("a/orders.xml", ORDERS);
    folder.write("a/ask.xml", ASK);
    folder.write("a/warehouse.xml", endpoint(second.http));
    let first = Server::start(&folder, &["run", "a", "--log-level", level], "");
    drop(backend);
    (folder, first, second)
}

#[test]
fn debug_has_a_line_for_each_request() {
    let (_folder, mut server, backend) = servers("debug", "debug");
    assert_eq!(server.get("/orders/7").status, 200);
    assert_eq!(server.get("/nowhere").status, 404);
    server.wait_for_log("DEBUG {Request} - GET /nowhere: no flow, status 404");
    let call = format!("endpoint Warehouse GET http://localhost:{}/w", backend.http);
    server.wait_for_log(&call);
    server.wait_for_log("GET /orders/7: route");
    let log = server.log();
    let line = log.lines().find(|line| line.contains("GET /orders/7")).unwrap();
    assert!(
        line.contains("DEBUG {Request} - {api:Orders} GET /orders/7: route /orders/{id}, status 200 in "),
        "{line}"
    );
    assert!(!log.contains("TRACE"), "{log}");
}

#[test]
fn trace_has_a_line_for_each_mediator() {
    let (_folder, mut server, _backend) = servers("trace", "trace");
    let mut connection = support::Connection::open(server.http);
    let reply = connection.request("GET", "/orders/7", &[("Authorization", "Bearer secret-token")], b"");
    assert_eq!(reply.status, 200);
    server.wait_for_log("DEBUG {Request}");
    let log = server.log();
    for expected in [
        "TRACE {Mediator} - {api:Orders} <property> at a/orders.xml:4:7: property kept = yes (",
        "<sequence> at a/orders.xml:5:7: enters the sequence `Ask`",
        "<call> at a/ask.xml:2:3: calls the endpoint Warehouse; status 200",
        "<respond> at a/orders.xml:6:7: responds",
    ] {
        assert!(log.contains(expected), "no `{expected}` in\n{log}");
    }
    assert!(!log.contains("secret-token"), "{log}");
}

#[test]
fn the_echo_backend_describes_requests_without_a_body() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_penstock"))
        .args(["echo", "--port", "0", "--describe", "--address", "127.0.0.1"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stderr.take().unwrap()), &mut line).unwrap();
    let port: String = line.rsplit_once("localhost:").unwrap().1.chars().take_while(char::is_ascii_digit).collect();
    let mut connection = support::Connection::open(port.parse().unwrap());
    let described = connection.request("GET", "/books/42", &[], b"");
    let echoed = connection.request("POST", "/books", &[("Content-Type", "text/plain")], b"a book");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(described.body, r#"{"method":"GET","path":"/books/42"}"#);
    assert!(described.head.contains("Content-Type: application/json"), "{}", described.head);
    assert_eq!(echoed.body, "a book");
}
