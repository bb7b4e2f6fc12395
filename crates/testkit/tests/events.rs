//! Server-sent events through a managed API: each at once, over every kind of connection, and counted.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use bytes::Bytes;
use penstock_catalog::PlanLevel;
use penstock_gateway::parse_plan;
use penstock_testkit::gateway::{Setup, TestGateway, client_tls, project};
use rustls::pki_types::ServerName;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(20);

/// A backend that sends what it is given, piece by piece, until that is `end`, to one client after the other.
struct Events {
    url: String,
    pieces: Sender<&'static str>,
}

fn events() -> Events {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (pieces, given) = channel::<&'static str>();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut reader = BufReader::new(socket.try_clone().unwrap());
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap_or(0) > 2 {
                line.clear();
            }
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\
                        Transfer-Encoding: chunked\r\n\r\n";
            socket.write_all(head.as_bytes()).unwrap();
            while let Ok(piece) = given.recv() {
                if piece == "end" || socket.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).is_err() {
                    break;
                }
            }
            let _ = socket.write_all(b"0\r\n\r\n");
        }
    });
    Events { url, pieces }
}

/// A project of the type `SSE`.
fn served(events: &Events, more: Value, plan: Option<&str>) -> TestGateway {
    let mut data = json!({
        "name": "Ticker", "version": "1.0.0", "context": "/ticker", "type": "SSE",
        "endpointConfig": { "endpoint_type": "http", "production_endpoints": { "url": events.url } },
        "operations": [{ "target": "/prices", "verb": "SUBSCRIBE", "authType": "None", "throttlingPolicy": "Few" }],
    });
    data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let descriptor = json!({ "type": "api", "version": "v4.7.0", "data": data }).to_string();
    let definition = "asyncapi: 2.0.0\ninfo: {title: Ticker, version: 1.0.0}\n\
                      servers:\n  production: {url: 'http://127.0.0.1:9', protocol: sse}\n\
                      channels:\n  /prices:\n    subscribe: {x-auth-type: None}\n  prices/{name}:\n    subscribe: {}\n";
    let inputs = project("ticker", &[("api.yaml", &*descriptor), ("Definitions/asyncapi.yaml", definition)]);
    TestGateway::start(Setup { inputs, ..Setup::of([]) }.serving_unprotected(&["Ticker"]).configured(|config| {
        config.limits.plans = plan.iter().map(|plan| parse_plan(PlanLevel::Api, "Few", plan).unwrap()).collect();
        // An answer must begin within it; it may last longer.
        config.route_timeout = Duration::from_millis(500);
    }))
}

fn ask(gateway: &TestGateway) -> TcpStream {
    let mut socket = TcpStream::connect(("127.0.0.1", gateway.http)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.write_all(REQUEST).unwrap();
    socket
}

const REQUEST: &[u8] = b"GET /ticker/1.0.0/prices HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n";

/// Reads until a text has come; all that came.
#[track_caller]
fn until(socket: &mut impl Read, text: &str) -> String {
    let mut got = Vec::new();
    let mut piece = [0; 512];
    while !String::from_utf8_lossy(&got).contains(text) {
        match socket.read(&mut piece) {
            Ok(count) if count > 0 => got.extend_from_slice(&piece[..count]),
            other => panic!("{other:?} after {}", String::from_utf8_lossy(&got)),
        }
    }
    String::from_utf8(got).unwrap()
}

#[test]
fn each_event_goes_on_at_once() {
    let events = events();
    let gateway = served(&events, json!({}), None);
    let mut socket = ask(&gateway);
    events.pieces.send("data: 1\n\n").unwrap();
    let head = until(&mut socket, "data: 1\n\n").to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200") && head.contains("content-type: text/event-stream"), "{head}");
    assert!(!head.contains("content-encoding"), "{head}");
    for piece in ["da", "ta: 2", "\n\n", ": a comment\n\n"] {
        events.pieces.send(piece).unwrap();
        until(&mut socket, piece);
    }
    std::thread::sleep(Duration::from_millis(700));
    events.pieces.send("data: 3\n\n").unwrap();
    until(&mut socket, "data: 3\n\n");
    events.pieces.send("end").unwrap();
    until(&mut socket, "0\r\n\r\n");
}

#[test]
fn over_tls_and_http_2_too() {
    let events = events();
    let gateway = served(&events, json!({}), None);
    let mut config = client_tls(&gateway.certificate, None);
    let name = ServerName::try_from("localhost").unwrap();
    let tls = rustls::ClientConnection::new(Arc::new(config.clone()), name.clone()).unwrap();
    let socket = TcpStream::connect(("127.0.0.1", gateway.https)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut socket = rustls::StreamOwned::new(tls, socket);
    socket.write_all(REQUEST).unwrap();
    for piece in ["data: 1\n\n", "data: 2\n\n"] {
        events.pieces.send(piece).unwrap();
        until(&mut socket, piece);
    }
    events.pieces.send("end").unwrap();
    until(&mut socket, "0\r\n\r\n");

    config.alpn_protocols = vec![b"h2".to_vec()];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let socket = tokio::net::TcpStream::connect(("127.0.0.1", gateway.https)).await.unwrap();
        let socket = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, socket).await.unwrap();
        let (mut client, connection) = h2::client::handshake(socket).await.unwrap();
        tokio::spawn(connection);
        let request = http::Request::get("https://localhost/ticker/1.0.0/prices").body(()).unwrap();
        let (answer, _) = client.send_request(request, true).unwrap();
        let mut answer = answer.await.unwrap();
        assert_eq!(answer.status(), 200);
        for piece in ["data: 1\n\n", "data: 2\n\n"] {
            events.pieces.send(piece).unwrap();
            let got = tokio::time::timeout(PATIENCE, answer.body_mut().data()).await.unwrap().unwrap().unwrap();
            assert_eq!(got, Bytes::from_static(piece.as_bytes()));
        }
    });
}

