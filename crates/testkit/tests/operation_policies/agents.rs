//! Services that policies ask: interceptors, policy agents.

use std::sync::Arc;

use penstock_testkit::gateway::{Answer, Backend, Setup, TestGateway};
use serde_json::json;

use crate::{defined, open_api, request, show, using};

/// An interceptor service named by a policy goes before that of the definition.
#[test]
fn a_policy_names_an_interceptor_service() {
    let service = Backend::start(|_| Answer::json(&json!({ "headersToAdd": { "x-intercepted": "yes" } })));
    let backend = Backend::start(show);
    let template = "definition:\n action: CALL_INTERCEPTOR_SERVICE\n parameters:\n   interceptorServiceURL: {{ .url }}\n   includes: {{ .includes }}\n";
    let parameters = [("url", service.url()), ("includes", "request_body,request_headers".to_owned())];
    let parameters: Vec<(&str, &str)> = parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let policy = defined(using("ask", &parameters), Some(template), None);
    let mut api = open_api(&backend, &["POST /a"], request(vec![policy]));
    let operation = Arc::get_mut(&mut api.operations[0]).unwrap();
    operation.request_interceptor =
        Some(penstock_catalog::Interceptor { service_url: "http://127.0.0.1:1".into(), ..Default::default() });
    let gateway = TestGateway::start(Setup::of([api]));
    let reply = gateway.client().request("POST", "/shop/a", &[], b"body");
    assert!(reply.text().contains("x-intercepted=yes") && reply.text().ends_with("body"), "{}", reply.text());
    assert_eq!(service.last().json()["requestBody"], json!("Ym9keQ=="));
}

/// Instructive test 19: a policy agent lets requests pass or not, and its failures are errors with codes.
#[test]
fn a_policy_agent_decides() {
    let agent = Backend::start(|request| {
        let input = &request.json()["input"];
        match request.target.as_str() {
            "/v1/data/pets/allow" => Answer::json(&json!({ "result": input["transportHeaders"]["foo"] == "bar" })),
            "/v1/data/token/allow" => Answer::json(&json!({ "result": input.get("authenticationContext").is_some() })),
            "/v1/data/invalid/allow" => Answer::json(&json!({ "result": "maybe" })),
            _ => Answer::status(500),
        }
    });
    let ask = |policy: &str, send_token: &str| {
        let url = format!("{}/v1/data/", agent.url());
        request(vec![using(
            "opaPolicy",
            &[("serverUrl", &url), ("policy", policy), ("sendAccessToken", send_token), ("accessKey", "key")],
        )])
    };
    let backend = Backend::start(show);
    for (policies, foo, status, code) in [
        (ask("pets", "false"), "bar", 200, ""),
        (ask("pets", "false"), "other", 403, "901101"),
        (ask("token", "true"), "bar", 200, ""),
        (ask("token", "false"), "bar", 403, "901101"),
        (ask("invalid", "false"), "bar", 500, "901103"),
        (ask("missing", "false"), "bar", 500, "901102"),
    ] {
        let gateway = TestGateway::start(
            Setup::of([open_api(&backend, &["GET /a"], policies)]).behind(&["127.0.0.1", "10.0.0.0/8"]),
        );
        let headers = [("Foo", foo), ("authorization", "secret"), ("x-forwarded-for", "203.0.113.9, 10.0.0.1")];
        let reply = gateway.client().get("/shop/a?x=1", &headers);
        assert_eq!(reply.status, status, "{}", reply.text());
        assert!(reply.text().contains(code), "{code}: {}", reply.text());
        let asked = agent.last();
        assert_eq!(asked.header("authorization"), Some("Bearer key"));
        let input = asked.json()["input"].clone();
        assert_eq!(input["transportHeaders"].get("authorization"), None);
        assert_eq!(input["requestOrigin"], "203.0.113.9");
        assert_eq!((&input["method"], &input["path"]), (&json!("GET"), &json!("/shop/a?x=1")));
        assert_eq!(input["apiContext"]["pathTemplate"], json!("/a"));
        assert!(!gateway.log().contains("secret"));
    }
}
