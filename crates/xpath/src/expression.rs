//! The compiled expression as its users see it.

use std::borrow::Cow;
use std::sync::Arc;

use crate::ast::{Expr, Name};
use crate::code::{Code, Op};
use crate::compile::{self, Compiler};
use crate::context::DynamicContext;
use crate::error::{Result, XPathError};
use crate::eval::{Evaluator, Flow};
use crate::parser;
use crate::program::Program;
use crate::static_context::{ResultKind, StaticContext};
use crate::value::{Node, Sequence};

/// A compiled expression: made once, evaluated many times, from any thread.
pub struct XPath {
    text: Arc<str>,
    ast: Expr,
    code: Code,
    program: Program,
    variables: Vec<Name>,
    functions: Vec<Name>,
    uses_context: bool,
}

impl XPath {
    /// Compiles an expression. Errors carry the place in `text`.
    pub fn compile(text: &str, context: &StaticContext<'_>) -> Result<XPath> {
        let ast = parser::parse(text, context)?;
        let mut compiler = Compiler::new(context);
        let code = compiler.compile(&ast)?;
        Ok(XPath {
            text: text.into(),
            uses_context: compile::uses_context(&ast),
            program: Program::of_context(context, compiler.locals),
            variables: compiler.variables,
            functions: compiler.functions,
            ast,
            code,
        })
    }

    /// The text it was compiled from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The syntax tree, aliases replaced.
    pub fn ast(&self) -> &Expr {
        &self.ast
    }

    /// Whether XPath 1.0 rules apply.
    pub(crate) fn is_compatible(&self) -> bool {
        self.program.compat
    }

    /// Whether the context item or its tree can matter. Functions of the host may look at it all the same: see
    /// [`XPath::functions`].
    pub fn uses_context(&self) -> bool {
        self.uses_context
    }

    /// The variables it refers to, each once, without those it binds itself and without aliases.
    pub fn variables(&self) -> &[Name] {
        &self.variables
    }

    /// The functions of the host it calls, each once.
    pub fn functions(&self) -> &[Name] {
        &self.functions
    }

    /// What is known about the value before it is computed.
    pub fn result_kind(&self) -> ResultKind {
        self.code.result
    }

    /// The value, when it is the same in every context.
    pub fn constant(&self) -> Option<&Sequence> {
        self.code.constant()
    }

    /// The slot, when the expression is nothing but a variable in one.
    pub fn as_slot(&self) -> Option<u32> {
        match self.code.op {
            Op::Slot(slot) => Some(slot),
            _ => None,
        }
    }

    /// Whether the expression is nothing but `.`.
    pub fn is_context_item(&self) -> bool {
        matches!(self.code.op, Op::ContextItem)
    }

    /// The value.
    pub fn evaluate<'a>(&'a self, cx: &'a DynamicContext<'a>) -> Result<Sequence> {
        let evaluator = Evaluator::new(cx, &self.program);
        evaluator.eval(&self.code, &evaluator.initial_focus())
    }

    /// The value as `string()` gives it; borrowed from the document where possible.
    pub fn evaluate_string<'a>(&'a self, cx: &'a DynamicContext<'a>) -> Result<Cow<'a, str>> {
        let evaluator = Evaluator::new(cx, &self.program);
        evaluator.string(&self.code, &evaluator.initial_focus())
    }

    /// The effective boolean value. Stops at the first node that decides it.
    pub fn evaluate_boolean<'a>(&'a self, cx: &'a DynamicContext<'a>) -> Result<bool> {
        let evaluator = Evaluator::new(cx, &self.program);
        evaluator.boolean(&self.code, &evaluator.initial_focus())
    }

    /// The value as `number()` gives it.
    pub fn evaluate_number<'a>(&'a self, cx: &'a DynamicContext<'a>) -> Result<f64> {
        let evaluator = Evaluator::new(cx, &self.program);
        evaluator.number(&self.code, &evaluator.initial_focus())
    }

    /// Hands on the nodes of the value one by one, in its order, without collecting them where that can be avoided.
    /// An atomic value is an error.
    pub fn for_each_node<'a>(
        &'a self,
        cx: &'a DynamicContext<'a>,
        visit: &mut dyn FnMut(Node) -> Result<Flow>,
    ) -> Result<()> {
        let evaluator = Evaluator::new(cx, &self.program);
        evaluator.each_node(&self.code, &evaluator.initial_focus(), visit)?;
        Ok(())
    }

    /// Appends the nodes of the value to a vector, which may be used again and again.
    pub fn nodes_into<'a>(&'a self, cx: &'a DynamicContext<'a>, nodes: &mut Vec<Node>) -> Result<()> {
        let evaluator = Evaluator::new(cx, &self.program);
        evaluator.collect_nodes(&self.code, &evaluator.initial_focus(), nodes)
    }

    /// The first node of the value. An atomic value is an error.
    pub fn first_node<'a>(&'a self, cx: &'a DynamicContext<'a>) -> Result<Option<Node>> {
        let evaluator = Evaluator::new(cx, &self.program);
        evaluator.first_node(&self.code, &evaluator.initial_focus())
    }
}

impl std::fmt::Debug for XPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "XPath({})", self.text)
    }
}

/// Line and column (both from 1, columns in characters) of a byte offset of a text, for messages.
pub fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (line, column)
}

/// What `XPathError` shows beneath its message: the expression with the place underlined.
pub fn underline(text: &str, error: &XPathError) -> String {
    let span = error.span();
    let (line, column) = line_and_column(text, span.start);
    let shown = text.lines().nth(line - 1).unwrap_or("");
    let width = text.get(span).map_or(1, |part| part.lines().next().unwrap_or("").chars().count()).max(1);
    format!("{shown}\n{}{}", " ".repeat(column - 1), "^".repeat(width))
}
