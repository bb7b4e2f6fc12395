//! The local transport, `local:///services/NAME`: a service of this process, called without a socket.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use penstock_message::{Message, RequestLine};

use crate::admit::{Admission, admit_to};
use crate::core::Core;
use crate::ports::{Client, Outgoing, Request};
use crate::{Fault, Side, codes, serve};

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

/// Calls the service at the path of the address, on behalf of a client.
pub(crate) async fn call(core: &Rc<Core>, client: &Client, outgoing: Outgoing) -> Result<Message, Fault> {
    if core.local_calls.get() >= CALLS_MAX {
        let text = format!("more than {CALLS_MAX} local calls run at once: a service calls itself");
        return Err(Fault::coded(codes::SENDER_IO_SENDING, Side::Us, text));
    }
    core.local_calls.set(core.local_calls.get() + 1);
    let running = Running(core.clone());
    let Outgoing { url, method, mut message, options } = outgoing;
    // Each service has properties of its own.
    message.properties = Default::default();
    message.axis2 = Default::default();
    message.method = method.clone();
    let path = path_of(&url);
    let line = RequestLine { method, target: Bytes::copy_from_slice(path.as_bytes()), secure: client.line.secure };
    let client = Rc::new(Client { line, protocol: PROTOCOL, ..client.clone() });
    // A task of its own, so that a service that calls itself does not nest the stack.
    let task = tokio::task::spawn_local(answer(running, Request { client, message }));
    let late = || {
        let text = format!("the local service {path} did not respond in time");
        Fault::coded(codes::CONNECTION_TIMED_OUT, Side::Backend, text)
    };
    let limit = options.response_timeout.min(options.time_left);
    let ended = tokio::time::timeout(limit, task).await.map_err(|_| late())?;
    ended.map_err(|error| Fault::coded(codes::SENDER_IO_RECEIVING, Side::Backend, error.to_string()))
}

async fn answer(running: Running, request: Request) -> Message {
    let core = running.0.clone();
    let loaded = core.program();
    let line = &request.client.line;
    let host = || request.message.headers.get("Host");
    let dispatch = loaded.program.routes.dispatch(line.path(), host, line.secure);
    let in_flight = core.metrics.enter();
    match admit_to(&core, &loaded, request, dispatch) {
        Admission::Answer(message) => *message,
        Admission::Run(exchange, entered) => serve::answer(&core, in_flight, exchange, entered).await,
    }
}

/// `/services/A` of `local://services/A` and of `local:///services/A`.
fn path_of(url: &Arc<str>) -> String {
    format!("/{}", url.strip_prefix("local:").unwrap_or(url).trim_start_matches('/'))
}
