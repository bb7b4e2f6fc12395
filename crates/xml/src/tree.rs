//! The tree: nodes in one array, in document order, over the bytes they came from.
//!
//! A node is 16 bytes. Its index is its place in document order: an element is followed by its namespace
//! declarations, then its attributes, then its content. From that order and two numbers per node, its parent and (for
//! elements) the end of its subtree, every axis follows without further links.

mod axes;
mod naming;
mod place;
mod values;

use std::ops::Range;
use std::sync::Arc;

use crate::doctype::Doctype;
use crate::error::XmlError;
use crate::names::{NameId, Names};
use crate::options::ParseOptions;
use crate::text::{StrRef, Strings};

pub use axes::{Ancestors, Attributes, Children, Descendants, InScopeNamespaces};

/// A node of a [`Document`]. The order of ids is document order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// The place in document order; fit to index a table of [`Document::node_count`] entries.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The kinds of node of the XPath data model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum NodeKind {
    /// The root of the tree.
    Document = 0,
    /// An element.
    Element = 1,
    /// An attribute. Namespace declarations are not attributes here.
    Attribute = 2,
    /// A namespace declaration on the element it is written on.
    Namespace = 3,
    /// Text; adjacent text is always one node.
    Text = 4,
    /// A comment.
    Comment = 5,
    /// A processing instruction.
    ProcessingInstruction = 6,
}

const KINDS: [NodeKind; 8] = [
    NodeKind::Document,
    NodeKind::Element,
    NodeKind::Attribute,
    NodeKind::Namespace,
    NodeKind::Text,
    NodeKind::Comment,
    NodeKind::ProcessingInstruction,
    NodeKind::Document,
];

/// The parent of a node that has none, see [`Document::detach`].
pub(crate) const NO_PARENT: u32 = u32::MAX;

/// Marks that a node has no place in the source.
pub(crate) const NO_OFFSET: u32 = u32::MAX;

/// Nodes that are looked at between two pauses: some microseconds.
const NODES_AT_ONCE: u32 = 256;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) parent: u32,
    /// The kind in the low three bits, the qualified name above them.
    pub(crate) tag: u32,
    /// Of an element: where its `<` stands in the source. Of the others: the start of the value.
    pub(crate) start: u32,
    /// Of an element and of the document: the node after its last descendant. Of the others: the value's length.
    pub(crate) end: u32,
}

impl Node {
    #[inline]
    pub(crate) fn new(kind: NodeKind, name: u32, parent: u32, start: u32, end: u32) -> Node {
        Node { parent, tag: name << 3 | kind as u32, start, end }
    }

    #[inline]
    pub(crate) fn kind(&self) -> NodeKind {
        KINDS[(self.tag & 7) as usize]
    }

    #[inline]
    pub(crate) fn name(&self) -> u32 {
        self.tag >> 3
    }

    #[inline]
    pub(crate) fn value(&self) -> StrRef {
        StrRef { start: self.start, len: self.end }
    }
}

/// A document: immutable, shareable between threads, cheap to walk.
///
/// Invariants: node 0 is the document node and node 1 the namespace node of the prefix `xml`; a node's parent has
/// a smaller index; `end` of an element is the index after its last descendant.
#[derive(Clone)]
pub struct Document {
    pub(crate) nodes: Vec<Node>,
    pub(crate) strings: Strings,
    /// Shared with other documents of the thread, see `names::lexicon`.
    pub(crate) names: Arc<Names>,
    /// Where nodes with an owned value stood in the source, by node.
    pub(crate) places: Vec<(u32, u32)>,
    pub(crate) base_uri: Option<Box<str>>,
    pub(crate) doctype: Option<Box<Doctype>>,
}

impl Document {
    /// The document node.
    pub const ROOT: NodeId = NodeId(0);

    /// Reads a document. The tree refers to `source` wherever it can instead of copying from it.
    pub fn parse(source: impl Into<bytes::Bytes>, options: &ParseOptions) -> Result<Document, XmlError> {
        crate::parse::parse_document(source.into(), options)
    }

    /// The number of nodes, for tables indexed by [`NodeId::index`].
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The number of names, for tables indexed by [`NameId::index`].
    pub fn name_count(&self) -> usize {
        self.names.qnames.len()
    }

