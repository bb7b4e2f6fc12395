//! APIs that answer without a backend.

use std::sync::Arc;

use penstock_catalog::{Implementation, MockExample, MockResponse};
use penstock_gateway::ErrorStyle;
use penstock_testkit::gateway::{Setup, TestGateway, api};
use serde_json::json;

use crate::{response, using};

/// Instructive test 15: an API without a backend answers from its examples.
#[test]
fn mocked_apis_answer_from_examples() {
    let example = |name: &str, media_type: &str, body: &str| MockExample {
        name: name.into(),
        media_type: media_type.into(),
        body: body.into(),
    };
    let answer = |code: &str, examples| MockResponse {
        code: code.into(),
        headers: vec![("x-mock".into(), code.into())],
        examples,
    };
    let mut api = api("/mock", "http://127.0.0.1:1", &["GET /pets"]);
    api.implementation = Implementation::Mock;
    let operation = Arc::get_mut(&mut api.operations[0]).unwrap();
    operation.secured = false;
    operation.policies = response(vec![using("addHeader", &[("headerName", "x-policy"), ("headerValue", "p")])]);
    operation.mock = vec![
        answer("200", vec![example("", "application/json", r#"{"pets":[]}"#)]),
        answer(
            "50x",
            vec![example("example1", "text/html", "<p>later</p>"), example("example1", "application/json", "{}")],
        ),
    ];
    for style in [ErrorStyle::ChoreoConnect, ErrorStyle::ApiManager] {
        let gateway = TestGateway::start(Setup::of([api.clone()]).configured(|config| config.error_style = style));
        let mut client = gateway.client();
        let reply = client.get("/mock/pets", &[]);
        assert_eq!((reply.status, reply.text().as_str()), (200, r#"{"pets":[]}"#));
        assert_eq!((reply.header("x-mock"), reply.header("x-policy")), (Some("200"), Some("p")));
        let reply = client.get("/mock/pets", &[("Prefer", "code=508, example=example1"), ("Accept", "text/*")]);
        let content_type = reply.header("content-type");
        assert_eq!((reply.status, reply.text().as_str(), content_type), (508, "<p>later</p>", Some("text/html")));
        let reply = client.get("/mock/pets", &[("Prefer", "code=400")]);
        assert_eq!((reply.status, reply.json()["code"].clone()), (501, json!("900871")));
        assert!(reply.text().contains("Preferred code 400 is not supported for this resource."), "{}", reply.text());
        let reply = client.get("/mock/pets", &[("Prefer", "code=x")]);
        assert_eq!((reply.status, reply.json()["code"].clone()), (400, json!("900870")));
    }
}
