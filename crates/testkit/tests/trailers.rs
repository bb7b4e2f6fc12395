//! Trailers, through managed APIs over real sockets: what interceptor services get of them and make
//! of them, in both flows and both modes, and calls of gRPC, whose outcome they are.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "trailers/grpc.rs"]
mod grpc;

use std::sync::Arc;

use penstock_catalog::{Api, Interceptor, InterceptorPart};
use penstock_testkit::gateway::{Answer, Backend, Reply, Setup, TestGateway, api};
use serde_json::{Value, json};

use InterceptorPart::{RequestBody, RequestTrailers, ResponseBody, ResponseTrailers};

/// An unsecured API, with interceptors that ask this service.
fn intercepted(backend: &Backend, service: &Backend, request: Parts, response: Parts) -> Api {
    let asking = |includes: &[InterceptorPart]| Interceptor {
        service_url: service.url().into(),
        includes: includes.to_vec(),
        ..Interceptor::default()
    };
    let mut api = api("/store", &backend.url(), &["POST /echo"]);
    let operation = Arc::get_mut(&mut api.operations[0]).unwrap();
    operation.secured = false;
    operation.request_interceptor = request.map(asking);
    operation.response_interceptor = response.map(asking);
    api
}

type Parts = Option<&'static [InterceptorPart]>;

fn start(api: Api, compat: bool) -> TestGateway {
    TestGateway::start(Setup::of([api]).configured(|config| config.compat = compat))
}

/// A request with a chunked body and fields behind it.
fn post(gateway: &TestGateway, trailers: &[(&str, &str)]) -> Reply {
    let fields: String = trailers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let body = format!("3\r\nabc\r\n0\r\n{fields}\r\n");
    gateway.client().request("POST", "/store/echo", &[("Transfer-Encoding", "chunked")], body.as_bytes())
}

fn text(fields: &[(String, String)]) -> String {
    let field = |(name, value): &(String, String)| format!("{}={value}", name.to_ascii_lowercase());
    fields.iter().map(field).collect::<Vec<_>>().join(" ")
}

/// A service that answers every question so.
fn saying(reply: Value) -> Backend {
    Backend::start(move |_| Answer::json(&reply))
}

/// A backend that sends back body and trailers.
fn echo() -> Backend {
    Backend::start(|request| {
        let answer = Answer::new(200, "text/plain", request.body.clone());
        request.trailers.iter().fold(answer, |answer, (name, value)| answer.ending_with(name, value))
    })
}

const SENT: [(&str, &str); 3] = [("X-Sum", "3"), ("X-Drop", "d"), ("X-WSO2-Own", "o")];

/// Removes, replaces and adds; reserved names are not its to touch.
fn changes() -> Value {
    json!({
        "trailersToRemove": ["x-drop", "x-wso2-own"],
        "trailersToReplace": { "X-Sum": "4", "x-made": "m", "x-envoy-made": "e" },
        "trailersToAdd": { "x-sum": "5", "x-wso2-made": "w", "content-length": "9", "authorization": "a" },
    })
}

#[test]
fn trailers_of_requests_are_sent_to_services_and_changed() {
    for (parts, compat, told, expected) in [
        (&[RequestTrailers][..], false, true, "x-sum=4 x-wso2-own=o x-made=m x-sum=5"),
        (&[RequestTrailers, RequestBody], false, true, "x-sum=4 x-wso2-own=o x-made=m x-sum=5"),
        // The service does not want the body, so the body streams while the service is called.
        (&[], false, false, "x-sum=4 x-wso2-own=o x-made=m x-sum=5"),
        // Choreo Connect never tells of these, and reserves no name among them.
        (&[RequestTrailers, RequestBody], true, false, "x-sum=4 x-made=m x-envoy-made=e x-sum=5 x-wso2-made=w"),
        (&[], true, false, "x-sum=4 x-made=m x-envoy-made=e x-sum=5 x-wso2-made=w"),
    ] {
        let (service, backend) = (saying(changes()), echo());
        let gateway = start(intercepted(&backend, &service, Some(parts), None), compat);
        let reply = post(&gateway, &SENT);
        assert_eq!((reply.status, reply.text().as_str()), (200, "abc"), "{parts:?} {compat}");
        assert_eq!(text(&backend.last().trailers), expected, "{parts:?} {compat}");
        let expected = json!({ "x-sum": "3", "x-drop": "d", "x-wso2-own": "o" });
        let call = service.last().json();
        assert_eq!(call.get("requestTrailers"), told.then_some(&expected), "{parts:?} {compat}: {call}");
        assert_eq!(text(&reply.trailers), text(&backend.last().trailers), "they come back as the backend got them");
    }
}

