//! `<call-template>`: runs a sequence template with parameters of its own.

use std::sync::Arc;

use penstock_compile::expression::braced;
use penstock_compile::{AlwaysFaults, Compiler, Element, Expression, MediatorKind, NameKind};
use penstock_engine::{
    Exchange, Fault, Flow, FunctionScope, Joins, Late, Mediator, Needs, SequenceId, TemplateParameter,
};
use penstock_message::Value;

use crate::template::Template;
use crate::typed::inline_xml;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "call-template", compile };

struct CallTemplate {
    template: Arc<str>,
    sequence: SequenceId,
    parameters: Vec<(Arc<str>, Argument)>,
    on_error: Option<SequenceId>,
}

enum Argument {
    Constant(Value),
    Computed(Expression),
    /// Computed where it is used.
    Late(Arc<LateExpression>),
    Text(Template),
    /// Not given, and without it the template does not run.
    Missing,
}

/// The expression of `{{…}}`.
struct LateExpression(Expression);

impl std::fmt::Debug for LateExpression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl Late for LateExpression {
    fn value(&self, exchange: &mut Exchange) -> Result<Option<Value>, Fault> {
        self.0.value(exchange)
    }
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let name = el.required(cx, "target")?;
    let on_error = el.attribute("onError").map(|key| cx.sequence_ref(key, el.attribute_place("onError")));
    let mut parameters = Vec::new();
    for given in el.elements("with-param") {
        if let Some(parameter) = argument(&given, cx) {
            parameters.push(parameter);
        }
        given.finish(cx);
    }
    let Some(template) = cx.template(name) else {
        cx.unknown(NameKind::TEMPLATE, name, el.attribute_place("target"));
        return Some(Box::new(AlwaysFaults::new(format!("Sequence template {name} cannot be found"))));
    };
    check(el, cx, name, &template.parameters, &mut parameters);
    Some(Box::new(CallTemplate { template: name.into(), sequence: template.sequence, parameters, on_error }))
}

fn argument(given: &Element<'_>, cx: &mut Compiler<'_>) -> Option<(Arc<str>, Argument)> {
    let name: Arc<str> = given.required(cx, "name")?.into();
    let at = given.attribute_place("value");
    let argument = match given.attribute("value") {
        None => match given.children().next() {
            Some(child) => Argument::Constant(inline_xml(&child)),
            None => Argument::Constant(Value::string(given.text())),
        },
        Some(text) => match braced(text) {
            Some(inner) => match braced(inner) {
                // A parameter of the template that calls is known here only.
                Some(late) if !["$func:", "'func'", "functionParams"].iter().any(|known| late.contains(known)) => {
                    Argument::Late(Arc::new(LateExpression(Expression::compile(cx, given, late, at)?)))
                }
                inside => Argument::Computed(Expression::compile(cx, given, inside.unwrap_or(inner), at)?),
            },
            None if text.contains("${") => Argument::Text(Template::compile(cx, given, text, at)?),
            None => Argument::Constant(Value::string(text)),
        },
    };
    Some((name, argument))
}

/// Fills in defaults and says what is missing.
fn check(
    el: &Element<'_>,
    cx: &mut Compiler<'_>,
    name: &str,
    declared: &[TemplateParameter],
    given: &mut Vec<(Arc<str>, Argument)>,
) {
    for parameter in declared {
        if given.iter().any(|(key, _)| *key == parameter.name) {
            continue;
        }
        match &parameter.default {
            Some(default) => given.push((parameter.name.clone(), Argument::Constant(Value::String(default.clone())))),
            None if parameter.mandatory => {
                let missing = &parameter.name;
                cx.warn(el.place(), format!("template `{name}` needs the parameter `{missing}`; the call is a fault"));
                given.push((missing.clone(), Argument::Missing));
            }
            None => {}
        }
    }
}

impl Mediator for CallTemplate {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let mut parameters = Vec::with_capacity(self.parameters.len());
        let mut later: Vec<(Arc<str>, Arc<dyn Late>)> = Vec::new();
        for (name, argument) in &self.parameters {
            let value = match argument {
                Argument::Constant(value) => value.clone(),
                Argument::Computed(expression) => expression.value(exchange)?.unwrap_or_else(|| Value::string("")),
                Argument::Late(late) => {
                    later.push((name.clone(), late.clone()));
                    // It is not used yet, so a failure here is not a fault.
                    late.value(exchange).ok().flatten().unwrap_or_else(|| Value::string(""))
                }
                Argument::Text(template) => Value::string(template.text(exchange)?),
                Argument::Missing => return Err(Fault::missing_parameter(&self.template, name)),
            };
            parameters.push((name.clone(), value));
        }
        let scope = FunctionScope { template: self.template.clone(), parameters, late: later, on_error: self.on_error };
        Ok(Flow::EnterTemplate(self.sequence, Box::new(scope)))
    }

    fn needs(&self) -> Needs {
        let strongest = self.parameters.iter().map(|(_, argument)| match argument {
            Argument::Constant(_) | Argument::Missing => Needs::Nothing,
            Argument::Computed(expression) => expression.needs(),
            Argument::Late(late) => late.0.needs(),
            Argument::Text(template) => template.needs(),
        });
        if strongest.max().unwrap_or_default() == Needs::Nothing { Needs::Nothing } else { Needs::Whole }
    }

    fn joins(&self) -> Joins {
        Joins::Inside(vec![self.sequence])
    }
}
