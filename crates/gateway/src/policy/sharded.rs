//! Counters by key, in parts with a lock each, so that cores seldom wait for each other.
//!
//! Keys are made of what clients send. So users of the table cap its parts, and long keys are kept by their digest.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Making room in one of so many parts takes well below a millisecond.
pub(super) const PARTS: usize = 64;

/// Counters in one part: a quarter of a million in all, in some 50 MB.
pub(super) const PART_MAX: usize = 4096;

/// Keys longer than this are kept by their digest: what a client sends may be as long as a head.
pub(super) const KEY_BYTES_MAX: usize = 256;

/// What separates the parts of a key; no name holds it.
pub(super) const SEPARATOR: char = '\u{1f}';

/// Some of the counters.
pub(super) type Part<C> = HashMap<Box<str>, C>;

/// The table.
#[derive(Debug)]
pub(super) struct Sharded<C> {
    hasher: RandomState,
    parts: [Mutex<Part<C>>; PARTS],
}

impl<C> Default for Sharded<C> {
    fn default() -> Sharded<C> {
        Sharded { hasher: RandomState::new(), parts: std::array::from_fn(|_| Mutex::default()) }
    }
}

impl<C> Sharded<C> {
    /// The part that has a key.
    pub(super) fn part(&self, key: &str) -> MutexGuard<'_, Part<C>> {
        let index = self.hasher.hash_one(key) as usize % PARTS;
        self.parts[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All parts, one after the other.
    pub(super) fn parts(&self) -> impl Iterator<Item = MutexGuard<'_, Part<C>>> {
        self.parts.iter().map(|part| part.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A key as it is kept.
pub(super) fn bounded(key: &str) -> Cow<'_, str> {
    if key.len() <= KEY_BYTES_MAX {
        return Cow::Borrowed(key);
    }
    let digest = ring::digest::digest(&ring::digest::SHA256, key.as_bytes());
    // The counter's subject stands at the beginning, which helps in debugging.
    let beginning: String = key.chars().take(KEY_BYTES_MAX / 8).collect();
    Cow::Owned(format!("{beginning}{SEPARATOR}{}", URL_SAFE_NO_PAD.encode(digest)))
}
