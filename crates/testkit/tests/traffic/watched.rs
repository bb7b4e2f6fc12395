//! Metrics and traces of requests.

use std::time::{Duration, Instant};

use penstock_testkit::gateway::{Answer, Backend, Setup, TestGateway};
use serde_json::{Value, json};

use crate::open_api;

#[test]
fn requests_are_counted_by_operation_and_class() {
    let backend = Backend::start(|request| Answer::status(if request.target.ends_with("bad") { 500 } else { 204 }));
    let gateway = TestGateway::start(Setup::of([open_api("/a", &backend, &["GET /pet/{id}", "GET /y"])]));
    let mut client = gateway.client();
    for path in ["/a/pet/1", "/a/pet/2", "/a/pet/bad", "/a/y"] {
        client.get(path, &[]);
    }
    let mut page = String::new();
    gateway.state().write_metrics(&mut page);
    let labels = "api=\"a\",version=\"1.0.0\",method=\"GET\"";
    for line in [
        format!("penstock_gateway_request_seconds_count{{{labels},path=\"/pet/{{id}}\",class=\"2xx\"}} 2"),
        format!("penstock_gateway_request_seconds_count{{{labels},path=\"/pet/{{id}}\",class=\"5xx\"}} 1"),
        format!("penstock_gateway_request_seconds_count{{{labels},path=\"/y\",class=\"2xx\"}} 1"),
    ] {
        assert!(page.contains(&line), "{line}\n{page}");
    }
}

/// The spans a receiver got.
fn spans(receiver: &Backend) -> Vec<Value> {
    let documents = receiver.received();
    let scopes = documents.iter().flat_map(|document| {
        document.json()["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned().unwrap_or_default()
    });
    scopes.collect()
}

#[test]
fn traces_go_on_through_the_gateway() {
    let receiver = Backend::start(|_| Answer::new(200, "application/json", "{}"));
    let backend = Backend::echo();
    let setup = Setup::of([open_api("/a", &backend, &["GET /pet/{id}"])]).configured(|config| {
        config.tracing.endpoint = Some(format!("{}/v1/traces", receiver.url()).into());
    });
    let gateway = TestGateway::start(setup);
    let mut client = gateway.client();
    let trace = "0af7651916cd43dd8448eb211c80319c";
    client.get("/a/pet/7", &[("traceparent", &format!("00-{trace}-b7ad6b7169203331-01"))]);
    let field = backend.last().header("traceparent").unwrap().to_owned();
    assert!(field.starts_with(&format!("00-{trace}-")) && field.ends_with("-01"), "{field}");
    assert!(!field.contains("b7ad6b7169203331"), "the backend's parent is our span");
    // A caller that does not want to be traced is not.
    client.get("/a/pet/8", &[("traceparent", &format!("00-{}-b7ad6b7169203331-00", trace.replace('0', "1")))]);
    client.get("/a/pet/9", &[]);
    let patience = Instant::now() + Duration::from_secs(20);
    while spans(&receiver).len() < 4 {
        assert!(Instant::now() < patience, "{:?}", spans(&receiver));
        std::thread::sleep(Duration::from_millis(50));
    }
    let spans = spans(&receiver);
    assert_eq!(spans.len(), 4, "{spans:?}");
    let of_trace: Vec<&Value> = spans.iter().filter(|span| span["traceId"] == trace).collect();
    let server = of_trace.iter().find(|span| span["kind"] == 2).unwrap();
    let client_span = of_trace.iter().find(|span| span["kind"] == 3).unwrap();
    assert_eq!(server["parentSpanId"], "b7ad6b7169203331");
    assert_eq!(client_span["parentSpanId"], server["spanId"]);
    assert!(field.contains(client_span["spanId"].as_str().unwrap()));
    assert_eq!(server["name"], "GET /a/pet/{id}");
    let attribute = |span: &Value, key: &str| {
        let all = span["attributes"].as_array().unwrap();
        all.iter().find(|one| one["key"] == key).map_or(Value::Null, |one| one["value"].clone())
    };
    let port = backend.url().rsplit(':').next().unwrap().to_owned();
    for (span, key, expected) in [
        (server, "http.request.method", json!({"stringValue": "GET"})),
        (server, "http.route", json!({"stringValue": "/a/pet/{id}"})),
        (server, "http.response.status_code", json!({"intValue": "204"})),
        (server, "url.path", json!({"stringValue": "/a/pet/7"})),
        (server, "url.scheme", json!({"stringValue": "http"})),
        (server, "client.address", json!({"stringValue": "127.0.0.1"})),
        (server, "network.protocol.version", json!({"stringValue": "1.1"})),
        (server, "error.type", Value::Null),
        (client_span, "http.request.method", json!({"stringValue": "GET"})),
        (client_span, "http.response.status_code", json!({"intValue": "204"})),
        (client_span, "server.address", json!({"stringValue": "127.0.0.1"})),
        (client_span, "server.port", json!({"intValue": port})),
        (client_span, "http.request.resend_count", Value::Null),
    ] {
        assert_eq!(attribute(span, key), expected, "{key}");
    }
    let url = attribute(client_span, "url.full")["stringValue"].as_str().unwrap().to_owned();
    assert!(url.starts_with(&backend.url()) && url.ends_with("/pet/7"), "{url}");
    assert_eq!(receiver.last().target, "/v1/traces");
}

#[test]
fn a_receiver_that_is_away_costs_no_request() {
    let backend = Backend::echo();
    let setup = Setup::of([open_api("/a", &backend, &["GET /x"])])
        .configured(|config| config.tracing.endpoint = Some("http://127.0.0.1:1/v1/traces".into()));
    let gateway = TestGateway::start(setup);
    let mut client = gateway.client();
    for _ in 0..50 {
        assert_eq!(client.get("/a/x", &[]).status, 204);
    }
}
