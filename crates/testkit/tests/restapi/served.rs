//! What is served under which path and host, and what is said of what is not.

use std::time::Duration;

use penstock_testkit::gateway::{Answer, Backend, TestGateway};

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
        // As in the API Platform a method without an operation is not found, and `OPTIONS` has no default response.
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
fn lists_of_hosts_and_the_default_host_of_sandboxes() {
    let (main, sandbox) = (Backend::echo(), Backend::echo());
    let upstream = format!("/b'}}, sandbox: {{url: '{}/s'}}}}\n", sandbox.url());
    let listed = upstream.clone() + "  vhosts: {main: 'api.example.com; *.shop.example.com'}\n";
    let gateway = start(&api(&main, "").replace("/b'}}\n", &listed));
    let went = |gateway: &TestGateway, host: &str| {
        main.forget();
        sandbox.forget();
        let status = gateway.client().get("/books/list", &[("Host", host)]).status;
        (status, main.received().len(), sandbox.received().len())
    };
    for (host, expected) in [
        ("api.example.com", (204, 1, 0)),
        ("A.shop.example.com:8080", (204, 1, 0)),
        ("sandbox-api.example.com", (204, 0, 1)),
        ("shop.example.com", (404, 0, 0)),
        ("other.example.com", (404, 0, 0)),
    ] {
        assert_eq!(went(&gateway, host), expected, "{host}");
    }
    // Without hosts of its own an API is for any host, and `sandbox-*` leads to its sandbox.
    let gateway = start(&api(&main, "").replace("/b'}}\n", &upstream));
    assert_eq!(went(&gateway, "other.example.com"), (204, 1, 0));
    assert_eq!(went(&gateway, "sandbox-other.example.com"), (204, 0, 1));
}

#[test]
fn the_configuration_has_the_hosts_of_apis_that_name_none() {
    let backend = Backend::echo();
    let configured =
        setup(&api(&backend, "")).configured(|config| config.platform.hosts.main = vec!["api.example.com".into()]);
    let gateway = TestGateway::start(configured);
    let status = |host: &str| gateway.client().get("/books/list", &[("Host", host)]).status;
    assert_eq!((status("api.example.com"), status("other.example.com")), (204, 404));
}

#[test]
fn an_api_for_a_host_goes_before_one_for_a_wildcard() {
    let (one, below, any) = (Backend::echo(), Backend::echo(), Backend::echo());
    let named = |backend: &Backend, host: &str, name: &str| {
        let text = api(backend, "").replace("name: books", &format!("name: {name}"));
        let text = text.replace("displayName: Books", &format!("displayName: {name}"));
        let text = text.replace("  operations:", &format!("  vhosts: {{main: '{host}'}}\n  operations:"));
        penstock_testkit::gateway::project(name, &[("api.yaml", &text)])
            .into_iter()
            .map(move |mut input| {
                input.kind = penstock_compile::InputKind::Api { project: name.into(), path: String::new() };
                input
            })
            .collect::<Vec<_>>()
    };
    let mut all = setup(&api(&one, ""));
    all.inputs = named(&any, "*", "any");
    all.inputs.extend(named(&below, "*.example.com", "below"));
    all.inputs.extend(named(&one, "a.example.com", "one"));
    let gateway = TestGateway::start(all);
    for host in ["a.example.com", "b.example.com", "example.com"] {
        assert_eq!(gateway.client().get("/books/list", &[("Host", host)]).status, 204);
    }
    assert_eq!([one, below, any].map(|backend| backend.received().len()), [1, 1, 1]);
}

