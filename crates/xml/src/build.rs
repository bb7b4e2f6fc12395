//! Making a tree by hand, by copying, and by parsing into it.

mod copy;

use bytes::Bytes;

use crate::error::XmlError;
use crate::names::{
    NAME_EMPTY, NAME_XML, NAMESPACE_NONE, NAMESPACE_XML, Names, PREFIX_NONE, PREFIX_XML, XML_NAMESPACE, lexicon,
};
use crate::options::ParseOptions;
use crate::text::{OWNED, Strings};
use crate::tree::{Document, NO_OFFSET, Node, NodeKind};

/// A prefix that is bound to nothing.
pub(crate) const UNBOUND: u32 = u32::MAX;

/// Builds a [`Document`] from beginning to end.
///
/// The builder keeps the tree consistent: a name whose prefix is not bound to its namespace gets the declaration it
/// needs, adjacent text becomes one node, a repeated attribute replaces the earlier one. A tree holds up to 2 GiB of text
/// that is not in its source; what exceeds that is left out, so callers who cannot bound their input bound their output.
pub struct TreeBuilder {
    pub(crate) document: Document,
    pub(crate) open: Vec<Open>,
    /// The namespace each prefix is bound to here, by prefix.
    pub(crate) bindings: Vec<u32>,
    /// What the bindings were before the open elements changed them.
    pub(crate) undo: Vec<(u32, u32)>,
}

#[derive(Clone, Copy)]
pub(crate) struct Open {
    pub(crate) node: u32,
    pub(crate) undo: u32,
}

impl Default for TreeBuilder {
    fn default() -> TreeBuilder {
        TreeBuilder::new()
    }
}

impl TreeBuilder {
    /// An empty document.
    pub fn new() -> TreeBuilder {
        TreeBuilder::with_capacity(16)
    }

    /// An empty document with room for this many nodes.
    pub fn with_capacity(nodes: usize) -> TreeBuilder {
        let mut strings = Strings::default();
        // Room for the two strings every document has, and a few short ones.
        strings.owned.reserve(128);
        let names = lexicon::names();
        let xml = strings.push(XML_NAMESPACE);
        penstock_budget::reserve(nodes.saturating_mul(size_of::<Node>()));
        let mut list = Vec::with_capacity(nodes.max(2));
        list.push(Node::new(NodeKind::Document, NAME_EMPTY, 0, NO_OFFSET, 0));
        list.push(Node::new(NodeKind::Namespace, NAME_XML, 0, xml.start, xml.len));
        let mut bindings = vec![UNBOUND; names.prefix_count()];
        bindings[PREFIX_NONE as usize] = NAMESPACE_NONE;
        bindings[PREFIX_XML as usize] = NAMESPACE_XML;
        let document = Document { nodes: list, strings, names, places: Vec::new(), base_uri: None, doctype: None };
        let mut open = Vec::with_capacity(16);
        open.push(Open { node: 0, undo: 0 });
        TreeBuilder { document, open, bindings, undo: Vec::new() }
    }

    /// Says where the document comes from.
    pub fn set_base_uri(&mut self, uri: &str) {
        self.document.base_uri = Some(uri.into());
    }

    /// The number of elements that are open.
    pub fn depth(&self) -> usize {
        self.open.len() - 1
    }

    #[inline]
    pub(crate) fn current(&self) -> u32 {
        self.open.last().map_or(0, |open| open.node)
    }

    pub(crate) fn prefix_id(&mut self, prefix: &str) -> u32 {
        let id = Names::intern_prefix(&mut self.document.names, prefix);
        self.make_room_for(id);
        id
    }

    /// A prefix may be newer than the bindings.
    pub(crate) fn make_room_for(&mut self, prefix: u32) {
        if self.bindings.len() <= prefix as usize {
            self.bindings.resize(prefix as usize + 1, UNBOUND);
        }
    }

    pub(crate) fn namespace_id(&mut self, namespace: &str) -> u32 {
        Names::intern_namespace(&mut self.document.names, namespace)
    }

