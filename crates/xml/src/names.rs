//! The names of one document, each kept once.
//!
//! Three small tables: prefixes, namespaces, and qualified names (prefix, namespace, local part). A node carries the
//! index of its qualified name; two qualified names that differ only in the prefix share a [`NameId`].

use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

use crate::text::{StrRef, Strings};

/// The namespace that the prefix `xml` is bound to, always.
pub const XML_NAMESPACE: &str = "http://www.w3.org/XML/1998/namespace";
/// The namespace of namespace declarations, which no document may use.
pub const XMLNS_NAMESPACE: &str = "http://www.w3.org/2000/xmlns/";

/// An expanded name (namespace and local part) of one document. Equal exactly when both parts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub(crate) u32);

impl NameId {
    /// A small number, dense within the document: fit to index a table of [`Document::name_count`](crate::Document::name_count) entries.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The parts of a name, as written and as resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name<'a> {
    /// The prefix, empty when there is none.
    pub prefix: &'a str,
    /// The local part; the target of a processing instruction; the prefix a namespace node binds.
    pub local: &'a str,
    /// The namespace, empty when there is none.
    pub namespace: &'a str,
}

impl std::fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.prefix.is_empty() {
            write!(f, "{}:", self.prefix)?;
        }
        f.write_str(self.local)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct QName {
    pub(crate) local: StrRef,
    pub(crate) prefix: u32,
    pub(crate) namespace: u32,
    /// The first name with this namespace and local part.
    pub(crate) canonical: u32,
    /// The next name with this namespace and local part; zero for none.
    sibling: u32,
}

/// The index of the empty prefix.
pub(crate) const PREFIX_NONE: u32 = 0;
/// The index of the prefix `xml`.
pub(crate) const PREFIX_XML: u32 = 1;
/// The index of the namespace of names that are in none.
pub(crate) const NAMESPACE_NONE: u32 = 0;
/// The index of the namespace of `xml:` names.
pub(crate) const NAMESPACE_XML: u32 = 1;
/// The index of the name without any part: of the document node, of text and of comments.
pub(crate) const NAME_EMPTY: u32 = 0;
/// The index of the name of the namespace node for the prefix `xml`.
pub(crate) const NAME_XML: u32 = 1;

#[derive(Clone)]
pub(crate) struct Names {
    pub(crate) qnames: Vec<QName>,
    /// The first name for each namespace and local part.
    expanded_index: Index,
    pub(crate) namespaces: Vec<StrRef>,
    namespace_index: Index,
    pub(crate) prefixes: Vec<StrRef>,
    prefix_index: Index,
}

impl Names {
    pub(crate) fn new(strings: &mut Strings) -> Names {
        let mut names = Names {
            qnames: Vec::with_capacity(16),
            expanded_index: Index::with_slots(32),
            namespaces: Vec::with_capacity(8),
            namespace_index: Index::with_slots(0),
            prefixes: Vec::with_capacity(8),
            prefix_index: Index::with_slots(0),
        };
        names.prefixes.push(StrRef::EMPTY);
        let xml = strings.push("xml");
        names.prefixes.push(xml);
        names.namespaces.push(StrRef::EMPTY);
        let xml_namespace = strings.push(XML_NAMESPACE);
        names.namespaces.push(xml_namespace);
        names.intern_qname(strings, PREFIX_NONE, NAMESPACE_NONE, StrRef::EMPTY);
        names.intern_qname(strings, PREFIX_NONE, NAMESPACE_NONE, xml);
        names
    }

    /// Finds a qualified name, if it was seen before.
    #[inline]
    pub(crate) fn find_qname(&self, strings: &Strings, prefix: u32, namespace: u32, local: &str) -> Option<u32> {
        let first = self.find_expanded(strings, namespace, local)?;
        self.with_prefix(first, prefix).ok()
    }

    /// The name with this prefix among those that equal `first` otherwise, or the last one looked at.
    #[inline]
    fn with_prefix(&self, first: u32, prefix: u32) -> Result<u32, u32> {
        let mut id = first;
        for _ in 0..PREFIXES_MAX {
            let name = &self.qnames[id as usize];
            if name.prefix == prefix {
                return Ok(id);
            }
            if name.sibling == 0 {
                return Err(id);
            }
            id = name.sibling;
        }
        Err(id)
    }

