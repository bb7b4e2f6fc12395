//! What the trace policy keeps of a request.

use std::cell::{Cell, RefCell};
use std::time::SystemTime;

use super::export::Attributes;

/// A request's place in its trace.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    pub(super) begun: Cell<Option<Begun>>,
    /// What the request said of itself, until its span is made.
    pub(super) asked: RefCell<Option<Attributes>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    pub(super) trace: u128,
    /// The caller's span; 0 when there is none.
    pub(super) parent: u64,
    pub(super) span: u64,
    /// The span of the request to the backend.
    pub(super) client_span: u64,
    pub(super) sampled: bool,
    /// The method, `_OTHER` when it is none that the conventions know.
    pub(super) method: &'static str,
    pub(super) start: SystemTime,
    pub(super) sent: Option<SystemTime>,
}

impl Trace {
    /// The field for the backend.
    pub(crate) fn field(&self) -> Option<String> {
        let begun = self.begun.get()?;
        if begun.sent.is_none() {
            self.begun.set(Some(Begun { sent: Some(SystemTime::now()), ..begun }));
        }
        Some(format!("00-{:032x}-{:016x}-{:02x}", begun.trace, begun.client_span, u8::from(begun.sampled)))
    }
}
