//! Counts, exactly over all cores: fixed windows, or the generic cell rate algorithm.
//!
//! Every counter is two numbers under the lock of its part of the table. Keys are made of what clients say of
//! themselves, so counters are capped; at the cap those that expire soon are removed.

use std::time::Duration;

use crate::policy::chain::config::Algorithm;
use crate::policy::sharded::{PART_MAX, Part, Sharded, bounded};

/// From the year one, where Go's windows begin, to 1970.
const SECONDS_BEFORE_1970: u64 = 719_162 * 86_400;

/// One limit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limit {
    pub(super) amount: u64,
    pub(super) window: Duration,
    /// How many may come at once, at a steady rate.
    pub(super) burst: u64,
}

/// What a limit says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) granted: bool,
    pub(super) limit: u64,
    pub(super) left: u64,
    /// When it starts anew, in nanoseconds since 1970.
    pub(super) reset: u64,
    /// How long to wait, in nanoseconds.
    pub(super) retry: Option<u64>,
    pub(super) window: Duration,
}

/// The state of one limit for one key.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    /// When its window ends; when the last request was due at a steady rate.
    time: u64,
    /// What was used in the window.
    used: u64,
    /// When it says nothing any more.
    over: u64,
}

/// All counters.
#[derive(Debug, Default)]
pub(crate) struct Buckets(Sharded<Bucket>);

impl Limit {
    pub(super) fn nanos(&self) -> u64 {
        u64::try_from(self.window.as_nanos()).unwrap_or(u64::MAX).max(1)
    }

    /// Its identity.
    pub(super) fn signature(&self) -> String {
        format!("{}/{}/{};", self.amount, self.nanos(), self.burst)
    }

    /// The time from one request to the next at a steady rate.
    fn interval(&self) -> u64 {
        (self.nanos() / self.amount.max(1)).max(1)
    }

    /// When the window ends.
    fn end_of_window(&self, now: u64) -> u64 {
        let (nanos, offset) = (u128::from(self.nanos()), u128::from(SECONDS_BEFORE_1970) * 1_000_000_000);
        let since_start = (u128::from(now) + offset) % nanos;
        now.saturating_add((nanos - since_start) as u64)
    }
}

impl Buckets {
    /// Takes an amount from each limit of a key. The first that has not enough refuses; as in the API Platform those before
    /// it have counted the request.
    pub(super) fn take(&self, algorithm: Algorithm, limits: &[Limit], key: &str, amount: u64, now: u64) -> Verdict {
        let mut tightest: Option<Verdict> = None;
        for (index, limit) in limits.iter().enumerate() {
            let verdict = self.with(key, index, algorithm, now, |bucket| match algorithm {
                Algorithm::FixedWindow => take_of_window(bucket, limit, amount, now),
                Algorithm::Gcra => take_of_rate(bucket, limit, amount, now),
            });
            if !verdict.granted {
                return verdict;
            }
            if tightest.as_ref().is_none_or(|tightest| verdict.left < tightest.left) {
                tightest = Some(verdict);
            }
        }
        tightest.unwrap_or(Verdict {
            granted: true,
            limit: 0,
            left: 0,
            reset: now,
            retry: None,
            window: Duration::ZERO,
        })
    }

    /// Takes what was used already from each limit of a key, as far as it goes; says what the tightest says.
    pub(super) fn charge(
        &self,
        algorithm: Algorithm,
        limits: &[Limit],
        key: &str,
        amount: u64,
        now: u64,
    ) -> Option<Verdict> {
        let one = |(index, limit): (usize, &Limit)| {
            self.with(key, index, algorithm, now, |bucket| match algorithm {
                Algorithm::FixedWindow => {
                    let used = if bucket.time == limit.end_of_window(now) { bucket.used } else { 0 };
                    take_of_window(bucket, limit, amount.min(limit.amount.saturating_sub(used)), now)
                }
                Algorithm::Gcra => take_of_rate(bucket, limit, amount.min(left_of_rate(bucket.time, limit, now)), now),
            })
        };
        limits.iter().enumerate().map(one).min_by_key(|verdict| verdict.left)
    }

    /// What is left of the limit of which the least is left.
    pub(super) fn left(&self, algorithm: Algorithm, limits: &[Limit], key: &str, now: u64) -> u64 {
        let left = |(index, limit): (usize, &Limit)| {
            self.with(key, index, algorithm, now, |bucket| match algorithm {
                Algorithm::FixedWindow if bucket.time > now => limit.amount.saturating_sub(bucket.used),
                Algorithm::FixedWindow => limit.amount,
                Algorithm::Gcra => left_of_rate(bucket.time, limit, now),
            })
        };
        limits.iter().enumerate().map(left).min().unwrap_or(u64::MAX)
    }

