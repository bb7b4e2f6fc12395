//! Requests that a flow passes on as they are: each case runs once without an exchange and once through the flow, and client
//! and backend must not see a difference.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use penstock_engine::endpoint::{
    Endpoint, EndpointKind, EndpointPolicy, EndpointState, Format, Leaf, Target, TimeoutDuration,
};
use penstock_engine::ports::{Environment, Level, LogSink, Record, Senders};
use penstock_engine::route::Proxy;
use penstock_engine::{
    Core, Current, Decision, Destination, Dispatcher, EndpointId, Exchange, Fault, FixedAddress, Flow, Mediator,
    Metrics, Place, Program, RequestHead, Sequence, SequenceId, Step,
};
use penstock_transports::http::{HttpSender, HttpTimeouts, ListenerConfig, PerCore, SenderConfig};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::common::{Act, backend, read_to_end, read_until, run, serve_on};

/// `<send/>`: the response goes to the client. Counts its runs.
struct Send(Arc<AtomicUsize>);

impl Mediator for Send {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Flow::Send(Destination::Implicit, None))
    }

    fn decide(&self, _head: &RequestHead<'_>) -> Decision<'_> {
        Decision::Send(&Destination::Implicit)
    }
}

/// A fault sequence: responds with the request's own body and the fault's code.
struct Respond;

impl Mediator for Respond {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let code = exchange.current_fault().and_then(Fault::number).unwrap_or_default();
        exchange.message.headers.set("X-Fault", code.to_string());
        Ok(Flow::Respond)
    }
}

struct Address(FixedAddress);

impl Leaf for Address {
    fn target(&self, _exchange: &mut Exchange) -> Result<Target, Fault> {
        Ok(Target {
            url: self.0.url.clone(),
            method: None,
            format: Format::Same,
            append_postfix: true,
            headers: Vec::new(),
            tls: None,
            addressing: None,
        })
    }

    fn fixed(&self) -> Option<&FixedAddress> {
        Some(&self.0)
    }
}

/// A log of a level; a request has an exchange when the level is `Debug`.
struct Log(Level);

