//! Names that were checked already.
//!
//! Messages repeat a handful of names, and the next message on a thread repeats those of the last. Whether a name is one
//! is found out once; later it only has to be the same bytes again. The tree uses the numbers given here to skip its own
//! lookup as well.

use std::cell::Cell;

use crate::names::{hash_name, same_bytes};

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
    /// The number the next new name gets. Never zero.
    pub(crate) next: u32,
    /// Tells tables apart: numbers of one say nothing to another. Zero is that of a table which is not kept.
    pub(crate) identity: u64,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Seen {
    start: u32,
    len: u32,
    pub(crate) colon: u32,
    pub(crate) number: u32,
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
            SeenNames { slots: Vec::new(), text: Vec::new(), next: 1, identity: IDENTITIES.get() }
        })
    }

    /// An empty table for a part of a document, which counts on from the document's.
    pub(crate) fn starting_at(next: u32) -> SeenNames {
        SeenNames { slots: Vec::new(), text: Vec::new(), next, identity: 0 }
    }

    /// The earlier occurrence of a name, if this is one.
    #[inline]
    pub(crate) fn find(&self, text: &[u8], start: usize, end: usize) -> Option<&Seen> {
        let name = &text[start..end];
        let slot = hash_name(name, 0) as usize & self.slots.len().wrapping_sub(1);
        // Two names with one place take turns otherwise.
        let is_this = |seen: &&Seen| {
            let earlier = self.text.get(seen.start as usize..seen.start as usize + seen.len as usize);
            // An unused slot would match where a name is missing.
            seen.number != 0 && earlier.is_some_and(|earlier| same_bytes(earlier, name))
        };
        self.slots.get(slot).filter(is_this).or_else(|| self.slots.get(slot ^ 1).filter(is_this))
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
        self.slots[slot] = Seen { start: place - len, len, colon, number };
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
