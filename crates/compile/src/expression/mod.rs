//! Attribute values that are constants or expressions, bound to an exchange: XPath, JSONPath
//! (`json-eval(…)`), Synapse expressions (`${…}`).

mod functions;
mod json;
mod property;
mod scope;
pub mod synapse;
mod text;
mod xpath;

pub use text::{InlineText, Text, braced, closing_brace};

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Needs, Place};
use penstock_json::path::JsonPath;
use penstock_message::{Scope, Value};
use penstock_xml::{Document, NodeId};

use scope::{ExchangeScope, Paths};
use synapse::SynapseExpression;
use xpath::Reading;

use crate::{Compiler, Element};

/// What is said about secrets of HashiCorp Vault.
const NO_HASHICORP: &str = "HashiCorp Vault is not supported; give the secret an alias in the table `[secrets]`";

/// A compiled expression and where it was written.
pub struct Expression {
    /// The text as it was written.
    pub text: Arc<str>,
    /// Where.
    pub at: Place,
    /// Boxed: a text that may be constant should not be as large as the largest expression.
    kind: Box<ExpressionKind>,
}

#[expect(clippy::large_enum_variant, reason = "it is only ever boxed")]
enum ExpressionKind {
    XPath(xpath::XPathExpression),
    Property(property::PropertyExpression),
    Json(json::JsonExpression),
    Synapse(SynapseExpression, Paths),
}

impl Expression {
    /// Compiles a text found on an element, whose namespaces hold. `None` after an error was reported.
    pub fn compile(cx: &mut Compiler<'_>, el: &Element<'_>, text: &str, at: Place) -> Option<Expression> {
        let kind = if let Some(inner) = synapse_of(text) {
            let expression = compile_synapse(cx, inner, &at)?;
            let paths = Paths::new(el.namespaces(), expression.literal_paths());
            ExpressionKind::Synapse(expression, paths)
        } else if let Some(path) = json::path_of(text) {
            ExpressionKind::Json(json::JsonExpression::compile(cx, path, &at)?)
        } else if let Some(property) = property::PropertyExpression::parse(text) {
            ExpressionKind::Property(property)
        } else {
            ExpressionKind::XPath(xpath::XPathExpression::compile(cx, el, text, &at)?)
        };
        Some(Expression { text: text.into(), at, kind: Box::new(kind) })
    }

    /// What it does with the body.
    pub fn needs(&self) -> Needs {
        match &*self.kind {
            ExpressionKind::XPath(expression) => expression.needs(),
            ExpressionKind::Property(_) => Needs::Nothing,
            ExpressionKind::Json(expression) if !expression.reads_body() => Needs::Nothing,
            ExpressionKind::Json(_) => Needs::Whole,
            ExpressionKind::Synapse(expression, _) if !expression.reads_payload() => Needs::Nothing,
            ExpressionKind::Synapse(..) => Needs::Whole,
        }
    }

    /// The path, when it is a JSONPath on the body.
    pub fn json_path(&self) -> Option<&JsonPath> {
        match &*self.kind {
            ExpressionKind::Json(expression) => expression.body_path(),
            ExpressionKind::XPath(_) | ExpressionKind::Property(_) | ExpressionKind::Synapse(..) => None,
        }
    }

    /// The name of a header field, when it is nothing but the value of that field.
    pub fn header(&self) -> Option<&str> {
        match &*self.kind {
            ExpressionKind::Property(property) => property.header(),
            ExpressionKind::XPath(_) | ExpressionKind::Json(_) | ExpressionKind::Synapse(..) => None,
        }
    }

    /// Whether it is a JSONPath or a Synapse expression.
    pub fn is_json(&self) -> bool {
        matches!(&*self.kind, ExpressionKind::Json(_) | ExpressionKind::Synapse(..))
    }

    /// The value. `None` when a path finds nothing.
    pub fn value(&self, exchange: &mut Exchange) -> Result<Option<Value>, Fault> {
        match &*self.kind {
            ExpressionKind::XPath(expression) => expression.value(exchange),
            ExpressionKind::Property(property) => Ok(property.value(exchange)),
            ExpressionKind::Json(expression) => expression.value(exchange),
            ExpressionKind::Synapse(expression, paths) => Ok(synapse_value(expression, paths, exchange)),
        }
    }

    /// The value as text; empty when a path finds nothing.
    pub fn text(&self, exchange: &mut Exchange) -> Result<String, Fault> {
        Ok(self.text_if_any(exchange)?.unwrap_or_default())
    }

    /// The value as text; `None` for a property that is not there. A path that finds nothing is empty text.
    pub fn text_if_any(&self, exchange: &mut Exchange) -> Result<Option<String>, Fault> {
        match &*self.kind {
            ExpressionKind::XPath(expression) => expression.text(exchange),
            ExpressionKind::Property(property) => Ok(property.text(exchange)),
            ExpressionKind::Json(expression) => expression.text(exchange),
            ExpressionKind::Synapse(expression, paths) => {
                Ok(Some(logged(expression, paths, exchange, SynapseExpression::evaluate_text).unwrap_or_default()))
            }
        }
    }

    /// What a mediator that can begin before the body is complete does with it.
    pub fn peek_needs(&self) -> Needs {
        match &*self.kind {
            ExpressionKind::XPath(expression) if expression.peeks() => Needs::Peek,
            _ => self.needs(),
        }
    }