#[test]
fn events_count_and_the_stream_ends_before_one_that_is_too_much() {
    let events = events();
    let gateway = served(&events, json!({}), Some("3/1h"));
    let mut socket = ask(&gateway);
    for piece in [": hello\n\ndata: 1\n\n", "data: 2\n\nid: 3\n", "data: 3\n\n"] {
        events.pieces.send(piece).unwrap();
        until(&mut socket, piece);
    }
    events.pieces.send(": still here\n\nda").unwrap();
    let rest = until(&mut socket, "0\r\n\r\n");
    assert!(rest.contains(": still here\n\n") && !rest.contains("da"), "{rest}");
    assert_eq!(gateway.state().limits_used("resource")[0].used, 3);
    let refused = gateway.client().get("/ticker/1.0.0/prices", &[]);
    assert_eq!((refused.status, refused.json()["code"].as_str()), (429, Some("900802")));
    assert!(refused.header("retry-after").is_some());
    gateway.state().reset_limits("resource");
    events.pieces.send("end").unwrap();
    let mut again = ask(&gateway);
    events.pieces.send("data: 4\n\n").unwrap();
    until(&mut again, "data: 4\n\n");
    events.pieces.send("end").unwrap();
}

#[test]
fn bytes_of_events_count() {
    let events = events();
    let gateway = served(&events, json!({}), Some("20B/1h"));
    let mut socket = ask(&gateway);
    // What reaches the limit passes.
    for piece in ["data: 12345\n\n", "data: 67890\n\n"] {
        events.pieces.send(piece).unwrap();
        until(&mut socket, piece);
    }
    events.pieces.send("data: more\n\n").unwrap();
    let rest = until(&mut socket, "0\r\n\r\n");
    assert!(!rest.contains("data"), "{rest}");
}

#[test]
fn a_definition_alone_is_enough() {
    let events = events();
    let definition = format!(
        "asyncapi: 2.0.0\ninfo: {{title: Ticker, version: 1.0.0}}\nx-wso2-basePath: /ticker/1.0.0\n\
         servers:\n  production: {{url: '{}', protocol: sse}}\n\
         channels:\n  /prices:\n    subscribe: {{x-auth-type: None}}\n",
        events.url
    );
    let gateway = TestGateway::start(Setup::project(&[("", &definition)]));
    let mut socket = ask(&gateway);
    events.pieces.send("data: 1\n\n").unwrap();
    until(&mut socket, "data: 1\n\n");
    events.pieces.send("end").unwrap();
}

#[test]
fn topics_of_a_definition_are_served_as_they_are_secured() {
    let events = events();
    let gateway = served(&events, json!({ "operations": [] }), None);
    assert_eq!(gateway.client().get("/ticker/1.0.0/prices/gold", &[]).status, 401);
    assert_eq!(gateway.client().get("/ticker/1.0.0/other", &[]).status, 404);
    assert_eq!(gateway.client().request("POST", "/ticker/1.0.0/prices", &[], b"").status, 405);
    let mut socket = ask(&gateway);
    events.pieces.send("data: 1\n\n").unwrap();
    until(&mut socket, "data: 1\n\n");
    events.pieces.send("end").unwrap();
}
