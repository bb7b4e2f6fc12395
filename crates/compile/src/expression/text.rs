//! Texts of artifacts that may hold expressions: constants, `{…}`, and text with `${…}` inside.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Needs, Place};

use super::scope::{ExchangeScope, Paths};
use super::{Expression, synapse};
use crate::{Compiler, Element};

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

/// Text with `${…}` inside, written for what the text is: JSON and XML escape what is put in.
pub struct InlineText {
    template: synapse::Template,
    paths: Paths,
    escape: synapse::Escape,
}

impl InlineText {
    /// Compiles a text. `None` after an error was reported.
    pub fn compile(
        cx: &mut Compiler<'_>,
        el: &Element<'_>,
        text: &str,
        escape: synapse::Escape,
        at: Place,
    ) -> Option<InlineText> {
        match synapse::Template::parse(text) {
            Ok(template) => {
                let literals = template.expressions().flat_map(synapse::SynapseExpression::literal_paths);
                let paths = Paths::new(el.namespaces(), literals);
                Some(InlineText { template, paths, escape })
            }
            Err(error) => {
                cx.error(at, format!("`{}`: {}", text.get(error.span.clone()).unwrap_or_default(), error.message));
                None
            }
        }
    }

    /// The same as a part of a text of JSON, which stands in a string of it or not.
    pub fn placed(self, in_string: bool) -> InlineText {
        InlineText { template: self.template.placed(in_string), ..self }
    }

    /// The text for a message. What fails becomes nothing, with a line in the log.
    pub fn text(&self, exchange: &mut Exchange) -> String {
        let options = exchange.program().conversion.mapping.clone();
        let mut scope = ExchangeScope { exchange, paths: &self.paths };
        self.template.render(&mut scope, self.escape, &options)
    }

    /// What it does with the body.
    pub fn needs(&self) -> Needs {
        if self.template.reads_payload() { Needs::Whole } else { Needs::Nothing }
    }
}

/// What stands between `{` and `}` when that is the whole text. `${…}` stays whole.
pub fn braced(text: &str) -> Option<&str> {
    let text = text.trim();
    if super::synapse_of(text).is_some() {
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
        for (text, expected) in
            [("{a}", Some("a")), ("${a}", Some("${a}")), ("a", None), ("{a", None), ("${a}/${b}", None)]
        {
            assert_eq!(braced(text), expected, "{text}");
        }
        assert_eq!(closing_brace("{a['}']}x"), Some(7));
    }
}
