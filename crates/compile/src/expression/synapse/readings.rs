//! Two readings of comparisons and logic without brackets: Micro Integrator's, and the standard one.

use std::sync::Arc;

use super::ast::{Node, Operator};
use super::item::Item;

/// Comparisons split the list first; between them logic groups from the right, `and` and `or` alike.
pub(super) fn micro_integrator_reading(operands: Vec<Arc<Node>>, operators: &[Operator]) -> Arc<Node> {
    split(operands, operators, |operator| !operator.is_logical(), from_the_right)
}

/// `or` splits first, then `and`, then comparisons.
pub(super) fn usual_reading(operands: Vec<Arc<Node>>, operators: &[Operator]) -> Arc<Node> {
    split(
        operands,
        operators,
        |operator| operator == Operator::Or,
        |operands, operators| split(operands, operators, |operator| operator == Operator::And, from_the_left),
    )
}

/// Joins from the left the groups between the operators that split.
fn split(
    operands: Vec<Arc<Node>>,
    operators: &[Operator],
    splits: impl Fn(Operator) -> bool,
    inner: impl Fn(Vec<Arc<Node>>, &[Operator]) -> Arc<Node>,
) -> Arc<Node> {
    let mut operands = operands.into_iter();
    let mut groups = Vec::new();
    let mut between = Vec::new();
    let mut start = 0;
    for (index, operator) in operators.iter().enumerate() {
        if splits(*operator) {
            groups.push(inner(operands.by_ref().take(index - start + 1).collect(), &operators[start..index]));
            between.push(*operator);
            start = index + 1;
        }
    }
    groups.push(inner(operands.collect(), &operators[start..]));
    from_the_left(groups, &between)
}

pub(super) fn from_the_left(operands: Vec<Arc<Node>>, operators: &[Operator]) -> Arc<Node> {
    let mut operands = operands.into_iter();
    let first = operands.next().unwrap_or_else(|| Arc::new(Node::Literal(Item::Null)));
    operands.zip(operators).fold(first, |left, (right, operator)| Arc::new(Node::Binary(left, *operator, right)))
}

pub(super) fn from_the_right(operands: Vec<Arc<Node>>, operators: &[Operator]) -> Arc<Node> {
    let mut operands = operands.into_iter().rev();
    let last = operands.next().unwrap_or_else(|| Arc::new(Node::Literal(Item::Null)));
    let pairs = operands.zip(operators.iter().rev());
    pairs.fold(last, |right, (left, operator)| Arc::new(Node::Binary(left, *operator, right)))
}

/// The node itself; it is new, so it is shared only if both readings are kept.
pub(super) fn owned(node: Arc<Node>) -> Node {
    Arc::try_unwrap(node).unwrap_or_else(Node::Shared)
}

/// Whether it compares the order of something that is never a number.
pub(super) fn fails_always(node: &Node) -> bool {
    let Node::Binary(left, operator, right) = node else { return false };
    let boolean = |node: &Node| {
        matches!(node, Node::Binary(_, operator, _) if operator.is_logical() || operator.is_relational()
            || matches!(operator, Operator::Equal | Operator::NotEqual))
    };
    (operator.is_relational() && (boolean(left) || boolean(right))) || fails_always(left) || fails_always(right)
}
