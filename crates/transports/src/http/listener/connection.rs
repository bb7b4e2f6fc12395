//! One client connection: requests in, replies out, in order.

use std::any::Any;
use std::cell::RefCell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use penstock_engine::ports::{Client, Request};
use penstock_engine::websocket::{self, SWITCHING_PROTOCOLS, Switched};
use penstock_message::{Body, BodyError, HeaderBlock, Headers, Message, Method, RequestLine};
use tokio::io::AsyncWrite;

use super::passing::{Unfinished, joined_length};
use super::reply::{Reply, ReplyTo, make_final};
use super::{AccessEntry, OnDrop, Shared};
use crate::http::http1::{
    Decoder, Framing, HeadError, Incoming, PumpError, RequestHead, SharedWire, Socket, Wire, may_end_head,
    parse_request_into, remove_named_by_connection,
};
use crate::http::per_core::Timer;

/// A body up to this size that came with its head is copied with it: one block instead of a stream.
pub(super) const JOINED_BODY_MAX: usize = 2 * 1024;

/// Empty lines before a request line that are skipped (RFC 9112 §2.2 requires one).
const EMPTY_LINES_MAX: usize = 4;

/// How long a connection of a listener that ends may still begin its first request. A client that connected just before
/// has sent it, or is about to.
const FIRST_WHILE_DRAINING: Duration = Duration::from_secs(1);

/// What HTTP/2 begins with (RFC 9113 §3.4); no request of HTTP/1 does.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) struct Connection {
    pub(super) wire: SharedWire,
    peer: SocketAddr,
    local: SocketAddr,
    secure: bool,
    certificate: Option<Arc<[u8]>>,
    pub(super) shared: Rc<Shared>,
}

/// What the service made of a request.
struct Answered {
    message: Message,
    to: ReplyTo,
    record: Option<Box<AccessRecord>>,
    asks_for_websocket: bool,
}

/// What a request leaves for the access log.
struct AccessRecord {
    client: Rc<Client>,
    start: Instant,
    request_headers: Option<Headers>,
}

impl AccessRecord {
    fn write(
        &self,
        connection: &Connection,
        status: u16,
        body_bytes: Option<u64>,
        complete: bool,
        extension: Option<&Rc<dyn Any>>,
    ) {
        let Some(access) = &connection.shared.access else { return };
        access.record(&AccessEntry {
            address: self.client.address,
            peer: connection.peer,
            line: &self.client.line,
            protocol: self.client.protocol,
            status,
            body_bytes,
            took: self.start.elapsed(),
            complete,
            request_headers: self.request_headers.as_ref(),
            extension,
        });
    }
}

/// What a head turned into.
enum Next {
    Request(RequestHead),
    /// The client speaks HTTP/2.
    Http2,
    /// Close without a response.
    Close,
    Refuse(u16, &'static str),
}

impl Connection {
    pub(super) fn new(socket: Socket, peer: SocketAddr, local: SocketAddr, shared: &Rc<Shared>) -> Connection {
        let secure = matches!(socket, Socket::Tls(_));
        let certificate = socket.peer_certificate();
        let timeouts = &shared.config.timeouts;
        let wire = Wire::new(socket, &shared.core, &shared.limits, timeouts.body, timeouts.write);
        Connection { wire: Rc::new(RefCell::new(wire)), peer, local, secure, certificate, shared: shared.clone() }
    }

    /// Answers requests until the connection ends. A client that begins HTTP/2 without asking gets it: what was
    /// read and the socket come back.
    pub(super) async fn serve(self) -> Option<(Socket, BytesMut)> {
        let may_be_http2 = self.shared.config.http2;
        let mut waiting = Waiting { is_first: true, may_be_http2, ..Waiting::default() };
        loop {
            match poll_fn(|cx| self.poll_request(cx, &mut waiting)).await {
                Next::Close => return None,
                Next::Refuse(status, why) => {
                    self.refuse(status, why).await;
                    return None;
                }
                Next::Http2 => return Rc::into_inner(self.wire).map(|wire| wire.into_inner().into_parts()),
                Next::Request(head) => {
                    if !self.exchange(head).await {
                        return None;
                    }
                }
            }
            waiting = Waiting::default();
        }
    }

