//! Keys of sequences: known when the configuration is compiled, or computed for each message.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, Expression, expression::braced};
use penstock_engine::{Exchange, Fault, Needs, Place, SequenceId};

/// A sequence by key.
pub enum SequenceKey {
    /// Known.
    Static(SequenceId),
    /// Computed.
    Computed(Expression),
}

impl SequenceKey {
    /// Compiles a key that may be `{expression}`.
    pub fn compile(cx: &mut Compiler<'_>, el: &Element<'_>, key: &str, at: Place) -> Option<SequenceKey> {
        match braced(key) {
            Some(expression) => SequenceKey::expression(cx, el, expression, at),
            None => Some(SequenceKey::Static(cx.sequence_ref(key, at))),
        }
    }

    /// Compiles a key that is an expression.
    pub fn expression(cx: &mut Compiler<'_>, el: &Element<'_>, text: &str, at: Place) -> Option<SequenceKey> {
        Expression::compile(cx, el, text, at).map(SequenceKey::Computed)
    }

    /// The sequence for a message.
    pub fn find(&self, exchange: &mut Exchange) -> Result<SequenceId, Fault> {
        match self {
            SequenceKey::Static(id) => Ok(*id),
            SequenceKey::Computed(expression) => {
                let key: Arc<str> = expression.text(exchange)?.into();
                let found = exchange.program().sequence_names.get(&key).copied();
                found.ok_or_else(|| Fault::new(format!("no sequence is named `{key}`")))
            }
        }
    }

    /// What it does with the body.
    pub fn needs(&self) -> Needs {
        match self {
            SequenceKey::Static(_) => Needs::Nothing,
            SequenceKey::Computed(expression) => expression.needs(),
        }
    }
}
