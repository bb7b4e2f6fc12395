//! `<builder>`: the whole body is read here. What kind of body it is, its media type says.

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use penstock_message::MediaType;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "builder", compile };

struct Builder;

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    for builder in el.elements("messageBuilder") {
        builder.accept_all();
        if builder.attribute("class").is_some() {
            cx.warn(builder.place(), "message builders are Java classes; the body is read as its media type says");
        }
    }
    Some(Box::new(Builder))
}

impl Mediator for Builder {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        // A body that is not what its type says is a fault here, and not later.
        match exchange.message.source_media() {
            _ if exchange.message.body.is_empty() => {}
            MediaType::Json => drop(exchange.json()?),
            kind if kind.is_xml() => drop(exchange.xml()?),
            _ => {}
        }
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}
