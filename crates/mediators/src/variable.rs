//! `<variable>`: sets or removes a typed variable of the flow.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use penstock_message::Value;

use crate::typed::{Source, Type};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "variable", compile };

struct Variable {
    name: Arc<str>,
    /// `None` removes it.
    value: Option<(Source, Option<Type>)>,
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let name: Arc<str> = el.required(cx, "name")?.into();
    if el.attribute("action") == Some("remove") {
        for unused in ["value", "expression", "type"] {
            el.attribute(unused);
        }
        return Some(Box::new(Variable { name, value: None }));
    }
    let declared = match el.attribute("type") {
        None | Some("") => None,
        Some(text) => match Type::parse(text) {
            Some(declared) => Some(declared),
            None => {
                cx.error(
                    el.attribute_place("type"),
                    format!("`{text}` is not a type: STRING, BOOLEAN, INTEGER, LONG, DOUBLE, JSON, XML"),
                );
                return None;
            }
        },
    };
    let errors_possible =
        el.attribute("value").is_some() || el.attribute("expression").is_some() || el.children().next().is_some();
    if !errors_possible {
        cx.error(el.place(), "<variable> needs `value` or `expression`");
        return None;
    }
    let source = Source::compile(cx, el, declared)?;
    Some(Box::new(Variable { name, value: Some((source, declared)) }))
}

impl Mediator for Variable {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let Some((source, declared)) = &self.value else {
            exchange.message.variables.remove(&self.name);
            return Ok(Flow::Next);
        };
        let value = source.value(exchange)?.unwrap_or_else(|| Value::string(""));
        let value = match declared {
            Some(declared) => declared.coerce(value)?,
            None => value,
        };
        exchange.message.variables.set(self.name.clone(), value);
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        self.value.as_ref().map_or(Needs::Nothing, |(source, _)| source.needs())
    }
}
