//! `basic-ratelimit` and `advanced-ratelimit`.

use std::time::Duration;

use penstock_testkit::gateway::{Answer, Backend, Reply, TestGateway};

use crate::{api, start};

fn advanced(backend: &Backend, params: &str) -> TestGateway {
    start(&api(backend, &format!("- {{name: advanced-ratelimit, version: v1, params: {{{params}}}}}")))
}

/// The statuses of this many requests.
fn get(gateway: &TestGateway, count: usize, path: &str, headers: &[(&str, &str)]) -> Vec<u16> {
    let mut client = gateway.client();
    (0..count).map(|_| client.get(path, headers).status).collect()
}

fn number(reply: &Reply, name: &str) -> u64 {
    reply.header(name).and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no number in `{name}`"))
}

#[test]
fn requests_are_counted_exactly_and_reported() {
    let backend = Backend::echo();
    let gateway = start(&api(
        &backend,
        "- {name: basic-ratelimit, version: v1, params: {limits: [{requests: 3, duration: 1h}]}}",
    ));
    let mut client = gateway.client();
    for left in [2, 1, 0] {
        let reply = client.get("/books/list", &[]);
        assert_eq!(reply.status, 204);
        assert_eq!((number(&reply, "x-ratelimit-limit"), number(&reply, "x-ratelimit-remaining")), (3, left));
        assert_eq!(reply.header("ratelimit-policy"), Some("\"default\";q=3;w=3600"));
        assert!(reply.header("ratelimit").unwrap().starts_with(&format!("\"default\";r={left};t=")));
        assert_eq!(reply.header("retry-after"), None);
    }
    // The quota of the API is one for all its operations.
    let reply = client.get("/books/one/7", &[]);
    assert_eq!((reply.status, reply.header("content-type")), (429, Some("application/json")));
    assert_eq!(
        reply.text(),
        r#"{"error": "Too Many Requests", "message": "Rate limit exceeded. Please try again later."}"#
    );
    assert_eq!(number(&reply, "x-ratelimit-remaining"), 0);
    assert_eq!(reply.header("x-ratelimit-quota"), Some("default"));
    let (reset, retry) = (number(&reply, "x-ratelimit-reset"), number(&reply, "retry-after"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!((1..=3600).contains(&retry) && reset.abs_diff(now + retry) <= 2, "{reset} {now} {retry}");
    assert_eq!(backend.received().len(), 3);
}

#[test]
fn many_at_once_are_counted_exactly() {
    let backend = Backend::echo();
    let gateway = start(&api(
        &backend,
        "- {name: basic-ratelimit, version: v1, params: {limits: [{requests: 20, duration: 1h}]}}",
    ));
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| get(&gateway, 10, "/books/list", &[]))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 204).count(), 20);
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 60);
}

/// Both are called `default` and stand for the whole API.
#[test]
fn quotas_of_an_api_do_not_disturb_each_other() {
    let backend = Backend::echo();
    let limit = |requests, window| {
        format!(
            "- {{name: basic-ratelimit, version: v1, params: {{limits: [{{requests: {requests}, duration: {window}}}]}}}}\n"
        )
    };
    let gateway = start(&api(&backend, &(limit(3, "1h") + &limit(1000, "24h"))));
    assert_eq!(get(&gateway, 4, "/books/list", &[]), [204, 204, 204, 429]);
    assert_eq!(get(&gateway, 1, "/books/one/7", &[]), [429]);
}

#[test]
fn an_operation_has_its_own_quota() {
    let backend = Backend::echo();
    let limit = "policies: [{name: basic-ratelimit, version: v1, params: {limits: [{requests: 1, duration: 1h}]}}]";
    let text = api(&backend, "").replace("path: /list}", &format!("path: /list, {limit}}}"));
    let gateway = start(&text);
    assert_eq!(get(&gateway, 2, "/books/list", &[]), [204, 429]);
    assert_eq!(gateway.client().request("POST", "/books/list", &[], b"").status, 204);
    assert_eq!(get(&gateway, 3, "/books/one/1", &[]), [204, 204, 204]);
}

#[test]
fn a_window_ends() {
    let backend = Backend::echo();
    let gateway = start(&api(
        &backend,
        "- {name: basic-ratelimit, version: v1, params: {limits: [{requests: 2, duration: 2s}]}}",
    ));
    // Windows begin at whole multiples of their length.
    let into = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64 % 2000;
    std::thread::sleep(Duration::from_millis(2050 - into));
    assert_eq!(get(&gateway, 3, "/books/list", &[]), [204, 204, 429]);
    std::thread::sleep(Duration::from_millis(2050));
    assert_eq!(get(&gateway, 3, "/books/list", &[]), [204, 204, 429]);
}

