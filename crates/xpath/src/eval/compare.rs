//! Comparisons: of any pair of items (`=`), of single values (`eq`), of nodes (`is`).

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;

use super::{Evaluator, Flow, Focus, gives_nodes};
use crate::ast::{Comparison, NodeComparison};
use crate::code::Code;
use crate::error::{Result, XPathError, type_error};
use crate::session::BYTES_PER_FUEL;
use crate::static_context::ResultKind;
use crate::value::{Atomic, AtomicType, Item, ItemRef, Node, Sequence, cast, number};

/// From this many pairs on, looking strings up is cheaper than comparing each with each.
const PAIRS_FOR_HASHING: usize = 256;

impl<'a> Evaluator<'a> {
    pub(super) fn general_comparison(
        &self,
        operator: Comparison,
        pair: &'a (Code, Code),
        focus: &Focus<'_>,
    ) -> Result<bool> {
        let (left, right) = (&pair.0, &pair.1);
        // A path against one string or number: the walk ends at the first node that compares.
        if gives_nodes(left) && matches!(right.result, ResultKind::String | ResultKind::Number) {
            return self.nodes_with_value(operator, left, right, focus);
        }
        if gives_nodes(right) && matches!(left.result, ResultKind::String | ResultKind::Number) {
            return self.nodes_with_value(mirrored(operator), right, left, focus);
        }
        let equality = matches!(operator, Comparison::Equal | Comparison::NotEqual);
        if equality && self.compat() && (left.result == ResultKind::Boolean || right.result == ResultKind::Boolean) {
            let (left, right) = (self.boolean(left, focus)?, self.boolean(right, focus)?);
            return Ok(compare_numbers(operator, f64::from(u8::from(left)), f64::from(u8::from(right))));
        }
        let (left, right) = (self.eval(left, focus)?, self.eval(right, focus)?);
        self.sequences_compare(operator, &left, &right)
    }

    fn nodes_with_value(
        &self,
        operator: Comparison,
        nodes: &'a Code,
        value: &'a Code,
        focus: &Focus<'_>,
    ) -> Result<bool> {
        let mut found = false;
        let equality = matches!(operator, Comparison::Equal | Comparison::NotEqual);
        if value.result == ResultKind::String && (equality || !self.compat()) {
            let wanted = self.string(value, focus)?;
            self.any_node(nodes, focus, &mut |node| {
                let text = self.session.string_value(node);
                self.charge(text.len() / BYTES_PER_FUEL)?;
                found = holds(operator, (*text).cmp(&*wanted));
                Ok(if found { Flow::Stop } else { Flow::Continue })
            })?;
            return Ok(found);
        }
        if !self.compat() && value.constant().is_none() {
            let (nodes, value) = (self.eval(nodes, focus)?, self.eval(value, focus)?);
            return self.sequences_compare(operator, &nodes, &value);
        }
        let wanted = self.number(value, focus)?;
        self.any_node(nodes, focus, &mut |node| {
            let text = self.session.string_value(node);
            self.charge(text.len() / BYTES_PER_FUEL)?;
            let value = self.untyped_number(&text)?;
            found = compare_numbers(operator, value, wanted);
            Ok(if found { Flow::Stop } else { Flow::Continue })
        })?;
        Ok(found)
    }

    /// Text compared with a number: NaN when it is none (1.0), an error (2.0).
    fn untyped_number(&self, text: &str) -> Result<f64> {
        if self.compat() {
            return Ok(number::parse(text, true));
        }
        let invalid = || XPathError::new("FORG0001", format!("`{text}` is not a number"));
        number::parse_double(number::trim(text)).ok_or_else(invalid)
    }