    /// The index of a qualified name whose local part is already stored as `local`.
    pub(crate) fn intern_qname(&mut self, strings: &Strings, prefix: u32, namespace: u32, local: StrRef) -> u32 {
        let text = strings.get(local);
        let hash = hash_name(text.as_bytes(), namespace);
        let id = self.qnames.len() as u32;
        let canonical = match self.find_hashed(hash, strings, namespace, text) {
            Some(first) => match self.with_prefix(first, prefix) {
                Ok(known) => return known,
                Err(last) => {
                    // Past the bound the chain is cut: further names are found again or made twice, both harmless.
                    self.qnames[last as usize].sibling = id;
                    first
                }
            },
            None => {
                let hashes = |id: u32| {
                    let name = &self.qnames[id as usize];
                    hash_name(strings.get(name.local).as_bytes(), name.namespace)
                };
                self.expanded_index.insert(hash, id, hashes);
                id
            }
        };
        self.qnames.push(QName { local, prefix, namespace, canonical, sibling: 0 });
        id
    }

    #[inline]
    pub(crate) fn find_expanded(&self, strings: &Strings, namespace: u32, local: &str) -> Option<u32> {
        self.find_hashed(hash_name(local.as_bytes(), namespace), strings, namespace, local)
    }

    #[inline]
    fn find_hashed(&self, hash: u32, strings: &Strings, namespace: u32, local: &str) -> Option<u32> {
        self.expanded_index.find(hash, |id| {
            let name = &self.qnames[id as usize];
            name.namespace == namespace && same_bytes(strings.get(name.local).as_bytes(), local.as_bytes())
        })
    }

    #[inline]
    pub(crate) fn find_prefix(&self, strings: &Strings, prefix: &str) -> Option<u32> {
        find_string(&self.prefixes, &self.prefix_index, strings, prefix)
    }

    pub(crate) fn intern_prefix(&mut self, strings: &Strings, prefix: StrRef) -> u32 {
        intern_string(&mut self.prefixes, &mut self.prefix_index, strings, prefix)
    }

    pub(crate) fn find_namespace(&self, strings: &Strings, namespace: &str) -> Option<u32> {
        find_string(&self.namespaces, &self.namespace_index, strings, namespace)
    }

    pub(crate) fn intern_namespace(&mut self, strings: &Strings, namespace: StrRef) -> u32 {
        intern_string(&mut self.namespaces, &mut self.namespace_index, strings, namespace)
    }
}

/// Prefixes looked through for one namespace and local part. Documents use one, rarely two.
const PREFIXES_MAX: usize = 16;

/// Up to this many strings a comparison with each is faster than hashing.
const LINEAR_MAX: usize = 8;

#[inline]
fn find_string(list: &[StrRef], index: &Index, strings: &Strings, text: &str) -> Option<u32> {
    if list.len() <= LINEAR_MAX {
        return list.iter().position(|&item| strings.get(item) == text).map(|position| position as u32);
    }
    index.find(hash_name(text.as_bytes(), 0), |id| strings.get(list[id as usize]) == text)
}

fn intern_string(list: &mut Vec<StrRef>, index: &mut Index, strings: &Strings, item: StrRef) -> u32 {
    if let Some(id) = find_string(list, index, strings, strings.get(item)) {
        return id;
    }
    list.push(item);
    let hash = |id: u32| hash_name(strings.get(list[id as usize]).as_bytes(), 0);
    let id = list.len() as u32 - 1;
    if list.len() == LINEAR_MAX + 1 {
        for earlier in 0..id {
            index.insert(hash(earlier), earlier, hash);
        }
    }
    if list.len() > LINEAR_MAX {
        index.insert(hash(id), id, hash);
    }
    id
}

/// An open-addressing table of indices; what they stand for lives elsewhere.
#[derive(Clone)]
struct Index {
    /// The upper half is the hash, the lower the index plus one; zero is free. The length is a power of two or zero.
    slots: Vec<u64>,
    used: usize,
}

impl Index {
    fn with_slots(count: usize) -> Index {
        Index { slots: vec![0; count], used: 0 }
    }

    #[inline]
    fn find(&self, hash: u32, mut equal: impl FnMut(u32) -> bool) -> Option<u32> {
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

    fn insert(&mut self, hash: u32, id: u32, hash_of: impl Fn(u32) -> u32) {
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
