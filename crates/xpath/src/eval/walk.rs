//! Walking steps depth first: each node found is handed on at once, nothing is collected that need not be.

use std::cell::Cell;

use penstock_xml::{Document, NodeId, NodeKind};

use super::predicates::MAX_COUNTED;
use super::{Evaluator, Flow, Focus, Sink, context_node};
use crate::ast::Axis;
use crate::code::{Code, PathCode, Predicate, StartCode, StepCode, Test};
use crate::error::{Result, XPathError};
use crate::session::{Session, check_items};
use crate::value::{ItemRef, Node, Sequence};

/// Nodes that a scan for a name passes over at the price of one visited otherwise.
const NODES_PER_FUEL: u64 = 8;

impl<'a> Evaluator<'a> {
    /// The nodes of a path in document order, each once.
    pub(super) fn path_in_order(&self, path: &'a PathCode, focus: &Focus<'_>, sink: Sink<'_>) -> Result<Flow> {
        match &path.start {
            StartCode::Context => self.walk_from_one(path, context_node(focus)?, sink),
            StartCode::Root => self.walk_from_one(path, self.root(focus)?, sink),
            StartCode::Code(code) => match self.eval(code, focus)? {
                Sequence::Empty => Ok(Flow::Continue),
                Sequence::One(item) => self.walk_from_one(path, require_node(item.as_ref(), code)?, sink),
                many => self.walk_from_many(path, &nodes_of(&many, code)?, sink),
            },
        }
    }

    fn walk_from_one(&self, path: &'a PathCode, start: Node, sink: Sink<'_>) -> Result<Flow> {
        if path.ordered_from_one {
            return self.walk(&path.steps, start, sink);
        }
        let mut found = Vec::new();
        self.walk(&path.steps, start, &mut |node| {
            found.push(node);
            check_items(found.len())?;
            Ok(Flow::Continue)
        })?;
        hand_on_sorted(found, sink)
    }

