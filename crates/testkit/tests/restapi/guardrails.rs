//! Guardrails.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use penstock_testkit::gateway::Backend;
use serde_json::json;

use crate::{api, start};

#[test]
fn empty_bodies_are_looked_at_where_there_could_be_one() {
    for (params, method, expected) in [
        ("min: 1, max: 5, jsonPath: ''", "POST", 422),
        ("min: 0, max: 5, jsonPath: ''", "POST", 204),
        ("min: 0, max: 5, jsonPath: '$.text'", "POST", 422),
        ("min: 1, max: 5, jsonPath: ''", "GET", 204),
    ] {
        let backend = Backend::echo();
        let policy = format!("- {{name: content-length-guardrail, version: v1, params: {{request: {{{params}}}}}}}");
        let reply = start(&api(&backend, &policy)).client().request(method, "/books/list", &[], b"");
        assert_eq!(reply.status, expected, "{params} {method}");
    }
}

#[test]
fn bodies_are_let_through_by_what_is_in_them() {
    let text = "jsonPath: $.text";
    for (name, params, body, expected) in [
        ("word-count-guardrail", format!("min: 2, max: 3, {text}"), r#"{"text":"one two"}"#, 200),
        ("word-count-guardrail", format!("min: 2, max: 3, {text}"), r#"{"text":"one"}"#, 422),
        ("word-count-guardrail", format!("min: 2, max: 3, invert: true, {text}"), r#"{"text":"one"}"#, 200),
        (
            "word-count-guardrail",
            "min: 1, max: 3".into(),
            r#"{"messages":[{"content":"a b c d"},{"content":"a"}]}"#,
            200,
        ),
        ("sentence-count-guardrail", format!("min: 1, max: 1, {text}"), r#"{"text":"One. Two."}"#, 422),
        ("content-length-guardrail", "min: 1, max: 5, jsonPath: ''".into(), "123456", 422),
        ("regex-guardrail", format!("regex: '^[a-z]+$', {text}"), r#"{"text":"abc"}"#, 200),
        ("regex-guardrail", format!("regex: '^[a-z]+$', {text}"), r#"{"text":"a1"}"#, 422),
        ("regex-guardrail", format!("regex: secret, invert: true, {text}"), r#"{"text":"my secret"}"#, 422),
        ("regex-guardrail", format!("regex: '.', {text}"), r#"{"other":1}"#, 422),
        // Every text at the place counts, also of a content in parts.
        (
            "regex-guardrail",
            "regex: 'top\\s+secret', invert: true, jsonPath: '$.messages[*].content'".into(),
            r#"{"messages":[{"content":"fine"},{"content":[{"type":"text","text":"top\nsecret"}]}]}"#,
            422,
        ),
        ("json-schema-guardrail", r#"schema: '{"required":["a"]}'"#.into(), r#"{"a":1}"#, 200),
        ("json-schema-guardrail", r#"schema: '{"required":["a"]}'"#.into(), r#"{"b":1}"#, 422),
    ] {
        let backend = Backend::echo();
        let policy = format!("- {{name: {name}, version: v1, params: {{request: {{{params}}}}}}}");
        let gateway = start(&api(&backend, &policy));
        let reply =
            gateway.client().request("POST", "/books/list", &[("Content-Type", "application/json")], body.as_bytes());
        assert_eq!(reply.status, expected, "{name} {params} {body}");
        if expected == 422 {
            assert_eq!(reply.json()["message"]["interveningGuardrail"], name);
            assert_eq!(backend.received().len(), 0);
        }
    }
}

#[test]
fn what_is_compressed_is_looked_into() {
    let backend = Backend::echo();
    let policy =
        "- {name: regex-guardrail, version: v1, params: {request: {regex: secret, invert: true, jsonPath: ''}}}";
    let gateway = start(&api(&backend, policy));
    for (text, expected) in [("a secret", 422), ("nothing", 200)] {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        let headers = [("Content-Type", "text/plain"), ("Content-Encoding", "gzip")];
        let reply = gateway.client().request("POST", "/books/list", &headers, &encoder.finish().unwrap());
        assert_eq!(reply.status, expected, "{text}");
    }
    assert_eq!(backend.last().header("content-encoding"), Some("gzip"), "it goes on as it came");
}

#[test]
fn answers_too() {
    let backend = Backend::echo();
    let params = "response: {enabled: true, regex: '^ok', jsonPath: $.a, showAssessment: true}";
    let gateway = start(&api(&backend, &format!("- {{name: regex-guardrail, version: v1, params: {{{params}}}}}")));
    let mut client = gateway.client();
    let mut post = |body: &[u8]| client.request("POST", "/books/list", &[("Content-Type", "application/json")], body);
    assert_eq!(post(br#"{"a":"ok"}"#).status, 200);
    let reply = post(br#"{"a":"no"}"#);
    assert_eq!(reply.status, 422);
    assert_eq!(
        reply.json(),
        json!({"type": "REGEX_GUARDRAIL", "message": {
            "action": "GUARDRAIL_INTERVENED", "interveningGuardrail": "regex-guardrail", "direction": "RESPONSE",
            "actionReason": "Violation of regular expression detected", "assessments": "Violated regular expression: ^ok",
        }})
    );
}
