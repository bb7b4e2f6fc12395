//! What outlives one evaluation: the documents that nodes point into, the names found in them, and the budget.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use penstock_xml::{Document, NameId, NodeId};

use crate::error::{Result, XPathError};
use crate::names::NamePool;
use crate::regex::Regex;
use crate::value::Node;

/// Steps of work an evaluation may take unless the host says otherwise: a few seconds, which no expression over a
/// message needs.
pub const DEFAULT_FUEL: u64 = 100_000_000;

/// Items of one sequence. More would be a quarter of a gigabyte, within any fuel.
pub(crate) const MAX_ITEMS: usize = 10_000_000;

/// Bytes of text that cost a unit of fuel: text is kept, so it has to cost more than the time copying takes.
pub(crate) const BYTES_PER_FUEL: usize = 8;

/// Fuel between two looks at the memory and the clock, as a power of two.
const CHECKED_AFTER_BITS: u32 = 9;

/// Documents in the first bucket; each further bucket is twice as large.
const FIRST_BUCKET: usize = 8;

/// Enough buckets for 2³¹ documents.
const BUCKETS: usize = 28;

/// The documents of a run of evaluations that exchange nodes: a transformation, or one question to a message.
///
/// Documents are only ever added, so references to them stay valid while the session lives, and adding needs no
/// exclusive access. A [`Node`] is meaningful in the session that its document was added to.
pub struct Session {
    /// The first document has a place of its own: most sessions have no other.
    first: OnceCell<Entry>,
    /// Those after the first, made when there is a second.
    buckets: OnceCell<Box<[Bucket; BUCKETS]>>,
    len: Cell<u32>,
    /// The pool whose numbers the entries' names are indexed by: that of the first expression evaluated.
    pool: Cell<u64>,
    fuel: Cell<u64>,
    /// Regular expressions whose patterns were computed, the latest last.
    regexes: RefCell<Vec<CachedRegex>>,
}

struct CachedRegex {
    pattern: Box<str>,
    flags: Box<str>,
    regex: Rc<Regex>,
}

/// Computed patterns that are kept; expressions in a loop use few different ones.
const CACHED_REGEXES: usize = 32;

type Bucket = OnceCell<Box<[OnceCell<Entry>]>>;

struct Entry {
    document: Arc<Document>,
    names: OnceCell<Box<[Cell<NameSlot>]>>,
}

#[derive(Clone, Copy)]
enum NameSlot {
    Unknown,
    Absent,
    Found(NameId),
}

impl Default for Session {
    fn default() -> Self {
        Session::new()
    }
}

impl Session {
    /// Without documents.
    pub fn new() -> Session {
        Session {
            first: OnceCell::new(),
            buckets: OnceCell::new(),
            len: Cell::new(0),
            pool: Cell::new(0),
            fuel: Cell::new(DEFAULT_FUEL),
            regexes: RefCell::default(),
        }
    }

    /// A session with one document, and its root.
    pub fn with_document(document: Arc<Document>) -> (Session, Node) {
        let session = Session::new();
        let root = session.add(document);
        (session, root)
    }

    /// Adds a document and returns its root node.
    pub fn add(&self, document: Arc<Document>) -> Node {
        let index = self.len.get();
        let entry = Entry { document, names: OnceCell::new() };
        let placed = if index == 0 {
            self.first.set(entry).is_ok()
        } else {
            let (bucket, offset) = place(index);
            let buckets = self.buckets.get_or_init(|| Box::new([const { OnceCell::new() }; BUCKETS]));
            let slots = buckets[bucket].get_or_init(|| (0..FIRST_BUCKET << bucket).map(|_| OnceCell::new()).collect());
            slots[offset].set(entry).is_ok()
        };
        debug_assert!(placed, "indices are handed out once");
        self.len.set(index + 1);
        Node { document: index, id: Document::ROOT }
    }

    /// How many documents there are.
    pub fn len(&self) -> usize {
        self.len.get() as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn entry(&self, index: u32) -> &Entry {
        let entry = if index == 0 {
            self.first.get()
        } else {
            let (bucket, offset) = place(index);
            self.buckets.get().and_then(|buckets| buckets[bucket].get()).and_then(|slots| slots[offset].get())
        };
        entry.expect("nodes are made only for documents of their session")
    }

    /// The document with this index. Panics when the index is not from this session.
    #[inline]
    pub fn document(&self, index: u32) -> &Document {
        &self.entry(index).document
    }

    /// The document with this index, shared.
    pub fn shared_document(&self, index: u32) -> Arc<Document> {
        Arc::clone(&self.entry(index).document)
    }

    /// The document a node is in.
    #[inline]
    pub fn document_of(&self, node: Node) -> &Document {
        self.document(node.document)
    }

    /// The string value of a node.
    #[inline]
    pub fn string_value(&self, node: Node) -> std::borrow::Cow<'_, str> {
        self.document_of(node).string_value(node.id)
    }

