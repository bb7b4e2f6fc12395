//! All counters by key, with a cache on every core so that a request finds its own without a lock.
//!
//! Some keys are chosen by clients, so counters are capped. At the cap counters that
//! no core has at hand make room: first those whose window is over, then those of whose limit the least was used. A
//! counter with little left stays, so a client cannot reset it by inventing many others.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use super::window::Counter;
pub(super) use crate::policy::sharded::SEPARATOR;
use crate::policy::sharded::{self, PART_MAX, Sharded, bounded};

/// Counters a core keeps at hand. More callers than that at once look theirs up under a lock now and then.
const CACHED_MAX: usize = 4096;

/// How long a core keeps them at hand. Counters at hand are not swept.
const CACHED_FOR: Duration = Duration::from_secs(30);

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
    /// Distinguishes the counters of several gateways in a core's cache.
    id: u64,
    table: Sharded<Arc<Counter>>,
}

type Part = sharded::Part<Arc<Counter>>;

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
        Counters { started: Instant::now(), id: NEXT.fetch_add(1, Ordering::Relaxed), table: Sharded::default() }
    }
}

impl Counters {
    /// The clock of the counters.
    pub(super) fn millis(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.started).as_millis() as u64
    }

    /// The counter of a key, made when it is new.
    pub(super) fn get(&self, key: &str, window: Duration, now: Instant) -> Arc<Counter> {
        let key = &*bounded(key);
        let mut part = self.table.part(key);
        if let Some(counter) = part.get(key) {
            return counter.clone();
        }
        let now_ms = self.millis(now);
        if part.len() >= PART_MAX {
            make_room(&mut part, now_ms);
        }
        let counter = Arc::new(Counter::new(window.as_millis() as u64, now_ms));
        part.insert(key.into(), counter.clone());
        counter
    }

    fn parts(&self) -> impl Iterator<Item = MutexGuard<'_, Part>> {
        self.table.parts()
    }

    /// The counter of a key, from this core's cache.
    pub(super) fn at_hand(&self, key: &str, window: Duration, now: Instant) -> Rc<AtHand> {
        let key = &*bounded(key);
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

    /// Removes unheld counters whose window has ended.
    pub(crate) fn sweep(&self) {
        let now = self.millis(Instant::now());
        self.parts().for_each(|mut part| forget_unused(&mut part, now));
    }

    /// What was used of limits whose key holds `part`.
    pub(crate) fn used(&self, part: &str) -> Vec<LimitUse> {
        let now = self.millis(Instant::now());
        let mut found = Vec::new();
        for all in self.parts() {
            let uses = all.iter().map(|(key, counter)| {
                let (used, reset_ms) = counter.used(now);
                LimitUse { key: key.replace(SEPARATOR, ":"), used, limit: counter.limit(), reset_ms }
            });
            found.extend(uses.filter(|one| one.used > 0 && one.key.contains(part)));
        }
        found.sort_by(|left, right| left.key.cmp(&right.key));
        found
    }

    /// Starts counters anew; says how many.
    pub(crate) fn reset(&self, part: &str) -> usize {
        let now = self.millis(Instant::now());
        let mut count = 0;
        for all in self.parts() {
            for (_, counter) in all.iter().filter(|(key, _)| key.replace(SEPARATOR, ":").contains(part)) {
                counter.give_back(u64::MAX, now);
                count += 1;
            }
        }
        count
    }
}

/// Drops unheld counters whose window has ended: a request for one that is only held here must wait for
/// the lock of its part.
fn forget_unused(part: &mut Part, now_ms: u64) {
    part.retain(|_, counter| Arc::strong_count(counter) > 1 || counter.used(now_ms).0 > 0);
}

/// Makes room in a part that is full. All that is left may be at hand somewhere; that much is bounded by the caches of
/// the cores.
fn make_room(part: &mut Part, now_ms: u64) {
    forget_unused(part, now_ms);
    if part.len() < PART_MAX / 2 {
        return;
    }
    let mut shares: Vec<u64> =
        part.values().filter(|one| Arc::strong_count(one) == 1).map(|one| one.share(now_ms)).collect();
    if shares.is_empty() {
        return;
    }
    let middle = shares.len() / 2;
    let (_, middle, _) = shares.select_nth_unstable(middle);
    let least = *middle;
    part.retain(|_, counter| Arc::strong_count(counter) > 1 || counter.share(now_ms) > least);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::sharded::{KEY_BYTES_MAX, PARTS};

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn cores_share_counters_and_unused_ones_are_removed() {
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
        assert_eq!(counters.parts().map(|part| part.len()).sum::<usize>(), 0);
    }

    /// Callers that are made up take each other's places, not that of one who has little left.
    #[test]
    fn counters_are_capped() {
        const LIMIT: u64 = 10;
        let counters = Counters::default();
        let now = Instant::now();
        for _ in 0..9 {
            counters.get("nearly over", MINUTE, now).take(LIMIT, 0);
        }
        let held = counters.get("held", MINUTE, now);
        for number in 0..2 * PARTS * PART_MAX {
            counters.get(&format!("made up {number}"), MINUTE, now).take(LIMIT, 0);
        }
        assert!(counters.parts().all(|part| part.len() <= PART_MAX));
        assert!(counters.get("nearly over", MINUTE, now).take(LIMIT, 0).granted);
        assert!(!counters.get("nearly over", MINUTE, now).take(LIMIT, 0).granted);
        assert!(Arc::ptr_eq(&held, &counters.get("held", MINUTE, now)));
    }

    #[test]
    fn long_keys_are_kept_short_and_apart() {
        let counters = Counters::default();
        let now = Instant::now();
        let long = |end: &str| "ü".repeat(1000) + end;
        let first = counters.get(&long("a"), MINUTE, now);
        assert!(Arc::ptr_eq(&first, &counters.get(&long("a"), MINUTE, now)));
        assert!(Arc::ptr_eq(&first, &counters.at_hand(&long("a"), MINUTE, now).0));
        assert!(!Arc::ptr_eq(&first, &counters.get(&long("b"), MINUTE, now)));
        assert!(counters.parts().all(|part| part.keys().all(|key| key.len() <= KEY_BYTES_MAX)));
    }
}
