//! Finding children by name.
//!
//! Stylesheets ask one element for many of its children, one after the other. Searching from the first child every
//! time would be quadratic in their number, so the search goes on where the last one stopped and remembers what it
//! passed.

use penstock_xml::tree::Children;
use penstock_xml::{Document, NodeId};
use penstock_xpath::Node;

use super::Run;

/// Where the search among the children of one element stands.
pub(super) struct ChildSearch<'a> {
    document: &'a Document,
    parent: Node,
    rest: Children<'a>,
}

/// The first children by name of the element that is searched, as far as they were needed.
#[derive(Debug, Default)]
pub(super) struct ChildCache {
    /// Distinguishes the entries of this element from older ones.
    stamp: u32,
    /// By symbol: the stamp and the child.
    found: Vec<(u32, NodeId)>,
    /// The symbol of each name of document 0, or `NO_SYMBOL`.
    symbols: Vec<u32>,
}

const NO_SYMBOL: u32 = u32::MAX;

impl ChildCache {
    /// Forgets the names but keeps the memory.
    pub fn reset(&mut self) {
        self.symbols.clear();
    }

    /// The first child of document 0's element with that name.
    #[inline]
    pub fn first<'a>(
        &mut self,
        run: &Run<'a>,
        search: &mut Option<ChildSearch<'a>>,
        parent: Node,
        symbol: u32,
    ) -> Option<(&'a Document, NodeId)> {
        let search = match search {
            Some(search) if search.parent == parent => search,
            other => {
                let document: &'a Document = run.session.document(parent.document);
                self.begin(run, document);
                other.insert(ChildSearch { document, parent, rest: document.children(parent.id) })
            }
        };
        let document = search.document;
        if let Some((stamp, child)) = self.found.get(symbol as usize)
            && *stamp == self.stamp
        {
            return Some((document, *child));
        }
        for child in search.rest.by_ref() {
            if !document.is_element(child) {
                continue;
            }
            let name = self.symbols[document.name_id(child).index()];
            if name == NO_SYMBOL {
                continue;
            }
            let entry = &mut self.found[name as usize];
            if entry.0 != self.stamp {
                *entry = (self.stamp, child);
                if name == symbol {
                    return Some((document, child));
                }
            }
        }
        None
    }

    fn begin(&mut self, run: &Run<'_>, document: &Document) {
        if self.symbols.is_empty() {
            self.symbols.resize(document.name_count(), NO_SYMBOL);
            for symbol in 0..run.program.symbols.len() as u32 {
                if let Some(name) = run.name_in(0, symbol) {
                    self.symbols[name.index()] = symbol;
                }
            }
            self.found.clear();
            self.found.resize(run.program.symbols.len(), (0, Document::ROOT));
            self.stamp = 0;
        }
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            // After four thousand million elements the stamps begin anew.
            self.found.fill((0, Document::ROOT));
            self.stamp = 1;
        }
    }
}