    #[inline]
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// What kind of node it is.
    #[inline]
    pub fn kind(&self, id: NodeId) -> NodeKind {
        self.node(id).kind()
    }

    /// Whether it is an element.
    #[inline]
    pub fn is_element(&self, id: NodeId) -> bool {
        self.kind(id) == NodeKind::Element
    }

    /// The outermost element. A tree that was built rather than parsed may have none, or several: this is the first.
    pub fn root_element(&self) -> Option<NodeId> {
        self.children(Document::ROOT).find(|&child| self.is_element(child))
    }

    /// The parent: of an attribute or namespace node its element, of the document node nothing.
    #[inline]
    pub fn parent(&self, id: NodeId) -> Option<NodeId> {
        let parent = self.node(id).parent;
        if id == Document::ROOT || parent == NO_PARENT { None } else { Some(NodeId(parent)) }
    }

    /// Takes a child of the document node, or an attribute of one, out of its tree: it has no parent from then on, and
    /// its holder can reach neither the document node nor its former siblings.
    pub fn detach(&mut self, id: NodeId) {
        if id != Document::ROOT {
            self.nodes[id.index()].parent = NO_PARENT;
        }
    }

    /// The topmost node above this one: the document node, unless the tree was detached from it.
    pub fn root_of(&self, id: NodeId) -> NodeId {
        self.ancestors(id).last().unwrap_or(id)
    }

    /// The node after the last descendant.
    #[inline]
    fn subtree_end(&self, id: NodeId) -> u32 {
        let node = self.node(id);
        match node.kind() {
            NodeKind::Element | NodeKind::Document => node.end,
            _ => id.0 + 1,
        }
    }

    /// The nodes from this one to its last descendant, its namespace and attribute nodes included, as indices.
    #[inline]
    pub fn subtree(&self, id: NodeId) -> Range<usize> {
        id.index()..self.subtree_end(id) as usize
    }

    /// Where the content of an element or of the document begins and ends.
    #[inline]
    fn content(&self, id: NodeId) -> (u32, u32) {
        let node = self.node(id);
        if !matches!(node.kind(), NodeKind::Element | NodeKind::Document) {
            return (id.0 + 1, id.0 + 1);
        }
        let mut first = id.0 + 1;
        while first < node.end && matches!(self.nodes[first as usize].kind(), NodeKind::Attribute | NodeKind::Namespace)
        {
            first += 1;
        }
        (first, node.end)
    }

    /// Adds a node at the end.
    #[inline]
    pub(crate) fn push_node(&mut self, node: Node) {
        penstock_budget::make_room(&mut self.nodes, 1);
        self.nodes.push(node);
    }

    /// The first child.
    #[inline]
    pub fn first_child(&self, id: NodeId) -> Option<NodeId> {
        let (first, end) = self.content(id);
        if first < end { Some(NodeId(first)) } else { None }
    }

    /// The last child.
    pub fn last_child(&self, id: NodeId) -> Option<NodeId> {
        let (first, end) = self.content(id);
        if first >= end {
            return None;
        }
        Some(self.child_above(id, end - 1))
    }

    /// The child of `parent` that `descendant` is or lies in.
    fn child_above(&self, parent: NodeId, descendant: u32) -> NodeId {
        let mut at = descendant;
        while self.nodes[at as usize].parent != parent.0 && self.nodes[at as usize].parent != NO_PARENT {
            at = self.nodes[at as usize].parent;
        }
        NodeId(at)
    }

    /// The next sibling. Attributes and namespace nodes have none.
    #[inline]
    pub fn next_sibling(&self, id: NodeId) -> Option<NodeId> {
        if matches!(self.kind(id), NodeKind::Attribute | NodeKind::Namespace | NodeKind::Document) {
            return None;
        }
        let next = self.subtree_end(id);
        match self.nodes.get(next as usize) {
            Some(node) if node.parent == self.node(id).parent && node.parent != NO_PARENT => Some(NodeId(next)),
            _ => None,
        }
    }

    /// The previous sibling. Attributes and namespace nodes have none.
    pub fn previous_sibling(&self, id: NodeId) -> Option<NodeId> {
        if matches!(self.kind(id), NodeKind::Attribute | NodeKind::Namespace | NodeKind::Document) {
            return None;
        }
        let parent = self.parent(id)?;
        let before = id.0 - 1;
        if before == parent.0 {
            return None;
        }
        let previous = self.child_above(parent, before);
        match self.kind(previous) {
            NodeKind::Attribute | NodeKind::Namespace => None,
            _ => Some(previous),
        }
    }

