//! Comparisons: of any pair of items (`=`), of single values (`eq`), of nodes (`is`).

use std::cmp::Ordering;
use std::collections::HashSet;

use super::{Evaluator, Flow, Focus, gives_nodes};
use crate::ast::{Comparison, NodeComparison};
use crate::code::Code;
use crate::collation::Collation;
use crate::error::{Result, XPathError, type_error};
use crate::session::BYTES_PER_FUEL;
use crate::static_context::ResultKind;
use crate::value::{Atomic, AtomicKey, AtomicType, Decimal, Item, ItemRef, Node, Sequence, cast, number};

/// From this many pairs on, looking values up is cheaper than comparing each with each.
const PAIRS_FOR_HASHING: usize = 256;

/// How the items of a sequence can be compared by hashing.
#[derive(Clone, Copy, PartialEq)]
enum HashKind {
    /// Nodes and untyped values: text, or numbers beside numbers.
    Untyped,
    Texts,
    Numbers,
}

impl<'a> Evaluator<'a> {
    pub(super) fn general_comparison(
        &self,
        operator: Comparison,
        pair: &'a (Code, Code),
        focus: &Focus<'_>,
    ) -> Result<bool> {
        let (left, right) = (&pair.0, &pair.1);
        if self.program.collation.is_some() && !self.compat() {
            let (left, right) = (self.eval(left, focus)?, self.eval(right, focus)?);
            return self.sequences_compare(operator, &left, &right);
        }
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
            && self.program.collation.is_none()
            && left.len().saturating_mul(right.len()) > PAIRS_FOR_HASHING
            && let Some(found) = self.share_a_value(left, right)?
        {
            return Ok(found);
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

    /// Whether two sequences have a value in common, found by hashing; `None` when their types need each pair compared.
    fn share_a_value(&self, left: &Sequence, right: &Sequence) -> Result<Option<bool>> {
        let (Some(left_kind), Some(right_kind)) = (self.hash_kind(left), self.hash_kind(right)) else {
            return Ok(None);
        };
        let numbers = left_kind == HashKind::Numbers || right_kind == HashKind::Numbers;
        if numbers && (left_kind == HashKind::Texts || right_kind == HashKind::Texts) {
            return Ok(None);
        }
        self.charge(left.len() + right.len())?;
        let known: HashSet<AtomicKey> = left.iter().map(|item| self.hash_key(item, numbers)).collect::<Result<_>>()?;
        for item in right.iter() {
            let key = self.hash_key(item, numbers)?;
            if known.contains(&key) && key != AtomicKey::new(&Atomic::Double(f64::NAN)) {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    /// What all items of a sequence are.
    fn hash_kind(&self, sequence: &Sequence) -> Option<HashKind> {
        let mut kind = HashKind::Untyped;
        for item in sequence.iter() {
            let found = match item {
                ItemRef::Node(_) | ItemRef::Atomic(Atomic::Untyped(_)) => continue,
                ItemRef::Atomic(atomic) if atomic.as_text().is_some() => HashKind::Texts,
                // A float equals doubles that differ from each other.
                ItemRef::Atomic(Atomic::Float(_)) => return None,
                ItemRef::Atomic(atomic) if atomic.is_numeric() => HashKind::Numbers,
                ItemRef::Atomic(_) => return None,
            };
            if kind != HashKind::Untyped && kind != found {
                return None;
            }
            kind = found;
        }
        Some(kind)
    }

    /// An item by the rules of general comparison: beside numbers, text is a number.
    fn hash_key(&self, item: ItemRef<'_>, numbers: bool) -> Result<AtomicKey> {
        match item {
            ItemRef::Atomic(atomic) if !numbers || atomic.is_numeric() => Ok(AtomicKey::new(atomic)),
            _ if numbers => Ok(AtomicKey::new(&Atomic::Double(self.untyped_number(&self.item_text(item))?))),
            _ => Ok(AtomicKey::Text(self.item_text(item).into())),
        }
    }

    fn items_compare(&self, operator: Comparison, a: ItemRef<'_>, b: ItemRef<'_>) -> Result<bool> {
        let equality = matches!(operator, Comparison::Equal | Comparison::NotEqual);
        if let (ItemRef::Node(a), ItemRef::Node(b)) = (a, b)
            && (equality || !self.compat())
            && (self.program.collation.is_none() || self.compat())
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
        self.compare_with(operator, &a, &b)
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
        self.compare_with(operator, &left, &right).map(Sequence::from)
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

    /// Two values by the default collation.
    fn compare_with(&self, operator: Comparison, left: &Atomic, right: &Atomic) -> Result<bool> {
        match (&self.program.collation, left.as_text(), right.as_text()) {
            (Some((_, collation)), Some(left), Some(right)) => Ok(holds(operator, collation.compare(left, right))),
            _ => compare_with(operator, left, right),
        }
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
        AtomicType::QName => return Err(incomparable(untyped, other)),
        wanted if wanted.derives_from(AtomicType::Numeric) => AtomicType::Double,
        wanted => wanted.primitive(),
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
            let equality = matches!(operator, Comparison::Equal | Comparison::NotEqual);
            if !equality && !is_ordered(left, right) {
                return Err(type_error(format!("values of type {} have no order", left.atomic_type().name())));
            }
            Ok(holds(operator, ordering))
        }
        None => Ok(operator == Comparison::NotEqual),
    }
}

/// Whether one of two comparable values can be less than the other; some types have equality only.
fn is_ordered(left: &Atomic, right: &Atomic) -> bool {
    use Atomic as A;
    match left {
        A::QName(_) | A::Duration(_) | A::Gregorian(..) | A::HexBinary(_) | A::Base64Binary(_) => false,
        A::YearMonthDuration(_) => matches!(right, A::YearMonthDuration(_)),
        A::DayTimeDuration(_) => matches!(right, A::DayTimeDuration(_)),
        _ => true,
    }
}

fn incomparable(left: &Atomic, right: &Atomic) -> XPathError {
    let (left, right) = (left.atomic_type().name(), right.atomic_type().name());
    type_error(format!("cannot compare values of types {left} and {right}"))
}

/// The order of two numbers after promotion to a common type; `None` when one is NaN.
fn compare_numeric(left: &Atomic, right: &Atomic) -> Option<Ordering> {
    use Atomic as A;
    let double = |value: &Atomic| matches!(value, A::Double(_));
    let float = |value: &Atomic| matches!(value, A::Float(_));
    if double(left) || double(right) {
        return left.to_number(false).partial_cmp(&right.to_number(false));
    }
    if float(left) || float(right) {
        return to_single(left).partial_cmp(&to_single(right));
    }
    if let (Some(left), Some(right)) = (left.as_integer(), right.as_integer()) {
        return Some(left.cmp(&right));
    }
    let decimal = |value: &Atomic| match value {
        A::Decimal(decimal) => Some(*decimal),
        other => other.as_integer().and_then(Decimal::from_i128),
    };
    match (decimal(left), decimal(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        // An integer too large to be a decimal differs in size.
        _ => left.to_number(false).partial_cmp(&right.to_number(false)),
    }
}

/// A number as `xs:float`, rounded once.
pub(super) fn to_single(value: &Atomic) -> f32 {
    match value {
        Atomic::Float(float) => *float,
        Atomic::Decimal(decimal) => decimal.to_string().parse().unwrap_or(f32::NAN),
        other => match other.as_integer() {
            Some(integer) => integer as f32,
            None => other.to_number(false) as f32,
        },
    }
}

/// The order of two values, `None` when one is NaN; an error when their types have no common order.
pub fn compare_values(left: &Atomic, right: &Atomic) -> Result<Option<Ordering>> {
    let ordering = compare_atomic(left, right)?;
    if is_ordered(left, right) { Ok(ordering) } else { Err(incomparable(left, right)) }
}

/// The order of two values of comparable types; `None` when one is NaN.
pub(crate) fn compare_atomic(left: &Atomic, right: &Atomic) -> Result<Option<Ordering>> {
    use Atomic as A;
    if let (A::Integer(left), A::Integer(right)) = (left, right) {
        return Ok(Some(left.cmp(right)));
    }
    if let (Some(left), Some(right)) = (left.as_text(), right.as_text()) {
        return Ok(Some(left.cmp(right)));
    }
    if left.is_numeric() && right.is_numeric() {
        return Ok(compare_numeric(left, right));
    }
    let equal_or = |equal: bool| if equal { Ordering::Equal } else { Ordering::Less };
    Ok(match (left, right) {
        (A::Boolean(a), A::Boolean(b)) => Some(a.cmp(b)),
        (A::DateTime(a), A::DateTime(b)) | (A::Date(a), A::Date(b)) | (A::Time(a), A::Time(b)) => {
            Some(a.compare(*b, 0))
        }
        (A::Gregorian(kind, a), A::Gregorian(other, b)) if kind == other => Some(a.compare(*b, 0)),
        (A::YearMonthDuration(a), A::YearMonthDuration(b)) => Some(a.months.cmp(&b.months)),
        (A::DayTimeDuration(a), A::DayTimeDuration(b)) => Some(a.total_nanos().cmp(&b.total_nanos())),
        (
            A::Duration(a) | A::YearMonthDuration(a) | A::DayTimeDuration(a),
            A::Duration(b) | A::YearMonthDuration(b) | A::DayTimeDuration(b),
        ) => Some(equal_or(a == b)),
        (A::QName(a), A::QName(b)) => Some(equal_or(a == b)),
        (A::HexBinary(a), A::HexBinary(b)) | (A::Base64Binary(a), A::Base64Binary(b)) => Some(a.cmp(b)),
        _ => return Err(incomparable(left, right)),
    })
}

/// The order of two values of comparable types, texts by a collation.
pub(crate) fn collated(left: &Atomic, right: &Atomic, collation: &Collation) -> Result<Option<Ordering>> {
    match (left.as_text(), right.as_text()) {
        (Some(left), Some(right)) => Ok(Some(collation.compare(left, right))),
        _ => compare_atomic(left, right),
    }
}

/// Equality as `index-of` and `deep-equal` see it: NaN equals itself, incomparable values differ.
pub(crate) fn atomic_equal(left: &Atomic, right: &Atomic, collation: &Collation) -> bool {
    match collated(left, right, collation) {
        Ok(Some(ordering)) => ordering.is_eq(),
        Ok(None) => left.to_number(false).is_nan() && right.to_number(false).is_nan(),
        Err(_) => false,
    }
}
