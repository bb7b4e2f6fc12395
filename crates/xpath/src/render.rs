//! Values as text, one item a line: what the command line prints.

use penstock_xml::{NodeKind, WriteOptions, to_vec};

use crate::session::Session;
use crate::value::{ItemRef, Sequence};

/// One string per item: atomic values as text, nodes as XML, attributes as `name="value"`.
pub fn render(value: &Sequence, session: &Session, compat: bool) -> Vec<String> {
    value.iter().map(|item| render_item(item, session, compat)).collect()
}

fn render_item(item: ItemRef<'_>, session: &Session, compat: bool) -> String {
    let node = match item {
        ItemRef::Atomic(atomic) => return atomic.to_text(compat).into_owned(),
        ItemRef::Node(node) => node,
    };
    let document = session.document_of(node);
    let xml = |node| String::from_utf8_lossy(&to_vec(document, node, &WriteOptions::default())).into_owned();
    match document.kind(node.id) {
        NodeKind::Attribute => {
            let mut value = Vec::new();
            penstock_xml::escape_attribute(&mut value, document.text(node.id));
            format!("{}=\"{}\"", document.name(node.id), String::from_utf8_lossy(&value))
        }
        NodeKind::Namespace => {
            let prefix = document.local_name(node.id);
            let colon = if prefix.is_empty() { "" } else { ":" };
            format!("xmlns{colon}{prefix}=\"{}\"", document.text(node.id))
        }
        _ => xml(node.id),
    }
}
