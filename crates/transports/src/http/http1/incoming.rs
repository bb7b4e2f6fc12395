//! The body of the message that arrives on a wire.

use std::any::Any;
use std::cell::Ref;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use penstock_message::{BodyError, BodyStream, HeaderBlock, Headers, SizeHint};

use super::chunked::{ChunkDecoder, ChunkStep};
use super::head::Facts;
use super::outgoing::WireSource;
use super::wire::{SharedWire, Wire};

/// Pieces up to this size are copied out of the read buffer, so that keeping them does not keep the buffer.
const COPIED_BYTES_MAX: usize = 16 * 1024;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Where the body of an incoming message stands.
#[derive(Debug)]
pub(crate) enum Decoder {
    /// No more of it.
    Done,
    /// So many bytes to come, more than zero.
    Length(u64),
    Chunked(ChunkDecoder),
    UntilClose,
    /// The framing broke; nothing after it can be understood.
    Failed,
}

impl Decoder {
    /// How the body of a request with these fields is framed.
    pub(crate) fn of_request(facts: &Facts) -> Decoder {
        match facts.content_length {
            _ if facts.chunked => Decoder::Chunked(ChunkDecoder::default()),
            None | Some(0) => Decoder::Done,
            Some(length) => Decoder::Length(length),
        }
    }

    /// How the body of a reply with these fields is framed, RFC 9112 §6.3.
    pub(crate) fn of_reply(status: u16, to_head: bool, facts: &Facts) -> Decoder {
        if to_head || matches!(status, 100..=199 | 204 | 304) {
            return Decoder::Done;
        }
        match facts.content_length {
            None if !facts.chunked => Decoder::UntilClose,
            _ => Decoder::of_request(facts),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Decoder::Done)
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        match self {
            Decoder::Done => SizeHint::Exact(0),
            Decoder::Length(left) => SizeHint::Exact(*left),
            Decoder::Chunked(_) | Decoder::UntilClose | Decoder::Failed => SizeHint::Unknown,
        }
    }
}

impl Wire {
    /// Starts the body of a new message.
    pub(crate) fn begin_body(&mut self, decoder: Decoder, body_bytes_max: u64, continue_due: bool) {
        self.decoder = decoder;
        self.trailers = None;
        self.message = self.message.wrapping_add(1);
        self.continue_due = continue_due;
        self.body_error = None;
        self.drained_bytes = 0;
        self.body_bytes = 0;
        self.body_bytes_max = body_bytes_max;
        self.read_waits = false;
        self.may_be_quiet = false;
    }

    /// How many bytes of the body lie at the start of the read buffer; 0 at its end, `None` when more must be read.
    pub(crate) fn decode(&mut self) -> Result<Option<usize>, BodyError> {
        match &mut self.decoder {
            Decoder::Done => Ok(Some(0)),
            Decoder::Failed => Err(BodyError::Incomplete("its framing broke".into())),
            _ if self.buffer.is_empty() => Ok(None),
            Decoder::Length(left) => {
                Ok(Some(usize::try_from(*left).map_or(self.buffer.len(), |left| left.min(self.buffer.len()))))
            }
            Decoder::UntilClose => Ok(Some(self.buffer.len())),
            Decoder::Chunked(chunks) => match chunks.step(&self.buffer, &self.limits) {
                Err(error) => Err(self.fail(BodyError::Malformed(error.to_string()))),
                Ok(ChunkStep::More { skip }) => {
                    self.consume(skip);
                    Ok(None)
                }
                Ok(ChunkStep::Data { skip, left }) => {
                    self.consume(skip);
                    let here = usize::try_from(left).map_or(self.buffer.len(), |left| left.min(self.buffer.len()));
                    Ok(if here == 0 { None } else { Some(here) })
                }
                Ok(ChunkStep::End { skip, trailers_at, trailers }) => {
                    if !trailers.is_empty() {
                        let bytes = Bytes::copy_from_slice(&self.buffer[trailers_at..skip]);
                        self.trailers = Some(Headers::from_block(HeaderBlock { bytes, fields: trailers }));
                    }
                    self.consume(skip);
                    self.decoder = Decoder::Done;
                    Ok(Some(0))
                }
            },
        }
    }

    /// Waits for body bytes at the start of the read buffer and says how many there are; 0 at the end.
    pub(crate) fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, BodyError>> {
        loop {
            if let Some(count) = self.decode()? {
                return Poll::Ready(Ok(count));
            }
            if !ready!(self.poll_read_on(cx))? && self.buffer.is_empty() {
                self.decoder = Decoder::Done;
            }
        }
    }

