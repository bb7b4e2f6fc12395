//! JMeter plans against a server that records what arrives.
#![expect(clippy::unwrap_used, reason = "a panic in a test is the report")]

use penstock_bench::jmx::{self, RunOptions, ScriptOutcome};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request as it arrived: request line, header fields in lower case, body.
#[derive(Debug, Clone)]
struct Arrived {
    line: String,
    fields: Vec<String>,
    body: String,
}

impl Arrived {
    fn has(&self, field: &str) -> bool {
        self.fields.iter().any(|other| other == field)
    }
}

type Respond = fn(&Arrived) -> String;

/// Starts a server and returns its port and what arrives.
fn serve(respond: Respond) -> (u16, Arc<Mutex<Vec<Arrived>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let arrived = Arc::new(Mutex::new(Vec::new()));
    let all = arrived.clone();
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let all = all.clone();
            std::thread::spawn(move || connection(socket, respond, &all));
        }
    });
    (port, arrived)
}

fn connection(socket: TcpStream, respond: Respond, all: &Mutex<Vec<Arrived>>) -> Option<()> {
    let mut reader = BufReader::new(socket);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let fields: Vec<String> = lines[1..].iter().map(|line| line.to_ascii_lowercase()).collect();
        let length = fields.iter().find_map(|field| field.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        reader.read_exact(&mut body).ok()?;
        let request = Arrived { line: lines[0].clone(), fields, body: String::from_utf8(body).unwrap() };
        let response = respond(&request);
        all.lock().unwrap().push(request);
        reader.get_mut().write_all(response.as_bytes()).ok()?;
    }
}

fn ok(fields: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
}

fn property(kind: &str, name: &str, value: &str) -> String {
    format!("<{kind} name=\"{name}\">{value}</{kind}>")
}

fn group(kind: &str, users: usize, loops: i32, on_error: &str, elements: &str) -> String {
    let text = |name: &str, value: &str| property("stringProp", name, value);
    format!(
        "<{kind} testname=\"{kind}\"><elementProp name=\"ThreadGroup.main_controller\" elementType=\"LoopController\">{}</elementProp>{}{}</{kind}><hashTree>{elements}</hashTree>",
        text("LoopController.loops", &loops.to_string()),
        text("ThreadGroup.num_threads", &users.to_string()),
        text("ThreadGroup.on_sample_error", on_error),
    )
}

/// A request whose arguments are `elementProp`s.
fn request(name: &str, method: &str, path: &str, arguments: &str, below: &str) -> String {
    let text = |name: &str, value: &str| property("stringProp", name, value);
    format!(
        "<HTTPSamplerProxy testname=\"{name}\">{}{}{}{}{}{}<elementProp name=\"HTTPsampler.Arguments\" elementType=\"Arguments\"><collectionProp name=\"Arguments.arguments\">{arguments}</collectionProp></elementProp></HTTPSamplerProxy><hashTree>{below}</hashTree>",
        text("HTTPSampler.domain", "127.0.0.1"),
        text("HTTPSampler.port", "${__P(port)}"),
        text("HTTPSampler.method", method),
        text("HTTPSampler.path", path),
        property("boolProp", "HTTPSampler.use_keepalive", "true"),
        property("boolProp", "HTTPSampler.follow_redirects", "true"),
    )
}

fn argument(name: &str, value: &str) -> String {
    let text = |name: &str, value: &str| property("stringProp", name, value);
    format!(
        "<elementProp name=\"\" elementType=\"HTTPArgument\">{}{}</elementProp>",
        text("Argument.name", name),
        text("Argument.value", value)
    )
}

