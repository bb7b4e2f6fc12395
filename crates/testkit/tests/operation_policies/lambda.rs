//! Functions of AWS Lambda, invoked over sockets: a service that checks the signature as AWS describes it.

use std::fmt::Write;
use std::sync::Arc;

use penstock_catalog::{AwsIdentity, LambdaAccess, LambdaFunction, Secret};
use penstock_gateway::{ErrorStyle, GatewayConfig};
use penstock_testkit::gateway::{Answer, Backend, Received, Setup, TestGateway, api};
use ring::{digest, hmac};
use serde_json::{Value, json};

const KEY: &str = "a/secret+key";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether the request is signed with the key, by the fields it says are signed.
fn is_signed(request: &Received) -> bool {
    let authorization = request.header("authorization").unwrap_or_default();
    let part =
        |name: &str| authorization.split([' ', ',']).find_map(|part| part.strip_prefix(name)).unwrap_or_default();
    let (signed, signature) = (part("SignedHeaders="), part("Signature="));
    let at = request.header("x-amz-date").unwrap_or_default();
    let fields: String =
        signed.split(';').map(|name| format!("{name}:{}\n", request.header(name).unwrap_or_default())).collect();
    let hash = |text: &[u8]| hex(digest::digest(&digest::SHA256, text).as_ref());
    let path = request.target.replace('%', "%25");
    let canonical = format!("POST\n{path}\n\n{fields}\n{signed}\n{}", hash(&request.body));
    let scope = format!("{}/eu-west-1/lambda/aws4_request", &at[..8]);
    let text = format!("AWS4-HMAC-SHA256\n{at}\n{scope}\n{}", hash(canonical.as_bytes()));
    let step = |key: Vec<u8>, text: &str| {
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), text.as_bytes()).as_ref().to_vec()
    };
    let key =
        [&at[..8], "eu-west-1", "lambda", "aws4_request"].into_iter().fold(format!("AWS4{KEY}").into_bytes(), step);
    signed.contains("host") && part("Credential=") == format!("AKTEST/{scope}") && signature == hex(&step(key, &text))
}

/// The functions: `echo` answers with its event, `fails` fails, `odd` answers what is no answer, `busy` is busy.
fn aws() -> Backend {
    Backend::start(|request| {
        if !is_signed(request) {
            return Answer::new(403, "application/json", "{}").with("x-amzn-errortype", "InvalidSignatureException:x");
        }
        let function = request.target.trim_end_matches("/invocations").rsplit(['/', 'A']).next().unwrap_or_default();
        match function {
            "echo" => Answer::new(200, "application/json", request.body.clone()),
            "fails" => Answer::json(&json!({ "errorMessage": "no" })).with("x-amz-function-error", "Unhandled"),
            "made" => Answer::json(&json!({
                "status_code": 201, "headers": { "x-made": "1", "content-type": "text/plain" }, "cookies": ["a=b"],
                "body": "aGk=", "is_base64_encoded": true
            })),
            "odd" => Answer::new(200, "text/plain", "odd"),
            "busy" => Answer::status(429),
            _ => Answer::status(404),
        }
    })
}

fn gateway(aws: &Backend, function: &str, key: &str, change: impl FnOnce(&mut GatewayConfig)) -> TestGateway {
    let mut api = api("/shop", "http://127.0.0.1:1", &["POST /a/{id}", "GET /a/{id}"]);
    let identity = AwsIdentity { key_id: "AKTEST".into(), key: Secret(key.into()), session: None };
    api.lambda = Some(LambdaAccess { region: Some("eu-west-1".into()), identity: Some(identity) });
    api.endpoints = Default::default();
    for operation in &mut api.operations {
        let lambda = LambdaFunction { name: function.into(), timeout: None, encodes_body: false };
        Arc::make_mut(operation).lambda = Some(lambda);
    }
    TestGateway::start(Setup::of([api]).configured(|config| {
        config.upstream.aws.endpoint = Some(aws.url().into());
        change(config);
    }))
}

const JSON: (&str, &str) = ("content-type", "application/json");

