//! `<respond/>`: the message goes back to the client, and nothing follows.

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Decision, Exchange, Fault, Flow, Mediator, RequestHead};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "respond", compile };

struct Respond;

fn compile(_el: &Element<'_>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    Some(Box::new(Respond))
}

impl Mediator for Respond {
    fn decide(&self, _head: &RequestHead<'_>) -> Decision<'_> {
        Decision::Respond
    }

    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(Flow::Respond)
    }
}
