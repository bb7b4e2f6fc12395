//! The reply of a service on its way to the client.

use std::any::Any;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use penstock_engine::Passage;
use penstock_message::{BodyStream, Form, Message, SizeHint};

use crate::http::PerCore;
use crate::http::http1::{
    BodyEncoder, Decoder, Framing, PumpError, ReplyHead, SharedWire, WireSource, announces_trailers, is_ours,
    poll_pump, poll_stream, push_decimal, push_fields, push_framing, push_lines,
};
use crate::http::reason::reason_phrase;
use crate::http::sender::{Exchange, ReplyBody};

/// The status that says that a path speaks another protocol.
const UPGRADE_REQUIRED: u16 = 426;

/// What decides how a reply is framed, from the side of the request.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplyTo {
    pub(super) is_head: bool,
    pub(super) is_http10: bool,
    /// Whether the connection stays open after the reply.
    pub(super) keep: bool,
}

/// Makes sure that the status ends an exchange: after another one a client waits for the reply that is still to come, or
/// takes what follows for another protocol.
pub(super) fn make_final(message: &mut Message) {
    let status = match message.status {
        200..=999 => return,
        100..=199 => 502,
        _ => 500,
    };
    (message.status, message.reason) = (status, None);
}

/// A reply that is being written.
pub(super) struct Reply {
    head: Vec<u8>,
    encoder: BodyEncoder,
    body: ReplyForm,
    pub(super) status: u16,
    pub(super) framing: Framing,
    /// `keep`: whether the connection may carry another exchange.
    pub(super) to: ReplyTo,
    /// Data of the response for the access log.
    pub(super) extension: Option<Rc<dyn Any>>,
}

enum ReplyForm {
    Empty,
    Bytes(Bytes),
    Wire(ReplyBody),
    Stream { head: Bytes, rest: Box<dyn BodyStream> },
}

/// The response of a backend that can be passed back as it is.
pub(super) struct Passing {
    /// Status line and fields, without those of the connection.
    head: Vec<u8>,
    framing: Framing,
    decoder: Decoder,
}

impl Reply {
    /// Frames a message and writes its head into the scratch buffer of the core.
    pub(super) fn new(core: &PerCore, mut message: Message, to: ReplyTo) -> Reply {
        let status = message.status;
        let (body, hint) = form_of(message.body.take_to_send());
        let forbidden = matches!(status, 204 | 304);
        let (framing, body) = match hint {
            _ if forbidden => (Framing::None, ReplyForm::Empty),
            SizeHint::Exact(size) => (Framing::Length(size), body),
            SizeHint::Unknown if to.is_http10 => (Framing::Close, body),
            SizeHint::Unknown => (Framing::Chunked, body),
        };
        let to = ReplyTo { keep: to.keep && framing != Framing::Close, ..to };
        let mut head = core.take_scratch();
        write_head(core, &mut head, status, &message, framing, to);
        let (body, encoder) = if to.is_head { (ReplyForm::Empty, Framing::None) } else { (body, framing) };
        Reply {
            head,
            encoder: BodyEncoder::new(encoder),
            body,
            status,
            framing,
            to,
            extension: message.extension.take(),
        }
    }

    /// Writes the head of a backend's response that no flow has to see. `None` when one has to: the response is changed on
    /// its way, ends with its connection, or may last for long.
    pub(super) fn begin_passing(core: &PerCore, exchange: &Exchange, reply: &ReplyHead) -> Option<Passing> {
        let facts = &reply.facts;
        if facts.names_fields || facts.close || reply.is_http10 || matches!(reply.status, ..200 | 204 | 304) {
            return None;
        }
        let decoder = Decoder::of_reply(reply.status, false, facts);
        let framing = match decoder {
            Decoder::Done => Framing::Length(0),
            Decoder::Length(length) => Framing::Length(length),
            Decoder::Chunked(_) => Framing::Chunked,
            Decoder::UntilClose | Decoder::Failed => return None,
        };
        let wire = exchange.wire.borrow();
        let bytes = &wire.buffer[..reply.length];
        let reason = &bytes[reply.reason.clone()];
        if !reason.iter().all(|byte| (b' '..0x7f).contains(byte)) {
            return None;
        }
        let mut head = core.take_scratch();
        head.extend_from_slice(b"HTTP/1.1 ");
        push_decimal(&mut head, u64::from(reply.status));
        head.push(b' ');
        head.extend_from_slice(reason);
        head.extend_from_slice(b"\r\n");
        let mut is_ordinary = true;
        push_lines(&mut head, bytes, &reply.fields, |name, value| {
            is_ordinary &= match name.len() {
                // The engine points a `Location` to itself.
                8 => !name.eq_ignore_ascii_case(b"Location"),
                12 => !(name.eq_ignore_ascii_case(b"Content-Type") && Message::names_long_lived(value)),
                _ => true,
            };
            (!is_ours(name) || announces_trailers(name, framing)) && Passage::forwards(name)
        });
        if !is_ordinary {
            core.give_scratch(head);
            return None;
        }
        Some(Passing { head, framing, decoder })
    }

    /// Whether not a byte of it was written, so that another reply can take its place.
    pub(super) fn is_unsent(&self) -> bool {
        !self.head.is_empty()
    }