    fn walk_from_many(&self, path: &'a PathCode, starts: &[Node], sink: Sink<'_>) -> Result<Flow> {
        if path.ordered_from_many && starts.is_sorted_by(|a, b| a < b) {
            for start in starts {
                if self.walk(&path.steps, *start, sink)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            return Ok(Flow::Continue);
        }
        let mut found = Vec::new();
        for start in starts {
            self.walk(&path.steps, *start, &mut |node| {
                found.push(node);
                check_items(found.len())?;
                Ok(Flow::Continue)
            })?;
        }
        hand_on_sorted(found, sink)
    }

    /// The nodes of a path in any order, possibly more than once: enough to know whether some node is such and such.
    pub(super) fn path_in_any_order(&self, path: &'a PathCode, focus: &Focus<'_>, sink: Sink<'_>) -> Result<Flow> {
        match &path.start {
            StartCode::Context => self.walk(&path.steps, context_node(focus)?, sink),
            StartCode::Root => self.walk(&path.steps, self.root(focus)?, sink),
            StartCode::Code(code) => {
                for item in self.eval(code, focus)?.iter() {
                    if self.walk(&path.steps, require_node(item, code)?, sink)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
                Ok(Flow::Continue)
            }
        }
    }

    fn root(&self, focus: &Focus<'_>) -> Result<Node> {
        let node = context_node(focus)?;
        let document = self.session.document_of(node);
        let root = document.root_of(node.id);
        if root != Document::ROOT && !self.compat() {
            return Err(XPathError::new("XPDY0050", "the tree of the context node has no document node"));
        }
        Ok(Session::sibling(node, root))
    }

    /// The first node in document order of a path whose walk may meet others before it, when every step leads down.
    pub(super) fn first_below(&self, path: &'a PathCode, focus: &Focus<'_>) -> Result<Option<Node>> {
        let start = match &path.start {
            StartCode::Root => self.root(focus)?,
            _ => context_node(focus)?,
        };
        let best = Cell::new(None);
        self.walk_to_first(&path.steps, start, &best)?;
        Ok(best.get())
    }

    /// What lies at or below a node cannot come before it, so nodes after the best one need no look.
    fn walk_to_first(&self, steps: &'a [StepCode], node: Node, best: &Cell<Option<Node>>) -> Result<()> {
        let Some((step, rest)) = steps.split_first() else {
            best.set(Some(best.get().map_or(node, |known| known.min(node))));
            return Ok(());
        };
        let too_late = |next: Node| best.get().is_some_and(|best| next >= best);
        let mut go_on = |next: Node| {
            if too_late(next) {
                return Ok(Flow::Stop);
            }
            self.walk_to_first(rest, next, best)?;
            Ok(Flow::Continue)
        };
        if step.needs_size || step.predicates.len() > MAX_COUNTED {
            self.step(step, node, &mut go_on)?;
        } else {
            // Late candidates end the scan before their predicates are looked at.
            self.step_with_predicates(step, node, &too_late, &mut go_on)?;
        }
        Ok(())
    }

    fn walk(&self, steps: &'a [StepCode], node: Node, sink: Sink<'_>) -> Result<Flow> {
        match steps {
            [] => sink(node),
            [step] => self.step(step, node, sink),
            [step, rest @ ..] => self.step(step, node, &mut |next| self.walk(rest, next, sink)),
        }
    }

    /// The nodes one step leads to, in the order of its axis.
    pub(crate) fn step(&self, step: &'a StepCode, node: Node, sink: Sink<'_>) -> Result<Flow> {
        let result = match &*step.predicates {
            [] => self.scan(step.axis, &step.test, node, sink),
            [Predicate::Position(wanted)] => self.nth(step, node, *wanted, sink),
            predicates if step.needs_size || predicates.len() > MAX_COUNTED => self.step_with_size(step, node, sink),
            _ => self.step_with_predicates(step, node, &|_| false, sink),
        };
        result.map_err(|error| error.at(step.span))
    }

    fn nth(&self, step: &'a StepCode, node: Node, wanted: usize, sink: Sink<'_>) -> Result<Flow> {
        let mut seen = 0;
        let mut flow = Flow::Continue;
        self.scan(step.axis, &step.test, node, &mut |candidate| {
            seen += 1;
            if seen < wanted {
                return Ok(Flow::Continue);
            }
            flow = sink(candidate)?;
            Ok(Flow::Stop)
        })?;
        Ok(flow)
    }

    /// The nodes on an axis that pass a test.
    pub(crate) fn scan(&self, axis: Axis, test: &'a Test, node: Node, sink: Sink<'_>) -> Result<Flow> {
        let document = self.session.document(node.document);
        let mut visited = 1u64;
        let mut emit = |id: NodeId| sink(Node { document: node.document, id });
        let flow = match test {
            Test::Element(name) => {
                let Some(wanted) = self.name_in(node.document, name) else { return Ok(Flow::Continue) };
                if axis == Axis::Descendant {
                    self.session.charge(document.subtree(node.id).len() as u64 / NODES_PER_FUEL)?;
                    return each(document.descendants_named(node.id, wanted), &mut emit);
                }
                on_axis(document, axis, node.id, &mut |id| {
                    visited += 1;
                    if document.is_element(id) && document.name_id(id) == wanted {
                        emit(id)
                    } else {
                        Ok(Flow::Continue)
                    }
                })
            }
            Test::Attribute(name) => {
                let Some(wanted) = self.name_in(node.document, name) else { return Ok(Flow::Continue) };
                on_axis(document, axis, node.id, &mut |id| {
                    let found = document.name_id(id) == wanted && document.kind(id) == NodeKind::Attribute;
                    if found { emit(id) } else { Ok(Flow::Continue) }
                })
            }
            Test::Any => on_axis(document, axis, node.id, &mut |id| {
                visited += 1;
                emit(id)
            }),
            Test::AnyElement => on_axis(document, axis, node.id, &mut |id| {
                visited += 1;
                if document.is_element(id) { emit(id) } else { Ok(Flow::Continue) }
            }),
            _ => on_axis(document, axis, node.id, &mut |id| {
                visited += 1;
                if self.passes(document, node.document, test, id) { emit(id) } else { Ok(Flow::Continue) }
            }),
        };
        self.session.charge(visited)?;
        flow
    }
}

fn hand_on_sorted(mut found: Vec<Node>, sink: Sink<'_>) -> Result<Flow> {
    sort_nodes(&mut found);
    for node in found {
        if sink(node)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

/// Document order, each node once. Most sets are in order already.
pub(crate) fn sort_nodes(nodes: &mut Vec<Node>) {
    if !nodes.is_sorted_by(|a, b| a < b) {
        nodes.sort_unstable();
        nodes.dedup();
    }
}

pub(super) fn require_node(item: ItemRef<'_>, code: &Code) -> Result<Node> {
    match item {
        ItemRef::Node(node) => Ok(node),
        ItemRef::Atomic(atomic) => {
            let message = format!("steps need nodes, found a value of type {}", atomic.atomic_type().name());
            Err(XPathError::new("XPTY0019", message).at(code.span))
        }
    }
}

pub(super) fn nodes_of(sequence: &Sequence, code: &Code) -> Result<Vec<Node>> {
    sequence.iter().map(|item| require_node(item, code)).collect()
}

/// Visits an axis in its own order: reverse axes backwards.
fn on_axis(
    document: &Document,
    axis: Axis,
    id: NodeId,
    visit: &mut impl FnMut(NodeId) -> Result<Flow>,
) -> Result<Flow> {
    match axis {
        Axis::Child => each(document.children(id), visit),
        Axis::Descendant => each(document.descendants(id), visit),
        Axis::DescendantOrSelf => each(std::iter::once(id).chain(document.descendants(id)), visit),
        Axis::Attribute if document.is_element(id) => each(document.attributes(id), visit),
        Axis::Attribute => Ok(Flow::Continue),
        Axis::Myself => visit(id),
        Axis::Parent => each(document.parent(id).into_iter(), visit),
        Axis::Ancestor => each(document.ancestors(id), visit),
        Axis::AncestorOrSelf => each(std::iter::once(id).chain(document.ancestors(id)), visit),
        Axis::FollowingSibling => {
            each(std::iter::successors(document.next_sibling(id), |n| document.next_sibling(*n)), visit)
        }
        Axis::PrecedingSibling => {
            each(std::iter::successors(document.previous_sibling(id), |n| document.previous_sibling(*n)), visit)
        }
        Axis::Namespace if document.is_element(id) => each(document.in_scope_namespaces(id), visit),
        Axis::Namespace => Ok(Flow::Continue),
        Axis::Following => following(document, id, visit),
        Axis::Preceding => preceding(document, id, visit),
    }
}

#[inline]
fn each(nodes: impl Iterator<Item = NodeId>, visit: &mut impl FnMut(NodeId) -> Result<Flow>) -> Result<Flow> {
    for (count, id) in nodes.enumerate() {
        if count % NODES_AT_ONCE == NODES_AT_ONCE - 1 {
            penstock_budget::steps(NODES_AT_ONCE);
        }
        if visit(id)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::Continue)
}

/// Nodes that are visited between two pauses.
const NODES_AT_ONCE: usize = 256;

fn following(document: &Document, id: NodeId, visit: &mut impl FnMut(NodeId) -> Result<Flow>) -> Result<Flow> {
    let mut at = id;
    // What follows an attribute begins with the content of its element.
    if matches!(document.kind(id), NodeKind::Attribute | NodeKind::Namespace)
        && let Some(element) = document.parent(id)
    {
        if each(document.descendants(element), visit)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
        at = element;
    }
    loop {
        let mut sibling = document.next_sibling(at);
        while let Some(next) = sibling {
            if each(std::iter::once(next).chain(document.descendants(next)), visit)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
            sibling = document.next_sibling(next);
        }
        match document.parent(at) {
            Some(parent) => at = parent,
            None => return Ok(Flow::Continue),
        }
    }
}

fn preceding(document: &Document, id: NodeId, visit: &mut impl FnMut(NodeId) -> Result<Flow>) -> Result<Flow> {
    let mut at = match (document.kind(id), document.parent(id)) {
        (NodeKind::Attribute | NodeKind::Namespace, Some(element)) => element,
        _ => id,
    };
    let mut subtree = Vec::new();
    loop {
        let mut sibling = document.previous_sibling(at);
        while let Some(previous) = sibling {
            subtree.clear();
            subtree.push(previous);
            subtree.extend(document.descendants(previous));
            if each(subtree.iter().rev().copied(), visit)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
            sibling = document.previous_sibling(previous);
        }
        match document.parent(at) {
            Some(parent) => at = parent,
            None => return Ok(Flow::Continue),
        }
    }
}
