//! `set-headers`, `add-headers`, `remove-headers`, `modify-headers`, `cors`, `respond`, `request-rewrite`, `log-message`,
//! `dynamic-endpoint`.

use penstock_testkit::gateway::{Answer, Backend};

use crate::{api, start};

#[test]
fn fields_of_requests_and_answers() {
    let backend = Backend::start(|_| Answer::status(204).with("X-Old", "1").with("X-Seen", "backend"));
    let gateway = start(&api(
        &backend,
        "- {name: set-headers, version: v1, params: {request: {headers: [{name: X-Set, value: a}]}, response: {headers: [{name: X-Seen, value: api}]}}}\n\
         - {name: add-headers, version: v1, params: {request: {headers: [{name: X-Set, value: b}]}}}\n\
         - {name: remove-headers, version: v1, params: {request: {headers: [{name: X-In}]}, response: {headers: [{name: X-Old}]}}}\n\
         - {name: modify-headers, version: v0, params: {requestHeaders: [{action: SET, name: X-More, value: c}, {action: DELETE, name: X-Out}]}}\n",
    ));
    let reply = gateway.client().get("/books/list", &[("X-Set", "sent"), ("X-In", "1"), ("X-Out", "1")]);
    assert_eq!((reply.header("x-seen"), reply.header("x-old")), (Some("api"), None));
    let received = backend.last();
    let all: Vec<&str> = received
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("x-set"))
        .map(|(_, value)| &**value)
        .collect();
    assert_eq!(all.join(","), "a,b");
    assert_eq!((received.header("x-more"), received.header("x-in"), received.header("x-out")), (Some("c"), None, None));
}

#[test]
fn policies_of_the_api_run_first_and_answers_pass_them_backwards() {
    let backend = Backend::echo();
    let set = |value: &str| {
        format!(
            "{{name: set-headers, version: v1, params: {{request: {{headers: [{{name: X-Who, value: {value}}}]}}, \
             response: {{headers: [{{name: X-Who, value: {value}}}]}}}}}}"
        )
    };
    let text = api(&backend, &format!("- {}", set("api")));
    let text = text.replacen("path: /list}", &format!("path: /list, policies: [{}]}}", set("operation")), 1);
    let reply = start(&text).client().get("/books/list", &[]);
    assert_eq!((backend.last().header("x-who"), reply.header("x-who")), (Some("operation"), Some("api")));
}

#[test]
fn an_answer_of_a_policy_ends_everything() {
    let backend = Backend::echo();
    let gateway = start(&api(
        &backend,
        "- {name: set-headers, version: v1, params: {response: {headers: [{name: X-Late, value: a}]}}}\n\
         - {name: respond, version: v1, params: {statusCode: 418, body: '{}', headers: [{name: content-type, value: application/json}, {name: X-Own, value: b}]}}\n\
         - {name: jwt-auth, version: v1}\n",
    ));
    let reply = gateway.client().get("/books/list", &[]);
    assert_eq!((reply.status, &*reply.text(), reply.header("content-type")), (418, "{}", Some("application/json")));
    assert_eq!((reply.header("x-own"), reply.header("x-late")), (Some("b"), None));
    assert_eq!(backend.received().len(), 0);
}

#[test]
fn pages_of_other_sites() {
    let backend =
        Backend::start(|_| Answer::status(204).with("Access-Control-Allow-Origin", "*").with("Vary", "Accept"));
    let policy = "- {name: cors, version: v1, params: {allowedOrigins: ['https://shop.example.com'], allowedMethods: [GET, POST], \
                  allowedHeaders: [X-A, X-B], exposedHeaders: [X-C], maxAge: 60, allowCredentials: true}}";
    let text = api(&backend, policy).replace("  policies:", "  - {method: OPTIONS, path: /list}\n  policies:");
    let gateway = start(&text);
    let mut client = gateway.client();
    let mut preflight = |origin: &str, method: &str, headers: &str| {
        let headers = [
            ("Origin", origin),
            ("Access-Control-Request-Method", method),
            ("Access-Control-Request-Headers", headers),
        ];
        client.request("OPTIONS", "/books/list", &headers, b"")
    };
    let good = preflight("https://shop.example.com", "POST", "x-b, x-a");
    let expected = [
        ("access-control-allow-origin", "https://shop.example.com"),
        ("access-control-allow-methods", "GET,POST"),
        ("access-control-allow-headers", "X-A,X-B"),
        ("access-control-max-age", "60"),
        ("access-control-allow-credentials", "true"),
        ("vary", "Origin"),
    ];
    assert_eq!(good.status, 204);
    for (name, value) in expected {
        assert_eq!(good.header(name), Some(value), "{name}");
    }
    for (origin, method, headers) in [
        ("https://evil.example.com", "GET", "x-a"),
        ("https://shop.example.com", "PUT", "x-a"),
        ("https://shop.example.com", "GET", "x-z"),
    ] {
        let reply = preflight(origin, method, headers);
        assert_eq!(
            (reply.status, reply.header("access-control-allow-origin")),
            (204, None),
            "{origin} {method} {headers}"
        );
    }
    assert_eq!(backend.received().len(), 0);
    let reply = gateway.client().get("/books/list", &[("Origin", "https://shop.example.com")]);
    assert_eq!(reply.header("access-control-allow-origin"), Some("https://shop.example.com"));
    assert_eq!(reply.header("access-control-expose-headers"), Some("X-C"));
    let vary = reply.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("vary")).map(|(_, value)| &**value);
    assert_eq!(vary.collect::<Vec<_>>(), ["Accept", "Origin"]);
    // What the backend says does not let others in.
    let reply = gateway.client().get("/books/list", &[("Origin", "https://evil.example.com")]);
    assert_eq!(reply.header("access-control-allow-origin"), None);
}

