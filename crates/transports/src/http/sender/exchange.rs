//! One request on its way and the reply that comes back on the same wire.

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use penstock_engine::ports::SendOptions;
use penstock_engine::websocket::{self, SWITCHING_PROTOCOLS, Switched};
use penstock_engine::{Fault, Side, codes};
use penstock_message::{AbsentBody, Body, BodyError, BodyStream, HeaderBlock, Headers, Message};

use super::body::ReplyBody;
use super::pool::{Backend, Pool};
use super::url::Url;
use super::{Payload, backend_fault};
use crate::http::PerCore;
use crate::http::http1::{
    BodyEncoder, Decoder, Framing, HeadError, Incoming, PumpError, ReplyHead, SharedWire, describe, may_end_head,
    parse_reply_into, poll_pump, poll_stream, remove_named_by_connection,
};
use crate::http::reason::reason_phrase;

/// A reply body up to this size that came with its head is copied with it, so the connection is free at once.
const JOINED_BODY_MAX: usize = 2 * 1024;

/// Interim replies before the real one. Real backends send one or two.
const INTERIM_REPLIES_MAX: u32 = 16;

/// Why there is no reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Not one byte of a reply came before the connection closed.
    ClosedBeforeReply,
    /// Some came, not all of the head.
    ClosedInHead,
    /// Writing failed and no reply came.
    Sending(String),
    Receiving(String),
    TimedOut,
    /// The deadline of the whole request passed before the backend had its time.
    Deadline,
    /// The backend closed the connection while the client was still sending: it may have given the client up.
    GaveClientUp,
    Violation(HeadError),
    /// An unexpected interim reply, or too many.
    Interim(u16),
    /// The client's body could not be read.
    Body(BodyError),
}

impl Failure {
    pub(crate) fn into_fault(self, url: &Url<'_>, timeout: Duration) -> Fault {
        let backend = url.authority;
        match self {
            Failure::ClosedBeforeReply => {
                let message = format!("`{backend}` closed the connection before it answered");
                backend_fault(codes::CONNECTION_CLOSED, message).retryable()
            }
            Failure::ClosedInHead => backend_fault(
                codes::CONNECTION_CLOSED,
                format!("`{backend}` closed the connection within its response"),
            ),
            Failure::Sending(why) => {
                backend_fault(codes::SENDER_IO_SENDING, format!("sending to `{backend}` failed: {why}")).retryable()
            }
            Failure::Receiving(why) => {
                backend_fault(codes::SENDER_IO_RECEIVING, format!("receiving from `{backend}` failed: {why}"))
            }
            Failure::TimedOut => {
                backend_fault(codes::CONNECTION_TIMED_OUT, format!("`{backend}` did not respond within {timeout:?}"))
            }
            Failure::Deadline => Fault::deadline(),
            Failure::GaveClientUp => {
                let message = format!("`{backend}` closed the connection before the client had sent the whole body");
                Fault::coded(codes::CONNECTION_CLOSED, Side::Client, message).with_status(502)
            }
            Failure::Violation(error) => {
                backend_fault(codes::PROTOCOL_VIOLATION, format!("the response of `{backend}` is not HTTP: {error}"))
            }
            Failure::Interim(status) => {
                backend_fault(codes::PROTOCOL_VIOLATION, format!("`{backend}` answered with an unexpected {status}"))
            }
            Failure::Body(error) => Fault::from(error),
        }
    }
}

/// The request's body on its way.
pub(crate) enum Upload {
    /// Everything was handed to the wire.
    Done,
    Bytes(Bytes),
    Wire(Incoming),
    Stream {
        head: Bytes,
        rest: Box<dyn BodyStream>,
    },
    /// The backend stopped reading; its reply may still come.
    Broken {
        why: String,
        /// Whether it took nothing for as long as it may take to answer.
        is_late: bool,
    },
}

impl Upload {
    pub(crate) fn new(payload: Payload) -> Upload {
        match payload {
            Payload::Empty => Upload::Bytes(Bytes::new()),
            Payload::Bytes(bytes) => Upload::Bytes(bytes),
            Payload::Wire(incoming) => Upload::Wire(incoming),
            Payload::Stream { head, rest } => Upload::Stream { head, rest },
        }
    }
}

