//! The names of one document, each kept once.
//!
//! Three small tables: prefixes, namespaces, and qualified names (prefix, namespace, local part). A node carries the
//! index of its qualified name; two qualified names that differ only in the prefix share a [`NameId`]. The tables hold
//! their own text, so that documents can share them: see [`lexicon`].

mod index;
pub(crate) mod lexicon;

use std::sync::Arc;

use index::Index;
pub(crate) use index::{hash_name, same_bytes};

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

/// A piece of the text of the tables.
#[derive(Clone, Copy)]
struct Piece {
    start: u32,
    len: u32,
}

/// The names of a document, by which to know another one with the same: what was found out about a name of one document
/// holds for all documents whose tables are equal.
#[derive(Clone)]
pub struct NameTable(pub(crate) Arc<Names>);

impl PartialEq for NameTable {
    fn eq(&self, other: &NameTable) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::fmt::Debug for NameTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NameTable({} names)", self.0.qnames.len())
    }
}

#[derive(Clone, Copy)]
pub(crate) struct QName {
    local: Piece,
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
    text: String,
    pub(crate) qnames: Vec<QName>,
    /// The first name for each namespace and local part.
    expanded_index: Index,
    namespaces: Vec<Piece>,
    namespace_index: Index,
    prefixes: Vec<Piece>,
    prefix_index: Index,
}

impl Names {
    fn new() -> Names {
        let mut names = Names {
            text: String::with_capacity(512),
            qnames: Vec::with_capacity(32),
            expanded_index: Index::with_slots(64),
            namespaces: Vec::with_capacity(8),
            namespace_index: Index::with_slots(0),
            prefixes: Vec::with_capacity(8),
            prefix_index: Index::with_slots(0),
        };
        names.add_prefix("");
        names.add_prefix("xml");
        names.add_namespace("");
        names.add_namespace(XML_NAMESPACE);
        names.add_qname(PREFIX_NONE, NAMESPACE_NONE, "");
        names.add_qname(PREFIX_NONE, NAMESPACE_NONE, "xml");
        names
    }

    #[inline]
    fn get(&self, piece: Piece) -> &str {
        &self.text[piece.start as usize..(piece.start + piece.len) as usize]
    }

    /// Stores a text. What would exceed four gigabytes is left out.
    fn store(&mut self, text: &str) -> Piece {
        let Ok(end) = u32::try_from(self.text.len() + text.len()) else { return Piece { start: 0, len: 0 } };
        self.text.push_str(text);
        Piece { start: end - text.len() as u32, len: text.len() as u32 }
    }

    /// A prefix by its index.
    #[inline]
    pub(crate) fn prefix(&self, id: u32) -> &str {
        self.get(self.prefixes[id as usize])
    }

    /// A namespace by its index.
    #[inline]
    pub(crate) fn namespace(&self, id: u32) -> &str {
        self.get(self.namespaces[id as usize])
    }

    /// The local part of a qualified name by the index of the name.
    #[inline]
    pub(crate) fn local(&self, id: u32) -> &str {
        self.get(self.qnames[id as usize].local)
    }

    /// How many prefixes there are.
    pub(crate) fn prefix_count(&self) -> usize {
        self.prefixes.len()
    }

    /// The index of a prefix, which is added when it is new. Tables that are shared are copied first.
    #[inline]
    pub(crate) fn intern_prefix(this: &mut Arc<Names>, prefix: &str) -> u32 {
        this.find_prefix(prefix).unwrap_or_else(|| Arc::make_mut(this).add_prefix(prefix))
    }

    /// The same for a namespace.
    #[inline]
    pub(crate) fn intern_namespace(this: &mut Arc<Names>, namespace: &str) -> u32 {
        this.find_namespace(namespace).unwrap_or_else(|| Arc::make_mut(this).add_namespace(namespace))
    }

    /// The same for a qualified name.
    #[inline]
    pub(crate) fn intern_qname(this: &mut Arc<Names>, prefix: u32, namespace: u32, local: &str) -> u32 {
        let known = this.find_qname(prefix, namespace, local);
        known.unwrap_or_else(|| Arc::make_mut(this).add_qname(prefix, namespace, local))
    }

