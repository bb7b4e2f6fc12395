//! What leaves on a wire: fields, framing, and the pump that moves a body from one wire to another.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use penstock_message::{BodyError, BodyStream, DIGITS_MAX, FieldLine, Headers, decimal};

use super::fields::may_follow;
use super::head::Field;
use super::scan::{is_clean_value, is_harmless_name, is_name};
use super::wire::{SharedWire, Wire};

/// Data up to this size is copied behind the head and written with it by one plain `send`; a vectored write of two
/// pieces costs more than the copy.
const JOINED_BYTES_MAX: usize = 4 * 1024;

/// How a body is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// No body at all.
    None,
    Length(u64),
    Chunked,
    /// Until the connection is closed, for clients of HTTP/1.0.
    Close,
}

/// Whether framing or connection handling owns this field: it never crosses a hop as it came.
pub(crate) fn is_ours(name: &[u8]) -> bool {
    match name.len() {
        2 => is_name(name, b"te"),
        7 => is_name(name, b"upgrade") || is_name(name, b"trailer"),
        10 => is_name(name, b"connection") || is_name(name, b"keep-alive"),
        14 => is_name(name, b"content-length"),
        16 => is_name(name, b"proxy-connection"),
        17 => is_name(name, b"transfer-encoding"),
        _ => false,
    }
}

/// Removes the fields that `Connection` names (RFC 9110 §7.6.1): they end at this hop.
pub(crate) fn remove_named_by_connection(headers: &mut Headers) {
    let named: Vec<Vec<u8>> = headers
        .get_all("Connection")
        .flat_map(|value| value.split(|&byte| byte == b','))
        .map(|option| option.trim_ascii().to_vec())
        // A client must not be able to make us drop what decides about the message itself.
        .filter(|option| {
            !is_ours(option) && !option.eq_ignore_ascii_case(b"host") && !option.eq_ignore_ascii_case(b"content-type")
        })
        .collect();
    headers.retain(|name, _| !named.iter().any(|option| option.eq_ignore_ascii_case(name)));
}

/// Appends the fields whose names `passes` lets through.
pub(crate) fn push_fields(head: &mut Vec<u8>, headers: &Headers, mut passes: impl FnMut(&[u8]) -> bool) {
    for FieldLine { name, value, line } in headers.lines() {
        if !passes(name) {
            continue;
        }
        match line {
            Some(line) => head.extend_from_slice(line),
            None => push_field(head, name, value),
        }
    }
}

/// Appends the fields of a head that was parsed from `bytes` and for which `passes(name, value)` holds. Lines that follow
/// each other are copied together.
pub(crate) fn push_lines(
    head: &mut Vec<u8>,
    bytes: &[u8],
    fields: &[Field],
    mut passes: impl FnMut(&[u8], &[u8]) -> bool,
) {
    let part = |start: usize, end: usize| bytes.get(start..end).unwrap_or_default();
    let mut lines = 0..0;
    for (name, value) in fields {
        let (name_start, name_end) = (name.start as usize, name.end as usize);
        let (value_start, value_end) = (value.start as usize, value.end as usize);
        let (name, value) = (part(name_start, name_end), part(value_start, value_end));
        if !passes(name, value) {
            continue;
        }
        let as_it_is_written = value_start == name_end + 2
            && bytes.get(name_end + 1) == Some(&b' ')
            && bytes.get(value_end) == Some(&b'\r');
        if as_it_is_written && lines.end == name_start {
            lines.end = value_end + 2;
            continue;
        }
        head.extend_from_slice(part(lines.start, lines.end));
        lines = if as_it_is_written {
            name_start..value_end + 2
        } else {
            push_field(head, name, value);
            0..0
        };
    }
    head.extend_from_slice(part(lines.start, lines.end));
}

/// Appends a field. Names and values that a mediator set are not trusted: a name that is none is left out, a value
/// loses the characters that would end its line.
pub(crate) fn push_field(head: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    if !is_harmless_name(name) {
        return;
    }
    head.reserve(name.len() + value.len() + 4);
    head.extend_from_slice(name);
    head.extend_from_slice(b": ");
    if is_clean_value(value) {
        head.extend_from_slice(value);
    } else {
        head.extend(value.iter().filter(|byte| **byte >= b' ' && **byte != 0x7f));
    }
    head.extend_from_slice(b"\r\n");
}

/// Appends a number.
pub(crate) fn push_decimal(head: &mut Vec<u8>, number: u64) {
    head.extend_from_slice(decimal(number, &mut [0; DIGITS_MAX]));
}

/// Appends the framing field.
pub(crate) fn push_framing(head: &mut Vec<u8>, framing: Framing) {
    match framing {
        Framing::None | Framing::Close => {}
        Framing::Chunked => head.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Framing::Length(length) => {
            head.extend_from_slice(b"Content-Length: ");
            push_decimal(head, length);
            head.extend_from_slice(b"\r\n");
        }
    }
}

/// Writes a body behind its head.
pub(crate) struct BodyEncoder {
    framing: Framing,
    /// Whether the last byte was handed to the wire.
    finished: bool,
}

impl BodyEncoder {
    pub(crate) fn new(framing: Framing) -> BodyEncoder {
        BodyEncoder { framing, finished: false }
    }