    /// Reads more of the body into the read buffer; `false` when it ended with the connection.
    pub(super) fn poll_read_on(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, BodyError>> {
        if std::mem::take(&mut self.continue_due)
            && let Err(error) = self.send(cx, &[CONTINUE])
        {
            return Poll::Ready(Err(self.fail(BodyError::Incomplete(error.to_string()))));
        }
        if !self.is_flushed()
            && let Poll::Ready(Err(error)) = self.poll_flush(cx)
        {
            return Poll::Ready(Err(self.fail(BodyError::Incomplete(error.to_string()))));
        }
        match self.poll_fill(cx) {
            Poll::Ready(Ok(0)) if matches!(self.decoder, Decoder::UntilClose) => Poll::Ready(Ok(false)),
            Poll::Ready(Ok(0)) => {
                let error = BodyError::Incomplete("the connection was closed".into());
                Poll::Ready(Err(self.fail(error)))
            }
            Poll::Ready(Ok(_)) => {
                self.read_waits = false;
                Poll::Ready(Ok(true))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(self.fail(BodyError::Incomplete(describe(&error))))),
            Poll::Pending => {
                if !self.read_waits {
                    self.read_waits = true;
                    let wait = if self.may_be_quiet { self.quiet_timeout } else { self.read_timeout };
                    self.read_timer.arm(&self.core, wait);
                }
                if self.read_timer.poll_fired(cx) {
                    return Poll::Ready(Err(self.fail(BodyError::Timeout)));
                }
                Poll::Pending
            }
        }
    }

    /// Takes `count` of the bytes that [`Wire::poll_data`] announced.
    pub(crate) fn take_data(&mut self, count: usize) -> Result<(), BodyError> {
        self.consume(count);
        self.note_taken(count)
    }

    fn note_taken(&mut self, count: usize) -> Result<(), BodyError> {
        let bytes = count as u64;
        match &mut self.decoder {
            Decoder::Length(left) if *left <= bytes => self.decoder = Decoder::Done,
            Decoder::Length(left) => *left -= bytes,
            Decoder::Chunked(chunks) => {
                chunks.consumed(bytes);
                self.body_bytes += bytes;
                if self.body_bytes > self.body_bytes_max {
                    let limit_bytes = usize::try_from(self.body_bytes_max).unwrap_or(usize::MAX);
                    return Err(self.fail(BodyError::TooLarge { limit_bytes }));
                }
            }
            Decoder::Done | Decoder::UntilClose | Decoder::Failed => {}
        }
        Ok(())
    }

    /// Body bytes as a slice of their own.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let count = match ready!(self.poll_data(cx)) {
            Ok(0) => return Poll::Ready(None),
            Ok(count) => count,
            Err(error) => return Poll::Ready(Some(Err(error))),
        };
        let chunk = if count <= COPIED_BYTES_MAX {
            let copy = Bytes::copy_from_slice(&self.buffer[..count]);
            self.consume(count);
            copy
        } else {
            self.buffer.split_to(count).freeze()
        };
        match self.note_taken(count) {
            Ok(()) => Poll::Ready(Some(Ok(chunk))),
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }

    fn fail(&mut self, error: BodyError) -> BodyError {
        self.decoder = Decoder::Failed;
        self.body_error = Some(error.clone());
        error
    }
}

/// An error of a socket without the operating system's number.
pub(crate) fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionReset => "the connection was reset".into(),
        io::ErrorKind::BrokenPipe => "the connection was closed".into(),
        io::ErrorKind::TimedOut => "the peer does not read".into(),
        io::ErrorKind::UnexpectedEof => "the connection was cut off".into(),
        _ => error.to_string(),
    }
}

/// The body of a request, as the service gets it.
pub(crate) struct Incoming {
    wire: SharedWire,
    message: u32,
}

impl Incoming {
    /// The body of the message that has just begun on `wire`.
    pub(crate) fn new(wire: &SharedWire) -> Incoming {
        Incoming { message: wire.borrow().message, wire: Rc::clone(wire) }
    }

    /// Whether the wire still carries this message.
    pub(crate) fn is_current(&self) -> bool {
        // Borrowed while the connection says goodbye: its last exchange is over.
        self.wire.try_borrow().is_ok_and(|wire| wire.message == self.message)
    }

    /// All of the body, when it lies in the read buffer.
    pub(crate) fn take_if_complete(&mut self) -> Option<Bytes> {
        let mut wire = self.wire.borrow_mut();
        let Decoder::Length(left) = wire.decoder else { return None };
        let count = usize::try_from(left).ok().filter(|&count| wire.buffer.len() >= count)?;
        let bytes = Bytes::copy_from_slice(&wire.buffer[..count]);
        wire.take_data(count).ok()?;
        Some(bytes)
    }
}

impl WireSource for Incoming {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, BodyError>> {
        if !self.is_current() {
            return Poll::Ready(Err(BodyError::Incomplete("its exchange is over".into())));
        }
        self.wire.borrow_mut().poll_data(cx)
    }

    fn wire(&self) -> &SharedWire {
        &self.wire
    }
}

impl BodyStream for Incoming {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        if !self.is_current() {
            return Poll::Ready(Some(Err(BodyError::Incomplete("its exchange is over".into()))));
        }
        self.wire.borrow_mut().poll_chunk(cx)
    }

    fn peek(&self) -> Option<Ref<'_, [u8]>> {
        self.is_current().then(|| Wire::peek(&self.wire))
    }

    fn poll_peekable(&mut self, cx: &mut Context<'_>, wanted_bytes: usize) -> Poll<Result<bool, BodyError>> {
        if !self.is_current() {
            return Poll::Ready(Ok(false));
        }
        self.wire.borrow_mut().poll_peekable(cx, wanted_bytes)
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_current() { self.wire.borrow().decoder.size_hint() } else { SizeHint::Exact(0) }
    }

    fn trailers(&mut self) -> Option<Headers> {
        if self.is_current() { self.wire.borrow_mut().trailers.take() } else { None }
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