    /// The qualified name of the namespace node that binds a prefix.
    pub(crate) fn intern_declaration(this: &mut Arc<Names>, prefix: u32) -> u32 {
        match this.find_qname(PREFIX_NONE, NAMESPACE_NONE, this.prefix(prefix)) {
            Some(id) => id,
            None => {
                let local = this.prefix(prefix).to_owned();
                Arc::make_mut(this).add_qname(PREFIX_NONE, NAMESPACE_NONE, &local)
            }
        }
    }

    /// Finds a qualified name, if it was seen before.
    #[inline]
    fn find_qname(&self, prefix: u32, namespace: u32, local: &str) -> Option<u32> {
        let first = self.find_expanded(namespace, local)?;
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

    fn add_qname(&mut self, prefix: u32, namespace: u32, local: &str) -> u32 {
        let hash = hash_name(local.as_bytes(), namespace);
        let id = self.qnames.len() as u32;
        let canonical = match self.find_hashed(hash, namespace, local) {
            Some(first) => {
                if let Err(last) = self.with_prefix(first, prefix) {
                    // Past the bound the chain is cut: further names are found again or made twice, both harmless.
                    self.qnames[last as usize].sibling = id;
                }
                first
            }
            None => {
                let mut index = std::mem::take(&mut self.expanded_index);
                let hash_of = |id: u32| hash_name(self.local(id).as_bytes(), self.qnames[id as usize].namespace);
                index.insert(hash, id, hash_of);
                self.expanded_index = index;
                id
            }
        };
        let local = match canonical == id {
            true => self.store(local),
            false => self.qnames[canonical as usize].local,
        };
        self.qnames.push(QName { local, prefix, namespace, canonical, sibling: 0 });
        id
    }

    #[inline]
    pub(crate) fn find_expanded(&self, namespace: u32, local: &str) -> Option<u32> {
        self.find_hashed(hash_name(local.as_bytes(), namespace), namespace, local)
    }

    #[inline]
    fn find_hashed(&self, hash: u32, namespace: u32, local: &str) -> Option<u32> {
        self.expanded_index.find(hash, |id| {
            let name = &self.qnames[id as usize];
            name.namespace == namespace && same_bytes(self.get(name.local).as_bytes(), local.as_bytes())
        })
    }

    #[inline]
    pub(crate) fn find_prefix(&self, prefix: &str) -> Option<u32> {
        self.find_string(&self.prefixes, &self.prefix_index, prefix)
    }

    #[inline]
    pub(crate) fn find_namespace(&self, namespace: &str) -> Option<u32> {
        self.find_string(&self.namespaces, &self.namespace_index, namespace)
    }

    #[inline]
    fn find_string(&self, list: &[Piece], index: &Index, text: &str) -> Option<u32> {
        if list.len() <= LINEAR_MAX {
            return list.iter().position(|&item| self.get(item) == text).map(|position| position as u32);
        }
        index.find(hash_name(text.as_bytes(), 0), |id| self.get(list[id as usize]) == text)
    }

    fn add_prefix(&mut self, prefix: &str) -> u32 {
        let piece = self.store(prefix);
        self.prefixes.push(piece);
        let mut index = std::mem::take(&mut self.prefix_index);
        self.index_last(&self.prefixes, &mut index);
        self.prefix_index = index;
        self.prefixes.len() as u32 - 1
    }

    fn add_namespace(&mut self, namespace: &str) -> u32 {
        let piece = self.store(namespace);
        self.namespaces.push(piece);
        let mut index = std::mem::take(&mut self.namespace_index);
        self.index_last(&self.namespaces, &mut index);
        self.namespace_index = index;
        self.namespaces.len() as u32 - 1
    }

    /// Adds the last of a list to its index, and all before it once the list is long enough to have one.
    fn index_last(&self, list: &[Piece], index: &mut Index) {
        let hash = |id: u32| hash_name(self.get(list[id as usize]).as_bytes(), 0);
        let last = list.len() as u32 - 1;
        let first = match list.len() {
            0..=LINEAR_MAX => return,
            length if length == LINEAR_MAX + 1 => 0,
            _ => last,
        };
        for id in first..=last {
            index.insert(hash(id), id, hash);
        }
    }
}

/// Prefixes looked through for one namespace and local part. Documents use one, rarely two.
const PREFIXES_MAX: usize = 16;

/// Up to this many strings a comparison with each is faster than hashing.
const LINEAR_MAX: usize = 8;