#[test]
fn requests_are_written_anew() {
    for (params, sent, expected) in [
        ("pathRewrite: {type: ReplaceFullPath, replaceFullPath: /other}", "/books/list?a=1", "GET /b/other?a=1"),
        ("pathRewrite: {type: ReplacePrefixMatch, replacePrefixMatch: /all}", "/books/list", "GET /b/all"),
        (
            "pathRewrite: {type: ReplaceRegexMatch, replaceRegexMatch: {pattern: '^/one/(.*)$', substitution: '/two/\\1/x'}}",
            "/books/one/7",
            "GET /b/two/7/x",
        ),
        (
            "queryRewrite: {rules: [{action: Remove, name: a}, {action: Add, name: c, value: '3'}]}",
            "/books/list?a=1&b=2",
            "GET /b/list?b=2&c=3",
        ),
        ("methodRewrite: POST", "/books/list", "POST /b/list"),
        ("match: {headers: [{name: X-No, type: Present}]}, methodRewrite: POST", "/books/list", "GET /b/list"),
    ] {
        let backend = Backend::echo();
        let gateway = start(&api(&backend, &format!("- {{name: request-rewrite, version: v1, params: {{{params}}}}}")));
        gateway.client().get(sent, &[]);
        let received = backend.last();
        assert_eq!(format!("{} {}", received.method, received.target), expected, "{params}");
    }
}

/// Parts of the client's path that are put together anew never become a step to another path.
#[test]
fn a_rewritten_path_does_not_climb() {
    let params =
        "pathRewrite: {type: ReplaceRegexMatch, replaceRegexMatch: {pattern: '^/li(.*)st$', substitution: '/\\1/x'}}";
    let backend = Backend::echo();
    let policy = format!("- {{name: request-rewrite, version: v1, params: {{{params}}}}}");
    let gateway = start(&api(&backend, &policy).replace("path: /list", "path: '/{name}'"));
    assert_eq!(gateway.client().get("/books/li-a-st", &[]).status, 204);
    assert_eq!(backend.last().target, "/b/-a-/x");
    for climbing in ["/books/li..st", "/books/li%2e%2est", "/books/li%2e.st"] {
        assert_eq!(gateway.client().get(climbing, &[]).status, 404, "{climbing}");
    }
    assert_eq!(backend.received().len(), 1);
}

#[test]
fn what_passes_is_logged() {
    let backend = Backend::echo();
    let params = "request: {payload: true, headers: true, excludeHeaders: [x-b]}, response: {payload: true}";
    let gateway = start(&api(&backend, &format!("- {{name: log-message, version: v1, params: {{{params}}}}}")));
    let headers = [("X-A", "1"), ("X-B", "2"), ("Authorization", "Bearer secret"), ("Content-Type", "text/plain")];
    assert_eq!(gateway.client().request("POST", "/books/list", &headers, b"hello").text(), "hello");
    let log = gateway.log();
    assert!(log.contains(r#""mediation-flow":"REQUEST""#) && log.contains(r#""mediation-flow":"RESPONSE""#), "{log}");
    assert!(log.contains(r#""payload":"hello""#) && log.contains(r#""x-a":"1""#), "{log}");
    assert!(!log.contains("x-b") && !log.contains("secret"), "{log}");
}

#[test]
fn another_backend() {
    let (backend, other) = (Backend::echo(), Backend::echo());
    let text = api(&backend, "- {name: dynamic-endpoint, version: v1, params: {targetUpstream: other}}").replace(
        "  operations:",
        &format!(
            "  upstreamDefinitions: [{{name: other, basePath: /o, upstreams: [{{url: '{}'}}]}}]\n  operations:",
            other.url()
        ),
    );
    assert_eq!(start(&text).client().get("/books/list", &[]).status, 204);
    assert_eq!((backend.received().len(), &*other.last().target), (0, "/o/list"));
}

#[test]
fn policies_may_have_conditions() {
    let backend = Backend::echo();
    let gateway = start(&api(
        &backend,
        "- {name: respond, version: v1, params: {statusCode: 403}, executionCondition: 'request.Method == \"POST\" && \"x-ok\" in request.Headers == false'}\n\
         - {name: set-headers, version: v1, executionCondition: 'processing.phase == \"request_headers\" || response.ResponseStatus == 200', \
         params: {request: {headers: [{name: X-Set, value: a}]}, response: {headers: [{name: X-Late, value: b}]}}}\n\
         - {name: respond, version: v1, params: {statusCode: 418}, executionCondition: 'request.Headers[\"x-fail\"][0] == request.Path'}\n",
    ));
    let mut client = gateway.client();
    let ok = ("X-Ok", "1");
    let reply =
        client.request("POST", "/books/list", &[ok, ("X-Fail", "no"), ("Content-Type", "text/plain")], b"hello");
    assert_eq!((reply.status, reply.header("x-late"), backend.last().header("x-set")), (200, Some("b"), Some("a")));
    assert_eq!(client.request("POST", "/books/list", &[], b"").status, 403);
    let reply = client.get("/books/list", &[("X-Fail", "no")]);
    assert_eq!((reply.status, reply.header("x-late")), (204, None));
    assert_eq!(client.get("/books/list?a=1", &[("X-Fail", "/books/list?a=1")]).status, 418);
    // One that cannot be computed lets nothing through.
    backend.forget();
    assert_eq!(client.get("/books/list", &[]).status, 500);
    assert_eq!(backend.received().len(), 0);
}
