//! Moves frames between a client's wire and a backend's, both ways at once, until either side is through.
//!
//! A side that does not read stops the other one from being read: what waits is one read buffer each way. A
//! connection on which nothing moves holds no buffer at all.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use penstock_engine::clock;
use penstock_engine::websocket::FrameGate;
use tokio::io::AsyncWrite;

use super::frame::{FrameError, FrameScanner, FrameStep};
use crate::http::PerCore;
use crate::http::http1::{SharedWire, Wire};

/// What a side is told when the other one or this process goes away, RFC 6455 §7.4.1.
const GOING_AWAY: u16 = 1001;

/// Two wires that are joined.
pub(crate) struct Tunnel {
    core: Rc<PerCore>,
    client: SharedWire,
    backend: SharedWire,
    upwards: Lane,
    downwards: Lane,
    gate: Option<Rc<dyn FrameGate>>,
    times: TunnelTimes,
    /// Whether something arrived since the timer was set.
    moved: bool,
    /// Whether one side has ended, so that only the rest is waited for.
    ending: bool,
}

/// How long a tunnel waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TunnelTimes {
    /// For anything to arrive.
    pub(crate) idle: Duration,
    /// For a side to end when the other one has.
    pub(crate) linger: Duration,
}

/// What is known of one direction.
struct Lane {
    scanner: FrameScanner,
    /// Whether its sender has ended and its receiver was told.
    ended: bool,
    bytes: u64,
}

/// Why a tunnel ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Both sides are through.
    Done,
    Idle,
    /// The process is stopping.
    Draining,
    /// A connection broke, or its side does not read any more.
    Broken,
    ByClient(FrameError),
    ByBackend(FrameError),
}

/// What became of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Carried {
    pub(crate) bytes_to_client: u64,
    /// Whether it ended as the protocol wants it.
    pub(crate) complete: bool,
}

/// Why a direction ends early.
enum LaneError {
    Frame(FrameError),
    Broken,
}

impl From<std::io::Error> for LaneError {
    fn from(_: std::io::Error) -> LaneError {
        LaneError::Broken
    }
}

impl Tunnel {
    /// Joins two wires. `extended` says whether they agreed on an extension.
    pub(crate) fn new(
        core: &Rc<PerCore>,
        client: &SharedWire,
        backend: SharedWire,
        extended: bool,
        gate: Option<Rc<dyn FrameGate>>,
        times: TunnelTimes,
    ) -> Tunnel {
        let frame_bytes_max = client.borrow().limits.body_bytes_max;
        let lane = |from_client| {
            let scanner = FrameScanner::new(from_client, extended, frame_bytes_max);
            Lane { scanner, ended: false, bytes: 0 }
        };
        Tunnel {
            core: core.clone(),
            client: client.clone(),
            backend,
            upwards: lane(true),
            downwards: lane(false),
            gate,
            times,
            moved: true,
            ending: false,
        }
    }

    /// Carries frames until the end.
    pub(crate) async fn carry(mut self, draining: &Cell<bool>) -> Carried {
        let ending = poll_fn(|cx| self.poll(cx, draining)).await;
        self.close(ending).await;
        let complete = matches!(ending, Ending::Done | Ending::Draining);
        Carried { bytes_to_client: self.downwards.bytes, complete }
    }

    fn poll(&mut self, cx: &mut Context<'_>, draining: &Cell<bool>) -> Poll<Ending> {
        if draining.get() {
            return Poll::Ready(Ending::Draining);
        }
        let Tunnel { core, client, backend, upwards, downwards, gate, moved, .. } = self;
        let (mut client, mut backend) = (client.borrow_mut(), backend.borrow_mut());
        let mut join = Join { core, gate: gate.as_deref(), moved };
        match join.poll(cx, upwards, &mut client, &mut backend) {
            Ok(()) => {}
            Err(LaneError::Frame(error)) => return Poll::Ready(Ending::ByClient(error)),
            Err(LaneError::Broken) => return Poll::Ready(Ending::Broken),
        }
        match join.poll(cx, downwards, &mut backend, &mut client) {
            Ok(()) => {}
            Err(LaneError::Frame(error)) => return Poll::Ready(Ending::ByBackend(error)),
            Err(LaneError::Broken) => return Poll::Ready(Ending::Broken),
        }
        if upwards.ended && downwards.ended {
            return Poll::Ready(Ending::Done);
        }
        let ending = upwards.ended || downwards.ended || (upwards.scanner.is_closed() && downwards.scanner.is_closed());
        if std::mem::take(moved) || ending != self.ending {
            let wait = if ending { self.times.linger } else { self.times.idle };
            client.read_timer.arm(core, wait);
        }
        self.ending = ending;
        match client.read_timer.poll_fired(cx) {
            true => Poll::Ready(if ending { Ending::Done } else { Ending::Idle }),
            false => Poll::Pending,
        }
    }

