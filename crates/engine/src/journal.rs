//! Log lines about a request: at `debug` one line when it is over, at `trace` one for each mediator. A request has a journal
//! only while the log has one of these levels, or while an operator traces its API or proxy service; without a journal the run
//! loop pays one branch per mediator.

use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use penstock_message::{Form, Headers, Message, Properties, Value};

use crate::mediator::{Destination, Flow, Sequence, SequenceId, Step};
use crate::ports::{Client, Level, Record};
use crate::route::{Entry, Pattern};
use crate::run::End;
use crate::{Exchange, Fault, Program};

/// A text is shown up to this length: a line is for a terminal.
const SHOWN_BYTES: usize = 200;

/// Calls of backends that one line lists.
const CALLS_MAX: usize = 20;

/// Changes that one line lists.
const CHANGES_MAX: usize = 20;

/// Header fields whose values are credentials.
const CREDENTIALS: [&str; 7] =
    ["authorization", "proxy-authorization", "cookie", "set-cookie", "apikey", "x-api-key", "internal-key"];

/// What is logged about one request and its branches.
#[derive(Debug)]
pub(crate) struct Journal {
    /// Whether each mediator has a line.
    steps: bool,
    /// Whether an operator enabled tracing: the lines are written at any log level.
    is_traced: bool,
    correlation: Arc<str>,
    /// Calls of backends, in the order of their ends.
    calls: RefCell<Vec<String>>,
}

/// The message before a mediator ran.
pub(crate) struct Before {
    message: Message,
    form: &'static str,
    started: Instant,
}

impl Journal {
    /// The journal of an exchange that begins, when the log has such lines.
    pub(crate) fn open(exchange: &mut Exchange) -> Option<Rc<Journal>> {
        let is_traced = match &exchange.entry {
            Entry::Proxy(proxy) => proxy.is_traced.is_on(),
            Entry::Resource(api, _) | Entry::Api(api, _) => api.is_traced.is_on(),
            Entry::Operation(_) | Entry::Source(_) | Entry::Main => false,
        };
        if !is_traced && !exchange.core.log.enabled(Level::Debug) {
            return None;
        }
        let steps = is_traced || exchange.core.log.enabled(Level::Trace);
        let correlation = exchange.correlation_id();
        Some(Rc::new(Journal { steps, is_traced, correlation, calls: RefCell::default() }))
    }

    /// The level of a line that the log would have at this one.
    fn level(&self, level: Level) -> Level {
        if self.is_traced { Level::Info } else { level }
    }

    /// Notes a call of a backend. `url` is empty where it is not known.
    pub(crate) fn called(&self, endpoint: &str, method: &str, url: &str, outcome: Result<u16, &Fault>, took: Duration) {
        let mut calls = self.calls.borrow_mut();
        if calls.len() >= CALLS_MAX {
            return;
        }
        let mut text = format!("endpoint {endpoint}");
        for word in [method, url] {
            if !word.is_empty() {
                text.push(' ');
                push_shown(&mut text, word);
            }
        }
        // Writing to a `String` cannot fail.
        let _ = match outcome {
            Ok(status) => write!(text, ": {status} in {}", millis(took)),
            Err(fault) => write!(text, ": {} after {}", fault.message, millis(took)),
        };
        calls.push(text);
    }
}

/// The line about a request that is over.
pub(crate) fn finish(
    exchange: &Observed,
    log: &dyn crate::ports::LogSink,
    reply: &Message,
    failed: bool,
    took: Duration,
) {
    let line = &exchange.client.line;
    let mut text = String::new();
    let _ = write!(text, "{} ", line.method.as_str());
    push_shown(&mut text, line.target());
    let _ = write!(text, ": {}, status {} in {}", route(&exchange.entry), reply.status, millis(took));
    if failed {
        text.push_str(", fault");
    }
    for call in exchange.journal.calls.borrow().iter() {
        text.push_str("; ");
        text.push_str(call);
    }
    let (service, correlation) = (exchange.entry.label(), &*exchange.journal.correlation);
    let level = exchange.journal.level(Level::Debug);
    log.write(&Record { level, logger: "Request", service, correlation, text: &text });
}

/// The line about a request that no flow ran for.
pub(crate) fn unserved(log: &dyn crate::ports::LogSink, client: &Client, reply: &Message) {
    let mut text = String::new();
    let _ = write!(text, "{} ", client.line.method.as_str());
    push_shown(&mut text, client.line.target());
    let _ = write!(text, ": no flow, status {}", reply.status);
    log.write(&Record { level: Level::Debug, logger: "Request", service: "", correlation: "", text: &text });
}

/// What the line about a request needs when the exchange is gone.
pub(crate) struct Observed {
    journal: Rc<Journal>,
    entry: Entry,
    client: Rc<Client>,
}

