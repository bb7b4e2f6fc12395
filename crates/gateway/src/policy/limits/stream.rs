//! Limits of server-sent events: each event of an answer counts, and the answer ends before the one that is too much.
//!
//! Nothing is held back: an event is counted at its first byte.

use std::any::Any;
use std::task::{Context, Poll};

use bytes::Bytes;
use penstock_engine::websocket::{Frame, FrameGate};
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::{Body, BodyError, BodyStream, Form, Headers, SizeHint};

use super::FrameLimits;
use crate::CallContext;

/// Counts the events of an answer.
pub(super) struct CountEvents;

impl Mediator for CountEvents {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let Some(limits) = CallContext::of(exchange)?.limits.frames.take() else { return Ok(Flow::Next) };
        let message = &mut exchange.message;
        if !message.is_event_stream() {
            // Any other response counts as one.
            limits.admits(&Frame { from_client: false, begins: true, bytes: super::bytes::of_request(message) });
            return Ok(Flow::Next);
        }
        let scanner = EventScanner::default();
        message.body = match message.body.take() {
            Form::Stream { head, rest } => Body::stream(Box::new(Counted { head, rest: Some(rest), limits, scanner })),
            Form::Bytes(bytes) => Body::stream(Box::new(Counted { head: bytes, rest: None, limits, scanner })),
            form => Body::from_form(form),
        };
        // It may end before.
        message.headers.remove("Content-Length");
        Ok(Flow::Next)
    }
}

/// A stream of events on its way.
struct Counted {
    /// What has come already.
    head: Bytes,
    /// Absent when it has ended.
    rest: Option<Box<dyn BodyStream>>,
    limits: FrameLimits,
    scanner: EventScanner,
}

impl BodyStream for Counted {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let chunk = match (std::mem::take(&mut self.head), &mut self.rest) {
            (head, _) if !head.is_empty() => head,
            (_, None) => return Poll::Ready(None),
            (_, Some(rest)) => match rest.poll_chunk(cx) {
                Poll::Ready(Some(Ok(chunk))) => chunk,
                other => return other,
            },
        };
        let event = Frame { from_client: false, begins: true, bytes: 0 };
        let allowed = self.scanner.scan(&chunk, || self.limits.admits(&event));
        self.limits.add_bytes(allowed as u64);
        if allowed == chunk.len() {
            return Poll::Ready(Some(Ok(chunk)));
        }
        // The backend is not listened to any more.
        self.rest = None;
        Poll::Ready((allowed > 0).then(|| Ok(chunk.slice(..allowed))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::Unknown
    }

    fn trailers(&mut self) -> Option<Headers> {
        self.rest.as_mut()?.trailers()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Finds where events begin: with the first line that is no comment, behind a line that is empty or at the start.
#[derive(Debug, Default)]
struct EventScanner {
    in_event: bool,
    /// What the current line is so far.
    line: Line,
    /// Whether the last byte was a carriage return, which a line feed may follow.
    after_return: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Line {
    #[default]
    Empty,
    Comment,
    Field,
}

impl EventScanner {
    /// How many of the bytes lie before the first event that is not admitted; all of them when every one is.
    fn scan(&mut self, bytes: &[u8], mut admits: impl FnMut() -> bool) -> usize {
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'\n' if self.after_return => {}
                b'\n' | b'\r' => {
                    self.in_event &= self.line != Line::Empty;
                    self.line = Line::Empty;
                }
                b':' if self.line == Line::Empty => self.line = Line::Comment,
                // Streams may begin with a byte order mark.
                0xef | 0xbb | 0xbf if self.line == Line::Empty && !self.in_event => {}
                _ if self.line == Line::Empty => {
                    self.line = Line::Field;
                    if !self.in_event && !admits() {
                        return at;
                    }
                    self.in_event = true;
                }
                _ => {}
            }
            self.after_return = *byte == b'\r';
        }
        bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many events are found, and what lies before the first that is not admitted when so many are.
    fn check(text: &str, events: usize, most: usize, before: &str) {
        for size in [1, 2, 3, 1000] {
            let (mut scanner, mut count) = (EventScanner::default(), 0);
            for piece in text.as_bytes().chunks(size) {
                scanner.scan(piece, || {
                    count += 1;
                    true
                });
            }
            assert_eq!(count, events, "{text:?} in pieces of {size}");
            let (mut scanner, mut asked, mut passed) = (EventScanner::default(), 0, Vec::new());
            for piece in text.as_bytes().chunks(size) {
                let allowed = scanner.scan(piece, || {
                    asked += 1;
                    asked <= most
                });
                passed.extend_from_slice(&piece[..allowed]);
                if allowed < piece.len() {
                    break;
                }
            }
            assert_eq!(String::from_utf8_lossy(&passed), before, "{text:?} in pieces of {size}");
        }
    }

    #[test]
    fn events_begin_behind_an_empty_line() {
        check("data: 1\n\ndata: 2\n\n", 2, 1, "data: 1\n\n");
        check("data: 1\r\n\r\nid: 2\r\ndata: 2\r\n\r\n", 2, 1, "data: 1\r\n\r\n");
        check("data: 1\r\rdata: 2\r\r", 2, 0, "");
        check(": hello\n\n: still here\n\n", 0, 0, ": hello\n\n: still here\n\n");
        let commented = "\u{feff}: hello\ndata: 1\ndata: more\n\n\n\n: x\n";
        check(&format!("{commented}event: e\n\n"), 2, 1, commented);
        check("", 0, 0, "");
        check("data", 1, 1, "data");
    }
}
