//! Runs the cases of a suite.

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use penstock_engine::database::Databases;
use penstock_engine::ports::{Environment, Level, LogSink, Outbound, Record, Request, Service};
use penstock_engine::route::Entry;
use penstock_engine::{Core, Current, Dispatcher, Exchange, Metrics, run_alone};
use penstock_message::{Body, Conversion, Form, Headers, Message, Method, RequestLine, Scope, Shape};

use super::compare;
use super::mock::Mock;
use super::outbound::{SuiteOutbound, client};
use super::parse::{Assertion, Case};

/// The port that requests of a suite come in by.
const PORT: u16 = 8290;
const SECURE_PORT: u16 = 8253;

/// What outlives an answer (branches of `clone`, one-way sends) gets this long to come to its end.
const AFTERWARDS_MAX: Duration = Duration::from_secs(2);

/// What a case runs against.
#[derive(Debug, Clone)]
pub enum Tested {
    /// A sequence of that name.
    Sequence(String),
    /// A proxy service of that name.
    Proxy(String),
    /// An API with that context, version included.
    Api(String),
}

/// What became of a case.
#[derive(Debug)]
pub struct CaseReport {
    /// Its name.
    pub name: String,
    /// Where it stands, `line:column`.
    pub line: u32,
    /// What did not hold.
    pub failures: Vec<Failed>,
    /// What was logged meanwhile.
    pub log: Vec<String>,
    /// How long it took.
    pub took: Duration,
}

/// An assertion that does not hold.
#[derive(Debug)]
pub struct Failed {
    /// What the suite says about it, or what went wrong before it could be looked at.
    pub message: String,
    /// The assertion, when it is one.
    pub assertion: Option<Difference>,
}

/// What an assertion wanted and what it got.
#[derive(Debug)]
pub struct Difference {
    /// `$body`, …
    pub of: String,
    /// The text it should be; any will do when absent.
    pub expected: Option<String>,
    /// The text it is.
    pub actual: Option<String>,
    /// Its line in the suite.
    pub line: u32,
}

/// Everything the cases of one suite share.
pub struct Bench {
    /// The program.
    pub current: Arc<Current>,
    /// What is tested.
    pub tested: Tested,
    /// Mock services.
    pub mocks: Rc<Vec<Mock>>,
    /// The surroundings.
    pub environment: Arc<Environment>,
    /// The databases of the configuration; what stands in for others lasts as long as the suite.
    pub databases: Arc<dyn Databases>,
}

/// What assertions look at.
struct Outcome {
    /// For expressions and properties: the exchange at its end, or one that holds the answer.
    exchange: Box<Exchange>,
    body: String,
    status: Option<u16>,
    /// Why there is nothing to look at.
    trouble: Option<String>,
}

/// Runs one case. Must run on a local set of its own.
pub async fn run(case: &Case, bench: &Bench) -> CaseReport {
    let started = Instant::now();
    let log = Arc::new(Lines::default());
    let outbound = Rc::new(SuiteOutbound::new(bench.mocks.clone()));
    let core = Core::new(
        outbound.clone() as Rc<dyn Outbound>,
        log.clone(),
        bench.environment.clone(),
        Arc::new(Metrics::default()),
        bench.current.clone(),
    );
    core.set_databases(bench.databases.clone());
    let service: Rc<dyn Service> = Dispatcher::new(core.clone());
    outbound.serve_own(&service);
    let mut outcome = match &bench.tested {
        Tested::Sequence(name) => sequence(case, name, &core).await,
        Tested::Proxy(name) => request(case, &format!("/services/{name}{}", case.path), &core, &service).await,
        Tested::Api(context) => request(case, &format!("{}{}", context, joined(&case.path)), &core, &service).await,
    };
    let mut failures = Vec::new();
    if let Some(trouble) = outcome.trouble.take() {
        failures.push(Failed { message: trouble, assertion: None });
    }
    for (index, assertion) in case.assertions.iter().enumerate() {
        if let Some(failed) = check(assertion, index, case, &mut outcome).await {
            failures.push(failed);
        }
    }
    let took = started.elapsed();
    let log = std::mem::take(&mut *log.0.lock().unwrap_or_else(PoisonError::into_inner));
    CaseReport { name: case.name.clone(), line: case.at.line, failures, log, took }
}

