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
    /// The answer is dropped. Micro Integrator leaves the client hanging; here it gets an error.
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
            // Micro Integrator has no bound; a year serves as none.
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
    /// How many trials there were, so that each has a number of its own.
    trials: u64,
    /// The message that is on its way to find out whether a suspended endpoint works again.
    trial: Option<Trial>,
}

#[derive(Debug)]
struct Trial {
    number: u64,
    /// Until when no other message is let through; `None`: until its outcome.
    exclusive_until: Option<Instant>,
}

/// How long a trial keeps others out whose body is still arriving: the client decides how long that takes.
const TRIAL_WITH_OPEN_BODY: Duration = Duration::from_secs(1);

/// The permission to send one message to an endpoint. Dropped without an outcome, because the client or the flow failed or
/// the request was given up, it decides nothing: the next message tries a suspended endpoint.
#[must_use]
pub struct Permit<'e> {
    state: &'e EndpointState,
    trial: Option<u64>,
}

impl EndpointState {
    /// The permission to send a message now; else how long the endpoint is left alone, when that is known. After a
    /// suspension one message is let through to try.
    pub fn admit(&self, body_is_arriving: bool) -> Result<Permit<'_>, Option<Duration>> {
        let phase = self.phase.load(Ordering::Relaxed);
        match phase {
            ACTIVE => return Ok(Permit { state: self, trial: None }),
            OFF => return Err(None),
            _ => {}
        }
        let mut detail = self.lock();
        let now = Instant::now();
        if let Some(at) = detail.retry_at.filter(|at| now < *at) {
            return Err(Some(at - now));
        }
        if phase == TIMEOUT {
            return Ok(Permit { state: self, trial: None });
        }
        match &detail.trial {
            Some(Trial { exclusive_until: None, .. }) => return Err(Some(Duration::ZERO)),
            Some(Trial { exclusive_until: Some(until), .. }) if now < *until => return Err(Some(*until - now)),
            _ => {}
        }
        detail.trials += 1;
        let number = detail.trials;
        let exclusive_until = body_is_arriving.then(|| now + TRIAL_WITH_OPEN_BODY);
        detail.trial = Some(Trial { number, exclusive_until });
        Ok(Permit { state: self, trial: Some(number) })
    }

    /// Whether messages are sent without conditions: it is switched on and has not failed lately.
    pub fn is_active(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == ACTIVE
    }

    /// The permission of a message that was sent while the endpoint was active.
    pub(crate) fn admitted(&self) -> Permit<'_> {
        Permit { state: self, trial: None }
    }

    /// Whether it is switched on.
    pub fn is_on(&self) -> bool {
        self.phase.load(Ordering::Relaxed) != OFF
    }

    /// Switches the endpoint off or on (management).
    pub fn switch(&self, on: bool) {
        self.lock().reset();
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

impl Detail {
    fn reset(&mut self) {
        *self = Detail { trials: self.trials, ..Detail::default() };
    }
}

impl Permit<'_> {
    /// The message was answered.
    pub fn succeeded(mut self) {
        self.trial = None;
        let phase = &self.state.phase;
        if !matches!(phase.load(Ordering::Relaxed), ACTIVE | OFF) {
            let mut detail = self.state.lock();
            detail.reset();
            phase.store(ACTIVE, Ordering::Relaxed);
        }
    }

    /// The backend failed with `code`. Returns whether that suspended the endpoint.
    pub fn failed(mut self, code: u32, suspension: &Suspension) -> bool {
        let number = self.trial.take();
        let phase = &self.state.phase;
        if phase.load(Ordering::Relaxed) == OFF {
            return false;
        }
        let timeouts = [codes::CONNECTION_TIMED_OUT, codes::CONNECTION_CLOSED];
        let marks: &[u32] = if suspension.mark_codes.is_empty() { &timeouts } else { &suspension.mark_codes };
        // An error that marks does not suspend at once, even if the other list has it.
        let is_marked = marks.contains(&code);
        let suspends = !is_marked && (suspension.suspend_codes.is_empty() || suspension.suspend_codes.contains(&code));
        let mut detail = self.state.lock();
        let again = phase.load(Ordering::Relaxed) == SUSPENDED;
        if again {
            if number.is_none() || detail.trial.as_ref().map(|trial| trial.number) != number {
                // Messages that were under way when it was suspended prove nothing new.
                return false;
            }
            detail.trial = None;
        }
        if !suspends {
            if !is_marked {
                return false;
            }
            detail.marked_failures += 1;
            if detail.marked_failures <= suspension.retries_before_suspension {
                detail.retry_at = Some(Instant::now() + suspension.retry_delay);
                phase.store(TIMEOUT, Ordering::Relaxed);
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
            phase.store(ACTIVE, Ordering::Relaxed);
            return false;
        }
        phase.store(SUSPENDED, Ordering::Relaxed);
        true
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        let Some(number) = self.trial.take() else { return };
        let mut detail = self.state.lock();
        if detail.trial.as_ref().is_some_and(|trial| trial.number == number) {
            detail.trial = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BRIEF: Suspension = Suspension {
        mark_codes: Vec::new(),
        retries_before_suspension: 0,
        retry_delay: Duration::ZERO,
        suspend_codes: Vec::new(),
        initial: Some(Duration::from_nanos(1)),
        factor: 1.0,
        maximum: Duration::from_secs(60),
    };

    fn permit(state: &EndpointState) -> Permit<'_> {
        state.admit(false).unwrap()
    }

    /// Fails a message and waits until its suspension, which is hardly one, is over.
    fn suspend(state: &EndpointState) {
        assert!(permit(state).failed(codes::CONNECTION_FAILED, &BRIEF));
        while state.lock().retry_at.is_some_and(|at| Instant::now() <= at) {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn any_error_suspends_and_the_pause_grows_to_its_maximum() {
        let state = EndpointState::default();
        let under_way = permit(&state);
        suspend(&state);
        assert!(!under_way.failed(codes::CONNECTION_FAILED, &BRIEF), "one that was under way counts once");
        let trial = permit(&state);
        assert!(state.admit(false).is_err(), "one message is let through after the pause");
        state.lock().last = Duration::from_secs(50);
        let rules = Suspension { factor: 1000.0, ..BRIEF };
        assert!(trial.failed(codes::CONNECTION_FAILED, &rules));
        assert_eq!(state.lock().last, rules.maximum);
        let Err(Some(wait)) = state.admit(false) else { panic!("it is suspended") };
        assert!(wait <= rules.maximum);
    }

    #[test]
    fn a_trial_without_an_outcome_decides_nothing() {
        let state = EndpointState::default();
        suspend(&state);
        for _ in 0..3 {
            let trial = permit(&state);
            assert!(state.admit(false).is_err());
            drop(trial);
            assert_eq!(state.phase(), "Suspended");
        }
        permit(&state).succeeded();
        assert_eq!(state.phase(), "Active");
    }

    #[test]
    fn a_trial_whose_client_still_sends_keeps_others_out_for_a_moment_only() {
        let state = EndpointState::default();
        suspend(&state);
        let slow = state.admit(true).unwrap();
        let Err(Some(wait)) = state.admit(false) else { panic!("the trial has just begun") };
        assert!(wait <= TRIAL_WITH_OPEN_BODY);
        if let Some(trial) = &mut state.lock().trial {
            trial.exclusive_until = Some(Instant::now());
        }
        let other = permit(&state);
        assert!(!slow.failed(codes::CONNECTION_FAILED, &BRIEF), "another trial took its place");
        other.succeeded();
        assert_eq!(state.phase(), "Active");
    }

    #[test]
    fn errors_that_neither_list_names_change_nothing() {
        let state = EndpointState::default();
        let never = Suspension { suspend_codes: vec![u32::MAX], mark_codes: vec![u32::MAX], ..Suspension::default() };
        assert!(!permit(&state).failed(codes::CONNECTION_FAILED, &never));
        assert!(!permit(&state).failed(codes::CONNECTION_TIMED_OUT, &never));
        assert_eq!(state.phase(), "Active");
        let both = Suspension {
            suspend_codes: vec![codes::CONNECTION_FAILED],
            mark_codes: vec![codes::CONNECTION_FAILED],
            retries_before_suspension: 1,
            ..Suspension::default()
        };
        assert!(!permit(&state).failed(codes::CONNECTION_FAILED, &both));
        assert_eq!(state.phase(), "Timeout");
    }

    #[test]
    fn marked_errors_suspend_only_after_their_retries() {
        let state = EndpointState::default();
        let rules = Suspension { retries_before_suspension: 2, ..Suspension::default() };
        for _ in 0..2 {
            assert!(!permit(&state).failed(codes::CONNECTION_TIMED_OUT, &rules));
            assert_eq!(state.phase(), "Timeout");
        }
        assert!(permit(&state).failed(codes::CONNECTION_TIMED_OUT, &rules));
        assert_eq!(state.phase(), "Suspended");
    }
}