pub(crate) struct Exchange {
    core: Rc<PerCore>,
    pub(crate) wire: SharedWire,
    pool: Rc<Pool>,
    backend: Rc<Backend>,
    head: Vec<u8>,
    encoder: BodyEncoder,
    pub(super) upload: Upload,
    keep: bool,
    to_head: bool,
    /// Whether the answer may leave HTTP.
    websocket: bool,
    scanned: usize,
    interim: u32,
    allowance: Allowance,
    awaits: Awaits,
}

/// How long a request to a backend may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    /// From the end of the request to the head of the reply.
    pub(super) response: Duration,
    /// The connect timeout, if not the default.
    pub(super) connect: Option<Duration>,
    /// From `since` to the deadline of the client's request.
    total: Duration,
    /// A reading of the core's clock.
    since: u64,
}

impl Allowance {
    pub(super) fn new(core: &PerCore, response: Duration, total: Duration) -> Allowance {
        Allowance { response, connect: None, total, since: core.now_ticks() }
    }

    pub(super) fn from_options(core: &PerCore, options: &SendOptions) -> Allowance {
        let allowance = Allowance::new(core, options.response_timeout, options.time_left);
        Allowance { connect: options.connect_timeout, ..allowance }
    }

    /// The time until the deadline.
    pub(super) fn left(&self, core: &PerCore) -> Duration {
        self.total.saturating_sub(core.since(self.since))
    }
}

/// What an exchange starts with.
pub(super) struct Start {
    pub(super) wire: SharedWire,
    /// Request line and fields.
    pub(super) head: Vec<u8>,
    pub(super) framing: Framing,
    pub(super) payload: Payload,
    /// Whether the connection may carry another exchange afterwards.
    pub(super) keep: bool,
    pub(super) to_head: bool,
    /// Whether the answer may leave HTTP.
    pub(super) websocket: bool,
    pub(super) allowance: Allowance,
    pub(super) write_timeout: Duration,
}

/// Whose turn it is before the reply begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaits {
    /// The backend takes the request.
    Backend,
    /// The next piece of the client's body.
    Client,
    /// The reply: the request is sent. Whether the timer stands for the backend's own timeout.
    Reply { whole_timeout: bool },
}

impl Exchange {
    /// Starts a request on a connection of the pool's backend.
    pub(super) fn start(core: &Rc<PerCore>, pool: &Rc<Pool>, backend: &Rc<Backend>, start: Start) -> Exchange {
        let Start { wire, head, framing, payload, keep, to_head, websocket, allowance, write_timeout } = start;
        {
            let mut wire = wire.borrow_mut();
            wire.read_timer.arm(core, allowance.left(core));
            // A backend that takes nothing of the request is as late as one that does not answer.
            wire.write_timeout = write_timeout.min(allowance.response);
        }
        Exchange {
            core: core.clone(),
            wire,
            pool: pool.clone(),
            backend: backend.clone(),
            head,
            encoder: BodyEncoder::new(framing),
            upload: Upload::new(payload),
            keep,
            to_head,
            websocket,
            scanned: 0,
            interim: 0,
            allowance,
            awaits: Awaits::Backend,
        }
    }