#[test]
fn fields_choose_the_operation() {
    let backend = Backend::echo();
    let respond = |status: u16| format!("policies: [{{name: respond, version: v1, params: {{statusCode: {status}}}}}]");
    let operations = format!(
        "  operations:\n  - {{method: GET, path: /pick, {}}}\n\
         \x20 - {{method: GET, path: /pick, matchHeaders: [{{name: X-Kind, value: 'v[0-9]+', type: RegularExpression}}], {}}}\n\
         \x20 - {{match: {{method: GET, path: {{value: /pick}}, headers: [{{name: x-kind, value: v1}}]}}, {}}}\n\
         \x20 - {{match: {{method: GET, path: {{value: /tree, type: PathPrefix}}}}, {}}}\n",
        respond(200),
        respond(201),
        respond(202),
        respond(203)
    );
    let gateway = start(&api(&backend, "").replace("  operations:\n", &operations));
    let status = |path: &str, kind: &str| gateway.client().get(path, &[("X-Kind", kind)]).status;
    assert_eq!(
        (status("/books/pick", "v1"), status("/books/pick", "v12"), status("/books/pick", "other")),
        (202, 201, 200)
    );
    assert_eq!((status("/books/tree", ""), status("/books/tree/a/b", ""), status("/books/trees", "")), (203, 203, 404));
}

#[test]
fn the_host_of_requests_to_backends() {
    let backend = Backend::echo();
    let rewrite = "- {name: host-rewrite, version: v1, params: {host: 'set.example.com:8080'}}";
    for (manual, policies, expected) in [
        (false, "", None),
        (false, rewrite, None),
        (true, "", Some("client.example.com")),
        (true, rewrite, Some("set.example.com:8080")),
    ] {
        let mut text = api(&backend, policies);
        if manual {
            text = text.replace("/b'}}", "/b', hostRewrite: manual}}");
        }
        let gateway = start(&text);
        assert_eq!(gateway.client().get("/books/list", &[("Host", "client.example.com")]).status, 204);
        let own = backend.url().trim_start_matches("http://").to_owned();
        assert_eq!(backend.last().header("host"), Some(expected.unwrap_or(&own)), "{manual} {policies}");
    }
}

#[test]
fn timeouts_of_apis_and_operations() {
    let slow = Backend::start(|_| Answer::status(204).after(Duration::from_millis(400)));
    let text = api(&slow, "").replace(
        "  operations:\n",
        "  resilience: {timeout: 50ms}\n  operations:\n  - {method: GET, path: /long, resilience: {timeout: 30s}}\n\
         \x20 - {method: GET, path: /any, resilience: {timeout: 0s}}\n",
    );
    let gateway = start(&text);
    let status = |path: &str| gateway.client().get(path, &[]).status;
    assert_eq!((status("/books/list"), status("/books/long"), status("/books/any")), (504, 204, 204));
}

#[test]
fn operations_have_backends_of_their_own() {
    let (main, own) = (Backend::echo(), Backend::echo());
    let text = api(&main, "").replace(
        "  operations:\n",
        &format!(
            "  upstreamDefinitions: [{{name: own, basePath: /o, upstreams: [{{url: '{}'}}]}}]\n  operations:\n\
             \x20 - {{method: GET, path: /own, upstream: {{main: {{ref: own}}}}}}\n\
             \x20 - {{method: GET, path: /try, upstream: {{sandbox: {{ref: own}}}}}}\n",
            own.url()
        ),
    );
    let gateway = start(&text);
    let get = |path: &str, host: &str| gateway.client().get(path, &[("Host", host)]).status;
    assert_eq!(get("/books/own", "a.example.com"), 204);
    assert_eq!((&*own.last().target, main.received().len()), ("/o/own", 0));
    assert_eq!(get("/books/try", "a.example.com"), 204);
    assert_eq!(&*main.last().target, "/b/try");
    assert_eq!(get("/books/try", "sandbox-a.example.com"), 204);
    assert_eq!(&*own.last().target, "/o/try");
    // An operation without a sandbox is not served on its host.
    assert_eq!(get("/books/list", "sandbox-a.example.com"), 404);
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
            "api.yaml:14:12: error: the policy `jwt-aut` is not supported, did you mean `jwt-auth`?; an API is not served without one of its policies"
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
