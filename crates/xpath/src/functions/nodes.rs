//! Functions on nodes.

use std::borrow::Cow;
use std::sync::Arc;

use penstock_xml::{Document, NodeKind};

use crate::error::Result;
use crate::eval::Args;
use crate::value::{Atomic, Item, Node, QName, Sequence};

pub(super) fn local_name<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    let Some(node) = args.node_or_context()? else { return Ok(Cow::Borrowed("")) };
    Ok(Cow::Borrowed(args.ev.session.document_of(node).local_name(node.id)))
}

pub(super) fn namespace_uri<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    let Some(node) = args.node_or_context()? else { return Ok(Cow::Borrowed("")) };
    let document = args.ev.session.document_of(node);
    let named = matches!(document.kind(node.id), NodeKind::Element | NodeKind::Attribute);
    Ok(Cow::Borrowed(if named { document.namespace(node.id) } else { "" }))
}

pub(super) fn name<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    let Some(node) = args.node_or_context()? else { return Ok(Cow::Borrowed("")) };
    let document = args.ev.session.document_of(node);
    let name = document.name(node.id);
    if name.prefix.is_empty() || document.kind(node.id) == NodeKind::Namespace {
        return Ok(Cow::Borrowed(name.local));
    }
    Ok(Cow::Owned(format!("{}:{}", name.prefix, name.local)))
}

pub(super) fn node_name(args: &Args<'_, '_>) -> Result<Sequence> {
    let Some(node) = args.node_or_context()? else { return Ok(Sequence::Empty) };
    let document = args.ev.session.document_of(node);
    let name = document.name(node.id);
    if name.local.is_empty() {
        return Ok(Sequence::Empty);
    }
    let optional = |text: &str| if text.is_empty() { None } else { Some(Arc::from(text)) };
    let qname = QName { prefix: optional(name.prefix), namespace: optional(name.namespace), local: name.local.into() };
    Ok(Sequence::from(Atomic::QName(Arc::new(qname))))
}

pub(super) fn root(args: &Args<'_, '_>) -> Result<Sequence> {
    let Some(node) = args.node_or_context()? else { return Ok(Sequence::Empty) };
    let id = args.ev.session.document_of(node).root_of(node.id);
    Ok(Sequence::from(Node { id, ..node }))
}

pub(super) fn base_uri(args: &Args<'_, '_>) -> Result<Sequence> {
    let Some(node) = args.node_or_context()? else { return Ok(Sequence::Empty) };
    let document = args.ev.session.document_of(node);
    let mut base = document.base_uri().map(str::to_string);
    // `xml:base` attributes apply from the outside in.
    let mut declared: Vec<&str> = std::iter::once(node.id)
        .chain(document.ancestors(node.id))
        .filter(|id| document.is_element(*id))
        .filter_map(|id| document.attribute(id, crate::static_context::XML_NAMESPACE, "base"))
        .collect();
    declared.reverse();
    for reference in declared {
        base = Some(super::uris::resolve(reference, base.as_deref().unwrap_or("")));
    }
    Ok(base.map_or(Sequence::Empty, |uri| Sequence::from(Atomic::Uri(uri.into()))))
}

pub(super) fn document_uri(args: &Args<'_, '_>) -> Result<Sequence> {
    let Some(node) = args.node_or_context()? else { return Ok(Sequence::Empty) };
    if node.id != Document::ROOT {
        return Ok(Sequence::Empty);
    }
    let uri = args.ev.session.document_of(node).base_uri();
    Ok(uri.map_or(Sequence::Empty, |uri| Sequence::from(Atomic::Uri(uri.into()))))
}

pub(super) fn has_children(args: &Args<'_, '_>) -> Result<bool> {
    let Some(node) = args.node_or_context()? else { return Ok(false) };
    Ok(args.ev.session.document_of(node).first_child(node.id).is_some())
}

pub(super) fn nilled(args: &Args<'_, '_>) -> Result<Sequence> {
    let Some(node) = args.node_or_context()? else { return Ok(Sequence::Empty) };
    let element = args.ev.session.document_of(node).is_element(node.id);
    // Without a schema no element is nilled.
    Ok(if element { Sequence::from(false) } else { Sequence::Empty })
}

pub(super) fn generate_id<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    let Some(node) = args.node_or_context()? else { return Ok(Cow::Borrowed("")) };
    Ok(Cow::Owned(format!("d{}n{}", node.document, node.id.index())))
}

pub(super) fn id(args: &Args<'_, '_>) -> Result<Sequence> {
    let of = match args.codes.get(1) {
        None => crate::eval::context_node(args.focus)?,
        Some(_) => super::general::required_node(args, 1)?,
    };
    let document = args.ev.session.document_of(of);
    let mut found = Vec::new();
    let values = args.sequence(0)?;
    for item in values.iter() {
        let text = args.ev.item_text(item);
        args.ev.charge(text.len())?;
        for id in text.split([' ', '\t', '\r', '\n']).filter(|id| !id.is_empty()) {
            found.extend(document.element_by_id(id).map(|id| Node { id, ..of }));
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(Sequence::from_nodes(&found))
}

/// Only a schema or DTD defines references between elements, and neither is kept with the tree.
pub(super) fn idref(args: &Args<'_, '_>) -> Result<Sequence> {
    match args.codes.get(1) {
        None => crate::eval::context_node(args.focus)?,
        Some(_) => super::general::required_node(args, 1)?,
    };
    Ok(Sequence::Empty)
}

pub(super) fn lang(args: &Args<'_, '_>) -> Result<bool> {
    let wanted = args.string(0)?;
    let node = match args.codes.get(1) {
        None => crate::eval::context_node(args.focus)?,
        Some(_) => super::general::required_node(args, 1)?,
    };
    let document = args.ev.session.document_of(node);
    let declared = std::iter::once(node.id)
        .chain(document.ancestors(node.id))
        .filter(|id| document.is_element(*id))
        .find_map(|id| document.attribute(id, crate::static_context::XML_NAMESPACE, "lang"));
    Ok(declared.is_some_and(|found| {
        let (found, wanted) = (found.as_bytes(), wanted.as_bytes());
        found.len() >= wanted.len()
            && found[..wanted.len()].eq_ignore_ascii_case(wanted)
            && (found.len() == wanted.len() || found[wanted.len()] == b'-')
    }))
}

/// Items of text, for functions that return several strings.
pub(super) fn strings(texts: impl Iterator<Item = String>) -> Sequence {
    texts.map(|text| Item::Atomic(Atomic::from(text))).collect()
}