    fn qname_id(&mut self, prefix: u32, namespace: u32, local: &str) -> u32 {
        Names::intern_qname(&mut self.document.names, prefix, namespace, local)
    }

    /// Opens an element. The declaration of its prefix is added when it is not in scope.
    pub fn start_element(&mut self, prefix: &str, local: &str, namespace: &str) {
        let namespace = self.namespace_id(namespace);
        // A prefix without a namespace cannot be declared; the name is in none, so it needs none.
        let prefix = if namespace == NAMESPACE_NONE { PREFIX_NONE } else { self.prefix_id(prefix) };
        let name = self.qname_id(prefix, namespace, local);
        self.open_element(name, NO_OFFSET);
        if self.bindings[prefix as usize] != namespace {
            self.push_declaration(prefix, namespace);
        }
    }

    #[inline]
    pub(crate) fn open_element(&mut self, name: u32, offset: u32) {
        let node = self.document.nodes.len() as u32;
        let parent = self.current();
        self.document.push_node(Node::new(NodeKind::Element, name, parent, offset, 0));
        self.open.push(Open { node, undo: self.undo.len() as u32 });
    }

    pub(crate) fn bind(&mut self, prefix: u32, namespace: u32) {
        let slot = &mut self.bindings[prefix as usize];
        self.undo.push((prefix, *slot));
        *slot = if namespace == NAMESPACE_NONE && prefix != PREFIX_NONE { UNBOUND } else { namespace };
    }

    /// Adds a namespace node to the open element, before its attributes.
    fn push_declaration(&mut self, prefix: u32, namespace: u32) {
        self.bind(prefix, namespace);
        let Document { names, strings, .. } = &mut self.document;
        let name = Names::intern_declaration(names, prefix);
        let uri = strings.push(names.namespace(namespace));
        let parent = self.current();
        let node = Node::new(NodeKind::Namespace, name, parent, uri.start, uri.len);
        let nodes = &mut self.document.nodes;
        let mut at = nodes.len();
        while nodes[at - 1].kind() == NodeKind::Attribute {
            at -= 1;
        }
        nodes.insert(at, node);
    }

    /// Whether an element is open and has nothing but attributes and declarations yet.
    pub fn takes_attributes(&self) -> bool {
        self.at_start_tag()
    }

    /// Whether nothing but attributes and declarations was added to the open element yet.
    fn at_start_tag(&self) -> bool {
        let current = self.current();
        let last = self.document.nodes.len() as u32 - 1;
        let node = &self.document.nodes[last as usize];
        current != 0
            && (last == current
                || (node.parent == current && matches!(node.kind(), NodeKind::Attribute | NodeKind::Namespace)))
    }

    /// Declares a namespace on the open element, unless it is in scope already. Ignored when it would change the
    /// meaning of the element's own name or of an attribute, and once the element has content.
    pub fn declare_namespace(&mut self, prefix: &str, namespace: &str) {
        if !self.at_start_tag() || prefix == "xml" || prefix == "xmlns" || (namespace.is_empty() && !prefix.is_empty())
        {
            return;
        }
        let namespace = self.namespace_id(namespace);
        let prefix = self.prefix_id(prefix);
        if self.bindings[prefix as usize] == namespace || self.prefix_in_use(prefix) {
            return;
        }
        self.push_declaration(prefix, namespace);
    }

    /// Declares a namespace on the open element even when it is in scope already.
    pub fn declare_namespace_again(&mut self, prefix: &str, namespace: &str) {
        let (bound, wanted) = (self.prefix_id(prefix), self.namespace_id(namespace));
        if self.at_start_tag() && self.bindings[bound as usize] == wanted && !self.prefix_in_use(bound) {
            self.push_declaration(bound, wanted);
        } else {
            self.declare_namespace(prefix, namespace);
        }
    }

