//! `<send>`: the message goes out and the sequence ends; the answer takes the out path.

use penstock_compile::{Compiler, Element, MediatorKind, expression::braced};
use penstock_engine::{Decision, Destination, Exchange, Fault, Flow, Mediator, RequestHead};

use crate::key::SequenceKey;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "send", compile };

struct Send {
    destination: Destination,
    receive: Option<SequenceKey>,
    /// `buildmessage`: the body is read before it goes out.
    build: bool,
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let receive = match el.attribute("receive") {
        // An expression may stand in braces or without.
        Some(key) if braced(key).is_none() && key.contains(['(', '$']) => {
            Some(SequenceKey::expression(cx, el, key, el.attribute_place("receive"))?)
        }
        Some(key) => Some(SequenceKey::compile(cx, el, key, el.attribute_place("receive"))?),
        None => None,
    };
    let build = el.flag("buildmessage", false);
    Some(Box::new(Send { destination: cx.destination_of(el), receive, build }))
}

impl Mediator for Send {
    fn decide(&self, _head: &RequestHead<'_>) -> Decision<'_> {
        match self.receive {
            None if !self.build => Decision::Send(&self.destination),
            _ => Decision::Unknown,
        }
    }

    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        if self.build && exchange.message.body.is_stream() {
            return Ok(Flow::Buffer);
        }
        let receive = match &self.receive {
            Some(key) => Some(key.find(exchange)?),
            None => None,
        };
        Ok(Flow::Send(self.destination.clone(), receive))
    }
}
