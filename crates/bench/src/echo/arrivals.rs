//! What reached the backend: the proof that a gateway did its work and did not answer by itself.
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// What every request that reaches the backend must look like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArrivalRule {
    /// Path without query; any path if absent.
    pub path: Option<String>,
    /// Texts that the body must contain.
    pub text: Vec<String>,
}

/// Requests that reached the backend, counted by all of its threads.
#[derive(Debug, Default)]
pub struct Arrivals {
    rule: RwLock<Arc<ArrivalRule>>,
    requests: AtomicU64,
    mismatches: AtomicU64,
    first_mismatch: Mutex<Option<String>>,
}

/// Counts since the rule was set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArrivalCounts {
    /// Requests.
    pub requests: u64,
    /// Requests that do not match the rule.
    pub mismatches: u64,
}

impl Arrivals {
    /// Sets the rule and starts counting from zero.
    pub fn expect(&self, rule: ArrivalRule) {
        *self.rule.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rule);
        *self.first_mismatch.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.requests.store(0, Ordering::Relaxed);
        self.mismatches.store(0, Ordering::Relaxed);
    }

    /// Counts since the rule was set.
    pub fn counts(&self) -> ArrivalCounts {
        ArrivalCounts {
            requests: self.requests.load(Ordering::Relaxed),
            mismatches: self.mismatches.load(Ordering::Relaxed),
        }
    }

    /// Why the first request that does not match the rule does not.
    pub fn first_mismatch(&self) -> Option<String> {
        self.first_mismatch.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn record(&self, path: &[u8], body: &[u8]) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let rule = self.rule.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(why) = rule.mismatch(path, body) {
            self.mismatches.fetch_add(1, Ordering::Relaxed);
            self.first_mismatch.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        }
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
        let missing = self.text.iter().find(|text| memchr::memmem::find(body, text.as_bytes()).is_none())?;
        Some(format!("the backend got a body without `{missing}`"))
    }
}
