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
    /// By symbol.
    found: Vec<Found>,
    /// The symbol of each name of document 0, or `NO_SYMBOL`.
    symbols: Vec<u32>,
}

/// The first child with a name.
#[derive(Debug, Clone, Copy)]
struct Found {
    stamp: u32,
    child: NodeId,
    /// Whether a further one was passed.
    repeated: bool,
}

const NOT_FOUND: Found = Found { stamp: 0, child: Document::ROOT, repeated: false };

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
        let search = self.search(run, search, parent);
        let document = search.document;
        if let Some(found) = self.known(symbol) {
            return Some((document, found.child));
        }
        while let Some((name, child)) = self.pass_child(search) {
            if name == symbol {
                return Some((document, child));
            }
        }
        None
    }

    /// The first child of document 0's element with that name, and whether there are more.
    #[inline]
    pub fn first_of_all<'a>(
        &mut self,
        run: &Run<'a>,
        search: &mut Option<ChildSearch<'a>>,
        parent: Node,
        symbol: u32,
    ) -> Option<(&'a Document, NodeId, bool)> {
        let search = self.search(run, search, parent);
        while self.pass_child(search).is_some() {}
        let found = self.known(symbol)?;
        Some((search.document, found.child, found.repeated))
    }

    /// The search among the children of an element: the one under way, or a new one.
    #[inline]
    fn search<'s, 'a>(
        &mut self,
        run: &Run<'a>,
        search: &'s mut Option<ChildSearch<'a>>,
        parent: Node,
    ) -> &'s mut ChildSearch<'a> {
        search.take_if(|search| search.parent != parent);
        search.get_or_insert_with(|| {
            let document: &'a Document = run.session.document(parent.document);
            self.begin(run, document);
            ChildSearch { document, parent, rest: document.children(parent.id) }
        })
    }

    #[inline]
    fn known(&self, symbol: u32) -> Option<Found> {
        self.found.get(symbol as usize).copied().filter(|found| found.stamp == self.stamp)
    }

    /// Goes on to the next child that is the first with its name; further ones are noted on the way.
    #[inline]
    fn pass_child(&mut self, search: &mut ChildSearch<'_>) -> Option<(u32, NodeId)> {
        for child in search.rest.by_ref() {
            if !search.document.is_element(child) {
                continue;
            }
            let name = self.symbols[search.document.name_id(child).index()];
            if name == NO_SYMBOL {
                continue;
            }
            let found = &mut self.found[name as usize];
            if found.stamp == self.stamp {
                found.repeated = true;
                continue;
            }
            *found = Found { stamp: self.stamp, child, repeated: false };
            return Some((name, child));
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
            self.found.resize(run.program.symbols.len(), NOT_FOUND);
            self.stamp = 0;
        }
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            // After four thousand million elements the stamps begin anew.
            self.found.fill(NOT_FOUND);
            self.stamp = 1;
        }
    }
}
