//! `<variable>`: sets or removes a typed variable of the flow.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use penstock_message::Value;

use crate::typed::{Type, ValueSource};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "variable", compile };

struct Variable {
    name: Arc<str>,
    /// `None` removes it.
    value: Option<(ValueSource, Option<Type>)>,
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
    let source = ValueSource::compile(cx, el, declared)?;
    Some(Box::new(Variable { name, value: Some((source, declared)) }))
}

impl Mediator for Variable {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let Some((source, declared)) = &self.value else {
            exchange.message.variables.remove(&self.name);
            return Ok(Flow::Next);
        };
        let value = match declared {
            Some(Type::String) => Value::string(source.text(exchange)?.unwrap_or_default()),
            _ => source.value(exchange)?.unwrap_or_else(|| Value::string("")),
        };
        let value = match declared {
            Some(declared) if !fits(source, *declared, &value) => return Err(mismatch(source, *declared)),
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

/// Whether what a `${…}` gave can be of a type: text is no number and no truth, however it reads.
fn fits(source: &ValueSource, declared: Type, value: &Value) -> bool {
    let ValueSource::Expression(expression) = source else { return true };
    let number = match value {
        Value::Integer(_) | Value::Double(_) => true,
        Value::Json(json) => json.is_number(),
        _ => false,
    };
    match declared {
        _ if !expression.text.trim_start().starts_with("${") => true,
        Type::Boolean => matches!(value, Value::Boolean(_)) || matches!(value, Value::Json(json) if json.is_boolean()),
        Type::Integer(..) | Type::Double => number,
        Type::String | Type::Xml | Type::Json => true,
    }
}

fn mismatch(source: &ValueSource, declared: Type) -> Fault {
    let text = match source {
        ValueSource::Expression(expression) => expression.text.trim(),
        ValueSource::Constant(_) | ValueSource::Template(_) => "",
    };
    Fault::new(format!("Expected '{text}' result does not match the expected data type '{}'", declared.name()))
}
