//! Functions on qualified names.

use std::sync::Arc;

use super::general::required_node;
use crate::error::{Result, XPathError, type_error};
use crate::eval::Args;
use crate::value::{Atomic, AtomicType, QName, Sequence};

fn invalid(lexical: &str) -> XPathError {
    XPathError::new("FOCA0002", format!("`{lexical}` is not a qualified name"))
}

/// Prefix and local part of a lexical name.
fn split(lexical: &str) -> Result<(Option<&str>, &str)> {
    let (prefix, local) = match lexical.split_once(':') {
        Some((prefix, local)) => (Some(prefix), local),
        None => (None, lexical),
    };
    let valid = crate::lexer::is_nc_name(local) && prefix.is_none_or(crate::lexer::is_nc_name);
    if valid { Ok((prefix, local)) } else { Err(invalid(lexical)) }
}

pub(super) fn qname(args: &Args<'_, '_>) -> Result<Sequence> {
    let uri = args.string(0)?;
    let lexical = args.string(1)?;
    let (prefix, local) = split(&lexical)?;
    if uri.is_empty() && prefix.is_some() {
        return Err(invalid(&lexical));
    }
    let namespace = if uri.is_empty() { None } else { Some(Arc::from(&*uri)) };
    let name = QName { prefix: prefix.map(Into::into), namespace, local: local.into() };
    Ok(Sequence::from(Atomic::QName(Arc::new(name))))
}

pub(super) fn resolve_qname(args: &Args<'_, '_>) -> Result<Sequence> {
    let Some(lexical) = args.optional_string(0)? else { return Ok(Sequence::Empty) };
    let element = required_node(args, 1)?;
    let (prefix, local) = split(&lexical)?;
    let document = args.ev.session.document_of(element);
    let namespace = document.lookup_namespace(element.id, prefix.unwrap_or(""));
    if prefix.is_some() && namespace.is_none() {
        return Err(XPathError::new("FONS0004", format!("prefix of `{lexical}` is not declared on the element")));
    }
    let name = QName { prefix: prefix.map(Into::into), namespace: namespace.map(Into::into), local: local.into() };
    Ok(Sequence::from(Atomic::QName(Arc::new(name))))
}

fn qname_argument(args: &Args<'_, '_>) -> Result<Option<Arc<QName>>> {
    match args.atomic(0)? {
        None => Ok(None),
        Some(Atomic::QName(name)) => Ok(Some(name)),
        Some(other) => Err(type_error(format!("expected xs:QName, found {}", other.atomic_type().name()))),
    }
}

fn ncname(name: &Arc<str>) -> Sequence {
    Sequence::from(Atomic::DerivedString(AtomicType::NcName, Arc::clone(name)))
}

pub(super) fn local_name_from(args: &Args<'_, '_>) -> Result<Sequence> {
    Ok(qname_argument(args)?.map_or(Sequence::Empty, |name| ncname(&name.local)))
}

pub(super) fn prefix_from(args: &Args<'_, '_>) -> Result<Sequence> {
    let prefix = qname_argument(args)?.and_then(|name| name.prefix.clone());
    Ok(prefix.map_or(Sequence::Empty, |prefix| ncname(&prefix)))
}

pub(super) fn namespace_uri_from(args: &Args<'_, '_>) -> Result<Sequence> {
    let Some(name) = qname_argument(args)? else { return Ok(Sequence::Empty) };
    Ok(Sequence::from(Atomic::Uri(name.namespace.clone().unwrap_or_else(|| "".into()))))
}

pub(super) fn namespace_uri_for_prefix(args: &Args<'_, '_>) -> Result<Sequence> {
    let prefix = args.string(0)?;
    let element = required_node(args, 1)?;
    let found = args.ev.session.document_of(element).lookup_namespace(element.id, &prefix);
    Ok(found.map_or(Sequence::Empty, |uri| Sequence::from(Atomic::Uri(uri.into()))))
}

pub(super) fn in_scope_prefixes(args: &Args<'_, '_>) -> Result<Sequence> {
    let element = required_node(args, 0)?;
    let document = args.ev.session.document_of(element);
    let prefixes = document.in_scope_namespaces(element.id).map(|id| document.local_name(id).to_string());
    Ok(super::nodes::strings(prefixes))
}
