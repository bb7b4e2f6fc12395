//! The suspension state machine: ACTIVE → TIMEOUT → SUSPENDED → ACTIVE.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use crate::codes;

/// `timeout/responseAction`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeoutAction {
    /// Not said: a timeout is a fault.
    #[default]
    None,
    /// The fault sequence runs.
    Fault,
    /// The answer is dropped. The original leaves the client hanging; here it gets an error.
    Discard,
}

/// When an endpoint is left alone and for how long.
#[derive(Debug, Clone)]
pub struct Suspension {
    /// Errors that mark it (`markForSuspension/errorCodes`); empty means the default timeout codes.
    pub mark_codes: Vec<u32>,
    /// How many marked failures in a row before it is suspended.
    pub retries_before_suspension: u32,
    /// Pause between those.
    pub retry_delay: Duration,
    /// Errors that suspend at once (`suspendOnFailure/errorCodes`); empty means any but the marked ones.
    pub suspend_codes: Vec<u32>,
    /// First suspension. `None` when the endpoint says nothing of it: the default, 30 s.
    pub initial: Option<Duration>,
    /// Each suspension is so many times the last.
    pub factor: f64,
    /// No suspension is longer.
    pub maximum: Duration,
}

impl Default for Suspension {
    fn default() -> Suspension {
        Suspension {
            mark_codes: Vec::new(),
            retries_before_suspension: 0,
            retry_delay: Duration::ZERO,
            suspend_codes: Vec::new(),
            initial: None,
            factor: 1.0,
            // The original has no bound; a year serves as none.
            maximum: Duration::from_secs(365 * 24 * 3600),
        }
    }
}

const DEFAULT_INITIAL: Duration = Duration::from_secs(30);
const ACTIVE: u8 = 0;
const TIMEOUT: u8 = 1;
const SUSPENDED: u8 = 2;
const OFF: u8 = 3;

/// What happened to an endpoint lately. The common case, active, costs one relaxed load.
#[derive(Debug, Default)]
pub struct EndpointState {
    phase: AtomicU8,
    detail: Mutex<Detail>,
}

#[derive(Debug, Default)]
struct Detail {
    marked_failures: u32,
    last: Duration,
    retry_at: Option<Instant>,
    /// One message was let through to try; its outcome counts.
    trying: bool,
}

impl EndpointState {
    /// Whether a message may be sent now. After a suspension one is let through to try.
    pub fn is_ready(&self) -> bool {
        match self.phase.load(Ordering::Relaxed) {
            ACTIVE => true,
            OFF => false,
            _ => {
                let mut detail = self.lock();
                let now = Instant::now();
                match detail.retry_at {
                    Some(at) if now < at => false,
                    _ => {
                        // Others wait for the outcome of this try, one `last` at the most.
                        detail.retry_at = Some(now + detail.last);
                        detail.trying = true;
                        true
                    }
                }
            }
        }
    }

    /// A message was answered.
    pub fn succeeded(&self) {
        if self.phase.load(Ordering::Relaxed) != ACTIVE {
            let mut detail = self.lock();
            *detail = Detail::default();
            self.phase.store(ACTIVE, Ordering::Relaxed);
        }
    }

    /// A message failed with `code`. Says whether that suspended the endpoint.
    pub fn failed(&self, code: u32, suspension: &Suspension) -> bool {
        if self.phase.load(Ordering::Relaxed) == OFF {
            return false;
        }
        let timeouts = [codes::CONNECTION_TIMED_OUT, codes::CONNECTION_CLOSED];
        let marks: &[u32] = if suspension.mark_codes.is_empty() { &timeouts } else { &suspension.mark_codes };
        // An error that marks does not suspend at once, whatever the other list says.
        let is_marked = marks.contains(&code);
        let suspends = !is_marked && (suspension.suspend_codes.is_empty() || suspension.suspend_codes.contains(&code));
        let mut detail = self.lock();
        let again = self.phase.load(Ordering::Relaxed) == SUSPENDED;
        if again && !std::mem::take(&mut detail.trying) {
            // Messages that were under way when it was suspended say nothing new.
            return false;
        }
        if !suspends {
            if !is_marked {
                return false;
            }
            detail.marked_failures += 1;
            if detail.marked_failures <= suspension.retries_before_suspension {
                detail.retry_at = Some(Instant::now() + suspension.retry_delay);
                self.phase.store(TIMEOUT, Ordering::Relaxed);
                return false;
            }
        }
        let wait = if again {
            detail.last.mul_f64(suspension.factor.clamp(0.0, 1e6)).min(suspension.maximum)
        } else {
            suspension.initial.unwrap_or(DEFAULT_INITIAL).min(suspension.maximum)
        };
        detail.last = wait;
        detail.retry_at = Some(Instant::now() + wait);
        if wait.is_zero() {
            self.phase.store(ACTIVE, Ordering::Relaxed);
            return false;
        }
        self.phase.store(SUSPENDED, Ordering::Relaxed);
        true
    }

    /// Switches the endpoint off or on (management).
    pub fn switch(&self, on: bool) {
        *self.lock() = Detail::default();
        self.phase.store(if on { ACTIVE } else { OFF }, Ordering::Relaxed);
    }

    /// `Active`, `Timeout`, `Suspended` or `Off`.
    pub fn phase(&self) -> &'static str {
        match self.phase.load(Ordering::Relaxed) {
            ACTIVE => "Active",
            TIMEOUT => "Timeout",
            SUSPENDED => "Suspended",
            _ => "Off",
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Detail> {
        self.detail.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_error_suspends_and_the_pause_grows_to_its_maximum() {
        let state = EndpointState::default();
        let rules = Suspension {
            initial: Some(Duration::from_millis(1)),
            factor: 1000.0,
            maximum: Duration::from_secs(60),
            ..Suspension::default()
        };
        assert!(state.is_ready());
        assert!(state.failed(codes::CONNECTION_FAILED, &rules));
        assert!(!state.failed(codes::CONNECTION_FAILED, &rules), "one that was under way counts once");
        std::thread::sleep(Duration::from_millis(2));
        assert!(state.is_ready(), "one message is let through after the pause");
        assert!(state.failed(codes::CONNECTION_FAILED, &rules));
        assert!(!state.is_ready());
        state.succeeded();
        assert!(state.is_ready());
    }

    #[test]
    fn errors_that_neither_list_names_change_nothing() {
        let state = EndpointState::default();
        let never = Suspension { suspend_codes: vec![u32::MAX], mark_codes: vec![u32::MAX], ..Suspension::default() };
        assert!(!state.failed(codes::CONNECTION_FAILED, &never));
        assert!(!state.failed(codes::CONNECTION_TIMED_OUT, &never));
        assert_eq!(state.phase(), "Active");
        let both = Suspension {
            suspend_codes: vec![codes::CONNECTION_FAILED],
            mark_codes: vec![codes::CONNECTION_FAILED],
            retries_before_suspension: 1,
            ..Suspension::default()
        };
        assert!(!state.failed(codes::CONNECTION_FAILED, &both));
        assert_eq!(state.phase(), "Timeout");
    }

    #[test]
    fn marked_errors_suspend_only_after_their_retries() {
        let state = EndpointState::default();
        let rules = Suspension { retries_before_suspension: 2, ..Suspension::default() };
        for _ in 0..2 {
            assert!(!state.failed(codes::CONNECTION_TIMED_OUT, &rules));
            assert_eq!(state.phase(), "Timeout");
        }
        assert!(state.failed(codes::CONNECTION_TIMED_OUT, &rules));
        assert_eq!(state.phase(), "Suspended");
    }
}
