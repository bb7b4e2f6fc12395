//! Ends the response flow: the backend's answer goes to the client.

use penstock_engine::{Exchange, Fault, Flow, Mediator};

/// Answers with the message at hand.
pub(crate) struct Respond;

impl Mediator for Respond {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(Flow::Respond)
    }
}
