//! Rules for browsers on other sites.

use penstock_catalog::Cors;
use penstock_testkit::gateway::{Answer, Backend, Reply, api, secured_api};

use super::start;

fn browsers(origins: &[&str], credentials: bool) -> Cors {
    let list = |values: &[&str]| values.iter().map(|value| (*value).into()).collect();
    Cors {
        enabled: true,
        origins: list(origins),
        methods: list(&["GET", "POST", "OPTIONS"]),
        headers: list(&["Content-Type", "apikey"]),
        expose_headers: Vec::new(),
        credentials,
    }
}

fn cors_fields(reply: &Reply) -> Vec<String> {
    let fields = reply.headers.iter().map(|(name, value)| format!("{}: {value}", name.to_lowercase()));
    let mut fields: Vec<String> = fields.filter(|line| line.starts_with("access-control-")).collect();
    fields.sort();
    fields
}

#[test]
fn every_answer_says_which_origin_may_see_it() {
    let backend = Backend::start(|request| match request.target.contains("own") {
        true => Answer::status(200).with("Access-Control-Allow-Origin", "http://its-own.com"),
        false => Answer::status(200),
    });
    let operations = ["GET /x", "GET /own", "POST /x", "DELETE /x", "OPTIONS /own"];
    let mut every = secured_api("/every", &backend.url(), &operations);
    every.cors = Some(browsers(&["*"], true));
    let mut some = api("/some", &backend.url(), &operations);
    some.cors = Some(browsers(&["http://a.com", "http://*.b.com"], true));
    let gateway = start([every, some]);
    let mut client = gateway.client();
    assert_eq!(cors_fields(&client.get("/every/x", &[])), ["access-control-allow-origin: *"], "errors, too");
    let origin = |origin| [("Origin", origin)];
    assert_eq!(client.get("/every/x", &[]).header("vary"), None);
    let listed = ["access-control-allow-credentials: true", "access-control-allow-origin: http://a.com"];
    let reply = client.get("/some/x", &origin("http://a.com"));
    assert_eq!((cors_fields(&reply), reply.header("vary")), (listed.map(str::to_owned).to_vec(), Some("Origin")));
    for fields in [&origin("http://evil.com")[..], &origin("http://b.com.evil")[..], &[][..]] {
        let reply = client.get("/some/x", fields);
        assert_eq!((reply.status, cors_fields(&reply)), (200, vec![]), "{fields:?}");
    }
    let own = client.get("/some/own", &origin("http://a.com"));
    assert_eq!(cors_fields(&own)[1..], ["access-control-allow-origin: http://its-own.com"]);
}

#[test]
fn a_preflight_request_is_answered_for_the_resource_it_means() {
    let backend = Backend::start(|request| Answer::new(200, "text/plain", request.method.clone()));
    let mut described = api("/some", &backend.url(), &["GET /x", "POST /x", "DELETE /x", "GET /own", "OPTIONS /own"]);
    described.cors = Some(browsers(&["http://a.com"], false));
    let gateway = start([described]);
    let mut client = gateway.client();
    let mut ask = |path: &str, origin: &str, method: &str| {
        let fields = [("Origin", origin), ("Access-Control-Request-Method", method)];
        client.request("OPTIONS", path, &fields, b"")
    };
    let reply = ask("/some/x", "http://a.com", "POST");
    let allowed = [
        "access-control-allow-headers: Content-Type,apikey,authorization",
        "access-control-allow-methods: GET,POST",
        "access-control-allow-origin: http://a.com",
    ];
    assert_eq!((reply.status, cors_fields(&reply)), (200, allowed.map(str::to_owned).to_vec()));
    assert_eq!(cors_fields(&ask("/some/x", "http://evil.com", "POST")), &allowed[..2]);
    assert_eq!(ask("/some/x", "http://a.com", "PUT").status, 405);
    assert_eq!(ask("/some/nothing", "http://a.com", "GET").status, 404);
    assert_eq!(ask("/some/own", "http://a.com", "GET").text(), "OPTIONS", "the API answers itself");
    assert_eq!(backend.received().len(), 1);
}
