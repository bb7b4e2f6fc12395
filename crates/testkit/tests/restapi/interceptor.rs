//! `interceptor-service`.

use penstock_testkit::gateway::{Answer, Backend, TestGateway};
use serde_json::{Value, json};

use crate::{api, start};

/// `hello` and `changed`.
const HELLO: &str = "aGVsbG8=";
const CHANGED: &str = "Y2hhbmdlZA==";

fn with(backend: &Backend, service: &Backend, params: &str) -> TestGateway {
    let policy = format!(
        "- {{name: interceptor-service, version: v1, params: {{endpoint: '{}/api', {params}}}}}",
        service.url()
    );
    start(&api(backend, &policy))
}

fn told(service: &Backend) -> Value {
    serde_json::from_slice(&service.last().body).unwrap()
}

#[test]
fn the_service_answers_itself() {
    let (backend, service) = (
        Backend::echo(),
        Backend::start(|_| {
            Answer::json(&json!({
                "directRespond": true, "responseCode": 403, "body": CHANGED,
                "headersToAdd": {"X-Decision": "denied", "Content-Type": "application/problem"},
            }))
        }),
    );
    let gateway = with(&backend, &service, "request: {}");
    let reply =
        gateway.client().request("POST", "/books/list?a=1", &[("X-In", "1"), ("Content-Type", "text/plain")], b"hello");
    assert_eq!((reply.status, &*reply.text()), (403, "changed"));
    assert_eq!(
        (reply.header("x-decision"), reply.header("content-type")),
        (Some("denied"), Some("application/problem"))
    );
    assert_eq!(backend.received().len(), 0);
    assert_eq!(&*service.last().target, "/api/handle-request");
    let told = told(&service);
    assert_eq!((&told["requestBody"], &told["requestHeaders"]["x-in"]), (&json!(HELLO), &json!("1")));
    let invocation = &told["invocationContext"];
    for (name, expected) in [
        ("apiName", "Books"),
        ("apiVersion", "v1.0"),
        ("method", "POST"),
        ("basePath", "/books"),
        ("path", "/books/list?a=1"),
        ("pathTemplate", "/list"),
        ("scheme", "http"),
    ] {
        assert_eq!(invocation[name], expected, "{name}");
    }
}

#[test]
fn requests_and_answers_are_changed_with_a_context_between() {
    let backend = Backend::echo();
    let service = Backend::start(|request| {
        let told: Value = serde_json::from_slice(&request.body).unwrap();
        match request.target.ends_with("/handle-request") {
            true => Answer::json(&json!({
                "headersToAdd": {"X-Added": "1"}, "headersToReplace": {"X-In": "2"}, "headersToRemove": ["X-Gone"],
                "body": CHANGED, "interceptorContext": {"seen": "yes"},
            })),
            false => Answer::json(&json!({
                "responseCode": 202, "body": HELLO,
                "headersToAdd": {"X-Context": told["interceptorContext"]["seen"], "X-Was": told["responseCode"].to_string()},
            })),
        }
    });
    let gateway = with(&backend, &service, "request: {}, response: {includeRequestHeaders: true}");
    let headers = [("X-In", "1"), ("X-Gone", "1"), ("Content-Type", "text/plain")];
    let reply = gateway.client().request("POST", "/books/list", &headers, b"hello");
    assert_eq!((reply.status, &*reply.text()), (202, "hello"), "{}", gateway.log());
    assert_eq!((reply.header("x-context"), reply.header("x-was")), (Some("yes"), Some("200")));
    let received = backend.last();
    assert_eq!(&*received.body, b"changed");
    assert_eq!(received.header("x-added"), Some("1"));
    assert_eq!((received.header("x-in"), received.header("x-gone")), (Some("2"), None));
    let told = told(&service);
    assert_eq!((&told["responseBody"], &told["requestHeaders"]["x-gone"]), (&json!(CHANGED), &json!("1")));
    assert_eq!(told.get("requestBody"), None);
}

#[test]
fn only_included_parts_are_sent() {
    let (backend, service) = (Backend::echo(), Backend::start(|_| Answer::json(&json!({}))));
    let gateway = with(&backend, &service, "request: {includeRequestBody: false, includeRequestHeaders: false}");
    let reply = gateway.client().request("POST", "/books/list", &[("Content-Type", "text/plain")], b"hello");
    assert_eq!((reply.status, &*reply.text()), (200, "hello"));
    let told = told(&service);
    let names: Vec<&String> = told.as_object().unwrap().keys().collect();
    assert_eq!(names, ["invocationContext"]);
}

#[test]
fn services_that_fail() {
    let backend = Backend::echo();
    for answer in [Answer::status(500), Answer::new(200, "application/json", "{"), Answer::garbage("x")] {
        let service = Backend::start(move |_| answer.clone());
        let gateway = with(&backend, &service, "request: {}");
        let reply = gateway.client().get("/books/list", &[]);
        assert_eq!((reply.status, reply.json()["type"].clone()), (500, json!("INTERCEPTOR_SERVICE")));
        assert!(gateway.log().contains("the interceptor service"), "{}", gateway.log());
        let gateway =
            with(&backend, &service, "request: {passthroughOnError: true}, response: {passthroughOnError: true}");
        assert_eq!(gateway.client().get("/books/list", &[]).status, 204);
        let gateway = with(&backend, &service, "response: {}");
        assert_eq!(gateway.client().get("/books/list", &[]).status, 500);
    }
    // One that does not answer in time.
    let service = Backend::start(|_| Answer::status(200).after(std::time::Duration::from_secs(2)));
    let gateway = with(&backend, &service, "request: {}, timeoutMillis: 150");
    assert_eq!(gateway.client().get("/books/list", &[]).status, 500);
}
