//! Refuses every request with one error: what requests run that no operation takes.

use penstock_engine::{Exchange, Fault, Flow, Mediator};

use crate::error::GatewayError;

/// Refuses every request.
pub(crate) struct Refuse(pub GatewayError);

impl Mediator for Refuse {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Err(self.0.clone().into())
    }
}
