//! Where the output of operations goes: bytes, a tree, a sequence of items, or a string.

use std::sync::Arc;

use penstock_xml::{Document, NodeId, NodeKind, TreeBuilder};
use penstock_xpath::{Item, Node, Session};

use crate::output::Writer;
use crate::program::{Event, Fragment, OutName, Program};

/// A destination.
pub(crate) enum Sink<'o> {
    Bytes(Box<Writer<'o>>),
    Tree(TreeSink),
    Text(TextSink),
    Sequence(SequenceSink),
}

/// Builds a tree and knows about how much memory that takes.
#[derive(Default)]
pub(crate) struct TreeSink {
    pub tree: TreeBuilder,
    /// Whether it becomes a result document.
    pub is_result: bool,
    bytes: usize,
    /// Depths of the open elements whose children do not inherit their namespaces.
    isolated: Vec<usize>,
    /// Whether the element just opened is such a child.
    settles: bool,
}

/// What a node takes beside its text: itself, and its part of the tables.
const NODE_BYTES: usize = 24;

/// What a tree takes beside its nodes.
pub(super) const TREE_BYTES: usize = 600;

impl TreeSink {
    /// For a result document.
    pub fn result() -> TreeSink {
        TreeSink { is_result: true, ..TreeSink::default() }
    }

    fn count(&mut self, text: &str) -> &mut TreeBuilder {
        self.bytes += NODE_BYTES + text.len();
        &mut self.tree
    }

    /// The same for what ends a start tag.
    fn content(&mut self, text: &str) -> &mut TreeBuilder {
        if self.settles {
            self.settles = false;
            self.tree.undeclare_inherited();
        }
        self.count(text)
    }

    fn start_element(&mut self, prefix: &str, local: &str, namespace: &str) {
        self.content("").start_element(prefix, local, namespace);
        self.settles = self.isolated.last().is_some_and(|depth| depth + 1 == self.tree.depth());
    }

    fn end_element(&mut self) {
        // The end counts, so that output before and after it is not taken for adjacent.
        self.content("").end_element();
        self.isolated.pop_if(|depth| *depth > self.tree.depth());
    }

    fn declare(&mut self, prefix: &str, namespace: &str) {
        let settles = self.settles;
        let tree = self.count(namespace);
        if settles {
            tree.declare_namespace_again(prefix, namespace);
        } else {
            tree.declare_namespace(prefix, namespace);
        }
    }
}

/// Collects the text of an attribute, a comment, a message.
#[derive(Default)]
pub(crate) struct TextSink {
    pub text: String,
    /// Whether spaces separate adjacent values.
    pub spaced: bool,
}

/// Collects items; nodes made here have no parent.
#[derive(Default)]
pub(crate) struct SequenceSink {
    pub items: Vec<Item>,
    /// Whether it is what a template returns, not the value of a variable.
    pub is_result: bool,
    tree: Option<TreeSink>,
    depth: usize,
    /// Memory taken by the nodes made so far.
    bytes: usize,
}

impl SequenceSink {
    /// For what a template returns.
    pub fn result() -> SequenceSink {
        SequenceSink { is_result: true, ..SequenceSink::default() }
    }

    /// Whether an element is open.
    pub fn is_building(&self) -> bool {
        self.tree.is_some()
    }

    /// Builds one node and adds it.
    fn single(&mut self, session: &Session, build: impl FnOnce(&mut TreeBuilder)) {
        if let Some(tree) = &mut self.tree {
            build(tree.content(""));
            return;
        }
        let mut tree = TreeBuilder::with_capacity(4);
        build(&mut tree);
        self.add_first(session, tree);
    }

    fn add_first(&mut self, session: &Session, tree: TreeBuilder) {
        let mut document = tree.finish();
        self.bytes += TREE_BYTES + document.node_count() * NODE_BYTES;
        let child = document.first_child(Document::ROOT);
        if let Some(child) = child {
            document.detach(child);
        }
        let root = session.add(Arc::new(document));
        self.items.extend(child.map(|id| Item::Node(Node { document: root.document, id })));
    }
}

