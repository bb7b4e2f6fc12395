//! The names of one document, each kept once.
//!
//! Three small tables: prefixes, namespaces, and qualified names (prefix, namespace, local part). A node carries the
//! index of its qualified name; two qualified names that differ only in the prefix share a [`NameId`].

mod index;

use index::Index;
pub(crate) use index::{hash_name, same_bytes};

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
