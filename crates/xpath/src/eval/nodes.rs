//! Expressions that give nodes: one by one, only the first, only how many, or all as a sequence.

use penstock_xml::NodeId;

use super::walk::{nodes_of, require_node, sort_nodes};
use super::{Evaluator, Flow, Focus, Sink, gives_nodes};
use crate::ast::Axis;
use crate::code::{Code, Op, PathCode, Predicate, StartCode, StepCode, Test};
use crate::error::{Result, XPathError, type_error};
use crate::session::check_items;
use crate::value::{Item, ItemRef, Node, Sequence};

impl<'a> Evaluator<'a> {
    /// Hands on the nodes of an expression in the order of its value.
    pub(crate) fn each_node(&self, code: &'a Code, focus: &Focus<'_>, sink: Sink<'_>) -> Result<Flow> {
        if let Op::Path(path) = &code.op {
            return self.path_in_order(path, focus, sink).map_err(|error| error.at(code.span));
        }
        let value = self.eval(code, focus)?;
        self.charge(value.len())?;
        for item in value.iter() {
            if sink(require_node(item, code)?)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }

    /// Hands on the nodes in any order, possibly repeated.
    pub(crate) fn any_node(&self, code: &'a Code, focus: &Focus<'_>, sink: Sink<'_>) -> Result<Flow> {
        match &code.op {
            Op::Path(path) if let Some((step, node)) = single_step(path, focus) => {
                self.scan(step.axis, &step.test, node, sink)
            }
            Op::Path(path) => self.path_in_any_order(path, focus, sink).map_err(|error| error.at(code.span)),
            Op::Union(operands) => {
                for operand in operands {
                    if self.any_node(operand, focus, sink)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
                Ok(Flow::Continue)
            }
            _ => self.each_node(code, focus, sink),
        }
    }

    /// The first node in document order of an expression known to give nodes.
    pub(crate) fn first_node(&self, code: &'a Code, focus: &Focus<'_>) -> Result<Option<Node>> {
        let mut first: Option<Node> = None;
        match &code.op {
            Op::Path(path) if let Some((step, node)) = single_step(path, focus) => {
                return self.first_of_step(step, node);
            }
            Op::Path(path) if !is_ordered(path) => {
                if path.downward {
                    return self.first_below(path, focus).map_err(|error| error.at(code.span));
                }
                self.any_node(code, focus, &mut |node| {
                    first = Some(first.map_or(node, |known| known.min(node)));
                    Ok(Flow::Continue)
                })?;
            }
            Op::Union(_) => {
                self.any_node(code, focus, &mut |node| {
                    first = Some(first.map_or(node, |known| known.min(node)));
                    Ok(Flow::Continue)
                })?;
            }
            Op::Filter(parts) if gives_nodes(&parts.0) && matches!(*parts.1, [Predicate::Position(_)]) => {
                let [Predicate::Position(wanted)] = *parts.1 else { return Ok(None) };
                let mut seen = 0;
                self.each_node(&parts.0, focus, &mut |node| {
                    seen += 1;
                    if seen < wanted {
                        return Ok(Flow::Continue);
                    }
                    first = Some(node);
                    Ok(Flow::Stop)
                })?;
            }
            _ => {
                self.each_node(code, focus, &mut |node| {
                    first = Some(node);
                    Ok(Flow::Stop)
                })?;
            }
        }
        Ok(first)
    }

    /// The first node of `name` and `@name`, without any of what longer paths need.
    fn first_of_step(&self, step: &'a StepCode, node: Node) -> Result<Option<Node>> {
        let document = self.session.document(node.document);
        let found = match (&step.test, step.axis) {
            (Test::Element(name), Axis::Child) => match self.name_in(node.document, name) {
                Some(wanted) => {
                    let named = |id: &NodeId| document.is_element(*id) && document.name_id(*id) == wanted;
                    document.children(node.id).find(named)
                }
                None => None,
            },
            (Test::Attribute(name), Axis::Attribute) if document.is_element(node.id) => {
                match self.name_in(node.document, name) {
                    Some(wanted) => document.attributes(node.id).find(|id| document.name_id(*id) == wanted),
                    None => None,
                }
            }
            _ => {
                let mut first = None;
                self.scan(step.axis, &step.test, node, &mut |node| {
                    first = Some(node);
                    Ok(Flow::Stop)
                })?;
                return Ok(first);
            }
        };
        self.charge(1)?;
        Ok(found.map(|id| Node { id, ..node }))
    }

    /// Whether an expression known to give nodes gives any.
    pub(crate) fn exists(&self, code: &'a Code, focus: &Focus<'_>) -> Result<bool> {
        if let Op::Path(path) = &code.op
            && let Some((step, node)) = single_step(path, focus)
        {
            return self.first_of_step(step, node).map(|found| found.is_some());
        }
        let mut found = false;
        self.any_node(code, focus, &mut |_| {
            found = true;
            Ok(Flow::Stop)
        })?;
        Ok(found)
    }

    /// How many nodes a path leads to.
    pub(crate) fn count(&self, code: &'a Code, focus: &Focus<'_>) -> Result<usize> {
        if !matches!(code.op, Op::Path(_)) {
            return Ok(self.eval(code, focus)?.len());
        }
        let mut count = 0;
        self.each_node(code, focus, &mut |_| {
            count += 1;
            Ok(Flow::Continue)
        })?;
        Ok(count)
    }

    /// The value of an expression that gives nodes, as a sequence.
    pub(super) fn node_expression(&self, code: &'a Code, focus: &Focus<'_>) -> Result<Sequence> {
        match &code.op {
            Op::Path(path) => {
                let mut found = Vec::new();
                self.path_in_order(path, focus, &mut |node| {
                    found.push(node);
                    Ok(Flow::Continue)
                })?;
                Ok(Sequence::from_nodes(&found))
            }
            Op::Filter(parts) => {
                if gives_nodes(&parts.0) && matches!(*parts.1, [Predicate::Position(_)]) {
                    return Ok(self.first_node(code, focus)?.map_or(Sequence::Empty, Sequence::from));
                }
                let base = self.eval(&parts.0, focus)?;
                self.filter(base, &parts.1)
            }
            Op::Slash(pair) => self.slash(pair, focus),
            Op::Union(operands) => {
                let mut all = Vec::new();
                for operand in operands {
                    self.collect_nodes(operand, focus, &mut all)?;
                    check_items(all.len())?;
                }
                sort_nodes(&mut all);
                Ok(Sequence::from_nodes(&all))
            }
            Op::Intersect(pair) => self.set_operation(pair, focus, true),
            Op::Except(pair) => self.set_operation(pair, focus, false),
            _ => Err(type_error("not an expression that gives nodes")),
        }
    }

    /// Appends the nodes to a vector.
    pub(crate) fn collect_nodes(&self, code: &'a Code, focus: &Focus<'_>, into: &mut Vec<Node>) -> Result<()> {
        self.each_node(code, focus, &mut |node| {
            into.push(node);
            Ok(Flow::Continue)
        })?;
        Ok(())
    }

    fn set_operation(&self, pair: &'a (Code, Code), focus: &Focus<'_>, keep_common: bool) -> Result<Sequence> {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        self.collect_nodes(&pair.0, focus, &mut left)?;
        self.collect_nodes(&pair.1, focus, &mut right)?;
        sort_nodes(&mut left);
        sort_nodes(&mut right);
        left.retain(|node| right.binary_search(node).is_ok() == keep_common);
        Ok(Sequence::from_nodes(&left))
    }

    /// `a/b` where `b` is any expression: nodes are put in document order, atomic values stay as they come.
    fn slash(&self, pair: &'a (Code, Code), focus: &Focus<'_>) -> Result<Sequence> {
        let left = self.eval(&pair.0, focus)?;
        let left_nodes = nodes_of(&left, &pair.0)?;
        let mut items: Vec<Item> = Vec::new();
        for (index, node) in left_nodes.iter().enumerate() {
            let value = self.eval(&pair.1, &Focus::node(*node, index + 1, left_nodes.len()))?;
            self.charge(1 + value.len())?;
            value.append_to(&mut items);
            check_items(items.len())?;
        }
        let nodes = items.iter().filter(|item| matches!(item, Item::Node(_))).count();
        if nodes == 0 {
            return Ok(Sequence::from_items(items));
        }
        if nodes < items.len() {
            return Err(XPathError::new("XPTY0018", "a path cannot mix nodes and atomic values").at(pair.1.span));
        }
        let mut found: Vec<Node> = items
            .iter()
            .filter_map(|item| match item.as_ref() {
                ItemRef::Node(node) => Some(node),
                ItemRef::Atomic(_) => None,
            })
            .collect();
        sort_nodes(&mut found);
        Ok(Sequence::from_nodes(&found))
    }
}

/// The only step of a path from the context node along a forward axis, if it has no predicates; and that node.
#[inline]
fn single_step<'p>(path: &'p PathCode, focus: &Focus<'_>) -> Option<(&'p StepCode, Node)> {
    match (&path.start, &*path.steps, focus.item) {
        (StartCode::Context, [step], Some(ItemRef::Node(node)))
            if step.predicates.is_empty() && path.ordered_from_one =>
        {
            Some((step, node))
        }
        _ => None,
    }
}

/// Whether the first node a walk meets is the first in document order.
fn is_ordered(path: &PathCode) -> bool {
    match path.start {
        StartCode::Context | StartCode::Root => path.ordered_from_one,
        // `each_node` puts them in order when it has to.
        StartCode::Code(_) => true,
    }
}
