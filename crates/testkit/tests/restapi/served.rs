//! What is served under which path and host, and what is said of what is not.

use penstock_testkit::gateway::{Backend, TestGateway};

use crate::{api, refused, setup, start};

#[test]
fn paths_and_methods() {
    let backend = Backend::echo();
    let text = api(&backend, "")
        .replace("context: /books", "context: /books/$version")
        .replace("  operations:\n", "  operations:\n  - {method: GET, path: '/all/*'}\n");
    let gateway = start(&text);
    for (method, path, expected) in [
        ("GET", "/books/v1.0/list?a=1", Some("/b/list?a=1")),
        ("GET", "/books/v1.0/one/7", Some("/b/one/7")),
        ("GET", "/books/v1.0/all/x/y", Some("/b/all/x/y")),
        ("POST", "/books/v1.0/list", Some("/b/list")),
        ("GET", "/books/v1.0/one/7/8", None),
        ("GET", "/books/v1.0/none", None),
        ("GET", "/books/list", None),
        // As in the original a method without an operation is not found, and nobody answers `OPTIONS` by themselves.
        ("DELETE", "/books/v1.0/list", None),
        ("OPTIONS", "/books/v1.0/list", None),
    ] {
        backend.forget();
        let reply = gateway.client().request(method, path, &[], b"");
        assert_eq!(reply.status, if expected.is_some() { 204 } else { 404 }, "{method} {path}");
        assert_eq!(backend.received().first().map(|received| &*received.target), expected, "{method} {path}");
    }
}

#[test]
fn hosts_and_the_sandbox() {
    let (main, sandbox) = (Backend::echo(), Backend::echo());
    let text = api(&main, "").replace(
        "/b'}}",
        &format!(
            "/b'}}, sandbox: {{url: '{}/s'}}}}\n  vhosts: {{main: api.example.com, sandbox: try.example.com}}",
            sandbox.url()
        ),
    );
    let gateway = start(&text);
    let status = |host: &str| gateway.client().get("/books/list", &[("Host", host)]).status;
    assert_eq!(
        (status("api.example.com"), status("try.example.com:8080"), status("other.example.com")),
        (204, 204, 404)
    );
    assert_eq!((main.received().len(), &*sandbox.last().target), (1, "/s/list"));
}

#[test]
fn several_backends_take_turns() {
    let (first, second) = (Backend::echo(), Backend::echo());
    let text = api(&first, "").replace(&format!("main: {{url: '{}/b'}}", first.url()), "main: {ref: both}").replace(
        "  operations:",
        &format!(
            "  upstreamDefinitions: [{{name: both, upstreams: [{{url: '{}'}}, {{url: '{}'}}]}}]\n  operations:",
            first.url(),
            second.url()
        ),
    );
    let gateway = start(&text);
    for _ in 0..10 {
        assert_eq!(gateway.client().get("/books/list", &[]).status, 204);
    }
    assert!(first.received().len() > 1 && second.received().len() > 1);
}

#[test]
fn what_cannot_be_served_is_said_with_its_place() {
    let backend = Backend::echo();
    let of = |policy: &str| refused(&api(&backend, policy));
    assert_eq!(
        of("- {name: jwt-aut, version: v1}"),
        [
            "api.yaml:14:12: error: the policy `jwt-aut` is not known, did you mean `jwt-auth`?; an API is not served without one of its policies"
        ]
    );
    assert_eq!(
        of("- {name: jwt-auth, version: v1, params: {requiredScope: [a]}}"),
        ["api.yaml:14:44: error: unknown parameter `requiredScope`, did you mean `requiredScopes`?"]
    );
    assert_eq!(
        of("- {name: basic-ratelimit, version: v1, params: {limits: [{requests: 0, duration: 1x}]}}"),
        [
            "api.yaml:14:71: error: `requests` must be a whole number from 1 to 1000000000",
            "api.yaml:14:84: error: `duration` must be a time, as `1m` or `1h30m`",
        ]
    );
    assert_eq!(
        of("- {name: jwt-auth, version: v1, executionCondition: 'request.Methd == \"GET\"'}"),
        [
            "api.yaml:14:55: error: `executionCondition`: unknown variable `request.Methd`, did you mean `request.Method`?"
        ]
    );
}

#[test]
fn others_are_served_beside_a_faulty_one() {
    let backend = Backend::echo();
    let mut faulty = setup(&api(&backend, "- {name: none, version: v1}"));
    let good = penstock_testkit::gateway::project(
        "good",
        &[("api.yaml", &api(&backend, "").replace("/books", "/good").replace("Books", "Good"))],
    );
    faulty.inputs.extend(good.into_iter().map(|mut input| {
        input.kind = penstock_compile::InputKind::Api { project: "good".into(), path: String::new() };
        input
    }));
    let (gateway, names): (TestGateway, Vec<String>) = TestGateway::try_start(faulty);
    assert!(names[0] == "Books:v1.0" && !names.iter().any(|name| name.contains("Good")), "{names:?}");
    assert_eq!(gateway.client().get("/good/list", &[]).status, 204);
    assert_eq!(gateway.client().get("/books/list", &[]).status, 404);
}
