//! Copying from one tree to another.
//!
//! Both trees may refer to the same source text; then a copy of an element copies neither its names nor its text.

use super::TreeBuilder;
use crate::names::{NAMESPACE_NONE, PREFIX_NONE};
use crate::text::{OWNED, StrRef};
use crate::tree::{Document, NO_OFFSET, Node, NodeId, NodeKind};

/// A name that has not been looked up in the new tree yet.
const UNKNOWN: u32 = u32::MAX;

impl TreeBuilder {
    /// Copies a node with everything in it. A document node is copied as its children, an attribute as an attribute
    /// of the open element, a namespace node as a declaration. Copied elements keep the namespaces in scope at their
    /// origin.
    pub fn copy(&mut self, from: &Document, id: NodeId) {
        match from.kind(id) {
            NodeKind::Document => self.copy_children(from, id),
            NodeKind::Element => Copy::new(self, from).element(id),
            NodeKind::Attribute => {
                let name = from.name(id);
                self.attribute(name.prefix, name.local, name.namespace, from.text(id));
            }
            NodeKind::Namespace => self.declare_namespace(from.local_name(id), from.text(id)),
            NodeKind::Text => self.text(from.text(id)),
            NodeKind::Comment => self.comment(from.text(id)),
            NodeKind::ProcessingInstruction => self.processing_instruction(from.local_name(id), from.text(id)),
        }
    }

    /// Copies the children of a node, not its attributes.
    pub fn copy_children(&mut self, from: &Document, parent: NodeId) {
        for child in from.children(parent) {
            self.copy(from, child);
        }
    }
}

struct Copy<'c> {
    to: &'c mut TreeBuilder,
    from: &'c Document,
    /// The names of the old tree in the new one.
    names: Vec<u32>,
    /// Whether both trees have the same source.
    shares: bool,
}

impl<'c> Copy<'c> {
    fn new(to: &'c mut TreeBuilder, from: &'c Document) -> Copy<'c> {
        let source = &mut to.document.strings.source;
        if source.bytes().is_empty() {
            *source = from.strings.source.clone();
        }
        let (new, old) = (source.bytes(), from.strings.source.bytes());
        let shares = new.as_ptr() == old.as_ptr() && new.len() == old.len();
        Copy { to, from, names: vec![UNKNOWN; from.names.qnames.len()], shares }
    }

    fn element(&mut self, root: NodeId) {
        let mut ends: Vec<usize> = Vec::with_capacity(16);
        for index in self.from.subtree(root) {
            while ends.last().is_some_and(|&end| end <= index) {
                ends.pop();
                self.to.end_element();
            }
            let node = self.from.nodes[index];
            penstock_budget::step();
            match node.kind() {
                NodeKind::Element => {
                    ends.push(node.end as usize);
                    self.start(&node);
                    if index == root.index() {
                        self.declarations(root);
                    }
                }
                NodeKind::Attribute => self.attribute(&node, NodeId(index as u32)),
                NodeKind::Namespace => self.to.copy(self.from, NodeId(index as u32)),
                NodeKind::Document => {}
                kind => {
                    let name = self.name(node.name());
                    self.push(kind, name, &node);
                }
            }
        }
        for _ in ends {
            self.to.end_element();
        }
    }

    fn start(&mut self, node: &Node) {
        let name = self.name(node.name());
        let offset = if self.shares { node.start } else { NO_OFFSET };
        self.to.open_element(name, offset);
        let name = &self.to.document.names.qnames[name as usize];
        let (prefix, namespace) = (name.prefix, name.namespace);
        if self.to.bindings[prefix as usize] != namespace {
            self.to.push_declaration(prefix, namespace);
        }
    }

    fn declarations(&mut self, root: NodeId) {
        for declaration in self.from.in_scope_namespaces(root) {
            self.to.declare_namespace(self.from.local_name(declaration), self.from.text(declaration));
        }
    }

    fn attribute(&mut self, node: &Node, id: NodeId) {
        let name = self.name(node.name());
        let parts = &self.to.document.names.qnames[name as usize];
        let in_scope = parts.namespace == NAMESPACE_NONE
            || (parts.prefix != PREFIX_NONE && self.to.bindings[parts.prefix as usize] == parts.namespace);
        if in_scope {
            self.push(NodeKind::Attribute, name, node);
        } else {
            self.to.copy(self.from, id);
        }
    }

    fn push(&mut self, kind: NodeKind, name: u32, node: &Node) {
        let value = self.value(node.value());
        let parent = self.to.current();
        self.to.document.push_node(Node::new(kind, name, parent, value.start, value.len));
    }

    fn value(&mut self, value: StrRef) -> StrRef {
        if self.shares && value.start & OWNED == 0 {
            return value;
        }
        self.to.document.strings.push(self.from.strings.get(value))
    }

    /// The name of the old tree in the new one.
    #[inline]
    fn name(&mut self, old: u32) -> u32 {
        let known = self.names[old as usize];
        if known != UNKNOWN {
            return known;
        }
        let names = &self.from.names;
        let name = &names.qnames[old as usize];
        let namespace = self.to.namespace_id(names.namespace(name.namespace));
        let prefix =
            if namespace == NAMESPACE_NONE { PREFIX_NONE } else { self.to.prefix_id(names.prefix(name.prefix)) };
        let new = self.to.qname_id(prefix, namespace, names.local(old));
        self.names[old as usize] = new;
        new
    }
}
