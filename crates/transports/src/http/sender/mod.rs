//! Calls backends over HTTP/1.1 and HTTP/2: a pool per core, streamed bodies in both directions, faults with their codes.

mod body;
mod connect;
mod exchange;
mod http2;
mod multiplexed;
mod passing;
mod pool;
mod request;
mod url;

use std::any::Any;
use std::rc::Rc;
use std::time::Duration;

use penstock_engine::ports::{LocalFuture, Outbound, Outgoing};
use penstock_engine::{Fault, Side, codes};
use penstock_message::{Body, BodyError, BodyStream, Form, Message, Method, SizeHint};

use super::http1::{Incoming, Socket, is_token};
use super::{HttpLimits, PerCore, SenderConfig};
pub(crate) use body::ReplyBody;
use connect::Connector;
pub(crate) use exchange::Exchange;
use exchange::{Allowance, Failure, Start};
use http2::Times;
use multiplexed::{Connection, Turn};
pub(crate) use passing::PassedRequest;
use pool::{Backend, Pool};
use url::Url;

/// A pooled connection that rested longer than this may be closed by the backend at this very moment, so a small body of a
/// request that may be repeated is kept until the reply begins, to be sent again. One used more recently is as good as
/// proven.
const FRESH: Duration = Duration::from_millis(500);

/// The sender of a core.
pub struct HttpSender {
    core: Rc<PerCore>,
    limits: Rc<HttpLimits>,
    config: SenderConfig,
    pool: Rc<Pool>,
    connector: Connector,
}

impl HttpSender {
    /// A sender with an empty pool. Call it inside a `LocalSet` or a local runtime.
    pub fn new(core: &Rc<PerCore>, config: SenderConfig) -> HttpSender {
        let pool = Pool::new(core, &config);
        HttpSender {
            core: core.clone(),
            limits: Rc::new(config.limits.clone()),
            connector: Connector::new(&config),
            pool,
            config,
        }
    }

    async fn exchange(&self, outgoing: &mut Outgoing) -> Result<Message, Fault> {
        let url = outgoing.url.clone();
        let url = Url::parse(&url)?;
        let allowance = Allowance::from_options(&self.core, &outgoing.options);
        // A flow may have made it up of what a client sent.
        if let Method::Other(method) = &outgoing.method
            && !is_token(method.as_bytes())
        {
            return Err(Fault::new(format!("`{method}` is not a method")));
        }
        let body = outgoing.message.body.take_to_send();
        // Boxed like all that is rare: each request carries the size of this future.
        let mut body = match self.prepare(body, outgoing)? {
            Prepared::Payload(payload) => payload,
            Prepared::Collect(head, rest) => Box::pin(self.collect(head, rest, outgoing.options.time_left)).await?,
        };
        let backend = self.pool.backend(&url, outgoing.options.tls.as_ref());
        if outgoing.options.http.http2 && !backend.multiplexed.declined.get() {
            match Box::pin(self.multiplexed(&url, outgoing, body, &backend, &allowance)).await? {
                Negotiated::Answer(reply) => return Ok(*reply),
                Negotiated::Http1(back) => body = back,
            }
        }
        let repeatable = is_idempotent(&outgoing.method);
        let mut may_reuse = !outgoing.options.http.close;
        loop {
            let pooled = if may_reuse { self.pool.take(&backend) } else { None };
            let reused = pooled.is_some();
            let wire = match pooled {
                Some((wire, rest)) => {
                    if rest > FRESH && repeatable {
                        body.keep_if_complete();
                    }
                    self.core.counters.reused.add(1);
                    wire
                }
                None => {
                    let socket = Box::pin(self.connect(&url, &backend, false, &allowance)).await?;
                    self.core.counters.connects.add(1);
                    self.pool.wire(socket, &self.limits, &self.config.timeouts)
                }
            };
            let again = if reused && repeatable { body.copy() } else { None };
            let framing = request::framing(&body, &outgoing.method);
            let mut head = self.core.take_scratch();
            request::write_head(&mut head, &url, outgoing, framing);
            let http = &outgoing.options.http;
            let start = Start {
                wire,
                head,
                framing,
                payload: body,
                keep: !http.close && !http.http10,
                to_head: outgoing.method == Method::Head,
                websocket: http.websocket,
                allowance,
                write_timeout: self.config.timeouts.write,
            };
            let mut exchange = Exchange::start(&self.core, &self.pool, &backend, start);
            match std::future::poll_fn(|cx| exchange.poll_head(cx)).await {
                Ok(head) => return exchange.into_reply(head, outgoing.options.one_way),
                // RFC 9110 §9.2.2: a proxy repeats nothing that might be done twice. A connection that closes before the
                // first byte of a reply was most likely closed while it was idle.
                Err(failure) => match again {
                    Some(copy) if failure == Failure::ClosedBeforeReply => {
                        body = copy;
                        may_reuse = false;
                    }
                    _ => return Err(failure.into_fault(&url, outgoing.options.response_timeout)),
                },
            }
        }
    }