    /// Writes as far as it goes.
    pub(super) fn poll_write(
        &mut self,
        core: &PerCore,
        wire: &SharedWire,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), PumpError>> {
        match &mut self.body {
            ReplyForm::Empty => self.poll_bytes(core, &Bytes::new(), wire, cx),
            ReplyForm::Bytes(bytes) => {
                let bytes = std::mem::take(bytes);
                self.poll_bytes(core, &bytes, wire, cx)
            }
            ReplyForm::Wire(source) => {
                let Some(from) = source.wire().cloned() else { return Poll::Ready(Ok(())) };
                let mut source = ReplySource { body: source, wire: from };
                let outcome = ready!(poll_pump(&mut source, wire, &mut self.encoder, &mut self.head, cx));
                if self.head.is_empty() {
                    core.give_scratch(std::mem::take(&mut self.head));
                }
                source.body.release_if_done();
                Poll::Ready(outcome)
            }
            ReplyForm::Stream { head, rest } => {
                poll_stream(head, rest.as_mut(), wire, &mut self.encoder, &mut self.head, cx)
            }
        }
    }

    fn poll_bytes(
        &mut self,
        core: &PerCore,
        bytes: &Bytes,
        wire: &SharedWire,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), PumpError>> {
        let mut wire = wire.borrow_mut();
        if !self.head.is_empty() {
            let sent = self.encoder.send(&mut wire, cx, &mut self.head, bytes);
            let sent = sent.and_then(|()| self.encoder.finish(&mut wire, cx, &mut self.head, None));
            core.give_scratch(std::mem::take(&mut self.head));
            sent.map_err(PumpError::Sink)?;
        }
        wire.poll_flush(cx).map_err(PumpError::Sink)
    }
}

impl Passing {
    /// Ends the head and begins the body.
    pub(super) fn pass_back(self, core: &PerCore, exchange: Exchange, reply: ReplyHead, keep: bool) -> Reply {
        let Passing { mut head, framing, decoder } = self;
        push_date(core, &mut head);
        push_framing(&mut head, framing);
        if !keep {
            head.extend_from_slice(b"Connection: close\r\n");
        }
        head.extend_from_slice(b"\r\n");
        let body = ReplyForm::Wire(exchange.into_body(&reply, decoder));
        core.give_fields(reply.fields);
        let to = ReplyTo { is_head: false, is_http10: false, keep };
        Reply { head, encoder: BodyEncoder::new(framing), body, status: reply.status, framing, to, extension: None }
    }
}

/// A reply body on a backend's wire, as the pump wants it.
struct ReplySource<'a> {
    body: &'a mut ReplyBody,
    wire: SharedWire,
}

impl WireSource for ReplySource<'_> {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, penstock_message::BodyError>> {
        self.body.poll_data(cx)
    }

    fn wire(&self) -> &SharedWire {
        &self.wire
    }
}

fn form_of(form: Form) -> (ReplyForm, SizeHint) {
    match form {
        Form::Empty => (ReplyForm::Empty, SizeHint::Exact(0)),
        Form::Bytes(bytes) => {
            let size = bytes.len() as u64;
            (ReplyForm::Bytes(bytes), SizeHint::Exact(size))
        }
        Form::Text(text) => form_of(Form::Bytes(Bytes::copy_from_slice(text.as_bytes()))),
        // The contract of `Service` excludes them; the client gets the status without a body.
        Form::Xml(_) | Form::Json(_) => (ReplyForm::Empty, SizeHint::Exact(0)),
        Form::Stream { head, rest } => {
            let hint = match rest.size_hint() {
                SizeHint::Exact(size) => SizeHint::Exact(size.saturating_add(head.len() as u64)),
                SizeHint::Unknown => SizeHint::Unknown,
            };
            if head.is_empty() && rest.as_any().is_some_and(|any| any.is::<ReplyBody>()) {
                return match rest.into_any().downcast::<ReplyBody>() {
                    Ok(body) => (ReplyForm::Wire(*body), hint),
                    Err(_) => (ReplyForm::Empty, SizeHint::Exact(0)),
                };
            }
            (ReplyForm::Stream { head, rest }, hint)
        }
    }
}

fn write_head(core: &PerCore, head: &mut Vec<u8>, status: u16, message: &Message, framing: Framing, to: ReplyTo) {
    head.extend_from_slice(b"HTTP/1.1 ");
    push_decimal(head, u64::from(status));
    head.push(b' ');
    let reason = message.reason.as_deref().unwrap_or_else(|| reason_phrase(status));
    head.extend(reason.bytes().filter(|byte| *byte >= b' ' && *byte != 0x7f));
    head.extend_from_slice(b"\r\n");
    let mut dated = false;
    push_fields(head, &message.headers, |name| {
        dated |= name.eq_ignore_ascii_case(b"date");
        !is_ours(name) || announces_trailers(name, framing)
    });
    if !dated {
        push_date(core, head);
    }
    push_framing(head, framing);
    let upgrade = || message.headers.get("Upgrade").is_some_and(|protocol| protocol.eq_ignore_ascii_case("websocket"));
    if status == UPGRADE_REQUIRED && upgrade() {
        // RFC 9110 §15.5.22: it says what to ask for.
        head.extend_from_slice(b"Connection: Upgrade\r\nUpgrade: websocket\r\n");
    }
    if !to.keep {
        head.extend_from_slice(b"Connection: close\r\n");
    } else if to.is_http10 {
        head.extend_from_slice(b"Connection: keep-alive\r\n");
    }
    head.extend_from_slice(b"\r\n");
}

fn push_date(core: &PerCore, head: &mut Vec<u8>) {
    head.extend_from_slice(b"Date: ");
    head.extend_from_slice(&core.date());
    head.extend_from_slice(b"\r\n");
}
