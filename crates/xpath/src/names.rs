//! Element and attribute names: compiled to numbers once, translated to each document's numbers on first use.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Namespace and local part.
type ExpandedName = (Option<Arc<str>>, Arc<str>);

/// The names that a set of expressions tests for. Share one pool between the expressions of a program.
pub struct NamePool {
    id: u64,
    names: Mutex<Vec<ExpandedName>>,
}

impl Default for NamePool {
    fn default() -> Self {
        NamePool::new()
    }
}

impl NamePool {
    /// An empty pool, distinct from every other.
    pub fn new() -> NamePool {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NamePool { id: NEXT.fetch_add(1, Ordering::Relaxed), names: Mutex::new(Vec::new()) }
    }

    /// Identifies the pool, so that a cache knows the pool of its numbers.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// How many names there are by now.
    pub fn len(&self) -> usize {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether no name was resolved yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn intern(&self, namespace: Option<&Arc<str>>, local: &Arc<str>) -> u32 {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let found = names.iter().position(|(ns, name)| name == local && ns.as_ref() == namespace);
        found.unwrap_or_else(|| {
            names.push((namespace.cloned(), Arc::clone(local)));
            names.len() - 1
        }) as u32
    }
}
