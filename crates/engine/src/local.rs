//! The local transport, `local:///services/NAME`: a service of this process, called without a socket.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use penstock_message::{BodyError, Message, Pace, RequestLine};
use tokio::time::sleep;

use crate::admit::{Admission, Target, admit_to};
use crate::core::{Core, Loaded};
use crate::ports::{Client, Outgoing, Request, SendOptions};
use crate::{Exchange, Fault, Side, codes, serve};

/// `Client::protocol` of a local call: proxy services with `transports="local"` take it.
pub(crate) const PROTOCOL: &str = "local";

/// Local calls that run at once on one core. More is a service that calls itself.
const CALLS_MAX: usize = 10_000;

/// Counts a call while it lasts.
struct Running(Rc<Core>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.local_calls.set(self.0.local_calls.get() - 1);
    }
}

/// Services that wait for each other within one transaction. More is a service that calls itself.
const WITHIN_MAX: u16 = 16;

/// Calls the service at the path of the address, on behalf of a client.
pub(crate) async fn call(core: &Rc<Core>, client: &Client, mut outgoing: Outgoing) -> Result<Message, Fault> {
    if core.local_calls.get() >= CALLS_MAX {
        let text = format!("more than {CALLS_MAX} local calls run at once: a service calls itself");
        return Err(Fault::coded(codes::SENDER_IO_SENDING, Side::Us, text));
    }
    core.local_calls.set(core.local_calls.get() + 1);
    let running = Running(core.clone());
    let (options, path) = (outgoing.options.clone(), path_of(&outgoing.url));
    let pace = outgoing.message.body.paced();
    let request = request_of(client, outgoing);
    // A task of its own, so that a service that calls itself does not nest the stack.
    let task = tokio::task::spawn_local(answer(running, request));
    let ended = in_time(task, &options, pace.as_deref(), &path).await?;
    ended.map_err(|error| Fault::coded(codes::SENDER_IO_RECEIVING, Side::Backend, error.to_string()))
}

/// Waits for a service. Its time runs while it does not wait for the body of the request, which the client may send slowly.
async fn in_time<T>(
    service: impl Future<Output = T>,
    options: &SendOptions,
    pace: Option<&Pace>,
    path: &str,
) -> Result<T, Fault> {
    let mut service = pin!(service);
    let mut deadline = pin!(sleep(options.time_left));
    let mut late = None;
    poll_fn(|cx| {
        if let Poll::Ready(ended) = service.as_mut().poll(cx) {
            return Poll::Ready(Ok(ended));
        }
        let waits_for_client = pace.is_some_and(|pace| pace.is_waiting(cx));
        if deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(match waits_for_client {
                true => Fault::from(BodyError::Timeout),
                false => Fault::deadline(),
            }));
        }
        if waits_for_client {
            late = None;
        } else if late.get_or_insert_with(|| Box::pin(sleep(options.response_timeout))).as_mut().poll(cx).is_ready() {
            let text = format!("the local service {path} did not respond in time");
            return Poll::Ready(Err(Fault::coded(codes::CONNECTION_TIMED_OUT, Side::Backend, text)));
        }
        Poll::Pending
    })
    .await
}

/// Calls the service in the transaction of the exchange, as Micro Integrator does on one thread.
pub(crate) async fn call_within(exchange: &mut Exchange, outgoing: Outgoing) -> Result<Message, Fault> {
    if exchange.waiting_flows >= WITHIN_MAX {
        let text = format!(
            "more than {WITHIN_MAX} local calls wait for each other in one transaction: a service calls itself"
        );
        return Err(Fault::coded(codes::SENDER_IO_SENDING, Side::Us, text));
    }
    let request = request_of(&exchange.client, outgoing);
    let core = exchange.core.clone();
    let (mut called, entered) = match admitted(&core, &core.program(), request) {
        Admission::Answer(message) => return Ok(*message),
        Admission::Run(called, entered) => (called, entered),
    };
    called.deadline = called.deadline.min(exchange.deadline);
    called.steps = exchange.steps;
    called.waiting_flows = exchange.waiting_flows + 1;
    std::mem::swap(&mut exchange.transactions, &mut called.transactions);
    let (reply, failed) = serve::complete(&mut called, entered).await;
    std::mem::swap(&mut exchange.transactions, &mut called.transactions);
    exchange.steps = called.steps;
    if let Some((kind, name)) = called.entry.metric() {
        core.metrics.finished(kind, name, called.started.elapsed(), failed);
    }
    Ok(*reply)
}

/// The request that the service gets.
fn request_of(client: &Client, outgoing: Outgoing) -> Request {
    let Outgoing { url, method, mut message, .. } = outgoing;
    // Each service has properties of its own.
    message.properties = Default::default();
    message.axis2 = Default::default();
    message.method = method.clone();
    let target = Bytes::copy_from_slice(path_of(&url).as_bytes());
    let line = RequestLine { method, target, secure: client.line.secure };
    Request { client: Rc::new(Client { line, protocol: PROTOCOL, ..client.clone() }), message }
}

fn admitted(core: &Rc<Core>, loaded: &Rc<Loaded>, request: Request) -> Admission {
    let Request { client, message } = request;
    let target = Target::of_line(&client.line);
    let host = || message.headers.get("Host");
    let dispatch = loaded.program.routes.dispatch(target.path, host, client.line.secure);
    admit_to(core, loaded, &client, &target, message, dispatch)
}

async fn answer(running: Running, request: Request) -> Message {
    let core = running.0.clone();
    let in_flight = core.metrics.enter();
    match admitted(&core, &core.program(), request) {
        Admission::Answer(message) => *message,
        Admission::Run(exchange, entered) => serve::answer(&core, in_flight, exchange, entered).await,
    }
}

/// `/services/A` of `local://services/A` and of `local:///services/A`.
fn path_of(url: &Arc<str>) -> String {
    format!("/{}", url.strip_prefix("local:").unwrap_or(url).trim_start_matches('/'))
}
