//! `<loopback/>`: from the in path to the out path, without asking a backend.

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Exchange, Fault, Flow, Mediator};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "loopback", compile };

struct Loopback;

fn compile(_el: &Element<'_>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    Some(Box::new(Loopback))
}

impl Mediator for Loopback {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(Flow::Loopback)
    }
}