    /// Undeclares every prefix that the open element inherits and neither declares nor uses itself, as namespaces of
    /// XML 1.1 allow. To be called before its content is added.
    pub fn undeclare_inherited(&mut self) {
        if !self.at_start_tag() {
            return;
        }
        for prefix in (0..self.bindings.len() as u32).filter(|prefix| *prefix != PREFIX_XML) {
            let bound = self.bindings[prefix as usize];
            if bound != UNBOUND && bound != NAMESPACE_NONE && !self.prefix_in_use(prefix) {
                self.push_declaration(prefix, NAMESPACE_NONE);
            }
        }
    }

    /// Whether the open element cannot have this namespace: it has another one with the prefix that neither its name
    /// nor an attribute uses, or it is in no namespace and this would be its default namespace.
    pub fn namespace_conflicts(&self, prefix: &str, namespace: &str) -> bool {
        let names = &self.document.names;
        let Some(bound) = names.find_prefix(prefix) else { return false };
        let binding = self.bindings.get(bound as usize).copied().unwrap_or(UNBOUND);
        let same = binding != UNBOUND && names.namespace(binding) == namespace;
        if !self.at_start_tag() || same {
            return false;
        }
        let current = self.current() as usize;
        let name_of = |node: &Node| &names.qnames[node.name() as usize];
        let own = name_of(&self.document.nodes[current]);
        if prefix.is_empty() {
            return own.prefix == PREFIX_NONE && binding == NAMESPACE_NONE;
        }
        let declared = self.open.last().map_or(0, |open| open.undo as usize);
        let declared_here = self.undo[declared..].iter().any(|&(changed, _)| changed == bound);
        let used = |node: &Node| node.kind() == NodeKind::Attribute && name_of(node).prefix == bound;
        declared_here && own.prefix != bound && !self.document.nodes[current..].iter().any(used)
    }

    /// Whether the open start tag depends on the present binding of a prefix.
    fn prefix_in_use(&self, prefix: u32) -> bool {
        let current = self.current() as usize;
        let declared = self.open.last().map_or(0, |open| open.undo as usize);
        self.undo[declared..].iter().any(|&(changed, _)| changed == prefix)
            || self.document.nodes[current..].iter().any(|node| {
                let name = &self.document.names.qnames[node.name() as usize];
                match node.kind() {
                    NodeKind::Element => name.prefix == prefix,
                    NodeKind::Attribute => name.prefix == prefix && prefix != PREFIX_NONE,
                    _ => false,
                }
            })
    }

    /// Adds an attribute to the open element, or replaces the value of one with the same name. The prefix is a
    /// wish: another one is found or made up when it is bound to another namespace on this element. Ignored once the
    /// element has content, and when no element is open.
    pub fn attribute(&mut self, prefix: &str, local: &str, namespace: &str, value: &str) {
        if !self.at_start_tag() {
            return;
        }
        let namespace = self.namespace_id(namespace);
        let prefix = self.attribute_prefix(prefix, namespace);
        let name = self.qname_id(prefix, namespace, local);
        let value = self.document.strings.push(value);
        let parent = self.current();
        let node = Node::new(NodeKind::Attribute, name, parent, value.start, value.len);
        let canonical = self.document.names.qnames[name as usize].canonical;
        let Document { nodes, names, .. } = &mut self.document;
        // Each attribute is compared with those before it.
        penstock_budget::steps(1 + nodes.len() - parent as usize);
        let earlier = nodes[parent as usize + 1..].iter_mut().find(|node| {
            node.kind() == NodeKind::Attribute && names.qnames[node.name() as usize].canonical == canonical
        });
        match earlier {
            Some(earlier) => *earlier = node,
            None => self.document.push_node(node),
        }
    }