    /// Sends over HTTP/2, unless TLS agrees on HTTP/1.1.
    async fn multiplexed(
        &self,
        url: &Url<'_>,
        outgoing: &Outgoing,
        mut body: Payload,
        backend: &Rc<Backend>,
        allowance: &Allowance,
    ) -> Result<Negotiated, Fault> {
        let all = &backend.multiplexed;
        let mut again = true;
        loop {
            let connection = match all.turn().await? {
                Turn::Use(connection) => connection,
                Turn::Decline => return Ok(Negotiated::Http1(body)),
                Turn::Open(opener) => match self.open(url, backend, allowance).await {
                    Ok(Some(connection)) => connection,
                    Ok(None) => return Ok(Negotiated::Http1(body)),
                    Err(fault) => {
                        opener.failed(&fault);
                        return Err(fault);
                    }
                },
            };
            let copy = if again { body.copy() } else { None };
            let times = Times { config: &self.config.timeouts, allowance };
            match http2::exchange(&self.core, &connection, url, outgoing, body, times).await {
                Ok(reply) => return Ok(Negotiated::Answer(Box::new(reply))),
                Err(failure) => match copy {
                    Some(copy) if matches!(failure, http2::Failure::Unprocessed(_)) => {
                        body = copy;
                        again = false;
                    }
                    _ => return Err(failure.into_fault(url, outgoing.options.response_timeout)),
                },
            }
        }
    }

    /// Connects within the time that connecting may take and what is left of the request's.
    async fn connect(
        &self,
        url: &Url<'_>,
        backend: &Backend,
        http2: bool,
        allowance: &Allowance,
    ) -> Result<Socket, Fault> {
        let time = allowance.connect.unwrap_or(self.config.timeouts.connect);
        let connecting = self.connector.connect(url, backend.tls.as_deref(), http2, time);
        let left = allowance.left(&self.core);
        if left > time {
            return connecting.await;
        }
        tokio::time::timeout(left, connecting).await.unwrap_or_else(|_| Err(Fault::deadline()))
    }

    /// Opens a connection for HTTP/2. One on which TLS agreed on HTTP/1.1 goes to those of that kind.
    async fn open(
        &self,
        url: &Url<'_>,
        backend: &Rc<Backend>,
        allowance: &Allowance,
    ) -> Result<Option<Rc<Connection>>, Fault> {
        let socket = self.connect(url, backend, true, allowance).await?;
        self.core.counters.connects.add(1);
        if url.secure && socket.alpn() != Some(b"h2") {
            let wire = self.pool.wire(socket, &self.limits, &self.config.timeouts);
            self.pool.give(backend, wire);
            backend.multiplexed.declined.set(true);
            return Ok(None);
        }
        backend.multiplexed.begin(socket, url, &self.config).await.map(Some)
    }

