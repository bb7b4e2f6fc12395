//! One direction of a tunnel: what one side sends, and how much of it the other one gets.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use penstock_engine::websocket::{FrameGate, Gate, MessageGate, Verdict};
use tokio::io::AsyncWrite;

use super::frame::{FrameError, FrameScanner, FrameStep};
use super::message::{MessageReader, MessageStep, text_frame};
use crate::http::PerCore;
use crate::http::http1::Wire;

/// Refusals that wait until a message of the backend is at its end; beyond them not each is reported.
const NOTICES_MAX: usize = 16;

/// What is known of one direction.
pub(super) struct Lane {
    from_client: bool,
    reader: Reader,
    /// Whether its sender has ended and its receiver was notified.
    pub(super) ended: bool,
    pub(super) bytes: u64,
}

/// How far is looked into what is sent.
enum Reader {
    Frames(FrameScanner),
    Messages(MessageReader),
}

/// Why a direction ends early.
pub(super) enum LaneError {
    Frame(FrameError),
    /// The gate ends the connection, with this code and reason for the client.
    Gate(u16, &'static str),
    Broken,
}

impl From<std::io::Error> for LaneError {
    fn from(_: std::io::Error) -> LaneError {
        LaneError::Broken
    }
}

impl Lane {
    pub(super) fn new(from_client: bool, extended: bool, frame_bytes_max: u64, gate: Option<&Gate>) -> Lane {
        let reader = match gate {
            Some(Gate::Messages(_)) => Reader::Messages(MessageReader::new(from_client)),
            _ => Reader::Frames(FrameScanner::new(from_client, extended, frame_bytes_max)),
        };
        Lane { from_client, reader, ended: false, bytes: 0 }
    }

    /// Whether the frame that closes has passed.
    pub(super) fn is_closed(&self) -> bool {
        match &self.reader {
            Reader::Frames(scanner) => scanner.is_closed(),
            Reader::Messages(reader) => reader.is_closed(),
        }
    }

    /// Whether a frame of ours may stand here.
    pub(super) fn may_close(&self) -> bool {
        let is_between = match &self.reader {
            Reader::Frames(scanner) => scanner.is_between_frames(),
            // Messages go on as a whole.
            Reader::Messages(_) => true,
        };
        is_between && !self.ended && !self.is_closed()
    }

    /// Whether a message of ours may stand here.
    fn may_speak(&self) -> bool {
        let is_between = match &self.reader {
            Reader::Frames(scanner) => scanner.is_between_messages(),
            Reader::Messages(_) => true,
        };
        is_between && self.may_close()
    }
}

/// What both directions share while they are looked at.
pub(super) struct Join<'t> {
    pub(super) core: &'t PerCore,
    pub(super) gate: Option<&'t Gate>,
    /// Whether something arrived.
    pub(super) moved: &'t mut bool,
    /// Unreported rejections.
    pub(super) notices: &'t mut usize,
    /// Whether the client got the frame that closes.
    pub(super) client_closed: bool,
}