impl Observed {
    pub(crate) fn of(exchange: &Exchange) -> Option<Observed> {
        let journal = exchange.journal.clone()?;
        Some(Observed { journal, entry: exchange.entry.clone(), client: exchange.client.clone() })
    }
}

/// The service a request was for.
fn route(entry: &Entry) -> String {
    match entry {
        Entry::Proxy(proxy) => format!("route /services/{}", proxy.name),
        Entry::Resource(api, index) => {
            let context = if &*api.context == "/" { "" } else { &*api.context };
            let pattern = match &api.resources[*index].pattern {
                Pattern::Default => "",
                Pattern::Mapping(mapping) => mapping,
                Pattern::Template(template) => template.text(),
            };
            format!("route {context}{pattern}")
        }
        Entry::Api(api, _) => format!("no resource of {}", api.context),
        Entry::Operation(operation) => format!("operation of {}", operation.name),
        Entry::Source(source) => format!("{} {}", source.kind, source.name),
        Entry::Main => "sequence main".to_owned(),
    }
}

impl Before {
    /// The message as it is now, when mediators have lines.
    pub(crate) fn of(exchange: &Exchange) -> Option<Box<Before>> {
        exchange.journal.as_ref().filter(|journal| journal.steps)?;
        let message = &exchange.message;
        let form = form_name(message.body.form());
        Some(Box::new(Before { message: message.copy(), form, started: Instant::now() }))
    }

    /// Writes the line about a mediator.
    pub(crate) fn log(
        self,
        exchange: &Exchange,
        step: &Step,
        asked: Option<String>,
        outcome: &Result<Option<End>, Fault>,
    ) {
        let Some(journal) = &exchange.journal else { return };
        let took = self.started.elapsed();
        let mut text = format!("<{}> at {}: ", step.kind, step.at);
        let mut effects: Vec<String> = asked.into_iter().collect();
        match outcome {
            Ok(None) => self.changes(&exchange.message, &mut effects),
            // The message is gone.
            Ok(Some(_)) => {}
            Err(fault) => effects.push(format!("fault {}", shown(&fault.message))),
        }
        if effects.is_empty() {
            effects.push("no change".to_owned());
        }
        text.push_str(&effects.join("; "));
        let _ = write!(text, " ({} µs)", took.as_micros());
        let (service, correlation) = (exchange.entry.label(), &*journal.correlation);
        let level = journal.level(Level::Trace);
        exchange.core.log.write(&Record { level, logger: "Mediator", service, correlation, text: &text });
    }

    /// What is different now.
    fn changes(&self, now: &Message, out: &mut Vec<String>) {
        let before = &self.message;
        if before.status != now.status {
            out.push(format!("status {}", now.status));
        }
        if before.method != now.method {
            out.push(format!("method {}", now.method.as_str()));
        }
        if before.url_postfix != now.url_postfix {
            out.push(match &now.url_postfix {
                Some(postfix) => format!("REST_URL_POSTFIX = {}", shown(postfix)),
                None => "REST_URL_POSTFIX removed".to_owned(),
            });
        }
        for (scope, before, now) in [
            ("property", &before.properties, &now.properties),
            ("axis2 property", &before.axis2, &now.axis2),
            ("axis2-client property", &before.axis2_client, &now.axis2_client),
            ("operation property", &before.operation, &now.operation),
            ("variable", &before.variables, &now.variables),
        ] {
            changed_properties(scope, before, now, out);
        }
        changed_headers(&before.headers, &now.headers, out);
        let form = form_name(now.body.form());
        if form != self.form || !is_same(before.body.form(), now.body.form()) {
            out.push(format!("body is {form}{}", content(now)));
        }
        if out.len() > CHANGES_MAX {
            let more = out.len() - CHANGES_MAX;
            out.truncate(CHANGES_MAX);
            out.push(format!("{more} more changes"));
        }
    }
}

/// The flow that a mediator returned; nothing for the next mediator.
pub(crate) fn describe(flow: &Flow, program: &Program) -> Option<String> {
    let sequence = |id: SequenceId| {
        let sequence: &Sequence = program.sequence(id);
        match &sequence.name {
            Some(name) => format!("enters the sequence `{name}`"),
            None => match sequence.steps.first() {
                Some(step) => format!("continues with <{}> at {}", step.kind, step.at),
                None => "enters an empty sequence".to_owned(),
            },
        }
    };
    let to = |destination: &Destination| match destination {
        Destination::Endpoint(id) => format!("the endpoint {}", program.endpoint(*id).label()),
        Destination::Implicit => "the client or the address of the message".to_owned(),
        Destination::Named(name) => format!("the endpoint {name}"),
        Destination::Address(url) => shown(url),
    };
    Some(match flow {
        Flow::Next | Flow::Pull | Flow::Buffer | Flow::Wait(_) | Flow::WaitBounded(_) => return None,
        Flow::Enter(id) => sequence(*id),
        Flow::EnterTemplate(_, scope) => format!("calls the template `{}`", scope.template),
        Flow::Send(destination, _) => format!("sends to {}", to(destination)),
        Flow::Call(destination) | Flow::CallWith(destination, _) => format!("calls {}", to(destination)),
        Flow::Respond => "responds".to_owned(),
        Flow::Loopback => "goes to the out sequence".to_owned(),
        Flow::Stop => "ends the message".to_owned(),
        Flow::Fork(work) => format!("starts {} branches", work.branches.len()),
    })
}

