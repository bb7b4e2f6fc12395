//! The kit from end to end over real sockets: every protocol against the embedded backend, a whole plan, a JTL file.
#![expect(clippy::unwrap_used, reason = "a panic in a test is the report")]

use bytes::Bytes;
use penstock_bench::echo::{EchoServer, EchoSpec};
use penstock_bench::figures::{Figures, Metric};
use penstock_bench::http::request::Request;
use penstock_bench::http::url::Url;
use penstock_bench::jtl::{self, JtlSink};
use penstock_bench::load::expect::Expect;
use penstock_bench::load::{self, LoadOutcome, LoadSpec, Protocol};
use penstock_bench::payload::Shape;
use penstock_bench::plan::Plan;
use penstock_bench::results::ResultsDirectory;
use penstock_bench::runner::{Report, Session};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

fn echo(tls: bool, delay_ms: u64) -> EchoServer {
    let spec = EchoSpec { port: 0, tls, delay: Duration::from_millis(delay_ms), threads: 1, ..EchoSpec::default() };
    EchoServer::start(&spec).unwrap()
}

fn spec(url: &str, body: Vec<u8>) -> LoadSpec {
    LoadSpec {
        request: Request {
            method: "POST".into(),
            url: Url::parse(url).unwrap(),
            headers: vec![("Content-Type".into(), "text/xml".into())],
            body: Bytes::from(body),
            keep_alive: true,
        },
        expect: Expect { status: Some(200), same_size: true, ..Expect::default() },
        tokens: Arc::default(),
        users: 8,
        ramp_up: Duration::ZERO,
        duration: Duration::from_millis(400),
        warm_up: Duration::from_millis(100),
        requests_per_user_max: None,
        rate: None,
        protocol: Protocol::Http1,
        threads: 2,
        connect_timeout: Duration::from_secs(5),
        response_timeout: Duration::from_secs(5),
        jtl: None,
        stop: Arc::default(),
    }
}

/// Runs a load. On a busy machine nothing may be complete in so short a time; then a longer one decides.
fn run(spec: &LoadSpec) -> LoadOutcome {
    let mut spec = spec.clone();
    loop {
        let outcome = load::run(&spec, &mut |_| {}).unwrap();
        if outcome.tally.samples() > 0 || spec.duration > Duration::from_secs(20) {
            return outcome;
        }
        spec.duration *= 3;
    }
}

/// A directory that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("penstock-bench-test-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_protocol_carries_every_size() {
    for tls in [false, true] {
        let server = echo(tls, 0);
        let url = format!("{}://localhost:{}/", if tls { "https" } else { "http" }, server.port());
        for protocol in [Protocol::Http1, Protocol::Http2 { users_per_connection: 4 }] {
            for bytes in [0, 500, 100_000, 1_000_000] {
                let mut spec = spec(&url, Shape::Text.generate(bytes).unwrap());
                spec.protocol = protocol;
                spec.users = 4;
                let tally = run(&spec).tally;
                let case = format!("tls {tls}, {protocol:?}, {bytes} bytes: {:?}", tally.first_failure);
                assert_eq!(tally.errors, 0, "{case}");
                assert!(tally.samples() > 0, "{case}");
            }
        }
    }
}

#[test]
fn the_delay_of_the_backend_is_the_response_time() {
    let server = echo(false, 30);
    let outcome = run(&spec(&format!("http://localhost:{}/", server.port()), vec![b'x'; 100]));
    let figures = Figures::of_load(&outcome);
    let (least, users) = (figures.get(Metric::Minimum).unwrap(), figures.get(Metric::UsersInSystem).unwrap());
    assert!(least >= 29.5, "{least} ms");
    assert!((users / 8.0 - 1.0).abs() < 0.4, "Little's law gives {users} of 8 users");
}

#[test]
fn connections_that_close_are_opened_again() {
    let server = echo(false, 0);
    let mut spec = spec(&format!("http://localhost:{}/", server.port()), vec![b'x'; 100]);
    spec.request.keep_alive = false;
    let tally = run(&spec).tally;
    assert!(tally.samples() > 0 && tally.errors == 0);
    assert!(tally.connections >= tally.samples(), "{} of {}", tally.connections, tally.samples());
}