    /// Sends `head`, which may be empty and is empty afterwards, and data.
    pub(crate) fn send(
        &mut self,
        wire: &mut Wire,
        cx: &mut Context<'_>,
        head: &mut Vec<u8>,
        data: &[u8],
    ) -> io::Result<()> {
        if data.is_empty() {
            return if head.is_empty() { Ok(()) } else { flush_head(wire, cx, head) };
        }
        match &mut self.framing {
            Framing::None => return Err(io::Error::other("a message without body has one")),
            Framing::Close => {}
            Framing::Length(left) => {
                *left = left
                    .checked_sub(data.len() as u64)
                    .ok_or_else(|| io::Error::other("the body is longer than its Content-Length"))?;
            }
            Framing::Chunked => {
                head.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
                if data.len() <= JOINED_BYTES_MAX {
                    head.extend_from_slice(data);
                    head.extend_from_slice(b"\r\n");
                    return flush_head(wire, cx, head);
                }
                let outcome = wire.send(cx, &[head, data, b"\r\n"]);
                head.clear();
                return outcome;
            }
        }
        if head.is_empty() {
            return wire.send(cx, &[data]);
        }
        if data.len() <= JOINED_BYTES_MAX {
            head.extend_from_slice(data);
            return flush_head(wire, cx, head);
        }
        let outcome = wire.send(cx, &[head, data]);
        head.clear();
        outcome
    }

    /// Sends what is left of the head and ends the body.
    pub(crate) fn finish(
        &mut self,
        wire: &mut Wire,
        cx: &mut Context<'_>,
        head: &mut Vec<u8>,
        trailers: Option<&Headers>,
    ) -> io::Result<()> {
        match self.framing {
            Framing::Length(1..) => return Err(io::Error::other("the body is shorter than its Content-Length")),
            Framing::Chunked => {
                head.extend_from_slice(b"0\r\n");
                if let Some(trailers) = trailers {
                    push_fields(head, trailers, may_follow);
                }
                head.extend_from_slice(b"\r\n");
            }
            _ => {}
        }
        self.framing = Framing::None;
        self.finished = true;
        if head.is_empty() { Ok(()) } else { flush_head(wire, cx, head) }
    }
}

fn flush_head(wire: &mut Wire, cx: &mut Context<'_>, head: &mut Vec<u8>) -> io::Result<()> {
    let outcome = wire.send(cx, &[head]);
    head.clear();
    outcome
}

/// Why a body was not sent completely.
#[derive(Debug)]
pub(crate) enum PumpError {
    /// It could not be read.
    Source(BodyError),
    /// It could not be written.
    Sink(io::Error),
}

/// A body whose bytes lie in the read buffer of a wire.
pub(crate) trait WireSource {
    /// See [`Wire::poll_data`].
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, BodyError>>;
    /// Where the bytes lie; never the wire they go to.
    fn wire(&self) -> &SharedWire;
}

/// Moves a body from wire to wire as far as it goes now, holding at most one read buffer of it: it reads on only
/// when everything it read is written.
pub(crate) fn poll_pump(
    source: &mut dyn WireSource,
    sink: &SharedWire,
    encoder: &mut BodyEncoder,
    head: &mut Vec<u8>,
    cx: &mut Context<'_>,
) -> Poll<Result<(), PumpError>> {
    loop {
        match sink.borrow_mut().poll_flush(cx) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => return Poll::Ready(Err(PumpError::Sink(error))),
            Poll::Pending => return Poll::Pending,
        }
        if encoder.finished {
            return Poll::Ready(Ok(()));
        }
        match source.poll_data(cx) {
            Poll::Pending if head.is_empty() => return Poll::Pending,
            Poll::Pending => {
                encoder.send(&mut sink.borrow_mut(), cx, head, &[]).map_err(PumpError::Sink)?;
                if sink.borrow().is_flushed() {
                    return Poll::Pending;
                }
            }
            Poll::Ready(Err(error)) => return Poll::Ready(Err(PumpError::Source(error))),
            Poll::Ready(Ok(0)) => {
                let trailers = source.wire().borrow_mut().trailers.take();
                encoder.finish(&mut sink.borrow_mut(), cx, head, trailers.as_ref()).map_err(PumpError::Sink)?;
            }
            Poll::Ready(Ok(count)) => {
                let mut input = source.wire().borrow_mut();
                let data = &input.buffer[..count];
                encoder.send(&mut sink.borrow_mut(), cx, head, data).map_err(PumpError::Sink)?;
                input.take_data(count).map_err(PumpError::Source)?;
            }
        }
    }
}

/// Sends a body that comes as chunks. The first chunk leaves with the head. The body may read from `sink` itself, so
/// the wire is never borrowed while the body is polled.
pub(crate) fn poll_stream(
    first: &mut Bytes,
    rest: &mut dyn BodyStream,
    sink: &SharedWire,
    encoder: &mut BodyEncoder,
    head: &mut Vec<u8>,
    cx: &mut Context<'_>,
) -> Poll<Result<(), PumpError>> {
    loop {
        ready!(sink.borrow_mut().poll_flush(cx)).map_err(PumpError::Sink)?;
        if encoder.finished {
            return Poll::Ready(Ok(()));
        }
        let chunk = if first.is_empty() { rest.poll_chunk(cx) } else { Poll::Ready(Some(Ok(std::mem::take(first)))) };
        let sent = match chunk {
            Poll::Ready(Some(Ok(chunk))) => encoder.send(&mut sink.borrow_mut(), cx, head, &chunk),
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(PumpError::Source(error))),
            Poll::Ready(None) => {
                let trailers = rest.trailers();
                encoder.finish(&mut sink.borrow_mut(), cx, head, trailers.as_ref())
            }
            Poll::Pending if head.is_empty() => return Poll::Pending,
            Poll::Pending => encoder.send(&mut sink.borrow_mut(), cx, head, &[]),
        };
        sent.map_err(PumpError::Sink)?;
    }
}
