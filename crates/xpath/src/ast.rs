//! The syntax tree: what the text says, names resolved and aliases replaced, nothing optimised.
//!
//! Both ways of evaluating start here: the compiler (`compile/`) and, for the forward-only subset, the stream.

mod children;

use std::sync::Arc;

use children::{for_each_child, for_each_child_mut};

use crate::error::Span;
use crate::value::{Atomic, AtomicType, QName};

/// An expression with its place in the text.
#[derive(Debug, Clone)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands. Parts that came from an alias have the span of the variable that named it.
    pub span: Span,
    /// Levels of the tree below and including this one; the parser limits it, so recursion over the tree is safe.
    height: u32,
}

/// The kinds of expression.
#[derive(Debug, Clone)]
pub enum ExprKind {
    /// A string or a number.
    Literal(Atomic),
    /// `$name`
    Variable(Name),
    /// `.` where it is not a step of a path.
    ContextItem,
    /// `()` and `a, b, c`.
    Sequence(Vec<Expr>),
    /// A function call.
    Call(Name, Vec<Expr>),
    /// A location path, or steps applied to an expression.
    Path(Path),
    /// `primary[predicate]…`
    Filter(Box<Expr>, Vec<Expr>),
    /// Two or more operands.
    Or(Vec<Expr>),
    /// Two or more operands.
    And(Vec<Expr>),
    /// `=`, `<` and the like: true when any pair of items compares so.
    GeneralComparison(Comparison, Box<Expr>, Box<Expr>),
    /// `eq`, `lt` and the like.
    ValueComparison(Comparison, Box<Expr>, Box<Expr>),
    /// `is`, `<<`, `>>`
    NodeComparison(NodeComparison, Box<Expr>, Box<Expr>),
    /// `||`: two or more operands.
    Concat(Vec<Expr>),
    /// `a to b`
    Range(Box<Expr>, Box<Expr>),
    /// `+`, `-`, `*`, `div`, `idiv`, `mod`
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    /// Unary minus (true) or plus.
    Sign(bool, Box<Expr>),
    /// `a | b`: two or more operands.
    Union(Vec<Expr>),
    /// `a intersect b`
    Intersect(Box<Expr>, Box<Expr>),
    /// `a except b`
    Except(Box<Expr>, Box<Expr>),
    /// `a ! b`
    Map(Box<Expr>, Box<Expr>),
    /// `if (a) then b else c`
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `for $x in a return b`, one variable each.
    For(Name, Box<Expr>, Box<Expr>),
    /// `let $x := a return b`, one variable each.
    Let(Name, Box<Expr>, Box<Expr>),
    /// `some $x in a satisfies b` or `every`, one variable each.
    Quantified(Quantifier, Name, Box<Expr>, Box<Expr>),
    /// `a instance of type`
    InstanceOf(Box<Expr>, SequenceType),
    /// `a treat as type`
    TreatAs(Box<Expr>, SequenceType),
    /// `a cast as type?`; the flag is the question mark.
    CastAs(Box<Expr>, AtomicType, bool),
    /// `a castable as type?`
    CastableAs(Box<Expr>, AtomicType, bool),
}

/// A name with its namespace resolved where the prefix is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// As written.
    pub prefix: Option<Arc<str>>,
    /// The local part.
    pub local: Arc<str>,
    /// The namespace; `None` for no namespace, and for an undeclared prefix where the context allows those.
    pub namespace: Option<Arc<str>>,
}

impl Name {
    /// As written.
    pub fn lexical(&self) -> String {
        match &self.prefix {
            Some(prefix) => format!("{prefix}:{}", self.local),
            None => self.local.to_string(),
        }
    }
}

impl From<Name> for QName {
    fn from(name: Name) -> QName {
        QName { prefix: name.prefix, namespace: name.namespace, local: name.local }
    }
}

/// A path: a start and steps that apply to each node in turn.
#[derive(Debug, Clone)]
pub struct Path {
    /// Where it starts.
    pub start: PathStart,
    /// The steps; empty only for `/` alone.
    pub steps: Vec<Step>,
}

/// Where a path starts.
#[derive(Debug, Clone)]
pub enum PathStart {
    /// The context item.
    Context,
    /// The root of the tree of the context item.
    Root,
    /// The items of another expression.
    Expr(Box<Expr>),
}