/// The event of a function, and the response to the client, in either style.
#[test]
fn functions_answer_requests() {
    let aws = aws();
    let arn = "arn:aws:lambda:eu-west-1:1:function:echo";
    let apim = gateway(&aws, arn, KEY, |config| config.error_style = ErrorStyle::ApiManager);
    let reply = apim.client().request("POST", "/shop/a/7%208?q=x%20y", &[JSON, ("x-own", "1")], br#"{"a": 1}"#);
    let event: Value = reply.json();
    assert_eq!(reply.status, 200, "{} {}", reply.text(), apim.log());
    assert_eq!((&event["httpMethod"], &event["path"]), (&json!("POST"), &json!("/a/{id}")));
    assert_eq!(
        (&event["pathParameters"], &event["queryStringParameters"]),
        (&json!({ "id": "7 8" }), &json!({ "q": "x y" }))
    );
    assert_eq!((&event["body"], &event["isBase64Encoded"]), (&json!("{\"a\": 1}"), &json!(false)));
    assert_eq!(event["headers"]["x-own"], json!("1"));
    assert_eq!(apim.client().get("/shop/a/7", &[]).json()["body"], json!("{}"));
    let reply = apim.client().request("POST", "/shop/a/7", &[("content-type", "image/png")], &[0xff, 0xfe]);
    assert_eq!((&reply.json()["body"], &reply.json()["isBase64Encoded"]), (&json!("//4="), &json!(true)));

    let plain = gateway(&aws, "echo", KEY, |_| {});
    let reply = plain.client().request("POST", "/shop/a/7", &[JSON], br#"{"a": 1}"#);
    assert_eq!((reply.status, reply.text().as_str()), (200, r#"{"a": 1}"#));

    let envoy = gateway(&aws, "made", KEY, |config| config.upstream.aws.passthrough = false);
    let reply = envoy.client().request("POST", "/shop/a/7?q=1", &[JSON], b"{}");
    assert_eq!((reply.status, reply.text().as_str()), (201, "hi"));
    assert_eq!((reply.header("x-made"), reply.header("set-cookie")), (Some("1"), Some("a=b")));
    let event = aws.last().json();
    assert_eq!((&event["raw_path"], &event["method"]), (&json!("/shop/a/7?q=1"), &json!("POST")));
}

/// What goes wrong has a code, and no key is written down.
#[test]
fn functions_that_fail_are_errors() {
    let aws = aws();
    for (function, key, style, passthrough, status, text) in [
        ("fails", KEY, ErrorStyle::ChoreoConnect, true, 504, "errorMessage"),
        ("fails", KEY, ErrorStyle::ApiManager, true, 200, "errorMessage"),
        ("missing", KEY, ErrorStyle::ChoreoConnect, true, 503, "102503"),
        ("echo", "another key", ErrorStyle::ChoreoConnect, true, 503, "102503"),
        ("busy", KEY, ErrorStyle::ChoreoConnect, true, 503, "102505"),
        ("odd", KEY, ErrorStyle::ChoreoConnect, false, 500, "102515"),
    ] {
        let gateway = gateway(&aws, function, key, |config| {
            config.error_style = style;
            config.upstream.aws.passthrough = passthrough;
        });
        let reply = gateway.client().request("POST", "/shop/a/7", &[JSON], b"{}");
        assert_eq!(reply.status, status, "{function} {}", reply.text());
        assert!(reply.text().contains(text), "{function} {}", reply.text());
        assert!(!gateway.log().contains(key) && !gateway.log().contains("Signature="), "{}", gateway.log());
    }
    let nowhere = gateway(&aws, "echo", KEY, |config| config.upstream.aws.endpoint = Some("http://127.0.0.1:1".into()));
    assert_eq!(nowhere.client().request("POST", "/shop/a/7", &[JSON], b"{}").status, 503);
}

const DESCRIPTOR: &str =
    "type: api\ndata:\n  name: Shop\n  version: 1.0.0\n  context: /shop\n  type: HTTP\n  endpointConfig:
    endpoint_type: awslambda\n    access_method: stored\n    amznRegion: eu-west-1\n    amznAccessKey: AKTEST
    amznSecretKey: a/secret+key\n  operations:
    - { target: /a, verb: POST, authType: None, amznResourceName: echo, amznResourceTimeout: 3000 }\n";

/// Projects name functions and access keys; missing ones are reported.
#[test]
fn projects_name_functions() {
    let aws = aws();
    let setup = |text: &str| {
        let setup = Setup::project(&[("api.yaml", text)]);
        setup.configured(|config| config.upstream.aws.endpoint = Some(aws.url().into()))
    };
    let gateway = TestGateway::start(setup(DESCRIPTOR));
    let reply = gateway.client().request("POST", "/shop/1.0.0/a", &[JSON], b"[1]");
    assert_eq!((reply.status, reply.text().as_str()), (200, "[1]"), "{:?} {}", gateway.diagnostics, gateway.log());
    for (from, to, expected) in [
        ("    amznSecretKey: a/secret+key\n", "", "`amznAccessKey` and `amznSecretKey`; one of them is missing"),
        (", amznResourceName: echo", "", "the operation POST /a names no function of AWS"),
        ("    amznRegion: eu-west-1\n", "", "no region is configured for the function `echo`"),
        ("amznRegion: eu-west-1", "amznRegion: 'x.example/'", "`x.example/` is not a region of AWS"),
        ("access_method: stored", "amznRoleArn: 'arn:x'", "roles of AWS are not assumed"),
    ] {
        let (_, faulty) = TestGateway::try_start(setup(&DESCRIPTOR.replace(from, to)));
        assert!(faulty.iter().any(|text| text.contains(expected)), "{expected}: {faulty:?}");
    }
}
