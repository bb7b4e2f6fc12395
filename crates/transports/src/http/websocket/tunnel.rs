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

use penstock_engine::websocket::Gate;
use tokio::io::AsyncWrite;

use super::frame::FrameError;
use super::lane::{Join, Lane, LaneError};
use super::message::close_frame;
use crate::http::PerCore;
use crate::http::http1::SharedWire;

/// The close code when the other side or this process goes away, RFC 6455 §7.4.1.
const GOING_AWAY: u16 = 1001;

/// Two wires that are joined.
pub(crate) struct Tunnel {
    core: Rc<PerCore>,
    client: SharedWire,
    backend: SharedWire,
    upwards: Lane,
    downwards: Lane,
    gate: Option<Gate>,
    times: TunnelTimes,
    /// Unreported rejections.
    notices: usize,
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
    /// What decides over messages ended it, with this code and reason.
    ByGate(u16, &'static str),
}

/// What became of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Carried {
    pub(crate) bytes_to_client: u64,
    /// Whether it ended as the protocol wants it.
    pub(crate) complete: bool,
}

impl Tunnel {
    /// Joins two wires. `extended` says whether they agreed on an extension.
    pub(crate) fn new(
        core: &Rc<PerCore>,
        client: &SharedWire,
        backend: SharedWire,
        extended: bool,
        gate: Option<Gate>,
        times: TunnelTimes,
    ) -> Tunnel {
        let frame_bytes_max = client.borrow().limits.body_bytes_max;
        let lane = |from_client| Lane::new(from_client, extended, frame_bytes_max, gate.as_ref());
        Tunnel {
            core: core.clone(),
            client: client.clone(),
            backend,
            upwards: lane(true),
            downwards: lane(false),
            gate,
            times,
            notices: 0,
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
        let Tunnel { core, client, backend, upwards, downwards, gate, moved, notices, .. } = self;
        let (mut client, mut backend) = (client.borrow_mut(), backend.borrow_mut());
        let client_closed = downwards.is_closed();
        let mut join = Join { core, gate: gate.as_ref(), moved, notices, client_closed };
        let ending = |error: LaneError, by: fn(FrameError) -> Ending| match error {
            LaneError::Frame(error) => by(error),
            LaneError::Gate(code, reason) => Ending::ByGate(code, reason),
            LaneError::Broken => Ending::Broken,
        };
        if let Err(error) = join.poll(cx, upwards, &mut client, &mut backend) {
            return Poll::Ready(ending(error, Ending::ByClient));
        }
        if let Err(error) = join.poll(cx, downwards, &mut backend, &mut client) {
            return Poll::Ready(ending(error, Ending::ByBackend));
        }
        if join.tell(cx, downwards, &mut client).is_err() {
            return Poll::Ready(Ending::Broken);
        }
        if upwards.ended && downwards.ended {
            return Poll::Ready(Ending::Done);
        }
        let ending = upwards.ended || downwards.ended || (upwards.is_closed() && downwards.is_closed());
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
        let (to_client, reason, to_backend) = match ending {
            Ending::Done | Ending::Broken => (None, "", None),
            Ending::Idle | Ending::Draining => (Some(GOING_AWAY), "", Some(GOING_AWAY)),
            Ending::ByClient(error) => (Some(error.close_code()), "", Some(GOING_AWAY)),
            Ending::ByBackend(error) => (Some(GOING_AWAY), "", Some(error.close_code())),
            Ending::ByGate(code, reason) => (Some(code), reason, Some(GOING_AWAY)),
        };
        // Only between frames, and only once.
        let to_client = to_client.filter(|_| self.downwards.may_close()).map(|code| close_frame(code, reason, false));
        let to_backend = to_backend.filter(|_| self.upwards.may_close()).map(|code| close_frame(code, "", true));
        let both = async { tokio::join!(goodbye(&self.client, to_client), goodbye(&self.backend, to_backend)) };
        let _ = tokio::time::timeout(self.times.linger, both).await;
    }
}

/// Sends what is left to say, closes, and reads until the peer closes too: it could not read the rest of what
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
