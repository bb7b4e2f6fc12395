//! All counters by key, with a cache on every core so that a request finds its own without a lock.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::window::Counter;

/// Counters a core keeps at hand. More callers than that at once look theirs up under a lock now and then.
const CACHED_MAX: usize = 4096;

/// How long a core keeps them at hand. Counters at hand are not swept.
const CACHED_FOR: Duration = Duration::from_secs(30);

/// What separates the parts of a key; no name holds it.
pub(super) const SEPARATOR: char = '\u{1f}';

/// What was used of a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitUse {
    /// What is counted: `subscription:7:/pets:1.0.0`, with the unit and the seconds of the window at its end.
    pub key: String,
    /// How much.
    pub used: u64,
    /// Of how much.
    pub limit: u64,
    /// When it starts anew.
    pub reset_ms: u64,
}

/// All counters.
#[derive(Debug)]
pub(crate) struct Counters {
    started: Instant,
    /// Tells the counters of one gateway from those of another in a core's cache.
    id: u64,
    all: Mutex<HashMap<Box<str>, Arc<Counter>>>,
}

/// A counter in the cache of a core. Requests share it by the `Rc`, for the count of an `Arc` is a place where cores meet.
#[derive(Debug)]
pub(super) struct AtHand(pub(super) Arc<Counter>);

#[derive(Default)]
struct Cache {
    id: u64,
    since: Option<Instant>,
    counters: HashMap<Box<str>, Rc<AtHand>>,
}

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::default();
}

impl Default for Counters {
    fn default() -> Counters {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Counters { started: Instant::now(), id: NEXT.fetch_add(1, Ordering::Relaxed), all: Mutex::default() }
    }
}

impl Counters {
    /// The clock of the counters.
    pub(super) fn millis(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.started).as_millis() as u64
    }

    /// The counter of a key, made when it is new.
    pub(super) fn get(&self, key: &str, window: Duration, now: Instant) -> Arc<Counter> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = all.get(key) {
            return counter.clone();
        }
        let counter = Arc::new(Counter::new(window.as_millis() as u64, self.millis(now)));
        all.insert(key.into(), counter.clone());
        counter
    }

    /// The counter of a key, from this core's cache.
    pub(super) fn at_hand(&self, key: &str, window: Duration, now: Instant) -> Rc<AtHand> {
        CACHE.with_borrow_mut(|cache| {
            let stale = cache.since.is_none_or(|since| now.saturating_duration_since(since) > CACHED_FOR);
            if cache.id != self.id || stale || cache.counters.len() > CACHED_MAX {
                cache.counters.clear();
                cache.since = Some(now);
                cache.id = self.id;
            }
            if let Some(counter) = cache.counters.get(key) {
                return counter.clone();
            }
            let counter = Rc::new(AtHand(self.get(key, window, now)));
            cache.counters.insert(key.into(), counter.clone());
            counter
        })
    }

    /// Forgets counters whose window is over and that nobody holds.
    pub(crate) fn sweep(&self) {
        let now = self.millis(Instant::now());
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever wants a counter that is only held here must wait for this lock.
        all.retain(|_, counter| Arc::strong_count(counter) > 1 || counter.used(now).0 > 0);
    }

    /// What was used of limits whose key holds `part`.
    pub(crate) fn used(&self, part: &str) -> Vec<LimitUse> {
        let now = self.millis(Instant::now());
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let uses = all.iter().map(|(key, counter)| {
            let (used, reset_ms) = counter.used(now);
            LimitUse { key: key.replace(SEPARATOR, ":"), used, limit: counter.limit(), reset_ms }
        });
        let mut found: Vec<_> = uses.filter(|one| one.used > 0 && one.key.contains(part)).collect();
        found.sort_by(|left, right| left.key.cmp(&right.key));
        found
    }

    /// Starts counters anew; says how many.
    pub(crate) fn reset(&self, part: &str) -> usize {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.millis(Instant::now());
        let mut count = 0;
        for (key, counter) in all.iter_mut().filter(|(key, _)| key.replace(SEPARATOR, ":").contains(part)) {
            let _ = key;
            counter.give_back(u64::MAX, now);
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn cores_share_counters_and_what_nobody_uses_is_forgotten() {
        let counters = Counters::default();
        let now = Instant::now();
        let granted: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let take = |_: &i32| counters.at_hand("a\u{1f}b", MINUTE, now).0.take(1000, 5).granted;
                        (0..900).filter(take).count() as u64
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(granted, 1000);
        let used = counters.used("a:b");
        assert_eq!((used.len(), used[0].used, used[0].limit), (1, 1000, 1000));
        assert_eq!(counters.used("c"), []);
        counters.sweep();
        assert_eq!(counters.used("").len(), 1, "it still counts");
        assert_eq!(counters.reset("a"), 1);
        counters.sweep();
        assert_eq!(counters.all.lock().unwrap().len(), 0);
    }
}
