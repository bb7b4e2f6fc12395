//! Where answers are kept: a few shards, each behind a lock that is held for a lookup and nothing else. One for the
//! process, with a fixed room.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

/// A core holds a lock for some fifty nanoseconds, so that many cores rarely meet.
const SHARDS: usize = 16;
/// What all kept answers take together.
const CACHE_BYTES_MAX: usize = 64 << 20;
/// Larger answers are files; they stream. Four of them fill a shard.
pub(super) const ENTRY_BYTES_MAX: usize = 1 << 20;
/// What an entry takes besides its body and fields.
const ENTRY_OVERHEAD_BYTES: usize = 256;

/// Places of replaced answers that are not worth looking for.
const ORDER_SLACK: usize = 64;

/// The hash of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key(pub(super) [u8; 32]);

/// A kept answer.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(super) fields: Vec<(Box<str>, Box<[u8]>)>,
    pub(super) reason: Option<Arc<str>>,
    pub(super) body: Bytes,
    /// When it came.
    pub(super) since: Instant,
    /// How old it was then.
    pub(super) was_old: Duration,
    /// How old it may become.
    pub(super) lifetime: Duration,
}

impl Kept {
    pub(super) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since).saturating_add(self.was_old)
    }

    fn is_fresh(&self, now: Instant) -> bool {
        self.age(now) < self.lifetime
    }

    fn bytes(&self) -> usize {
        let fields: usize = self.fields.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
        self.body.len() + fields + ENTRY_OVERHEAD_BYTES
    }
}

/// Kept answers of all APIs.
pub(crate) struct ResponseCache {
    shards: [Mutex<Shard>; SHARDS],
    shard_bytes_max: usize,
}

#[derive(Default)]
struct Shard {
    entries: HashMap<Key, Arc<Kept>>,
    /// Oldest first; entries that were replaced stand here more than once.
    order: VecDeque<(Key, Instant)>,
    bytes: usize,
}

impl Default for ResponseCache {
    fn default() -> ResponseCache {
        ResponseCache { shards: Default::default(), shard_bytes_max: CACHE_BYTES_MAX / SHARDS }
    }
}

impl fmt::Debug for ResponseCache {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Answers are nobody's business.
        write!(out, "ResponseCache")
    }
}

impl ResponseCache {
    fn shard(&self, key: &Key) -> MutexGuard<'_, Shard> {
        self.shards[usize::from(key.0[0]) % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, key: &Key, now: Instant) -> Option<Arc<Kept>> {
        let shard = self.shard(key);
        shard.entries.get(key).filter(|kept| kept.is_fresh(now)).cloned()
    }

    pub(super) fn put(&self, key: Key, kept: Kept, now: Instant) {
        let mut shard = self.shard(&key);
        shard.remove(&key);
        shard.bytes += kept.bytes();
        shard.order.push_back((key, kept.since));
        shard.entries.insert(key, Arc::new(kept));
        shard.tidy();
        shard.shrink(now, self.shard_bytes_max);
    }

    /// Lets go of what is too old, and whose turn in the order has come.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let old: Vec<Key> =
                shard.entries.iter().filter(|(_, kept)| !kept.is_fresh(now)).map(|(key, _)| *key).collect();
            old.iter().for_each(|key| shard.remove(key));
            shard.shrink(now, self.shard_bytes_max);
        }
    }
}

impl Shard {
    fn remove(&mut self, key: &Key) {
        if let Some(kept) = self.entries.remove(key) {
            self.bytes -= kept.bytes();
        }
    }

    /// Forgets the places of answers that were replaced, which one client can make many of.
    fn tidy(&mut self) {
        if self.order.len() > 2 * self.entries.len() + ORDER_SLACK {
            let entries = &self.entries;
            let mut seen = HashSet::new();
            self.order
                .retain(|(key, since)| entries.get(key).is_some_and(|kept| kept.since == *since) && seen.insert(*key));
        }
    }

    /// Lets go of the oldest until everything fits.
    fn shrink(&mut self, now: Instant, bytes_max: usize) {
        while let Some((key, since)) = self.order.front().copied() {
            let current = self.entries.get(&key).filter(|kept| kept.since == since);
            let stays = current.is_some_and(|kept| kept.is_fresh(now)) && self.bytes <= bytes_max;
            if stays {
                break;
            }
            let is_current = current.is_some();
            self.order.pop_front();
            if is_current {
                self.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(bytes: usize, since: Instant) -> Kept {
        Kept {
            fields: Vec::new(),
            reason: None,
            body: vec![0; bytes].into(),
            since,
            was_old: Duration::ZERO,
            lifetime: Duration::from_secs(10),
        }
    }

    #[test]
    fn an_age_that_a_backend_made_up_is_only_old() {
        let since = Instant::now();
        let kept = Kept { was_old: Duration::MAX, ..kept(1, since) };
        assert_eq!(kept.age(since + Duration::from_secs(1)), Duration::MAX);
        assert!(!kept.is_fresh(since + Duration::from_secs(1)));
    }

    #[test]
    fn room_is_bounded_and_time_too() {
        let cache = ResponseCache { shard_bytes_max: 10_000, ..ResponseCache::default() };
        let now = Instant::now();
        // All in the first shard.
        let key = |number: u8| {
            let mut key = [0; 32];
            key[1] = number;
            Key(key)
        };
        for number in 0..100 {
            cache.put(key(number), kept(1000, now + Duration::from_millis(number.into())), now);
        }
        let left: Vec<u8> = (0..100).filter(|number| cache.get(&key(*number), now).is_some()).collect();
        assert_eq!(left, [93, 94, 95, 96, 97, 98, 99]);
        assert!(cache.get(&key(99), now + Duration::from_millis(10_098)).is_some());
        assert!(cache.get(&key(99), now + Duration::from_millis(10_099)).is_none());
        // One that is replaced does not count twice.
        for _ in 0..100 {
            cache.put(key(99), kept(1000, now), now);
        }
        let shard = cache.shard(&key(99));
        assert!(shard.bytes <= 10_000 && shard.entries.len() == 7, "{} {}", shard.bytes, shard.entries.len());
        assert!(shard.order.len() <= 2 * 7 + ORDER_SLACK, "{}", shard.order.len());
    }
}