    fn with<T>(
        &self,
        key: &str,
        index: usize,
        algorithm: Algorithm,
        now: u64,
        use_it: impl FnOnce(&mut Bucket) -> T,
    ) -> T {
        let key = kept(key, index, algorithm);
        let mut part = self.0.part(&key);
        if let Some(bucket) = part.get_mut(&*key) {
            return use_it(bucket);
        }
        if part.len() >= PART_MAX {
            make_room(&mut part, now);
        }
        let mut bucket = Bucket::default();
        let result = use_it(&mut bucket);
        if bucket.over > now {
            part.insert(key.into(), bucket);
        }
        result
    }

    /// Forgets counters that say nothing any more.
    pub(crate) fn sweep(&self) {
        let now = super::unix_nanos();
        self.0.parts().for_each(|mut part| part.retain(|_, bucket| bucket.over > now));
    }
}

/// A key as it is kept.
fn kept(key: &str, index: usize, algorithm: Algorithm) -> String {
    let kind = match algorithm {
        Algorithm::FixedWindow => 'w',
        Algorithm::Gcra => 'r',
    };
    format!("{kind}{index}{}", bounded(key))
}

fn make_room(part: &mut Part<Bucket>, now: u64) {
    part.retain(|_, bucket| bucket.over > now);
    if part.len() < PART_MAX {
        return;
    }
    // Windows end with the clock, many at once: of those, what was used most stays.
    let order = |bucket: &Bucket| (bucket.over, bucket.used);
    let mut all: Vec<(u64, u64)> = part.values().map(order).collect();
    let middle = all.len() / 2;
    let (_, middle, _) = all.select_nth_unstable(middle);
    let least = *middle;
    part.retain(|_, bucket| order(bucket) > least);
}

fn take_of_window(bucket: &mut Bucket, limit: &Limit, amount: u64, now: u64) -> Verdict {
    let end = limit.end_of_window(now);
    let used = if bucket.time == end { bucket.used } else { 0 };
    let sum = used.saturating_add(amount);
    let granted = sum <= limit.amount;
    if granted && amount > 0 {
        *bucket = Bucket { time: end, used: sum, over: end };
    }
    let left = limit.amount.saturating_sub(if granted { sum } else { used });
    let retry = (!granted).then(|| end - now);
    Verdict { granted, limit: limit.amount, left, reset: end, retry, window: limit.window }
}

fn take_of_rate(bucket: &mut Bucket, limit: &Limit, amount: u64, now: u64) -> Verdict {
    let (interval, due) = (limit.interval(), bucket.time.max(now));
    let verdict = |granted, left, reset, retry| Verdict {
        granted,
        limit: limit.amount,
        left,
        reset,
        retry,
        window: limit.window,
    };
    let left = left_of_rate(due, limit, now);
    if amount > left || left == 0 && amount > 0 {
        // One more is available after one interval of the burst.
        let ahead = (due - now).saturating_add(interval).saturating_sub(interval.saturating_mul(limit.burst));
        return verdict(false, left, due, (amount == 1).then_some(ahead.max(1)));
    }
    let next = due.saturating_add(interval.saturating_mul(amount));
    if amount > 0 {
        *bucket = Bucket { time: next, used: 0, over: next };
    }
    verdict(true, left_of_rate(next, limit, now), next, None)
}