impl LogSink for Log {
    fn write(&self, _record: &Record<'_>) {}

    fn enabled(&self, level: Level) -> bool {
        level >= self.0
    }
}

fn sequence(mediator: impl Mediator + 'static) -> Sequence {
    let step = Step { mediator: Box::new(mediator), kind: "test", at: Place::default() };
    Sequence { name: None, steps: vec![step], on_error: None }
}

/// `/services/Direct`, which is passed on to this address.
fn program(url: &str, runs: &Arc<AtomicUsize>, patience: Duration) -> Program {
    let mut program = Program::default();
    program.sequences.extend([sequence(Send(runs.clone())), sequence(Respond)]);
    let policy = EndpointPolicy { timeout: Some(TimeoutDuration::Fixed(patience)), ..EndpointPolicy::default() };
    program.endpoints.push(Arc::new(Endpoint {
        name: None,
        at: Place::default(),
        kind: EndpointKind::Leaf(Box::new(Address(FixedAddress::new(url.into())))),
        policy,
        state: EndpointState::default(),
    }));
    let in_program = |index| SequenceId { unit: 0, index };
    program.routes.add_proxy(Proxy {
        name: "Direct".into(),
        http: true,
        endpoint: Some(Destination::Endpoint(EndpointId { unit: 0, index: 0 })),
        out_sequence: Some(in_program(0)),
        fault_sequence: Some(in_program(1)),
        ..Proxy::default()
    });
    program
}

/// What client and backend saw.
#[derive(Debug, PartialEq)]
struct Seen {
    client: String,
    backend: Vec<String>,
    phase: &'static str,
    /// Requests, and those that failed.
    counted: (u64, u64),
}

/// Runs a case. Also returns how often the flow passed a response back.
fn play(level: Level, path: &str, client: &[Act], scripts: Vec<Vec<Act>>) -> (Seen, usize) {
    run(async {
        // What is waited for in vain is not waited for long.
        let holds = scripts.iter().flatten().any(|act| matches!(act, Act::Hold));
        let patience = Duration::from_millis(if holds { 200 } else { 60_000 });
        let (address, heard) = backend(scripts).await;
        let runs = Arc::new(AtomicUsize::new(0));
        let program = Arc::new(program(&format!("http://{address}{path}"), &runs, patience));
        let core = PerCore::start();
        let sender = Rc::new(HttpSender::new(&core, SenderConfig::default()));
        let metrics = Arc::new(Metrics::default());
        let dispatcher = Dispatcher::new(Core::new(
            Rc::new(Senders::new(sender)),
            Arc::new(Log(level)),
            Arc::new(Environment::default()),
            metrics.clone(),
            Current::new(program.clone()),
        ));
        let timeouts = HttpTimeouts { body: patience, ..HttpTimeouts::default() };
        let server = serve_on(core, dispatcher, ListenerConfig { timeouts, ..ListenerConfig::default() });
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        let mut said = String::new();
        for act in client {
            match act {
                // The server may close before everything is written.
                Act::Say(text) => drop(socket.write_all(text.as_bytes()).await),
                Act::Until(end) => said.push_str(&read_until(&mut socket, end).await),
                Act::Hold | Act::Reset => unreachable!("a client speaks and listens"),
            }
        }
        if !matches!(client.last(), Some(Act::Until(_))) {
            let _ = socket.shutdown().await;
            said.push_str(&read_to_end(&mut socket).await);
        }
        let own = |text: &str| text.replace(&address.to_string(), "BACKEND").replace(&server.address.to_string(), "US");
        let mut sum = std::collections::HashMap::new();
        metrics.add_to(&mut sum);
        let counted =
            sum.values().fold((0, 0), |(requests, errors), one| (requests + one.requests, errors + one.errors));
        let backend = heard.borrow().iter().map(|text| own(text)).collect();
        let phase = program.endpoints[0].state.phase();
        (Seen { client: own(&said), backend, phase, counted }, runs.load(Ordering::Relaxed))
    })
}

/// Compares both ways; `passed` is how many of the responses need no flow.
fn check(path: &str, client: &[Act], scripts: &[Vec<Act>], passed: usize) -> Seen {
    let (in_flow, all) = play(Level::Debug, path, client, scripts.to_vec());
    let (seen, by_flow) = play(Level::Info, path, client, scripts.to_vec());
    assert_eq!(seen, in_flow);
    assert_eq!(all - by_flow, passed, "{seen:?}");
    seen
}

/// A request with a short body.
const POST: &str = "POST /services/Direct HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn post_to(reply: &'static str) -> Seen {
    check("", &[Act::Say(POST)], &[vec![Act::Until("abc"), Act::Say(reply)]], 0)
}

#[test]
fn heads_and_bodies_cross() {
    use Act::{Say, Until};
    let seen = check(
        "/base",
        &[
            Say(
                "POST /services/Direct HTTP/1.1\r\nHost: h\r\nUser-Agent: a\r\nX-One: 1\r\nDate: d\r\nX-Two:2\r\nX-Three:  3 \t\r\nTE: x\r\nConnection: keep-alive\r\nKeep-Alive: 5\r\nx-two: 22\r\nExpires: 0\r\nContent-Type: text/xml\r\nContent-Length: 4\r\n\r\n<a/>",
            ),
            Until("ok"),
            Say(POST),
        ],
        &[vec![
            Until("<a/>"),
            Say(
                "HTTP/1.1 201 Made up\r\nServer: s\r\nSet-Cookie: a\r\nset-cookie:b\r\nConnection: keep-alive\r\nX-Odd: \r\nContent-Length: 2\r\n\r\nok",
            ),
            Until("abc"),
            Say(
                "HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nhi\r\n3;a=b\r\nyou\r\n0\r\nX-Sum: 5\r\n\r\n",
            ),
        ]],
        2,
    );
    assert!(
        seen.backend[0].starts_with("POST /base HTTP/1.1\r\nHost: BACKEND\r\nX-One: 1\r\nX-Two: 2\r\n"),
        "{seen:?}"
    );
    assert!(seen.client.contains("HTTP/1.1 201 Made up\r\nSet-Cookie: a\r\n"), "{seen:?}");
    assert!(seen.client.ends_with("0\r\nX-Sum: 5\r\n\r\n"), "{seen:?}");
}

