//! From a tree to XML text.

use crate::names::Name;
use crate::tree::{Document, NodeId, NodeKind};

/// How to write a tree as XML.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// Begin with an XML declaration.
    pub declaration: bool,
}

/// Writes a node and everything in it as UTF-8. A document node is written as its content.
pub fn to_vec(document: &Document, id: NodeId, options: &WriteOptions) -> Vec<u8> {
    let mut out = Vec::with_capacity(document.subtree(id).len() * 12);
    write_to(&mut out, document, id, options);
    out
}

/// Like [`to_vec`], at the end of a buffer. The namespaces in scope at the node are declared on it, so that what is
/// written means the same on its own.
pub fn write_to(out: &mut Vec<u8>, document: &Document, id: NodeId, options: &WriteOptions) {
    if options.declaration {
        out.extend_from_slice(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    }
    let mut open: Vec<(usize, Name<'_>)> = Vec::new();
    for index in document.subtree(id) {
        while open.last().is_some_and(|&(end, _)| end <= index) {
            if let Some((_, name)) = open.pop() {
                end_tag(out, name);
            }
        }
        let node = NodeId(index as u32);
        match document.kind(node) {
            NodeKind::Element => {
                let name = document.name(node);
                out.push(b'<');
                push_name(out, name);
                start_tag_rest(out, document, node, node == id);
                if document.first_child(node).is_some() {
                    out.push(b'>');
                    open.push((document.subtree(node).end, name));
                } else {
                    out.extend_from_slice(b"/>");
                }
            }
            NodeKind::Text => escape_text(out, document.text(node)),
            NodeKind::Comment => {
                out.extend_from_slice(b"<!--");
                out.extend_from_slice(document.text(node).as_bytes());
                out.extend_from_slice(b"-->");
            }
            NodeKind::ProcessingInstruction => {
                out.extend_from_slice(b"<?");
                out.extend_from_slice(document.local_name(node).as_bytes());
                if !document.text(node).is_empty() {
                    out.push(b' ');
                    out.extend_from_slice(document.text(node).as_bytes());
                }
                out.extend_from_slice(b"?>");
            }
            NodeKind::Attribute if node == id => escape_text(out, document.text(node)),
            NodeKind::Document | NodeKind::Attribute | NodeKind::Namespace => {}
        }
    }
    while let Some((_, name)) = open.pop() {
        end_tag(out, name);
    }
}

fn start_tag_rest(out: &mut Vec<u8>, document: &Document, element: NodeId, outermost: bool) {
    if outermost {
        for declaration in document.in_scope_namespaces(element) {
            if document.local_name(declaration) != "xml" {
                push_declaration(out, document, declaration);
            }
        }
    } else {
        document.namespace_declarations(element).for_each(|node| push_declaration(out, document, node));
    }
    for attribute in document.attributes(element) {
        out.push(b' ');
        push_name(out, document.name(attribute));
        out.extend_from_slice(b"=\"");
        escape_attribute(out, document.text(attribute));
        out.push(b'"');
    }
}

fn push_declaration(out: &mut Vec<u8>, document: &Document, declaration: NodeId) {
    out.extend_from_slice(b" xmlns");
    let prefix = document.local_name(declaration);
    if !prefix.is_empty() {
        out.push(b':');
        out.extend_from_slice(prefix.as_bytes());
    }
    out.extend_from_slice(b"=\"");
    escape_attribute(out, document.text(declaration));
    out.push(b'"');
}

fn push_name(out: &mut Vec<u8>, name: Name<'_>) {
    if !name.prefix.is_empty() {
        out.extend_from_slice(name.prefix.as_bytes());
        out.push(b':');
    }
    out.extend_from_slice(name.local.as_bytes());
}

fn end_tag(out: &mut Vec<u8>, name: Name<'_>) {
    out.extend_from_slice(b"</");
    push_name(out, name);
    out.push(b'>');
}

/// Writes text with `&`, `<` and `>` escaped, and a carriage return as a reference so that it survives.
pub fn escape_text(out: &mut Vec<u8>, text: &str) {
    escape(out, text, |byte| match byte {
        b'&' => Some("&amp;"),
        b'<' => Some("&lt;"),
        b'>' => Some("&gt;"),
        b'\r' => Some("&#xD;"),
        _ => None,
    });
}

/// Writes an attribute value for double quotes; white space other than blanks becomes references.
pub fn escape_attribute(out: &mut Vec<u8>, text: &str) {
    escape(out, text, |byte| match byte {
        b'&' => Some("&amp;"),
        b'<' => Some("&lt;"),
        b'"' => Some("&quot;"),
        b'\t' => Some("&#9;"),
        b'\n' => Some("&#10;"),
        b'\r' => Some("&#13;"),
        _ => None,
    });
}

fn escape(out: &mut Vec<u8>, text: &str, replacement: impl Fn(u8) -> Option<&'static str>) {
    let bytes = text.as_bytes();
    let mut written = 0;
    for (index, &byte) in bytes.iter().enumerate() {
        if let Some(replacement) = replacement(byte) {
            out.extend_from_slice(&bytes[written..index]);
            out.extend_from_slice(replacement.as_bytes());
            written = index + 1;
        }
    }
    out.extend_from_slice(&bytes[written..]);
}
