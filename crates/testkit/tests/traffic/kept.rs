//! Answers that are given again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use penstock_catalog::{Api, Operation};
use penstock_testkit::gateway::{Answer, Backend, Client, Received, Reply, Setup, TestGateway, project};
use serde_json::json;

use crate::{at_once, open_api};

/// Answers with a number of its own each time, and with what the query asks for.
fn counting() -> Backend {
    let count = AtomicUsize::new(0);
    Backend::start(move |request: &Received| {
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        let plain = Answer::new(200, "text/plain", number.to_string());
        match request.target.split_once('?').map(|(_, query)| query) {
            Some("no-store") => plain.with("Cache-Control", "no-store"),
            Some("private") => plain.with("Cache-Control", "private, max-age=60"),
            Some("one-second") => plain.with("Cache-Control", "max-age=1"),
            Some("aged") => plain.with("Cache-Control", "max-age=100").with("Age", "40"),
            Some("cookie") => plain.with("Set-Cookie", "a=b"),
            Some("missing") => Answer::new(404, "text/plain", number.to_string()),
            Some("large") => Answer::new(200, "text/plain", format!("{number}{}", " ".repeat(2_000_000))),
            Some("chunked") => Answer::garbage(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n\
                 1\r\n<\r\n{:x}\r\n{number}\r\n0\r\n\r\n",
                number.to_string().len()
            )),
            Some("broken") => Answer::garbage("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nhalf"),
            _ => plain.with("X-Kept", "yes"),
        }
    })
}

fn caching(backend: &Backend, seconds: u64) -> Api {
    let mut api = open_api("/c", backend, &["GET /*", "HEAD /*", "POST /*"]);
    api.response_cache = Some(Duration::from_secs(seconds));
    api
}

fn start(backend: &Backend) -> (TestGateway, Client) {
    let gateway = TestGateway::start(Setup::of([caching(backend, 60)]));
    let client = gateway.client();
    (gateway, client)
}

#[test]
fn answers_are_given_again() {
    let backend = counting();
    let (_gateway, mut client) = start(&backend);
    let first = client.get("/c/a?x=1", &[]);
    assert_eq!((first.text().as_str(), first.header("age")), ("1", None));
    let second = client.get("/c/a?x=1", &[("User-Agent", "another"), ("X-Request-ID", "2")]);
    assert_eq!((second.text().as_str(), second.header("age").is_some()), ("1", true));
    assert_eq!(
        (second.status, second.header("x-kept"), second.header("content-type")),
        (200, Some("yes"), Some("text/plain"))
    );
    for (target, headers) in [
        ("/c/a?x=2", &[][..]),
        ("/c/b?x=1", &[]),
        ("/c/a?x=1", &[("Accept", "text/html")]),
        ("/c/a?x=1", &[("X-User", "a")]),
        ("/c/a?x=1", &[("X-User", "b")]),
        ("/c/a?x=1", &[("X-Tenant", "blue")]),
    ] {
        let before = backend.received().len();
        let first = client.get(target, headers).text();
        assert_eq!(client.get(target, headers).text(), first, "{target} {headers:?}");
        assert_eq!(backend.received().len(), before + 1, "{target} {headers:?}");
    }
    // An open operation passes credentials on, so the response may be for their owner only.
    let before = backend.received().len();
    assert_eq!(client.get("/c/a?x=1", &[("Authorization", "Bearer a")]).header("age"), None);
    assert_eq!(backend.received().len(), before + 1);
    for _ in 0..2 {
        assert_eq!(client.get("/c/a?chunked", &[]).text(), "<9");
    }
    assert_eq!(client.get("/c/a?aged", &[]).header("age"), Some("40"));
    assert_eq!(client.get("/c/a?aged", &[]).header("age"), Some("40"));
    let head = |client: &mut Client| client.request("HEAD", "/c/head", &[], b"");
    let (first, second) = (head(&mut client), head(&mut client));
    assert_eq!((first.header("content-length"), second.header("content-length")), (Some("2"), Some("2")));
    assert_eq!((first.header("age"), second.header("age")), (None, Some("0")));
}