#[test]
fn chunked_and_pipelined_requests_cross() {
    use Act::{Say, Until};
    let chunked = "POST /services/Direct HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: X-A\r\n\r\n3\r\nabc\r\n0\r\nX-A: b\r\n\r\n";
    let end = "X-A: b\r\n\r\n";
    let scripts = [vec![Until(end), Say(OK), Until("abc"), Say(OK), Until("\r\n\r\n"), Say(OK), Until("abc"), Say(OK)]];
    let get = "GET /services/Direct HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\n\r\n";
    let put = "PUT /services/Direct HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
    check("", &[Say(chunked), Say(POST), Say(get), Say(put)], &scripts, 4);
}

#[test]
fn long_bodies_cross_in_pieces() {
    use Act::{Say, Until};
    let long: &'static str = format!("{}!", "x".repeat(100_000)).leak();
    let request: &'static str =
        format!("POST /services/Direct HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{long}", long.len()).leak();
    let reply: &'static str = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{long}", long.len()).leak();
    check("", &[Say(request)], &[vec![Until("!"), Say(reply)]], 1);
    // The backend answers first, and takes the rest later.
    check(
        "",
        &[Say(&request[..50_000]), Until("ok"), Say(&request[50_000..])],
        &[vec![Until("\r\n\r\n"), Say(OK), Until("!")]],
        1,
    );
}

#[test]
fn paths_are_joined() {
    use Act::{Say, Until};
    for (path, target, expected, passed) in [
        ("", "", "/", 1),
        ("/b", "", "/b", 1),
        ("/b/", "/c?d=e", "/b/c?d=e", 0),
        ("/b", "/c?d=e", "/b/c?d=e", 1),
        ("", "/c", "/c", 1),
        ("", "?d=e", "/?d=e", 1),
        ("/b?a=1", "/c?d=e", "/b/c?a=1&d=e", 0),
        ("/b?a=1", "", "/b?a=1", 1),
        ("/b/", ".DirectHttpSoap11Endpoint", "/b/.DirectHttpSoap11Endpoint", 1),
    ] {
        let request: &'static str =
            format!("POST /services/Direct{target} HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc").leak();
        let seen = check(path, &[Say(request)], &[vec![Until("abc"), Say(OK)]], passed);
        assert_eq!(seen.backend[0].split(' ').nth(1), Some(expected), "{path} {target}");
    }
    // Whether this is a call of SOAP depends on its body.
    let soap = "POST /services/Direct/c HTTP/1.1\r\nHost: h\r\nContent-Type: text/xml\r\nContent-Length: 3\r\n\r\nabc";
    check("", &[Say(soap)], &[vec![Until("abc"), Say(OK)]], 0);
}

