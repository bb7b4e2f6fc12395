//! What a client may send over a connection besides requests: a budget for frames that cost work and move nothing on.
//!
//! The `h2` crate answers SETTINGS and PING and reads the others without a limit on their number. A client that
//! sends more of them than its requests explain gets GOAWAY with ENHANCE_YOUR_CALM (RFC 9113 §10.5).

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// What a connection may spend at once. Browsers and gRPC clients begin with fewer than 20 such frames.
const BURST: i32 = 1000;

/// What comes back without any progress: keep-alive pings and cancelled requests of an honest client stay far below.
const PER_SECOND: u128 = 100;

/// For a request that was accepted: the cost of its HEADERS frame.
const EARNED_BY_REQUEST: i32 = HEADERS_COST;

/// For a piece of a reply: a client acknowledges it on stream and connection, and may measure the link with a PING.
const EARNED_BY_PIECE: i32 = 3;

/// The same for every KiB of a reply, because large pieces become many frames.
const BYTES_PER_CREDIT: usize = 1024;

const HEADERS_COST: i32 = 1;

/// Each one is acknowledged and may change the window of every stream.
pub(super) const SETTINGS_COST: i32 = 10;

/// A request that was begun in vain.
pub(super) const RESET_COST: i32 = 2;

/// Any other frame without effect.
pub(super) const FRAME_COST: i32 = 1;

/// Malformed trailers at once: one for every stream that can be open.
const MALFORMED_MAX: usize = super::STREAMS_MAX as usize;

/// What the frames of a connection have shown so far.
pub(super) struct FrameWatch {
    left: Cell<i32>,
    refilled: Cell<Instant>,
    /// Bytes of replies that have not earned anything yet.
    unpaid_bytes: Cell<usize>,
    exceeded: Cell<bool>,
    /// Streams whose trailers hold pseudo-header fields, which the `h2` crate drops silently.
    malformed: RefCell<Vec<u32>>,
}

impl FrameWatch {
    pub(super) fn new() -> FrameWatch {
        FrameWatch {
            left: Cell::new(BURST),
            refilled: Cell::new(Instant::now()),
            unpaid_bytes: Cell::new(0),
            exceeded: Cell::new(false),
            malformed: RefCell::default(),
        }
    }

    /// Whether the client has sent too much.
    pub(super) fn is_exceeded(&self) -> bool {
        self.exceeded.get()
    }

    pub(super) fn spend(&self, cost: i32) {
        self.left.set(self.left.get() - cost);
        if self.left.get() < 0 {
            self.refill(Instant::now());
        }
    }

    /// The clock is only read when the budget is spent.
    fn refill(&self, now: Instant) {
        let since: Duration = now.duration_since(self.refilled.get());
        let back = (since.as_millis() * PER_SECOND / 1000).min(BURST as u128) as i32;
        if back > 0 {
            self.refilled.set(now);
            self.earn(back);
        }
        self.exceeded.set(self.exceeded.get() || self.left.get() < 0);
    }

    fn earn(&self, credit: i32) {
        self.left.set((self.left.get() + credit).min(BURST));
    }

    pub(super) fn spend_headers(&self) {
        self.spend(HEADERS_COST);
    }

    /// A request was accepted.
    pub(super) fn request_accepted(&self) {
        self.earn(EARNED_BY_REQUEST);
    }

    /// A reply, or a whole piece of it, was sent.
    pub(super) fn piece_sent(&self) {
        self.earn(EARNED_BY_PIECE);
    }

    /// So many bytes of a reply fit into the client's window. One byte at a time earns nothing to speak of.
    pub(super) fn bytes_sent(&self, count: usize) {
        let unpaid = self.unpaid_bytes.get() + count;
        self.unpaid_bytes.set(unpaid % BYTES_PER_CREDIT);
        self.earn(i32::try_from(unpaid / BYTES_PER_CREDIT).unwrap_or(BURST));
    }

    /// Trailers of that stream hold pseudo-header fields.
    pub(super) fn note_malformed(&self, stream: u32) {
        let mut malformed = self.malformed.borrow_mut();
        if malformed.len() >= MALFORMED_MAX {
            self.exceeded.set(true);
        } else if !malformed.contains(&stream) {
            malformed.push(stream);
        }
    }

    /// Whether trailers of that stream hold pseudo-header fields (RFC 9113 §8.1).
    pub(super) fn has_malformed_trailers(&self, stream: u32) -> bool {
        self.malformed.borrow().contains(&stream)
    }

    pub(super) fn malformed(&self) -> Vec<u32> {
        self.malformed.borrow().clone()
    }

    /// The stream is over.
    pub(super) fn forget(&self, stream: u32) {
        self.malformed.borrow_mut().retain(|known| *known != stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_comes_back_with_time_and_with_replies() {
        let watch = FrameWatch::new();
        let start = watch.refilled.get();
        watch.left.set(0);
        watch.left.set(watch.left.get() - 5);
        watch.refill(start + Duration::from_millis(60));
        assert!(!watch.is_exceeded() && watch.left.get() == 1);
        watch.piece_sent();
        watch.bytes_sent(1500);
        watch.bytes_sent(600);
        assert_eq!(watch.left.get(), 1 + 3 + 1 + 1);
        watch.left.set(-1);
        watch.refill(start + Duration::from_millis(65));
        assert!(watch.is_exceeded());
    }

    #[test]
    fn more_is_not_kept_than_one_burst() {
        let watch = FrameWatch::new();
        watch.bytes_sent(usize::MAX / 2);
        watch.refill(watch.refilled.get() + Duration::from_secs(3600));
        assert_eq!(watch.left.get(), BURST);
    }

    #[test]
    fn malformed_trailers_are_kept_for_open_streams_only() {
        let watch = FrameWatch::new();
        watch.note_malformed(1);
        assert!(watch.has_malformed_trailers(1) && !watch.has_malformed_trailers(3));
        watch.forget(1);
        assert!(!watch.has_malformed_trailers(1));
        (0..200).for_each(|stream| watch.note_malformed(stream));
        assert!(watch.is_exceeded());
    }
}
