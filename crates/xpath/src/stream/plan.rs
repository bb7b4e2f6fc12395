//! What an expression becomes: questions that the reader answers, and a scalar expression over the answers.

use std::sync::Arc;

use crate::ast::Comparison;

/// Steps of all questions of one plan; they are bits of a word.
pub(super) const STEPS_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) scalar: Scalar,
    pub(super) questions: Vec<Question>,
    /// The steps of all paths, one after the other. A bit of a [`Mask`] is an index into this.
    pub(super) steps: Vec<Step>,
    /// The first steps of paths that begin at the document node.
    pub(super) at_root: Mask,
    /// The first steps of paths that begin at the context node.
    pub(super) at_context: Mask,
    /// Steps that also apply below their context: those after `//`.
    pub(super) deep: Mask,
    pub(super) child_steps: Mask,
    pub(super) attribute_steps: Mask,
    pub(super) text_steps: Mask,
    /// The number of positional predicates; each has a counter per open element.
    pub(super) counters: usize,
}

/// A set of steps.
pub(super) type Mask = u64;

/// The bits of a mask, lowest first.
pub(super) fn bits(mask: Mask) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let bit = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        Some(bit)
    })
}

/// The query on the nodes that paths select.
#[derive(Debug)]
pub(super) enum Question {
    /// The string value of the first.
    First,
    /// Whether there is one.
    Exists,
    /// How many there are.
    Count,
    /// Whether the value of any compares so.
    Any(Comparison, Value),
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) axis: StepAxis,
    pub(super) test: Test,
    pub(super) predicates: Vec<Predicate>,
    pub(super) next: Next,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepAxis {
    Child,
    Attribute,
    Text,
}

/// What follows a step: the next one, or the question it answers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Next {
    Step(usize),
    Question(usize),
}

/// A test on the name of an element or attribute.
#[derive(Debug)]
pub(super) enum Test {
    Any,
    Local(Arc<str>),
    Namespace(Arc<str>),
    Name { local: Arc<str>, namespace: Option<Arc<str>> },
}

#[derive(Debug)]
pub(super) enum Predicate {
    /// The position among what passed so far, compared with a number.
    Position { comparison: Comparison, number: f64, counter: usize },
    /// A condition on the element itself.
    Condition(Box<Plan>),
}

/// An expression over strings, numbers and truth values.
#[derive(Debug)]
pub(super) enum Scalar {
    Constant(Value),
    /// The answer to a question.
    Answer(usize),
    /// Of an attribute of the element a predicate is about: its value, empty when there is none.
    Attribute(Test),
    /// Whether the element a predicate is about has the attribute.
    HasAttribute(Test),
    /// Whether an attribute of the element compares so; without one, false.
    AnyAttribute(Test, Comparison, Value),
    LocalName,
    NamespaceUri,
    QualifiedName,
    Concat(Vec<Scalar>),
    Contains(Box<Scalar>, Box<Scalar>),
    StartsWith(Box<Scalar>, Box<Scalar>),
    NormalizeSpace(Box<Scalar>),
    StringLength(Box<Scalar>),
    Not(Box<Scalar>),
    And(Vec<Scalar>),
    Or(Vec<Scalar>),
    Compare(Comparison, Box<Scalar>, Box<Scalar>),
    ToText(Box<Scalar>),
    ToNumber(Box<Scalar>),
    ToBoolean(Box<Scalar>),
}

/// A value that is no node.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Number(f64),
    Boolean(bool),
}