/// One step of a path.
#[derive(Debug, Clone)]
pub enum Step {
    /// `axis::test[predicate]…`; `//` stands here as `descendant-or-self::node()`.
    Axis(AxisStep),
    /// Any other expression, evaluated for each item.
    Expr(Expr),
}

/// `axis::test[predicate]…`
#[derive(Debug, Clone)]
pub struct AxisStep {
    /// The axis.
    pub axis: Axis,
    /// What the node must be.
    pub test: NodeTest,
    /// Conditions and positions.
    pub predicates: Vec<Expr>,
    /// Where it stands.
    pub span: Span,
}

/// The thirteen axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the specification")]
pub enum Axis {
    Child,
    Descendant,
    DescendantOrSelf,
    Attribute,
    Myself,
    Parent,
    Ancestor,
    AncestorOrSelf,
    FollowingSibling,
    PrecedingSibling,
    Following,
    Preceding,
    Namespace,
}

impl Axis {
    /// Whether positions count backwards in document order.
    pub fn is_reverse(self) -> bool {
        matches!(self, Axis::Parent | Axis::Ancestor | Axis::AncestorOrSelf | Axis::PrecedingSibling | Axis::Preceding)
    }
}

/// What a step selects on its axis.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeTest {
    /// A name, of the principal node kind of the axis.
    Name(Name),
    /// `*`
    AnyName,
    /// `p:*`
    Namespace(Name),
    /// `*:local`
    Local(Arc<str>),
    /// A name with an undeclared prefix in a context that allows it: local name alone is compared.
    UndeclaredPrefix(Name),
    /// `node()`, `text()`, `element(name)` …
    Kind(KindTest),
}

/// A test on the kind of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum KindTest {
    /// `node()`
    Any,
    /// `text()`
    Text,
    /// `comment()`
    Comment,
    /// `processing-instruction('target')`
    ProcessingInstruction(Option<Arc<str>>),
    /// `document-node()`
    Document,
    /// `document-node(element(name))`
    DocumentOf(Box<KindTest>),
    /// `element(name)`
    Element(Option<Name>),
    /// `attribute(name)`
    Attribute(Option<Name>),
    /// A test on a type that no node has without a schema.
    Nothing,
}

/// The six comparisons, shared by general and value comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Comparisons of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeComparison {
    /// `is`
    Is,
    /// `<<`
    Before,
    /// `>>`
    After,
}

/// Arithmetic operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    IntegerDivide,
    Modulo,
}

/// `some` or `every`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantifier {
    /// `some`
    Some,
    /// `every`
    Every,
}

/// A sequence type: what `as` and `instance of` name.
#[derive(Debug, Clone, PartialEq)]
pub struct SequenceType {
    /// What each item must be; `None` is `empty-sequence()`.
    pub item: Option<ItemType>,
    /// How many.
    pub occurrence: Occurrence,
}

impl SequenceType {
    /// Whether the empty sequence is of the type.
    pub fn allows_empty(&self) -> bool {
        self.item.is_none() || matches!(self.occurrence, Occurrence::ZeroOrOne | Occurrence::ZeroOrMore)
    }
}

/// The type of one item.
#[derive(Debug, Clone, PartialEq)]
pub enum ItemType {
    /// `item()`
    Any,
    /// A node.
    Node(KindTest),
    /// An atomic value.
    Atomic(AtomicType),
}

/// How many items a sequence type admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrence {
    /// Exactly one.
    One,
    /// `?`
    ZeroOrOne,
    /// `*`
    ZeroOrMore,
    /// `+`
    OneOrMore,
}

impl Expr {
    pub(crate) fn new(kind: ExprKind, span: Span) -> Expr {
        let mut height = 0;
        for_each_child(&kind, &mut |child| height = height.max(child.height));
        if let ExprKind::Path(path) = &kind {
            // Steps are evaluated one inside the other.
            height += path.steps.len() as u32;
        }
        Expr { kind, span, height: height + 1 }
    }

    /// Levels of nesting, steps of paths included.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The expressions directly inside this one, predicates included.
    pub fn for_each_child<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        for_each_child(&self.kind, visit);
    }

    /// Gives every part the same span.
    pub(crate) fn set_span(&mut self, span: Span) {
        self.span = span;
        for_each_child_mut(&mut self.kind, &mut |child| child.set_span(span));
    }
}
