//! `<foreach>`: runs a sequence for each element of a collection. Two versions: the old one changes
//! elements in place and may not call backends, the new one may and can put its results elsewhere.

mod gather;
mod in_place;

pub use in_place::with_message;

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::ports::Level;
use penstock_engine::{Exchange, Fault, Mediator, SequenceId};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "foreach", compile };

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    el.attribute("version");
    if el.attribute("collection").is_some() { gather::compile(el, cx) } else { in_place::compile(el, cx) }
}

/// The log line of an iteration that failed; the fault itself may be handled elsewhere, or nowhere when the loop goes on.
fn log_failure(exchange: &mut Exchange, index: usize, fault: &Fault) {
    let at = fault.at.as_ref().map_or_else(String::new, |at| format!(" at {at}"));
    let text = format!("iteration {} failed: {}{at}", index + 1, fault.message);
    exchange.log(Level::Error, "ForEachMediator", &text);
}

/// The sequence, by key or written inside.
fn sequence_of(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<SequenceId> {
    if let Some(key) = el.attribute("sequence") {
        return Some(cx.sequence_ref(key, el.attribute_place("sequence")));
    }
    let Some(inline) = el.child("sequence") else {
        cx.error(el.place(), "<foreach> needs a <sequence>");
        return None;
    };
    if let Some(key) = inline.attribute("key") {
        return Some(cx.sequence_ref(key, inline.attribute_place("key")));
    }
    inline.attribute("name");
    Some(cx.sequence_of(&inline))
}
