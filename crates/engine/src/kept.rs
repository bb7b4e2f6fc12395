//! Answers that are kept for requests that are the same: a few shards, each behind a lock that is held for a lookup and
//! nothing else. Room is bounded in bytes and entries; the oldest goes first.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum size of all entries of a store, for any configuration.
const STORE_BYTES_MAX: usize = 64 << 20;

/// Shards of a store that may be large. A core holds a lock for some fifty nanoseconds, so that many cores rarely meet.
const SHARDS: usize = 8;

/// A number of entries below this is meant exactly, so it is not divided among shards.
const EXACT_ENTRIES: usize = 1024;

/// What an entry takes besides what it holds: its places in the table and in the order, with their slack.
const ENTRY_OVERHEAD_BYTES: usize = 512;

/// What a field takes besides its name and value.
const FIELD_OVERHEAD_BYTES: usize = 32;

/// Places of entries that were replaced or removed and that are not worth looking for.
const ORDER_SLACK: usize = 64;

/// The hash of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(pub [u8; 32]);

impl Key {
    /// As hexadecimal digits.
    pub fn to_text(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// From hexadecimal digits.
    pub fn parse(text: &str) -> Option<Key> {
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

/// What knows how much it takes.
pub trait Measured {
    /// Bytes of what it holds.
    fn bytes(&self) -> usize;
}

/// What fields take.
pub fn field_bytes<'a>(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> usize {
    fields.into_iter().map(|(name, value)| name.len() + value.len() + FIELD_OVERHEAD_BYTES).sum()
}

/// The store. All cores share it.
pub struct Store<V> {
    shards: Vec<Mutex<Shard<V>>>,
    /// Of one shard.
    entries_max: usize,
    /// Of one shard.
    bytes_max: usize,
}

struct Shard<V> {
    entries: HashMap<Key, Entry<V>>,
    /// Oldest first, by the numbers of entries; those of removed entries stay until the next cleanup.
    order: VecDeque<(Key, u64)>,
    next: u64,
    bytes: usize,
}

struct Entry<V> {
    value: Arc<V>,
    number: u64,
    since: Instant,
    lifetime: Duration,
    bytes: usize,
}

impl<V> Entry<V> {
    fn is_fresh(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) < self.lifetime
    }
}

impl<V: Measured> Store<V> {
    /// A store of at most so many entries.
    pub fn new(entries_max: Option<usize>) -> Store<V> {
        Store::with_room(entries_max, STORE_BYTES_MAX)
    }

    fn with_room(entries_max: Option<usize>, bytes_max: usize) -> Store<V> {
        let shards = if entries_max.is_some_and(|max| max < EXACT_ENTRIES) { 1 } else { SHARDS };
        let shard = || Shard { entries: HashMap::new(), order: VecDeque::new(), next: 0, bytes: 0 };
        Store {
            shards: (0..shards).map(|_| Mutex::new(shard())).collect(),
            entries_max: entries_max.map_or(usize::MAX, |max| max.div_ceil(shards)),
            bytes_max: bytes_max / shards,
        }
    }

    fn shard(&self, key: &Key) -> MutexGuard<'_, Shard<V>> {
        self.shards[usize::from(key.0[0]) % self.shards.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is kept under a key.
    pub fn get(&self, key: &Key, now: Instant) -> Option<Arc<V>> {
        let shard = self.shard(key);
        shard.entries.get(key).filter(|entry| entry.is_fresh(now)).map(|entry| entry.value.clone())
    }

    /// Keeps a value for this time; it replaces the value that the key had.
    pub fn put(&self, key: Key, value: V, lifetime: Duration, now: Instant) {
        let bytes = value.bytes() + ENTRY_OVERHEAD_BYTES;
        let mut shard = self.shard(&key);
        shard.remove(&key);
        if bytes > self.bytes_max {
            // It would push out all others, and then itself.
            return;
        }
        let number = shard.next;
        shard.next += 1;
        shard.bytes += bytes;
        shard.order.push_back((key, number));
        shard.entries.insert(key, Entry { value: Arc::new(value), number, since: now, lifetime, bytes });
        shard.shrink(now, self.entries_max, self.bytes_max);
        shard.tidy();
    }

    /// Lets go of one.
    pub fn remove(&self, key: &Key) {
        let mut shard = self.shard(key);
        shard.remove(key);
        shard.tidy();
    }

    /// Lets go of all that are too old.
    pub fn sweep(&self, now: Instant) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let old: Vec<Key> =
                shard.entries.iter().filter(|(_, entry)| !entry.is_fresh(now)).map(|(key, _)| *key).collect();
            old.iter().for_each(|key| shard.remove(key));
            shard.tidy();
        }
    }
}

