//! Synapse expressions: what stands inside `${…}`.
//!
//! They know nothing of the engine: the caller provides a [`Scope`]. A failed evaluation
//! is an [`EvaluationError`]; mediators log it and go on with nothing, as Micro Integrator does.
//!
//! The grammar is Micro Integrator's with its precedence (comparisons bind looser than `and`), widened
//! where Micro Integrator only fails: see [`ast::Node::Ambiguous`]. Both dialects are read, `var` and
//! `vars`, `config` and `configs`, `uriParams` and `pathParams`.
//!
//! Start reading at [`SynapseExpression`], then `parser`, `evaluate`.

mod arithmetic;
mod ast;
mod datetime;
mod decimal;
mod evaluate;
mod functions;
mod item;
mod lexer;
mod library;
mod parser;
mod paths;
mod readings;
mod strings;
mod template;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use penstock_message::Value;

pub use template::{Escape, Template};

use ast::Node;
use item::Item;
use library::Function;

/// A mistake in an expression, with the bytes of its text it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// What is wrong, lower case, without a full stop.
    pub message: String,
    /// Which bytes are meant.
    pub span: Range<usize>,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} (at character {} of the expression)", self.message, self.span.start + 1)
    }
}

impl std::error::Error for SyntaxError {}

/// Why an expression has no value for this message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluationError(pub String);

impl EvaluationError {
    /// The error for it.
    pub fn new(message: impl Into<String>) -> EvaluationError {
        EvaluationError(message.into())
    }
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for EvaluationError {}

/// Named values an expression can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedScope {
    /// `vars.x`.
    Variable,
    /// `headers.x`: a transport header, any case.
    Header,
    /// `props.synapse.x`: the default scope.
    Property,
    /// `props.axis2.x`.
    Axis2Property,
    /// `params.queryParams.x`.
    QueryParameter,
    /// `params.pathParams.x`.
    PathParameter,
    /// `params.functionParams.x`.
    FunctionParameter,
    /// `configs.x`: a deployment-time parameter.
    Config,
}

/// Where secrets are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vault {
    /// `wso2-vault(alias)`, `secret(alias)`.
    Wso2,
    /// `hashicorp-vault([namespace,] path, field)`.
    HashiCorp,
}

/// What an expression is evaluated against.
pub trait Scope {
    /// The body as JSON; XML is mapped. An error when there is none.
    fn payload(&mut self) -> Result<Arc<serde_json::Value>, EvaluationError>;

    /// The body as it is, for `${payload}` alone: JSON, or the XML payload.
    fn whole_payload(&mut self) -> Result<Value, EvaluationError> {
        self.payload().map(Value::Json)
    }

    /// A named value; `None` when there is none.
    fn named(&mut self, source: NamedScope, name: &str) -> Option<Value>;

    /// An XPath on the body, or on a variable (`name` or `name.member`).
    fn xpath(&mut self, expression: &str, variable: Option<&str>) -> Result<Value, EvaluationError>;

    /// A registry resource as text; a property of it when one is named.
    fn registry(&mut self, path: &str, property: Option<&str>) -> Option<String>;

    /// A secret.
    fn secret(&mut self, vault: Vault, path: &[String]) -> Result<String, EvaluationError>;

    /// Milliseconds since 1970.
    fn now_ms(&mut self) -> i64;

    /// What the clocks here are ahead of UTC at that time, in seconds.
    fn offset_seconds(&mut self, _epoch_ms: i64) -> i32 {
        0
    }

    /// Hears of every evaluation in a template that failed and became nothing.
    fn failed(&mut self, _expression: &str, _error: &EvaluationError) {}
}

/// Something that works here and would not, or not so, in Micro Integrator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lint {
    /// What, lower case, without a full stop.
    pub message: String,
    /// Which bytes of the expression are meant.
    pub span: Range<usize>,
}

/// A compiled expression.
#[derive(Debug)]
pub struct SynapseExpression {
    text: Arc<str>,
    node: Node,
    lints: Vec<Lint>,
}

impl SynapseExpression {
    /// Compiles what stands between `${` and `}`.
    pub fn parse(text: &str) -> Result<SynapseExpression, SyntaxError> {
        let (node, lints) = parser::parse(text)?;
        Ok(SynapseExpression { text: text.into(), node, lints })
    }

    /// The text as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What a reader should know about it.
    pub fn lints(&self) -> &[Lint] {
        &self.lints
    }

    /// Whether the body is looked at.
    pub fn reads_payload(&self) -> bool {
        self.node.reads_payload()
    }

    /// The paths that calls of `xpath(…)` have as literals.
    pub fn literal_paths(&self) -> Vec<&str> {
        let mut paths = Vec::new();
        self.node.visit(&mut |node| {
            if let Node::Call { function: Function::XPath, arguments, .. } = node
                && let Some(Node::Literal(Item::Text(path))) = arguments.first()
            {
                paths.push(&**path);
            }
        });
        paths
    }

    /// The value; `None` for null. A JSON string is text, other JSON stays as it was written.
    pub fn evaluate(&self, scope: &mut dyn Scope) -> Result<Option<Value>, EvaluationError> {
        Ok(self.node.evaluate(scope)?.into_value())
    }

    /// The value as text; `None` for null. XML is the text it has, or is written out when it has none.
    pub fn evaluate_text(&self, scope: &mut dyn Scope) -> Result<Option<String>, EvaluationError> {
        let item = self.node.evaluate(scope)?;
        Ok((!item.is_null()).then(|| item.text().into_owned()))
    }
}
