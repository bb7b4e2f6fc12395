//! What a core counts. Written by that core only, read from anywhere.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of one core. Share it as an `Arc` and sum the snapshots of all cores.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections accepted so far.
    pub accepted: Counter,
    /// How often a connection could not be accepted at once.
    pub accept_failures: Counter,
    /// The number of the system's error of the last of them.
    pub accept_error: Counter,
    /// Connections open now.
    pub connections: Counter,
    /// Requests whose head was understood.
    pub requests: Counter,
    /// Requests being answered now.
    pub in_flight: Counter,
    /// Requests refused before a service saw them.
    pub refused: Counter,
    /// Replies by class: 1xx to 5xx.
    pub replies: [Counter; 5],
    /// Bytes read from and written to clients and backends.
    pub read_bytes: Counter,
    /// See `read_bytes`.
    pub written_bytes: Counter,
    /// Connections opened to backends.
    pub connects: Counter,
    /// Exchanges sent over a pooled connection.
    pub reused: Counter,
    /// WebSocket connections open now.
    pub websockets: Counter,
    /// Frames of messages that went on over them.
    pub frames: Counter,
    /// Messages that did not go on.
    pub frames_dropped: Counter,
}

/// A number with one writer. An increment is a load and a store, not a locked instruction.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// The value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(crate) fn add(&self, amount: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(amount), Relaxed);
    }

    fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    pub(crate) fn subtract(&self, amount: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_sub(amount), Relaxed);
    }
}

/// The values of one or several [`Counters`] at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CountersSnapshot {
    /// See [`Counters::accepted`].
    pub accepted: u64,
    /// See [`Counters::accept_failures`].
    pub accept_failures: u64,
    /// See [`Counters::connections`].
    pub connections: u64,
    /// See [`Counters::requests`].
    pub requests: u64,
    /// See [`Counters::in_flight`].
    pub in_flight: u64,
    /// See [`Counters::refused`].
    pub refused: u64,
    /// See [`Counters::replies`].
    pub replies: [u64; 5],
    /// See [`Counters::read_bytes`].
    pub read_bytes: u64,
    /// See [`Counters::written_bytes`].
    pub written_bytes: u64,
    /// See [`Counters::connects`].
    pub connects: u64,
    /// See [`Counters::reused`].
    pub reused: u64,
    /// See [`Counters::websockets`].
    pub websockets: u64,
    /// See [`Counters::frames`].
    pub frames: u64,
    /// See [`Counters::frames_dropped`].
    pub frames_dropped: u64,
}

impl Counters {
    /// Adds these counters to a sum.
    pub fn add_to(&self, sum: &mut CountersSnapshot) {
        sum.accepted += self.accepted.get();
        sum.accept_failures += self.accept_failures.get();
        sum.connections += self.connections.get();
        sum.requests += self.requests.get();
        sum.in_flight += self.in_flight.get();
        sum.refused += self.refused.get();
        for (total, counter) in sum.replies.iter_mut().zip(&self.replies) {
            *total += counter.get();
        }
        sum.read_bytes += self.read_bytes.get();
        sum.written_bytes += self.written_bytes.get();
        sum.connects += self.connects.get();
        sum.reused += self.reused.get();
        sum.websockets += self.websockets.get();
        sum.frames += self.frames.get();
        sum.frames_dropped += self.frames_dropped.get();
    }

    pub(crate) fn accept_failed(&self, error: u64) {
        self.accept_error.set(error);
        self.accept_failures.add(1);
    }

    pub(crate) fn replied(&self, status: u16) {
        if let Some(counter) = self.replies.get((usize::from(status) / 100).wrapping_sub(1)) {
            counter.add(1);
        }
    }
}