#[test]
fn several_limits_of_one_quota() {
    let backend = Backend::echo();
    let gateway =
        advanced(&backend, "quotas: [{name: q, limits: [{limit: 5, duration: 1h}, {limit: 2, duration: 24h}]}]");
    let mut client = gateway.client();
    assert_eq!(number(&client.get("/books/list", &[]), "x-ratelimit-limit"), 2);
    assert_eq!(get(&gateway, 2, "/books/list", &[]), [204, 429]);
}

#[test]
fn quotas_by_key() {
    let backend = Backend::echo();
    let header = "keyExtraction: [{type: header, key: X-User}]";
    let quota =
        |key: &str, limit: u32| format!("quotas: [{{name: q, limits: [{{limit: {limit}, duration: 1h}}], {key}}}]");
    let gateway = advanced(&backend, &quota(header, 2));
    let as_user = |name: &'static str| get(&gateway, 3, "/books/list", &[("X-User", name)]);
    assert_eq!((as_user("ann"), as_user("bob")), (vec![204, 204, 429], vec![204, 204, 429]));
    // Without the field all share a quota.
    assert_eq!(get(&gateway, 3, "/books/list", &[]), [204, 204, 429]);
    // Another operation has its own counters.
    assert_eq!(get(&gateway, 1, "/books/one/1", &[("X-User", "ann")]), [204]);

    let gateway = advanced(&backend, &quota("keyExtraction: [{type: apiname}]", 2));
    assert_eq!(
        (get(&gateway, 2, "/books/list", &[]), get(&gateway, 1, "/books/one/1", &[])),
        (vec![204, 204], vec![429])
    );

    let gateway = advanced(&backend, &quota("keyExtraction: [{type: ip}]", 1));
    for address in ["10.0.0.1", "10.0.0.2, 10.0.0.9"] {
        assert_eq!(get(&gateway, 2, "/books/list", &[("X-Forwarded-For", address)]), [204, 429], "{address}");
    }
    let both = "keyExtraction: [{type: header, key: X-User}, {type: header, key: X-Team}]";
    let gateway = advanced(&backend, &quota(both, 1));
    for team in ["a", "b"] {
        assert_eq!(get(&gateway, 2, "/books/list", &[("X-User", "ann"), ("X-Team", team)]), [204, 429]);
    }
}

#[test]
fn bursts_pass_and_then_a_steady_rate() {
    let backend = Backend::echo();
    let gateway =
        advanced(&backend, "algorithm: gcra, quotas: [{name: q, limits: [{limit: 60, duration: 1m, burst: 5}]}]");
    let mut client = gateway.client();
    let mut statuses: Vec<u16> = (0..5).map(|_| client.get("/books/list", &[]).status).collect();
    assert_eq!(statuses, [204; 5]);
    // One passes in a second: requests that follow the burst at once are refused until then.
    statuses = (0..3).map(|_| client.get("/books/list", &[]).status).collect();
    assert!(statuses.contains(&429), "{statuses:?}");
    let end = std::time::Instant::now() + Duration::from_secs(20);
    let mut reply = client.get("/books/list", &[]);
    while reply.status != 204 {
        assert!(std::time::Instant::now() < end, "no request passes after the burst");
        std::thread::sleep(Duration::from_millis(50));
        reply = client.get("/books/list", &[]);
    }
    assert_eq!(number(&reply, "x-ratelimit-limit"), 60);
}

#[test]
fn requests_cost_what_they_say() {
    let backend = Backend::echo();
    let cost =
        "costExtraction: {enabled: true, default: 1, sources: [{type: request_header, key: X-Cost, multiplier: 2}]}";
    let gateway = advanced(&backend, &format!("quotas: [{{name: q, limits: [{{limit: 10, duration: 1h}}], {cost}}}]"));
    let mut client = gateway.client();
    let reply = client.get("/books/list", &[("X-Cost", "3")]);
    assert_eq!((reply.status, number(&reply, "x-ratelimit-remaining")), (204, 4));
    // More than is left takes nothing; the default still fits.
    assert_eq!(client.get("/books/list", &[("X-Cost", "3")]).status, 429);
    assert_eq!(number(&client.get("/books/list", &[]), "x-ratelimit-remaining"), 3);
}

