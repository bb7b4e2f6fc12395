//! What a template consists of.

use std::sync::Arc;

use super::Place;

/// A part of a template.
#[derive(Debug)]
pub(super) enum Node {
    Text(String),
    /// `${…}`.
    Output(Expr),
    If(Vec<(Option<Expr>, Vec<Node>)>),
    List(List),
    /// `<#items as x>` inside a `<#list>` that names no variable.
    Items {
        name: String,
        value: Option<String>,
        body: Vec<Node>,
        at: Place,
    },
    Sep(Vec<Node>),
    Assign {
        scope: AssignScope,
        name: String,
        operator: char,
        value: Expr,
    },
    Capture {
        scope: AssignScope,
        name: String,
        body: Vec<Node>,
    },
    Macro(Macro),
    /// `variables` are the names behind `;`, for what `<#nested>` hands over.
    Call {
        name: Expr,
        arguments: Vec<(Option<String>, Expr)>,
        variables: Vec<String>,
        body: Vec<Node>,
        at: Place,
    },
    Nested(Vec<Expr>),
    Return(Option<Expr>),
    Switch {
        on: Expr,
        cases: Vec<(Option<Expr>, Vec<Node>)>,
    },
    Attempt {
        body: Vec<Node>,
        recover: Vec<Node>,
    },
    Break,
    Continue,
    Stop(Option<Expr>, Place),
}

#[derive(Debug)]
pub(super) struct List {
    pub(super) of: Expr,
    /// The loop variable, and a second one for the values of a hash.
    pub(super) name: Option<(String, Option<String>)>,
    pub(super) body: Vec<Node>,
    pub(super) otherwise: Vec<Node>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AssignScope {
    Template,
    Local,
}

/// `<#macro>` or `<#function>`.
#[derive(Debug)]
pub(super) struct Macro {
    pub(super) name: String,
    pub(super) parameters: Vec<(String, Option<Expr>)>,
    /// The one that takes all that is left.
    pub(super) rest: Option<String>,
    pub(super) body: Vec<Node>,
}

/// An expression and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Expr {
    pub(super) kind: Arc<ExprKind>,
    pub(super) at: Place,
}

#[derive(Debug)]
pub(super) enum ExprKind {
    Text(String),
    /// A string with `${…}` in it.
    Joined(Vec<Expr>),
    Number(f64),
    Boolean(bool),
    List(Vec<Expr>),
    Hash(Vec<(Expr, Expr)>),
    Name(String),
    /// `.now` and its kin.
    Special(String),
    Member(Expr, String),
    Index(Expr, Expr),
    Call(Expr, Vec<Expr>),
    BuiltIn(Expr, String, Option<Vec<Expr>>),
    /// `a!b`.
    Default(Expr, Option<Expr>),
    /// `a??`.
    Exists(Expr),
    Paren(Expr),
    Not(Expr),
    Negative(Expr),
    Binary(Operator, Expr, Expr),
    /// From, to, and whether the end belongs to it; without an end it goes on.
    Range(Expr, Option<Expr>, RangeEnd),
    /// `x -> expression`.
    Lambda(String, Expr),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeEnd {
    Inclusive,
    Exclusive,
    Length,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Expr {
    pub(super) fn new(kind: ExprKind, at: Place) -> Expr {
        Expr { kind: Arc::new(kind), at }
    }

    /// The expression as messages call it.
    pub(super) fn describe(&self) -> String {
        match &*self.kind {
            ExprKind::Name(name) => name.clone(),
            ExprKind::Member(of, name) => format!("{}.{name}", of.describe()),
            ExprKind::Index(of, index) => format!("{}[{}]", of.describe(), index.describe()),
            ExprKind::Text(text) => format!("\"{text}\""),
            ExprKind::Number(number) => number.to_string(),
            ExprKind::BuiltIn(of, name, _) => format!("{}?{name}", of.describe()),
            ExprKind::Paren(inner) => format!("({})", inner.describe()),
            ExprKind::Call(of, _) => format!("{}(…)", of.describe()),
            _ => "…".to_owned(),
        }
    }
}
