//! Interceptor services over real sockets: both flows, all levels of failure, TLS on both sides.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::sync::Arc;
use std::time::Duration;

use penstock_catalog::{Api, Cluster, Interceptor, InterceptorPart};
use penstock_testkit::gateway::{Answer, Backend, Client, Received, Setup, TestGateway, api};
use serde_json::{Value, json};

use InterceptorPart::{InvocationContext, RequestBody, RequestHeaders, ResponseBody, ResponseHeaders};

const XML: &str = "PG5hbWU+VG9tPC9uYW1lPg==";

/// An unsecured API, with interceptors on its operations for POST.
fn intercepted(backend: &str, request: Option<Interceptor>, response: Option<Interceptor>) -> Api {
    let mut api = api("/store", backend, &["POST /echo/{id}", "GET /echo/{id}"]);
    for operation in &mut api.operations {
        let operation = Arc::get_mut(operation).unwrap();
        operation.secured = false;
        if &*operation.method == "POST" {
            operation.request_interceptor = request.clone();
            operation.response_interceptor = response.clone();
        }
    }
    api
}

fn asking(service: &Backend, includes: &[InterceptorPart]) -> Option<Interceptor> {
    Some(Interceptor { service_url: service.url().into(), includes: includes.to_vec(), ..Interceptor::default() })
}

/// A service that gives one reply to handle-request and another to handle-response.
fn service(request: Value, response: Value) -> Backend {
    Backend::start(move |call| replies(call, &request, &response))
}

fn replies(call: &Received, request: &Value, response: &Value) -> Answer {
    Answer::json(if call.target == "/api/v1/handle-request" { request } else { response })
}

fn post(client: &mut Client, body: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let reply = client.request("POST", "/store/echo/1?q=1", headers, body.as_bytes());
    (reply.status, reply.text())
}

/// Instructive test 3: header and body changes, reserved names, every kind of body.
#[test]
fn a_request_is_changed_before_the_backend_sees_it() {
    for (body, client_body, expected) in [
        (json!(XML), "{}", (200, "<name>Tom</name>")),
        (json!(""), "{}", (204, "")),
        (Value::Null, "{}", (200, "{}")),
        (json!(XML), "", (200, "<name>Tom</name>")),
        (Value::Null, "", (204, "")),
    ] {
        let reply = json!({
            "headersToAdd": { "foo-add": "added", "x-wso2-cluster-header": "evil" },
            "headersToReplace": { "content-type": "application/xml", "foo-update": "new", "x-envoy-foo-header": "evil" },
            "headersToRemove": ["foo-remove"], "body": body,
        });
        let (service, backend) = (service(reply, json!({})), Backend::echo());
        let gateway =
            TestGateway::start(Setup::of([intercepted(&backend.url(), asking(&service, &[RequestBody]), None)]));
        let headers =
            [("content-type", "application/json"), ("foo-remove", "x"), ("foo-update", "x"), ("foo-keep", "x")];
        let seen = post(&mut gateway.client(), client_body, &headers);
        assert_eq!((seen.0, seen.1.as_str()), expected, "{body}");
        let got = backend.last();
        let field = |name| got.header(name);
        assert_eq!([field("foo-add"), field("foo-update"), field("foo-keep")], [Some("added"), Some("new"), Some("x")]);
        assert_eq!(
            [field("foo-remove"), field("x-wso2-cluster-header"), field("x-envoy-foo-header")],
            [None, None, None]
        );
        assert_eq!(field("content-type"), Some("application/xml"));
    }
}

/// Instructive test 4: the service answers itself; neither backend nor response flow is called.
#[test]
fn a_service_may_answer_itself() {
    for (code, body, expected) in [
        (Value::Null, json!(XML), (200, "<name>Tom</name>")),
        (Value::Null, Value::Null, (204, "")),
        (json!(202), json!(XML), (202, "<name>Tom</name>")),
        (json!(202), Value::Null, (202, "")),
    ] {
        let reply = json!({
            "directRespond": true, "responseCode": code, "body": body,
            "headersToAdd": { "foo": "yes" }, "headersToReplace": { "bar": "no" },
        });
        let (service, backend) = (service(reply, json!({})), Backend::echo());
        let both = (asking(&service, &[RequestBody]), asking(&service, &[ResponseBody]));
        let gateway = TestGateway::start(Setup::of([intercepted(&backend.url(), both.0, both.1)]));
        let answer = gateway.client().request("POST", "/store/echo/1", &[], b"{}");
        assert_eq!((answer.status, answer.text().as_str()), expected);
        assert_eq!((answer.header("foo"), answer.header("bar")), (Some("yes"), None));
        assert!(backend.received().is_empty());
        assert_eq!(service.received().len(), 1);
    }
}

