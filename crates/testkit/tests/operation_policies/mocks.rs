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

/// Texts of a definition: JSON that is written as a text stays, and what is none becomes one where JSON is announced.
#[test]
fn examples_are_what_their_media_type_says() {
    const DESCRIPTOR: &str = "type: api\nversion: v4.2.0\ndata: { name: M, version: 1.0.0, context: /m, \
                              endpointImplementationType: MOCKED_OAS, lifeCycleStatus: PROTOTYPED }\n";
    const DEFINITION: &str = r#"openapi: 3.0.1
info: { title: M, version: 1.0.0 }
paths:
  /text: { get: { responses: { '200': { description: ok, content: {
    text/plain: { example: plain }, application/json: { example: plain } } } } } }
  /json: { get: { responses: { default: { description: ok, content: {
    application/json: { examples: { Big: { value: '{"a": 1}' } } } } } } } }
  /none: { get: { responses: { '200': { description: ok } } } }
"#;
    let files = [("api.yaml", DESCRIPTOR), ("Definitions/swagger.yaml", DEFINITION)];
    let gateway = TestGateway::start(Setup::project(&files));
    let mut client = gateway.client();
    let reply = client.get("/m/1.0.0/text", &[]);
    assert_eq!((reply.status, reply.text().as_str()), (200, "\"plain\""), "{:?}", gateway.diagnostics);
    assert_eq!(client.get("/m/1.0.0/text", &[("Accept", "text/plain")]).text(), "plain");
    for prefer in ["", "example=big"] {
        let reply = client.get("/m/1.0.0/json", &[("Prefer", prefer)]);
        assert_eq!((reply.status, reply.text().as_str()), (200, "{\"a\": 1}"));
    }
    let reply = client.get("/m/1.0.0/json", &[("Prefer", "code=404")]);
    assert_eq!(reply.status, 501);
    assert_eq!(reply.json()["error_description"], "Preferred code 404 is not supported for this resource.");
    let reply = client.get("/m/1.0.0/json", &[("Accept", "image/png, text/html")]);
    assert_eq!(
        reply.json()["error_description"],
        "Accept type [image/png,  text/html] is not supported for this resource"
    );
    let reply = client.get("/m/1.0.0/none", &[]);
    assert_eq!((reply.status, reply.text().as_str()), (200, ""));
}

const INLINE: &str = r#"type: api
version: v4.2.0
data: { name: Shop, version: 1.0.0, context: /shop, type: HTTP, lifeCycleStatus: PROTOTYPED, endpointImplementationType: INLINE }
"#;

/// Scripts as the publisher writes them: answers by status and media type, XML among them.
const SCRIPTED: &str = r#"openapi: 3.0.1
info: { title: Shop, version: 1.0.0 }
paths:
  /pets/{id}:
    get:
      parameters: [{ name: id, in: path, required: true, schema: { type: string } }]
      responses: { '200': { description: ok } }
      x-mediation-script: |
        var code = mc.getProperty('query.param.responseCode');
        var accept = mc.getProperty('AcceptHeader');
        var answers = [];
        answers[200] = [];
        answers[200]["application/json"] = { "id": mc.getProperty('uri.var.id') };
        answers[200]["application/xml"] = <pet><kind>cat</kind></pet>;
        answers[501] = [];
        answers[501]["application/json"] = { "code": 501 };
        if (code == null) { code = 200; }
        if (!answers[code]) { code = 501; }
        if (accept == null || !answers[code][accept]) { accept = "application/json"; }
        mc.setProperty('CONTENT_TYPE', accept);
        mc.setProperty('HTTP_SC', code + "");
        if (accept == "application/xml") {
          mc.setPayloadXML(answers[code][accept]);
        } else {
          mc.setPayloadJSON(answers[code][accept]);
        }
        mc.setProperty('x-made', 'by script', 'transport');
    post:
      responses: { '200': { description: ok } }
      x-mediation-script: "mc.setProperty('CONTENT_TYPE', 'text/plain'); mc.setPayloadJSON(undefinedName);"
    put:
      responses: { '200': { description: ok } }
"#;

#[test]
fn scripts_compute_answers() {
    let files = [("api.yaml", INLINE), ("Definitions/swagger.yaml", SCRIPTED)];
    let gateway = TestGateway::start(Setup::project(&files));
    let mut client = gateway.client();
    let reply = client.get("/shop/1.0.0/pets/7", &[("x-own", "1")]);
    assert_eq!((reply.status, reply.json()), (200, json!({ "id": "7" })), "{:?}", gateway.diagnostics);
    assert_eq!((reply.header("x-made"), reply.header("x-own")), (Some("by script"), None));
    assert!(reply.header("content-type").unwrap().starts_with("application/json"));
    let reply = client.get("/shop/1.0.0/pets/7", &[("accept", "application/xml")]);
    assert_eq!((reply.status, reply.text().as_str()), (200, "<pet><kind>cat</kind></pet>"));
    let reply = client.get("/shop/1.0.0/pets/7?responseCode=404", &[]);
    assert_eq!((reply.status, reply.json()), (501, json!({ "code": 501 })));
    // A script that fails is an error, and one that is missing another.
    let reply = client.request("POST", "/shop/1.0.0/pets/7", &[], b"");
    assert_eq!(reply.status, 500, "{}", reply.text());
    let reply = client.request("PUT", "/shop/1.0.0/pets/7", &[], b"");
    assert_eq!((reply.status, &reply.json()["code"]), (501, &json!("900871")), "{}", reply.text());
}

#[test]
fn a_script_that_is_none_refuses_the_api() {
    let broken = SCRIPTED.replace("var answers = [];", "var answers = [;");
    let files = [("api.yaml", INLINE), ("Definitions/swagger.yaml", broken.as_str())];
    let (_, faulty) = TestGateway::try_start(Setup::project(&files));
    let expected = "Definitions/swagger.yaml:9:1: error: the script is not valid JavaScript";
    assert!(faulty.iter().any(|text| text.contains(expected)), "{faulty:?}");
}
