//! Node tests and predicates.

use penstock_xml::{Document, NameId, NodeId, NodeKind};

use super::{Evaluator, Flow, Focus, Sink};
use crate::code::{Code, Predicate, StepCode, Test, TestName};
use crate::error::Result;
use crate::session::PooledName;
use crate::value::{Item, ItemRef, Node, Sequence};

impl<'a> Evaluator<'a> {
    #[inline]
    pub(super) fn name_in(&self, document: u32, name: &TestName) -> Option<NameId> {
        let name = PooledName { index: name.index, namespace: &name.namespace, local: &name.local };
        self.session.name_in(document, &self.program.pool, &name)
    }

    /// Whether a node passes a test.
    pub(crate) fn passes(&self, document: &Document, index: u32, test: &Test, id: NodeId) -> bool {
        let kind = document.kind(id);
        match test {
            Test::Element(name) => kind == NodeKind::Element && self.name_in(index, name) == Some(document.name_id(id)),
            Test::Attribute(name) => {
                kind == NodeKind::Attribute && self.name_in(index, name) == Some(document.name_id(id))
            }
            _ => matches_test(document, test, id),
        }
    }

    /// A step with few predicates that need only the position, which is counted along the way. The first candidate
    /// that comes too late ends the scan.
    pub(super) fn step_with_predicates(
        &self,
        step: &'a StepCode,
        node: Node,
        too_late: &dyn Fn(Node) -> bool,
        sink: Sink<'_>,
    ) -> Result<Flow> {
        let mut positions = [0usize; MAX_COUNTED];
        // Nothing passes `[3]` a second time, so the scan can end there.
        let ends = matches!(step.predicates.first(), Some(Predicate::Position(_)));
        let mut flow = Flow::Continue;
        self.scan(step.axis, &step.test, node, &mut |candidate| {
            if too_late(candidate) {
                return Ok(Flow::Stop);
            }
            for (index, predicate) in step.predicates.iter().enumerate() {
                positions[index] += 1;
                if !self.holds(predicate, step, candidate, positions[index], 0)? {
                    let over = ends && index > 0;
                    return Ok(if over { Flow::Stop } else { Flow::Continue });
                }
            }
            flow = sink(candidate)?;
            Ok(if ends { Flow::Stop } else { flow })
        })?;
        Ok(flow)
    }