/// Instructive test 5: the service chooses the backend, by its name only.
#[test]
fn a_service_chooses_the_endpoint() {
    let reply = json!({
        "dynamicEndpoint": { "endpointName": "second" },
        "headersToReplace": { "x-wso2-cluster-header": "first" },
    });
    let (service, first) = (service(reply, json!({})), Backend::echo());
    let second = Backend::start(|_| Answer::json(&json!({ "service": "second" })));
    let mut api = intercepted(&first.url(), asking(&service, &[RequestHeaders]), None);
    let cluster = Cluster { urls: vec![second.url().into()], ..Cluster::default() };
    api.endpoints.named.push(("second".into(), Arc::new(cluster)));
    let gateway = TestGateway::start(Setup::of([api]));
    let mut client = gateway.client();
    for _ in 0..3 {
        assert_eq!(post(&mut client, "{}", &[]), (200, r#"{"service":"second"}"#.to_owned()));
    }
    assert!(first.received().is_empty());
}

/// Instructive tests 6 and 7: the answer's status and body, and what may not be changed.
#[test]
fn an_answer_is_changed_before_the_client_sees_it() {
    let not_found = json!({ "body": "Tm90IEZvdW5k", "responseCode": 404 });
    for (includes, reply, expected) in [
        (ResponseBody, not_found.clone(), (404, "Not Found")),
        (ResponseBody, json!({ "body": "Tm90IEZvdW5k" }), (200, "Not Found")),
        (ResponseBody, json!({ "body": "" }), (204, "")),
        (ResponseBody, json!({ "responseCode": 418 }), (418, "REQUEST-BODY")),
        (ResponseHeaders, json!({ "body": "Tm90IEZvdW5k" }), (200, "REQUEST-BODY")),
        (ResponseHeaders, not_found, (404, "REQUEST-BODY")),
    ] {
        let (service, backend) = (service(json!({}), reply.clone()), Backend::echo());
        let gateway = TestGateway::start(Setup::of([intercepted(&backend.url(), None, asking(&service, &[includes]))]));
        let seen = post(&mut gateway.client(), "REQUEST-BODY", &[]);
        assert_eq!((seen.0, seen.1.as_str()), expected, "{reply}");
    }
}

/// Instructive test 8: a service that is away or answers nonsense, in either flow and either mode.
#[test]
fn a_failing_service_is_an_error_with_a_code() {
    let away = "http://127.0.0.1:1".to_owned();
    let nonsense = Backend::start(|_| Answer::new(200, "text/html", "<non>JSON</non>"));
    let broken = Backend::start(|_| Answer::garbage("SSH-2.0-x\r\n"));
    let refusing = Backend::start(|_| Answer::status(500));
    let (slow, gate) = Backend::start_held(|_| Answer::json(&json!({})));
    let huge = Backend::start(|_| Answer::new(200, "application/json", vec![b' '; 3_000_000]));
    let backend = Backend::echo();
    for (url, code) in [
        (away, "103500"),
        (nonsense.url(), "103501"),
        (broken.url(), "103500"),
        (refusing.url(), "103500"),
        (slow.url(), "103500"),
        (huge.url(), "103500"),
    ] {
        for compat in [false, true] {
            for in_request in [true, false] {
                let part = if in_request { RequestBody } else { ResponseBody };
                let asked = Some(Interceptor {
                    service_url: url.as_str().into(),
                    includes: vec![part],
                    request_timeout: Some(Duration::from_millis(300)),
                    ..Interceptor::default()
                });
                let (request, response) = if in_request { (asked, None) } else { (None, asked) };
                let setup = Setup::of([intercepted(&backend.url(), request, response)]).configured(|config| {
                    config.compat = compat;
                    config.interceptors.reply_bytes_max = 1_000_000;
                });
                let gateway = TestGateway::start(setup);
                let reply = gateway.client().request("POST", "/store/echo/1", &[("content-type", "text/plain")], b"x");
                assert_eq!(
                    (reply.status, reply.json()["code"].as_str()),
                    (500, Some(code)),
                    "{url} {compat} {in_request}"
                );
                assert!(gateway.log().contains("the interceptor service"), "{}", gateway.log());
                // Operations without it do not notice.
                assert_eq!(gateway.client().get("/store/echo/1", &[]).status, 204);
            }
        }
    }
    gate.open();
}

/// The policy for a failing service may be to let messages pass.
#[test]
fn a_failing_service_may_be_passed_by() {
    let backend = Backend::echo();
    let away = |passthrough| Interceptor {
        service_url: "http://127.0.0.1:1".into(),
        includes: vec![RequestBody, ResponseBody],
        passthrough_on_error: passthrough,
        ..Interceptor::default()
    };
    for (own, common, status) in
        [(Some(true), false, 200), (None, true, 200), (Some(false), true, 500), (None, false, 500)]
    {
        let api = intercepted(&backend.url(), Some(away(own)), Some(away(own)));
        let gateway =
            TestGateway::start(Setup::of([api]).configured(|config| config.interceptors.passthrough_on_error = common));
        assert_eq!(post(&mut gateway.client(), "x", &[]).0, status, "{own:?} {common}");
    }
}

/// Instructive test 9: what one service noted reaches the other, and both know all about the call.
#[test]
fn both_flows_know_the_invocation() {
    let noted = json!({ "interceptorContext": { "k1": "v1", "k2": "v2" } });
    let (service, backend) = (service(noted, json!({})), Backend::echo());
    let parts = [InvocationContext, RequestHeaders];
    let mut api = intercepted(&backend.url(), asking(&service, &parts), asking(&service, &parts));
    api.version = "1.0.5".into();
    api.organization = "org".into();
    api.vhosts = vec!["localhost".into()];
    let extra = api.operations[1].clone();
    let sibling = penstock_catalog::Operation { path: "/echo/{id}".into(), ..(*extra).clone() };
    api.operations[1] = Arc::new(sibling);
    let gateway = TestGateway::start(Setup::of([api]));
    let headers = [("x-request-id", "abc"), ("content-type", "text/plain")];
    let reply = gateway.tls_client().request("POST", "/store/echo/123?x=1", &headers, b"x");
    assert_eq!(reply.status, 200);
    let calls = service.received();
    let context = calls[0].json()["invocationContext"].clone();
    let expected = json!({
        "requestId": "abc", "protocol": context["protocol"], "scheme": "https", "path": "/store/echo/123?x=1",
        "method": "POST", "source": context["source"], "basePath": "/store", "pathTemplate": "/echo/{id}",
        "supportedMethods": "POST GET", "vhost": "localhost", "apiName": "store", "apiVersion": "1.0.5",
        "prodClusterName": "org_clusterProd_localhost_store1.0.5", "sandClusterName": "",
    });
    assert_eq!(context, expected);
    assert!(context["source"].as_str().unwrap().starts_with("127.0.0.1:"));
    let second = calls[1].json();
    assert_eq!(second["invocationContext"], context);
    assert_eq!(second["interceptorContext"], json!({ "k1": "v1", "k2": "v2" }));
    assert_eq!(second["requestHeaders"], calls[0].json()["requestHeaders"]);
    assert_eq!((second["responseCode"].clone(), second.get("responseBody")), (json!(200), None));
    assert_eq!(backend.last().header("x-request-id"), Some("abc"));
}

/// Instructive test 30: a refusal says who decided, and what was decided about a request changes its answer.
#[test]
fn a_decision_is_logged_and_kept() {
    let service = Backend::start(|call| {
        let told = call.json();
        let blocked = told["requestHeaders"]["x-role"] == "guest";
        let decision = |decision: &str| json!({ "X-Interceptor-Decision": decision });
        Answer::json(&match (call.target.as_str(), blocked) {
            ("/api/v1/handle-request", true) => {
                json!({ "directRespond": true, "responseCode": 403, "headersToAdd": decision("blocked") })
            }
            ("/api/v1/handle-request", false) => json!({ "interceptorContext": { "decision": "queued" } }),
            _ => json!({
                "responseCode": 202, "body": XML,
                "headersToAdd": decision(told["interceptorContext"]["decision"].as_str().unwrap_or("unknown")),
            }),
        })
    });
    let backend = Backend::echo();
    let both = (asking(&service, &[RequestHeaders]), asking(&service, &[ResponseBody]));
    let gateway = TestGateway::start(Setup::of([intercepted(&backend.url(), both.0, both.1)]));
    for (role, status, decision, body, asked) in
        [("guest", 403, "blocked", "", 0), ("member", 202, "queued", "<name>Tom</name>", 1)]
    {
        let answer = gateway.client().request("POST", "/store/echo/1", &[("x-role", role)], b"x");
        let seen = (answer.status, answer.header("x-interceptor-decision"), answer.text());
        assert_eq!(seen, (status, Some(decision), body.to_owned()));
        assert_eq!(backend.received().len(), asked, "{role}");
    }
}

/// Fields of one name are joined, and what was sent as Latin-1 is text.
#[test]
fn every_field_is_sent() {
    let (service, backend) = (service(json!({}), json!({})), Backend::echo());
    let gateway =
        TestGateway::start(Setup::of([intercepted(&backend.url(), asking(&service, &[RequestHeaders]), None)]));
    post(
        &mut gateway.client(),
        "",
        &[("X-Tag", "one"), ("x-tag", "two"), ("Quoted", "a\"b\\c"), ("connection", "keep-alive")],
    );
    let told = service.last().json()["requestHeaders"].clone();
    assert_eq!((&told["x-tag"], &told["quoted"]), (&json!("one, two"), &json!("a\"b\\c")));
    assert_eq!(
        (&told[":method"], &told[":path"], &told[":scheme"]),
        (&json!("POST"), &json!("/store/echo/1?q=1"), &json!("http"))
    );
    assert_eq!(told.get("connection"), None);
}

/// A path is rewritten, with or without the base path of the API before it.
#[test]
fn a_path_is_rewritten() {
    for (path, expected) in [("/new?a=b", "/base/new?a=b"), ("/store/new", "/base/new"), ("store2/x", "/base/store2/x")]
    {
        let (service, backend) = (service(json!({ "pathToRewrite": path }), json!({})), Backend::echo());
        let url = format!("{}/base", backend.url());
        let gateway = TestGateway::start(Setup::of([intercepted(&url, asking(&service, &[]), None)]));
        post(&mut gateway.client(), "x", &[]);
        assert_eq!(backend.last().target, expected, "{path}");
    }
}

/// Services are reached over TLS when the project has their certificate, and get the claims of the caller.
#[test]
fn services_are_reached_over_tls() {
    let reply = |call: &Received| replies(call, &json!({ "headersToAdd": { "seen": "yes" } }), &json!({}));
    let known = penstock_transports::http::tls::Identity::self_signed(&["gateway".to_owned()]).unwrap();
    let certificate = known.certificate_der().unwrap().to_vec().into();
    for (demanded, shown, status) in
        [(None, false, 200), (Some(&certificate), true, 200), (Some(&certificate), false, 500)]
    {
        let (service, backend) = (Backend::start_tls(reply, demanded), Backend::echo());
        let mut api = intercepted(&backend.url(), asking(&service, &[RequestHeaders]), None);
        api.interceptor_certificates = vec![service.certificate().unwrap().to_vec().into()];
        let identity = shown.then(|| known.clone());
        let gateway = TestGateway::start(Setup { identity, ..Setup::of([api]) });
        let mut client = gateway.client();
        for _ in 0..2 {
            assert_eq!(post(&mut client, "x", &[]).0, status);
        }
        if status == 200 {
            assert_eq!(backend.last().header("seen"), Some("yes"));
        }
    }
    // An untrusted certificate is rejected.
    let (service, backend) = (Backend::start_tls(reply, None), Backend::echo());
    let gateway = TestGateway::start(Setup::of([intercepted(&backend.url(), asking(&service, &[]), None)]));
    let refused = post(&mut gateway.client(), "x", &[]);
    assert!(refused.0 == 500 && refused.1.contains("103500"), "{refused:?}");
}

/// One service that hangs holds up its own API only, and connections to services are kept.
#[test]
fn other_apis_are_untouched() {
    let (slow, gate) = Backend::start_held(|_| Answer::json(&json!({})));
    let backend = Backend::echo();
    let mut held = intercepted(&backend.url(), asking(&slow, &[]), None);
    held.base_path = "/held".into();
    held.name = "held".into();
    let gateway = TestGateway::start(Setup::of([held, intercepted(&backend.url(), None, None)]));
    let mut waiting = gateway.client();
    let thread = std::thread::spawn(move || waiting.request("POST", "/held/echo/1", &[], b"x").status);
    let mut client = gateway.client();
    for _ in 0..20 {
        assert_eq!(post(&mut client, "x", &[]).0, 200);
    }
    gate.open();
    assert_eq!(thread.join().unwrap(), 200);
}

/// A service gets the caller, and no requests that security rejected.
#[test]
fn a_service_knows_who_calls() {
    let (service, backend) = (service(json!({}), json!({})), Backend::echo());
    let mut api = penstock_testkit::gateway::secured_api("/store", &backend.url(), &["POST /echo/{id}"]);
    Arc::get_mut(&mut api.operations[0]).unwrap().request_interceptor = asking(&service, &[InvocationContext]);
    let gateway = TestGateway::start(Setup::of([api]));
    let mut client = gateway.client();
    assert_eq!(client.request("POST", "/store/echo/1", &[], b"x").status, 401);
    assert!(service.received().is_empty());
    let bearer = gateway.bearer(&json!({ "keytype": "PRODUCTION" }));
    let reply = client.request("POST", "/store/echo/1", &[("Authorization", &bearer)], b"x");
    assert_eq!(reply.status, 200, "{}", reply.text());
    let who = service.last().json()["invocationContext"]["authenticationContext"].clone();
    let token = bearer.strip_prefix("Bearer ").unwrap();
    assert_eq!(who, json!({ "tokenType": "JWT", "token": token, "keyType": "PRODUCTION" }));
    assert!(!gateway.log().contains(token));
}

/// In a definition the innermost interceptor counts, for each method by itself.
#[test]
fn the_innermost_definition_counts() {
    let mark =
        |name: &'static str| Backend::start(move |_| Answer::json(&json!({ "headersToAdd": { "x-asked": name } })));
    let (of_api, of_path, of_operation) = (mark("api"), mark("path"), mark("operation"));
    let backend = Backend::echo();
    let says = |service: &Backend| {
        format!("x-wso2-request-interceptor: {{ serviceURL: \"{}\", includes: [request_headers] }}", service.url())
    };
    let definition = format!(
        "openapi: 3.0.1\ninfo: {{ title: Levels, version: 1.0.0 }}\nx-wso2-basePath: /levels\nx-wso2-disable-security: true\n\
         x-wso2-production-endpoints: {{ urls: [\"{}\"] }}\n{}\npaths:\n  /a:\n    get: {{ responses: {{}} }}\n  /b:\n    {}\n    \
         get: {{ responses: {{}} }}\n    post:\n      {}\n      responses: {{}}\n",
        backend.url(),
        says(&of_api),
        says(&of_path),
        says(&of_operation)
    );
    let input = penstock_compile::Input {
        file: "levels.yaml".into(),
        bytes: definition.into_bytes().into(),
        kind: penstock_compile::InputKind::Api { project: "levels.yaml".into(), path: String::new() },
    };
    let gateway = TestGateway::start(Setup { inputs: vec![input], ..Setup::of([]) });
    for (method, path, expected) in [("GET", "/a", "api"), ("GET", "/b", "path"), ("POST", "/b", "operation")] {
        let reply = gateway.client().request(method, &format!("/levels{path}"), &[], b"");
        assert_eq!(reply.status, 204, "{}", reply.text());
        assert_eq!(backend.last().header("x-asked"), Some(expected), "{method} {path}");
    }
}
