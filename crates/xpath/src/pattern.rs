//! Patterns: what `match`, `count`, `from` and `use` … of stylesheets are written in (XSLT 1.0 §5.2).

mod compile;

use penstock_xml::{Document, NodeKind};

use compile::alternative;

use crate::ast::{Axis, ExprKind, Name};
use crate::code::{Code, StepCode};
use crate::compile::Compiler;
use crate::context::DynamicContext;
use crate::error::Result;
use crate::eval::{Evaluator, Flow, Focus};
use crate::parser;
use crate::program::Program;
use crate::static_context::StaticContext;
use crate::value::{ItemRef, Node};

/// A compiled pattern: alternatives, any of which may match.
pub struct Pattern {
    alternatives: Vec<Alternative>,
    program: Program,
    /// Variables the pattern refers to.
    variables: Vec<Name>,
    /// Functions of the host it calls.
    functions: Vec<Name>,
}

/// One alternative of a pattern, which is a template rule of its own.
pub struct Alternative {
    root: Root,
    /// From the outermost to the node itself.
    steps: Vec<PatternStep>,
    priority: f64,
    key: Key,
}

/// What a node must be for an alternative to have a chance: for dispatch by kind and name.
#[derive(Debug, Clone, PartialEq)]
pub enum Key {
    /// The document node.
    Document,
    /// An element with this name.
    Element(Name),
    /// An attribute with this name.
    Attribute(Name),
    /// Any element.
    AnyElement,
    /// Any attribute.
    AnyAttribute,
    /// Text.
    Text,
    /// A comment.
    Comment,
    /// A processing instruction.
    ProcessingInstruction,
    /// Element, text, comment or processing instruction: `node()`.
    AnyChild,
    /// Anything: patterns that start from `id()` or `key()` without steps.
    Anything,
}

#[derive(Debug)]
enum Root {
    /// Anywhere.
    None,
    /// `/`
    Document,
    /// `id(…)` or `key(…)`
    Call(Box<Code>),
}

#[derive(Debug)]
struct PatternStep {
    step: StepCode,
    /// Whether `//` rather than `/` stands before it.
    below: bool,
    /// Whether predicates depend on the position.
    positional: bool,
}

impl Pattern {
    /// Compiles a pattern.
    pub fn compile(text: &str, context: &StaticContext<'_>) -> Result<Pattern> {
        let ast = parser::parse_pattern(text, context)?;
        let mut compiler = Compiler::new(context);
        let mut alternatives = Vec::new();
        match &ast.kind {
            ExprKind::Union(operands) => {
                for operand in operands {
                    alternatives.push(alternative(operand, &mut compiler)?);
                }
            }
            _ => alternatives.push(alternative(&ast, &mut compiler)?),
        }
        let program = Program::of_context(context, compiler.locals);
        Ok(Pattern { alternatives, program, variables: compiler.variables, functions: compiler.functions })
    }

    /// The alternatives in the order written.
    pub fn alternatives(&self) -> &[Alternative] {
        &self.alternatives
    }

    /// The variables it refers to.
    pub fn variables(&self) -> &[Name] {
        &self.variables
    }

    /// The functions of the host it calls.
    pub fn functions(&self) -> &[Name] {
        &self.functions
    }

    /// Whether any alternative matches.
    pub fn matches<'a>(&'a self, node: Node, cx: &'a DynamicContext<'a>) -> Result<bool> {
        for index in 0..self.alternatives.len() {
            if self.alternative_matches(index, node, cx)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether one alternative matches. The context item of `cx` is not looked at.
    pub fn alternative_matches<'a>(&'a self, index: usize, node: Node, cx: &'a DynamicContext<'a>) -> Result<bool> {
        let Some(alternative) = self.alternatives.get(index) else { return Ok(false) };
        let mut evaluator = Evaluator::new(cx, &self.program);
        evaluator.current = Some(ItemRef::Node(node));
        alternative.matches(&evaluator, node)
    }
}

impl Alternative {
    /// The priority of a template rule that states none (XSLT 1.0 §5.5, 2.0 §6.4).
    pub fn default_priority(&self) -> f64 {
        self.priority
    }

