//! Segments applied to a document.

use serde_json::Value;

use super::ast::{Segment, Selector};
use super::condition::Scope;

/// How a node was reached. `()` when it is not needed, at no cost.
pub(super) trait Trail: Clone {
    fn member(&self, name: &str) -> Self;
    fn element(&self, index: usize) -> Self;
}

impl Trail for () {
    fn member(&self, _name: &str) {}
    fn element(&self, _index: usize) {}
}

/// A node and how it was reached.
pub(super) type Node<'d, T> = (&'d Value, T);

/// The nodes the segments lead to, in document order per segment.
pub(super) fn select<'d, T: Trail>(segments: &[Segment], start: Node<'d, T>, scope: &Scope<'d>) -> Vec<Node<'d, T>> {
    let mut nodes = vec![start];
    for segment in segments {
        let mut next = Vec::new();
        for node in &nodes {
            penstock_budget::step();
            match segment {
                Segment::Child(selectors) => children(selectors, node, scope, &mut next),
                Segment::Descendant(selectors) => descendants(selectors, node, scope, &mut next),
            }
        }
        nodes = next;
    }
    nodes
}

/// The one node a path of names and indexes leads to, without any list.
pub(super) fn follow<'d>(segments: &[Segment], start: &'d Value) -> Option<&'d Value> {
    let mut node = start;
    for segment in segments {
        let Segment::Child(selectors) = segment else { return None };
        node = match selectors.as_slice() {
            [Selector::Name(name)] => node.as_object()?.get(&**name)?,
            [Selector::Index(index)] => {
                let elements = node.as_array()?;
                elements.get(position(*index, elements.len())?)?
            }
            _ => return None,
        };
    }
    Some(node)
}

fn descendants<'d, T: Trail>(
    selectors: &[Selector],
    node: &Node<'d, T>,
    scope: &Scope<'d>,
    found: &mut Vec<Node<'d, T>>,
) {
    // An explicit stack: documents may be built deeper than any parser lets them in.
    let mut pending = vec![node.clone()];
    while let Some(node) = pending.pop() {
        penstock_budget::step();
        children(selectors, &node, scope, found);
        let first = pending.len();
        match node.0 {
            Value::Array(elements) => {
                pending.extend(elements.iter().enumerate().map(|(index, value)| (value, node.1.element(index))));
            }
            Value::Object(members) => {
                pending.extend(members.iter().map(|(name, value)| (value, node.1.member(name))));
            }
            _ => {}
        }
        pending[first..].reverse();
    }
}

fn children<'d, T: Trail>(selectors: &[Selector], node: &Node<'d, T>, scope: &Scope<'d>, found: &mut Vec<Node<'d, T>>) {
    for selector in selectors {
        match (selector, node.0) {
            (Selector::Name(name), Value::Object(members)) => {
                found.extend(members.get(&**name).map(|value| (value, node.1.member(name))));
            }
            (Selector::Index(index), Value::Array(elements)) => {
                if let Some(index) = position(*index, elements.len()) {
                    found.push((&elements[index], node.1.element(index)));
                }
            }
            (Selector::Slice { start, end, step }, Value::Array(elements)) => {
                let indexes = slice(*start, *end, *step, elements.len());
                found.extend(indexes.into_iter().map(|index| (&elements[index], node.1.element(index))));
            }
            (Selector::Wildcard, _) => every_child(node, |_| true, found),
            (Selector::Filter(filter), _) => {
                every_child(node, |child| filter.0.holds(&scope.at(child)), found);
            }
            _ => {}
        }
    }
}

fn every_child<'d, T: Trail>(
    node: &Node<'d, T>,
    mut wanted: impl FnMut(&'d Value) -> bool,
    found: &mut Vec<Node<'d, T>>,
) {
    match node.0 {
        Value::Array(elements) => {
            for (index, value) in elements.iter().enumerate() {
                penstock_budget::step();
                if wanted(value) {
                    found.push((value, node.1.element(index)));
                }
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                penstock_budget::step();
                if wanted(value) {
                    found.push((value, node.1.member(name)));
                }
            }
        }
        _ => {}
    }
}

/// An index counted from either end.
fn position(index: i64, length: usize) -> Option<usize> {
    let index = if index < 0 { index.checked_add_unsigned(length as u64)? } else { index };
    usize::try_from(index).ok().filter(|index| *index < length)
}

/// RFC 9535 §2.3.4.2.2.
fn slice(start: Option<i64>, end: Option<i64>, step: i64, length: usize) -> Vec<usize> {
    let length = length as i64;
    let normal = |index: i64| if index < 0 { index + length } else { index };
    let mut indexes = Vec::new();
    if step > 0 {
        let upper = normal(end.unwrap_or(length)).clamp(0, length);
        let mut index = normal(start.unwrap_or(0)).clamp(0, length);
        while index < upper {
            indexes.push(index as usize);
            index = index.saturating_add(step);
        }
    } else if step < 0 {
        let upper = start.map_or(length - 1, normal).clamp(-1, length - 1);
        let lower = end.map_or(-1, normal).clamp(-1, length - 1);
        let mut index = upper;
        while lower < index {
            indexes.push(index as usize);
            index = index.saturating_add(step);
        }
    }
    indexes
}
