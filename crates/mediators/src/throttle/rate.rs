//! Requests in a window, and a pause for clients that exceed it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A rate and how much of it was used. All callers of a rule share it.
#[derive(Debug)]
pub(super) struct Rate {
    count_max: u64,
    unit: Duration,
    prohibit: Duration,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    /// When the running unit of time ends.
    window_end: Option<Instant>,
    count: u64,
    /// Until when everything is refused.
    refused_until: Option<Instant>,
}

impl Rate {
    pub(super) fn new(count_max: u64, unit: Duration, prohibit: Duration) -> Rate {
        Rate { count_max, unit, prohibit, used: Mutex::default() }
    }

    /// Whether one more request is within the rate; it is counted then.
    pub(super) fn admits(&self, now: Instant) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.refused_until.is_some_and(|until| now < until) {
            return false;
        }
        let over = used.window_end.is_none_or(|end| now >= end);
        if over || used.refused_until.is_some() {
            *used = Used { window_end: Some(now + self.unit), count: 1, refused_until: None };
            return true;
        }
        if used.count < self.count_max {
            used.count += 1;
            return true;
        }
        // Without a pause of its own the refusal lasts as long as the unit of time.
        used.refused_until = if self.prohibit.is_zero() { used.window_end } else { Some(now + self.prohibit) };
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests at these milliseconds, and who is let in.
    fn check(rate: &Rate, steps: &[(u64, bool)]) {
        let start = Instant::now();
        for (at, expected) in steps {
            assert_eq!(rate.admits(start + Duration::from_millis(*at)), *expected, "at {at}");
        }
    }

    #[test]
    fn a_unit_of_time_begins_with_its_first_request() {
        let rate = Rate::new(2, Duration::from_millis(100), Duration::ZERO);
        check(
            &rate,
            &[(0, true), (10, true), (20, false), (99, false), (100, true), (150, true), (199, false), (200, true)],
        );
    }

    #[test]
    fn who_asks_more_pauses() {
        let rate = Rate::new(1, Duration::from_millis(100), Duration::from_millis(500));
        check(&rate, &[(0, true), (10, false), (150, false), (509, false), (510, true), (520, false)]);
        let short = Rate::new(1, Duration::from_millis(1000), Duration::from_millis(50));
        check(&short, &[(0, true), (10, false), (60, true), (70, false)]);
    }
}