impl<V: Measured> Default for Store<V> {
    fn default() -> Store<V> {
        Store::new(None)
    }
}

impl<V> fmt::Debug for Store<V> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The content is private.
        write!(out, "Store")
    }
}

impl<V> Shard<V> {
    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
        }
    }

    /// Lets go of the oldest until everything fits.
    fn shrink(&mut self, now: Instant, entries_max: usize, bytes_max: usize) {
        while let Some((key, number)) = self.order.front().copied() {
            let fits = self.entries.len() <= entries_max && self.bytes <= bytes_max;
            match self.entries.get(&key).filter(|entry| entry.number == number) {
                Some(entry) if fits && entry.is_fresh(now) => break,
                Some(_) => self.remove(&key),
                None => {}
            }
            self.order.pop_front();
        }
    }

    /// Forgets the places of entries that are gone, of which one client can make many.
    fn tidy(&mut self) {
        if self.order.len() > 2 * self.entries.len() + ORDER_SLACK {
            let entries = &self.entries;
            self.order.retain(|(key, number)| entries.get(key).is_some_and(|entry| entry.number == *number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Measured for usize {
        fn bytes(&self) -> usize {
            *self
        }
    }

    /// A key of the first shard.
    fn key(number: u8) -> Key {
        let mut key = [0; 32];
        key[1] = number;
        Key(key)
    }

    const MINUTE: Duration = Duration::from_secs(60);

    fn left(store: &Store<usize>, now: Instant) -> Vec<u8> {
        (0..=255).filter(|number| store.get(&key(*number), now).is_some()).collect()
    }

    #[test]
    fn the_oldest_goes_when_there_are_too_many() {
        let store = Store::with_room(Some(2), usize::MAX);
        let now = Instant::now();
        (0..3).for_each(|number| store.put(key(number), 1, MINUTE, now));
        assert_eq!(left(&store, now), [1, 2]);
        // One that is replaced is the newest.
        store.put(key(1), 1, MINUTE, now);
        store.put(key(3), 1, MINUTE, now);
        assert_eq!(left(&store, now), [1, 3]);
    }

    #[test]
    fn room_is_bounded() {
        let store = Store::with_room(None, SHARDS * 10_000);
        let now = Instant::now();
        (0..100).for_each(|number| store.put(key(number), 1000, MINUTE, now));
        assert_eq!(left(&store, now), [94, 95, 96, 97, 98, 99]);
        // What is larger than all room pushes nothing out but what was kept under its key.
        store.put(key(99), 20_000, MINUTE, now);
        assert_eq!(left(&store, now), [94, 95, 96, 97, 98]);
        assert_eq!(store.shard(&key(1)).bytes, 5 * (1000 + ENTRY_OVERHEAD_BYTES));
    }

    #[test]
    fn time_is_bounded() {
        let store = Store::with_room(None, usize::MAX);
        let now = Instant::now();
        store.put(key(1), 1, MINUTE, now);
        store.put(key(2), 1, 2 * MINUTE, now);
        assert_eq!(left(&store, now + MINUTE), [2]);
        store.sweep(now + MINUTE);
        assert_eq!(store.shard(&key(1)).entries.len(), 1);
        store.put(key(3), 1, MINUTE, now + 3 * MINUTE);
        assert_eq!(store.shard(&key(1)).entries.len(), 1, "what is too old goes with the next");
    }

    #[test]
    fn one_that_is_replaced_often_takes_one_place() {
        let store = Store::with_room(None, usize::MAX);
        let now = Instant::now();
        for _ in 0..10_000 {
            store.put(key(1), 1000, MINUTE, now);
            store.put(key(2), 1000, MINUTE, now);
            store.remove(&key(2));
        }
        let shard = store.shard(&key(1));
        assert_eq!((shard.entries.len(), shard.bytes), (1, 1000 + ENTRY_OVERHEAD_BYTES));
        assert!(shard.order.len() <= 2 + ORDER_SLACK, "{}", shard.order.len());
    }

    #[test]
    fn keys_are_text_and_back() {
        assert_eq!(Key::parse(&key(0xa7).to_text()), Some(key(0xa7)));
        assert_eq!(Key::parse("zz"), None);
    }
}