fn changed_properties(scope: &str, before: &Properties, now: &Properties, out: &mut Vec<String>) {
    for (name, value) in now.iter() {
        let is_new = match before.get(name) {
            Some(old) => !is_same_value(old, value),
            None => true,
        };
        if is_new && name != "correlation_id" {
            out.push(format!("{scope} {name} = {}", shown(&value.to_text())));
        }
    }
    for (name, _) in before.iter().filter(|(name, _)| now.get(name).is_none()) {
        out.push(format!("{scope} {name} removed"));
    }
}

fn is_same_value(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Json(one), Value::Json(other)) if Arc::ptr_eq(one, other) => true,
        (Value::Xml(one, nodes), Value::Xml(other, others)) if Arc::ptr_eq(one, other) => nodes == others,
        _ => std::mem::discriminant(one) == std::mem::discriminant(other) && one.to_text() == other.to_text(),
    }
}

fn changed_headers(before: &Headers, now: &Headers, out: &mut Vec<String>) {
    for (name, value) in now.iter() {
        let name = String::from_utf8_lossy(name);
        if before.get_all(&name).any(|old| old == value) {
            continue;
        }
        let is_credential = CREDENTIALS.iter().any(|credential| name.eq_ignore_ascii_case(credential));
        let value = if is_credential { "***".to_owned() } else { shown(&String::from_utf8_lossy(value)) };
        out.push(format!("header {name}: {value}"));
    }
    for (name, _) in before.iter() {
        let name = String::from_utf8_lossy(name);
        if !now.contains(&name) {
            out.push(format!("header {name} removed"));
        }
    }
}

fn form_name(form: &Form) -> &'static str {
    match form {
        Form::Empty => "empty",
        Form::Stream { .. } => "arriving",
        Form::Bytes(_) => "bytes",
        Form::Xml(_) => "XML",
        Form::Json(_) => "JSON",
        Form::Text(_) => "text",
    }
}

/// Whether two bodies of one form are one. The copy keeps its parts alive, so an address is not used twice.
fn is_same(before: &Form, now: &Form) -> bool {
    match (before, now) {
        (Form::Xml(before), Form::Xml(now)) => Arc::ptr_eq(before, now),
        (Form::Json(before), Form::Json(now)) => Arc::ptr_eq(before, now),
        (Form::Text(before), Form::Text(now)) => Arc::ptr_eq(before, now),
        (Form::Bytes(before), Form::Bytes(now)) => before.as_ptr() == now.as_ptr() && before.len() == now.len(),
        // A stream has no copy.
        _ => true,
    }
}

/// The beginning of a body.
fn content(message: &Message) -> String {
    let text = match message.body.form() {
        Form::Empty | Form::Stream { .. } => return String::new(),
        Form::Bytes(bytes) => String::from_utf8_lossy(&bytes[..bytes.len().min(2 * SHOWN_BYTES)]).into_owned(),
        Form::Text(text) => shown(text),
        Form::Json(json) => {
            let mut beginning = Beginning(Vec::new());
            // An error means that enough is written.
            let _ = serde_json::to_writer(&mut beginning, &**json);
            String::from_utf8_lossy(&beginning.0).into_owned()
        }
        Form::Xml(envelope) => match envelope.payload() {
            None => return String::new(),
            Some(payload) => {
                let mut out = Vec::new();
                penstock_message::write_fragment(&mut out, &envelope.document, payload);
                String::from_utf8_lossy(&out).into_owned()
            }
        },
    };
    format!(": {}", shown(&text))
}

/// Takes as many bytes as are shown.
struct Beginning(Vec<u8>);

impl std::io::Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() > SHOWN_BYTES {
            return Err(std::io::Error::other("enough"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn shown(text: &str) -> String {
    let mut out = String::new();
    push_shown(&mut out, text);
    out
}

fn push_shown(out: &mut String, text: &str) {
    let end = (0..=text.len().min(SHOWN_BYTES)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    out.push_str(&text[..end]);
    if end < text.len() {
        out.push('…');
    }
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}
