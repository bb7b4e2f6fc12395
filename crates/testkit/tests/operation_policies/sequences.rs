//! Policies written in Synapse XML.

use std::sync::Arc;

use penstock_catalog::Policies;
use penstock_testkit::gateway::{Backend, Setup, TestGateway, api};
use serde_json::json;

use crate::{defined, get, open_api, request, show, using};

/// Sequences of API Manager, filled and compiled, in all three flows.
#[test]
fn sequences_run_as_policies() {
    let factory = r#"<payloadFactory media-type="json">
    <format>{"size": "$1", "id": "$2", "unit": "{{ unit }}"}</format>
    <args>
        <arg expression="$.size" evaluator="json"/>
        <arg expression="get-property('uri.var.id')"/>
    </args>
</payloadFactory>
{% if tag %}<header name="x-tag" value="{{ tag }}" scope="transport"/>{% endif %}"#;
    let build = |parameters: &[(&str, &str)]| defined(using("build", parameters), None, Some(factory));
    let backend = Backend::start(show);
    let policies = Policies {
        request: vec![build(&[("unit", "m & <more>"), ("tag", "t")])],
        response: vec![defined(
            using("note", &[]),
            None,
            Some(r#"<property name="x-out" expression="get-property('axis2', 'HTTP_SC')" scope="transport"/>"#),
        )],
        fault: vec![],
    };
    let gateway = TestGateway::start(Setup::of([open_api(&backend, &["POST /a/{id}"], policies)]));
    let reply =
        gateway.client().request("POST", "/shop/a/7", &[("content-type", "application/json")], br#"{"size": 5}"#);
    assert_eq!((reply.status, reply.header("x-out")), (200, Some("200")));
    let got = backend.last();
    assert_eq!((got.header("x-tag"), got.header("content-type")), (Some("t"), Some("application/json")));
    assert_eq!((&got.json()["size"], &got.json()["id"]), (&json!("5"), &json!("7")));
    // A parameter is a value: nothing in it becomes markup.
    assert_eq!(got.json()["unit"], json!("m & <more>"));
}

/// Mistakes in a template stand in the template's file, and the API is not served.
#[test]
fn mistakes_in_a_template_have_a_place() {
    let backend = Backend::start(show);
    for (template, expected) in [
        ("<log/>\n<logg level=\"full\"/>", "Policies/own.j2:2:1: error: unknown mediator <logg>"),
        ("<log>\n", "Policies/own.j2:1:6: error: not well-formed XML"),
        ("<log/>\n{% if %}", "Policies/own.j2:2: "),
        ("  <nothing-like-it/>", "Policies/own.j2:1:3"),
    ] {
        let policies = request(vec![defined(using("own", &[]), None, Some(template))]);
        let (_, faulty) = TestGateway::try_start(Setup::of([open_api(&backend, &["GET /a"], policies)]));
        assert!(faulty.iter().any(|text| text.contains(expected)), "{expected} is not in {faulty:?}");
    }
}

/// Policies of the fault flow add to the error, or make it.
#[test]
fn faults_have_policies_too() {
    for (policy, body) in [
        (using("addHeader", &[("headerName", "x-fault"), ("headerValue", "yes")]), "102503"),
        (using("jsonFault", &[]), "102503"),
        (
            defined(
                using("own", &[]),
                None,
                Some(
                    r#"<payloadFactory media-type="json"><format>{"own": "$1"}</format><args><arg expression="get-property('ERROR_CODE')"/></args></payloadFactory>"#,
                ),
            ),
            r#"{"own": "102503"}"#,
        ),
    ] {
        let name = policy.name.clone();
        let mut api = api("/shop", "http://127.0.0.1:1", &["GET /a"]);
        let operation = Arc::get_mut(&mut api.operations[0]).unwrap();
        operation.secured = false;
        operation.policies.fault = vec![policy];
        let gateway = TestGateway::start(Setup::of([api]));
        let reply = gateway.client().get("/shop/a", &[]);
        assert_eq!(reply.status, 503, "{name} {}", reply.text());
        assert!(reply.text().contains(body), "{name}: {}", reply.text());
        assert_eq!(reply.header("x-fault").is_some(), &*name == "addHeader");
    }
}

/// The mediation scenario of the published performance tests.
#[test]
#[ignore = "reads ../shared; .ci/run runs it where the folder is"]
fn corpus_mediation_scenario_runs() {
    const TEMPLATE: &str = "../../../shared/scenarios/api/perf-mediation.j2";
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(TEMPLATE);
    let template = std::fs::read_to_string(path).unwrap();
    let backend = Backend::start(show);
    let policies = request(vec![defined(using("mediate", &[]), None, Some(&template))]);
    let gateway = TestGateway::start(Setup::of([open_api(&backend, &["POST /*"], policies)]));
    let body = br#"{"size": "3", "payload": "abc"}"#;
    gateway.client().request("POST", "/shop/x", &[("content-type", "application/json")], body);
    assert_eq!(backend.last().json(), json!({ "payload": "abc", "size": "3" }));
}

/// What was called, and how, is there for sequences.
#[test]
fn sequences_know_the_call() {
    let sequence = r#"<property name="x-seen" scope="transport" expression="fn:concat(get-property('REST_API_CONTEXT'), ' ',
        get-property('api.ut.api'), ' ', get-property('api.ut.resource'), ' ', get-property('REST_SUB_REQUEST_PATH'), ' ',
        get-property('query.param.q'), ' ', get-property('uri.var.id'))"/>
      <property name="REST_URL_POSTFIX" scope="axis2" expression="fn:concat('/moved', get-property('axis2', 'REST_URL_POSTFIX'))"/>
      <property name="HTTP_METHOD" scope="axis2" value="PATCH"/>"#;
    let policies = request(vec![defined(using("look", &[]), None, Some(sequence))]);
    let reply = get(policies, "GET /a/{id}", "/shop/a/7?q=1");
    let expected = "PATCH /v2/moved/a/7?q=1 [x-client=c foo=bar x-seen=/shop shop /a/{id} /a/7?q=1 1 7] ";
    assert_eq!(reply.text(), expected);
}