    /// A step with `last()` in a predicate: candidates are collected, then thinned out predicate by predicate.
    pub(super) fn step_with_size(&self, step: &'a StepCode, node: Node, sink: Sink<'_>) -> Result<Flow> {
        let mut candidates = Vec::new();
        self.scan(step.axis, &step.test, node, &mut |candidate| {
            candidates.push(candidate);
            Ok(Flow::Continue)
        })?;
        for predicate in &step.predicates {
            if matches!(predicate, Predicate::Last) {
                candidates = candidates.pop().into_iter().collect();
                continue;
            }
            let size = candidates.len();
            let mut kept = Vec::with_capacity(size);
            for (index, candidate) in candidates.iter().enumerate() {
                if self.holds(predicate, step, *candidate, index + 1, size)? {
                    kept.push(*candidate);
                }
            }
            candidates = kept;
        }
        for candidate in candidates {
            if sink(candidate)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }

    pub(crate) fn holds(
        &self,
        predicate: &'a Predicate,
        step: &'a StepCode,
        node: Node,
        position: usize,
        size: usize,
    ) -> Result<bool> {
        match predicate {
            Predicate::SiblingPosition(wanted) => Ok(self.has_sibling_position(&step.test, node, *wanted)),
            Predicate::SiblingLast => Ok(self.is_last_sibling(&step.test, node)),
            _ => self.item_holds(predicate, ItemRef::Node(node), position, size),
        }
    }

    /// A predicate that does not depend on a step.
    pub(super) fn item_holds(
        &self,
        predicate: &'a Predicate,
        item: ItemRef<'_>,
        position: usize,
        size: usize,
    ) -> Result<bool> {
        let focus = Focus { item: Some(item), position, size };
        match predicate {
            Predicate::Position(wanted) => Ok(position == *wanted),
            Predicate::Last => Ok(position == size),
            Predicate::SiblingPosition(_) | Predicate::SiblingLast => Ok(false),
            Predicate::Condition(code, _) => self.boolean(code, &focus),
            Predicate::Either(code, _) | Predicate::Independent(code) => self.position_or_condition(code, &focus),
        }
    }

    /// The item at a position, or all of the items or none by a condition, that does not depend on the items.
    fn at_index(&self, sequence: Sequence, code: &'a Code) -> Result<Sequence> {
        let value = self.eval(code, &Focus { item: sequence.first(), position: 1, size: sequence.len() })?;
        if let Sequence::One(Item::Atomic(atomic)) = &value
            && atomic.is_numeric()
        {
            let position = atomic.to_number(self.compat());
            let exact = position >= 1.0 && position.fract() == 0.0 && position <= sequence.len() as f64;
            return Ok(if exact { nth_item(&sequence, position as usize) } else { Sequence::Empty });
        }
        let holds = self.effective_boolean(&value).map_err(|error| error.at(code.span))?;
        Ok(if holds { sequence } else { Sequence::Empty })
    }

    fn position_or_condition(&self, code: &'a Code, focus: &Focus<'_>) -> Result<bool> {
        let value = self.eval(code, focus)?;
        if let Sequence::One(Item::Atomic(atomic)) = &value
            && atomic.is_numeric()
        {
            return Ok(atomic.to_number(self.compat()) == focus.position as f64);
        }
        self.effective_boolean(&value).map_err(|error| error.at(code.span))
    }

    /// Whether a node is the `wanted`th among its siblings that pass the test. Looking backwards stops as soon as
    /// there are too many, so a scan over all siblings costs few steps for each.
    fn has_sibling_position(&self, test: &'a Test, node: Node, wanted: usize) -> bool {
        let document = self.session.document(node.document);
        let mut position = 1;
        let mut at = node.id;
        while let Some(previous) = document.previous_sibling(at) {
            if self.passes(document, node.document, test, previous) {
                position += 1;
                if position > wanted {
                    return false;
                }
            }
            at = previous;
        }
        position == wanted
    }

    fn is_last_sibling(&self, test: &'a Test, node: Node) -> bool {
        let document = self.session.document(node.document);
        let following = std::iter::successors(document.next_sibling(node.id), |id| document.next_sibling(*id));
        !following.into_iter().any(|id| self.passes(document, node.document, test, id))
    }

    /// The items that pass all predicates, which apply one after the other.
    pub(super) fn filter(&self, base: Sequence, predicates: &'a [Predicate]) -> Result<Sequence> {
        let mut sequence = base;
        for predicate in predicates {
            let size = sequence.len();
            sequence = match predicate {
                Predicate::Position(wanted) => nth_item(&sequence, *wanted),
                Predicate::Last => nth_item(&sequence, size),
                Predicate::Independent(code) if size > 0 => self.at_index(sequence, code)?,
                _ => {
                    let mut kept = Vec::new();
                    for (index, item) in sequence.iter().enumerate() {
                        self.charge(1)?;
                        if self.item_holds(predicate, item, index + 1, size)? {
                            kept.push(item.to_item());
                        }
                    }
                    match kept.len() == size {
                        true => sequence,
                        false => from_filtered(kept),
                    }
                }
            };
        }
        Ok(sequence)
    }
}

/// Predicates on one step whose positions are counted without memory; more than that is possible, only slower.
pub(super) const MAX_COUNTED: usize = 4;

fn nth_item(sequence: &Sequence, position: usize) -> Sequence {
    match position.checked_sub(1).and_then(|index| sequence.get(index)) {
        Some(item) => Sequence::One(item.to_item()),
        None => Sequence::Empty,
    }
}

/// Keeps node sequences in their compact form.
fn from_filtered(items: Vec<Item>) -> Sequence {
    let sequence = Sequence::from_items(items);
    match sequence.nodes() {
        Some(nodes) if nodes.len() > 1 => Sequence::from_nodes(&nodes),
        _ => sequence,
    }
}

/// Tests on kind and text, which need no table of names.
pub(crate) fn matches_test(document: &Document, test: &Test, id: NodeId) -> bool {
    let kind = document.kind(id);
    let element = kind == NodeKind::Element;
    let attribute = kind == NodeKind::Attribute;
    match test {
        Test::Any => true,
        Test::AnyElement => element,
        Test::AnyAttribute => attribute,
        Test::AnyNamespace => kind == NodeKind::Namespace,
        Test::Element(name) => {
            element && document.local_name(id) == &*name.local && document.namespace(id) == &*name.namespace
        }
        Test::Attribute(name) => {
            attribute && document.local_name(id) == &*name.local && document.namespace(id) == &*name.namespace
        }
        Test::NamespaceNode(prefix) => kind == NodeKind::Namespace && document.local_name(id) == &**prefix,
        Test::ElementInNamespace(uri) => element && document.namespace(id) == &**uri,
        Test::AttributeInNamespace(uri) => attribute && document.namespace(id) == &**uri,
        Test::ElementLocal(local) => element && document.local_name(id) == &**local,
        Test::AttributeLocal(local) => attribute && document.local_name(id) == &**local,
        Test::Text => kind == NodeKind::Text,
        Test::Comment => kind == NodeKind::Comment,
        Test::ProcessingInstruction(None) => kind == NodeKind::ProcessingInstruction,
        Test::ProcessingInstruction(Some(target)) => {
            kind == NodeKind::ProcessingInstruction && document.local_name(id) == &**target
        }
        Test::Document => kind == NodeKind::Document,
        Test::DocumentOf(inner) => {
            let only = (kind == NodeKind::Document).then(|| super::only_element(document)).flatten();
            only.is_some_and(|root| matches_test(document, inner, root))
        }
        Test::Nothing => false,
    }
}