#[test]
fn an_overloaded_server_shows_in_an_open_loop() {
    let server = echo(false, 50);
    let mut spec = spec(&format!("http://localhost:{}/", server.port()), Vec::new());
    // One user can do 20 requests a second; 100 are due. What comes late counts from when it was due.
    (spec.users, spec.threads, spec.rate) = (1, 1, Some(100.0));
    spec.duration = Duration::from_millis(600);
    let outcome = run(&spec);
    let figures = Figures::of_load(&outcome);
    assert!(figures.get(Metric::Maximum).unwrap() > 150.0, "{:?}", figures.get(Metric::Maximum));
    assert!(outcome.tally.unsent > 10, "{}", outcome.tally.unsent);
}

#[test]
fn the_first_failure_shows_what_went_over_the_wire() {
    let server = echo(false, 0);
    let mut spec = spec(&format!("http://localhost:{}/orders", server.port()), b"<order/>".to_vec());
    spec.expect.status = Some(202);
    let tally = run(&spec).tally;
    assert_eq!(tally.errors, tally.samples());
    let failure = tally.first_failure.unwrap();
    assert_eq!(failure.reason, "status 200 instead of 202");
    assert!(failure.request.starts_with("POST /orders HTTP/1.1\n") && failure.request.ends_with("<order/>"));
    assert!(failure.response.starts_with("HTTP/1.1 200 OK\n") && failure.response.ends_with("<order/>"));
}

#[test]
fn a_load_can_end_after_one_request() {
    let server = echo(false, 20);
    let mut spec = spec(&format!("http://localhost:{}/", server.port()), Vec::new());
    (spec.users, spec.threads, spec.requests_per_user_max) = (1, 1, Some(1));
    (spec.duration, spec.warm_up) = (Duration::from_secs(30), Duration::ZERO);
    assert_eq!(run(&spec).tally.samples(), 1);
}

#[test]
fn nothing_there_is_an_error_not_a_result() {
    let port = echo(false, 0).port();
    let outcome = load::run(&spec(&format!("http://localhost:{port}/"), Vec::new()), &mut |_| {});
    assert!(outcome.unwrap_err().to_string().starts_with(&format!("cannot connect to `localhost:{port}`")));
}

#[test]
fn a_jtl_file_holds_every_sample() {
    let server = echo(false, 5);
    let scratch = Scratch::new("jtl");
    let path = scratch.0.join("run.jtl");
    let url = format!("http://localhost:{}/", server.port());
    let mut spec = spec(&url, vec![b'x'; 100]);
    spec.warm_up = Duration::ZERO;
    spec.jtl = Some(Arc::new(JtlSink::create(&path, "HTTP Request", "Users", &url).unwrap()));
    let tally = run(&spec).tally;
    let summaries = jtl::read(&path, Duration::ZERO).unwrap();
    let summary = &summaries["HTTP Request"];
    // The file also holds what ended after the measured time.
    assert!(summary.tally.samples() >= tally.samples() && summary.tally.errors == 0);
    let (seen, written) = (tally.mean_ns() / 1e6, summary.tally.mean_ns() / 1e6);
    assert!((seen - written).abs() < 1.0, "{seen} ms in the load, {written} ms in the file");
}

const PLAN: &str = r#"
name = "test"
title = "A test"
duration = "150ms"
warm_up = "20ms"
rounds = 2
[[target]]
name = "first"
url = "http://localhost:BACKEND"
[[target]]
name = "second"
url = "http://localhost:BACKEND"
[[target]]
name = "missing"
start = ["no-such-program-anywhere"]
port = 1
optional = true
[[scenario]]
name = "Echo"
path = "/"
payload = "soap"
expect = { same_size = true }
[[scenario]]
name = "Broken"
path = "/"
payload = "json"
expect = { status = 404 }
[matrix]
users = [2, 4]
message_bytes = [500, 1000]
"#;