    fn sequences_compare(&self, operator: Comparison, left: &Sequence, right: &Sequence) -> Result<bool> {
        if self.compat() && (is_boolean(left) || is_boolean(right)) {
            // `<` and its like compare numbers, and only nodes become a boolean on the way (XPath 1.0 §3.4).
            if !matches!(operator, Comparison::Equal | Comparison::NotEqual) {
                let (left, right) = (self.ordered_value(left)?, self.ordered_value(right)?);
                return Ok(compare_numbers(operator, left, right));
            }
            let (left, right) = (self.effective_boolean(left)?, self.effective_boolean(right)?);
            return Ok(compare_numbers(operator, f64::from(u8::from(left)), f64::from(u8::from(right))));
        }
        if operator == Comparison::Equal
            && left.len().saturating_mul(right.len()) > PAIRS_FOR_HASHING
            && let (Some(left), Some(right)) = (left.nodes(), right.nodes())
        {
            return self.share_a_text(&left, &right);
        }
        self.charge(left.len().saturating_mul(right.len()))?;
        for a in left.iter() {
            for b in right.iter() {
                if self.items_compare(operator, a, b)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// A side of a relational comparison whose other side may be a boolean, as a number.
    fn ordered_value(&self, value: &Sequence) -> Result<f64> {
        match value {
            Sequence::One(Item::Atomic(atomic)) => Ok(atomic.to_number(true)),
            nodes => Ok(f64::from(u8::from(self.effective_boolean(nodes)?))),
        }
    }

    fn share_a_text(&self, left: &[Node], right: &[Node]) -> Result<bool> {
        self.charge(left.len() + right.len())?;
        let texts: HashSet<Cow<'_, str>> = left.iter().map(|node| self.session.string_value(*node)).collect();
        Ok(right.iter().any(|node| texts.contains(&self.session.string_value(*node))))
    }

    fn items_compare(&self, operator: Comparison, a: ItemRef<'_>, b: ItemRef<'_>) -> Result<bool> {
        let equality = matches!(operator, Comparison::Equal | Comparison::NotEqual);
        if let (ItemRef::Node(a), ItemRef::Node(b)) = (a, b)
            && (equality || !self.compat())
        {
            return Ok(holds(operator, self.session.string_value(a).cmp(&self.session.string_value(b))));
        }
        if self.compat() {
            let numeric = |item: ItemRef<'_>| matches!(item, ItemRef::Atomic(atomic) if atomic.is_numeric());
            let temporal = |item: ItemRef<'_>| matches!(item, ItemRef::Atomic(atomic) if is_typed(atomic));
            if temporal(a) || temporal(b) {
                return self.typed_pair(operator, a, b);
            }
            if equality && !numeric(a) && !numeric(b) {
                return Ok(holds(operator, self.item_text(a).cmp(&self.item_text(b))));
            }
            return Ok(compare_numbers(operator, self.item_number(a), self.item_number(b)));
        }
        self.typed_pair(operator, a, b)
    }

    fn item_number(&self, item: ItemRef<'_>) -> f64 {
        match item {
            ItemRef::Node(node) => number::parse(&self.session.string_value(node), true),
            ItemRef::Atomic(atomic) => atomic.to_number(true),
        }
    }

    /// The rules of 2.0: an untyped value takes the type of the other, or is a double beside a number.
    fn typed_pair(&self, operator: Comparison, a: ItemRef<'_>, b: ItemRef<'_>) -> Result<bool> {
        let (a, b) = (self.atomize(a), self.atomize(b));
        let (a, b) = match (&a, &b) {
            (Atomic::Untyped(_), Atomic::Untyped(_)) => (a, b),
            (Atomic::Untyped(_), other) => (untyped_as(&a, other)?, b),
            (other, Atomic::Untyped(_)) => {
                let converted = untyped_as(&b, other)?;
                (a, converted)
            }
            _ => (a, b),
        };
        compare_with(operator, &a, &b)
    }

    pub(super) fn value_comparison(
        &self,
        operator: Comparison,
        pair: &'a (Code, Code),
        focus: &Focus<'_>,
    ) -> Result<Sequence> {
        let (Some(left), Some(right)) = (self.optional_atomic(&pair.0, focus)?, self.optional_atomic(&pair.1, focus)?)
        else {
            return Ok(Sequence::Empty);
        };
        compare_with(operator, &left, &right).map(Sequence::from)
    }

    pub(super) fn node_comparison(
        &self,
        operator: NodeComparison,
        pair: &'a (Code, Code),
        focus: &Focus<'_>,
    ) -> Result<Sequence> {
        let (Some(left), Some(right)) = (self.single_node(&pair.0, focus)?, self.single_node(&pair.1, focus)?) else {
            return Ok(Sequence::Empty);
        };
        Ok(Sequence::from(match operator {
            NodeComparison::Is => left == right,
            NodeComparison::Before => left < right,
            NodeComparison::After => left > right,
        }))
    }

    fn single_node(&self, code: &'a Code, focus: &Focus<'_>) -> Result<Option<Node>> {
        let value = self.eval(code, focus)?;
        match (value.len(), value.first()) {
            (0, _) => Ok(None),
            (1, Some(ItemRef::Node(node))) => Ok(Some(node)),
            _ => Err(type_error("expected one node").at(code.span)),
        }
    }
}

fn is_boolean(sequence: &Sequence) -> bool {
    matches!(sequence, Sequence::One(Item::Atomic(Atomic::Boolean(_))))
}

/// Types that XPath 1.0 does not know, and whose comparison as numbers would be meaningless.
fn is_typed(atomic: &Atomic) -> bool {
    !atomic.is_numeric() && atomic.as_text().is_none() && !matches!(atomic, Atomic::Boolean(_))
}

fn untyped_as(untyped: &Atomic, other: &Atomic) -> Result<Atomic> {
    let wanted = match other.atomic_type() {
        AtomicType::Integer | AtomicType::Decimal | AtomicType::Float => AtomicType::Double,
        wanted => wanted,
    };
    cast::cast(untyped, wanted, false)
}

/// `a < b` as seen from `b`.
fn mirrored(operator: Comparison) -> Comparison {
    match operator {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        same => same,
    }
}

fn holds(operator: Comparison, ordering: Ordering) -> bool {
    match operator {
        Comparison::Equal => ordering.is_eq(),
        Comparison::NotEqual => ordering.is_ne(),
        Comparison::Less => ordering.is_lt(),
        Comparison::LessOrEqual => ordering.is_le(),
        Comparison::Greater => ordering.is_gt(),
        Comparison::GreaterOrEqual => ordering.is_ge(),
    }
}

fn compare_numbers(operator: Comparison, left: f64, right: f64) -> bool {
    match left.partial_cmp(&right) {
        Some(ordering) => holds(operator, ordering),
        // NaN differs from everything, itself included.
        None => operator == Comparison::NotEqual,
    }
}

fn compare_with(operator: Comparison, left: &Atomic, right: &Atomic) -> Result<bool> {
    match compare_atomic(left, right)? {
        Some(ordering) => {
            let unordered = matches!(left, Atomic::QName(_) | Atomic::Duration(_));
            if unordered && !matches!(operator, Comparison::Equal | Comparison::NotEqual) {
                return Err(type_error(format!("values of type {} have no order", left.atomic_type().name())));
            }
            Ok(holds(operator, ordering))
        }
        None => Ok(operator == Comparison::NotEqual),
    }
}

/// The order of two values of comparable types; `None` when one is NaN.
pub(crate) fn compare_atomic(left: &Atomic, right: &Atomic) -> Result<Option<Ordering>> {
    use Atomic as A;
    if let (Some(left), Some(right)) = (left.as_text(), right.as_text()) {
        return Ok(Some(left.cmp(right)));
    }
    let equal_or = |equal: bool| if equal { Ordering::Equal } else { Ordering::Less };
    Ok(match (left, right) {
        (A::Integer(a), A::Integer(b)) => Some(a.cmp(b)),
        (A::Decimal(a), A::Decimal(b)) => Some(a.cmp(b)),
        (A::Integer(a), A::Decimal(b)) => Some(crate::value::Decimal::from(*a).cmp(b)),
        (A::Decimal(a), A::Integer(b)) => Some(a.cmp(&crate::value::Decimal::from(*b))),
        _ if left.is_numeric() && right.is_numeric() => left.to_number(false).partial_cmp(&right.to_number(false)),
        (A::Boolean(a), A::Boolean(b)) => Some(a.cmp(b)),
        (A::DateTime(a), A::DateTime(b)) | (A::Date(a), A::Date(b)) | (A::Time(a), A::Time(b)) => {
            Some(a.compare(*b, 0))
        }
        (A::YearMonthDuration(a), A::YearMonthDuration(b)) => Some(a.months.cmp(&b.months)),
        (A::DayTimeDuration(a), A::DayTimeDuration(b)) => Some(a.total_nanos().cmp(&b.total_nanos())),
        (
            A::Duration(a) | A::YearMonthDuration(a) | A::DayTimeDuration(a),
            A::Duration(b) | A::YearMonthDuration(b) | A::DayTimeDuration(b),
        ) => Some(equal_or(a == b)),
        (A::QName(a), A::QName(b)) => Some(equal_or(a == b)),
        _ => {
            let (left, right) = (left.atomic_type().name(), right.atomic_type().name());
            return Err(type_error(format!("cannot compare values of types {left} and {right}")));
        }
    })
}

/// Equality as `distinct-values` and `deep-equal` see it: NaN equals itself, incomparable values differ.
pub(crate) fn atomic_equal(left: &Atomic, right: &Atomic) -> bool {
    match compare_atomic(left, right) {
        Ok(Some(ordering)) => ordering.is_eq(),
        Ok(None) => left.to_number(false).is_nan() && right.to_number(false).is_nan(),
        Err(_) => false,
    }
}