    /// Waits for a complete head.
    fn poll_request(&self, cx: &mut Context<'_>, waiting: &mut Waiting) -> Poll<Next> {
        let mut wire = self.wire.borrow_mut();
        let timeouts = &self.shared.config.timeouts;
        loop {
            while waiting.empty_lines < EMPTY_LINES_MAX && wire.buffer.starts_with(b"\r\n") {
                wire.consume(2);
                waiting.empty_lines += 1;
            }
            let length = wire.buffer.len();
            let preface = if waiting.may_be_http2 { length.min(PREFACE.len()) } else { 0 };
            if preface > 0 && wire.buffer[..preface] == PREFACE[..preface] {
                if preface == PREFACE.len() {
                    wire.read_timer.disarm();
                    return Poll::Ready(Next::Http2);
                }
            } else if length > 0 && (waiting.scanned == 0 || may_end_head(&wire.buffer, waiting.scanned)) {
                match parse_request_into(wire.core.take_fields(), &wire.buffer, &self.shared.limits) {
                    Ok(Some(head)) => {
                        wire.read_timer.disarm();
                        return Poll::Ready(Next::Request(head));
                    }
                    Ok(None) => {}
                    Err(error) => return Poll::Ready(refusal(error)),
                }
            } else if length > self.shared.limits.head_bytes_max {
                return Poll::Ready(refusal(HeadError::TooLong));
            }
            waiting.scanned = length;
            match wire.poll_fill(cx) {
                Poll::Ready(Ok(1..)) => continue,
                Poll::Ready(_) => return Poll::Ready(Next::Close),
                Poll::Pending => {}
            }
            if length == 0 && self.shared.draining.get() {
                if !waiting.is_first {
                    return Poll::Ready(Next::Close);
                }
                if !waiting.for_last {
                    (waiting.for_first, waiting.for_last) = (true, true);
                    wire.read_timer.arm(&self.shared.core, FIRST_WHILE_DRAINING.min(timeouts.idle));
                }
            }
            if length > 0 && !waiting.for_rest {
                waiting.for_rest = true;
                wire.read_timer.arm(&self.shared.core, timeouts.head);
            } else if length == 0 && !waiting.for_first {
                waiting.for_first = true;
                wire.read_timer.arm(&self.shared.core, timeouts.idle);
            }
            if !wire.read_timer.poll_fired(cx) {
                return Poll::Pending;
            }
            return Poll::Ready(if length == 0 {
                Next::Close
            } else {
                Next::Refuse(408, "the head did not arrive in time")
            });
        }
    }

    /// Answers one request; whether another may follow.
    async fn exchange(&self, head: RequestHead) -> bool {
        let core = &self.shared.core;
        if head.facts.content_length.is_some_and(|length| length > self.shared.limits.body_bytes_max) {
            self.refuse(413, "the body is too large").await;
            return false;
        }
        let begun = core.now_ticks();
        core.counters.requests.add(1);
        core.counters.in_flight.add(1);
        let ended = OnDrop(|| core.counters.in_flight.subtract(1));

        let mut record = None;
        let (mut reply, bounded) = match self.passage(&head) {
            Some((passage, method)) => {
                let request = self.take_passed(head, passage, method);
                let sent = self.pass_on(&request).await;
                match self.pass_back(request, sent) {
                    Ok(reply) => (reply, true),
                    Err(unfinished) => {
                        let Unfinished { request, passage, outcome } = *unfinished;
                        let message = self.shared.service.resume(request, passage, outcome).await;
                        self.frame(message, ReplyTo { is_head: false, is_http10: false, keep: true })
                    }
                }
            }
            None => {
                let answered = self.answer(head).await;
                record = answered.record;
                let mut message = answered.message;
                if answered.asks_for_websocket
                    && message.status == SWITCHING_PROTOCOLS
                    && let Some(switched) = Switched::take(&mut message.body)
                {
                    drop(ended);
                    let carried = Box::pin(self.switch(&message.headers, *switched)).await;
                    if let Some(record) = record {
                        let (sent, extension) = (Some(carried.bytes_to_client), message.extension.as_ref());
                        record.write(self, message.status, sent, carried.complete, extension);
                    }
                    return false;
                }
                self.frame(message, answered.to)
            }
        };
        let mut outcome = self.write(&mut reply, bounded.then_some(begun)).await;
        if let Err(PumpError::Source(error)) = &outcome
            && reply.is_unsent()
        {
            // Nothing of the reply is sent, so that an error can take its place.
            let status = if *error == BodyError::Timeout { 504 } else { 502 };
            let to = ReplyTo { keep: false, ..reply.to };
            reply = Reply::new(core, plain(status, &error.to_string()), to);
            outcome = poll_fn(|cx| reply.poll_write(core, &self.wire, cx)).await;
        }
        core.counters.replied(reply.status);
        if let Some(record) = record {
            let body_bytes = match reply.framing {
                Framing::Length(length) => Some(length),
                Framing::None => Some(0),
                Framing::Chunked | Framing::Close => None,
            };
            record.write(self, reply.status, body_bytes, outcome.is_ok(), reply.extension.as_ref());
        }
        let (keep, reply_ends_with_connection) = (reply.to.keep, reply.framing == Framing::Close);
        drop(reply);
        match outcome {
            Ok(()) if keep && self.wire.borrow().decoder.is_done() => true,
            Ok(()) if keep => poll_fn(|cx| self.poll_drain(cx)).await,
            Ok(()) => {
                self.close().await;
                false
            }
            // The length was promised; cutting the connection is the only way to say that it is not kept.
            Err(PumpError::Source(error)) => {
                if error == BodyError::Timeout || reply_ends_with_connection {
                    // A close would look like the end of the reply.
                    let _ = self.wire.borrow_mut().socket().tcp().set_zero_linger();
                }
                false
            }
            Err(PumpError::Sink(_)) => false,
        }
    }

