//! Text with expressions in it: `order ${payload.id} of ${vars.customer}`.

use std::sync::Arc;

use penstock_compile::expression::closing_brace;
use penstock_compile::{Compiler, Element, Expression};
use penstock_engine::{Exchange, Fault, Needs, Place};
use penstock_message::Value;

/// A compiled text.
pub struct Template {
    /// The parts in order.
    pub parts: Vec<TemplatePart>,
}

/// A part of a text.
pub enum TemplatePart {
    /// As it stands.
    Text(Arc<str>),
    /// Computed.
    Value(Expression),
}

impl Template {
    /// A text without expressions.
    pub fn constant(text: &str) -> Template {
        Template { parts: vec![TemplatePart::Text(text.into())] }
    }

    /// One expression in any language.
    pub fn expression(cx: &mut Compiler<'_>, el: &Element<'_>, text: &str, at: Place) -> Option<Template> {
        Some(Template { parts: vec![TemplatePart::Value(Expression::compile(cx, el, text, at)?)] })
    }

    /// Compiles a text that may contain `${…}`. A `${` that is never closed is text.
    pub fn compile(cx: &mut Compiler<'_>, el: &Element<'_>, text: &str, at: Place) -> Option<Template> {
        let mut parts = Vec::new();
        for piece in pieces(text) {
            parts.push(match piece {
                Piece::Text(text) => TemplatePart::Text(text.into()),
                Piece::Expression(text) => TemplatePart::Value(Expression::compile(cx, el, text, at.clone())?),
            });
        }
        Some(Template { parts })
    }

    /// The text for a message.
    pub fn text(&self, exchange: &mut Exchange) -> Result<String, Fault> {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Value(expression) => {
                    if let Some(value) = expression.value(exchange)? {
                        out.push_str(&display(&value));
                    }
                }
            }
        }
        Ok(out)
    }

    /// What it does with the body.
    pub fn needs(&self) -> Needs {
        needs_of(self.parts.iter().filter_map(|part| match part {
            TemplatePart::Value(expression) => Some(expression),
            TemplatePart::Text(_) => None,
        }))
    }
}

/// A value as a person reads it in a text.
pub fn display(value: &Value) -> std::borrow::Cow<'_, str> {
    value.to_text()
}

/// The strongest need among expressions.
pub fn needs_of<'e>(expressions: impl Iterator<Item = &'e Expression>) -> Needs {
    expressions.map(Expression::needs).max().unwrap_or_default()
}

/// A piece of a text as it was written.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'t> {
    /// Text.
    Text(&'t str),
    /// `${…}`, braces included.
    Expression(&'t str),
}

/// Cuts a text at its `${…}`.
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut from = 0;
    while let Some(at) = rest[from..].find("${").map(|at| at + from) {
        match closing_brace(&rest[at + 1..]) {
            None => from = at + 2,
            Some(length) => {
                if at > 0 {
                    pieces.push(Piece::Text(&rest[..at]));
                }
                let end = at + 1 + length + 1;
                pieces.push(Piece::Expression(&rest[at..end]));
                rest = &rest[end..];
                from = 0;
            }
        }
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::Piece::{Expression, Text};
    use super::*;

    #[test]
    fn texts_are_cut_at_expressions() {
        for (text, expected) in [
            ("", vec![]),
            ("a", vec![Text("a")]),
            ("${a}", vec![Expression("${a}")]),
            ("a ${b['}']} c${d}", vec![Text("a "), Expression("${b['}']}"), Text(" c"), Expression("${d}")]),
            ("a ${b", vec![Text("a ${b")]),
            ("${b ${c}", vec![Text("${b "), Expression("${c}")]),
            ("$1 {x}", vec![Text("$1 {x}")]),
        ] {
            assert_eq!(pieces(text), expected, "{text}");
        }
    }
}
