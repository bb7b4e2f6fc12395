//! Iterators along the axes.

use super::{Document, NodeId, NodeKind};

/// See [`Document::children`].
#[derive(Clone)]
pub struct Children<'a> {
    pub(super) document: &'a Document,
    pub(super) next: u32,
    pub(super) end: u32,
}

impl Iterator for Children<'_> {
    type Item = NodeId;

    #[inline]
    fn next(&mut self) -> Option<NodeId> {
        if self.next >= self.end {
            return None;
        }
        let id = NodeId(self.next);
        self.next = self.document.subtree_end(id);
        Some(id)
    }
}

/// See [`Document::descendants`].
#[derive(Clone)]
pub struct Descendants<'a> {
    pub(super) document: &'a Document,
    pub(super) next: u32,
    pub(super) end: u32,
}

impl Iterator for Descendants<'_> {
    type Item = NodeId;

    #[inline]
    fn next(&mut self) -> Option<NodeId> {
        while self.next < self.end {
            let id = NodeId(self.next);
            self.next += 1;
            if !matches!(self.document.kind(id), NodeKind::Attribute | NodeKind::Namespace) {
                return Some(id);
            }
        }
        None
    }
}

/// See [`Document::attributes`] and [`Document::namespace_declarations`].
#[derive(Clone)]
pub struct Attributes<'a> {
    pub(super) document: &'a Document,
    pub(super) next: u32,
    pub(super) end: u32,
    pub(super) kind: NodeKind,
}

impl Iterator for Attributes<'_> {
    type Item = NodeId;

    #[inline]
    fn next(&mut self) -> Option<NodeId> {
        while self.next < self.end {
            let id = NodeId(self.next);
            let kind = self.document.kind(id);
            if kind == self.kind {
                self.next += 1;
                return Some(id);
            }
            // Namespaces come first, then attributes, then content.
            if kind == NodeKind::Namespace {
                self.next += 1;
            } else {
                self.next = self.end;
            }
        }
        None
    }
}

/// See [`Document::ancestors`].
#[derive(Clone)]
pub struct Ancestors<'a> {
    pub(super) document: &'a Document,
    pub(super) next: Option<NodeId>,
}

impl Iterator for Ancestors<'_> {
    type Item = NodeId;

    #[inline]
    fn next(&mut self) -> Option<NodeId> {
        let id = self.next?;
        self.next = self.document.parent(id);
        Some(id)
    }
}

/// See [`Document::in_scope_namespaces`].
#[derive(Clone)]
pub struct InScopeNamespaces<'a> {
    pub(super) document: &'a Document,
    pub(super) element: NodeId,
    pub(super) at: Option<NodeId>,
    pub(super) declarations: Attributes<'a>,
}

impl InScopeNamespaces<'_> {
    /// Whether an element between the given one and `holder` redeclares the prefix.
    fn hidden(&self, declaration: NodeId, holder: NodeId) -> bool {
        let document = self.document;
        let prefix = document.node(declaration).name();
        let mut at = self.element;
        while at != holder {
            if document.namespace_declarations(at).any(|other| document.node(other).name() == prefix) {
                return true;
            }
            at = document.parent(at).unwrap_or(Document::ROOT);
        }
        false
    }
}

impl Iterator for InScopeNamespaces<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        loop {
            let holder = self.at?;
            if let Some(declaration) = self.declarations.next() {
                let undeclares = self.document.text(declaration).is_empty();
                if !undeclares && !self.hidden(declaration, holder) {
                    return Some(declaration);
                }
                continue;
            }
            // The prefix `xml` is declared on the document node, for detached trees too.
            self.at = (holder != Document::ROOT).then(|| self.document.parent(holder).unwrap_or(Document::ROOT));
            if let Some(parent) = self.at {
                self.declarations = self.document.namespace_declarations(parent);
            }
        }
    }
}
