//! Exchanges with interceptor services, recorded from Choreo Connect and replayed over sockets: as recorded in compatibility
//! mode, and with the differences of docs/gateway/interceptors.md in default mode.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use penstock_catalog::{Api, Cluster, Endpoints, Interceptor, InterceptorPart, Operation};
use penstock_testkit::gateway::{Answer, Backend, Received, Reply, Setup, TestGateway};
use serde_json::{Map, Value, json};

const RECORDED: &str = "../../../shared/corpus/gateway/interceptor/recorded.jsonl";

/// The recorded case of a method without interceptors.
const NOT_INTERCEPTED: usize = 36;

/// A service that sleeps does so for longer than it is waited for.
const PATIENCE: Duration = Duration::from_millis(300);

fn recorded() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(RECORDED);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
#[ignore = "reads ../shared; .ci/run runs it where the folder is"]
fn corpus_as_recorded_in_compatibility_mode() {
    replay(true, |expected| expected);
}

#[test]
#[ignore = "reads ../shared; .ci/run runs it where the folder is"]
fn corpus_with_the_documented_differences_in_default_mode() {
    replay(false, corrected);
}

fn replay(compat: bool, expected_of: fn(Expected) -> Expected) {
    let cases = recorded();
    assert_eq!(cases.len(), 40);
    let mut wrong = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let expected = expected_of(Expected::of(index, case)).value;
        let seen = run(case, compat);
        if seen != expected {
            let name = case["case"].as_str().unwrap();
            wrong.push(format!("{index} {name}\n  expected {expected}\n  seen     {seen}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

// What was recorded, without what differs from run to run.

/// An exchange: what the service was told, what the backend got, what the client got.
struct Expected {
    index: usize,
    value: Value,
}

impl Expected {
    fn of(index: usize, case: &Value) -> Expected {
        let calls = case["interceptor_calls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|call| json!({ "path": call["path"], "body": told(call["body"].clone()) }));
        let backend = case["backend_got"].as_array().unwrap().iter().map(|got| {
            let headers = got["headers"].as_object().unwrap().iter();
            let headers = headers.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
            let mut headers = backend_headers(headers);
            if index == NOT_INTERCEPTED
                && let Some(headers) = headers.as_object_mut()
            {
                // Envoy adds these to every request; here those have them that a service was told of.
                headers.retain(|name, _| name != "x-request-id" && name != "x-forwarded-proto");
            }
            json!({ "backend": got["backend"], "path": got["path"], "headers": headers, "body": got["body"] })
        });
        let client = &case["client_response"];
        let pairs = client["headers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| (pair[0].as_str().unwrap().to_owned(), pair[1].as_str().unwrap().to_owned()));
        let value = json!({
            "calls": calls.collect::<Vec<_>>(),
            "backend": backend.collect::<Vec<_>>(),
            "client": client_of(client["status"].as_u64().unwrap() as u16, pairs, client["body"].as_str().unwrap()),
        });
        Expected { index, value }
    }
}

/// What a service was told: identifiers, ports and the recording's names of clusters stand for any.
fn told(mut body: Value) -> Value {
    if let Some(context) = body.get_mut("invocationContext") {
        let has = |value: &Value| !value.as_str().unwrap_or_default().is_empty();
        context["requestId"] = json!(has(&context["requestId"]));
        context["prodClusterName"] = json!(has(&context["prodClusterName"]));
        context["sandClusterName"] = json!(has(&context["sandClusterName"]));
        let source = context["source"].as_str().unwrap().to_owned();
        let host = source.split_once(':').map_or(source.clone(), |(host, _)| format!("{host}:PORT"));
        context["source"] = json!(host);
    }
    if let Some(headers) = body.get_mut("requestHeaders").and_then(Value::as_object_mut) {
        headers["x-request-id"] = json!(!headers["x-request-id"].as_str().unwrap_or_default().is_empty());
    }
    if let Some(headers) = body.get_mut("responseHeaders").and_then(Value::as_object_mut) {
        // Of the recording's backend and proxy.
        for name in ["date", "server", "x-envoy-upstream-service-time"] {
            headers.remove(name);
        }
    }
    body
}

fn backend_headers(headers: impl Iterator<Item = (String, String)>) -> Value {
    let mut map = Map::new();
    for (name, value) in headers {
        let value = match name.to_ascii_lowercase().as_str() {
            // The recording's proxy sent the client's host; a gateway sends the backend's. The other is Envoy's own.
            "host" | "x-envoy-expected-rq-timeout-ms" => continue,
            "x-request-id" => json!(!value.is_empty()),
            _ => json!(value),
        };
        map.insert(name.to_ascii_lowercase(), value);
    }
    Value::Object(map)
}

fn client_of(status: u16, headers: impl Iterator<Item = (String, String)>, body: &str) -> Value {
    let mut headers: Vec<(String, String)> = headers.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
    headers.retain(|(name, _)| match name.as_str() {
        "server" | "date" | "x-envoy-upstream-service-time" | "connection" | "keep-alive" => false,
        // RFC 9110 §8.6: an answer with the status 204 has no such field; Envoy sends one.
        "content-length" => status != 204,
        _ => true,
    });
    headers.sort();
    json!({ "status": status, "headers": headers, "body": body })
}

// What is corrected.

/// The documented differences, by the number of the recorded case.
fn corrected(mut expected: Expected) -> Expected {
    let value = &mut expected.value;
    match expected.index {
        // A direct answer has no field of Lambda's.
        8..=11 => client_headers(value).retain(|(name, _)| name != "x-amz-function-error"),
        // After a 204 for the request the service is still asked about the answer.
        13 => {
            let mut call = value["calls"][0]["body"].clone();
            call["responseCode"] = json!(200);
            call["responseBody"] = json!("eyJhIjoxfQ==");
            call["responseHeaders"] = echoed_headers();
            value["calls"].as_array_mut().unwrap().push(json!({ "path": "/api/v1/handle-response", "body": call }));
        }
        // Errors say that they are JSON.
        14..=17 | 19 | 32 | 33 | 39 => {
            let body: Value = serde_json::from_str(value["client"]["body"].as_str().unwrap()).unwrap();
            value["client"] = error_of(&body["code"]);
        }
        // Base64 is taken as what it is.
        18 => {
            value["calls"].as_array_mut().unwrap().truncate(1);
            value["backend"] = json!([]);
            value["client"] = error_of(&json!("103501"));
        }
        // A body that may not be taken does not keep the rest of a reply from being done.
        20 => {
            value["backend"][0]["headers"]["foo-add"] = json!("A");
            add_client_header(value, "foo-add", "A");
            let mut call = value["calls"][0]["body"].clone();
            call["responseCode"] = json!(200);
            call["responseHeaders"] = echoed_headers();
            call["responseHeaders"]["foo-add"] = json!("A");
            value["calls"].as_array_mut().unwrap().push(json!({ "path": "/api/v1/handle-response", "body": call }));
        }
        34 => add_client_header(value, "foo-add", "A"),
        // The name of a chosen endpoint is the gateway's own affair.
        21 => value["backend"][0]["headers"]["x-wso2-cluster-header"] = json!("backend"),
        // Choosing an unknown endpoint is an error.
        22 => value["client"] = json!({ "status": 503, "code": "102503" }),
        // A path is rewritten.
        23 => value["backend"][0]["path"] = json!("/b/other"),
        // Nothing is an object.
        35 => value["calls"][0]["body"] = json!({}),
        // Trailers that are not there are none.
        38 => {
            let body = json!({ "responseCode": 200, "responseTrailers": {} });
            value["calls"] = json!([{ "path": "/api/v1/handle-response", "body": body }]);
            value["client"]["status"] = json!(418);
        }
        _ => {}
    }
    expected
}

fn client_headers(value: &mut Value) -> HeaderList<'_> {
    HeaderList(value["client"]["headers"].as_array_mut().unwrap())
}

struct HeaderList<'v>(&'v mut Vec<Value>);

impl HeaderList<'_> {
    fn retain(self, keep: impl Fn(&(String, String)) -> bool) {
        self.0.retain(|pair| keep(&serde_json::from_value(pair.clone()).unwrap()));
    }
}

fn add_client_header(value: &mut Value, name: &str, content: &str) {
    let headers = value["client"]["headers"].as_array_mut().unwrap();
    headers.push(json!([name, content]));
    headers.sort_by_key(Value::to_string);
}

fn echoed_headers() -> Value {
    json!({
        ":status": "200", "content-type": "application/json", "content-length": "7",
        "foo-keep": "k", "foo-remove": "r", "foo-update": "o",
    })
}

/// An error of ours; its texts are those of the table.
fn error_of(code: &Value) -> Value {
    json!({ "status": 500, "code": code })
}

// What is seen now.

fn run(case: &Value, compat: bool) -> Value {
    let replies = [case["interceptor_reply_request"].clone(), case["interceptor_reply_response"].clone()];
    let service = Backend::start(move |request| reply_of(request, &replies));
    let backend = Backend::start(echo);
    let other = Backend::start(echo);
    let api = api_of(case["includes"].as_str().unwrap(), &service, &backend, &other);
    let gateway = TestGateway::start(Setup::of([api]).behind(&["127.0.0.1"]).configured(|config| {
        config.compat = compat;
        config.interceptors.timeout = PATIENCE;
    }));
    let reply = ask(case, &gateway);
    let calls: Vec<Value> = service
        .received()
        .iter()
        .map(|call| {
            assert_eq!(call.method, "POST");
            assert_eq!(call.header("content-type"), Some("application/json"));
            assert_eq!(call.header("accept"), Some("application/json"));
            assert_eq!(call.header("host"), Some(format!("127.0.0.1:{}", service.port).as_str()));
            json!({ "path": call.target, "body": told(call.json()) })
        })
        .collect();
    let got = |backend: &Backend, name: &str| -> Vec<Value> {
        let each = |request: &Received| {
            json!({
                "backend": name, "path": request.target, "headers": backend_headers(request.headers.iter().cloned()),
                "body": latin(&request.body),
            })
        };
        backend.received().iter().map(each).collect()
    };
    let backends = [got(&backend, "backend"), got(&other, "ep2")].concat();
    let client = client_of(reply.status, reply.headers.iter().cloned(), &latin(&reply.body));
    let is_error = !compat && (reply.status == 500 || reply.status == 503);
    let client = if is_error { json!({ "status": reply.status, "code": error_code(&reply) }) } else { client };
    json!({ "calls": calls, "backend": backends, "client": client })
}

/// The code of an error in the style of Choreo Connect, which says that it is JSON.
fn error_code(reply: &Reply) -> Value {
    assert_eq!(reply.header("content-type"), Some("application/json"));
    reply.json()["code"].clone()
}

fn ask(case: &Value, gateway: &TestGateway) -> Reply {
    let request = &case["client_request"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let authority = case["interceptor_calls"][0]["body"]["requestHeaders"][":authority"].as_str();
    let mut headers = vec![
        ("Host".to_owned(), authority.unwrap_or("localhost").to_owned()),
        ("Accept-Encoding".to_owned(), "identity".to_owned()),
    ];
    let sent = request["headers"].as_object().unwrap().iter();
    headers.extend(sent.map(|(name, value)| (name.clone(), text(value))));
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let (method, path, body) = (text(&request["method"]), text(&request["path"]), text(&request["body"]));
    gateway.client().request(&method, &path, &headers, body.as_bytes())
}

fn latin(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// The service: what the recording says, 204 where it says nothing.
fn reply_of(request: &Received, replies: &[Value; 2]) -> Answer {
    let reply = if request.target.ends_with("handle-request") { &replies[0] } else { &replies[1] };
    let Some([status, body]) = reply.as_array().map(Vec::as_slice) else { return Answer::status(204) };
    let answer = |status| Answer::new(status, "application/json", body.as_str().unwrap());
    match status.as_u64() {
        Some(status) => answer(status as u16),
        None => answer(200).after(PATIENCE * 3),
    }
}

/// The backend of the recording: sends back the body and the fields that begin with `foo-`.
fn echo(request: &Received) -> Answer {
    let status = request.header("foo-status").and_then(|status| status.parse().ok()).unwrap_or(200);
    let body = if request.body.is_empty() { b"BACKEND-EMPTY".to_vec() } else { request.body.clone() };
    let mut answer = Answer::new(status, request.header("content-type").unwrap_or("text/plain"), body);
    for (name, value) in request.headers.iter().filter(|(name, _)| name.starts_with("foo-")) {
        answer = answer.with(name, value);
    }
    answer
}

fn api_of(includes: &str, service: &Backend, backend: &Backend, other: &Backend) -> Api {
    use InterceptorPart::{
        InvocationContext, RequestBody, RequestHeaders, ResponseBody, ResponseHeaders, ResponseTrailers,
    };
    let of_request = [RequestHeaders, RequestBody, InvocationContext];
    let of_both = [RequestHeaders, RequestBody, InvocationContext, ResponseHeaders, ResponseBody];
    let (request, response): (Option<&[InterceptorPart]>, Option<&[InterceptorPart]>) = match includes {
        "req_full" => (Some(&of_request), None),
        "both_full" => (Some(&of_request), Some(&of_both)),
        "both_headers" => (Some(&[RequestHeaders]), Some(&[RequestHeaders, ResponseHeaders])),
        "resp_full" => (None, Some(&of_both)),
        "both_none" => (Some(&[]), Some(&[])),
        "resp_trailers" => (None, Some(&[ResponseTrailers])),
        other => panic!("unknown set of includes `{other}`"),
    };
    let interceptor = |parts: &[InterceptorPart]| Interceptor {
        service_url: format!("{}/ignored", service.url()).into(),
        includes: parts.to_vec(),
        ..Interceptor::default()
    };
    let cluster = |backend: &Backend| {
        Arc::new(Cluster { urls: vec![format!("{}/b", backend.url()).into()], ..Cluster::default() })
    };
    let operation =
        |method: &str| Operation { method: method.into(), path: "/echo/{id}".into(), ..Operation::default() };
    let post = Operation {
        request_interceptor: request.map(interceptor),
        response_interceptor: response.map(interceptor),
        ..operation("POST")
    };
    Api {
        name: "A".into(),
        version: "1.0.0".into(),
        organization: "org".into(),
        base_path: "/b".into(),
        endpoints: Endpoints {
            production: Some(cluster(backend)),
            named: vec![("ep2".into(), cluster(other))],
            ..Endpoints::default()
        },
        operations: vec![Arc::new(operation("GET")), Arc::new(post)],
        ..Api::default()
    }
}