    /// A node of the same document.
    #[inline]
    pub fn sibling(node: Node, id: NodeId) -> Node {
        Node { document: node.document, id }
    }

    /// A regular expression, compiled unless the session compiled it before.
    pub fn regex(&self, pattern: &str, flags: &str) -> Result<Rc<Regex>> {
        let same = |known: &CachedRegex| *known.pattern == *pattern && *known.flags == *flags;
        if let Some(known) = self.regexes.borrow().iter().rev().find(|known| same(known)) {
            return Ok(Rc::clone(&known.regex));
        }
        // Compiling costs far more than matching.
        self.charge(100 + pattern.len() as u64 * 10)?;
        let regex = Rc::new(Regex::new(pattern, flags)?);
        let mut regexes = self.regexes.borrow_mut();
        if regexes.len() >= CACHED_REGEXES {
            regexes.remove(0);
        }
        regexes.push(CachedRegex { pattern: pattern.into(), flags: flags.into(), regex: Rc::clone(&regex) });
        Ok(regex)
    }

    /// How much work may still be done.
    pub fn fuel(&self) -> u64 {
        self.fuel.get()
    }

    /// Sets how much work may be done from here on; a unit is about one node visited or one item made.
    pub fn set_fuel(&self, fuel: u64) {
        self.fuel.set(fuel);
    }

    /// Uses up fuel. Hosts call it for their own work too.
    #[inline]
    pub fn charge(&self, work: u64) -> Result<()> {
        let left = self.fuel.get();
        if left < work {
            return Err(out_of_fuel());
        }
        self.fuel.set(left - work);
        if (left ^ (left - work)) >> CHECKED_AFTER_BITS != 0 {
            penstock_budget::pause();
        }
        Ok(())
    }

    /// The number that a name of a pool has in a document; `None` when the document does not contain it.
    #[inline]
    pub(crate) fn name_in(&self, index: u32, pool: &NamePool, name: &PooledName<'_>) -> Option<NameId> {
        let entry = self.entry(index);
        if self.pool.get() == 0 {
            self.pool.set(pool.id());
        }
        if self.pool.get() == pool.id() {
            let names = entry.names.get_or_init(|| (0..pool.len()).map(|_| Cell::new(NameSlot::Unknown)).collect());
            if let Some(slot) = names.get(name.index as usize) {
                return match slot.get() {
                    NameSlot::Found(id) => Some(id),
                    NameSlot::Absent => None,
                    NameSlot::Unknown => {
                        let found = entry.document.find_name(name.namespace, name.local);
                        slot.set(found.map_or(NameSlot::Absent, NameSlot::Found));
                        found
                    }
                };
            }
        }
        entry.document.find_name(name.namespace, name.local)
    }
}

/// A name with its number in a pool.
pub(crate) struct PooledName<'n> {
    pub(crate) index: u32,
    pub(crate) namespace: &'n str,
    pub(crate) local: &'n str,
}

/// Refuses a sequence that has grown too long.
#[inline]
pub(crate) fn check_items(items: usize) -> Result<()> {
    if items > MAX_ITEMS { Err(too_many_items()) } else { Ok(()) }
}

#[cold]
fn too_many_items() -> XPathError {
    XPathError::new("PENS0002", format!("a sequence of more than {MAX_ITEMS} items"))
}

#[cold]
fn out_of_fuel() -> XPathError {
    XPathError::new("PENS0001", "the expression takes more work than the limit allows")
}

/// The bucket and the offset of a document after the first.
#[inline]
fn place(index: u32) -> (usize, usize) {
    let shifted = index as usize - 1 + FIRST_BUCKET;
    let bucket = (usize::BITS - 1 - shifted.leading_zeros()) as usize - FIRST_BUCKET.trailing_zeros() as usize;
    (bucket, shifted - (FIRST_BUCKET << bucket))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_dense() {
        let mut expected = (0, 0);
        for index in 1..10_000u32 {
            assert_eq!(place(index), expected, "{index}");
            expected.1 += 1;
            if expected.1 == FIRST_BUCKET << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
    }

    #[test]
    fn documents_keep_their_index() {
        let session = Session::new();
        let document = Arc::new(penstock_xml::TreeBuilder::new().finish());
        for index in 0..100 {
            assert_eq!(session.add(Arc::clone(&document)).document, index);
        }
        assert_eq!(session.len(), 100);
        assert_eq!(session.document(99).node_count(), document.node_count());
    }
}
