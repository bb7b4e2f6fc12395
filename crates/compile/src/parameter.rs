//! A parameter of a connector's operation or connection: the text of a child element, an expression in braces, or text
//! with `${…}` inside.

use penstock_engine::{Exchange, Fault, Needs};
use penstock_message::Value;
use penstock_xml::{Document, ParseOptions};

use crate::expression::synapse::Escape;
use crate::expression::{InlineText, braced};
use crate::{Compiler, Element, Expression};

/// A compiled parameter.
pub enum Parameter {
    /// Known at compile time.
    Constant(Value),
    /// Computed per message.
    Computed(Expression),
    /// Text with `${…}` inside.
    Text(InlineText),
}

impl Parameter {
    /// Compiles the content of an element. `None` after an error was reported.
    pub fn compile(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Parameter> {
        if let Some(inside) = el.children().next() {
            return Some(Parameter::Constant(element(&inside)?));
        }
        Parameter::compile_text(cx, el, &el.text(), Escape::None)
    }

    /// Compiles a text that belongs to `el`; `escape` says what the text is.
    pub fn compile_text(cx: &mut Compiler<'_>, el: &Element<'_>, text: &str, escape: Escape) -> Option<Parameter> {
        let at = el.place();
        Some(match braced(text) {
            // `{"a": 1}` is JSON and no expression: no expression begins with a double quote.
            Some(inner) if escape == Escape::Json && begins_an_object(inner) => inline(cx, el, text, escape)?,
            Some(inner) => {
                let inner = braced(inner).unwrap_or(inner);
                Parameter::Computed(Expression::compile(cx, el, inner, at)?)
            }
            None => inline(cx, el, text, escape)?,
        })
    }

    /// The value for a message.
    pub fn value(&self, exchange: &mut Exchange) -> Result<Value, Fault> {
        Ok(match self {
            Parameter::Constant(value) => value.clone(),
            Parameter::Computed(expression) => expression.value(exchange)?.unwrap_or_else(|| Value::string("")),
            Parameter::Text(text) => Value::string(text.text(exchange)),
        })
    }

    /// The value for a message as text.
    pub fn text(&self, exchange: &mut Exchange) -> Result<String, Fault> {
        Ok(self.value(exchange)?.to_text().into_owned())
    }

    /// The text, when it is known at compile time.
    pub fn constant(&self) -> Option<std::borrow::Cow<'_, str>> {
        match self {
            Parameter::Constant(value) => Some(value.to_text()),
            Parameter::Computed(_) | Parameter::Text(_) => None,
        }
    }

    /// What it does with the body.
    pub fn needs(&self) -> Needs {
        match self {
            Parameter::Constant(_) => Needs::Nothing,
            Parameter::Computed(expression) => expression.needs(),
            Parameter::Text(text) => text.needs(),
        }
    }
}

fn begins_an_object(inner: &str) -> bool {
    let inner = inner.trim_start();
    inner.is_empty() || inner.starts_with('"')
}

fn inline(cx: &mut Compiler<'_>, el: &Element<'_>, text: &str, escape: Escape) -> Option<Parameter> {
    if text.contains("${") {
        return Some(Parameter::Text(InlineText::compile(cx, el, text, escape, el.place())?));
    }
    Some(Parameter::Constant(Value::string(text)))
}

/// An element as a value.
fn element(el: &Element<'_>) -> Option<Value> {
    let document = Document::parse(el.to_xml(), &ParseOptions::default()).ok()?;
    let root = document.root_element()?;
    Some(Value::Xml(document.into(), vec![root]))
}
