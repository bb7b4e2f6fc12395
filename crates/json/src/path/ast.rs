//! What a path is made of once it is parsed.

use serde_json::Value;

use super::pattern::Pattern;

/// One step down: from every node found so far to its children, or to all of its descendants.
#[derive(Debug, Clone)]
pub enum Segment {
    /// `.name`, `[…]`.
    Child(Vec<Selector>),
    /// `..name`, `..[…]`: the selectors apply to the node itself and to everything below it.
    Descendant(Vec<Selector>),
}

/// Which children of a node a segment takes.
#[derive(Debug, Clone)]
pub enum Selector {
    /// The member of that name.
    Name(Box<str>),
    /// Every member or element.
    Wildcard,
    /// The element at that position; negative counts from the end.
    Index(i64),
    /// Elements from `start` to before `end`, every `step`th.
    Slice {
        /// First element; the near end when absent.
        start: Option<i64>,
        /// First element not taken; the far end when absent.
        end: Option<i64>,
        /// Distance; negative goes backwards, 0 takes nothing.
        step: i64,
    },
    /// Children for which the condition holds.
    Filter(Box<Filter>),
}

/// A condition on a child (`@`).
#[derive(Debug, Clone)]
pub struct Filter(pub(super) Condition);

#[derive(Debug, Clone)]
pub(super) enum Condition {
    Or(Vec<Condition>),
    And(Vec<Condition>),
    Not(Box<Condition>),
    /// The query finds something.
    Exists(Query),
    /// An operand that stands alone: a function of type logical, or a value in the artifacts' dialect.
    Truth(Operand),
    Compare(Operand, Operator, Operand),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    // The rest exists in the artifacts' dialect only.
    Matches,
    In,
    NotIn,
    SubsetOf,
    AnyOf,
    NoneOf,
    AllOf,
    Size,
    Empty,
    Contains,
    Type,
}

#[derive(Debug, Clone)]
pub(super) enum Operand {
    Literal(Value),
    Query(Query),
    Call(Box<Call>),
    Pattern(Pattern),
    /// A value from the caller of the evaluation, by position.
    Parameter(usize),
}

/// A path inside a filter.
#[derive(Debug, Clone)]
pub(super) struct Query {
    /// Starts at the root of the document (`$`), else at the child under test (`@`).
    pub from_root: bool,
    pub segments: Vec<Segment>,
    pub function: Option<TailFunction>,
    /// Names and indexes only, so it finds one node at most.
    pub singular: bool,
}

/// A function of RFC 9535 §2.4.
#[derive(Debug, Clone)]
pub(super) enum Call {
    Length(Operand),
    Count(Query),
    Value(Query),
    /// The whole text matches.
    Match(Operand, Operand),
    /// A part of the text matches.
    Search(Operand, Operand),
}

/// A function at the end of a path (`$.items.length()`), which the standard does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TailFunction {
    /// `length()`, `size()`: elements, members or characters.
    Length,
    /// `min()`.
    Min,
    /// `max()`.
    Max,
    /// `avg()`.
    Average,
    /// `sum()`.
    Sum,
    /// `stddev()`: of the whole population.
    StandardDeviation,
    /// `keys()`: member names.
    Keys,
    /// `first()`.
    First,
    /// `last()`.
    Last,
    /// `index(n)`.
    Index(i64),
}

impl TailFunction {
    /// The function of that name without arguments.
    pub fn parse(name: &str) -> Option<TailFunction> {
        Some(match name {
            "length" | "size" => TailFunction::Length,
            "min" => TailFunction::Min,
            "max" => TailFunction::Max,
            "avg" => TailFunction::Average,
            "sum" => TailFunction::Sum,
            "stddev" => TailFunction::StandardDeviation,
            "keys" => TailFunction::Keys,
            "first" => TailFunction::First,
            "last" => TailFunction::Last,
            _ => return None,
        })
    }
}

/// Whether segments lead to one node at most.
pub(super) fn is_singular(segments: &[Segment]) -> bool {
    segments.iter().all(|segment| match segment {
        Segment::Child(selectors) => matches!(selectors.as_slice(), [Selector::Name(_) | Selector::Index(_)]),
        Segment::Descendant(_) => false,
    })
}
