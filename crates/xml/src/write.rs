//! From a tree to XML text.

use penstock_budget as budget;

use crate::names::PREFIX_NONE;
use crate::scan::{find_attribute_escape, find_text_escape};
use crate::tree::{Document, Node, NodeId, NodeKind};

/// How to write a tree as XML.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// Begin with an XML declaration.
    pub declaration: bool,
}

/// Bytes per node to make room for; close to what small messages need.
const BYTES_PER_NODE: usize = 16;

/// Room that is made before anything is written; more follows as it is needed.
const ROOM_BYTES_MAX: usize = 1 << 20;

/// Writes a node and everything in it as UTF-8. A document node is written as its content, an attribute as its escaped
/// value.
pub fn to_vec(document: &Document, id: NodeId, options: &WriteOptions) -> Vec<u8> {
    let room = document.subtree(id).len() * BYTES_PER_NODE;
    let mut out = Vec::with_capacity(64 + room.min(ROOM_BYTES_MAX));
    write_to(&mut out, document, id, options);
    out
}

/// Like [`to_vec`], at the end of a buffer. The namespaces in scope at the node are declared on it, so that what is
/// written means the same on its own.
pub fn write_to(out: &mut Vec<u8>, document: &Document, id: NodeId, options: &WriteOptions) {
    if options.declaration {
        out.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    }
    let mut writer = Writer { document, out, open: Vec::with_capacity(16) };
    let range = document.subtree(id);
    for index in range.clone() {
        writer.close_before(index);
        budget::step();
        let node = &document.nodes[index];
        match node.kind() {
            NodeKind::Element => writer.element(node, index, index == range.start),
            NodeKind::Text => {
                let text = document.strings.get(node.value());
                budget::make_room(writer.out, text.len());
                escape_text(writer.out, text);
            }
            NodeKind::Attribute if index == range.start => {
                escape_attribute(writer.out, document.strings.get(node.value()));
            }
            NodeKind::Comment => writer.around("<!--", node, "-->"),
            NodeKind::ProcessingInstruction => writer.instruction(node),
            NodeKind::Document | NodeKind::Attribute | NodeKind::Namespace => {}
        }
    }
    writer.close_before(usize::MAX);
}

struct Writer<'a> {
    document: &'a Document,
    out: &'a mut Vec<u8>,
    /// The ends of the open elements, and their names.
    open: Vec<(usize, u32)>,
}

impl Writer<'_> {
    /// Writes the end tags of the elements that end before a node.
    #[inline]
    fn close_before(&mut self, index: usize) {
        while let Some(&(end, name)) = self.open.last()
            && end <= index
        {
            self.open.pop();
            self.out.extend_from_slice(b"</");
            self.name(name);
            self.out.push(b'>');
        }
    }

    #[inline]
    fn name(&mut self, name: u32) {
        let names = &self.document.names;
        let prefix = names.qnames[name as usize].prefix;
        if prefix != PREFIX_NONE {
            self.out.extend_from_slice(names.prefix(prefix).as_bytes());
            self.out.push(b':');
        }
        self.out.extend_from_slice(names.local(name).as_bytes());
    }

    fn element(&mut self, node: &Node, index: usize, outermost: bool) {
        self.out.push(b'<');
        self.name(node.name());
        let end = node.end as usize;
        if outermost {
            self.declarations_in_scope(NodeId(index as u32));
        }
        let mut next = index + 1;
        while next < end {
            let node = &self.document.nodes[next];
            match node.kind() {
                NodeKind::Namespace if outermost => {}
                NodeKind::Namespace => self.declaration(node),
                NodeKind::Attribute => {
                    self.out.push(b' ');
                    self.name(node.name());
                    self.value(node);
                }
                _ => break,
            }
            next += 1;
        }
        if next < end {
            self.out.push(b'>');
            self.open.push((end, node.name()));
        } else {
            self.out.extend_from_slice(b"/>");
        }
    }

    fn declarations_in_scope(&mut self, element: NodeId) {
        let document = self.document;
        // Outermost declarations first: the order a document has them in.
        let mut found: Vec<NodeId> = document.in_scope_namespaces(element).collect();
        found.sort_unstable();
        for id in found {
            let node = document.node(id);
            if document.local_name(id) != "xml" {
                self.declaration(node);
            }
        }
    }

    fn declaration(&mut self, node: &Node) {
        let prefix = self.document.names.local(node.name());
        if !prefix.is_empty() && self.document.strings.get(node.value()).is_empty() {
            // Namespaces of XML 1.0 cannot undeclare a prefix.
            return;
        }
        self.out.extend_from_slice(b" xmlns");
        if !prefix.is_empty() {
            self.out.push(b':');
            self.out.extend_from_slice(prefix.as_bytes());
        }
        self.value(node);
    }

    fn value(&mut self, node: &Node) {
        self.out.extend_from_slice(b"=\"");
        escape_attribute(self.out, self.document.strings.get(node.value()));
        self.out.push(b'"');
    }

    fn around(&mut self, before: &str, node: &Node, after: &str) {
        self.out.extend_from_slice(before.as_bytes());
        self.out.extend_from_slice(self.document.strings.get(node.value()).as_bytes());
        self.out.extend_from_slice(after.as_bytes());
    }

    fn instruction(&mut self, node: &Node) {
        self.out.extend_from_slice(b"<?");
        self.name(node.name());
        let space = if node.end == 0 { "" } else { " " };
        self.around(space, node, "?>");
    }
}

/// Writes text with `&`, `<` and `>` escaped, and a carriage return as a reference so that it survives.
#[inline]
pub fn escape_text(out: &mut Vec<u8>, text: &str) {
    escape(out, text, find_text_escape);
}

/// Writes an attribute value for double quotes; white space other than blanks becomes references.
#[inline]
pub fn escape_attribute(out: &mut Vec<u8>, text: &str) {
    escape(out, text, find_attribute_escape);
}

/// Text with `&`, `<` and `>` escaped, for the content of an element.
pub fn escaped_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The same with quotes escaped, for content and for attribute values in double quotes, also of HTML.
pub fn escaped(text: &str) -> String {
    escaped_text(text).replace('"', "&quot;")
}

#[inline]
fn escape(out: &mut Vec<u8>, text: &str, find: impl Fn(&[u8], usize) -> usize) {
    let bytes = text.as_bytes();
    let mut written = 0;
    loop {
        let special = find(bytes, written);
        out.extend_from_slice(&bytes[written..special]);
        let Some(&byte) = bytes.get(special) else { return };
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            b'\t' => out.extend_from_slice(b"&#9;"),
            b'\n' => out.extend_from_slice(b"&#10;"),
            b'\r' => out.extend_from_slice(b"&#13;"),
            // Other control characters cannot be written in XML at all; they are written unchanged.
            other => out.push(other),
        }
        written = special + 1;
    }
}