    /// Says goodbye to both sides and gives them time to hear it.
    async fn close(&self, ending: Ending) {
        let (to_client, to_backend) = match ending {
            Ending::Done | Ending::Broken => (None, None),
            Ending::Idle | Ending::Draining => (Some(GOING_AWAY), Some(GOING_AWAY)),
            Ending::ByClient(error) => (Some(error.close_code()), Some(GOING_AWAY)),
            Ending::ByBackend(error) => (Some(GOING_AWAY), Some(error.close_code())),
        };
        // Only between frames, and only once.
        let may_close = |lane: &Lane| !lane.ended && !lane.scanner.is_closed() && lane.scanner.is_between_frames();
        let to_client = to_client.filter(|_| may_close(&self.downwards)).map(|code| close_frame(code, false));
        let to_backend = to_backend.filter(|_| may_close(&self.upwards)).map(|code| close_frame(code, true));
        let both = async { tokio::join!(goodbye(&self.client, to_client), goodbye(&self.backend, to_backend)) };
        let _ = tokio::time::timeout(self.times.linger, both).await;
    }
}

/// What both directions share while they are looked at.
struct Join<'t> {
    core: &'t PerCore,
    gate: Option<&'t dyn FrameGate>,
    moved: &'t mut bool,
}

impl Join<'_> {
    /// Moves what can be moved now in one direction.
    fn poll(&mut self, cx: &mut Context<'_>, lane: &mut Lane, from: &mut Wire, to: &mut Wire) -> Result<(), LaneError> {
        if !lane.ended
            && let Poll::Ready(outcome) = self.poll_lane(cx, lane, from, to)
        {
            outcome?;
            lane.ended = true;
        }
        Ok(())
    }

    fn poll_lane(
        &mut self,
        cx: &mut Context<'_>,
        lane: &mut Lane,
        from: &mut Wire,
        to: &mut Wire,
    ) -> Poll<Result<(), LaneError>> {
        let (gate, counters) = (self.gate, &self.core.counters);
        let mut admits = |frame| {
            let admitted = gate.is_none_or(|gate| gate.admits(&frame));
            if admitted { &counters.frames } else { &counters.frames_dropped }.add(1);
            admitted
        };
        loop {
            // What is not sent keeps more from being read.
            ready!(to.poll_flush(cx))?;
            match lane.scanner.step(&from.buffer, &mut admits).map_err(LaneError::Frame)? {
                FrameStep::Pass(count) => {
                    to.send(cx, &[&from.buffer[..count]])?;
                    from.consume(count);
                    lane.bytes += count as u64;
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
}

/// A frame that closes. A client's frames are masked, so ours to a backend is.
fn close_frame(code: u16, masked: bool) -> Vec<u8> {
    let [high, low] = code.to_be_bytes();
    if !masked {
        return vec![0x88, 2, high, low];
    }
    let [first, second, third, fourth, ..] = clock::random().to_be_bytes();
    vec![0x88, 0x82, first, second, third, fourth, high ^ first, low ^ second]
}

/// Sends what is left to say, closes, and reads until the other side closes too: it could not read the rest of what
/// was sent otherwise (RFC 9112 §9.6).
async fn goodbye(wire: &SharedWire, frame: Option<Vec<u8>>) {
    if let Some(frame) = frame {
        poll_fn(|cx| Poll::Ready(wire.borrow_mut().send(cx, &[&frame]))).await.unwrap_or_default();
    }
    let mut flushed = false;
    let shut = poll_fn(|cx| {
        let mut wire = wire.borrow_mut();
        if !flushed {
            ready!(wire.poll_flush(cx))?;
            flushed = true;
        }
        Pin::new(wire.socket()).poll_shutdown(cx)
    });
    if shut.await.is_err() {
        return;
    }
    poll_fn(|cx| {
        let mut wire = wire.borrow_mut();
        loop {
            let waste = wire.buffer.len();
            wire.consume(waste);
            match ready!(wire.poll_fill(cx)) {
                Ok(1..) => {}
                _ => return Poll::Ready(()),
            }
        }
    })
    .await;
}
