//! Functions on sequences.

use std::collections::HashSet;

use penstock_xml::NodeKind;

use super::strings::collation;
use crate::collation::Collation;
use crate::error::{Result, XPathError};
use crate::eval::{Args, atomic_equal};
use crate::session::Session;
use crate::static_context::ResultKind;
use crate::value::{Atomic, AtomicKey, Item, ItemRef, Node, Sequence, number};

pub(super) fn empty(args: &Args<'_, '_>) -> Result<bool> {
    exists(args).map(|exists| !exists)
}

pub(super) fn exists(args: &Args<'_, '_>) -> Result<bool> {
    let code = args.code(0)?;
    if code.result == ResultKind::Nodes {
        return args.ev.exists(code, args.focus);
    }
    Ok(!args.sequence(0)?.is_empty())
}

pub(super) fn head(args: &Args<'_, '_>) -> Result<Sequence> {
    Ok(args.sequence(0)?.first().map_or(Sequence::Empty, |item| Sequence::One(item.to_item())))
}

pub(super) fn tail(args: &Args<'_, '_>) -> Result<Sequence> {
    Ok(args.sequence(0)?.iter().skip(1).map(ItemRef::to_item).collect())
}

pub(super) fn index_of(args: &Args<'_, '_>) -> Result<Sequence> {
    let collation = collation(args, 2)?;
    let values = args.atomized(0)?;
    let Some(wanted) = args.atomic(1)? else { return Ok(Sequence::Empty) };
    let is_nan = |value: &Atomic| value.is_numeric() && value.to_number(false).is_nan();
    let found =
        values.iter().enumerate().filter(|(_, value)| !is_nan(value) && atomic_equal(value, &wanted, &collation));
    Ok(found.map(|(index, _)| Item::from(index as i64 + 1)).collect())
}

pub(super) fn subsequence(args: &Args<'_, '_>) -> Result<Sequence> {
    let values = args.sequence(0)?;
    let start = number::round(args.number(1)?);
    let end = if args.len() > 2 { start + number::round(args.number(2)?) } else { f64::INFINITY };
    let inside = |index: usize| {
        let position = index as f64 + 1.0;
        position >= start && position < end
    };
    Ok(values.iter().enumerate().filter(|(index, _)| inside(*index)).map(|(_, item)| item.to_item()).collect())
}

pub(super) fn reverse(args: &Args<'_, '_>) -> Result<Sequence> {
    Ok(args.sequence(0)?.iter().rev().map(ItemRef::to_item).collect())
}

pub(super) fn insert_before(args: &Args<'_, '_>) -> Result<Sequence> {
    let values = args.sequence(0)?;
    let position = args.integer(1)?.max(1) as usize - 1;
    let inserted = args.sequence(2)?;
    let before = values.iter().take(position);
    let after = values.iter().skip(position);
    Ok(before.chain(inserted.iter()).chain(after).map(ItemRef::to_item).collect())
}

pub(super) fn remove(args: &Args<'_, '_>) -> Result<Sequence> {
    let values = args.sequence(0)?;
    let position = args.integer(1)?;
    let kept = values.iter().enumerate().filter(|(index, _)| *index as i64 + 1 != position);
    Ok(kept.map(|(_, item)| item.to_item()).collect())
}

pub(super) fn unordered(args: &Args<'_, '_>) -> Result<Sequence> {
    args.sequence(0)
}

pub(super) fn data(args: &Args<'_, '_>) -> Result<Sequence> {
    if args.len() == 0 {
        let item = crate::eval::context_item(args.focus)?;
        return Ok(Sequence::from(args.ev.atomize(item)));
    }
    Ok(args.atomized(0)?.into_iter().map(Item::Atomic).collect())
}

pub(super) fn distinct_values(args: &Args<'_, '_>) -> Result<Sequence> {
    let collation = collation(args, 1)?;
    let mut known: HashSet<AtomicKey> = HashSet::new();
    let mut distinct = Vec::new();
    for value in args.atomized(0)? {
        if known.insert(AtomicKey::collated(&value, &collation)) {
            distinct.push(Item::Atomic(value));
        }
    }
    Ok(Sequence::from_items(distinct))
}

pub(super) fn zero_or_one(args: &Args<'_, '_>) -> Result<Sequence> {
    let value = args.sequence(0)?;
    if value.len() <= 1 { Ok(value) } else { Err(XPathError::new("FORG0003", "more than one item")) }
}

pub(super) fn one_or_more(args: &Args<'_, '_>) -> Result<Sequence> {
    let value = args.sequence(0)?;
    if value.is_empty() { Err(XPathError::new("FORG0004", "no item")) } else { Ok(value) }
}

pub(super) fn exactly_one(args: &Args<'_, '_>) -> Result<Sequence> {
    let value = args.sequence(0)?;
    if value.len() == 1 { Ok(value) } else { Err(XPathError::new("FORG0005", "not exactly one item")) }
}

pub(super) fn deep_equal(args: &Args<'_, '_>) -> Result<bool> {
    let collation = collation(args, 2)?;
    let (left, right) = (args.sequence(0)?, args.sequence(1)?);
    if left.len() != right.len() {
        return Ok(false);
    }
    for (a, b) in left.iter().zip(right.iter()) {
        args.ev.charge(1)?;
        let equal = match (a, b) {
            (ItemRef::Node(a), ItemRef::Node(b)) => nodes_equal(args.ev.session, a, b, &collation)?,
            (ItemRef::Atomic(a), ItemRef::Atomic(b)) => atomic_equal(a, b, &collation),
            _ => false,
        };
        if !equal {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether two trees are the same but for comments, processing instructions and prefixes. Walks both at once by index,
/// so depth costs nothing.
fn nodes_equal(session: &Session, a: Node, b: Node, collation: &Collation) -> Result<bool> {
    let mut pending = vec![(a, b)];
    while let Some((a, b)) = pending.pop() {
        session.charge(1)?;
        let (left, right) = (session.document_of(a), session.document_of(b));
        let kind = left.kind(a.id);
        if kind != right.kind(b.id) {
            return Ok(false);
        }
        if !matches!(kind, NodeKind::Document | NodeKind::Text | NodeKind::Comment) {
            let (name, other) = (left.name(a.id), right.name(b.id));
            if name.local != other.local || name.namespace != other.namespace {
                return Ok(false);
            }
        }
        if !matches!(kind, NodeKind::Document | NodeKind::Element) {
            if collation.compare(left.text(a.id), right.text(b.id)).is_ne() {
                return Ok(false);
            }
            continue;
        }
        if kind == NodeKind::Element {
            let attributes = left.attributes(a.id).count();
            session.charge(attributes as u64 * attributes as u64)?;
            let same = left.attributes(a.id).all(|id| {
                let name = left.name(id);
                let other = right.attribute(b.id, name.namespace, name.local);
                other.is_some_and(|other| collation.compare(other, left.text(id)).is_eq())
            });
            if !same || right.attributes(b.id).count() != attributes {
                return Ok(false);
            }
        }
        let content = |kind: NodeKind| !matches!(kind, NodeKind::Comment | NodeKind::ProcessingInstruction);
        let mut lefts = left.children(a.id).filter(|id| content(left.kind(*id)));
        let mut rights = right.children(b.id).filter(|id| content(right.kind(*id)));
        loop {
            match (lefts.next(), rights.next()) {
                (None, None) => break,
                (Some(x), Some(y)) => pending.push((Node { id: x, ..a }, Node { id: y, ..b })),
                _ => return Ok(false),
            }
        }
    }
    Ok(true)
}