    /// Has the service answer a request.
    async fn answer(&self, head: RequestHead) -> Answered {
        let start = self.shared.access.as_ref().map(|_| Instant::now());
        let facts = head.facts;
        let is_http10 = head.is_http10;
        let wants_keep = if is_http10 { facts.keep_alive && !facts.close } else { !facts.close };
        let request = self.request(head);
        let is_head = request.client.line.method == Method::Head;
        let asks_for_websocket = facts.names_fields
            && self.wire.borrow().decoder.is_done()
            && websocket::is_asked_for(&request.client, &request.message.headers);
        let record = start.map(|start| {
            let wants_headers = self.shared.access.as_ref().is_some_and(|access| access.wants_headers());
            let request_headers = wants_headers.then(|| request.message.headers.clone());
            Box::new(AccessRecord { client: request.client.clone(), start, request_headers })
        });
        let message = self.shared.service.answer(request).await;
        Answered { message, to: ReplyTo { is_head, is_http10, keep: wants_keep }, record, asks_for_websocket }
    }

    /// Frames the service's message. Also whether the reply must be written within the deadline.
    fn frame(&self, mut message: Message, mut to: ReplyTo) -> (Reply, bool) {
        make_final(&mut message);
        to.keep = to.keep && !self.shared.draining.get() && self.body_can_end();
        let message = self.replace_if_body_failed(message, &mut to);
        let bounded = !message.is_long_lived();
        (Reply::new(&self.shared.core, message, to), bounded)
    }

    /// Writes a reply; when `begun` is given, until the deadline of the request that began then.
    async fn write(&self, reply: &mut Reply, begun: Option<u64>) -> Result<(), PumpError> {
        let core = &self.shared.core;
        let mut timer: Option<Rc<Timer>> = None;
        poll_fn(|cx| {
            if let Poll::Ready(outcome) = reply.poll_write(core, &self.wire, cx) {
                return Poll::Ready(outcome);
            }
            let Some(begun) = begun else { return Poll::Pending };
            // Most replies never wait.
            let timer = timer.get_or_insert_with(|| {
                let timer = core.timer();
                timer.arm(core, self.shared.config.timeouts.deadline.saturating_sub(core.since(begun)));
                timer
            });
            if timer.poll_fired(cx) { Poll::Ready(Err(PumpError::Source(BodyError::Timeout))) } else { Poll::Pending }
        })
        .await
    }

    /// Takes the head off the wire and makes the request of it.
    fn request(&self, head: RequestHead) -> Request {
        let mut wire = self.wire.borrow_mut();
        let facts = head.facts;
        let joined = joined_length(&head, wire.buffer.len());
        let block = Bytes::copy_from_slice(&wire.buffer[..head.length + joined.unwrap_or(0)]);
        let waits = facts.expect_continue && !head.is_http10;
        wire.begin_body(Decoder::of_request(&facts), self.shared.limits.body_bytes_max, waits);
        wire.consume(head.length);
        if let Some(length) = joined {
            // A length that was announced cannot exceed its limit any more.
            let _ = wire.take_data(length);
        }
        let is_done = wire.decoder.is_done();
        drop(wire);
        self.request_of(head, block, joined, is_done)
    }

    /// Makes the request of a head and the bytes that were taken with it: the head, and a body that came with it.
    pub(super) fn request_of(&self, head: RequestHead, block: Bytes, joined: Option<usize>, is_done: bool) -> Request {
        let facts = head.facts;
        let text = |range: std::ops::Range<usize>| std::str::from_utf8(&block[range]).unwrap_or_default();
        let method = Method::parse(text(head.method));
        let target = if head.target.is_empty() { Bytes::from_static(b"/") } else { block.slice(head.target) };
        let line = RequestLine { method: method.clone(), target, secure: self.secure };
        let protocol = if head.is_http10 { "HTTP/1.0" } else { "HTTP/1.1" };
        let body = match joined {
            Some(length) => Body::bytes(block.slice(head.length..head.length + length)),
            None if is_done => Body::empty(),
            None => Body::stream(Box::new(Incoming::new(&self.wire))),
        };
        let authority = head.authority.map(text).map(str::to_owned);
        let mut headers = Headers::from_block(HeaderBlock { bytes: block, fields: head.fields });
        let address = self.shared.config.trusted_proxies.client_address(self.peer.ip(), &headers);
        if facts.names_fields {
            remove_named_by_connection(&mut headers);
        }
        if let Some(authority) = authority {
            // RFC 9112 §3.2.2: the authority of an absolute target is the one that counts.
            headers.set("Host", authority);
        }
        Request {
            client: Rc::new(Client {
                line,
                address,
                peer: self.peer,
                local: self.local,
                protocol,
                certificate: self.certificate.clone(),
            }),
            message: Message { headers, body, method, ..Message::default() },
        }
    }

