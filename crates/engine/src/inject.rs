//! Messages that do not come from a client over HTTP: from a queue, a file, a schedule. A source injects a message and
//! learns how its flow ended, so that it can acknowledge, roll back or move it.

use std::future::{Future, poll_fn};
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use penstock_budget::Account;
use penstock_message::{Message, Method, RequestLine, Value};

use crate::background::Control;
use crate::core::Core;
use crate::endpoint::deliver;
use crate::journal::{self, Observed};
use crate::mediator::Destination;
use crate::ports::{Client, Level};
use crate::route::Entry;
use crate::{Exchange, Fault, Side, run, serve, wait};

/// A message for a flow.
pub struct Injection {
    /// What runs.
    pub target: InjectTarget,
    /// The message; its body is a stream, bytes or empty.
    pub message: Message,
    /// Where it comes from.
    pub source: Arc<Source>,
}

/// What a message is injected into. Names are looked up in the current program, so that a source outlives reloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InjectTarget {
    /// The `main` sequence.
    Main,
    /// A sequence by name or registry key.
    Sequence(Arc<str>),
    /// A proxy service.
    Proxy(Arc<str>),
}

/// What injects messages: an inbound endpoint, a task, the listener of a proxy service.
#[derive(Debug, Clone)]
pub struct Source {
    /// The kind of service that metrics count it under.
    pub kind: &'static str,
    /// Its name.
    pub name: Arc<str>,
    /// `{inboundendpoint:NAME}`, for log lines.
    pub label: Arc<str>,
    /// The transport: `jms`, `vfs`.
    pub transport: &'static str,
    /// The sequence that handles faults that the flow itself does not handle.
    pub on_error: Option<Arc<str>>,
}

/// What consumes the messages of a source that acknowledges: an inbound endpoint, the listener of a proxy service.
#[derive(Debug, Clone)]
pub struct Consumer {
    /// What runs.
    pub target: InjectTarget,
    /// The source.
    pub source: Arc<Source>,
}

impl Consumer {
    /// Runs the flow of a message and counts it. The source acknowledges the message when [`Outcome::is_done`]; otherwise
    /// it returns it to where it came from, or does with it what its parameters say for failures.
    pub async fn consume(&self, control: &Control, message: Message) -> Injected {
        let injection = Injection { target: self.target.clone(), message, source: self.source.clone() };
        let injected = inject(control.core(), injection).await;
        control.count(injected.outcome.is_done());
        injected
    }
}

/// How the flow of an injected message ended.
pub struct Injected {
    /// How to acknowledge the message.
    pub outcome: Outcome,
    /// The response, when the flow made one.
    pub reply: Option<Message>,
    /// The message as the flow left it, with its properties.
    pub message: Message,
}

/// What the source does with the message.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The flow ended well, or a sequence handled its fault: acknowledge.
    Done,
    /// The flow set `SET_ROLLBACK_ONLY`: do not acknowledge.
    RolledBack,
    /// A fault that no sequence handled.
    Failed(Fault),
}

impl Outcome {
    /// Whether the message is done with.
    pub fn is_done(&self) -> bool {
        matches!(self, Outcome::Done)
    }
}