/// The value of `xml:id`, without white space at its ends and with single blanks inside (XSLT 2.0 §11.3).
pub(crate) fn normalized_id(value: &str) -> String {
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

impl Sink<'_> {
    /// About how much memory the output takes so far.
    #[inline]
    pub fn bytes(&self) -> usize {
        match self {
            Sink::Bytes(writer) => writer.bytes(),
            Sink::Tree(tree) => tree.bytes,
            Sink::Text(sink) => sink.text.len(),
            Sink::Sequence(sequence) => {
                let open = sequence.tree.as_ref().map_or(0, |tree| tree.bytes);
                sequence.bytes + open + sequence.items.len() * size_of::<Item>()
            }
        }
    }

    /// Whether nothing was written yet.
    pub fn is_untouched(&self) -> bool {
        match self {
            Sink::Bytes(writer) => writer.is_empty(),
            other => other.bytes() == 0,
        }
    }

    /// Whether an attribute or namespace may be added here, or the error code (XSLT 2.0 §5.7.1).
    pub fn takes_attributes(&self) -> Result<(), &'static str> {
        let tree = |tree: &TreeBuilder| match tree.takes_attributes() {
            true => Ok(()),
            false => Err(tree.depth() > 0),
        };
        let inside = match self {
            Sink::Bytes(writer) => writer.takes_attributes(),
            Sink::Tree(sink) => tree(&sink.tree),
            Sink::Sequence(SequenceSink { tree: Some(sink), .. }) => tree(&sink.tree),
            Sink::Sequence(_) | Sink::Text(_) => Ok(()),
        };
        inside.map_err(|inside| if inside { "XTDE0410" } else { "XTDE0420" })
    }

    /// Why a namespace cannot be declared here: another one has the prefix, or the element is in no namespace.
    pub fn namespace_conflict(&self, prefix: &str, namespace: &str) -> Option<&'static str> {
        let conflicts = match self {
            Sink::Bytes(writer) => writer.namespace_conflicts(prefix, namespace),
            Sink::Tree(sink) => sink.tree.namespace_conflicts(prefix, namespace),
            Sink::Sequence(SequenceSink { tree: Some(sink), .. }) => sink.tree.namespace_conflicts(prefix, namespace),
            Sink::Sequence(_) | Sink::Text(_) => return None,
        };
        let code = if prefix.is_empty() { "XTDE0440" } else { "XTDE0430" };
        conflicts.then_some(code)
    }

    pub fn start_element(&mut self, prefix: &str, local: &str, namespace: &str) {
        match self {
            Sink::Bytes(writer) => writer.start_element(prefix, local, namespace),
            Sink::Tree(tree) => tree.start_element(prefix, local, namespace),
            Sink::Sequence(sequence) => {
                sequence.depth += 1;
                sequence.tree.get_or_insert_default().start_element(prefix, local, namespace);
            }
            Sink::Text(_) => {}
        }
    }

    pub fn end_element(&mut self, session: &Session) {
        match self {
            Sink::Bytes(writer) => writer.end_element(),
            Sink::Tree(tree) => tree.end_element(),
            Sink::Sequence(sequence) => {
                if let Some(tree) = &mut sequence.tree {
                    tree.end_element();
                }
                sequence.depth = sequence.depth.saturating_sub(1);
                if sequence.depth == 0
                    && let Some(tree) = sequence.tree.take()
                {
                    sequence.add_first(session, tree.tree);
                }
            }
            Sink::Text(_) => {}
        }
    }

    /// Children of the open element do not inherit its namespaces.
    pub fn isolate_namespaces(&mut self) {
        match self {
            Sink::Bytes(writer) => writer.isolate_namespaces(),
            Sink::Tree(tree) | Sink::Sequence(SequenceSink { tree: Some(tree), .. }) => {
                tree.isolated.push(tree.tree.depth());
            }
            Sink::Sequence(_) | Sink::Text(_) => {}
        }
    }

    pub fn declare(&mut self, prefix: &str, namespace: &str) {
        match self {
            Sink::Bytes(writer) => writer.declare(prefix, namespace),
            Sink::Tree(tree) => tree.declare(prefix, namespace),
            Sink::Sequence(sequence) => {
                if let Some(tree) = &mut sequence.tree {
                    tree.declare(prefix, namespace);
                }
            }
            Sink::Text(_) => {}
        }
    }

    pub fn attribute(&mut self, name: &OutName, value: &str, session: &Session) {
        self.attribute_parts(&name.prefix, &name.local, &name.namespace, value, session);
    }

    pub fn attribute_parts(&mut self, prefix: &str, local: &str, namespace: &str, value: &str, session: &Session) {
        let normalized;
        let value = if prefix == "xml" && local == "id" {
            normalized = normalized_id(value);
            &normalized
        } else {
            value
        };
        match self {
            Sink::Bytes(writer) => writer.attribute(prefix, local, namespace, value),
            Sink::Tree(tree) => tree.count(value).attribute(prefix, local, namespace, value),
            Sink::Sequence(sequence) => match &mut sequence.tree {
                Some(tree) => tree.count(value).attribute(prefix, local, namespace, value),
                None => {
                    // An attribute cannot be without an element in a tree, so it gets a hidden one.
                    let mut tree = TreeBuilder::with_capacity(4);
                    tree.start_element("", "attribute", "");
                    tree.attribute(prefix, local, namespace, value);
                    let mut document = tree.finish();
                    let id = document.first_child(Document::ROOT).and_then(|e| document.attributes(e).next());
                    if let Some(id) = id {
                        document.detach(id);
                    }
                    let root = session.add(Arc::new(document));
                    sequence.items.extend(id.map(|id| Item::Node(Node { document: root.document, id })));
                }
            },
            Sink::Text(_) => {}
        }
    }

    #[inline]
    pub fn text(&mut self, text: &str, session: &Session) {
        match self {
            Sink::Bytes(writer) => writer.text(text),
            Sink::Tree(tree) => tree.content(text).text(text),
            Sink::Text(sink) => {
                penstock_budget::make_room_for_text(&mut sink.text, text.len());
                sink.text.push_str(text);
            }
            Sink::Sequence(sequence) if text.is_empty() && !sequence.is_building() => {
                sequence.single(session, TreeBuilder::empty_text);
            }
            Sink::Sequence(sequence) => sequence.single(session, |tree| tree.text(text)),
        }
    }

    /// Text that is not escaped; only bytes know the difference.
    pub fn raw(&mut self, text: &str, session: &Session) {
        match self {
            Sink::Bytes(writer) => writer.raw(text),
            other => other.text(text, session),
        }
    }

    pub fn comment(&mut self, text: &str, session: &Session) {
        match self {
            Sink::Bytes(writer) => writer.comment(text),
            Sink::Tree(tree) => tree.content(text).comment(text),
            Sink::Sequence(sequence) => sequence.single(session, |tree| tree.comment(text)),
            Sink::Text(_) => {}
        }
    }

    pub fn processing_instruction(&mut self, target: &str, data: &str, session: &Session) {
        match self {
            Sink::Bytes(writer) => writer.processing_instruction(target, data),
            Sink::Tree(tree) => tree.content(data).processing_instruction(target, data),
            Sink::Sequence(sequence) => sequence.single(session, |tree| tree.processing_instruction(target, data)),
            Sink::Text(_) => {}
        }
    }

    /// A fragment: at once where that is possible, as events elsewhere.
    #[inline]
    pub fn fragment(&mut self, fragment: &Fragment, program: &Program, session: &Session) {
        if let Sink::Bytes(writer) = self
            && writer.takes(fragment)
        {
            writer.fragment(fragment);
            return;
        }
        self.events(fragment, program, session);
        if let Sink::Bytes(writer) = self {
            writer.note_expanded(fragment);
        }
    }

    fn events(&mut self, fragment: &Fragment, program: &Program, session: &Session) {
        for event in &fragment.events {
            match event {
                Event::Start(literal) => {
                    let literal = &program.literals[*literal as usize];
                    self.start_element(&literal.name.prefix, &literal.name.local, &literal.name.namespace);
                    for (prefix, namespace) in &literal.namespaces {
                        self.declare(prefix, namespace);
                    }
                }
                Event::Attribute(name, value) => self.attribute(name, value, session),
                Event::Text(text) => self.text(text, session),
                Event::End => self.end_element(session),
            }
        }
    }

    /// Copies a node with everything in it, its namespaces only when they are wanted.
    pub fn copy_node(&mut self, document: &Document, id: NodeId, namespaces: bool, session: &Session) {
        match document.kind(id) {
            NodeKind::Document => {
                for child in document.children(id) {
                    self.copy_node(document, child, namespaces, session);
                }
            }
            NodeKind::Element => self.copy_element(document, id, namespaces, session),
            _ => self.copy_leaf(document, id, session),
        }
    }

    /// Copies a node that has no content.
    pub fn copy_leaf(&mut self, document: &Document, id: NodeId, session: &Session) {
        match document.kind(id) {
            NodeKind::Text => self.text(document.text(id), session),
            NodeKind::Comment => self.comment(document.text(id), session),
            NodeKind::ProcessingInstruction => {
                self.processing_instruction(document.local_name(id), document.text(id), session);
            }
            NodeKind::Attribute => {
                let name = document.name(id);
                self.attribute_parts(name.prefix, name.local, name.namespace, document.text(id), session);
            }
            NodeKind::Namespace => self.declare(document.local_name(id), document.text(id)),
            NodeKind::Document | NodeKind::Element => {}
        }
    }

    /// Opens a copy of an element with its namespaces: all in scope, or those written on it when its parent's copy
    /// encloses it already.
    pub fn copy_start(&mut self, document: &Document, id: NodeId, inherited: bool) {
        let name = document.name(id);
        self.start_element(name.prefix, name.local, name.namespace);
        if inherited {
            for declaration in document.namespace_declarations(id) {
                self.declare(document.local_name(declaration), document.text(declaration));
            }
        } else {
            for declaration in document.in_scope_namespaces(id) {
                self.declare(document.local_name(declaration), document.text(declaration));
            }
        }
    }

    fn copy_element(&mut self, document: &Document, root: NodeId, namespaces: bool, session: &Session) {
        let mut open: Vec<usize> = Vec::new();
        for id in std::iter::once(root).chain(document.descendants(root)) {
            penstock_budget::step();
            while open.last().is_some_and(|end| *end <= id.index()) {
                open.pop();
                self.end_element(session);
            }
            if document.kind(id) != NodeKind::Element {
                self.copy_leaf(document, id, session);
                continue;
            }
            if namespaces {
                self.copy_start(document, id, id != root);
            } else {
                let name = document.name(id);
                self.start_element(name.prefix, name.local, name.namespace);
            }
            for attribute in document.attributes(id) {
                self.copy_leaf(document, attribute, session);
            }
            open.push(document.subtree(id).end);
        }
        for _ in open {
            self.end_element(session);
        }
    }
}
