//! What an expression is made of.

use std::sync::Arc;

use penstock_json::path::{Filter, JsonPath, Segment, TailFunction};

use super::NamedScope;
use super::item::Item;
use super::library::Function;

#[derive(Debug)]
pub(super) enum Node {
    Literal(Item),
    Array(Vec<Node>),
    Negate(Box<Node>),
    Not(Box<Node>),
    Binary(Arc<Node>, Operator, Arc<Node>),
    /// A node that two readings of an expression share.
    Shared(Arc<Node>),
    /// Comparisons and logic without brackets: what Micro Integrator reads, and what it looks like. The
    /// second is for messages on which the first fails, and for those only.
    Ambiguous {
        original: Arc<Node>,
        usual: Arc<Node>,
    },
    Conditional(Box<Node>, Box<Node>, Box<Node>),
    Payload(Path),
    Named {
        source: NamedScope,
        name: String,
        path: Path,
    },
    Call {
        function: Function,
        arguments: Vec<Node>,
        path: Path,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
}

impl Operator {
    pub fn is_logical(self) -> bool {
        matches!(self, Operator::And | Operator::Or)
    }

    /// Whether it compares, and with numbers only.
    pub fn is_relational(self) -> bool {
        matches!(self, Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual)
    }

    pub fn symbol(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::Modulo => "%",
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::And => "and",
            Operator::Or => "or",
        }
    }
}

/// What is taken of a value: `.a[1]..b.length()`.
#[derive(Debug, Default)]
pub(super) struct Path {
    pub steps: Vec<Step>,
    /// Values that filters of the path refer to, by position.
    pub parameters: Vec<Node>,
    pub function: Option<TailFunction>,
    /// The whole path when no step depends on the message.
    pub compiled: Option<JsonPath>,
}

#[derive(Debug)]
pub(super) struct Step {
    /// `..`
    pub descendant: bool,
    pub kind: StepKind,
}

#[derive(Debug)]
pub(super) enum StepKind {
    Name(String),
    Wildcard,
    /// One index or name, or several.
    Computed(Vec<Node>),
    Slice(Box<[Option<Node>; 3]>),
    Filter(Filter),
    /// Something Micro Integrator parses and then fails on.
    Unsupported(String),
}

impl Path {
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.function.is_none()
    }

    pub fn segment(step: &Step, selectors: Vec<penstock_json::path::Selector>) -> Segment {
        if step.descendant { Segment::Descendant(selectors) } else { Segment::Child(selectors) }
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        let computed = self.steps.iter().flat_map(|step| match &step.kind {
            StepKind::Computed(nodes) => nodes.iter().collect::<Vec<_>>(),
            StepKind::Slice(bounds) => bounds.iter().flatten().collect(),
            _ => Vec::new(),
        });
        computed.chain(&self.parameters)
    }
}

impl Node {
    pub fn reads_payload(&self) -> bool {
        let mut reads = false;
        self.visit(&mut |node| {
            reads |= match node {
                Node::Payload(_) => true,
                Node::Call { function, arguments, .. } => *function == Function::XPath && arguments.len() == 1,
                _ => false,
            };
        });
        reads
    }

    /// The node and everything inside it.
    pub fn visit<'n>(&'n self, see: &mut dyn FnMut(&'n Node)) {
        see(self);
        match self {
            Node::Literal(_) => {}
            Node::Array(nodes) => nodes.iter().for_each(|node| node.visit(see)),
            Node::Negate(node) | Node::Not(node) => node.visit(see),
            Node::Binary(left, _, right) => {
                left.visit(see);
                right.visit(see);
            }
            // Both readings are made of the same parts.
            Node::Shared(node) | Node::Ambiguous { original: node, .. } => node.visit(see),
            Node::Conditional(test, yes, no) => [test, yes, no].into_iter().for_each(|node| node.visit(see)),
            Node::Payload(path) | Node::Named { path, .. } => path.nodes().for_each(|node| node.visit(see)),
            Node::Call { arguments, path, .. } => {
                arguments.iter().chain(path.nodes()).for_each(|node| node.visit(see));
            }
        }
    }
}