#[test]
fn trailers_of_responses_are_sent_to_services_and_changed() {
    let ours = "x-sum=4 x-wso2-own=o x-made=m x-sum=5";
    let originals = "x-sum=4 x-made=m x-envoy-made=e x-sum=5 x-wso2-made=w";
    for (parts, compat, told, expected) in [
        (&[ResponseTrailers][..], false, true, ours),
        (&[ResponseTrailers, ResponseBody], false, true, ours),
        (&[], false, false, ours),
        (&[ResponseTrailers], true, true, originals),
        (&[ResponseTrailers, ResponseBody], true, true, originals),
        (&[], true, false, originals),
    ] {
        let (service, backend) = (saying(changes()), echo());
        let gateway = start(intercepted(&backend, &service, None, Some(parts)), compat);
        let reply = post(&gateway, &SENT);
        assert_eq!((reply.status, reply.text().as_str()), (200, "abc"), "{parts:?} {compat}");
        assert_eq!(text(&reply.trailers), expected, "{parts:?} {compat}");
        let expected = json!({ "x-sum": "3", "x-drop": "d", "x-wso2-own": "o" });
        let call = service.last().json();
        assert_eq!(call.get("responseTrailers"), told.then_some(&expected), "{parts:?} {compat}: {call}");
    }
}

/// The response flow may be told of the request's.
#[test]
fn the_second_service_gets_the_first_message() {
    for (compat, told) in [(false, json!({ "x-sum": "3" })), (true, Value::Null)] {
        let (service, backend) = (saying(json!({})), Backend::echo());
        let gateway = start(intercepted(&backend, &service, None, Some(&[RequestTrailers, ResponseBody])), compat);
        assert_eq!(post(&gateway, &SENT[..1]).status, 200);
        assert_eq!(service.last().json()["requestTrailers"], told);
    }
}

/// Where there are none: fields can be added, which makes a body of known length one in chunks. Choreo Connect fails there,
/// and everything it would have done afterwards is left out.
#[test]
fn a_message_without_them_may_get_some() {
    let add = json!({
        "trailersToAdd": { "x-sum": "5" }, "headersToAdd": { "x-head": "h" }, "responseCode": 202,
        "dynamicEndpoint": { "endpointName": "other" }, "interceptorContext": { "noted": true },
    });
    for (request, response) in [(true, true), (false, false)] {
        let parts = |whole: bool, part| if whole { Some(std::slice::from_ref(part)) } else { Some(&[][..]) };
        let parts = (parts(request, &RequestBody), parts(response, &ResponseBody));
        for compat in [false, true] {
            let (service, backend, other) = (saying(add.clone()), echo(), echo());
            let mut api = intercepted(&backend, &service, parts.0, parts.1);
            let cluster = penstock_catalog::Cluster { urls: vec![other.url().into()], ..Default::default() };
            api.endpoints.named.push(("other".into(), Arc::new(cluster)));
            let gateway = start(api, compat);
            let reply = gateway.client().request("POST", "/store/echo", &[], b"abc");
            assert_eq!(reply.text(), "abc");
            let (asked, idle) = if compat { (&backend, &other) } else { (&other, &backend) };
            assert!(idle.received().is_empty());
            let got = asked.last();
            assert_eq!(
                (text(&got.trailers).as_str(), got.header("x-head")),
                (if compat { "" } else { "x-sum=5" }, Some("h"))
            );
            let flows = service.received().len();
            let expected = if compat { (200, "", 1) } else { (202, "x-sum=5 x-sum=5", 2) };
            assert_eq!((reply.status, text(&reply.trailers).as_str(), flows), expected, "{compat} {request}");
        }
    }
}

