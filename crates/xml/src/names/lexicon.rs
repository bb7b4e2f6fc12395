//! The names that documents of one thread share.
//!
//! A message has the names of the message before it. A document begins with the tables of the last one on its thread
//! and copies them only when it brings a name that is new; then it leaves the larger tables to the next.

use std::cell::Cell;
use std::sync::Arc;

use super::{NAME_EMPTY, Names, PREFIX_NONE};

/// Tables with more names than this are not left to the next document: tables by name, which stylesheets make for each
/// document, would grow with names it does not have.
const KEPT_NAMES_MAX: usize = 256;
/// The same for the bytes of names.
const KEPT_BYTES_MAX: usize = 16 << 10;

/// Names of which the resolution is kept at hand.
const RESOLVED: usize = 128;
/// The same for declarations of namespaces.
const DECLARED: usize = 16;

/// What a name as written means.
#[derive(Clone, Copy)]
pub(crate) struct Resolved {
    /// The number the reader gives the name; zero for none.
    pub(crate) number: u32,
    pub(crate) prefix: u32,
    pub(crate) namespace: u32,
    /// The qualified name.
    pub(crate) id: u32,
}

const NOTHING: Resolved = Resolved { number: 0, prefix: PREFIX_NONE, namespace: u32::MAX, id: NAME_EMPTY };

/// What one document leaves to the next.
pub(crate) struct Lexicon {
    names: Arc<Names>,
    /// The reader's table whose numbers `resolved` is about.
    identity: u64,
    resolved: Box<[Resolved; RESOLVED]>,
    declared: Box<[Resolved; DECLARED]>,
}

thread_local! {
    static KEPT: Cell<Option<Lexicon>> = const { Cell::new(None) };
}

/// The names a document begins with.
pub(crate) fn names() -> Arc<Names> {
    let lexicon = KEPT.take().unwrap_or_else(|| Lexicon::new(Arc::new(Names::new())));
    let names = lexicon.names.clone();
    KEPT.set(Some(lexicon));
    names
}

/// Leaves the names of a document that was built to the next one.
pub(crate) fn learn(names: &Arc<Names>) {
    // A thread that ends keeps nothing.
    let _ = KEPT.try_with(|kept| {
        let lexicon = kept.take();
        let knows = lexicon.as_ref().is_some_and(|lexicon| {
            Arc::ptr_eq(&lexicon.names, names) || lexicon.names.qnames.len() >= names.qnames.len()
        });
        kept.set(match knows {
            true => lexicon,
            // Too many: the next document begins anew.
            false => is_small(names).then(|| Lexicon::new(names.clone())),
        });
    });
}

fn is_small(names: &Names) -> bool {
    names.qnames.len() <= KEPT_NAMES_MAX && names.text.len() <= KEPT_BYTES_MAX
}

impl Lexicon {
    fn new(names: Arc<Names>) -> Lexicon {
        let (resolved, declared) = (Box::new([NOTHING; RESOLVED]), Box::new([NOTHING; DECLARED]));
        Lexicon { names, identity: 0, resolved, declared }
    }

    /// The lexicon for a document with these names, whose reader gives numbers of the table `identity`.
    pub(crate) fn take(names: &Arc<Names>, identity: u64) -> Lexicon {
        match KEPT.take() {
            Some(kept) if kept.identity == identity && Arc::ptr_eq(&kept.names, names) => kept,
            _ => Lexicon { identity, ..Lexicon::new(names.clone()) },
        }
    }

    /// What the name with this number meant last, or another whose number shares its place.
    #[inline]
    pub(crate) fn resolved(&mut self, number: u32) -> &mut Resolved {
        &mut self.resolved[number as usize % RESOLVED]
    }

    /// What the declaration with the name of this number, `xmlns:p`, declared last, and the name of its node.
    #[inline]
    pub(crate) fn declared(&mut self, number: u32) -> &mut Resolved {
        &mut self.declared[number as usize % DECLARED]
    }

    /// Leaves this and the names of the document to the next one.
    pub(crate) fn keep(mut self, names: &Arc<Names>) {
        if is_small(names) {
            self.names.clone_from(names);
            let _ = KEPT.try_with(|kept| kept.set(Some(self)));
        }
    }
}