    /// The children, in document order.
    #[inline]
    pub fn children(&self, id: NodeId) -> Children<'_> {
        let (next, end) = self.content(id);
        Children { document: self, next, end }
    }

    /// The descendants without the node itself, in document order. Attributes and namespaces are not descendants.
    #[inline]
    pub fn descendants(&self, id: NodeId) -> Descendants<'_> {
        let (next, end) = self.content(id);
        Descendants { document: self, next, end }
    }

    /// The elements below a node that have a name, in document order: a single pass over the array.
    #[inline]
    pub fn descendants_named(&self, id: NodeId, name: NameId) -> impl Iterator<Item = NodeId> {
        let (first, end) = self.content(id);
        let nodes = self.nodes.get(first as usize..end as usize).unwrap_or(&[]);
        let matches = move |node: &Node| {
            node.kind() == NodeKind::Element && self.names.qnames[node.name() as usize].canonical == name.0
        };
        let found = move |(node, index): &(&Node, u32)| {
            if index % NODES_AT_ONCE == 0 {
                penstock_budget::steps(NODES_AT_ONCE as usize);
            }
            matches(node)
        };
        nodes.iter().zip(first..).filter(found).map(|(_, index)| NodeId(index))
    }

    /// The attributes of an element, in the order written.
    #[inline]
    pub fn attributes(&self, element: NodeId) -> Attributes<'_> {
        let end = self.subtree_end(element);
        Attributes { document: self, next: element.0 + 1, end, kind: NodeKind::Attribute }
    }

    /// The namespace declarations written on this very element. See [`Document::in_scope_namespaces`] for the axis.
    #[inline]
    pub fn namespace_declarations(&self, element: NodeId) -> Attributes<'_> {
        let end = self.subtree_end(element);
        Attributes { document: self, next: element.0 + 1, end, kind: NodeKind::Namespace }
    }

    /// The parent, its parent and so on up to the document node.
    #[inline]
    pub fn ancestors(&self, id: NodeId) -> Ancestors<'_> {
        Ancestors { document: self, next: self.parent(id) }
    }

    /// The attribute node with this name.
    pub fn attribute_node(&self, element: NodeId, namespace: &str, local: &str) -> Option<NodeId> {
        self.attributes(element).find(|&attribute| {
            let name = self.name(attribute);
            name.local == local && name.namespace == namespace
        })
    }

    /// The value of the attribute with this name.
    pub fn attribute(&self, element: NodeId, namespace: &str, local: &str) -> Option<&str> {
        self.attribute_node(element, namespace, local).map(|attribute| self.text(attribute))
    }

    /// The source text as it was read: decoded to UTF-8, otherwise untouched. Empty for a tree that was built.
    pub fn source(&self) -> &bytes::Bytes {
        self.strings.source.bytes()
    }

    /// The URI the document was read from, as the caller gave it.
    pub fn base_uri(&self) -> Option<&str> {
        self.base_uri.as_deref()
    }

    /// The document type declaration, if there was one.
    pub fn doctype(&self) -> Option<&Doctype> {
        self.doctype.as_deref()
    }

    /// The element whose attribute of type ID has this value; `xml:id` is of that type without a declaration.
    pub fn element_by_id(&self, id: &str) -> Option<NodeId> {
        let declared = self.doctype.as_ref().and_then(|doctype| doctype.ids.get(id));
        if let Some(&node) = declared {
            return Some(NodeId(node));
        }
        let name = self.find_name(crate::XML_NAMESPACE, "id")?;
        let is_id = |node: &Node| {
            node.kind() == NodeKind::Attribute && self.names.qnames[node.name() as usize].canonical == name.0
        };
        let found = self.nodes.iter().find(|node| {
            is_id(node) && self.strings.get(node.value()).split_ascii_whitespace().eq(std::iter::once(id))
        });
        found.filter(|node| node.parent != NO_PARENT).map(|node| NodeId(node.parent))
    }
}

impl std::fmt::Debug for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Document({} nodes, {})",
            self.nodes.len(),
            self.root_element().map_or("", |root| self.local_name(root))
        )
    }
}