    /// A prefix that is bound to the namespace of an attribute, declared if need be.
    fn attribute_prefix(&mut self, wish: &str, namespace: u32) -> u32 {
        if namespace == NAMESPACE_NONE {
            return PREFIX_NONE;
        }
        if namespace == NAMESPACE_XML {
            return PREFIX_XML;
        }
        let wished = self.prefix_id(wish);
        if wished != PREFIX_NONE && self.bindings[wished as usize] == namespace {
            return wished;
        }
        if wished != PREFIX_NONE && wished != PREFIX_XML && wish != "xmlns" && !self.prefix_in_use(wished) {
            self.push_declaration(wished, namespace);
            return wished;
        }
        if let Some(bound) = self.bindings.iter().skip(2).position(|&bound| bound == namespace) {
            return bound as u32 + 2;
        }
        let mut number = 0;
        loop {
            let made = self.prefix_id(&format!("ns{number}"));
            if self.bindings[made as usize] == UNBOUND && !self.prefix_in_use(made) {
                self.push_declaration(made, namespace);
                return made;
            }
            number += 1;
        }
    }

    /// Adds text. Empty text adds nothing; text after text lengthens it.
    pub fn text(&mut self, text: &str) {
        if text.is_empty() || !self.document.strings.has_room(text) {
            return;
        }
        let parent = self.current();
        let Document { nodes, strings, .. } = &mut self.document;
        if let Some(last) = nodes.last_mut()
            && last.kind() == NodeKind::Text
            && last.parent == parent
        {
            let joined =
                last.start & OWNED != 0 && (last.start & !OWNED) as usize + last.end as usize == strings.owned.len();
            if joined {
                penstock_budget::make_room_for_text(&mut strings.owned, text.len());
                strings.owned.push_str(text);
            } else {
                penstock_budget::reserve(last.value().len as usize + text.len());
                let both = [strings.get(last.value()), text].concat();
                let joined = strings.push(&both);
                if joined.len == 0 {
                    return;
                }
                last.start = joined.start;
            }
            last.end += text.len() as u32;
            return;
        }
        let value = strings.push(text);
        self.document.push_node(Node::new(NodeKind::Text, NAME_EMPTY, parent, value.start, value.len));
    }

    /// Adds a text node without any text, which only a tree that is a single node may hold.
    pub fn empty_text(&mut self) {
        let parent = self.current();
        let value = self.document.strings.push("");
        self.document.nodes.push(Node::new(NodeKind::Text, NAME_EMPTY, parent, value.start, value.len));
    }

    /// Adds a comment.
    pub fn comment(&mut self, text: &str) {
        let parent = self.current();
        let value = self.document.strings.push(text);
        self.document.push_node(Node::new(NodeKind::Comment, NAME_EMPTY, parent, value.start, value.len));
    }

    /// Adds a processing instruction.
    pub fn processing_instruction(&mut self, target: &str, data: &str) {
        let parent = self.current();
        let name = self.qname_id(PREFIX_NONE, NAMESPACE_NONE, target);
        let value = self.document.strings.push(data);
        self.document.push_node(Node::new(NodeKind::ProcessingInstruction, name, parent, value.start, value.len));
    }

    /// Closes the innermost open element. Ignored when none is open.
    #[inline]
    pub fn end_element(&mut self) {
        if self.open.len() < 2 {
            return;
        }
        let Some(open) = self.open.pop() else { return };
        let end = self.document.nodes.len() as u32;
        self.document.nodes[open.node as usize].end = end;
        while self.undo.len() > open.undo as usize {
            if let Some((prefix, namespace)) = self.undo.pop() {
                self.bindings[prefix as usize] = namespace;
            }
        }
    }

    /// Reads a document and adds its content to the open element, as fast as [`Document::parse`]. Namespaces in
    /// scope here are not in scope for the text: it is a document of its own. After an error the builder holds what
    /// was read before it.
    pub fn append_parsed(&mut self, source: impl Into<Bytes>, options: &ParseOptions) -> Result<(), XmlError> {
        crate::parse::append(self, source.into(), options)
    }

    /// The finished document; elements that are still open are closed.
    pub fn finish(mut self) -> Document {
        while self.open.len() > 1 {
            self.end_element();
        }
        let end = self.document.nodes.len() as u32;
        self.document.nodes[0].end = end;
        lexicon::learn(&self.document.names);
        self.document
    }
}