#[test]
fn answers_cost_what_their_bodies_say() {
    let backend = Backend::start(|_| Answer::new(200, "application/json", r#"{"usage":{"tokens":7}}"#));
    let cost =
        "costExtraction: {enabled: true, default: 0, sources: [{type: response_body, jsonPath: '$.usage.tokens'}]}";
    let gateway = advanced(&backend, &format!("quotas: [{{name: q, limits: [{{limit: 10, duration: 1h}}], {cost}}}]"));
    let mut client = gateway.client();
    let replies: Vec<Reply> = (0..3).map(|_| client.get("/books/list", &[])).collect();
    let statuses: Vec<u16> = replies.iter().map(|reply| reply.status).collect();
    assert_eq!(statuses, [200, 200, 429]);
    assert_eq!((number(&replies[0], "x-ratelimit-remaining"), number(&replies[1], "x-ratelimit-remaining")), (3, 0));
    assert_eq!(replies[0].json()["usage"]["tokens"], 7);
}

#[test]
fn refusals_and_fields_as_the_api_wants_them() {
    let backend = Backend::echo();
    let gateway = advanced(
        &backend,
        "quotas: [{name: q, limits: [{limit: 1, duration: 1h}]}], \
         onRateLimitExceeded: {statusCode: 503, body: 'later', bodyFormat: plain}, \
         headers: {includeXRateLimit: false, includeIETF: true, includeRetryAfter: false}",
    );
    let mut client = gateway.client();
    assert_eq!(client.get("/books/list", &[]).header("x-ratelimit-limit"), None);
    let reply = client.get("/books/list", &[]);
    assert_eq!((reply.status, reply.header("content-type"), &*reply.text()), (503, Some("text/plain"), "later"));
    assert_eq!((reply.header("retry-after"), reply.header("x-ratelimit-limit")), (None, None));
    assert!(reply.header("ratelimit").is_some());
}

#[test]
fn keys_and_costs_may_be_expressions() {
    let backend = Backend::start(|_| Answer::new(200, "application/json", "12345"));
    let key = r#"keyExtraction: [{type: cel, expression: '"x-user" in request.Headers ? request.Headers["x-user"][0] : api.Name'}]"#;
    let gateway = advanced(&backend, &format!("quotas: [{{name: q, limits: [{{limit: 1, duration: 1h}}], {key}}}]"));
    assert_eq!(get(&gateway, 2, "/books/list", &[("X-User", "ann")]), [200, 429]);
    assert_eq!(get(&gateway, 2, "/books/list", &[]), [200, 429]);

    let cost = |kind: &str, expression: &str| {
        format!(
            "quotas: [{{name: q, limits: [{{limit: 10, duration: 1h}}], \
             costExtraction: {{enabled: true, default: 9, sources: [{{type: {kind}, expression: '{expression}'}}]}}}}]"
        )
    };
    for (kind, expression, left) in [
        ("request_cel", "int(request.Headers[\"x-cost\"][0]) * 2", 4),
        ("request_cel", "size(request.Body)", 5),
        ("request_cel", "request.Headers[\"none\"][0] == \"\" ? 1 : 2", 1),
        ("response_cel", "response.Status == 200 ? size(response.Body) + 1 : 0", 4),
        ("response_cel", "double(request.Headers[\"x-cost\"][0]) / 2.0", 9),
    ] {
        let gateway = advanced(&backend, &cost(kind, expression));
        let headers = [("X-Cost", "3"), ("Content-Type", "text/plain")];
        let reply = gateway.client().request("POST", "/books/list", &headers, b"hello");
        assert_eq!(number(&reply, "x-ratelimit-remaining"), left, "{expression}");
        assert_eq!(&*backend.last().body, b"hello");
    }
}

#[test]
fn what_the_client_sent_counts_and_what_the_backend_tells_of_itself_does_not() {
    let backend = Backend::start(|_| {
        let events = "event: delta\ndata: {\"usage\":{\"n\":1}}\n\ndata: {\"usage\":{\"n\":6}}\n\ndata: [DONE]\n\n";
        Answer::new(200, "text/event-stream", events).with("X-RateLimit-Remaining-Tokens", "99")
    });
    let gateway = start(&api(
        &backend,
        "- {name: set-headers, version: v1, params: {request: {headers: [{name: X-User, value: same}]}}}\n\
         - {name: advanced-ratelimit, version: v1, params: {quotas: [{name: q, limits: [{limit: 10, duration: 1h}], \
         keyExtraction: [{type: header, key: X-User}], \
         costExtraction: {enabled: true, sources: [{type: response_body, jsonPath: $.usage.n}]}}]}}\n",
    ));
    for user in ["ann", "bob"] {
        let reply = gateway.client().get("/books/list", &[("X-User", user)]);
        assert_eq!((reply.status, number(&reply, "x-ratelimit-remaining")), (200, 4), "{user}");
        assert_eq!(reply.header("x-ratelimit-remaining-tokens"), None);
    }
}
