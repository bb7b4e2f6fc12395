//! Names that were checked already.
//!
//! Messages repeat a handful of names. Whether a name is one is found out once; later it only has to be the
//! same bytes again. The tree uses the numbers given here to skip its own lookup as well.

use crate::names::{hash_name, same_bytes};

/// A table for the names of small messages.
const SLOTS_FIRST: usize = 64;
/// A table for documents with many different names.
const SLOTS_MANY: usize = 1024;

/// The names last seen, one per slot; a collision replaces.
pub(crate) struct SeenNames {
    slots: Vec<Seen>,
    /// The number the next new name gets. Never zero.
    pub(crate) next: u32,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Seen {
    start: u32,
    len: u32,
    pub(crate) colon: u32,
    pub(crate) number: u32,
}

impl SeenNames {
    pub(crate) fn new() -> SeenNames {
        SeenNames { slots: Vec::new(), next: 1 }
    }

    /// The earlier occurrence of a name, if this is one.
    #[inline]
    pub(crate) fn find(&self, text: &[u8], start: usize, end: usize) -> Option<&Seen> {
        let name = &text[start..end];
        let slot = hash_name(name, 0) as usize & self.slots.len().wrapping_sub(1);
        let seen = self.slots.get(slot)?;
        let earlier = text.get(seen.start as usize..seen.start as usize + seen.len as usize)?;
        // An unused slot would match where a name is missing.
        if same_bytes(earlier, name) && seen.number != 0 { Some(seen) } else { None }
    }

    /// Remembers a name that was checked; returns its number.
    pub(crate) fn add(&mut self, text: &[u8], start: usize, end: usize, colon: u32) -> u32 {
        let number = self.next;
        self.next += 1;
        if self.slots.is_empty() {
            self.slots.resize(SLOTS_FIRST, Seen::default());
        } else if self.slots.len() == SLOTS_FIRST && number as usize > SLOTS_FIRST / 2 {
            self.slots.clear();
            self.slots.resize(SLOTS_MANY, Seen::default());
        }
        let slot = hash_name(&text[start..end], 0) as usize & (self.slots.len() - 1);
        self.slots[slot] = Seen { start: start as u32, len: (end - start) as u32, colon, number };
        number
    }
}
