//! What stands where a name means nothing: it faults when a message gets there, as the original
//! does.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Mediator};

/// A thing that is defined nowhere.
pub struct Missing {
    message: Arc<str>,
}

impl Missing {
    /// A missing `noun` called `name`.
    pub fn new(noun: &str, name: &str) -> Missing {
        Missing { message: format!("no {noun} is named `{name}`").into() }
    }
}

impl Mediator for Missing {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Err(Fault::new(self.message.clone()))
    }
}
