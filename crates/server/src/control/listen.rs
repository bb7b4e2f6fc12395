//! The HTTPS port of the control plane. Operations block, so they run beside the management runtime, a few at a time.

use std::rc::Rc;
use std::sync::Arc;

use penstock_control::{BODY_BYTES_MAX, Control, Request as Call, Response};
use penstock_engine::ports::{Level, LocalFuture, Request, Service};
use penstock_message::{Body, Headers, Message};
use penstock_transports::http::{HttpListener, PerCore, Shutdown};
use tokio::sync::Semaphore;

use crate::adapter::error;
use crate::log::Log;
use crate::rest;

/// Operations at once: the database has one writer, and hashing a password takes 19 MiB.
const OPERATIONS_MAX: usize = 8;

/// Serves until the server stops.
pub async fn listen(listener: HttpListener, control: Arc<Control>, log: Arc<Log>, stop: Shutdown) {
    let service: Rc<dyn Service> = Rc::new(Operations { control, turns: Arc::new(Semaphore::new(OPERATIONS_MAX)) });
    if let Err(cause) = listener.serve(PerCore::start(), service, None, stop).await {
        log.say(Level::Error, "Control", &format!("the REST APIs ended: {cause}"));
    }
}

struct Operations {
    control: Arc<Control>,
    turns: Arc<Semaphore>,
}

impl Service for Operations {
    fn answer<'a>(&'a self, request: Request) -> LocalFuture<'a, Message> {
        Box::pin(self.respond(request))
    }
}

impl Operations {
    async fn respond(&self, request: Request) -> Message {
        let Request { client, mut message } = request;
        let Some(body) = rest::body(&mut message, BODY_BYTES_MAX).await else {
            let limit = format!("a body must not be larger than {} MiB", BODY_BYTES_MAX >> 20);
            return error(413, "Payload Too Large", &limit);
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let headers = message.headers.iter().map(|(name, value)| (text(name), text(value)));
        let call = Call {
            method: client.line.method.as_str().to_owned(),
            path: client.line.path().to_owned(),
            query: client.line.query().unwrap_or_default().to_owned(),
            headers: headers.collect(),
            body,
            client: client.address,
        };
        let Ok(turn) = self.turns.clone().acquire_owned().await else {
            return error(503, "Service Unavailable", "the server is stopping");
        };
        let control = self.control.clone();
        let answer = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            control.respond(&call)
        });
        match answer.await {
            Ok(response) => message_of(response),
            Err(_) => error(500, "Internal Server Error", "the operation failed"),
        }
    }
}

fn message_of(response: Response) -> Message {
    let mut headers = Headers::new();
    for (name, value) in response.headers {
        // `Set-Cookie` may come several times.
        headers.append(name, value);
    }
    let body = if response.body.is_empty() { Body::default() } else { Body::bytes(response.body) };
    Message { headers, body, status: response.status, ..Message::default() }
}
