//! The gateway of this crate's tests itself: a request comes through, over TCP and over TLS.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use penstock_testkit::gateway::{Answer, Backend, Setup, TestGateway, api};

#[test]
fn requests_reach_the_backend_and_answers_the_client() {
    let backend = Backend::start(|request| Answer::new(201, "text/plain", request.target.clone()).with("X-A", "b"));
    let gateway = TestGateway::start(Setup::of([api("/a", &backend.url(), &["GET /pet/{id}", "POST /pet"])]));
    for mut client in [gateway.client(), gateway.tls_client()] {
        let reply = client.get("/a/pet/7?x=1", &[]);
        assert_eq!((reply.status, reply.text().as_str(), reply.header("x-a")), (201, "/pet/7?x=1", Some("b")));
        let reply = client.request("POST", "/a/pet", &[("Content-Type", "text/plain")], b"hello");
        assert_eq!((reply.status, backend.last().text().as_str()), (201, "hello"));
        assert_eq!(client.get("/nowhere", &[]).status, 404);
    }
}

#[test]
fn backends_over_tls_need_a_trusted_certificate() {
    let backend = Backend::start_tls(|_| Answer::new(200, "text/plain", "secret"), None);
    let apis = || [api("/a", &backend.url(), &["GET /x"])];
    let gateway = TestGateway::start(Setup::of(apis()).trusting(&backend));
    assert_eq!(gateway.client().get("/a/x", &[]).text(), "secret");
    let gateway = TestGateway::start(Setup::of(apis()));
    assert!(gateway.client().get("/a/x", &[]).status >= 500);
}
