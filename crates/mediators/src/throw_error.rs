//! `<throwError>`: raises a fault of a type and with a message of its own.

use std::sync::Arc;

use penstock_compile::expression::closing_brace;
use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Exchange, Fault, FaultCode, Flow, Mediator, Needs};

use crate::template::Template;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "throwError", compile };

struct ThrowError {
    code: Arc<str>,
    message: Template,
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let code = el.attribute("type").unwrap_or("ANY").into();
    let at = el.attribute_place("errorMessage");
    let message = match (el.attribute("errorMessage"), el.attribute("expression")) {
        (Some(text), _) => match in_braces(text) {
            Some(expression) => Template::expression(cx, el, expression, at)?,
            None => Template::compile(cx, el, text, at)?,
        },
        (None, Some(text)) => Template::expression(cx, el, text, at)?,
        (None, None) => Template::constant(""),
    };
    Some(Box::new(ThrowError { code, message }))
}

/// The expression of `{…}` and `{${…}}`. A text of JSON is none.
fn in_braces(text: &str) -> Option<&str> {
    let text = text.trim();
    if closing_brace(text)? + 1 != text.len() {
        return None;
    }
    let inside = text.strip_prefix('{')?.strip_suffix('}')?.trim();
    (!inside.is_empty() && !inside.starts_with(['"', '}'])).then_some(inside)
}

impl Mediator for ThrowError {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let message = self.message.text(exchange)?;
        Err(Fault { code: FaultCode::Word(self.code.clone()), ..Fault::new(message) })
    }

    fn needs(&self) -> Needs {
        self.message.needs()
    }
}