#[test]
fn a_plan_is_measured_reported_and_resumed() {
    let backend = echo(false, 0);
    let scratch = Scratch::new("plan");
    let plan = Plan::parse("test.toml", &PLAN.replace("BACKEND", &backend.port().to_string())).unwrap();
    let directory = ResultsDirectory::create(&scratch.0).unwrap();
    let session = |done| Session {
        plan: &plan,
        plan_directory: ".".into(),
        tokens: Arc::default(),
        threads: 1,
        directory: &directory,
        done,
        penstock: "penstock".into(),
        stop: Arc::default(),
    };
    let mut report = Report::default();
    session(Vec::new()).run(&mut report).unwrap();
    let results = directory.load().unwrap();
    // Two gateways, two numbers of users, two sizes, two rounds; the broken scenario is found out and left out.
    assert_eq!(results.runs.len(), 16);
    assert_eq!(results.rows().len(), 8);
    let turns: Vec<&str> = results.runs.iter().take(4).map(|run| run.target.as_str()).collect();
    assert_eq!(turns, ["first", "second", "second", "first"]);
    assert_eq!(report.failures.len(), 2);
    assert!(report.left_out.iter().any(|why| why == "missing: `no-such-program-anywhere` is not installed"));
    penstock_bench::report::write(&directory, &results, &report.failures).unwrap();
    let page = std::fs::read_to_string(directory.file("report.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("first beside the other gateways"));

    let mut kept = results.runs.clone();
    kept.truncate(13);
    std::fs::remove_file(directory.file("runs.csv")).unwrap();
    session(kept).run(&mut Report::default()).unwrap();
    assert_eq!(directory.load().unwrap().runs.len(), 3, "only what was missing is measured");
}

#[test]
fn an_echo_server_in_the_place_of_the_gateway_proves_nothing() {
    let stranger = echo(false, 0);
    let scratch = Scratch::new("stranger");
    for name in penstock_bench::plan::builtin::names() {
        let mut plan = penstock_bench::plan::builtin::plan(name).unwrap();
        plan.make_quick();
        plan.backend.as_mut().unwrap().port = 0;
        let url = format!("http://localhost:{}", stranger.port());
        plan.targets = vec![penstock_bench::plan::Target { name: "stranger".into(), url, ..Default::default() }];
        let directory = ResultsDirectory::create(&scratch.0.join(name)).unwrap();
        let session = Session {
            plan: &plan,
            plan_directory: ".".into(),
            tokens: ["token".to_owned()].into(),
            threads: 1,
            directory: &directory,
            done: Vec::new(),
            penstock: "penstock".into(),
            stop: Arc::default(),
        };
        let mut report = Report::default();
        session.run(&mut report).unwrap();
        assert_eq!(report.left_out.len(), plan.scenarios.len(), "{name}: {:?}", report.left_out);
        assert!(directory.load().unwrap().runs.is_empty());
    }
}

#[test]
fn the_backend_tells_a_transformed_request_from_an_untouched_one() {
    use penstock_bench::echo::arrivals::{ArrivalCounts, ArrivalRule};
    let server = echo(false, 0);
    let url = format!("http://localhost:{}/service/EchoService", server.port());
    for (path, text, mismatch) in [
        ("/service/EchoService", "ticker", None),
        ("/service/EchoService", "symbol", Some("the backend got a body without `symbol`")),
        ("/other", "ticker", Some("the backend got the path `/service/EchoService` instead of `/other`")),
    ] {
        server.arrivals().expect(vec![ArrivalRule {
            path: Some(path.into()),
            text: vec![text.into()],
            ..ArrivalRule::default()
        }]);
        let mut spec = spec(&url, b"<ticker>IBM</ticker>".to_vec());
        (spec.users, spec.threads, spec.requests_per_user_max) = (1, 1, Some(1));
        spec.warm_up = Duration::ZERO;
        assert_eq!(run(&spec).tally.errors, 0);
        assert_eq!(server.arrivals().unproved().as_deref(), mismatch);
        let mismatches = u64::from(mismatch.is_some());
        let counts = ArrivalCounts { requests: 1, mismatches, matched: vec![1 - mismatches], waited_ns: 0 };
        assert_eq!(server.arrivals().counts(), counts);
    }
}
