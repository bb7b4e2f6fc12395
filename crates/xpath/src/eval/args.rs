//! The arguments of standard functions.

use std::borrow::Cow;

use super::{Evaluator, Focus, context_item, gives_nodes};
use crate::code::{Code, Prepared};
use crate::error::{Result, XPathError, type_error};
use crate::value::{Atomic, ItemRef, Node, Sequence};

/// The arguments of a call of a standard function, evaluated on demand.
pub(crate) struct Args<'e, 'a> {
    pub(crate) ev: &'e Evaluator<'a>,
    pub(crate) focus: &'e Focus<'e>,
    pub(crate) codes: &'a [Code],
    pub(crate) prepared: Option<&'a Prepared>,
}

impl<'a> Args<'_, 'a> {
    pub(crate) fn len(&self) -> usize {
        self.codes.len()
    }

    pub(crate) fn compat(&self) -> bool {
        self.ev.compat()
    }

    pub(crate) fn code(&self, index: usize) -> Result<&'a Code> {
        self.codes.get(index).ok_or_else(|| XPathError::new("XPST0017", "missing argument"))
    }

    /// A string; the context item's when the argument is left out.
    pub(crate) fn string_or_context(&self) -> Result<Cow<'a, str>> {
        if let Some(code) = self.codes.first() {
            return self.ev.string(code, self.focus);
        }
        match context_item(self.focus)? {
            ItemRef::Node(node) => Ok(self.ev.session.string_value(node)),
            ItemRef::Atomic(atomic) => Ok(Cow::Owned(atomic.to_text(self.compat()).into_owned())),
        }
    }

    /// An argument of type `xs:string?`; the empty sequence is the empty string.
    pub(crate) fn string(&self, index: usize) -> Result<Cow<'a, str>> {
        let code = self.code(index)?;
        if !self.compat() && code.result == crate::ResultKind::Any {
            let value = self.ev.optional_atomic(code, self.focus)?;
            return match value {
                None => Ok(Cow::Borrowed("")),
                Some(atomic) => match atomic.as_text() {
                    Some(text) => Ok(Cow::Owned(text.to_string())),
                    None => {
                        let found = atomic.atomic_type().name();
                        Err(type_error(format!("expected a string, found a value of type {found}")).at(code.span))
                    }
                },
            };
        }
        if !self.compat() && matches!(code.result, crate::ResultKind::Number | crate::ResultKind::Boolean) {
            return Err(type_error("expected a string").at(code.span));
        }
        self.ev.string(code, self.focus)
    }

    /// A string argument, or nothing when it is left out or the empty sequence.
    pub(crate) fn optional_string(&self, index: usize) -> Result<Option<Cow<'a, str>>> {
        match self.codes.get(index) {
            None => Ok(None),
            Some(code) if self.ev.eval(code, self.focus)?.is_empty() => Ok(None),
            Some(_) => self.string(index).map(Some),
        }
    }

    pub(crate) fn number(&self, index: usize) -> Result<f64> {
        self.ev.number(self.code(index)?, self.focus)
    }

    pub(crate) fn boolean(&self, index: usize) -> Result<bool> {
        self.ev.boolean(self.code(index)?, self.focus)
    }

    pub(crate) fn sequence(&self, index: usize) -> Result<Sequence> {
        let value = self.ev.eval(self.code(index)?, self.focus)?;
        self.ev.charge(value.len())?;
        Ok(value)
    }

    pub(crate) fn atomized(&self, index: usize) -> Result<Vec<Atomic>> {
        self.ev.atomized(self.code(index)?, self.focus)
    }

    pub(crate) fn atomic(&self, index: usize) -> Result<Option<Atomic>> {
        self.ev.optional_atomic(self.code(index)?, self.focus)
    }

    pub(crate) fn integer(&self, index: usize) -> Result<i64> {
        let code = self.code(index)?;
        let missing = || type_error("expected an integer, found the empty sequence").at(code.span);
        self.ev.integer(code, self.focus)?.ok_or_else(missing)
    }

    /// A node argument, or the context node when it is left out; nothing for the empty sequence.
    pub(crate) fn node_or_context(&self) -> Result<Option<Node>> {
        let Some(code) = self.codes.first() else { return super::context_node(self.focus).map(Some) };
        if gives_nodes(code) {
            return if self.compat() {
                self.ev.first_node(code, self.focus)
            } else {
                self.ev.only_node(code, self.focus).map_err(|error| error.at(code.span))
            };
        }
        match self.ev.eval(code, self.focus)?.first() {
            None => Ok(None),
            Some(ItemRef::Node(node)) => Ok(Some(node)),
            Some(ItemRef::Atomic(_)) => Err(type_error("expected a node").at(code.span)),
        }
    }
}
