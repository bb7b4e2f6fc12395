//! `<dataServiceCall>`: recognised, and a fault when a message gets there. Data services are not supported yet; the rest of
//! the artifact is served.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Exchange, Fault, Flow, Mediator};

/// `<dataServiceCall>`
pub const DATA_SERVICE_CALL: MediatorKind = MediatorKind { name: "dataServiceCall", compile: data_service_call };

/// Faults with a text when a message gets there.
pub struct Refusal(pub Arc<str>);

fn data_service_call(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let name = el.required(cx, "serviceName")?;
    Some(refuse(el, cx, format!("data services are not served yet: `{name}` cannot be called")))
}

fn refuse(el: &Element<'_>, cx: &mut Compiler<'_>, text: String) -> Box<dyn Mediator> {
    el.accept_all();
    cx.warn(el.place(), format!("{text}; a message that gets here faults"));
    Box::new(Refusal(text.into()))
}

impl Mediator for Refusal {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Err(Fault::new(self.0.clone()))
    }
}
