//! Tables by which the rules for a node are found. They hold for every document with the same names.

use std::sync::Arc;

use super::Run;
use crate::program::Mode;

/// Which candidates each name of a document has in a mode.
#[derive(Debug)]
pub(crate) struct DispatchTable {
    /// By [`penstock_xml::NameId::index`]; lists of [`Mode::lists`].
    pub(super) elements: Box<[u32]>,
    pub(super) attributes: Box<[u32]>,
}

/// A table, and where it applies.
#[derive(Debug, Clone)]
pub(crate) struct Dispatch {
    pub document: u32,
    pub mode: u32,
    pub(super) table: Arc<DispatchTable>,
}

/// Transformations that make many temporary trees forget the tables of the earlier ones.
const DISPATCH_TABLES_MAX: usize = 64;

impl DispatchTable {
    fn new(run: &Run<'_>, document: u32, mode: &Mode) -> DispatchTable {
        let table = |names: &[(u32, u32)], any: u32| {
            if names.is_empty() {
                return Box::default();
            }
            let mut table = vec![any; run.session.document(document).name_count()].into_boxed_slice();
            for (symbol, list) in names {
                if let Some(name) = run.name_in(document, *symbol) {
                    table[name.index()] = *list;
                }
            }
            table
        };
        DispatchTable {
            elements: table(&mode.element_names, mode.elements),
            attributes: table(&mode.attribute_names, mode.attributes),
        }
    }
}

impl Run<'_> {
    /// The table of a mode for a document, made on first use.
    #[cold]
    pub(super) fn table(&self, document: u32, mode: u32) -> Dispatch {
        let mut known = self.dispatch.borrow_mut();
        // Few modes and few documents: a search is faster than a hash.
        if let Some(found) = known.iter().find(|table| table.document == document && table.mode == mode) {
            return found.clone();
        }
        let table = Arc::new(DispatchTable::new(self, document, &self.program.modes[mode as usize]));
        if known.len() >= DISPATCH_TABLES_MAX {
            known.clear();
        }
        known.push(Dispatch { document, mode, table });
        known[known.len() - 1].clone()
    }
}
