//! The compiled form: the syntax tree with every decision made that does not need a document.

use std::sync::Arc;

use crate::ast::{Arithmetic, Axis, Comparison, Name, NodeComparison, Quantifier, SequenceType};
use crate::error::Span;
use crate::functions::Builtin;
use crate::static_context::ResultKind;
use crate::value::{AtomicType, Sequence};

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) op: Op,
    pub(crate) span: Span,
    /// What is known about the value before it is computed.
    pub(crate) result: ResultKind,
}

#[derive(Debug)]
pub(crate) enum Op {
    Constant(Sequence),
    /// A slot of the dynamic context.
    Slot(u32),
    /// A variable of the host, by index.
    HostVariable(u32),
    /// A variable of the host, by name.
    NamedVariable(Box<Name>),
    /// A variable bound inside the expression.
    Local(u32),
    ContextItem,
    Sequence(Box<[Code]>),
    Path(Box<PathCode>),
    /// `a/b` where `b` is not an axis step.
    Slash(Box<(Code, Code)>),
    Filter(Box<(Code, Box<[Predicate]>)>),
    Or(Box<[Code]>),
    And(Box<[Code]>),
    General(Comparison, Box<(Code, Code)>),
    Value(Comparison, Box<(Code, Code)>),
    Nodes(NodeComparison, Box<(Code, Code)>),
    Range(Box<(Code, Code)>),
    Arithmetic(Arithmetic, Box<(Code, Code)>),
    Sign(bool, Box<Code>),
    Union(Box<[Code]>),
    Intersect(Box<(Code, Code)>),
    Except(Box<(Code, Code)>),
    Map(Box<(Code, Code)>),
    If(Box<(Code, Code, Code)>),
    For(u32, Box<(Code, Code)>),
    Let(u32, Box<(Code, Code)>),
    Quantified(Quantifier, u32, Box<(Code, Code)>),
    InstanceOf(Box<(Code, SequenceType)>),
    Treat(Box<(Code, SequenceType)>),
    /// An argument, converted to the type of the parameter.
    Argument(Box<(Code, SequenceType)>),
    Cast(Box<Code>, AtomicType, bool),
    Castable(Box<Code>, AtomicType, bool),
    Call(&'static Builtin, Box<[Code]>, Option<Box<Prepared>>),
    HostCall(Box<HostCallCode>),
}

/// What was worked out at compile time for a call with constant arguments.
#[derive(Debug)]
pub(crate) enum Prepared {
    Regex(crate::regex::Regex),
    Picture(Box<crate::functions::format_number::Picture>),
}

#[derive(Debug)]
pub(crate) struct HostCallCode {
    pub(crate) name: Name,
    pub(crate) index: u32,
    pub(crate) arguments: Box<[Code]>,
}

/// A path all of whose steps are axis steps.
#[derive(Debug)]
pub(crate) struct PathCode {
    pub(crate) start: StartCode,
    pub(crate) steps: Box<[StepCode]>,
    /// Whether walking the steps from one node yields nodes in document order without duplicates.
    pub(crate) ordered_from_one: bool,
    /// The same when walking from several nodes in document order.
    pub(crate) ordered_from_many: bool,
    /// Whether every step leads to nodes at or below the one it starts from.
    pub(crate) downward: bool,
}

#[derive(Debug)]
pub(crate) enum StartCode {
    Context,
    Root,
    Code(Code),
}

#[derive(Debug)]
pub(crate) struct StepCode {
    pub(crate) axis: Axis,
    pub(crate) test: Test,
    pub(crate) predicates: Box<[Predicate]>,
    /// Whether some predicate needs to know how many candidates there are.
    pub(crate) needs_size: bool,
    pub(crate) span: Span,
}

/// A node test with its axis' principal node kind worked in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test {
    Any,
    AnyElement,
    AnyAttribute,
    AnyNamespace,
    Element(TestName),
    Attribute(TestName),
    /// The prefix a namespace node binds.
    NamespaceNode(Arc<str>),
    ElementInNamespace(Arc<str>),
    AttributeInNamespace(Arc<str>),
    ElementLocal(Arc<str>),
    AttributeLocal(Arc<str>),
    Text,
    Comment,
    ProcessingInstruction(Option<Arc<str>>),
    Document,
    DocumentOf(Box<Test>),
    Nothing,
}

/// An expanded name with its number in the pool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TestName {
    pub(crate) index: u32,
    /// Empty for no namespace, as documents have it.
    pub(crate) namespace: Arc<str>,
    pub(crate) local: Arc<str>,
}

#[derive(Debug)]
pub(crate) enum Predicate {
    /// `[3]`
    Position(usize),
    /// `[last()]`
    Last,
    /// On a fused `//name[3]`: the third among its siblings that pass the step's test.
    SiblingPosition(usize),
    /// On a fused `//name[last()]`: no sibling after it passes the step's test.
    SiblingLast,
    /// `[@a = 'b']`: never a number.
    Condition(Code, NeedsSize),
    /// A number means a position, anything else a condition; only the value decides.
    Either(Code, NeedsSize),
    /// The same for a value that no item has a part in, as in `$items[$index]`: computed once.
    Independent(Code),
}

/// Whether `last()` is used.
pub(crate) type NeedsSize = bool;

impl Code {
    /// The value, when it is known already.
    pub(crate) fn constant(&self) -> Option<&Sequence> {
        match &self.op {
            Op::Constant(value) => Some(value),
            _ => None,
        }
    }
}
