//! Rules for browsers on other sites.

use penstock_catalog::Cors;
use penstock_testkit::gateway::{Answer, Backend, Reply, Setup, TestGateway};

use crate::open_api;

fn rules(origins: &[&str]) -> Cors {
    let list = |values: &[&str]| values.iter().map(|value| (*value).into()).collect();
    Cors {
        enabled: true,
        origins: list(origins),
        methods: list(&["GET", "PUT", "POST", "OPTIONS"]),
        headers: list(&["authorization", "Content-Type"]),
        expose_headers: list(&["X-Total"]),
        credentials: true,
    }
}

fn cors_fields(reply: &Reply) -> Vec<String> {
    let fields = reply.headers.iter().map(|(name, value)| format!("{}: {value}", name.to_lowercase()));
    let mut fields: Vec<String> = fields.filter(|line| line.starts_with("access-control-")).collect();
    fields.sort();
    fields
}

fn gateway(own: Option<Cors>, global: Cors, backend: &Backend) -> TestGateway {
    let mut api = open_api("/cors", backend, &["GET /pet/{id}", "POST /pet/{id}"]);
    api.cors = own;
    TestGateway::start(Setup::of([api]).configured(|config| config.cors = global))
}

const ALLOWED: [&str; 5] = [
    "access-control-allow-credentials: true",
    "access-control-allow-headers: authorization, Content-Type",
    "access-control-allow-methods: GET, PUT, POST, OPTIONS",
    "access-control-allow-origin: ORIGIN",
    "access-control-expose-headers: X-Total",
];

fn preflight(gateway: &TestGateway, origin: &str, method: &str) -> Reply {
    let fields = [("Origin", origin), ("Access-Control-Request-Method", method)];
    gateway.client().request("OPTIONS", "/cors/pet/1", &fields, b"")
}

#[test]
fn a_preflight_request_is_answered_by_the_gateway() {
    let backend = Backend::start(|_| Answer::new(200, "text/plain", "pet").with("Access-Control-Allow-Origin", "own"));
    let gateway = gateway(Some(rules(&["http://test1.com", "http://*.wildcard.com"])), Cors::default(), &backend);
    for origin in ["http://test1.com", "http://x.wildcard.com"] {
        // What the browser asks for changes nothing: it compares.
        for method in ["POST", "DELETE"] {
            let reply = preflight(&gateway, origin, method);
            let expected = ALLOWED.map(|line| line.replace("ORIGIN", origin));
            assert_eq!((reply.status, cors_fields(&reply)), (200, expected.to_vec()), "{origin} {method}");
            assert_eq!(reply.text(), "");
        }
    }
    assert!(backend.received().is_empty());
    let reply = preflight(&gateway, "http://evil.com", "POST");
    assert_eq!((reply.status, cors_fields(&reply)), (204, vec![]));
    assert_eq!(reply.header("allow"), Some("OPTIONS, GET, POST"));
}

#[test]
fn answers_name_the_origin_that_may_see_them() {
    let backend = Backend::start(|_| Answer::new(200, "text/plain", "pet").with("Access-Control-Allow-Origin", "own"));
    let gateway = gateway(Some(rules(&["http://test1.com"])), Cors::default(), &backend);
    let reply = gateway.client().get("/cors/pet/1", &[("Origin", "http://test1.com")]);
    assert_eq!(reply.status, 200);
    assert_eq!(
        cors_fields(&reply),
        [
            "access-control-allow-credentials: true",
            "access-control-allow-origin: http://test1.com",
            "access-control-expose-headers: X-Total"
        ]
    );
    assert_eq!(reply.header("vary"), Some("Origin"));
    let silent = Backend::start(|_| Answer::new(200, "text/plain", "pet"));
    let gateway = self::gateway(Some(rules(&["http://test1.com"])), Cors::default(), &silent);
    for fields in [vec![("Origin", "http://evil.com")], vec![]] {
        let reply = gateway.client().get("/cors/pet/1", &fields);
        assert_eq!((reply.status, cors_fields(&reply)), (200, vec![]));
    }
}

#[test]
fn rules_that_are_off_leave_those_of_the_gateway() {
    let backend = Backend::echo();
    let off = Cors { enabled: false, ..rules(&["http://own.com"]) };
    for (own, global, origin, status) in [
        (None, rules(&["*"]), "http://any.com", 200),
        (Some(off.clone()), rules(&["*"]), "http://any.com", 200),
        (Some(rules(&["http://own.com"])), rules(&["*"]), "http://any.com", 204),
        (Some(off), Cors::default(), "http://own.com", 204),
        (None, Cors::default(), "http://own.com", 204),
    ] {
        let label = format!("{own:?} {origin}");
        assert_eq!(preflight(&gateway(own, global, &backend), origin, "GET").status, status, "{label}");
    }
}

#[test]
fn errors_may_be_seen_too() {
    let gateway = gateway(Some(rules(&["*"])), Cors::default(), &Backend::echo());
    let mut api = open_api("/gone", &Backend::echo(), &["GET /x"]);
    api.cors = Some(rules(&["*"]));
    let mut gateway = gateway;
    assert!(gateway.deploy(&[], &[api]).is_empty());
    let reply = gateway.client().get("/gone/x", &[("Origin", "http://a.com")]);
    assert_eq!(reply.status, 503);
    assert_eq!(reply.header("access-control-allow-origin"), Some("http://a.com"));
}

#[test]
fn options_of_the_api_itself_reach_the_backend() {
    let backend = Backend::start(|request| Answer::new(200, "text/plain", request.method.clone()));
    let mut api = open_api("/own", &backend, &["OPTIONS /x", "GET /x"]);
    api.cors = Some(rules(&["http://test1.com"]));
    let gateway = TestGateway::start(Setup::of([api]));
    assert_eq!(gateway.client().request("OPTIONS", "/own/x", &[], b"").text(), "OPTIONS");
    let fields = [("Origin", "http://test1.com"), ("Access-Control-Request-Method", "GET")];
    assert_eq!(gateway.client().request("OPTIONS", "/own/x", &fields, b"").text(), "");
}