/// How many may come at once.
fn left_of_rate(due: u64, limit: &Limit, now: u64) -> u64 {
    limit.burst.saturating_sub(due.saturating_sub(now).div_ceil(limit.interval()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::sharded::PARTS;

    const SECOND: u64 = 1_000_000_000;
    /// A full minute.
    const START: u64 = 1_700_000_040 * SECOND;

    fn limit(amount: u64, seconds: u64, burst: u64) -> Limit {
        Limit { amount, window: Duration::from_secs(seconds), burst }
    }

    #[test]
    fn a_window_grants_its_limit_and_begins_with_the_clock() {
        let buckets = Buckets::default();
        let minute = [limit(3, 60, 3)];
        let take = |amount, now| {
            let verdict = buckets.take(Algorithm::FixedWindow, &minute, "k", amount, now);
            (verdict.granted, verdict.left, (verdict.reset - START) / SECOND, verdict.retry.map(|nanos| nanos / SECOND))
        };
        assert_eq!(take(1, START + 10 * SECOND), (true, 2, 60, None));
        assert_eq!(take(3, START + 10 * SECOND), (false, 2, 60, Some(50)), "what is refused is not counted");
        assert_eq!(take(2, START + 59 * SECOND), (true, 0, 60, None));
        assert_eq!(take(1, START + 59 * SECOND), (false, 0, 60, Some(1)));
        assert_eq!(take(0, START + 59 * SECOND), (true, 0, 60, None));
        assert_eq!(take(1, START + 60 * SECOND), (true, 2, 120, None));
        assert_eq!(buckets.left(Algorithm::FixedWindow, &minute, "k", START + 61 * SECOND), 2);
        assert_eq!(buckets.left(Algorithm::FixedWindow, &minute, "other", START), 3);
    }

    #[test]
    fn at_a_steady_rate_a_burst_comes_at_once_and_the_rest_in_time() {
        let buckets = Buckets::default();
        let ten = [limit(10, 10, 3)];
        let take = |amount, now| {
            let verdict = buckets.take(Algorithm::Gcra, &ten, "k", amount, now);
            (verdict.granted, verdict.left, verdict.retry)
        };
        assert_eq!(take(1, START), (true, 2, None));
        assert_eq!(take(2, START), (true, 0, None));
        assert_eq!(take(1, START), (false, 0, Some(SECOND)));
        assert_eq!(take(1, START + SECOND / 2), (false, 0, Some(SECOND / 2)));
        assert_eq!(take(1, START + SECOND), (true, 0, None));
        assert_eq!(take(4, START + 60 * SECOND), (false, 3, None), "more than a burst never comes at once");
        assert_eq!(take(3, START + 60 * SECOND), (true, 0, None));
        assert_eq!(buckets.left(Algorithm::Gcra, &ten, "k", START + 62 * SECOND), 2);
    }

    #[test]
    fn all_limits_of_a_key_count_and_the_tightest_is_reported() {
        let buckets = Buckets::default();
        let both = [limit(10, 3600, 10), limit(2, 1, 2)];
        let told = |now| {
            let verdict = buckets.take(Algorithm::FixedWindow, &both, "k", 1, now);
            (verdict.granted, verdict.limit, verdict.left)
        };
        assert_eq!([told(START), told(START), told(START)], [(true, 2, 1), (true, 2, 0), (false, 2, 0)]);
        assert_eq!(told(START + SECOND), (true, 2, 1));
    }

    #[test]
    fn what_was_used_already_is_taken_from_every_limit() {
        for algorithm in [Algorithm::FixedWindow, Algorithm::Gcra] {
            let buckets = Buckets::default();
            let both = [limit(1000, 60, 1000), limit(10_000, 86_400, 10_000)];
            let charged = buckets.charge(algorithm, &both, "k", 5000, START).expect("there are limits");
            assert_eq!((charged.limit, charged.left), (1000, 0));
            assert_eq!(buckets.left(algorithm, &both[1..], "other", START), 10_000);
            let day = |now| {
                buckets.with("k", 1, algorithm, now, |bucket| match algorithm {
                    Algorithm::FixedWindow => both[1].amount - bucket.used,
                    Algorithm::Gcra => left_of_rate(bucket.time, &both[1], now),
                })
            };
            assert_eq!(day(START), 5000);
            buckets.charge(algorithm, &both, "k", 50_000, START);
            assert_eq!(day(START), 0);
        }
    }

    /// Callers that are made up share the window's end with one who has little left.
    #[test]
    fn who_used_most_stays_when_all_windows_end_at_once() {
        let buckets = Buckets::default();
        let ten = [limit(10, 3600, 10)];
        assert!(buckets.take(Algorithm::FixedWindow, &ten, "used up", 10, START).granted);
        for number in 0..2 * PARTS * PART_MAX {
            buckets.take(Algorithm::FixedWindow, &ten, &format!("made up {number}"), 1, START);
        }
        assert!(!buckets.take(Algorithm::FixedWindow, &ten, "used up", 1, START).granted);
    }

    #[test]
    fn counters_are_capped_and_long_keys_are_distinct() {
        let buckets = Buckets::default();
        let soon = [limit(1, 1, 1)];
        let late = [limit(1, 3600, 1)];
        assert!(buckets.take(Algorithm::FixedWindow, &late, "kept", 1, START).granted);
        for number in 0..2 * PARTS * PART_MAX {
            buckets.take(Algorithm::FixedWindow, &soon, &format!("made up {number}"), 1, START);
        }
        assert!(buckets.0.parts().all(|part| part.len() <= PART_MAX));
        assert!(!buckets.take(Algorithm::FixedWindow, &late, "kept", 1, START).granted);
        let long = |end: &str| "x".repeat(1000) + end;
        assert!(buckets.take(Algorithm::FixedWindow, &late, &long("a"), 1, START).granted);
        assert!(!buckets.take(Algorithm::FixedWindow, &late, &long("a"), 1, START).granted);
        assert!(buckets.take(Algorithm::FixedWindow, &late, &long("b"), 1, START).granted);
        buckets.sweep();
        assert!(buckets.0.parts().all(|part| part.is_empty()), "all of it is long ago");
    }
}