/// Runs a message through its target until its flow has ended. Must run on a local set: branches that outlive the flow
/// live on it.
pub async fn inject(core: &Rc<Core>, injection: Injection) -> Injected {
    let Injection { target, message, source } = injection;
    let in_flight = core.metrics.enter();
    let loaded = core.program();
    let program = loaded.program.clone();
    let found = match &target {
        InjectTarget::Main => Ok((Entry::Source(source.clone()), program.main)),
        InjectTarget::Sequence(name) => match program.sequence_names.get(name) {
            Some(id) => Ok((Entry::Source(source.clone()), Some(*id))),
            None => Err(format!("Sequence: {name} not found")),
        },
        InjectTarget::Proxy(name) => match program.routes.proxy(name) {
            Some(proxy) => Ok((Entry::Proxy(proxy.clone()), proxy.in_sequence)),
            None => Err(format!("Proxy Service: {name} not found")),
        },
    };
    let client = Rc::new(local_client(&source, &message));
    let (entry, start, missing) = match found {
        Ok((entry, start)) => (entry, start, None),
        Err(text) => (Entry::Source(source.clone()), None, Some(Fault::new(text))),
    };
    let mut exchange = Box::new(Exchange::new(core.clone(), loaded, client, message, entry));
    exchange.message.properties.set("inbound.endpoint.name", Value::string(source.name.clone()));
    let base = exchange.entry.base_handlers(&program);
    let common = program.fault.filter(|_| target == InjectTarget::Main);
    exchange.handlers.extend(common.into_iter().chain(base));
    let entered = match (missing, start) {
        (Some(fault), _) => Err(Box::new(fault)),
        (None, Some(start)) => run::enter(&mut exchange, start).map_err(Box::new),
        (None, None) => Ok(()),
    };
    let started = exchange.started;
    let observed = Observed::of(&exchange);
    let mut account = Account::new(program.limits.memory_bytes_max);
    let end = {
        let mut travel = pin!(serve::travel(&mut exchange, entered));
        poll_fn(|cx| account.enter(|| travel.as_mut().poll(cx))).await
    };
    let outcome = outcome(&mut exchange, end);
    drop(in_flight);
    core.metrics.finished(source.kind, &source.name, started.elapsed(), exchange.fault.is_some() || !outcome.is_done());
    let mut reply = exchange.reply.take().map(|reply| *reply);
    if let Some(observed) = observed {
        let failed = exchange.fault.is_some() || !outcome.is_done();
        journal::finish(&observed, &*core.log, reply.as_ref().unwrap_or(&exchange.message), failed, started.elapsed());
    }
    if let Some(reply) = &mut reply {
        let limit = program.limits.body_bytes_max;
        if let Err(error) = wait::buffer(&mut reply.body, limit).await {
            exchange.log(Level::Error, "Inbound", &format!("the response was not read: {error}"));
        }
    }
    Injected { outcome, reply, message: std::mem::take(&mut exchange.message) }
}

/// Sends a message to a named endpoint, outside of any flow. Returns the message with the reply in place of the request,
/// or with `OUT_ONLY` as the transport left it; an error when no reply came.
pub async fn call(
    core: &Rc<Core>,
    source: &Arc<Source>,
    endpoint: &Arc<str>,
    message: Message,
) -> (Message, Result<(), Fault>) {
    let client = Rc::new(local_client(source, &message));
    let mut exchange = Exchange::new(core.clone(), core.program(), client, message, Entry::Source(source.clone()));
    let destination = Destination::Named(endpoint.clone());
    exchange.one_way = exchange.message.properties.is_true("OUT_ONLY") || exchange.message.axis2.is_true("OUT_ONLY");
    let outcome = match deliver(&mut exchange, &destination, 0).await {
        Ok(mut reply) => {
            let limit = exchange.program().limits.body_bytes_max;
            let read = wait::buffer(&mut reply.body, limit).await;
            exchange.message.replace_by_reply(*reply);
            read.map_err(|error| Fault { side: Side::Backend, ..Fault::from(error) })
        }
        Err(fault) => Err(fault),
    };
    if let Err(fault) = &outcome {
        run::set_error_properties(&mut exchange, fault);
    }
    (exchange.message, outcome)
}

fn outcome(exchange: &mut Exchange, end: run::End) -> Outcome {
    if let run::End::Failed(fault) = end {
        let at = fault.at.as_ref().map_or_else(String::new, |at| format!(" at {at}"));
        exchange.log(Level::Error, "Inbound", &format!("{fault}{at}; no fault sequence handled it"));
        return Outcome::Failed(*fault);
    }
    let message = &exchange.message;
    let rolls_back = |name| match message.properties.get(name) {
        Some(_) => message.properties.is_true(name),
        None => message.axis2.is_true(name),
    };
    match rolls_back("SET_ROLLBACK_ONLY") || rolls_back("SET_RECOVER") {
        true => Outcome::RolledBack,
        false => Outcome::Done,
    }
}

/// The client of a message that no client sent: this program itself.
fn local_client(source: &Source, message: &Message) -> Client {
    let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let method = if message.body.is_empty() { Method::Get } else { Method::Post };
    Client {
        line: RequestLine { method, target: bytes::Bytes::from_static(b"/"), secure: false },
        address: nowhere.ip(),
        peer: nowhere,
        local: nowhere,
        protocol: source.transport,
        certificate: None,
    }
}

#[cfg(test)]
mod tests;
