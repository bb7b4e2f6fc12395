//! From a request to its answer: dispatch, the flow, and what the client gets when the flow gives
//! nothing.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Instant;

use penstock_message::{Message, Method, Value};

use crate::core::{Core, Loaded};
use crate::ports::{Level, LocalFuture, Request, Service};
use crate::route::{Dispatch, Entry, Finished, ResourceMatch};
use crate::run::{self, End};
use crate::{Exchange, Side, fallback, incoming};

/// Sequences of these names answer what no resource takes.
const RESOURCE_MISMATCH: &str = "_resource_mismatch_handler_";
const METHOD_NOT_ALLOWED: &str = "_method_not_allowed_handler_";

/// The engine as a listener sees it. One per core.
pub struct Dispatcher {
    core: Rc<Core>,
}

impl Dispatcher {
    /// Serves the core's current program.
    pub fn new(core: Rc<Core>) -> Rc<Dispatcher> {
        Rc::new(Dispatcher { core })
    }
}

impl Service for Dispatcher {
    fn answer<'a>(&'a self, request: Request) -> LocalFuture<'a, Message> {
        Box::pin(answer(self.core.clone(), request))
    }
}

async fn answer(core: Rc<Core>, request: Request) -> Message {
    let _in_flight = core.metrics.enter();
    let loaded = core.program();
    let started = Instant::now();
    match admit(&core, &loaded, request) {
        Admission::Answer(message) => *message,
        Admission::Run(exchange, start) => {
            if let Entry::Operation(operation) = &exchange.entry
                && let Some(observer) = operation.observer.clone()
            {
                let extension = exchange.extension.clone();
                let (mut reply, failed) = flow(exchange, start).await;
                let took = started.elapsed();
                observer.finished(&Finished { reply: &reply, took, failed, extension: extension.as_ref() });
                reply.extension = extension;
                return reply;
            }
            let metric = exchange.entry.metric().map(|(kind, name)| (kind, name.clone()));
            let (reply, failed) = flow(exchange, start).await;
            if let Some((kind, name)) = metric {
                core.metrics.finished(kind, &name, started.elapsed(), failed);
            }
            reply
        }
    }
}

enum Admission {
    Answer(Box<Message>),
    Run(Box<Exchange>, Vec<crate::SequenceId>),
}

/// Finds the service and makes the exchange, or the answer when there is none to run.
fn admit(core: &Rc<Core>, loaded: &Rc<Loaded>, request: Request) -> Admission {
    let program = &loaded.program;
    let Request { client, mut message } = request;
    if let Some(router) = &program.routes.router
        && let Some(routed) = router.route(&client, &mut message)
    {
        let entry = Entry::Operation(routed.operation);
        let start = entry.in_sequence(program).into_iter().collect();
        let mut exchange = Exchange::new(core.clone(), loaded.clone(), client, message, entry);
        exchange.extension = routed.extension;
        return Admission::Run(Box::new(exchange), start);
    }
    let line = &client.line;
    let host = message.headers.get("Host");
    match program.routes.dispatch(line.path(), host, client.local.port()) {
        Dispatch::Proxy(proxy) => {
            if !(if line.secure { proxy.https } else { proxy.http }) {
                return Admission::Answer(Box::new(incoming::empty(404)));
            }
            if line.method == Method::Get
                && let Some(answer) = crate::describe::proxy(core, &proxy, line.query())
            {
                return Admission::Answer(Box::new(answer));
            }
            let after = line.path().len().min("/services/".len() + proxy.name.len());
            let postfix = &line.target()[after..];
            message.url_postfix = (!postfix.is_empty()).then(|| postfix.into());
            let start = proxy.gate.into_iter().chain(proxy.in_sequence).collect();
            let exchange = Exchange::new(core.clone(), loaded.clone(), client, message, Entry::Proxy(proxy));
            Admission::Run(Box::new(exchange), start)
        }
        Dispatch::Api(found) => {
            if let Some(answer) = crate::describe::api(core, &found.api, line) {
                return Admission::Answer(Box::new(answer));
            }
            let target = line.target();
            let api = found.api;
            let postfix = target.strip_prefix(&*api.context).unwrap_or(target);
            match api.resource(&found.rest, line.query(), &line.method, line.secure) {
                ResourceMatch::Found(index, variables) => {
                    message.url_postfix = Some(postfix.into());
                    for (name, value) in variables {
                        message.properties.set(format!("uri.var.{name}"), Value::string(value));
                    }
                    let start = api.handlers.iter().copied().chain(api.resources[index].in_sequence).collect();
                    let entry = Entry::Resource(api, index);
                    Admission::Run(Box::new(Exchange::new(core.clone(), loaded.clone(), client, message, entry)), start)
                }
                other => {
                    let (status, name) = match other {
                        ResourceMatch::MethodNotAllowed => (405, METHOD_NOT_ALLOWED),
                        _ => (404, RESOURCE_MISMATCH),
                    };
                    match program.sequence_names.get(name) {
                        None => Admission::Answer(Box::new(incoming::empty(status))),
                        Some(sequence) => {
                            let exchange = Exchange::new(core.clone(), loaded.clone(), client, message, Entry::Main);
                            Admission::Run(Box::new(exchange), vec![*sequence])
                        }
                    }
                }
            }
        }
        Dispatch::Main => match program.main {
            None => {
                let mut exchange = Exchange::new(core.clone(), loaded.clone(), client, message, Entry::Main);
                exchange.log_simple();
                Admission::Answer(Box::new(incoming::empty(404)))
            }
            Some(main) => {
                let exchange = Exchange::new(core.clone(), loaded.clone(), client, message, Entry::Main);
                Admission::Run(Box::new(exchange), vec![main])
            }
        },
    }
}

