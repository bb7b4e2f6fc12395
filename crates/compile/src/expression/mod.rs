//! Attribute values that are constants or expressions, bound to an exchange: XPath, JSONPath
//! (`json-eval(…)`), Synapse expressions (`${…}`).

mod xpath;

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Needs, Place};
use penstock_message::Value;
use penstock_xml::{Document, NodeId};

use crate::{Compiler, Element};

/// A compiled expression and where it was written.
pub struct Expression {
    /// The text as it was written.
    pub text: Arc<str>,
    /// Where.
    pub at: Place,
    kind: Kind,
}

enum Kind {
    XPath(xpath::XPathExpression),
}

impl Expression {
    /// Compiles a text found on an element, whose namespaces hold. `None` after an error was reported.
    pub fn compile(cx: &mut Compiler<'_>, el: &Element<'_>, text: &str, at: Place) -> Option<Expression> {
        let kind = Kind::XPath(xpath::XPathExpression::compile(cx, el, text, &at)?);
        Some(Expression { text: text.into(), at, kind })
    }

    /// What it does with the body.
    pub fn needs(&self) -> Needs {
        match &self.kind {
            Kind::XPath(expression) => expression.needs(),
        }
    }

    /// The value. `None` when a path finds nothing.
    pub fn value(&self, exchange: &mut Exchange) -> Result<Option<Value>, Fault> {
        match &self.kind {
            Kind::XPath(expression) => expression.value(exchange),
        }
    }

    /// The value as text; empty when a path finds nothing.
    pub fn text(&self, exchange: &mut Exchange) -> Result<String, Fault> {
        Ok(self.value(exchange)?.map_or_else(String::new, |value| value.to_text().into_owned()))
    }

    /// The value as a condition: XPath's effective boolean value, or a boolean result.
    pub fn truth(&self, exchange: &mut Exchange) -> Result<bool, Fault> {
        match &self.kind {
            Kind::XPath(expression) => expression.truth(exchange),
        }
    }

    /// The nodes a path finds in the body, in document order.
    pub fn nodes(&self, exchange: &mut Exchange) -> Result<(Arc<Document>, Vec<NodeId>), Fault> {
        match &self.kind {
            Kind::XPath(expression) => expression.nodes(exchange),
        }
    }
}

/// A text that is a constant, an expression in braces, or text with `${…}` inside.
pub enum Text {
    /// Known at compile time.
    Constant(Arc<str>),
    /// Computed per message.
    Computed(Expression),
}

impl Text {
    /// Compiles an attribute that may hold `{expression}`.
    pub fn compile(cx: &mut Compiler<'_>, el: &Element<'_>, text: &str, at: Place) -> Option<Text> {
        match braced(text) {
            Some(inner) => Some(Text::Computed(Expression::compile(cx, el, inner, at)?)),
            None => Some(Text::Constant(text.into())),
        }
    }

    /// The text for a message.
    pub fn text(&self, exchange: &mut Exchange) -> Result<Arc<str>, Fault> {
        match self {
            Text::Constant(text) => Ok(text.clone()),
            Text::Computed(expression) => Ok(expression.text(exchange)?.into()),
        }
    }

    /// What it does with the body.
    pub fn needs(&self) -> Needs {
        match self {
            Text::Constant(_) => Needs::Nothing,
            Text::Computed(expression) => expression.needs(),
        }
    }
}

/// What stands between `{` and `}` when that is the whole text. `${…}` stays whole.
pub fn braced(text: &str) -> Option<&str> {
    let text = text.trim();
    if text.starts_with("${") && closing_brace(&text[1..]) == Some(text.len() - 2) {
        return Some(text);
    }
    text.strip_prefix('{')?.strip_suffix('}')
}

/// The offset of the brace that closes the one at the start; quoted braces do not count.
pub fn closing_brace(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut quote = None;
    for (index, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), _) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'{') => depth += 1,
            (None, b'}') => {
                depth -= 1;
                if depth == 0 {
                    return Some(index);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces() {
        for (text, expected) in [("{a}", Some("a")), ("${a}", Some("${a}")), ("a", None), ("{a", None), ("${a}/${b}", None)] {
            assert_eq!(braced(text), expected, "{text}");
        }
        assert_eq!(closing_brace("{a['}']}x"), Some(7));
    }
}
