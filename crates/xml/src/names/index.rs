//! A small hash table, and the hash of names.

use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

/// An open-addressing table of indices; what they stand for lives elsewhere.
#[derive(Clone, Default)]
pub(super) struct Index {
    /// The upper half is the hash, the lower the index plus one; zero is free. The length is a power of two or zero.
    slots: Vec<u64>,
    used: usize,
}

impl Index {
    pub(super) fn with_slots(count: usize) -> Index {
        Index { slots: vec![0; count], used: 0 }
    }

    #[inline]
    pub(super) fn find(&self, hash: u32, mut equal: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            let id = (slot as u32).wrapping_sub(1);
            if (slot >> 32) as u32 == hash && equal(id) {
                return Some(id);
            }
            at = (at + 1) & mask;
        }
    }

    pub(super) fn insert(&mut self, hash: u32, id: u32, hash_of: impl Fn(u32) -> u32) {
        if (self.used + 1) * 2 > self.slots.len() {
            let old = std::mem::take(&mut self.slots);
            self.slots = vec![0; (old.len() * 2).max(32)];
            for slot in old.into_iter().filter(|&slot| slot != 0) {
                let id = (slot as u32).wrapping_sub(1);
                self.place(hash_of(id), id);
            }
        }
        self.place(hash, id);
        self.used += 1;
    }

    fn place(&mut self, hash: u32, id: u32) {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = u64::from(hash) << 32 | (u64::from(id) + 1);
    }
}

/// A keyed hash of a short string. The key differs from process to process, so that names made to collide do not.
#[inline]
pub(crate) fn hash_name(bytes: &[u8], namespace: u32) -> u32 {
    let key = seed();
    let (first, last) = match bytes.len() {
        0 => (0, 0),
        length @ 1..=3 => {
            (u64::from(bytes[0]) | u64::from(bytes[length / 2]) << 8 | u64::from(bytes[length - 1]) << 16, 0)
        }
        4..=7 => (u64::from(load32(bytes, 0)), u64::from(load32(bytes, bytes.len() - 4))),
        8..=16 => (load64(bytes, 0), load64(bytes, bytes.len() - 8)),
        length => {
            let mut running = key;
            let mut at = 0;
            while at + 16 < length {
                running = fold(load64(bytes, at) ^ running, load64(bytes, at + 8) ^ MULTIPLIER);
                at += 16;
            }
            (load64(bytes, length - 16) ^ running, load64(bytes, length - 8))
        }
    };
    let context = u64::from(namespace) << 16 ^ bytes.len() as u64;
    let mixed = fold(first ^ key, last ^ context.wrapping_mul(MULTIPLIER) ^ key.rotate_left(32));
    (mixed ^ mixed >> 32) as u32
}

const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b ^ MULTIPLIER);
    product as u64 ^ (product >> 64) as u64
}

#[inline(always)]
fn load64(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

#[inline(always)]
fn load32(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |chunk| u32::from_le_bytes(*chunk))
}

/// Compares short strings of equal length without a call.
#[inline]
pub(crate) fn same_bytes(left: &[u8], right: &[u8]) -> bool {
    let length = left.len();
    if length != right.len() {
        return false;
    }
    match length {
        0..=3 => left.iter().zip(right).all(|(a, b)| a == b),
        4..=7 => load32(left, 0) == load32(right, 0) && load32(left, length - 4) == load32(right, length - 4),
        8..=16 => load64(left, 0) == load64(right, 0) && load64(left, length - 8) == load64(right, length - 8),
        _ => left == right,
    }
}

#[inline]
fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| std::collections::hash_map::RandomState::new().build_hasher().finish() | 1)
}
