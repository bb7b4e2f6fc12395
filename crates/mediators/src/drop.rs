//! `<drop/>`: this message ends here. A client that was not answered gets 202.

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Exchange, Fault, Flow, Mediator};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "drop", compile };

struct Drop;

fn compile(_el: &Element<'_>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    Some(Box::new(Drop))
}

impl Mediator for Drop {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(Flow::Stop)
    }
}
