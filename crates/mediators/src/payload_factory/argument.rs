//! `<arg>`: a value, an XPath or Synapse expression, or a JSONPath.

use penstock_compile::{Compiler, Element, Expression};
use penstock_engine::{Exchange, Fault, Needs};
use penstock_message::Value;

/// A compiled argument.
pub struct Argument {
    source: ArgumentValue,
    /// The value is always text.
    literal: bool,
}

enum ArgumentValue {
    Constant(String),
    /// `evaluator="xml"`, or none.
    Path(Expression),
    /// `evaluator="json"`.
    Json(Expression),
}

/// The value of an argument for one message.
#[derive(Debug, Clone)]
pub struct Given {
    /// What it is.
    pub value: GivenValue,
    /// Whether it is to be taken as text.
    pub literal: bool,
}

/// What an argument can be.
#[derive(Debug, Clone)]
pub enum GivenValue {
    /// Text, of which it is not known whether it is XML or JSON.
    Text(String),
    /// JSON, with the text it had when it is the whole body.
    Json(std::sync::Arc<serde_json::Value>, Option<String>),
    /// Nothing was found.
    Nothing,
}

/// Compiles an `<arg>`.
pub fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Argument> {
    el.attribute("deepCheck");
    let literal = el.flag("literal", false);
    let evaluator = el.attribute("evaluator").unwrap_or("xml");
    let source = match (el.attribute("value"), evaluator) {
        (Some(value), _) => ArgumentValue::Constant(value.to_owned()),
        (None, "json") => {
            let text = el.required(cx, "expression")?;
            let at = el.attribute_place("expression");
            let text = if text.trim().starts_with("json-eval(") || text.contains("${") {
                text.to_owned()
            } else {
                format!("json-eval({text})")
            };
            ArgumentValue::Json(Expression::compile(cx, el, &text, at)?)
        }
        (None, _) => {
            let expression = cx.required_expression(el, "expression")?;
            if expression.json_path().is_some() {
                ArgumentValue::Json(expression)
            } else {
                ArgumentValue::Path(expression)
            }
        }
    };
    Some(Argument { source, literal })
}

impl Argument {
    /// The value for a message.
    pub fn evaluate(&self, exchange: &mut Exchange) -> Result<Given, Fault> {
        let value = match &self.source {
            ArgumentValue::Constant(text) => GivenValue::Text(text.clone()),
            ArgumentValue::Path(expression) => GivenValue::Text(expression.text(exchange)?),
            ArgumentValue::Json(expression) => json(expression, exchange)?,
        };
        Ok(Given { value, literal: self.literal })
    }

    /// Whether it looks at the body.
    pub fn reads_body(&self) -> bool {
        match &self.source {
            ArgumentValue::Constant(_) => false,
            ArgumentValue::Path(expression) | ArgumentValue::Json(expression) => expression.needs() != Needs::Nothing,
        }
    }
}

fn json(expression: &Expression, exchange: &mut Exchange) -> Result<GivenValue, Fault> {
    if expression.json_path().is_some_and(|path| path.is_root()) {
        // The whole body as it was written: white space, number formats and all.
        let raw = expression.text(exchange)?;
        return Ok(GivenValue::Json(exchange.json()?, Some(raw)));
    }
    Ok(match expression.value(exchange)? {
        None => GivenValue::Nothing,
        Some(Value::Json(json)) => GivenValue::Json(json, None),
        Some(Value::String(text)) => {
            GivenValue::Json(std::sync::Arc::new(serde_json::Value::String(text.to_string())), None)
        }
        Some(other) => GivenValue::Text(other.to_text().into_owned()),
    })
}