/// A response flow for trailers: Choreo Connect skips it when there are none, and when it waited for
/// them without the body, head and body were on their way before it asked.
#[test]
fn choreo_connect_skips_services() {
    let reply = json!({ "responseCode": 418, "trailersToAdd": { "x-made": "m" } });
    let with_head = json!({ "headersToAdd": { "x-head": "h" }, "trailersToAdd": { "x-made": "m" } });
    let (alone, whole): (&[_], &[_]) = (&[ResponseTrailers], &[ResponseTrailers, ResponseBody]);
    for (reply, parts, sent, compat, expected) in [
        (&reply, alone, &SENT[..1], true, (200, "x-sum=3 x-made=m", 1)),
        (&reply, whole, &SENT[..1], true, (418, "x-sum=3 x-made=m", 1)),
        (&with_head, alone, &SENT[..1], true, (200, "x-sum=3", 1)),
        (&with_head, whole, &SENT[..1], true, (200, "x-sum=3 x-made=m", 1)),
        (&reply, whole, &[], true, (200, "", 0)),
        (&reply, alone, &[], false, (418, "x-made=m", 1)),
        (&reply, whole, &[], false, (418, "x-made=m", 1)),
        (&with_head, alone, &[], false, (200, "x-made=m", 1)),
    ] {
        let (service, backend) = (saying(reply.clone()), echo());
        let gateway = start(intercepted(&backend, &service, None, Some(parts)), compat);
        let answer = post(&gateway, sent);
        let seen = (answer.status, text(&answer.trailers), service.received().len());
        assert_eq!(seen, (expected.0, expected.1.to_owned(), expected.2), "{reply} {parts:?} {compat}");
        let headed = answer.header("x-head").is_some();
        assert_eq!(headed, reply.get("headersToAdd").is_some() && (parts == whole || !compat), "{reply} {parts:?}");
    }
    // A service that fails so late cannot make an error of an answer that has begun.
    let (service, backend) = (Backend::start(|_| Answer::status(500)), echo());
    for (compat, status) in [(true, 200), (false, 500)] {
        let gateway = start(intercepted(&backend, &service, None, Some(alone)), compat);
        assert_eq!(post(&gateway, &SENT).status, status);
    }
}

/// A body that a service gives takes the place of the old one, not of what follows it; one it may not give stops all of
/// its reply in Choreo Connect.
#[test]
fn they_stay_when_the_body_is_replaced() {
    let reply = json!({ "body": "bmV3", "trailersToRemove": ["x-drop"] });
    for (included, compat, body, expected) in [
        (true, false, "new", "x-sum=3 x-wso2-own=o"),
        (true, true, "new", "x-sum=3 x-wso2-own=o"),
        (false, false, "abc", "x-sum=3 x-wso2-own=o"),
        (false, true, "abc", "x-sum=3 x-drop=d x-wso2-own=o"),
    ] {
        let (service, backend) = (saying(reply.clone()), echo());
        let parts = |part: &'static [InterceptorPart]| Some(if included { part } else { &[] });
        let gateway = start(intercepted(&backend, &service, parts(&[RequestBody]), None), compat);
        let answer = post(&gateway, &SENT);
        assert_eq!((answer.text().as_str(), text(&answer.trailers).as_str()), (body, expected), "{included} {compat}");
        assert_eq!(text(&backend.last().trailers), expected);
        let gateway = start(intercepted(&backend, &service, None, parts(&[ResponseBody])), compat);
        let answer = post(&gateway, &SENT);
        assert_eq!((answer.text().as_str(), text(&answer.trailers).as_str()), (body, expected), "{included} {compat}");
    }
}

/// No part of the head is made of them, and none of them is believed to be one.
#[test]
fn they_never_become_part_of_the_head() {
    let (service, backend) = (saying(json!({})), echo());
    let gateway = start(intercepted(&backend, &service, Some(&[RequestTrailers, RequestBody]), None), false);
    let sent = [("X-Sum", "3"), ("Authorization", "Bearer x"), ("Cookie", "a=b"), ("X-Forwarded-For", "9.9.9.9")];
    assert_eq!(post(&gateway, &sent).status, 200);
    let got = backend.last();
    assert_eq!(text(&got.trailers), "x-sum=3");
    assert!(["x-sum", "authorization", "cookie", "x-forwarded-for"].iter().all(|name| got.header(name).is_none()));
    for refused in ["Host", "Content-Length", "Transfer-Encoding"] {
        assert_eq!(post(&gateway, &[(refused, "1")]).status, 400, "{refused}");
    }
    assert_eq!(backend.received().len(), 1);
}
