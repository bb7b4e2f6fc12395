//! The names of nodes, and the namespaces in scope at them.

use std::sync::Arc;

use super::{Document, InScopeNamespaces, NodeId};
use crate::names::{Name, NameId, NameTable};

impl Document {
    /// The names. Documents with the same names have the same table, mostly: those of one thread share it.
    pub fn name_table(&self) -> NameTable {
        NameTable(Arc::clone(&self.names))
    }

    #[inline]
    fn resolve_name(&self, index: u32) -> Name<'_> {
        let name = &self.names.qnames[index as usize];
        Name {
            prefix: self.names.prefix(name.prefix),
            local: self.names.local(index),
            namespace: self.names.namespace(name.namespace),
        }
    }

    /// The name: of an element or attribute; of a processing instruction its target; of a namespace node the prefix
    /// it binds (as the local part). Others have the empty name.
    #[inline]
    pub fn name(&self, id: NodeId) -> Name<'_> {
        self.resolve_name(self.node(id).name())
    }

    /// The local part of [`Document::name`].
    #[inline]
    pub fn local_name(&self, id: NodeId) -> &str {
        self.names.local(self.node(id).name())
    }

    /// The namespace of the name, empty when it is in none.
    #[inline]
    pub fn namespace(&self, id: NodeId) -> &str {
        let name = &self.names.qnames[self.node(id).name() as usize];
        self.names.namespace(name.namespace)
    }

    /// The prefix of the name, empty when it has none.
    #[inline]
    pub fn prefix(&self, id: NodeId) -> &str {
        let name = &self.names.qnames[self.node(id).name() as usize];
        self.names.prefix(name.prefix)
    }

    /// The expanded name as a number: the fastest thing to compare.
    #[inline]
    pub fn name_id(&self, id: NodeId) -> NameId {
        NameId(self.names.qnames[self.node(id).name() as usize].canonical)
    }

    /// Finds an expanded name. Nothing is certain when it is there, as documents share their names; when it is not, no
    /// node of this document has it.
    pub fn find_name(&self, namespace: &str, local: &str) -> Option<NameId> {
        let namespace = self.names.find_namespace(namespace)?;
        self.names.find_expanded(namespace, local).map(NameId)
    }

    /// The namespace nodes in scope at an element, the one of the prefix `xml` included: each prefix once, nearest
    /// declaration first, undeclared defaults left out. A node that is inherited keeps the element it is written on
    /// as its parent.
    pub fn in_scope_namespaces(&self, element: NodeId) -> InScopeNamespaces<'_> {
        InScopeNamespaces {
            document: self,
            element,
            at: Some(element),
            declarations: self.namespace_declarations(element),
        }
    }

    /// The namespace a prefix is bound to at an element; the empty prefix is the default namespace.
    pub fn lookup_namespace(&self, element: NodeId, prefix: &str) -> Option<&str> {
        if prefix == "xml" {
            return Some(crate::names::XML_NAMESPACE);
        }
        let mut at = Some(element);
        while let Some(id) = at {
            if let Some(found) = self.namespace_declarations(id).find(|&node| self.local_name(node) == prefix) {
                return Some(self.text(found)).filter(|namespace| !namespace.is_empty());
            }
            at = self.parent(id);
        }
        None
    }

    /// A prefix bound to a namespace at an element, the nearest one; the empty string is the default namespace.
    pub fn lookup_prefix(&self, element: NodeId, namespace: &str) -> Option<&str> {
        self.in_scope_namespaces(element).find(|&node| self.text(node) == namespace).map(|node| self.local_name(node))
    }
}
