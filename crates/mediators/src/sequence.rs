//! `<sequence key="…"/>`: runs another sequence, then goes on.

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Exchange, Fault, Flow, Joins, Mediator, Needs};

use crate::key::SequenceKey;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "sequence", compile };

struct Sequence {
    key: SequenceKey,
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let Some(key) = el.attribute("key") else {
        // Written in place: a block of its own.
        let id = cx.sequence_of(el);
        if let Some(handler) = el.attribute("onError") {
            let handler = cx.sequence_ref(handler, el.attribute_place("onError"));
            cx.sequence_mut(id).on_error = Some(handler);
        }
        el.attribute("name");
        return Some(Box::new(Sequence { key: SequenceKey::Static(id) }));
    };
    let key = SequenceKey::compile(cx, el, key, el.attribute_place("key"))?;
    Some(Box::new(Sequence { key }))
}

impl Mediator for Sequence {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(Flow::Enter(self.key.find(exchange)?))
    }

    fn needs(&self) -> Needs {
        self.key.needs()
    }

    fn joins(&self) -> Joins {
        match &self.key {
            SequenceKey::Static(id) => Joins::Inside(vec![*id]),
            _ => Joins::Nothing,
        }
    }
}
