//! Names that were checked already.
//!
//! Messages repeat a handful of names, and the next message on a thread repeats those of the last. Whether a name is one
//! is found out once; later it only has to be the same bytes again. The tree uses the numbers given here to skip its own
//! lookup as well.
//!
//! Messages also repeat the order of their names: an item has the fields of the item before it. So the name that came
//! after the last one earlier is compared first, which needs neither the end of the new name nor its hash.

use std::cell::Cell;

use super::NameToken;
use crate::names::{hash_name, same_bytes};
use crate::scan::ends_name;

/// A table for the names of the messages of a thread: a collision costs little, a larger table would leave the cache.
const SLOTS: usize = 256;
/// A table for documents with many different names.
const SLOTS_MANY: usize = 1024;

/// A table with more text than this is not kept for the next document: it came from one with names like no other.
const KEPT_BYTES_MAX: usize = 8 << 10;

/// The names last seen, one per slot; a collision replaces.
#[derive(Default)]
pub(crate) struct SeenNames {
    slots: Vec<Seen>,
    /// The names themselves.
    text: Vec<u8>,
    /// The slot of the name found last.
    last: u32,
    /// The number the next new name gets. Never zero.
    pub(crate) next: u32,
    /// Identifies tables: numbers of one are invalid in another. Zero is that of a table which is not kept.
    pub(crate) identity: u64,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Seen {
    start: u32,
    len: u32,
    pub(crate) colon: u32,
    pub(crate) number: u32,
    /// The slot of the name that came next, the last time.
    follower: u32,
}

impl Seen {
    /// The name where it stands again.
    #[inline]
    pub(crate) fn token(self, start: usize, end: usize) -> NameToken {
        NameToken { start: start as u32, len: (end - start) as u32, colon: self.colon, number: self.number }
    }
}

thread_local! {
    /// The table of the last document of this thread.
    static KEPT: Cell<Option<SeenNames>> = const { Cell::new(None) };
    static IDENTITIES: Cell<u64> = const { Cell::new(0) };
}

impl SeenNames {
    /// The table of the last document of this thread, or an empty one.
    pub(crate) fn kept() -> SeenNames {
        KEPT.take().unwrap_or_else(|| {
            IDENTITIES.set(IDENTITIES.get() + 1);
            let mut empty = SeenNames::starting_at(1);
            empty.identity = IDENTITIES.get();
            empty
        })
    }

    /// An empty table for a part of a document, which counts on from the document's.
    pub(crate) fn starting_at(next: u32) -> SeenNames {
        SeenNames { slots: Vec::new(), text: Vec::new(), last: 0, next, identity: 0 }
    }

    /// The name that is expected at `start`, if it stands there and a tag goes on behind it; and where it ends.
    #[inline]
    pub(crate) fn expected(&mut self, text: &[u8], start: usize) -> Option<(Seen, usize)> {
        let slot = self.slots.get(self.last as usize)?.follower;
        let seen = *self.slots.get(slot as usize)?;
        let end = start + seen.len as usize;
        let ends = text.get(end).is_some_and(|&byte| ends_name(byte));
        // An unused slot would match where a name is missing.
        if !ends || seen.number == 0 || !same_bytes(self.bytes(&seen)?, &text[start..end]) {
            return None;
        }
        self.last = slot;
        Some((seen, end))
    }

    /// The earlier occurrence of a name, if this is one.
    #[inline]
    pub(crate) fn find(&mut self, text: &[u8], start: usize, end: usize) -> Option<Seen> {
        let name = &text[start..end];
        let slot = hash_name(name, 0) as usize & self.slots.len().wrapping_sub(1);
        // Two names with one place take turns otherwise.
        for slot in [slot, slot ^ 1] {
            let seen = *self.slots.get(slot)?;
            if seen.number != 0 && self.bytes(&seen).is_some_and(|earlier| same_bytes(earlier, name)) {
                self.follow(slot as u32);
                return Some(seen);
            }
        }
        None
    }

    #[inline]
    fn bytes(&self, seen: &Seen) -> Option<&[u8]> {
        self.text.get(seen.start as usize..seen.start as usize + seen.len as usize)
    }

    /// Remembers that the name in this slot came after the last one.
    #[inline]
    fn follow(&mut self, slot: u32) {
        if let Some(last) = self.slots.get_mut(self.last as usize) {
            last.follower = slot;
        }
        self.last = slot;
    }

    /// Remembers a name that was checked; returns its number.
    pub(crate) fn add(&mut self, text: &[u8], start: usize, end: usize, colon: u32) -> u32 {
        let number = self.next;
        self.next += 1;
        let name = &text[start..end];
        let Ok(place) = u32::try_from(self.text.len() + name.len()) else { return 0 };
        if self.slots.is_empty() {
            self.slots.resize(SLOTS, Seen::default());
        } else if self.slots.len() == SLOTS && self.text.len() > KEPT_BYTES_MAX {
            self.slots.clear();
            self.slots.resize(SLOTS_MANY, Seen::default());
        }
        let slot = hash_name(name, 0) as usize & (self.slots.len() - 1);
        self.text.extend_from_slice(name);
        let len = name.len() as u32;
        let slot = if self.slots[slot].number == 0 || self.slots[slot ^ 1].number != 0 { slot } else { slot ^ 1 };
        self.slots[slot] = Seen { start: place - len, len, colon, number, follower: 0 };
        self.follow(slot as u32);
        number
    }
}

impl Drop for SeenNames {
    fn drop(&mut self) {
        if self.identity == 0 || self.text.len() > KEPT_BYTES_MAX {
            return;
        }
        let mut kept = Some(std::mem::take(self));
        // A thread that ends keeps nothing.
        let _ = KEPT.try_with(|slot| kept = slot.replace(kept.take()));
        if let Some(left) = &mut kept {
            // Dropped now, and not kept in its turn.
            left.identity = 0;
        }
    }
}
