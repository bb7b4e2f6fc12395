//! Guardrails and prompts of AI APIs.

use penstock_catalog::{Policies, PolicyUse};
use penstock_gateway::ErrorStyle;
use penstock_testkit::gateway::{Answer, Backend, Setup, TestGateway};
use serde_json::{Value, json};

use crate::classes::class;
use crate::{open_api, request, response, using};

const JSON: (&str, &str) = ("content-type", "application/json");

/// A model that returns its prompt.
fn parrot(policies: Policies) -> (TestGateway, Backend) {
    parrot_in(ErrorStyle::ChoreoConnect, policies)
}

fn parrot_in(style: ErrorStyle, policies: Policies) -> (TestGateway, Backend) {
    let backend = Backend::start(|request| Answer::new(200, "application/json", request.body.clone()));
    let api = open_api(&backend, &["POST /chat"], policies);
    (TestGateway::start(Setup::of([api]).configured(|config| config.error_style = style)), backend)
}

fn ask(gateway: &TestGateway, body: &Value) -> (u16, Value) {
    let reply = gateway.client().request("POST", "/shop/chat", &[JSON], body.to_string().as_bytes());
    (reply.status, serde_json::from_str(&reply.text()).unwrap_or(Value::Null))
}

fn prompt(text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": text }] })
}

const PATH: (&str, &str) = ("jsonPath", "$.messages[0].content");

/// Each of them lets a prompt through and keeps another out.
#[test]
fn prompts_have_bounds() {
    let counted = |name: &str| using(name, &[("name", "g"), ("min", "2"), ("max", "12"), PATH]);
    let pattern = using("RegexGuardrail", &[("name", "g"), ("regex", "(?i)secret"), ("invert", "true"), PATH]);
    let schema = r#"{"type":"object","required":["a"]}"#;
    let schema = using("JSONSchemaGuardrail", &[("name", "g"), ("schema", schema), PATH]);
    for (policy, good, bad, kind) in [
        (counted("WordCountGuardrail"), "two words", "one", "WORD_COUNT_GUARDRAIL"),
        (counted("SentenceCountGuardrail"), "One. Two.", "One.", "SENTENCE_COUNT_GUARDRAIL"),
        (counted("ContentLengthGuardrail"), "short", "far longer than twelve", "CONTENT_LENGTH_GUARDRAIL"),
        (pattern, "nothing", "the SECRET", "REGEX_GUARDRAIL"),
        (schema, r#"this: {"a": 1}"#, r#"this: {"b": 1}"#, "JSON_SCHEMA_GUARDRAIL"),
    ] {
        let (gateway, backend) = parrot(request(vec![policy]));
        assert_eq!(ask(&gateway, &prompt(good)), (200, prompt(good)), "{kind}");
        assert_eq!(backend.last().json(), prompt(good));
        let (status, answer) = ask(&gateway, &prompt(bad));
        assert_eq!((status, &answer["code"], &answer["type"]), (446, &json!("900514"), &json!(kind)), "{answer}");
        let message = &answer["message"];
        assert_eq!((&message["interveningGuardrail"], &message["direction"]), (&json!("g"), &json!("REQUEST")));
        assert_eq!(message.get("assessments"), None);
        let (status, answer) = ask(&gateway, &json!({ "other": 1 }));
        assert_eq!((status, &answer["code"]), (500, &json!("900967")), "{kind}: nothing is at the path");
    }
}

/// Answers have bounds too, by the template that a project brings along.
#[test]
fn answers_have_bounds() {
    let name = "org.wso2.apim.policies.mediation.ai.word.count.guardrail.WordCountGuardrail";
    let settings = [("name", "long"), ("min", "0"), ("max", "2"), PATH, ("showAssessment", "true")];
    for style in [ErrorStyle::ChoreoConnect, ErrorStyle::ApiManager] {
        let (gateway, _backend) = parrot_in(style, response(vec![class(name, &settings)]));
        assert_eq!(ask(&gateway, &prompt("one two")).0, 200);
        let (status, answer) = ask(&gateway, &prompt("one two three"));
        assert_eq!((status, &answer["message"]["direction"]), (446, &json!("RESPONSE")), "{answer}");
        let expected = "Violation of word count detected. Expected between 0 and 2 words. But found 3 words.";
        assert_eq!(answer["message"]["assessments"], json!(expected));
    }
}

/// What identifies a person does not reach the model, and stands in the answer again.
#[test]
fn persons_are_masked() {
    // As the portal writes it, for an attribute.
    let entities = "[{'piiEntity':'Email','piiRegex':'[a-z]+@[a-z.]+'}]";
    let mask = |redact: &str| -> PolicyUse {
        using("PIIMaskingRegex", &[("name", "p"), ("piiEntities", entities), ("redact", redact), PATH])
    };
    let both = Policies { request: vec![mask("false")], response: vec![mask("false")], fault: vec![] };
    let (gateway, backend) = parrot(both);
    let text = "from a@b.example to c@d.example and a@b.example";
    assert_eq!(ask(&gateway, &prompt(text)), (200, prompt(text)));
    assert_eq!(backend.last().json(), prompt("from Email_0000 to Email_0001 and Email_0000"));
    let (gateway, backend) = parrot(request(vec![mask("true")]));
    assert_eq!(ask(&gateway, &prompt("from a@b.example")).0, 200);
    assert_eq!(backend.last().json(), prompt("from *****"));
}

/// What is put around a prompt, and prompts that are named.
#[test]
fn prompts_are_written() {
    let decorate = |config: &str, path: &str, append: &str| {
        let parameters = [("name", "d"), ("promptDecoratorConfig", config), ("jsonPath", path), ("append", append)];
        using("PromptDecorator", &parameters)
    };
    let templates = r#"[{"name":"say","prompt":"Say \"[[what]]\" to [[whom]]"}]"#;
    let system = r#"{"decoration":[{"role":"system","content":"Be kind."}]}"#;
    for (policy, sent, expected) in [
        (decorate(r#"{"decoration":"Please:"}"#, PATH.1, "false"), prompt("go"), prompt("Please: go")),
        (decorate(r#"{"decoration":"now"}"#, PATH.1, "true"), prompt("go"), prompt("go now")),
        (decorate("{'decoration': 'Say \"please\":'}", PATH.1, "false"), prompt("go"), prompt("Say \"please\": go")),
        (
            decorate(system, "$.messages", "false"),
            prompt("go"),
            json!({ "messages": [{ "role": "system", "content": "Be kind." }, { "role": "user", "content": "go" }] }),
        ),
        (
            using("PromptTemplate", &[("name", "t"), ("promptTemplateConfig", templates)]),
            prompt("template://say?what=a%20b&whom=me then template://other?x=1"),
            prompt("Say \"a b\" to me then template://other?x=1"),
        ),
    ] {
        let (gateway, backend) = parrot(request(vec![policy]));
        assert_eq!(ask(&gateway, &sent).0, 200);
        assert_eq!(backend.last().json(), expected);
    }
}
