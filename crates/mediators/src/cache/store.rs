//! Where answers are kept: a few shards, each behind a lock that is held for a lookup and nothing else.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Answer;

/// Shards of a cache that may be large. A core holds a lock for some fifty nanoseconds, so that many
/// cores rarely meet.
const SHARDS: usize = 16;
/// What one cache keeps in memory, whatever its configuration says.
const CACHE_BYTES_MAX: usize = 64 << 20;
/// Larger answers are files; they stream.
pub(super) const ENTRY_BYTES_MAX: usize = 4 << 20;
/// What an entry takes besides its body.
const ENTRY_OVERHEAD_BYTES: usize = 512;

/// The hash of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key(pub(super) [u8; 32]);

impl Key {
    pub(super) fn to_text(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(super) fn parse(text: &str) -> Option<Key> {
        let mut key = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (index, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok()?;
        }
        Some(Key(key))
    }
}

pub(super) struct Store {
    shards: Vec<Mutex<Shard>>,
    timeout: Duration,
}

#[derive(Default)]
struct Shard {
    entries: HashMap<Key, Entry>,
    /// Oldest first; entries that were replaced stand here more than once.
    order: VecDeque<(Key, Instant)>,
    bytes: usize,
    entries_max: usize,
    bytes_max: usize,
}

struct Entry {
    answer: Arc<Answer>,
    kept: Instant,
}

impl Store {
    /// A store of at most so many entries, each for so long.
    pub(super) fn new(entries_max: Option<usize>, timeout: Duration) -> Store {
        // A small number is meant exactly, so it is not divided.
        let shards = if entries_max.is_some_and(|max| max < 1024) { 1 } else { SHARDS };
        let shard = || Shard {
            entries_max: entries_max.map_or(usize::MAX, |max| max.div_ceil(shards)),
            bytes_max: CACHE_BYTES_MAX / shards,
            ..Shard::default()
        };
        Store { shards: (0..shards).map(|_| Mutex::new(shard())).collect(), timeout }
    }

    fn shard(&self, key: &Key) -> std::sync::MutexGuard<'_, Shard> {
        let shard = &self.shards[usize::from(key.0[0]) % self.shards.len()];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, key: &Key, now: Instant) -> Option<Arc<Answer>> {
        let shard = self.shard(key);
        let entry = shard.entries.get(key)?;
        (now.duration_since(entry.kept) < self.timeout).then(|| entry.answer.clone())
    }

    pub(super) fn put(&self, key: Key, answer: Arc<Answer>, now: Instant) {
        let mut shard = self.shard(&key);
        shard.remove(&key);
        shard.bytes += size_of(&answer);
        shard.entries.insert(key, Entry { answer, kept: now });
        shard.order.push_back((key, now));
        shard.shrink(now, self.timeout);
    }

    pub(super) fn remove(&self, key: &Key) {
        self.shard(key).remove(key);
    }
}

fn size_of(answer: &Answer) -> usize {
    answer.body.len() + ENTRY_OVERHEAD_BYTES
}

impl Shard {
    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= size_of(&entry.answer);
        }
    }

    /// Lets go of the oldest until everything fits.
    fn shrink(&mut self, now: Instant, timeout: Duration) {
        while let Some((key, kept)) = self.order.front().copied() {
            let current = self.entries.get(&key).is_some_and(|entry| entry.kept == kept);
            let too_much = self.entries.len() > self.entries_max || self.bytes > self.bytes_max;
            let expired = now.duration_since(kept) >= timeout;
            if current && !too_much && !expired {
                break;
            }
            self.order.pop_front();
            if current {
                self.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn answer(bytes: usize) -> Arc<Answer> {
        Arc::new(Answer {
            status: 200,
            reason: None,
            headers: penstock_message::Headers::new(),
            content_type: None,
            body: vec![0; bytes].into(),
            fetched: SystemTime::now(),
        })
    }

    fn key(number: u8) -> Key {
        Key([number; 32])
    }

    #[test]
    fn the_oldest_goes_when_there_are_too_many() {
        let store = Store::new(Some(2), Duration::from_secs(60));
        let now = Instant::now();
        for number in 0..3 {
            store.put(key(number), answer(1), now + Duration::from_millis(u64::from(number)));
        }
        let found: Vec<bool> = (0..3).map(|number| store.get(&key(number), now).is_some()).collect();
        assert_eq!(found, [false, true, true]);
    }

    #[test]
    fn entries_expire_and_are_let_go() {
        let store = Store::new(None, Duration::from_secs(1));
        let now = Instant::now();
        store.put(key(1), answer(1), now);
        assert!(store.get(&key(1), now).is_some());
        let later = now + Duration::from_secs(2);
        assert!(store.get(&key(1), later).is_none());
        store.put(key(17), answer(1), later);
        assert_eq!(store.shard(&key(1)).entries.len(), 1);
    }

    #[test]
    fn memory_is_bounded() {
        let store = Store::new(None, Duration::from_secs(60));
        let now = Instant::now();
        for number in 0..200u8 {
            // The first byte chooses the shard: all in one.
            let mut own = [number; 32];
            own[0] = 0;
            store.put(Key(own), answer(1 << 20), now + Duration::from_millis(u64::from(number)));
        }
        assert!(store.shard(&key(0)).bytes <= CACHE_BYTES_MAX / SHARDS);
    }

    #[test]
    fn keys_are_text_and_back() {
        assert_eq!(Key::parse(&key(0xa7).to_text()), Some(key(0xa7)));
        assert_eq!(Key::parse("zz"), None);
    }
}
