//! `<dataServiceCall>`: recognised, and a fault when a message gets there. Data services are not supported yet; the rest of
//! the artifact is served.

use penstock_compile::{AlwaysFaults, Compiler, Element, MediatorKind};
use penstock_engine::Mediator;

/// `<dataServiceCall>`
pub const DATA_SERVICE_CALL: MediatorKind = MediatorKind { name: "dataServiceCall", compile: data_service_call };

fn data_service_call(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let name = el.required(cx, "serviceName")?;
    Some(refuse(el, cx, format!("data services are not served yet: `{name}` cannot be called")))
}

fn refuse(el: &Element<'_>, cx: &mut Compiler<'_>, text: String) -> Box<dyn Mediator> {
    el.accept_all();
    cx.warn(el.place(), format!("{text}; a message that gets here faults"));
    Box::new(AlwaysFaults::new(text))
}
