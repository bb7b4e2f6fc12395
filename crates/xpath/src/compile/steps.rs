//! Putting steps together: which are joined, and whether walking them gives document order.

use super::path::{is_positional, needs_size};
use crate::ast::Axis;
use crate::code::{Code, Op, PathCode, Predicate, StartCode, StepCode, Test};
use crate::error::Span;
use crate::static_context::ResultKind;

/// Finding out that a node is the nth among its siblings takes up to n steps back, so only for small n it is faster
/// than counting through the siblings once.
const MAX_SIBLING_POSITION: usize = 8;

/// Appends a step, joining it with the one before where that means one scan instead of two.
pub(super) fn push_step(steps: &mut Vec<StepCode>, mut step: StepCode) {
    let after_any_descendant = steps.last().is_some_and(|before| {
        before.axis == Axis::DescendantOrSelf && before.test == Test::Any && before.predicates.is_empty()
    });
    if after_any_descendant && matches!(step.axis, Axis::Child | Axis::Descendant | Axis::DescendantOrSelf) {
        let positional = step.predicates.iter().any(is_positional);
        let among_siblings = match step.predicates.first() {
            Some(Predicate::Position(position)) if *position <= MAX_SIBLING_POSITION => {
                Some(Predicate::SiblingPosition(*position))
            }
            Some(Predicate::Last) => Some(Predicate::SiblingLast),
            _ => None,
        };
        if !positional {
            steps.pop();
            step.axis = if step.axis == Axis::DescendantOrSelf { step.axis } else { Axis::Descendant };
        } else if let Some(among_siblings) = among_siblings
            && step.axis == Axis::Child
            && !step.predicates[1..].iter().any(is_positional)
        {
            steps.pop();
            step.axis = Axis::Descendant;
            step.predicates[0] = among_siblings;
            step.needs_size = step.predicates.iter().any(needs_size);
        }
    }
    // `a/.` is `a`.
    let stays = step.axis == Axis::Myself && step.test == Test::Any && step.predicates.is_empty();
    if !stays || steps.is_empty() {
        steps.push(step);
    }
}

pub(super) fn finish(start: StartCode, mut steps: Vec<StepCode>, span: Span) -> Code {
    if steps.is_empty() {
        match start {
            StartCode::Code(code) => return code,
            StartCode::Context => return Code { op: Op::ContextItem, span, result: ResultKind::Any },
            StartCode::Root => {}
        }
    }
    // From the root of the tree, `descendant-or-self::node()/@x` and the like keep their first step.
    steps.shrink_to_fit();
    let ordered_from_one = keeps_order(&steps, Order { single: true, peers: true });
    let downward = steps.iter().all(|step| {
        use Axis as A;
        matches!(step.axis, A::Child | A::Attribute | A::Descendant | A::DescendantOrSelf | A::Myself)
    });
    let ordered_from_many = keeps_order(&steps, Order { single: false, peers: false });
    let path = PathCode { start, steps: steps.into(), ordered_from_one, ordered_from_many, downward };
    Code { op: Op::Path(Box::new(path)), span, result: ResultKind::Nodes }
}

/// What is known of a set of nodes in document order.
#[derive(Clone, Copy)]
struct Order {
    /// At most one node.
    single: bool,
    /// No node lies inside another.
    peers: bool,
}

/// Whether walking the steps depth first visits nodes in document order, each once.
fn keeps_order(steps: &[StepCode], start: Order) -> bool {
    let mut order = start;
    for step in steps {
        let one = order.single && step.predicates.iter().any(|p| matches!(p, Predicate::Position(_) | Predicate::Last));
        let peers = Order { single: false, peers: true };
        let next = match step.axis {
            Axis::Myself => Some(order),
            Axis::Parent if order.single => Some(order),
            Axis::Attribute => Some(peers),
            Axis::Child if order.peers => Some(peers),
            Axis::FollowingSibling if order.single => Some(peers),
            Axis::Descendant | Axis::DescendantOrSelf if order.peers => Some(Order { single: false, peers: false }),
            Axis::Following if order.single => Some(Order { single: false, peers: false }),
            _ => None,
        };
        order = match next {
            _ if one => Order { single: true, peers: true },
            Some(next) => next,
            None => return false,
        };
    }
    true
}
