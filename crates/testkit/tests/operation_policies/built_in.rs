//! What comes with the product works without its definition.

use std::sync::Arc;

use penstock_catalog::Policies;
use penstock_testkit::gateway::{Answer, Backend, Setup, TestGateway};
use serde_json::json;

use crate::{get, open_api, request, show, using};

/// What comes with the product works without its definition.
#[test]
fn built_in_policies_work_without_a_definition() {
    let one = |name: &str, parameters: &[(&str, &str)]| request(vec![using(name, parameters)]);
    for (policies, expected) in [
        (one("setHeader", &[("headerName", "x-a"), ("headerValue", "1")]), "GET /v2/a?q=1 [x-client=c foo=bar x-a=1] "),
        (one("removeHeader", &[("headerName", "foo")]), "GET /v2/a?q=1 [x-client=c] "),
        (one("rewriteHTTPMethod", &[("updatedMethod", "DELETE")]), "DELETE /v2/a?q=1 [x-client=c foo=bar] "),
        (one("rewriteResourcePath", &[("newResourcePath", "/b")]), "GET /v2/b?q=1 [x-client=c foo=bar] "),
        (one("addQueryParam", &[("paramKey", "k"), ("paramValue", "v")]), "GET /v2/a?q=1&k=v [x-client=c foo=bar] "),
        (one("removeQueryParam", &[("paramKey", "q")]), "GET /v2/a [x-client=c foo=bar] "),
        (one("addLogMessage", &[("logMessage", "hello")]), "GET /v2/a?q=1 [x-client=c foo=bar] "),
        (one("changeHTTPMethod", &[("httpMethod", "PUT")]), "PUT /v2/a?q=1 [x-client=c foo=bar] "),
        (one("addQueryParams", &[("paramKey", "k"), ("paramValue", "v")]), "GET /v2/a?q=1&k=v [x-client=c foo=bar] "),
        (one("debugRequestFlow", &[]), "GET /v2/a?q=1 [x-client=c foo=bar] "),
        (one("disableChunking", &[]), "GET /v2/a?q=1 [x-client=c foo=bar] "),
        (one("preserveAcceptHeader", &[]), "GET /v2/a?q=1 [x-client=c foo=bar] "),
    ] {
        let name = policies.request[0].name.clone();
        assert_eq!(get(policies, "GET /a", "/shop/a?q=1").text(), expected, "{name}");
    }
}

/// Bodies change their language on the way, in both flows.
#[test]
fn bodies_change_their_language() {
    let backend = Backend::start(|request| {
        Answer::new(200, request.header("content-type").unwrap_or_default(), request.body.clone())
    });
    let policies =
        Policies { request: vec![using("jsonToXML", &[])], response: vec![using("xmlToJson", &[])], fault: vec![] };
    let gateway = TestGateway::start(Setup::of([open_api(&backend, &["POST /a"], policies)]));
    let reply = gateway.client().request(
        "POST",
        "/shop/a",
        &[("content-type", "application/json")],
        br#"{"pet":{"name":"Tom"}}"#,
    );
    assert!(backend.last().text().contains("<name>Tom</name>"), "{}", backend.last().text());
    assert_eq!((reply.status, reply.json()["pet"]["name"].clone()), (200, json!("Tom")), "{}", reply.text());
}

/// A claim of the token lets requests through, or keeps them out.
#[test]
fn a_claim_decides() {
    let backend = Backend::start(show);
    for (parameters, claims, status) in [
        (vec![("accessVerificationClaimValue", "gold")], json!({ "plan": "gold" }), 200),
        (vec![("accessVerificationClaimValue", "gold")], json!({ "plan": "iron" }), 403),
        (vec![("accessVerificationClaimValue", "gold")], json!({}), 403),
        (vec![("accessVerificationClaimValue", "gold")], json!({ "plan": ["iron", "gold"] }), 200),
        (vec![("accessVerificationClaimValueRegex", "g.*")], json!({ "plan": "green" }), 200),
        (
            vec![("accessVerificationClaimValue", "gold"), ("shouldAllowValidation", "false")],
            json!({ "plan": "gold" }),
            403,
        ),
        (
            vec![("accessVerificationClaimValue", "gold"), ("shouldAllowValidation", "false")],
            json!({ "plan": "iron" }),
            200,
        ),
    ] {
        let parameters = [vec![("accessVerificationClaim", "plan")], parameters].concat();
        let mut api =
            open_api(&backend, &["GET /a"], request(vec![using("jwtClaimBasedAccessValidator", &parameters)]));
        Arc::get_mut(&mut api.operations[0]).unwrap().secured = true;
        let gateway = TestGateway::start(Setup::of([api]));
        let reply = gateway.client().get("/shop/a", &[("authorization", &gateway.bearer(&claims))]);
        assert_eq!(reply.status, status, "{claims} {parameters:?} {}", reply.text());
    }
}

/// What a client accepts decides over the answer's language, and the backend does not see it.
#[test]
fn answers_are_as_the_client_accepts() {
    let backend = Backend::start(|request| {
        assert_eq!(request.header("accept"), None);
        Answer::json(&json!({ "pet": "Tom" }))
    });
    let policies = Policies {
        request: vec![using("preserveAcceptHeader", &[])],
        response: vec![using("applyAcceptHeader", &[]), using("debugResponseFlow", &[])],
        fault: vec![],
    };
    let gateway = TestGateway::start(Setup::of([open_api(&backend, &["GET /a"], policies)]));
    let reply = gateway.client().get("/shop/a", &[("accept", "application/xml")]);
    assert!(reply.status == 200 && reply.text().contains("<pet>Tom</pet>"), "{}", reply.text());
    assert!(gateway.log().contains("Status = 200"), "{}", gateway.log());
}

/// Only the policy chooses the endpoint.
#[test]
fn a_policy_sets_the_address() {
    let backend = Backend::start(show);
    let descriptor =
        "type: api\ndata:\n  name: Shop\n  version: 1.0.0\n  context: /shop\n  type: HTTP\n  endpointConfig:
    endpoint_type: default\n    production_endpoints: { url: default }\n    endpoint_security:
      production: { enabled: true, type: BASIC, username: u, password: p }\n  operations:
    - target: /a/{id}\n      verb: GET\n      authType: None\n      operationPolicies:\n        request: [POLICY]\n";
    let call = |policy: &str| {
        let text = descriptor.replace("POLICY", policy);
        let gateway = TestGateway::start(Setup::project(&[("api.yaml", &text)]));
        let reply = gateway.client().get("/shop/1.0.0/a/7?q=1", &[("to", "http://127.0.0.1:1")]);
        (reply.status, reply.text())
    };
    let to = |name: &str, path: &str| {
        format!("{{ policyName: {name}, policyVersion: v1, parameters: {{ value: '{}{path}' }} }}", backend.url())
    };
    assert_eq!(call(&to("setToHeader", "/own/b?r=2")), (200, "GET /own/b?r=2 [] ".to_owned()));
    assert!(backend.last().header("authorization").is_some_and(|value| value.starts_with("Basic ")));
    assert_eq!(call(&to("setToHeaderWS", "/own")), (200, "GET /own/a/{id} [] ".to_owned()));
    let (status, text) = call("");
    assert!(status == 500 && text.contains("102507"), "{text}");
}