    /// Brings the body into a form that can be sent. The framing may demand its length.
    fn prepare(&self, form: Form, outgoing: &Outgoing) -> Result<Prepared, Fault> {
        Ok(Prepared::Payload(match form {
            Form::Empty => Payload::Empty,
            Form::Bytes(bytes) => Payload::Bytes(bytes),
            Form::Text(text) => Payload::Bytes(bytes::Bytes::copy_from_slice(text.as_bytes())),
            Form::Stream { head, rest } => {
                let needs_length = outgoing.options.http.content_length || outgoing.options.http.http10;
                if needs_length && rest.size_hint() == SizeHint::Unknown {
                    return Ok(Prepared::Collect(head, rest));
                }
                if head.is_empty() && rest.as_any().is_some_and(|any| any.is::<Incoming>()) {
                    let incoming = rest.into_any().downcast::<Incoming>();
                    Payload::Wire(*incoming.map_err(|_| Fault::new("the body stream has an unknown type"))?)
                } else {
                    Payload::Stream { head, rest }
                }
            }
            Form::Xml(_) | Form::Json(_) => return Err(Fault::new("the body was not serialized before it was sent")),
        }))
    }

    async fn collect(
        &self,
        head: bytes::Bytes,
        rest: Box<dyn BodyStream>,
        time_left: Duration,
    ) -> Result<Payload, Fault> {
        let limit = self.limits.collected_bytes_max;
        let mut body = Body::from_form(Form::Stream { head, rest });
        let collected = std::future::poll_fn(|cx| body.poll_pull(cx, usize::MAX, limit));
        tokio::time::timeout(time_left, collected).await.unwrap_or(Err(BodyError::Timeout))?;
        Ok(match body.take() {
            Form::Bytes(bytes) => Payload::Bytes(bytes),
            _ => Payload::Empty,
        })
    }
}

impl Outbound for HttpSender {
    fn send<'a>(&'a self, mut outgoing: Outgoing) -> LocalFuture<'a, Result<Message, Fault>> {
        // By reference: the future of an `async fn` would hold the request twice.
        Box::pin(async move { self.exchange(&mut outgoing).await })
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// A body before it is sent.
enum Prepared {
    Payload(Payload),
    /// It must be collected, because its length is needed.
    Collect(bytes::Bytes, Box<dyn BodyStream>),
}

/// What became of an offer to speak HTTP/2.
enum Negotiated {
    Answer(Box<Message>),
    /// The backend prefers HTTP/1.1; the body is still here.
    Http1(Payload),
}

/// A body on its way out.
pub(crate) enum Payload {
    Empty,
    Bytes(bytes::Bytes),
    /// The client's own body, moved from buffer to socket.
    Wire(Incoming),
    Stream {
        head: bytes::Bytes,
        rest: Box<dyn BodyStream>,
    },
}

impl Payload {
    /// The same once more, when it is all here.
    fn copy(&self) -> Option<Payload> {
        match self {
            Payload::Empty => Some(Payload::Empty),
            Payload::Bytes(bytes) => Some(Payload::Bytes(bytes.clone())),
            Payload::Wire(_) | Payload::Stream { .. } => None,
        }
    }

    /// Takes a client's body out of its read buffer when all of it is there.
    fn keep_if_complete(&mut self) {
        if let Payload::Wire(incoming) = self
            && let Some(bytes) = incoming.take_if_complete()
        {
            *self = if bytes.is_empty() { Payload::Empty } else { Payload::Bytes(bytes) };
        }
    }
}

/// Whether asking twice is the same as asking once (RFC 9110 §9.2.2).
pub(crate) fn is_idempotent(method: &Method) -> bool {
    match method {
        Method::Get | Method::Head | Method::Put | Method::Delete | Method::Options => true,
        Method::Post | Method::Patch => false,
        Method::Other(method) => matches!(&**method, "TRACE" | "PROPFIND"),
    }
}

/// A fault of the backend's side.
fn backend_fault(code: u32, message: impl Into<std::sync::Arc<str>>) -> Fault {
    debug_assert!(code >= codes::SENDER_IO_SENDING);
    Fault::coded(code, Side::Backend, message)
}