    /// Whether the client came over TLS.
    pub(super) fn is_secure(&self) -> bool {
        self.secure
    }

    /// Whether what is left of the request's body is worth reading to keep the connection.
    pub(super) fn body_can_end(&self) -> bool {
        let wire = self.wire.borrow();
        match &wire.decoder {
            Decoder::Done => true,
            // The client waits for `100 Continue` and may or may not send its body after a final reply.
            _ if wire.continue_due => false,
            Decoder::Length(left) => *left <= self.shared.limits.drain_bytes_max,
            Decoder::Chunked(_) => true,
            Decoder::UntilClose | Decoder::Failed => false,
        }
    }

    /// A request with a broken body gets the reply for it, with any result of the service.
    fn replace_if_body_failed(&self, message: Message, to: &mut ReplyTo) -> Message {
        let wire = self.wire.borrow();
        let Some(error) = &wire.body_error else { return message };
        to.keep = false;
        let status = match error {
            BodyError::TooLarge { .. } => 413,
            BodyError::Timeout => 408,
            _ => 400,
        };
        if message.status < 400 { message } else { plain(status, &error.to_string()) }
    }

    fn poll_drain(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut wire = self.wire.borrow_mut();
        loop {
            match ready!(wire.poll_data(cx)) {
                Ok(0) => return Poll::Ready(true),
                Ok(count) => {
                    wire.drained_bytes += count as u64;
                    if wire.take_data(count).is_err() || wire.drained_bytes > self.shared.limits.drain_bytes_max {
                        return Poll::Ready(false);
                    }
                }
                Err(_) => return Poll::Ready(false),
            }
        }
    }

    async fn refuse(&self, status: u16, why: &str) {
        let core = &self.shared.core;
        core.counters.refused.add(1);
        core.counters.replied(status);
        let to = ReplyTo { is_head: false, is_http10: false, keep: false };
        let mut reply = Reply::new(core, plain(status, why), to);
        if poll_fn(|cx| reply.poll_write(core, &self.wire, cx)).await.is_ok() {
            self.close().await;
        }
    }

    /// Closes so that the client can read the reply: closing with unread bytes would reset the connection and
    /// throw the reply away (RFC 9112 §9.6).
    async fn close(&self) {
        let shutdown = poll_fn(|cx| Pin::new(self.wire.borrow_mut().socket()).poll_shutdown(cx));
        let linger = async {
            if shutdown.await.is_ok() {
                let mut read = 0;
                poll_fn(|cx| self.poll_linger(cx, &mut read)).await;
            }
        };
        // Boxed, because every idle connection would otherwise reserve the room for it.
        let _ = Box::pin(tokio::time::timeout(self.shared.config.timeouts.linger, linger)).await;
    }

    /// Reads until the client closes or has sent more than is worth reading.
    fn poll_linger(&self, cx: &mut Context<'_>, read: &mut u64) -> Poll<()> {
        let mut wire = self.wire.borrow_mut();
        while *read < self.shared.limits.drain_bytes_max {
            let waste = wire.buffer.len();
            wire.consume(waste);
            match ready!(wire.poll_fill(cx)) {
                Ok(count @ 1..) => *read += count as u64,
                _ => break,
            }
        }
        Poll::Ready(())
    }
}

#[derive(Default)]
struct Waiting {
    may_be_http2: bool,
    scanned: usize,
    empty_lines: usize,
    for_first: bool,
    for_rest: bool,
    /// Whether no request came before.
    is_first: bool,
    /// Whether the timer runs for a first request while the listener drains.
    for_last: bool,
}

fn refusal(error: HeadError) -> Next {
    Next::Refuse(
        error.status(),
        match error {
            HeadError::TooLong => "the head is too large",
            HeadError::TooManyFields => "the head has too many fields",
            _ => "the head is malformed",
        },
    )
}

pub(super) fn plain(status: u16, why: &str) -> Message {
    let mut headers = Headers::new();
    headers.set("Content-Type", "text/plain");
    Message { status, headers, body: Body::bytes(format!("{why}\n")), ..Message::default() }
}
