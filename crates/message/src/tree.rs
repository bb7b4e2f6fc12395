//! Changed copies of trees. A tree is immutable; [`edit`] makes a copy in which some nodes differ.

use std::collections::BTreeMap;
use std::sync::Arc;

use penstock_xml::{Document, NodeId, NodeKind, TreeBuilder};

use crate::{Envelope, SoapVersion};

/// What is put into a tree.
#[derive(Debug, Clone)]
pub enum Content {
    /// A node of another tree, with everything in it.
    Node(Arc<Document>, NodeId),
    /// Text.
    Text(Arc<str>),
}

/// What is different at a node.
#[derive(Debug, Clone)]
pub enum Change {
    /// These stand in its place: nothing at all removes it. For attributes the text becomes the value.
    Replace(Vec<Content>),
    /// These follow the last child.
    Append(Vec<Content>),
    /// These follow the node.
    After(Vec<Content>),
}

/// The changes, by node.
pub type Changes = BTreeMap<NodeId, Change>;

/// The nodes of a list that are not inside another node of it.
pub fn outermost(document: &Document, nodes: &[NodeId]) -> Vec<NodeId> {
    let mut end = 0;
    let mut sorted = nodes.to_vec();
    sorted.sort();
    sorted.dedup();
    sorted.retain(|node| {
        let outside = node.index() >= end;
        if outside {
            end = document.subtree(*node).end;
        }
        outside
    });
    sorted
}

/// Adds contents to the open element of a builder. An attribute becomes an attribute, unless the
/// element has content, and then its value becomes text.
pub fn insert(builder: &mut TreeBuilder, contents: &[Content]) {
    for content in contents {
        match content {
            Content::Text(text) => builder.text(text),
            Content::Node(document, node) if document.kind(*node) == NodeKind::Attribute => {
                builder.text(document.text(*node))
            }
            Content::Node(document, node) => copy_lean(builder, document, *node),
        }
    }
}

/// A copy of the tree with the changes made.
pub fn edit(document: &Document, changes: &Changes) -> Document {
    let mut builder = TreeBuilder::with_capacity(document.node_count() + 16);
    // Open elements: where each ends, and what follows its content and itself.
    let mut open: Vec<(usize, &[Content], &[Content])> = Vec::new();
    let mut skip_until = 0;
    if let Some(Change::Append(contents)) = changes.get(&Document::ROOT) {
        insert(&mut builder, contents);
    }
    for node in document.descendants(Document::ROOT) {
        if node.index() < skip_until {
            continue;
        }
        close(&mut builder, &mut open, node.index());
        let subtree = document.subtree(node);
        match changes.get(&node) {
            Some(Change::Replace(contents)) => {
                insert(&mut builder, contents);
                skip_until = subtree.end;
            }
            Some(Change::After(contents)) if !touched_inside(changes, document, node) => {
                builder.copy(document, node);
                insert(&mut builder, contents);
                skip_until = subtree.end;
            }
            None if !touched_inside(changes, document, node) => {
                builder.copy(document, node);
                skip_until = subtree.end;
            }
            change => {
                start(&mut builder, document, node, changes);
                match change {
                    Some(Change::Append(contents)) => open.push((subtree.end, contents, &[])),
                    Some(Change::After(contents)) => open.push((subtree.end, &[], contents)),
                    _ => open.push((subtree.end, &[], &[])),
                }
            }
        }
    }
    close(&mut builder, &mut open, usize::MAX);
    builder.finish()
}

fn close(builder: &mut TreeBuilder, open: &mut Vec<(usize, &[Content], &[Content])>, index: usize) {
    while let Some((_, inside, after)) = open.pop_if(|(end, _, _)| *end <= index) {
        insert(builder, inside);
        builder.end_element();
        insert(builder, after);
    }
}

/// Whether anything below the node, its attributes included, changes.
fn touched_inside(changes: &Changes, document: &Document, node: NodeId) -> bool {
    let end = document.subtree(node).end;
    changes
        .range((std::ops::Bound::Excluded(node), std::ops::Bound::Unbounded))
        .next()
        .is_some_and(|(next, _)| next.index() < end)
}

/// Opens a copy of an element with its declarations and (changed) attributes.
fn start(builder: &mut TreeBuilder, document: &Document, element: NodeId, changes: &Changes) {
    open(builder, document, element);
    for attribute in document.attributes(element) {
        match changes.get(&attribute) {
            None => builder.copy(document, attribute),
            Some(Change::Replace(contents)) if contents.is_empty() => {}
            Some(Change::Replace(contents) | Change::Append(contents) | Change::After(contents)) => {
                let name = document.name(attribute);
                builder.attribute(name.prefix, name.local, name.namespace, &text_of(contents));
            }
        }
    }
}

fn open(builder: &mut TreeBuilder, document: &Document, element: NodeId) {
    let name = document.name(element);
    builder.start_element(name.prefix, name.local, name.namespace);
    for declaration in document.namespace_declarations(element) {
        builder.declare_namespace(document.local_name(declaration), document.text(declaration));
    }
}

/// Opens a copy of an element with its declarations and attributes; the caller adds content and closes it.
pub fn open_copy(builder: &mut TreeBuilder, document: &Document, element: NodeId) {
    open(builder, document, element);
    for attribute in document.attributes(element) {
        builder.copy(document, attribute);
    }
}