fn run(port: u16, groups: &str) -> ScriptOutcome {
    let plan = format!(
        "<jmeterTestPlan><hashTree><TestPlan testname=\"Test\"/><hashTree>{groups}</hashTree></hashTree></jmeterTestPlan>"
    );
    let mut properties = jmx::Properties::default();
    assert!(properties.add(&format!("port={port}")));
    let properties = Arc::new(properties);
    let files = |_: &Path| Ok(b"ann,one\nbob,two\n".to_vec());
    let plan = jmx::read("plan.jmx", plan.as_bytes(), Path::new("."), properties.clone(), &files).unwrap();
    assert_eq!(plan.notes, [""; 0]);
    let options = RunOptions {
        properties,
        threads: 2,
        warm_up: Duration::ZERO,
        duration: Some(Duration::from_secs(60)),
        jtl: None,
        stop: Arc::default(),
    };
    jmx::run_plan(&Arc::new(plan.script), &options, &mut |_| {}).unwrap()
}

/// Logs users in, and answers orders that carry the token and the cookie of the same user.
fn shop(request: &Arrived) -> String {
    if request.line.starts_with("POST /login ") {
        let user = request.body.strip_prefix("user=").and_then(|rest| rest.split('&').next()).unwrap_or_default();
        return ok(
            &format!("Set-Cookie: session={user}; Path=/\r\n"),
            &format!("{{\"token\":{{\"id\":\"t-{user}\"}}}}"),
        );
    }
    let user = request.line.strip_prefix("POST /orders/").and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    let known =
        request.has(&format!("authorization: bearer t-{user}")) && request.has(&format!("cookie: session={user}"));
    if known { ok("", &format!("<order>{}</order>", request.body)) } else { ok("", "refused") }
}

#[test]
fn users_log_in_and_order_with_their_own_tokens_and_cookies() {
    let (port, arrived) = serve(shop);
    let text = |name: &str, value: &str| property("stringProp", name, value);
    let csv = format!(
        "<CSVDataSet testname=\"Users\">{}{}{}</CSVDataSet><hashTree/>",
        text("filename", "users.csv"),
        text("variableNames", "user,password"),
        text("shareMode", "shareMode.thread")
    );
    let extractor = format!(
        "<JSONPostProcessor testname=\"Token\">{}{}{}</JSONPostProcessor><hashTree/>",
        text("JSONPostProcessor.referenceNames", "token"),
        text("JSONPostProcessor.jsonPathExprs", "$.token.id"),
        text("JSONPostProcessor.match_numbers", "1")
    );
    let login = request(
        "Login",
        "POST",
        "/login",
        &(argument("user", "${user}") + &argument("password", "${password}")),
        &extractor,
    );
    let header = format!(
        "<HeaderManager testname=\"H\"><collectionProp name=\"HeaderManager.headers\"><elementProp name=\"\" elementType=\"Header\">{}{}</elementProp></collectionProp></HeaderManager><hashTree/>",
        text("Header.name", "Authorization"),
        text("Header.value", "Bearer ${token}")
    );
    let assertion = format!(
        "<ResponseAssertion testname=\"Ordered\"><collectionProp name=\"Asserion.test_strings\">{}</collectionProp>{}{}</ResponseAssertion><hashTree/>",
        text("1", "&lt;order&gt;\\d+ ${user}&lt;/order&gt;"),
        text("Assertion.test_field", "Assertion.response_data"),
        property("intProp", "Assertion.test_type", "2")
    );
    let timer =
        format!("<ConstantTimer testname=\"Wait\">{}</ConstantTimer><hashTree/>", text("ConstantTimer.delay", "1"));
    let counter = format!(
        "<CounterConfig testname=\"Number\">{}{}{}{}</CounterConfig><hashTree/>",
        text("CounterConfig.start", "1"),
        text("CounterConfig.incr", "1"),
        text("CounterConfig.name", "number"),
        property("boolProp", "CounterConfig.per_user", "true")
    );
    let order = request(
        "Order",
        "POST",
        "/orders/${user}",
        &argument("", "${number} ${user}"),
        &(header + &assertion + &timer),
    );
    let twice = format!(
        "<LoopController testname=\"Twice\">{}</LoopController><hashTree>{counter}{order}</hashTree>",
        text("LoopController.loops", "2")
    );
    let when = format!(
        "<IfController testname=\"When\">{}{}</IfController><hashTree>{twice}</hashTree>",
        text("IfController.condition", "\"${token}\" != \"\""),
        property("boolProp", "IfController.useExpression", "false")
    );
    let elements = format!(
        "{csv}<CookieManager testname=\"C\"/><hashTree/><TransactionController testname=\"All\"/><hashTree>{login}{when}</hashTree>"
    );
    let outcome = run(port, &group("ThreadGroup", 2, 3, "continue", &elements));

    let tally = &outcome.load.tally;
    assert_eq!((tally.samples(), tally.errors), (18, 0), "{:?} {:?}", tally.reasons, tally.first_failure);
    let counts: Vec<(&str, u64)> =
        outcome.requests.iter().map(|(name, count)| (name.as_str(), count.samples)).collect();
    assert_eq!(counts, [("Login", 6), ("Order", 12)]);
    assert_eq!(outcome.transactions.iter().map(|(_, count)| count.samples).sum::<u64>(), 6);
    let arrived = arrived.lock().unwrap();
    // Each user has its own records: three iterations go through ann, bob, ann.
    for (body, count) in
        [("user=ann&password=one", 4), ("user=bob&password=two", 2), ("1 ann", 2), ("4 bob", 2), ("6 ann", 2)]
    {
        assert_eq!(arrived.iter().filter(|request| request.body == body).count(), count, "{body}");
    }
}

