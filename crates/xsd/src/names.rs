//! Expanded names as numbers.

use std::collections::HashMap;
use std::sync::Arc;

/// An expanded name of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Symbol(pub(crate) u32);

/// All names of a schema.
#[derive(Debug, Default)]
pub(crate) struct Names {
    by_namespace: HashMap<Arc<str>, HashMap<Arc<str>, Symbol>>,
    all: Vec<(Arc<str>, Arc<str>)>,
}

impl Names {
    /// The number of a name, a new one when it was not seen before.
    pub(crate) fn intern(&mut self, namespace: &str, local: &str) -> Symbol {
        if let Some(found) = self.find(namespace, local) {
            return found;
        }
        let (namespace, local): (Arc<str>, Arc<str>) = (namespace.into(), local.into());
        let symbol = Symbol(self.all.len() as u32);
        self.by_namespace.entry(namespace.clone()).or_default().insert(local.clone(), symbol);
        self.all.push((namespace, local));
        symbol
    }

    /// The number of a name, when the schema has it.
    pub(crate) fn find(&self, namespace: &str, local: &str) -> Option<Symbol> {
        self.by_namespace.get(namespace)?.get(local).copied()
    }

    pub(crate) fn namespace(&self, symbol: Symbol) -> &Arc<str> {
        &self.all[symbol.0 as usize].0
    }

    pub(crate) fn local(&self, symbol: Symbol) -> &Arc<str> {
        &self.all[symbol.0 as usize].1
    }

    /// The name as messages show it: `"namespace":local`.
    pub(crate) fn show(&self, symbol: Symbol) -> String {
        let (namespace, local) = &self.all[symbol.0 as usize];
        if namespace.is_empty() { local.to_string() } else { format!("\"{namespace}\":{local}") }
    }
}