/// A copy of an element as it would be written on its own; see [`copy_lean`].
pub fn lean_copy(document: &Document, element: NodeId) -> Document {
    let mut builder = TreeBuilder::new();
    copy_lean(&mut builder, document, element);
    builder.finish()
}

/// Copies a node with the namespaces it uses, without those that merely happen to be in scope where
/// it stands: an envelope's prefixes do not follow what is taken out of it.
pub fn copy_lean(builder: &mut TreeBuilder, document: &Document, node: NodeId) {
    if !document.is_element(node) {
        return builder.copy(document, node);
    }
    let mut ends: Vec<usize> = Vec::new();
    for node in std::iter::once(node).chain(document.descendants(node)) {
        while ends.pop_if(|end| *end <= node.index()).is_some() {
            builder.end_element();
        }
        if !document.is_element(node) {
            builder.copy(document, node);
            continue;
        }
        open(builder, document, node);
        for attribute in document.attributes(node) {
            let name = document.name(attribute);
            builder.attribute(name.prefix, name.local, name.namespace, document.text(attribute));
        }
        ends.push(document.subtree(node).end);
    }
    for _ in ends {
        builder.end_element();
    }
}

/// Contents as text.
pub fn text_of(contents: &[Content]) -> String {
    contents
        .iter()
        .map(|content| match content {
            Content::Text(text) => text.to_string(),
            Content::Node(document, node) => document.string_value(*node).into_owned(),
        })
        .collect()
}

/// The envelope of a changed copy; `soap` is the version of the source.
pub fn envelope_of(document: Document, soap: SoapVersion) -> Option<Envelope> {
    let mut envelope = Envelope::find(Arc::new(document))?;
    if soap == SoapVersion::None {
        envelope.soap = SoapVersion::None;
    }
    Some(envelope)
}

/// The prefix of envelopes made here.
pub const SOAP_PREFIX: &str = "soapenv";

/// An envelope with this payload in its body, and with the header of `header` when it is real SOAP.
pub fn envelope_around(payload: &[Content], soap: SoapVersion, header: Option<&Envelope>) -> Envelope {
    let mut builder = TreeBuilder::new();
    let namespace = soap.namespace();
    builder.start_element(SOAP_PREFIX, "Envelope", namespace);
    if soap != SoapVersion::None {
        match header.and_then(|envelope| Some((envelope, envelope.header?))) {
            Some((envelope, node)) => builder.copy(&envelope.document, node),
            None => {
                builder.start_element(SOAP_PREFIX, "Header", namespace);
                builder.end_element();
            }
        }
    }
    builder.start_element(SOAP_PREFIX, "Body", namespace);
    insert(&mut builder, payload);
    builder.end_element();
    builder.end_element();
    envelope_of(builder.finish(), soap).expect("an envelope with a body was just built")
}

#[cfg(test)]
mod tests {
    use penstock_xml::{ParseOptions, WriteOptions, to_vec};

    use super::*;

    fn parse(text: &str) -> Arc<Document> {
        Arc::new(Document::parse(text.as_bytes().to_vec(), &ParseOptions::default()).unwrap())
    }

    fn check(source: &str, change: Change, local: &str, expected: &str) {
        let document = parse(source);
        let all = document
            .descendants(Document::ROOT)
            .flat_map(|node| std::iter::once(node).chain(document.attributes(node)));
        let node = all.into_iter().find(|node| document.local_name(*node) == local).unwrap();
        let edited = edit(&document, &Changes::from([(node, change)]));
        assert_eq!(String::from_utf8(to_vec(&edited, Document::ROOT, &WriteOptions::default())).unwrap(), expected);
    }

    #[test]
    fn copies_differ_where_they_should() {
        let text = |text: &str| vec![Content::Text(text.into())];
        let node = parse("<n/>");
        let node = || vec![Content::Node(node.clone(), node.root_element().unwrap())];
        let source = r#"<a><b k="v"><c>x</c></b><d/></a>"#;
        check(source, Change::Replace(node()), "b", "<a><n/><d/></a>");
        check(source, Change::Replace(vec![]), "d", r#"<a><b k="v"><c>x</c></b></a>"#);
        check(source, Change::Append(node()), "b", r#"<a><b k="v"><c>x</c><n/></b><d/></a>"#);
        check(source, Change::After(node()), "c", r#"<a><b k="v"><c>x</c><n/></b><d/></a>"#);
        check(source, Change::Replace(text("y")), "c", r#"<a><b k="v">y</b><d/></a>"#);
        check(source, Change::Replace(text("w")), "k", r#"<a><b k="w"><c>x</c></b><d/></a>"#);
        check(source, Change::Replace(vec![]), "k", "<a><b><c>x</c></b><d/></a>");
        check(source, Change::Append(node()), "d", r#"<a><b k="v"><c>x</c></b><d><n/></d></a>"#);
    }

    #[test]
    fn inner_nodes_of_a_list_are_left_out() {
        let document = parse("<a><b><c/></b><d/></a>");
        let all: Vec<_> = document.descendants(Document::ROOT).skip(1).collect();
        let names: Vec<_> =
            outermost(&document, &all).into_iter().map(|node| document.local_name(node).to_owned()).collect();
        assert_eq!(names, ["b", "d"]);
    }
}