    /// The text of the first node a path finds, from as much of the body as it takes. `None` when
    /// more of the body must arrive first: return [`Flow::Pull`](penstock_engine::Flow::Pull).
    pub fn first_text(&self, exchange: &mut Exchange) -> Result<Option<String>, Fault> {
        let ExpressionKind::XPath(expression) = &*self.kind else { return self.text(exchange).map(Some) };
        match expression.peek_text(exchange) {
            Reading::Known(text) => Ok(Some(text)),
            Reading::More => Ok(None),
            Reading::Tree if self.must_wait(exchange) => Ok(None),
            Reading::Tree => expression.first_text(exchange).map(Some),
        }
    }

    /// Whether it is a property that is not there. Nothing matches that, not even what matches empty text.
    pub fn is_absent(&self, exchange: &mut Exchange) -> bool {
        matches!(&*self.kind, ExpressionKind::Property(property) if property.is_absent(exchange))
    }

    /// As [`Expression::truth`], from as much of the body as it takes.
    pub fn early_truth(&self, exchange: &mut Exchange) -> Result<Option<bool>, Fault> {
        let ExpressionKind::XPath(expression) = &*self.kind else { return self.truth(exchange).map(Some) };
        match expression.peek_truth(exchange) {
            Reading::Known(truth) => Ok(Some(truth)),
            Reading::More => Ok(None),
            Reading::Tree if self.must_wait(exchange) => Ok(None),
            Reading::Tree => expression.truth(exchange).map(Some),
        }
    }

    fn must_wait(&self, exchange: &Exchange) -> bool {
        self.needs() == Needs::Whole && exchange.message.body.is_stream()
    }

    /// The value as a condition: XPath's effective boolean value, or a boolean result.
    pub fn truth(&self, exchange: &mut Exchange) -> Result<bool, Fault> {
        match &*self.kind {
            ExpressionKind::XPath(expression) => expression.truth(exchange),
            ExpressionKind::Property(property) => Ok(property.truth(exchange)),
            ExpressionKind::Json(expression) => Ok(expression.value(exchange)?.is_some_and(|value| value.is_true())),
            ExpressionKind::Synapse(expression, paths) => {
                Ok(synapse_value(expression, paths, exchange).is_some_and(|value| value.is_true()))
            }
        }
    }

    /// The nodes a path finds in the body, in document order.
    pub fn nodes(&self, exchange: &mut Exchange) -> Result<(Arc<Document>, Vec<NodeId>), Fault> {
        match &*self.kind {
            ExpressionKind::XPath(expression) => expression.nodes(exchange),
            ExpressionKind::Json(_) => {
                Err(Fault::new(format!("the expression `{}` does not select XML nodes", self.text)))
            }
            ExpressionKind::Property(_) | ExpressionKind::Synapse(..) => match self.value(exchange)? {
                Some(Value::Xml(document, nodes)) => Ok((document, nodes)),
                _ => Err(Fault::new(format!("the expression `{}` does not select XML nodes", self.text))),
            },
        }
    }
}

/// The scope that the prefix of a variable names: `$ctx:x`, `$trp:x` and their kin.
fn scope_of(prefix: &str) -> Option<Scope> {
    Some(match prefix {
        "ctx" => Scope::Default,
        "trp" => Scope::Transport,
        "axis2" => Scope::Axis2,
        "func" => Scope::Function,
        "operation" => Scope::Operation,
        _ => return None,
    })
}

/// What stands inside `${…}` when that is the whole text.
fn synapse_of(text: &str) -> Option<&str> {
    let text = text.trim();
    (text.starts_with("${") && closing_brace(&text[1..]) == Some(text.len() - 2)).then(|| &text[2..text.len() - 1])
}

fn compile_synapse(cx: &mut Compiler<'_>, inner: &str, at: &Place) -> Option<SynapseExpression> {
    match SynapseExpression::parse(inner) {
        Ok(expression) => {
            for lint in expression.lints() {
                let place = Place { column: at.column + 2 + lint.span.start as u32, ..at.clone() };
                cx.warn(place, lint.message.clone());
            }
            Some(expression)
        }
        Err(error) => {
            let place = Place { column: at.column + 2 + error.span.start as u32, ..at.clone() };
            cx.error(place, format!("the expression `${{{inner}}}` is not valid: {}", error.message));
            None
        }
    }
}

fn synapse_value(expression: &SynapseExpression, paths: &Paths, exchange: &mut Exchange) -> Option<Value> {
    logged(expression, paths, exchange, SynapseExpression::evaluate)
}

/// Evaluates; a failure is a line in the log and no value, as in Micro Integrator.
fn logged<T>(
    expression: &SynapseExpression,
    paths: &Paths,
    exchange: &mut Exchange,
    evaluate: fn(&SynapseExpression, &mut dyn synapse::Scope) -> Result<Option<T>, synapse::EvaluationError>,
) -> Option<T> {
    use synapse::Scope as _;
    let mut scope = ExchangeScope { exchange, paths };
    match evaluate(expression, &mut scope) {
        Ok(value) => value,
        Err(error) => {
            scope.failed(expression.text(), &error);
            None
        }
    }
}