#[test]
fn unusual_requests_run_in_the_flow() {
    use Act::{Say, Until};
    for (request, end) in [
        ("GET /services/Direct HTTP/1.0\r\n\r\n", "\r\n\r\n"),
        ("GET http://other/services/Direct HTTP/1.1\r\nHost: h\r\n\r\n", "\r\n\r\n"),
        ("GET /services/Direct?a=b HTTP/1.1\r\nHost: h\r\n\r\n", "\r\n\r\n"),
        ("GET /services/Direct HTTP/1.1\r\nHost: h\r\nConnection: x-a\r\nX-A: b\r\n\r\n", "\r\n\r\n"),
        ("GET /services/Direct HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "\r\n\r\n"),
        ("HEAD /services/Direct HTTP/1.1\r\nHost: h\r\n\r\n", "\r\n\r\n"),
        (
            "POST /services/Direct HTTP/1.1\r\nHost: h\r\nContent-Type: application/grpc\r\nContent-Length: 1\r\n\r\na",
            "a",
        ),
        ("POST /services/Direct HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na", "a"),
    ] {
        check("", &[Say(request)], &[vec![Until(end), Say(OK)]], 0);
    }
}

#[test]
fn unusual_responses_run_in_the_flow() {
    for reply in [
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nETag: a\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nConnection: x-a\r\nX-A: b\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\n\r\nuntil the end",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nLocation: http://other/place\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 302 Found\r\nLocation: http://other/place\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 Of\tcourse\r\nContent-Length: 2\r\n\r\nok",
    ] {
        post_to(reply);
    }
    for reply in [
        "HTTP/1.1 500 Oh no\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ] {
        check("", &[Act::Say(POST)], &[vec![Act::Until("abc"), Act::Say(reply)]], 1);
    }
}

/// The fault sequence gets the request with its body.
#[test]
fn faults_are_the_flows() {
    use Act::{Hold, Reset, Say, Until};
    for (script, code) in [
        (vec![Until("abc"), Say("nonsense\r\n\r\n")], "101506"),
        (vec![Until("abc"), Say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n")], ""),
        (vec![Until("abc"), Say("HTTP/1.1 101 Switching Protocols\r\n\r\n")], ""),
        (vec![Until("abc"), Say("HTTP/1.1 200 O")], ""),
        (vec![Until("abc")], ""),
        (vec![Until("abc"), Reset], ""),
        (vec![Until("abc"), Hold], "101504"),
    ] {
        let seen = check("", &[Say(POST)], &[script], 0);
        assert!(seen.client.contains(&format!("X-Fault: {code}")), "{seen:?}");
        assert!(seen.client.ends_with("\r\n\r\nabc"), "{seen:?}");
        assert_eq!(seen.counted, (1, 1));
    }
    // No backend listens: the connection is closed at once, the second request meets a suspended endpoint.
    let seen = check("", &[Say(POST), Until("abc"), Say(POST)], &[], 0);
    assert_eq!(seen.counted, (2, 2), "{seen:?}");
}

#[test]
fn responses_that_break_off_break_off() {
    use Act::{Reset, Say, Until};
    for reply in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nok",
    ] {
        for end in [vec![], vec![Reset]] {
            let script = [vec![Until("abc"), Say(reply)], end].concat();
            let seen = check("", &[Say(POST)], &[script], 1);
            assert!(!seen.client.ends_with("0\r\n\r\n"), "{seen:?}");
        }
    }
}

#[test]
fn clients_that_break_off_are_blamed() {
    use Act::{Hold, Say, Until};
    let waits = || [vec![Until("never"), Hold]];
    let short = "POST /services/Direct HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nabc";
    check("", &[Say(short)], &waits(), 0);
    let seen = check("", &[Say(short), Until("\r\n\r\n")], &waits(), 0);
    assert_eq!(seen.counted, (1, 1), "{seen:?}");
    let broken = "POST /services/Direct HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n";
    check("", &[Say(broken), Until("\r\n\r\n")], &waits(), 0);
}

#[test]
fn what_may_be_repeated_is_sent_again() {
    use Act::{Say, Until};
    let put = "PUT /services/Direct HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
    // The second request of the first connection gets no response.
    let first = || vec![Until("abc"), Say(OK), Until("abc")];
    let seen = check("", &[Say(put), Until("ok"), Say(put)], &[first(), vec![Until("abc"), Say(OK)]], 2);
    assert!(seen.client.matches("200 OK").count() == 2, "{seen:?}");
    let seen = check("", &[Say(POST), Until("ok"), Say(POST)], &[first()], 1);
    assert_eq!(seen.counted, (2, 1), "{seen:?}");
}
