//! From a request to its answer: the flow, and what the client gets when the flow gives nothing.

use std::future::{Future, poll_fn, ready};
use std::rc::Rc;
use std::task::Poll;

use penstock_budget::Account;
use penstock_message::Message;

use crate::admit::{Admission, Entered, admit};
use crate::core::Core;
use crate::journal::{self, Observed};
use crate::metrics::InFlight;
use crate::ports::{Level, LocalFuture, Request, Service};
use crate::route::{Entry, Finished};
use crate::run::{self, End};
use crate::{Exchange, Fault, Passage, RequestHead, fallback, incoming, passage};

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
        let in_flight = self.core.metrics.enter();
        // Before there is a future, so that no future has to carry a request.
        let client = self.core.log.enabled(Level::Debug).then(|| request.client.clone());
        match admit(&self.core, &self.core.program(), request) {
            Admission::Answer(message) => {
                if let Some(client) = client {
                    journal::unserved(&*self.core.log, &client, &message);
                }
                Box::pin(ready(*message))
            }
            Admission::Run(exchange, entered) => Box::pin(answer(&self.core, in_flight, exchange, entered)),
        }
    }

    fn passage(&self, head: &RequestHead<'_>) -> Option<Passage> {
        passage::find(&self.core, head)
    }

    fn resume<'a>(
        &'a self,
        request: Request,
        passage: Passage,
        outcome: Result<Message, Fault>,
    ) -> LocalFuture<'a, Message> {
        let Passage { loaded, in_flight, started, .. } = passage;
        match admit(&self.core, &loaded, request) {
            Admission::Answer(message) => Box::pin(ready(*message)),
            Admission::Run(mut exchange, entered) => {
                exchange.deadline -= exchange.started.saturating_duration_since(started);
                exchange.started = started;
                exchange.passed = Some(Box::new(outcome));
                Box::pin(answer(&self.core, in_flight, exchange, entered))
            }
        }
    }
}

pub(crate) async fn answer(core: &Core, _in_flight: InFlight, exchange: Box<Exchange>, entered: Entered) -> Message {
    let started = exchange.started;
    let observed = Observed::of(&exchange);
    let logged = |reply: &Message, failed| {
        if let Some(observed) = &observed {
            journal::finish(observed, &*core.log, reply, failed, started.elapsed());
        }
    };
    if let Entry::Operation(operation) = &exchange.entry
        && let Some(observer) = operation.observer.clone()
    {
        let extension = exchange.extension.clone();
        let (mut reply, failed) = flow(exchange, entered).await;
        let took = started.elapsed();
        logged(&reply, failed);
        observer.finished(&Finished { reply: &reply, took, failed, extension: extension.as_ref() });
        reply.extension = extension;
        return *reply;
    }
    let metric = match &exchange.entry {
        Entry::Source(source) => Some((source.kind, source.name.clone())),
        entry => entry.metric().map(|(kind, name)| (kind, name.clone())),
    };
    let (reply, failed) = flow(exchange, entered).await;
    logged(&reply, failed);
    if let Some((kind, name)) = metric {
        core.metrics.finished(kind, &name, started.elapsed(), failed);
    }
    *reply
}

/// Runs the exchange until the client has an answer. What still runs then (branches) goes on by
/// itself. There is no timer here: everything an exchange can wait for (a backend, the rest of a
/// body, a port) is bounded by its deadline where it waits.
async fn flow(mut exchange: Box<Exchange>, entered: Entered) -> (Box<Message>, bool) {
    let reply = exchange.reply.clone();
    let mut account = Account::new(exchange.loaded.program.limits.memory_bytes_max);
    let mut whole = Box::pin(async move { complete(&mut exchange, entered).await });
    let outcome = poll_fn(|cx| {
        if let Poll::Ready((message, failed)) = account.enter(|| whole.as_mut().poll(cx)) {
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
            tokio::task::spawn_local(poll_fn(move |cx| account.enter(|| whole.as_mut().poll(cx))));
            (message, false)
        }
    }
}

enum Outcome {
    Done(Box<Message>, bool),
    Early(Box<Message>),
}

/// The whole way of a message: in path, implicit send, faults, and the answer when there was none.
pub(crate) async fn complete(exchange: &mut Exchange, entered: Entered) -> (Box<Message>, bool) {
    let end = travel(exchange, entered).await;
    let failed = exchange.fault.is_some() || matches!(end, End::Failed(_));
    if exchange.reply.is_answered() {
        // Taken already when the client was answered early.
        return (exchange.reply.take().unwrap_or_default(), failed);
    }
    let fault = match end {
        End::Failed(fault) => {
            if exchange.loaded.program.fault.is_none() && !matches!(exchange.entry, Entry::Operation(_)) {
                run::set_error_properties(exchange, &fault);
                exchange.log_unhandled();
            }
            let at = fault.at.as_ref().map_or_else(String::new, |at| format!(" at {at}"));
            let id = exchange.correlation_id();
            let text = format!("{fault}{at}; no fault sequence handled it, correlation_id: {id}");
            exchange.log(Level::Error, "FaultHandler", &text);
            Some(*fault)
        }
        // A fault sequence ran and did not answer, or a branch failed.
        _ => exchange.fault.take(),
    };
    // Micro Integrator acknowledges with 202 when no backend was called before the fault, and otherwise leaves the client
    // waiting for its socket timeout. A client that reads 202 takes its message for accepted.
    match fault.filter(|_| exchange.sent || !exchange.acknowledges_faults()) {
        Some(fault) => (Box::new(fallback::answer(exchange, &fault)), true),
        None => (incoming::unanswered(exchange), failed),
    }
}

/// Runs what was entered, and the send that a proxy service without an in sequence implies.
pub(crate) async fn travel(exchange: &mut Exchange, entered: Entered) -> End {
    let end = match entered {
        Ok(()) if exchange.frames.is_empty() => End::Finished,
        Ok(()) => run::run(exchange).await,
        Err(fault) => End::Failed(fault),
    };
    exchange.finish_path(end).await
}

impl Exchange {
    /// Whether the configuration restores Micro Integrator's 202 after a fault for this service.
    pub(crate) fn acknowledges_faults(&self) -> bool {
        let name = self.entry.metric().map_or("main", |(_, name)| &**name);
        self.program().limits.accepted_after_fault.iter().any(|listed| &**listed == name)
    }

    /// What happens when a path ended by itself: a proxy's request goes to its endpoint.
    pub(crate) async fn finish_path(&mut self, end: End) -> End {
        if !matches!(end, End::Finished)
            || self.direction != crate::Direction::Request
            || self.message.is_reply
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
