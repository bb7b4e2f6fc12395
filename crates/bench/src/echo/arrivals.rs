//! What reached the backend: the proof that a gateway did its work and did not answer by itself.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// What a request that reaches the backend must look like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArrivalRule {
    /// Path without query; any path if absent.
    pub path: Option<String>,
    /// Texts that the body must contain.
    pub text: Vec<String>,
    /// How often the body must contain each of the texts; at least once if absent.
    pub occurrences: Option<usize>,
    /// Such requests for each request of a client; 0 is one, too.
    pub times: u64,
}

/// Requests that reached the backend, counted by all of its threads.
#[derive(Debug, Default)]
pub struct Arrivals {
    expected: RwLock<Arc<Expected>>,
    requests: AtomicU64,
    mismatches: AtomicU64,
    waited_ns: AtomicU64,
    first_mismatch: Mutex<Option<String>>,
}

/// The rules, each with the number of requests that it is the first to match.
#[derive(Debug, Default)]
struct Expected(Vec<(ArrivalRule, AtomicU64)>);

/// Counts since the rules were set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArrivalCounts {
    /// Requests.
    pub requests: u64,
    /// Requests that match no rule.
    pub mismatches: u64,
    /// Requests by the rule that they match, divided by how often it must be matched for one request of a client.
    pub matched: Vec<u64>,
    /// Time that responses were held back, over all requests.
    pub waited_ns: u64,
}

impl ArrivalCounts {
    /// What was counted after `earlier`.
    pub fn since(&self, earlier: &ArrivalCounts) -> ArrivalCounts {
        let before = |index: usize| earlier.matched.get(index).copied().unwrap_or(0);
        let matched = self.matched.iter().enumerate();
        ArrivalCounts {
            requests: self.requests.saturating_sub(earlier.requests),
            mismatches: self.mismatches.saturating_sub(earlier.mismatches),
            matched: matched.map(|(index, count)| count.saturating_sub(before(index))).collect(),
            waited_ns: self.waited_ns.saturating_sub(earlier.waited_ns),
        }
    }

    /// Requests that match the rule that fewest match: how often the whole of the expected work was done.
    pub fn complete(&self) -> u64 {
        self.matched.iter().copied().min().unwrap_or(self.requests)
    }

    /// How long a response was held back on average, in milliseconds; 0 without requests.
    pub fn delay_ms(&self) -> f64 {
        if self.requests == 0 { 0.0 } else { self.waited_ns as f64 / self.requests as f64 / 1e6 }
    }
}

impl Arrivals {
    /// Sets the rules and starts counting from zero. Every request must match one of them; without rules, any request
    /// will do.
    pub fn expect(&self, rules: Vec<ArrivalRule>) {
        let expected = Expected(rules.into_iter().map(|rule| (rule, AtomicU64::new(0))).collect());
        *self.expected.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(expected);
        *self.first_mismatch.lock().unwrap_or_else(PoisonError::into_inner) = None;
        for count in [&self.requests, &self.mismatches, &self.waited_ns] {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// Counts since the rules were set.
    pub fn counts(&self) -> ArrivalCounts {
        let expected = self.expected();
        ArrivalCounts {
            requests: self.requests.load(Ordering::Relaxed),
            mismatches: self.mismatches.load(Ordering::Relaxed),
            matched: expected.0.iter().map(|(rule, count)| count.load(Ordering::Relaxed) / rule.times.max(1)).collect(),
            waited_ns: self.waited_ns.load(Ordering::Relaxed),
        }
    }

    /// Why what reached the backend is not the work that is expected; `None` if it is.
    pub fn unproved(&self) -> Option<String> {
        if self.requests.load(Ordering::Relaxed) == 0 {
            return Some("no request reached the backend".to_owned());
        }
        if let Some(why) = self.first_mismatch.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            return Some(why);
        }
        let expected = self.expected();
        let counts = expected.0.iter().map(|(rule, count)| (rule, count.load(Ordering::Relaxed)));
        let (rule, count) = counts.into_iter().find(|(rule, count)| *count < rule.times.max(1))?;
        let place = rule.path.as_deref().map_or_else(String::new, |path| format!(" with the path `{path}`"));
        Some(format!("{count} of {} requests{place} reached the backend", rule.times.max(1)))
    }

    fn expected(&self) -> Arc<Expected> {
        self.expected.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn record(&self, path: &[u8], body: &[u8]) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let expected = self.expected();
        let mut why = None;
        for (rule, count) in &expected.0 {
            match rule.mismatch(path, body) {
                None => {
                    count.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                Some(reason) => drop(why.get_or_insert(reason)),
            }
        }
        if let Some(why) = why {
            self.mismatches.fetch_add(1, Ordering::Relaxed);
            self.first_mismatch.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        }
    }

    pub(super) fn record_wait(&self, waited: Duration) {
        self.waited_ns.fetch_add(u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl ArrivalRule {
    fn mismatch(&self, path: &[u8], body: &[u8]) -> Option<String> {
        let path = path.split(|byte| *byte == b'?').next().unwrap_or_default();
        if let Some(expected) = &self.path
            && path != expected.as_bytes()
        {
            return Some(format!(
                "the backend got the path `{}` instead of `{expected}`",
                String::from_utf8_lossy(path)
            ));
        }
        let count = |text: &str| memchr::memmem::find_iter(body, text).count();
        match self.occurrences {
            None => {
                let missing = self.text.iter().find(|text| memchr::memmem::find(body, text.as_bytes()).is_none())?;
                Some(format!("the backend got a body without `{missing}`"))
            }
            Some(expected) => {
                let (text, count) = self.text.iter().map(|text| (text, count(text))).find(|(_, n)| *n != expected)?;
                Some(format!("the backend got a body with {count} times `{text}` instead of {expected}"))
            }
        }
    }
}
