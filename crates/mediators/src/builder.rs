//! `<builder>`: the whole body is read here, as its media type and encoding say.

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "builder", compile };

struct Builder;

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    for builder in el.elements("messageBuilder") {
        builder.accept_all();
        if builder.attribute("class").is_some() {
            cx.warn(builder.place(), "message builders are Java classes; the body is read by its media type");
        }
    }
    Some(Box::new(Builder))
}

impl Mediator for Builder {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let program = exchange.program().clone();
        exchange.message.read_as_sent(&program.conversion)?;
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}