fn moved(request: &Arrived) -> String {
    match request.line.as_str() {
        line if line.starts_with("POST /old") => {
            "HTTP/1.1 302 Found\r\nLocation: new?x=1\r\nContent-Length: 0\r\n\r\n".to_owned()
        }
        _ => ok("", "here"),
    }
}

#[test]
fn redirects_are_followed_and_are_one_sample() {
    let (port, arrived) = serve(moved);
    let outcome = run(
        port,
        &group("ThreadGroup", 1, 1, "continue", &request("Move", "POST", "/old/path", &argument("", "x"), "")),
    );
    assert_eq!((outcome.load.tally.samples(), outcome.load.tally.errors), (1, 0), "{:?}", outcome.load.tally.reasons);
    let lines: Vec<String> = arrived.lock().unwrap().iter().map(|request| request.line.clone()).collect();
    assert_eq!(lines, ["POST /old/path HTTP/1.1", "GET /old/new?x=1 HTTP/1.1"]);
}

fn broken(request: &Arrived) -> String {
    if request.line.contains("/first") {
        ok("", "")
    } else {
        "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n".to_owned()
    }
}

#[test]
fn an_error_ends_the_user_if_the_group_is_configured_so() {
    for (on_error, expected) in
        [("continue", (6, 2)), ("startnextloop", (4, 2)), ("stopthread", (2, 1)), ("stoptest", (2, 1))]
    {
        let (port, arrived) = serve(broken);
        let elements: String = ["/first", "/second", "/first"].map(|path| request("R", "GET", path, "", "")).concat();
        let outcome = run(port, &group("ThreadGroup", 1, 2, on_error, &elements));
        assert_eq!((outcome.load.tally.samples(), outcome.load.tally.errors), expected, "{on_error}");
        assert_eq!(arrived.lock().unwrap().len() as u64, expected.0);
    }
}

#[test]
fn several_groups_run_between_set_up_and_tear_down() {
    let (port, arrived) = serve(|_| ok("", ""));
    let of = |kind: &str, users, path: &str| group(kind, users, 2, "continue", &request(path, "GET", path, "", ""));
    let groups = of("PostThreadGroup", 1, "/last")
        + &of("ThreadGroup", 2, "/a")
        + &of("SetupThreadGroup", 1, "/first")
        + &of("ThreadGroup", 1, "/b");
    let outcome = run(port, &groups);
    assert_eq!((outcome.load.tally.samples(), outcome.around.samples()), (6, 4));
    let lines: Vec<String> = arrived.lock().unwrap().iter().map(|request| request.line.clone()).collect();
    let place = |path: &str| lines.iter().position(|line| line.contains(path)).unwrap();
    assert!(place("/first") < place("/a") && place("/first") < place("/b"));
    assert!(lines[8].contains("/last") && lines[9].contains("/last"), "{lines:?}");
}