/// Runs the exchange until the client has an answer. What still runs then (branches) goes on by
/// itself. There is no timer here: everything an exchange can wait for (a backend, the rest of a
/// body, a port) is bounded by its deadline where it waits.
async fn flow(exchange: Box<Exchange>, start: Vec<crate::SequenceId>) -> (Message, bool) {
    let reply = exchange.reply.clone();
    let mut whole: LocalFuture<'static, (Message, bool)> = Box::pin(complete(exchange, start));
    let outcome = poll_fn(|cx| {
        if let Poll::Ready((message, failed)) = whole.as_mut().poll(cx) {
            return Poll::Ready(Outcome::Done(message, failed));
        }
        if let Some(early) = reply.take() {
            return Poll::Ready(Outcome::Early(early));
        }
        Poll::Pending
    })
    .await;
    match outcome {
        Outcome::Done(message, failed) => (message, failed),
        Outcome::Early(message) => {
            // Branches that outlive the answer come to their end by themselves.
            tokio::task::spawn_local(whole);
            (message, false)
        }
    }
}

enum Outcome {
    Done(Message, bool),
    Early(Message),
}

/// The whole way of a message: in path, implicit send, faults, and the answer when there was none.
async fn complete(mut exchange: Box<Exchange>, start: Vec<crate::SequenceId>) -> (Message, bool) {
    let loaded = exchange.loaded.clone();
    let base: Vec<_> = exchange.entry.base_handlers(&loaded.program).collect();
    exchange.handlers.extend(base);
    let mut end = End::Finished;
    // The stack runs from its top: what starts first is pushed last.
    for sequence in start.into_iter().rev() {
        if let Err(fault) = run::enter(&mut exchange, sequence) {
            end = End::Failed(fault);
        }
    }
    if matches!(end, End::Finished) {
        end = run::run(&mut exchange).await;
    }
    let end = exchange.finish_path(end).await;
    let failed = exchange.fault.is_some() || matches!(end, End::Failed(_));
    if exchange.reply.is_answered() {
        // Taken already when the client was answered early.
        return (exchange.reply.take().unwrap_or_default(), failed);
    }
    let fault = match end {
        End::Failed(fault) => {
            let at = fault.at.as_ref().map_or_else(String::new, |at| format!(" at {at}"));
            let text = format!("{fault}{at}; no fault sequence handled it");
            exchange.log(Level::Error, "FaultHandler", &text);
            Some(fault)
        }
        // A handler ran and did not answer.
        _ => exchange.fault.take().filter(|fault| fault.side == Side::Backend),
    };
    // Before a backend was asked, the original acknowledges what its default fault sequence drops;
    // afterwards it leaves the client waiting for its socket timeout. Here it is told what happened.
    match fault.filter(|_| exchange.sent) {
        Some(fault) => (fallback::answer(&mut exchange, &fault), true),
        None => (incoming::accepted(), failed),
    }
}

impl Exchange {
    /// What happens when a path ended by itself: a proxy's request goes to its endpoint.
    pub(crate) async fn finish_path(&mut self, end: End) -> End {
        if !matches!(end, End::Finished)
            || self.direction != crate::Direction::Request
            || self.fault.is_some()
            || self.reply.is_answered()
        {
            return end;
        }
        match self.entry.endpoint() {
            Some(endpoint) => run::send_and_run(self, endpoint).await,
            None => end,
        }
    }
}