#[test]
fn uncacheable_responses_are_fetched_each_time() {
    let backend = counting();
    let (_gateway, mut client) = start(&backend);
    for query in ["no-store", "private", "cookie", "missing", "large"] {
        let target = format!("/c/a?{query}");
        let first = client.get(&target, &[]).text();
        assert_ne!(client.get(&target, &[]).text(), first, "{query}");
    }
    for headers in [("Cache-Control", "no-store"), ("Range", "bytes=0-1"), ("If-None-Match", "\"1\"")] {
        let first = client.get("/c/wish", &[headers]).text();
        assert_ne!(client.get("/c/wish", &[headers]).text(), first, "{headers:?}");
    }
    let post = |client: &mut Client| client.request("POST", "/c/a", &[], b"x").text();
    assert_ne!(post(&mut client), post(&mut client));
    // A new answer replaces the kept one.
    let old = client.get("/c/renew", &[]).text();
    let new = client.get("/c/renew", &[("Cache-Control", "no-cache")]).text();
    assert_ne!(old, new);
    assert_eq!(client.get("/c/renew", &[]).text(), new);
}

#[test]
fn an_answer_that_broke_off_is_not_kept() {
    let backend = counting();
    let (gateway, _) = start(&backend);
    for _ in 0..2 {
        let before = backend.received().len();
        let _ = gateway.client().try_request("GET", "/c/a?broken", &[], b"");
        assert_eq!(backend.received().len(), before + 1);
    }
}

#[test]
fn answers_become_too_old() {
    let backend = counting();
    let (_gateway, mut client) = start(&backend);
    assert_eq!(client.get("/c/a?one-second", &[]).text(), "1");
    assert_eq!(client.get("/c/a?one-second", &[]).text(), "1");
    let mut text = "1".to_owned();
    // No longer than the client's own patience.
    for _ in 0..100 {
        if text != "1" {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
        text = client.get("/c/a?one-second", &[]).text();
    }
    assert_eq!(text, "2");
}

#[test]
fn each_caller_has_answers_of_its_own() {
    let backend = counting();
    let mut api = caching(&backend, 60);
    for operation in &mut api.operations {
        *operation = Arc::new(Operation { secured: true, ..(**operation).clone() });
    }
    let gateway = TestGateway::start(Setup::of([api]));
    let mut client = gateway.client();
    let (ann, bob) = (gateway.bearer(&json!({ "sub": "ann" })), gateway.bearer(&json!({ "sub": "bob" })));
    let get = |client: &mut Client, bearer: &str| client.get("/c/a", &[("Authorization", bearer)]).text();
    assert_eq!((get(&mut client, &ann), get(&mut client, &bob)), ("1".to_owned(), "2".to_owned()));
    assert_eq!((get(&mut client, &ann), get(&mut client, &bob)), ("1".to_owned(), "2".to_owned()));
    assert_eq!(client.get("/c/a", &[]).status, 401, "a cached response needs credentials, too");
}

#[test]
fn a_kept_answer_is_given_to_many_at_once() {
    let backend = counting();
    let (gateway, mut client) = start(&backend);
    assert_eq!(client.get("/c/a", &[]).text(), "1");
    assert_eq!(at_once(50, || gateway.client().get("/c/a", &[]).status), [200; 50]);
    assert_eq!(backend.received().len(), 1);
}

const DEFINITION: &str = r#"
openapi: 3.0.3
info: { title: Kept, version: "1" }
x-wso2-basePath: /k
x-wso2-disable-security: true
x-wso2-response-cache: { enabled: true, cacheTimeoutInSeconds: 60 }
servers: [{ url: BACKEND }]
paths: { /a: { get: { responses: { default: { description: all } } } } }
"#;

#[test]
fn projects_and_definitions_ask_for_it() {
    let backend = counting();
    let text = DEFINITION.replace("BACKEND", &backend.url());
    let without = text.replace("enabled: true", "enabled: false");
    let descriptor = |more: &str| format!("type: api\ndata: {{ name: Kept, version: '1', context: /k, {more} }}\n");
    let on = descriptor("responseCachingEnabled: true, cacheTimeout: 60");
    let off = descriptor("responseCachingEnabled: false, cacheTimeout: 60");
    for (api, definition, kept) in
        [(None, &text, true), (None, &without, false), (Some(&on), &without, true), (Some(&off), &without, false)]
    {
        let files: Vec<(&str, &str)> = match api {
            Some(api) => vec![("api.yaml", api), ("Definitions/swagger.yaml", definition)],
            None => vec![("", definition)],
        };
        let gateway = TestGateway::start(Setup { inputs: project("kept", &files), ..Setup::of([]) });
        let mut client = gateway.client();
        let texts: Vec<String> = (0..2).map(|_| Reply::text(&client.get("/k/a", &[]))).collect();
        assert_eq!(texts[0] == texts[1], kept, "{api:?} {definition}");
    }
}
