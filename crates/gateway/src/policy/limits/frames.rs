//! Limits of WebSocket connections: each frame of a message counts as an event and with its bytes, in both directions.
//! A message that a limit refuses is left out; the connection stays.

use std::borrow::Borrow;
use std::sync::Arc;
use std::time::Instant;

use penstock_catalog::{Limit, LimitUnit};
use penstock_engine::websocket::{Frame, FrameGate};

use super::answer::{LimitState, Refusal};
use super::counters::Counters;
use super::window::{Counter, Taken};

/// One limit of one connection.
#[derive(Debug)]
pub(super) struct FrameLimit {
    pub(super) counter: Arc<Counter>,
    pub(super) limit: Limit,
    /// Whether it refuses, or only counts.
    pub(super) stops: bool,
    /// The error for a connection while the limit is exhausted.
    pub(super) code: u32,
}

/// All limits of one connection.
#[derive(Debug)]
pub(crate) struct FrameLimits {
    counters: Arc<Counters>,
    /// Those that refuse come first, so that everything before a rejection was granted.
    limits: Vec<FrameLimit>,
    /// Those of the operations of a GraphQL API, by index.
    of_operations: Vec<(usize, Vec<FrameLimit>)>,
    /// The report to the client for each dropped message.
    refusal: Option<&'static str>,
}

impl FrameLimits {
    pub(super) fn new(
        counters: &Arc<Counters>,
        mut limits: Vec<FrameLimit>,
        of_operations: Vec<(usize, Vec<FrameLimit>)>,
        refusal: Option<&'static str>,
    ) -> FrameLimits {
        limits.sort_by_key(|limit| !limit.stops);
        FrameLimits { counters: counters.clone(), limits, of_operations, refusal }
    }

    /// Counts a message about operations of a GraphQL API; whether it goes on.
    pub(crate) fn admits_message(&self, operations: &[usize], bytes: u64) -> bool {
        let of_operations = self.of_operations.iter().filter(|(operation, _)| operations.contains(operation));
        let mut limits: Vec<&FrameLimit> =
            self.limits.iter().chain(of_operations.flat_map(|(_, limits)| limits)).collect();
        limits.sort_by_key(|limit| !limit.stops);
        self.count(&limits, &Frame { from_client: true, begins: true, bytes })
    }

    /// The limit that is exhausted.
    pub(super) fn used_up(&self) -> Option<Refusal> {
        let now_ms = self.counters.millis(Instant::now());
        self.limits.iter().filter(|limit| limit.stops).find_map(|limit| {
            let Taken { granted, left, reset_ms } = limit.counter.add(0, limit.limit.amount, now_ms);
            let state = LimitState { limit: limit.limit.amount, left, reset_ms };
            (!granted).then_some(Refusal { code: limit.code, state })
        })
    }

    /// Adds bytes that were forwarded without a check.
    pub(super) fn add_bytes(&self, bytes: u64) {
        let now_ms = self.counters.millis(Instant::now());
        for limit in self.limits.iter().filter(|limit| limit.limit.unit == LimitUnit::Bytes) {
            limit.counter.add(bytes, limit.limit.amount, now_ms);
        }
    }

    fn count(&self, limits: &[impl Borrow<FrameLimit>], frame: &Frame) -> bool {
        let now_ms = self.counters.millis(Instant::now());
        for (index, limit) in limits.iter().map(Borrow::borrow).enumerate() {
            let taken = limit.counter.add(amount(limit, frame), limit.limit.amount, now_ms);
            if !taken.granted && limit.stops && frame.begins {
                for granted in limits[..index].iter().map(Borrow::borrow) {
                    granted.counter.give_back(amount(granted, frame), now_ms);
                }
                return false;
            }
        }
        true
    }
}

fn amount(limit: &FrameLimit, frame: &Frame) -> u64 {
    match limit.limit.unit {
        LimitUnit::Bytes => frame.bytes,
        _ => 1,
    }
}

impl FrameGate for FrameLimits {
    fn admits(&self, frame: &Frame) -> bool {
        self.count(&self.limits, frame)
    }

    fn refusal(&self) -> Option<&str> {
        self.refusal
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_refused_message_is_counted_nowhere() {
        let counters = Arc::<Counters>::default();
        let limit = |amount, unit, stops| FrameLimit {
            counter: Arc::new(Counter::new(3_600_000, 0)),
            limit: Limit { amount, unit, window: Duration::from_secs(3600) },
            stops,
            code: 0,
        };
        let limits = vec![
            limit(1, LimitUnit::Requests, false),
            limit(100, LimitUnit::Bytes, true),
            limit(3, LimitUnit::Requests, true),
        ];
        let limits = FrameLimits::new(&counters, limits, Vec::new(), None);
        let frame = |begins| Frame { from_client: true, begins, bytes: 20 };
        assert!(limits.admits(&frame(true)) && limits.admits(&frame(false)) && limits.admits(&frame(true)));
        assert!(!limits.admits(&frame(true)), "three events are all");
        assert!(limits.admits(&frame(false)), "the rest of a message follows its beginning");
        let used: Vec<u64> = limits.limits.iter().map(|limit| limit.counter.used(0).0).collect();
        assert_eq!(used, [80, 3, 1]);
    }
}
