//! `<xquery>`: read, and a fault when a message gets there, because XQuery is not supported.

use penstock_compile::{AlwaysFaults, Compiler, Element, MediatorKind};
use penstock_engine::Mediator;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "xquery", compile };

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let key = el.required(cx, "key")?;
    if el.attribute("target").is_some() {
        cx.expression(el, "target")?;
    }
    for variable in el.elements("variable") {
        variable.required(cx, "name")?;
        variable.required(cx, "type")?;
        for known in ["value", "key"] {
            variable.attribute(known);
        }
        if variable.attribute("expression").is_some() {
            cx.expression(&variable, "expression")?;
        }
        variable.finish(cx);
    }
    if let Some(settings) = el.child("dataSource") {
        settings.accept_all();
    }
    let text = format!("XQuery is not supported: `{key}` cannot run");
    let advice = format!("{text}; write it as <xslt>, <payloadFactory> or <script>; a message that reaches it faults");
    cx.warn(el.place(), advice);
    Some(Box::new(AlwaysFaults::new(text)))
}
