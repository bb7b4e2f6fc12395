//! Functions on the context, on truth, and on the world outside.

use std::borrow::Cow;

use crate::error::{Result, XPathError};
use crate::eval::Args;
use crate::value::{Atomic, ItemRef, Sequence};

pub(super) fn last(args: &Args<'_, '_>) -> Result<i64> {
    args.focus.item.map(|_| args.focus.size as i64).ok_or_else(no_context)
}

pub(super) fn position(args: &Args<'_, '_>) -> Result<i64> {
    args.focus.item.map(|_| args.focus.position as i64).ok_or_else(no_context)
}

fn no_context() -> XPathError {
    XPathError::new("XPDY0002", "there is no context item here")
}

pub(super) fn boolean(args: &Args<'_, '_>) -> Result<bool> {
    args.boolean(0)
}

pub(super) fn not(args: &Args<'_, '_>) -> Result<bool> {
    Ok(!args.boolean(0)?)
}

pub(super) fn yes(_: &Args<'_, '_>) -> Result<bool> {
    Ok(true)
}

pub(super) fn no(_: &Args<'_, '_>) -> Result<bool> {
    Ok(false)
}

pub(super) fn current(args: &Args<'_, '_>) -> Result<Sequence> {
    args.ev.current.map(|item| Sequence::One(item.to_item())).ok_or_else(no_context)
}

pub(super) fn default_collation<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    let declared = args.ev.program.collation.as_ref();
    Ok(declared.map_or(Cow::Borrowed(crate::collation::CODEPOINT), |(uri, _)| Cow::Owned(uri.to_string())))
}

pub(super) fn static_base_uri(args: &Args<'_, '_>) -> Result<Sequence> {
    let uri = args.ev.program.base_uri.clone();
    Ok(uri.map_or(Sequence::Empty, |uri| Sequence::from(Atomic::Uri(uri))))
}

pub(super) fn doc(args: &Args<'_, '_>) -> Result<Sequence> {
    let Some(uri) = args.optional_string(0)? else { return Ok(Sequence::Empty) };
    let base = args.ev.program.base_uri.as_deref();
    args.ev.cx.host.document(&uri, base, args.ev.session).map(Sequence::from)
}

/// No host has collections, so there is neither a default one nor any other.
pub(super) fn collection(args: &Args<'_, '_>) -> Result<Sequence> {
    let what = match args.codes.first() {
        None => "the default collection".to_string(),
        Some(_) => format!("the collection `{}`", args.string(0)?),
    };
    Err(XPathError::new("FODC0002", format!("{what} is not available here")))
}

pub(super) fn doc_available(args: &Args<'_, '_>) -> Result<bool> {
    let Some(uri) = args.optional_string(0)? else { return Ok(false) };
    let base = args.ev.program.base_uri.as_deref();
    Ok(args.ev.cx.host.document(&uri, base, args.ev.session).is_ok())
}

pub(super) fn error(args: &Args<'_, '_>) -> Result<Sequence> {
    let code = match args.codes.first() {
        None => None,
        Some(_) => args.atomic(0)?,
    };
    let code = match &code {
        Some(Atomic::QName(name)) => name.local.to_string(),
        Some(other) => other.to_text(false).into_owned(),
        None => "FOER0000".to_string(),
    };
    let message = if args.len() > 1 { args.string(1)?.into_owned() } else { "error() was called".to_string() };
    Err(XPathError::new(code, message))
}

pub(super) fn trace(args: &Args<'_, '_>) -> Result<Sequence> {
    let value = args.sequence(0)?;
    let label = if args.len() > 1 { args.string(1)? } else { Cow::Borrowed("") };
    args.ev.cx.host.trace(&label, &value);
    Ok(value)
}

/// A node argument of a function that demands one.
pub(super) fn required_node(args: &Args<'_, '_>, index: usize) -> Result<crate::value::Node> {
    let mismatch = || crate::error::type_error("expected a node");
    match args.sequence(index)?.first() {
        Some(ItemRef::Node(node)) => Ok(node),
        _ => Err(mismatch().at(args.code(index)?.span)),
    }
}
