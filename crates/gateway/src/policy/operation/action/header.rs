//! `SET_HEADER`, `REMOVE_HEADER`, `RENAME_HEADER`.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Mediator};

/// Sets a field in place of all of that name.
pub(super) struct Set {
    pub(super) name: Arc<str>,
    pub(super) value: Arc<str>,
}

/// Removes all fields of a name.
pub(super) struct Remove {
    pub(super) name: Arc<str>,
}

/// Gives the value of one field to another.
pub(super) struct Rename {
    pub(super) from: Arc<str>,
    pub(super) to: Arc<str>,
}

impl Mediator for Set {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        exchange.message.headers.set(&self.name, &*self.value);
        Ok(Flow::Next)
    }
}

impl Mediator for Remove {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        exchange.message.headers.remove(&self.name);
        Ok(Flow::Next)
    }
}

impl Mediator for Rename {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let headers = &mut exchange.message.headers;
        if let Some(value) = headers.get_bytes(&self.from).map(<[u8]>::to_vec) {
            headers.remove(&self.from);
            headers.set(&self.to, value);
        }
        Ok(Flow::Next)
    }
}