/// How long what outlives the answers is waited for.
pub async fn settle(tasks: tokio::task::LocalSet) {
    tokio::time::timeout(AFTERWARDS_MAX, tasks).await.ok();
}

/// A context and a path with one slash between them.
fn joined(path: &str) -> String {
    match path.chars().next() {
        None | Some('/' | '?') => path.to_owned(),
        Some(_) => format!("/{path}"),
    }
}

/// The media type of a payload that says none.
fn guessed(payload: &str) -> &'static str {
    let start = payload.trim_start();
    if start.starts_with('<') {
        if start.contains("Envelope") && start.contains("schemas.xmlsoap.org/soap") {
            "text/xml"
        } else {
            "application/xml"
        }
    } else if serde_json::from_str::<serde_json::Value>(start).is_ok() {
        "application/json"
    } else {
        "text/plain"
    }
}

async fn request(case: &Case, target: &str, core: &Rc<Core>, service: &Rc<dyn Service>) -> Outcome {
    let usual = if case.payload.is_some() || matches!(case.method.as_deref(), Some("")) { "POST" } else { "GET" };
    let method = Method::parse(case.method.as_deref().unwrap_or(usual));
    let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    let port = if case.secure { SECURE_PORT } else { PORT };
    let line = RequestLine { method: method.clone(), target: target.replace(' ', "%20").into(), secure: case.secure };
    let mut headers = Headers::new();
    headers.set("Host", format!("localhost:{port}"));
    for property in case.properties.iter().filter(|property| property.scope == "transport") {
        headers.set(&property.name, &property.value);
    }
    let mut body = Body::empty();
    if let Some(payload) = &case.payload {
        if !headers.contains("Content-Type") {
            headers.set("Content-Type", guessed(payload));
        }
        body = Body::bytes(payload.clone());
    }
    let client = Rc::new(client(line, port));
    let message = Message { headers, body, method, ..Message::default() };
    let mut reply = service.answer(Request { client: client.clone(), message }).await;
    let limit = core.program().program.limits.body_bytes_max;
    let whole = std::future::poll_fn(|cx| reply.body.poll_pull(cx, usize::MAX, limit)).await;
    let trouble = whole.err().map(|error| format!("the response is incomplete: {error}"));
    let status = reply.status;
    let (body, reply) = text_of(reply, &core.program().program.conversion);
    let exchange = Box::new(Exchange::new(core.clone(), core.program(), client, reply, Entry::Main));
    Outcome { exchange, body, status: Some(status), trouble }
}

async fn sequence(case: &Case, name: &str, core: &Rc<Core>) -> Outcome {
    let loaded = core.program();
    let payload = case.payload.clone().unwrap_or_default();
    let line = RequestLine { method: Method::Post, target: "/".into(), secure: false };
    let message = Message { body: Body::bytes(payload.clone()), method: Method::Post, ..Message::default() };
    let client = Rc::new(client(line, PORT));
    let mut exchange = Box::new(Exchange::new(core.clone(), loaded.clone(), client, message, Entry::Main));
    if !payload.is_empty() {
        exchange.message.headers.set("Content-Type", guessed(&payload));
    }
    for property in &case.properties {
        let scope = Scope::parse(&property.scope).unwrap_or(Scope::Default);
        exchange.set_property(scope, &property.name, penstock_message::Value::string(property.value.as_str()));
    }
    let Some(id) = loaded.program.sequence_names.get(name).copied() else {
        let trouble = Some(format!("there is no sequence `{name}`"));
        return Outcome { exchange, body: String::new(), status: None, trouble };
    };
    let mut done = run_alone(exchange, id).await;
    let trouble = done.fault.map(|fault| {
        let at = fault.at.as_ref().map_or_else(String::new, |at| format!(" ({at})"));
        format!("an unhandled fault: {fault}{at}")
    });
    let message = done.reply.take().unwrap_or_else(|| std::mem::take(&mut done.exchange.message));
    let status = (message.status != 0).then_some(message.status);
    let kept =
        (message.properties.iter().next().is_none()).then(|| std::mem::take(&mut done.exchange.message.properties));
    let (body, message) = text_of(message, &loaded.program.conversion);
    let variables = std::mem::take(&mut done.exchange.message.variables);
    let had_variables = message.variables.iter().next().is_some();
    done.exchange.message = message;
    if let Some(properties) = kept {
        done.exchange.message.properties = properties;
    }
    if !had_variables {
        done.exchange.message.variables = variables;
    }
    Outcome { exchange: done.exchange, body, status, trouble }
}

