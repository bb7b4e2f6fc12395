//! Limits of WebSocket connections: each frame of a message counts as an event and with its bytes, in both directions.
//! A message that a limit refuses is left out; the connection stays.

use std::sync::Arc;
use std::time::Instant;

use penstock_catalog::{Limit, LimitUnit};
use penstock_engine::websocket::{Frame, FrameGate};

use super::window::Counter;
use crate::state::GatewayState;

/// One limit of one connection.
#[derive(Debug)]
pub(super) struct FrameLimit {
    pub(super) counter: Arc<Counter>,
    pub(super) limit: Limit,
    /// Whether it refuses, or only counts.
    pub(super) stops: bool,
}

/// All limits of one connection.
#[derive(Debug)]
pub(crate) struct FrameLimits {
    state: Arc<GatewayState>,
    /// Those that refuse come first, so that whatever lies before one that does was granted.
    limits: Vec<FrameLimit>,
}

impl FrameLimits {
    pub(super) fn new(state: &Arc<GatewayState>, mut limits: Vec<FrameLimit>) -> FrameLimits {
        limits.sort_by_key(|limit| !limit.stops);
        FrameLimits { state: state.clone(), limits }
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
        let now_ms = self.state.counters.millis(Instant::now());
        for (index, limit) in self.limits.iter().enumerate() {
            let taken = limit.counter.add(amount(limit, frame), limit.limit.amount, now_ms);
            if !taken.granted && limit.stops && frame.begins {
                for granted in &self.limits[..index] {
                    granted.counter.give_back(amount(granted, frame), now_ms);
                }
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_refused_message_is_counted_nowhere() {
        let state = Arc::<GatewayState>::default();
        let limit = |amount, unit, stops| FrameLimit {
            counter: Arc::new(Counter::new(3_600_000, 0)),
            limit: Limit { amount, unit, window: Duration::from_secs(3600) },
            stops,
        };
        let limits = vec![
            limit(1, LimitUnit::Requests, false),
            limit(100, LimitUnit::Bytes, true),
            limit(3, LimitUnit::Requests, true),
        ];
        let limits = FrameLimits::new(&state, limits);
        let frame = |begins| Frame { from_client: true, begins, bytes: 20 };
        assert!(limits.admits(&frame(true)) && limits.admits(&frame(false)) && limits.admits(&frame(true)));
        assert!(!limits.admits(&frame(true)), "three events are all");
        assert!(limits.admits(&frame(false)), "the rest of a message follows its beginning");
        let used: Vec<u64> = limits.limits.iter().map(|limit| limit.counter.used(0).0).collect();
        assert_eq!(used, [80, 3, 1]);
    }
}