    /// Sends as far as it goes and notes who is waited for.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        if matches!(self.awaits, Awaits::Reply { .. }) {
            // Reading goes on beside a flush that TLS has not ended.
            return match self.poll_upload(cx) {
                Poll::Ready(Err(error)) => Err(Failure::Body(error)),
                _ => Ok(()),
            };
        }
        match self.poll_upload(cx) {
            Poll::Ready(Err(error)) => return Err(Failure::Body(error)),
            Poll::Ready(Ok(())) => {
                if matches!(&self.upload, Upload::Broken { is_late: true, .. }) {
                    return Err(Failure::TimedOut);
                }
                if self.awaits == Awaits::Client && matches!(&self.upload, Upload::Broken { .. }) {
                    return Err(Failure::GaveClientUp);
                }
                let left = self.allowance.left(&self.core);
                let whole_timeout = self.allowance.response <= left;
                self.wire.borrow().read_timer.arm(&self.core, self.allowance.response.min(left));
                self.awaits = Awaits::Reply { whole_timeout };
            }
            Poll::Pending => {
                let is_flushed = self.wire.borrow().is_flushed();
                self.awaits = if is_flushed { Awaits::Client } else { Awaits::Backend };
            }
        }
        Ok(())
    }

    /// Sends, and waits for the head of the reply, which may come before everything is sent.
    pub(crate) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<ReplyHead, Failure>> {
        self.poll_send(cx)?;
        let mut wire = self.wire.borrow_mut();
        loop {
            if !wire.buffer.is_empty() && (self.scanned == 0 || may_end_head(&wire.buffer, self.scanned)) {
                match parse_reply_into(self.core.take_fields(), &wire.buffer, &wire.limits) {
                    Err(error) => return Poll::Ready(Err(Failure::Violation(error))),
                    Ok(Some(head)) if head.status < 200 && !(self.websocket && head.status == SWITCHING_PROTOCOLS) => {
                        self.interim += 1;
                        if head.status == SWITCHING_PROTOCOLS || self.interim > INTERIM_REPLIES_MAX {
                            return Poll::Ready(Err(Failure::Interim(head.status)));
                        }
                        wire.consume(head.length);
                        self.scanned = 0;
                        continue;
                    }
                    Ok(Some(head)) => {
                        wire.read_timer.disarm();
                        return Poll::Ready(Ok(head));
                    }
                    Ok(None) => {}
                }
            } else if wire.buffer.len() > wire.limits.head_bytes_max {
                return Poll::Ready(Err(Failure::Violation(HeadError::TooLong)));
            }
            self.scanned = wire.buffer.len();
            match wire.poll_fill(cx) {
                Poll::Ready(Ok(0)) => {
                    let nothing_came = wire.buffer.is_empty() && self.interim == 0;
                    return Poll::Ready(Err(match self.awaits {
                        Awaits::Client if nothing_came => Failure::GaveClientUp,
                        _ if nothing_came => Failure::ClosedBeforeReply,
                        _ => Failure::ClosedInHead,
                    }));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(self.failed_read(&error, wire.buffer.is_empty()))),
                Poll::Pending if wire.read_timer.poll_fired(cx) => {
                    return Poll::Ready(Err(match self.awaits {
                        Awaits::Client => Failure::Body(BodyError::Timeout),
                        Awaits::Reply { whole_timeout: true } => Failure::TimedOut,
                        Awaits::Backend | Awaits::Reply { .. } => Failure::Deadline,
                    }));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn failed_read(&self, error: &io::Error, nothing_came: bool) -> Failure {
        match (&self.upload, error.kind()) {
            _ if nothing_came && self.awaits == Awaits::Client => Failure::GaveClientUp,
            (_, io::ErrorKind::ConnectionReset) if nothing_came && self.interim == 0 => Failure::ClosedBeforeReply,
            (Upload::Broken { why, .. }, _) => Failure::Sending(why.clone()),
            _ => Failure::Receiving(describe(error)),
        }
    }

    /// Sends as much as goes now. Fails only when the client's body cannot be read.
    pub(super) fn poll_upload(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        let outcome = match &mut self.upload {
            Upload::Done => ready!(self.wire.borrow_mut().poll_flush(cx)).map_err(PumpError::Sink),
            Upload::Broken { .. } => return Poll::Ready(Ok(())),
            Upload::Bytes(bytes) => {
                let mut wire = self.wire.borrow_mut();
                let sent = self.encoder.send(&mut wire, cx, &mut self.head, bytes);
                let sent = sent.and_then(|()| self.encoder.finish(&mut wire, cx, &mut self.head, None));
                self.core.give_scratch(std::mem::take(&mut self.head));
                self.upload = Upload::Done;
                match sent {
                    Ok(()) => ready!(wire.poll_flush(cx)).map_err(PumpError::Sink),
                    Err(error) => Err(PumpError::Sink(error)),
                }
            }
            Upload::Wire(incoming) => {
                let outcome = ready!(poll_pump(incoming, &self.wire, &mut self.encoder, &mut self.head, cx));
                self.core.give_scratch(std::mem::take(&mut self.head));
                self.upload = Upload::Done;
                outcome
            }
            Upload::Stream { head, rest } => {
                let outcome =
                    ready!(poll_stream(head, rest.as_mut(), &self.wire, &mut self.encoder, &mut self.head, cx));
                self.upload = Upload::Done;
                outcome
            }
        };
        match outcome {
            Ok(()) => Poll::Ready(Ok(())),
            Err(PumpError::Source(error)) => {
                self.keep = false;
                Poll::Ready(Err(error))
            }
            // The backend may have answered before it closed; the reply is worth more than the error.
            Err(PumpError::Sink(error)) => {
                self.keep = false;
                let is_late = error.kind() == io::ErrorKind::TimedOut;
                self.upload = Upload::Broken { why: describe(&error), is_late };
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Starts the body of a reply whose head has just arrived and needs no message.
    pub(crate) fn into_body(self, head: &ReplyHead, decoder: Decoder) -> ReplyBody {
        {
            let mut wire = self.wire.borrow_mut();
            wire.begin_body(decoder, u64::MAX, false);
            wire.consume(head.length);
        }
        ReplyBody { exchange: Some(self) }
    }

    /// Makes the message of the reply whose head has just arrived.
    pub(crate) fn into_reply(mut self, head: ReplyHead, one_way: bool) -> Result<Message, Fault> {
        if head.status == SWITCHING_PROTOCOLS {
            return self.into_switched(head);
        }
        let facts = head.facts;
        let stays = if head.is_http10 { facts.keep_alive && !facts.close } else { !facts.close };
        self.keep &= stays;
        let mut wire = self.wire.borrow_mut();
        let decoder = Decoder::of_reply(head.status, self.to_head, &facts);
        self.keep &= !matches!(decoder, Decoder::UntilClose);
        // A reply that has no body and announces one: what may come next is not the next reply.
        self.keep &= head.status != 204 || (!facts.chunked && facts.content_length.unwrap_or(0) == 0);
        let joined = match &decoder {
            Decoder::Length(length) => usize::try_from(*length)
                .ok()
                .filter(|&length| length <= JOINED_BODY_MAX && wire.buffer.len() >= head.length + length),
            _ => None,
        };
        let block = Bytes::copy_from_slice(&wire.buffer[..head.length + joined.unwrap_or(0)]);
        let reason = std::str::from_utf8(&block[head.reason.clone()]).ok();
        let reason = reason.filter(|reason| *reason != reason_phrase(head.status)).map(Into::into);
        let absent = self.to_head && !matches!(head.status, 204 | 304);
        wire.begin_body(decoder, u64::MAX, false);
        wire.consume(head.length);
        if let Some(length) = joined {
            wire.take_data(length)?;
        }
        let is_done = wire.decoder.is_done();
        drop(wire);

        let body = match joined {
            Some(length) => Body::bytes(block.slice(head.length..head.length + length)),
            None if absent => Body::stream(Box::new(AbsentBody { length: facts.content_length })),
            None if is_done => Body::empty(),
            None if one_way => Body::empty(),
            None => {
                let wire = self.wire.clone();
                let body = Body::stream(Box::new(ReplyBody { exchange: Some(self) }));
                let reply = reply(head.status, reason, block, head.fields, facts.names_fields, body);
                wire.borrow_mut().may_be_quiet = reply.is_long_lived();
                return Ok(reply);
            }
        };
        if is_done {
            self.release();
        }
        Ok(reply(head.status, reason, block, head.fields, facts.names_fields, body))
    }

    /// Makes the message of a reply that leaves HTTP; the connection is its body.
    fn into_switched(self, head: ReplyHead) -> Result<Message, Fault> {
        let mut wire = self.wire.borrow_mut();
        let block = Bytes::copy_from_slice(&wire.buffer[..head.length]);
        wire.consume(head.length);
        drop(wire);
        let switched = Switched { connection: Box::new(self.wire), gate: None, held: Vec::new() };
        let message = reply(head.status, None, block, head.fields, head.facts.names_fields, switched.into_body());
        if !websocket::switches(&message.headers) {
            let why = "the backend switched to a protocol other than WebSocket";
            return Err(backend_fault(codes::PROTOCOL_VIOLATION, why));
        }
        Ok(message)
    }

    /// Gives the connection back to the pool when another exchange can follow on it.
    pub(super) fn release(self) {
        let Exchange { keep, wire, pool, backend, upload, .. } = self;
        let clean = {
            let wire = wire.borrow();
            // Bytes after the reply are an attack or a broken backend.
            wire.buffer.is_empty() && wire.is_flushed() && wire.decoder.is_done()
        };
        if keep && clean && matches!(upload, Upload::Done) {
            pool.give(&backend, wire);
        }
    }
}

fn reply(
    status: u16,
    reason: Option<std::sync::Arc<str>>,
    bytes: Bytes,
    fields: Vec<crate::http::http1::Field>,
    names_fields: bool,
    body: Body,
) -> Message {
    let mut headers = Headers::from_block(HeaderBlock { bytes, fields });
    if names_fields {
        remove_named_by_connection(&mut headers);
    }
    Message { headers, body, status, reason, ..Message::default() }
}