/// The body as text, and the message with a body that can be read again.
fn text_of(mut message: Message, conversion: &Conversion) -> (String, Message) {
    let form = message.output(conversion, Shape::Same).map(|output| output.form);
    let text = match form {
        Ok(Form::Bytes(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        Ok(Form::Text(text)) => text.to_string(),
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    (text, message)
}

/// The name of the sequence that evaluates the expression of an assertion.
pub fn probe_name(case: &str, index: usize) -> String {
    format!("penstock:assertion:{case}:{index}")
}

/// The property it leaves the value in.
pub const PROBE: &str = "penstock.actual";

/// Whether an assertion needs such a sequence.
pub fn needs_probe(actual: &str) -> bool {
    !matches!(actual, "$body" | "$statusCode" | "$httpVersion") && scoped(actual).is_none()
}

/// `$ctx:name` and its kin, when nothing but a name follows.
fn scoped(actual: &str) -> Option<(Scope, &str)> {
    let (scope, name) = actual.strip_prefix('$')?.split_once(':')?;
    let scope = match scope {
        "ctx" => Scope::Default,
        "axis2" => Scope::Axis2,
        "trp" => Scope::Transport,
        _ => return None,
    };
    name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.')).then_some((scope, name))
}

async fn check(assertion: &Assertion, index: usize, case: &Case, outcome: &mut Outcome) -> Option<Failed> {
    let actual = match assertion.actual.as_str() {
        "$body" => (!outcome.body.is_empty()).then(|| outcome.body.clone()),
        "$statusCode" => outcome.status.map(|status| status.to_string()),
        "$httpVersion" => Some("1.1".to_owned()),
        other => match scoped(other) {
            Some((scope, name)) => outcome.exchange.property(scope, name).map(|value| value.to_text().into_owned()),
            None => evaluated(&probe_name(&case.name, index), outcome).await,
        },
    };
    let holds = match (&assertion.expected, &actual) {
        (Some(expected), Some(actual)) => compare::same(expected, actual) || same_version(assertion, expected),
        (Some(expected), None) => expected.is_empty(),
        (None, actual) => actual.as_ref().is_some_and(|text| !text.trim().is_empty()),
    };
    (!holds).then(|| Failed {
        message: assertion.message.clone(),
        assertion: Some(Difference {
            of: assertion.actual.clone(),
            expected: assertion.expected.clone(),
            actual,
            line: assertion.at.line,
        }),
    })
}

/// Micro Integrator compares `$httpVersion` with or without the protocol's name.
fn same_version(assertion: &Assertion, expected: &str) -> bool {
    assertion.actual == "$httpVersion" && expected.trim() == "HTTP/1.1"
}

async fn evaluated(probe: &str, outcome: &mut Outcome) -> Option<String> {
    let id = outcome.exchange.program().sequence_names.get(probe).copied()?;
    let message = std::mem::take(&mut outcome.exchange.message);
    let (core, client) = (outcome.exchange.core().clone(), outcome.exchange.client.clone());
    let exchange = Box::new(Exchange::new(core.clone(), core.program(), client, message, Entry::Main));
    let mut done = run_alone(exchange, id).await;
    let value = done.exchange.message.properties.remove(PROBE);
    outcome.exchange = done.exchange;
    value.map(|value| value.to_text().into_owned())
}

/// The log of one case.
#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl LogSink for Lines {
    fn write(&self, record: &Record<'_>) {
        let level = format!("{:?}", record.level).to_uppercase();
        let service = if record.service.is_empty() { String::new() } else { format!("{} ", record.service) };
        let line = format!("{level} {}: {service}{}", record.logger, record.text);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    fn enabled(&self, level: Level) -> bool {
        level >= Level::Info
    }
}
