//! Synapse expressions and templates: what parses can be evaluated.

use std::sync::Arc;

use penstock_compile::expression::synapse::{
    Escape, EvaluationError, NamedScope, Scope, SynapseExpression, Template, Vault,
};
use penstock_json::mapping::Options;
use penstock_message::Value;

/// Pieces of expressions.
pub const DICTIONARY: &[&str] = &[
    "${",
    "}",
    "payload",
    "$.",
    "vars.a",
    "var[\"a\"]",
    "headers.h",
    "params.queryParams.q",
    "props.axis2.p",
    "configs.c",
    " and ",
    " || ",
    " ? ",
    " : ",
    "==",
    "<",
    "[?(@.b > ",
    ")]",
    "[1:2]",
    "..a",
    ".length()",
    "length(",
    "subString(",
    "round(",
    "split(",
    "formatDateTime(",
    "object(",
    "array(",
    "exists(",
    "not(",
    "1.5",
    "2147483647",
    "-",
    "'",
    "\"",
    "\\u0041",
    "é",
    "null",
];

struct Fixed;

impl Scope for Fixed {
    fn payload(&mut self) -> Result<Arc<serde_json::Value>, EvaluationError> {
        Ok(Arc::new(
            serde_json::json!({"a": [1, 2.50, "x"], "b": {"c": null, "d": "é"}, "n": 9_223_372_036_854_775_807_i64}),
        ))
    }

    fn named(&mut self, source: NamedScope, name: &str) -> Option<Value> {
        match (source, name) {
            (NamedScope::Variable, "a") => Some(Value::Integer(i64::MIN)),
            (NamedScope::Variable, _) => Some(Value::Double(1e300)),
            (_, "h") => Some(Value::string("12")),
            _ => None,
        }
    }

    fn xpath(&mut self, expression: &str, _variable: Option<&str>) -> Result<Value, EvaluationError> {
        Ok(Value::string(expression))
    }

    fn registry(&mut self, path: &str, property: Option<&str>) -> Option<String> {
        property.is_none().then(|| path.to_owned())
    }

    fn secret(&mut self, _vault: Vault, _path: &[String]) -> Result<String, EvaluationError> {
        Err(EvaluationError::new("no secrets"))
    }

    fn now_ms(&mut self) -> i64 {
        i64::MAX
    }
}

/// Any text, as an expression and as a template.
pub fn expression(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match SynapseExpression::parse(text) {
        Ok(expression) => {
            let _ = (expression.evaluate(&mut Fixed).is_ok(), expression.evaluate_text(&mut Fixed).is_ok());
            assert!(expression.lints().iter().all(|lint| lint.span.end <= text.len()));
        }
        Err(error) => assert!(error.span.start <= error.span.end && error.span.end <= text.len(), "{error:?}"),
    }
    match Template::parse(text) {
        Ok(template) => {
            for escape in [Escape::None, Escape::Json, Escape::Xml] {
                template.render(&mut Fixed, escape, &Options::default());
            }
        }
        Err(error) => assert!(error.span.start <= error.span.end && error.span.end <= text.len(), "{error:?}"),
    }
}
