//! `<connector.operation configKey="…">`: an operation of a connector is a sequence template, called with the child
//! elements as its parameters. With a `configKey`, the local entry of that key says how the connector's `init` is called
//! first.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, FunctionScope, Mediator, Needs, SequenceId, Step};
use penstock_message::Value;
use penstock_xml::{Document, ParseOptions};

use crate::diagnostic::suggestion;
use crate::expression::synapse::Escape;
use crate::expression::{InlineText, braced};
use crate::{Compiler, Element, Expression, NameKind, Source};

/// A call of a connector's template.
struct Operation {
    name: Arc<str>,
    sequence: SequenceId,
    parameters: Vec<(Arc<str>, Argument)>,
}

enum Argument {
    Constant(Value),
    Computed(Expression),
    Text(InlineText),
    /// Not given, and without it the template does not run.
    Missing,
}

/// Enters a sequence: `init`, then the operation.
struct Both(SequenceId);

/// Compiles an operation.
pub(crate) fn compile(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Box<dyn Mediator>> {
    let key = el.attribute("configKey");
    let called = call(cx, el)?;
    let Some(key) = key else { return Some(Box::new(called)) };
    let at = el.attribute_place("configKey");
    let Some(entry) = cx.program.resources.get(key).cloned() else {
        cx.unknown(NameKind::RESOURCE, key, at);
        return Some(Box::new(crate::missing::Missing::new("local entry", key)));
    };
    let document = match Document::parse(entry.bytes.clone(), &ParseOptions::default()) {
        Ok(document) => document,
        Err(error) => {
            cx.error(at, format!("the local entry `{key}` is no XML: {}", error.message));
            return None;
        }
    };
    let source = Source::new(entry.at.file.clone(), Arc::new(document));
    let root = source.root()?;
    let init = call(cx, &root)?;
    root.finish(cx);
    let steps = [(init, "init"), (called, "operation")];
    let steps = steps.map(|(operation, kind)| Step { mediator: Box::new(operation), kind, at: el.place() });
    Some(Box::new(Both(cx.add_sequence(steps.into()))))
}

fn call(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Operation> {
    let name = el.name();
    let mut parameters = Vec::new();
    for child in el.children() {
        let argument = argument(cx, &child)?;
        child.finish(cx);
        parameters.push((Arc::from(child.name()), argument));
    }
    let Some(template) = cx.program.templates.get(name).cloned() else {
        unknown(cx, el);
        return None;
    };
    for declared in &template.parameters {
        if parameters.iter().any(|(given, _)| *given == declared.name) {
            continue;
        }
        match &declared.default {
            Some(default) => {
                parameters.push((declared.name.clone(), Argument::Constant(Value::String(default.clone()))))
            }
            None if declared.mandatory => {
                let missing = &declared.name;
                cx.warn(
                    el.place(),
                    format!("the operation `{name}` needs the parameter `{missing}`; the call is a fault"),
                );
                parameters.push((missing.clone(), Argument::Missing));
            }
            None => {}
        }
    }
    Some(Operation { name: name.into(), sequence: template.sequence, parameters })
}

fn argument(cx: &mut Compiler<'_>, child: &Element<'_>) -> Option<Argument> {
    if child.children().next().is_some() {
        let inside = child.children().next()?;
        let document = Document::parse(inside.to_xml(), &ParseOptions::default()).ok()?;
        let root = document.root_element()?;
        return Some(Argument::Constant(Value::Xml(Arc::new(document), vec![root])));
    }
    let text = child.text();
    let at = child.place();
    Some(match braced(&text) {
        Some(inner) => {
            let inner = braced(inner).unwrap_or(inner);
            Argument::Computed(Expression::compile(cx, child, inner, at)?)
        }
        None if text.contains("${") => Argument::Text(InlineText::compile(cx, child, &text, Escape::None, at)?),
        None => Argument::Constant(Value::string(text)),
    })
}

/// An operation that no connector has.
fn unknown(cx: &mut Compiler<'_>, el: &Element<'_>) {
    let name = el.name();
    let connector = name.split('.').next().unwrap_or_default();
    let message = if let Some(reason) = cx.unusable_connectors.get(connector) {
        format!("the operation `{name}` cannot run: {reason}")
    } else {
        let operations = cx.program.templates.keys().map(|key| &**key).filter(|key| key.contains('.'));
        match suggestion(name, operations) {
            Some(meant) => format!("no connector has the operation `{name}`, did you mean `{meant}`?"),
            None => format!(
                "no connector has the operation `{name}`; connectors are zip files in an application, in `synapse-libs` or in \
                 `resources/connectors`"
            ),
        }
    };
    cx.error(el.place(), message);
    el.accept_all();
}

impl Mediator for Operation {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let mut parameters = Vec::with_capacity(self.parameters.len());
        for (name, argument) in &self.parameters {
            let value = match argument {
                Argument::Constant(value) => value.clone(),
                Argument::Computed(expression) => expression.value(exchange)?.unwrap_or_else(|| Value::string("")),
                Argument::Text(text) => Value::string(text.text(exchange)),
                Argument::Missing => return Err(Fault::missing_parameter(&self.name, name)),
            };
            parameters.push((name.clone(), value));
        }
        let scope = FunctionScope { template: self.name.clone(), parameters, ..FunctionScope::default() };
        Ok(Flow::EnterTemplate(self.sequence, Box::new(scope)))
    }

    fn needs(&self) -> Needs {
        let needs = self.parameters.iter().map(|(_, argument)| match argument {
            Argument::Constant(_) | Argument::Missing => Needs::Nothing,
            Argument::Computed(expression) => expression.needs(),
            Argument::Text(text) => text.needs(),
        });
        if needs.max().unwrap_or_default() == Needs::Nothing { Needs::Nothing } else { Needs::Whole }
    }
}

impl Mediator for Both {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(Flow::Enter(self.0))
    }
}
