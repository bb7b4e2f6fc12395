//! A counter of what was used in the current window, exact across cores.
//!
//! Window number and amount lie in one word, so that adding returns its window and how
//! much was there before. So each place below the limit is given once.

use std::sync::atomic::{AtomicU64, Ordering};

/// How much of the word is the amount: a terabyte, or as many requests.
const AMOUNT_BITS: u32 = 40;

/// The most a limit can be.
pub(super) const AMOUNT_MAX: u64 = (1 << AMOUNT_BITS) - 1;

/// Windows are counted modulo this. A counter that rested for so many windows that the number came round again would
/// believe an old amount: with windows of one second after half a year, and sweeps come every minute.
const WINDOWS: u64 = 1 << (64 - AMOUNT_BITS);

/// What was used of a limit.
#[derive(Debug)]
pub(crate) struct Counter {
    word: AtomicU64,
    /// When the first window began, in milliseconds of the state's clock.
    began_ms: u64,
    window_ms: u64,
    /// The time of its last use, for reports of the remainder.
    limit: AtomicU64,
}

/// What became of an attempt to use something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken {
    /// Whether it was within the limit.
    pub granted: bool,
    /// What is left.
    pub left: u64,
    /// How long the window still lasts.
    pub reset_ms: u64,
}

impl Counter {
    /// A counter whose first window begins now.
    pub(super) fn new(window_ms: u64, now_ms: u64) -> Counter {
        Counter { word: AtomicU64::new(0), began_ms: now_ms, window_ms: window_ms.max(1), limit: AtomicU64::new(0) }
    }

    /// Takes one of `limit`.
    pub(super) fn take(&self, limit: u64, now_ms: u64) -> Taken {
        self.add(1, limit, now_ms)
    }

    /// Adds an amount when there is any left. What is added may exceed the limit: only bytes are counted so, and how
    /// many there are is known too late to refuse them.
    pub(super) fn add(&self, amount: u64, limit: u64, now_ms: u64) -> Taken {
        let limit = limit.min(AMOUNT_MAX);
        if self.limit.load(Ordering::Relaxed) != limit {
            self.limit.store(limit, Ordering::Relaxed);
        }
        let (window, reset_ms) = self.window(now_ms);
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if is_older(word >> AMOUNT_BITS, window) {
                // A new window, with nothing in it but this.
                if limit == 0 {
                    return Taken { granted: false, left: 0, reset_ms };
                }
                let fresh = window << AMOUNT_BITS | amount.min(AMOUNT_MAX);
                match self.word.compare_exchange(word, fresh, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => return Taken { granted: true, left: limit.saturating_sub(amount), reset_ms },
                    Err(now) => word = now,
                }
                continue;
            }
            let used = word & AMOUNT_MAX;
            if used >= limit {
                return Taken { granted: false, left: 0, reset_ms };
            }
            let sum = (used + amount).min(AMOUNT_MAX);
            let next = word & !AMOUNT_MAX | sum;
            match self.word.compare_exchange_weak(word, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Taken { granted: true, left: limit.saturating_sub(sum), reset_ms },
                Err(now) => word = now,
            }
        }
    }

    /// Gives back what another limit refused.
    pub(super) fn give_back(&self, amount: u64, now_ms: u64) {
        let (window, _) = self.window(now_ms);
        let give = |word: u64| {
            let same = word >> AMOUNT_BITS == window;
            same.then(|| word & !AMOUNT_MAX | (word & AMOUNT_MAX).saturating_sub(amount))
        };
        // Nothing to do when the window is over.
        let _ = self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, give);
    }

    /// What was used in the current window, and how long it lasts.
    pub(super) fn used(&self, now_ms: u64) -> (u64, u64) {
        let (window, reset_ms) = self.window(now_ms);
        let word = self.word.load(Ordering::Relaxed);
        (if word >> AMOUNT_BITS == window { word & AMOUNT_MAX } else { 0 }, reset_ms)
    }

    /// How much of its limit was used, in parts of 1024.
    pub(super) fn share(&self, now_ms: u64) -> u64 {
        (self.used(now_ms).0 << 10) / self.limit().max(1)
    }

    /// The time of its last use.
    pub(super) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// The number of the current window and what is left of it.
    fn window(&self, now_ms: u64) -> (u64, u64) {
        let since = now_ms.saturating_sub(self.began_ms);
        ((since / self.window_ms) % WINDOWS, self.window_ms - since % self.window_ms)
    }
}

/// Whether a window is before another one, as numbers that come round say it.
fn is_older(window: u64, than: u64) -> bool {
    let ahead = than.wrapping_sub(window) % WINDOWS;
    ahead != 0 && ahead < WINDOWS / 2
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn a_window_grants_its_limit_and_the_next_one_again() {
        let counter = Counter::new(1000, 500);
        let taken = |now| counter.take(2, now);
        assert_eq!(taken(500), Taken { granted: true, left: 1, reset_ms: 1000 });
        assert_eq!(taken(900), Taken { granted: true, left: 0, reset_ms: 600 });
        assert_eq!(taken(1499), Taken { granted: false, left: 0, reset_ms: 1 });
        assert_eq!(taken(1500), Taken { granted: true, left: 1, reset_ms: 1000 });
        counter.give_back(1, 1600);
        assert_eq!(counter.used(1600), (0, 900));
        counter.give_back(1, 9999);
        assert_eq!(taken(1600).left, 1);
        assert_eq!(counter.used(9_000_000_000), (0, 500));
    }

    #[test]
    fn bytes_may_overshoot_by_the_last_message_only() {
        let counter = Counter::new(1000, 0);
        assert!(counter.add(90, 100, 0).granted);
        assert!(counter.add(50, 100, 0).granted);
        assert!(!counter.add(1, 100, 0).granted);
        assert_eq!(counter.used(0).0, 140);
    }

    #[test]
    fn many_threads_get_exactly_the_limit_of_every_window() {
        const LIMIT: u64 = 1000;
        let counter = Counter::new(10, 0);
        let clock = AtomicU64::new(0);
        let granted: Vec<AtomicU64> = (0..20).map(|_| AtomicU64::new(0)).collect();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        let step = clock.fetch_add(1, Ordering::Relaxed);
                        // Each window gets five times as many requests as its limit, and the clock moves on between them.
                        let now = step * 10 / (5 * LIMIT);
                        let Some(window) = granted.get((now / 10) as usize) else { return };
                        if counter.take(LIMIT, now).granted {
                            window.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        // A thread that was held up between reading the clock and asking counts in the window that is there then, so
        // single windows may differ by the number of threads, never upwards in sum.
        let sum: u64 = granted.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        assert_eq!(sum, LIMIT * granted.len() as u64);
    }
}