impl Join<'_> {
    /// Moves what can be moved now in one direction.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        lane: &mut Lane,
        from: &mut Wire,
        to: &mut Wire,
    ) -> Result<(), LaneError> {
        if lane.ended {
            return Ok(());
        }
        let moved = match (&mut lane.reader, self.gate) {
            (Reader::Frames(scanner), gate) => {
                let gate = gate.and_then(|gate| match gate {
                    Gate::Frames(gate) => Some(&**gate),
                    Gate::Messages(_) => None,
                });
                self.poll_frames(cx, scanner, &mut lane.bytes, gate, from, to)
            }
            (Reader::Messages(reader), Some(Gate::Messages(gate))) => {
                self.poll_messages(cx, reader, &mut lane.bytes, (&**gate, lane.from_client), from, to)
            }
            (Reader::Messages(_), _) => return Err(LaneError::Broken),
        };
        if let Poll::Ready(outcome) = moved {
            outcome?;
            lane.ended = true;
        }
        Ok(())
    }

    fn poll_frames(
        &mut self,
        cx: &mut Context<'_>,
        scanner: &mut FrameScanner,
        bytes: &mut u64,
        gate: Option<&dyn FrameGate>,
        from: &mut Wire,
        to: &mut Wire,
    ) -> Poll<Result<(), LaneError>> {
        let (counters, notices) = (&self.core.counters, &mut *self.notices);
        let is_told = gate.is_some_and(|gate| gate.refusal().is_some());
        let mut admits = |frame| {
            let admitted = gate.is_none_or(|gate| gate.admits(&frame));
            if admitted { &counters.frames } else { &counters.frames_dropped }.add(1);
            if !admitted && is_told {
                *notices = (*notices + 1).min(NOTICES_MAX);
            }
            admitted
        };
        loop {
            // What is not sent keeps more from being read.
            ready!(to.poll_flush(cx))?;
            if let Some((code, reason)) = gate.filter(|_| !from.buffer.is_empty()).and_then(FrameGate::ends) {
                return Poll::Ready(Err(LaneError::Gate(code, reason)));
            }
            match scanner.step(&from.buffer, &mut admits).map_err(LaneError::Frame)? {
                FrameStep::Pass(count) => {
                    to.send(cx, &[&from.buffer[..count]])?;
                    from.consume(count);
                    *bytes += count as u64;
                }
                FrameStep::Drop(count) => from.consume(count),
                FrameStep::More => {
                    if ready!(from.poll_fill(cx))? == 0 {
                        break;
                    }
                    *self.moved = true;
                }
            }
        }
        ready!(Pin::new(to.socket()).poll_shutdown(cx))?;
        Poll::Ready(Ok(()))
    }

    fn poll_messages(
        &mut self,
        cx: &mut Context<'_>,
        reader: &mut MessageReader,
        bytes: &mut u64,
        (gate, from_client): (&dyn MessageGate, bool),
        from: &mut Wire,
        to: &mut Wire,
    ) -> Poll<Result<(), LaneError>> {
        let counters = &self.core.counters;
        loop {
            // A client that does not read why it is refused is not read either.
            ready!(to.poll_flush(cx))?;
            ready!(from.poll_flush(cx))?;
            match reader.step(&from.buffer).map_err(LaneError::Frame)? {
                MessageStep::Control(count) => {
                    to.send(cx, &[&from.buffer[..count]])?;
                    from.consume(count);
                    *bytes += count as u64;
                }
                MessageStep::Nothing(count) => from.consume(count),
                MessageStep::Text(count, text) => {
                    from.consume(count);
                    let verdict = gate.decide(from_client, &text);
                    if verdict == Verdict::Pass { &counters.frames } else { &counters.frames_dropped }.add(1);
                    match verdict {
                        Verdict::Pass => {
                            let frame = text_frame(&text, from_client);
                            to.send(cx, &[&frame])?;
                            *bytes += frame.len() as u64;
                        }
                        Verdict::Refuse(None) => {}
                        // Nothing follows the frame that closes (RFC 6455 §5.5.1).
                        Verdict::Refuse(Some(_)) if self.client_closed => {}
                        Verdict::Refuse(Some(text)) => {
                            let client = if from_client { &mut *from } else { &mut *to };
                            client.send(cx, &[&text_frame(&text, false)])?;
                        }
                        Verdict::Close(code, reason) => return Poll::Ready(Err(LaneError::Gate(code, reason))),
                    }
                }
                MessageStep::More => {
                    if ready!(from.poll_fill(cx))? == 0 {
                        break;
                    }
                    *self.moved = true;
                }
            }
        }
        ready!(Pin::new(to.socket()).poll_shutdown(cx))?;
        Poll::Ready(Ok(()))
    }

    /// Tells the client of frames that were refused, where no message of the backend is cut in two by it.
    pub(super) fn tell(&mut self, cx: &mut Context<'_>, downwards: &Lane, client: &mut Wire) -> Result<(), LaneError> {
        let Some(Gate::Frames(gate)) = self.gate else { return Ok(()) };
        while *self.notices > 0 && downwards.may_speak() {
            let Some(text) = gate.refusal() else { break };
            match client.poll_flush(cx) {
                Poll::Pending => break,
                Poll::Ready(flushed) => flushed?,
            }
            client.send(cx, &[&text_frame(text, false)])?;
            *self.notices -= 1;
        }
        Ok(())
    }
}