    /// What to dispatch on.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// Whether the key says everything: a node that has it matches.
    pub fn is_key_only(&self) -> bool {
        match self.steps.as_slice() {
            [] => matches!(self.root, Root::Document),
            [only] => {
                let exact = !matches!(
                    only.step.test,
                    crate::code::Test::ProcessingInstruction(Some(_))
                        | crate::code::Test::ElementInNamespace(_)
                        | crate::code::Test::AttributeInNamespace(_)
                        | crate::code::Test::ElementLocal(_)
                        | crate::code::Test::AttributeLocal(_)
                        | crate::code::Test::DocumentOf(_)
                        | crate::code::Test::Nothing
                );
                matches!(self.root, Root::None) && only.step.predicates.is_empty() && exact
            }
            _ => false,
        }
    }

    fn matches<'a>(&'a self, ev: &Evaluator<'a>, node: Node) -> Result<bool> {
        self.matches_from(ev, self.steps.len(), node, false)
    }

    /// Whether the first `count` steps lead to `node`, or to one of its ancestors if `above` is set.
    fn matches_from<'a>(&'a self, ev: &Evaluator<'a>, count: usize, node: Node, above: bool) -> Result<bool> {
        let mut at = Some(node);
        while let Some(candidate) = at {
            ev.charge(1)?;
            if self.matches_exactly(ev, count, candidate)? {
                return Ok(true);
            }
            if !above {
                return Ok(false);
            }
            at = parent(ev, candidate);
        }
        Ok(false)
    }

    fn matches_exactly<'a>(&'a self, ev: &Evaluator<'a>, count: usize, node: Node) -> Result<bool> {
        let Some(index) = count.checked_sub(1) else { return self.root_matches(ev, node) };
        let Some(step) = self.steps.get(index) else { return Ok(false) };
        if !step.matches(ev, node)? {
            return Ok(false);
        }
        if index == 0 && matches!(self.root, Root::None) {
            return Ok(true);
        }
        match parent(ev, node) {
            Some(parent) => self.matches_from(ev, index, parent, step.below),
            None => Ok(false),
        }
    }

    fn root_matches<'a>(&'a self, ev: &Evaluator<'a>, node: Node) -> Result<bool> {
        match &self.root {
            Root::None => Ok(true),
            Root::Document => Ok(ev.session.document_of(node).kind(node.id) == NodeKind::Document),
            Root::Call(code) => {
                let focus = Focus::node(Node { id: Document::ROOT, ..node }, 1, 1);
                let mut found = false;
                ev.any_node(code, &focus, &mut |candidate| {
                    found = candidate == node;
                    Ok(if found { Flow::Stop } else { Flow::Continue })
                })?;
                Ok(found)
            }
        }
    }
}

fn parent(ev: &Evaluator<'_>, node: Node) -> Option<Node> {
    ev.session.document_of(node).parent(node.id).map(|id| Node { id, ..node })
}

impl PatternStep {
    fn matches<'a>(&'a self, ev: &Evaluator<'a>, node: Node) -> Result<bool> {
        let document = ev.session.document_of(node);
        let on_axis = match document.kind(node.id) {
            NodeKind::Attribute => self.step.axis == Axis::Attribute,
            // A document node has no parent: `child::document-node()` matches nothing.
            NodeKind::Document => self.step.axis == Axis::Myself,
            NodeKind::Namespace => false,
            _ => self.step.axis == Axis::Child,
        };
        if !on_axis || !ev.passes(document, node.document, &self.step.test, node.id) {
            return Ok(false);
        }
        if !self.positional {
            for predicate in &self.step.predicates {
                if !ev.holds(predicate, &self.step, node, 1, 1)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        // Positions count among the siblings, so the step is taken from the parent.
        let Some(parent) = parent(ev, node) else { return Ok(false) };
        let mut found = false;
        ev.step(&self.step, parent, &mut |candidate| {
            found = candidate == node;
            Ok(if candidate >= node { Flow::Stop } else { Flow::Continue })
        })?;
        Ok(found)
    }
}
