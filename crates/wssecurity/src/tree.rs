//! Finding and replacing elements of a tree.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use penstock_xml::{DoctypePolicy, Document, NodeId, NodeKind, ParseOptions, TreeBuilder};

use crate::names::WSU;

/// The child elements of a name.
pub(crate) fn children<'d>(
    document: &'d Document,
    parent: NodeId,
    namespace: &'d str,
    name: &'d str,
) -> impl Iterator<Item = NodeId> + 'd {
    elements(document, parent)
        .filter(move |child| document.local_name(*child) == name && document.namespace(*child) == namespace)
}

/// All child elements.
pub(crate) fn elements(document: &Document, parent: NodeId) -> impl Iterator<Item = NodeId> + '_ {
    document.children(parent).filter(|child| document.is_element(*child))
}

/// The first child element of a name.
pub(crate) fn child(document: &Document, parent: NodeId, namespace: &str, name: &str) -> Option<NodeId> {
    elements(document, parent)
        .find(|child| document.local_name(*child) == name && document.namespace(*child) == namespace)
}

/// The trimmed text of an element.
pub(crate) fn text(document: &Document, node: NodeId) -> String {
    document.string_value(node).trim().to_owned()
}

/// The octets of an element that holds Base64, with or without line breaks.
pub(crate) fn binary(document: &Document, node: NodeId) -> Option<Vec<u8>> {
    let text: String = document.string_value(node).chars().filter(|letter| !letter.is_ascii_whitespace()).collect();
    STANDARD.decode(text).ok()
}

/// The elements of a message by their identifiers.
///
/// Invariant: an identifier that two elements have names none. A second element with the identifier of a signed one is how
/// signature wrapping begins; in business data, where no reference leads, it is no mistake.
pub(crate) struct Ids<'d>(HashMap<&'d str, Option<NodeId>>);

impl<'d> Ids<'d> {
    pub(crate) fn collect(document: &'d Document) -> Ids<'d> {
        let mut found: HashMap<&str, Option<NodeId>> = HashMap::new();
        for element in document.descendants(Document::ROOT).filter(|node| document.is_element(*node)) {
            let ids = document.attributes(element).filter(|attribute| {
                let name = document.name(*attribute);
                name.local == "Id" && (name.namespace == WSU || name.namespace.is_empty())
            });
            for id in ids {
                found.entry(document.text(id)).and_modify(|known| *known = None).or_insert(Some(element));
            }
        }
        Ids(found)
    }

    /// The element of a reference such as `#id`.
    pub(crate) fn get(&self, uri: &str) -> Option<NodeId> {
        self.0.get(uri.strip_prefix('#')?).copied().flatten()
    }
}

/// How decrypted content and own fragments are parsed.
pub(crate) fn options() -> ParseOptions {
    ParseOptions { doctype: DoctypePolicy::Refuse, ..ParseOptions::default() }
}

/// The tree with some elements replaced by the children of the root of other trees.
pub(crate) fn replace(document: &Document, replacements: &HashMap<NodeId, Document>) -> Document {
    let mut builder = TreeBuilder::new();
    let mut open: Vec<usize> = Vec::new();
    let mut skip_to = 0;
    for node in document.descendants(Document::ROOT) {
        let index = node.index();
        if index < skip_to {
            continue;
        }
        while open.last().is_some_and(|end| *end <= index) {
            open.pop();
            builder.end_element();
        }
        let subtree = document.subtree(node);
        if let Some(content) = replacements.get(&node) {
            if let Some(root) = content.root_element() {
                builder.copy_children(content, root);
            }
            skip_to = subtree.end;
        } else if !document.is_element(node) || !replacements.keys().any(|one| subtree.contains(&one.index())) {
            builder.copy(document, node);
            skip_to = subtree.end;
        } else {
            open_copy(&mut builder, document, node);
            open.push(subtree.end);
        }
    }
    for _ in open {
        builder.end_element();
    }
    builder.finish()
}

/// Opens a copy of an element with its declarations and attributes.
pub(crate) fn open_copy(builder: &mut TreeBuilder, document: &Document, element: NodeId) {
    let name = document.name(element);
    builder.start_element(name.prefix, name.local, name.namespace);
    for declaration in document.namespace_declarations(element).chain(document.attributes(element)) {
        debug_assert!(matches!(document.kind(declaration), NodeKind::Namespace | NodeKind::Attribute));
        builder.copy(document, declaration);
    }
}
