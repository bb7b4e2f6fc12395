//! `<connector.operation configKey="…">`: an operation of a connector. Connectors of the [`crate::Registry`] are native;
//! any other operation is a sequence template, called with the child elements as its parameters. With a `configKey`, the
//! local entry of that key gives the parameters of the connector's `init`, which runs first.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, FunctionScope, Mediator, Needs, Place, SequenceId, Step};
use penstock_xml::{Document, ParseOptions};

use crate::diagnostic::suggestion;
use crate::missing::AlwaysFaults;
use crate::{Compiler, Element, NameKind, Parameter, SourceDocument};

/// A call of a connector's template.
struct Operation {
    name: Arc<str>,
    sequence: SequenceId,
    /// `None` is a mandatory parameter that the call lacks.
    parameters: Vec<(Arc<str>, Option<Parameter>)>,
}

/// Enters a sequence: `init`, then the operation.
struct Both(SequenceId);

/// Operations of one connector that cannot run, for the one diagnostic about them.
pub(crate) struct Unavailable {
    first: Place,
    /// In the order of their first use.
    operations: Vec<String>,
}

const NO_ARCHIVE: &str = "its archive is not among the files; connectors are zip files in an application, in \
                          `synapse-libs` or in `resources/connectors`";

/// Compiles an operation.
pub(crate) fn compile(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Box<dyn Mediator>> {
    let (connector, operation) = el.name().split_once('.').unwrap_or((el.name(), ""));
    if let Some(kind) = cx.registry.connector(connector) {
        if kind.operations.contains(&operation) {
            return (kind.compile)(el, cx);
        }
        cx.error(el.place(), no_operation(connector, operation, kind.operations.iter().copied()));
        el.accept_all();
        return None;
    }
    let key = el.attribute("configKey");
    let Some(called) = call(cx, el)? else { return unavailable(cx, el) };
    let Some(key) = key else { return Some(Box::new(called)) };
    let at = el.attribute_place("configKey");
    let Some(entry) = cx.resource(key) else {
        cx.unknown(NameKind::RESOURCE, key, at);
        return Some(Box::new(AlwaysFaults::missing("local entry", key)));
    };
    let document = match Document::parse(entry.bytes.clone(), &ParseOptions::default()) {
        Ok(document) => document,
        Err(error) => {
            cx.error(at, format!("the local entry `{key}` is not XML: {}", error.message));
            return None;
        }
    };
    let source = SourceDocument::embedded(&entry.at, Arc::new(document));
    let root = source.root()?;
    let Some(init) = call(cx, &root)? else { return unavailable(cx, &root) };
    root.finish(cx);
    let steps = [(init, "init"), (called, "operation")];
    let steps = steps.map(|(operation, kind)| Step { mediator: Box::new(operation), kind, at: el.place() });
    Some(Box::new(Both(cx.add_sequence(steps.into()))))
}

/// The call of an operation's template. `Some(None)` when no loaded connector has the operation.
fn call(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Option<Operation>> {
    let name = el.name();
    let Some(template) = cx.template(name) else { return Some(None) };
    let mut parameters = Vec::new();
    for child in el.children() {
        let parameter = Parameter::compile(cx, &child)?;
        child.finish(cx);
        parameters.push((Arc::from(child.name()), Some(parameter)));
    }
    for declared in &template.parameters {
        if parameters.iter().any(|(given, _)| *given == declared.name) {
            continue;
        }
        match &declared.default {
            Some(default) => {
                let default = Parameter::Constant(penstock_message::Value::String(default.clone()));
                parameters.push((declared.name.clone(), Some(default)));
            }
            None if declared.mandatory => {
                let missing = &declared.name;
                cx.warn(
                    el.place(),
                    format!("the operation `{name}` needs the parameter `{missing}`; the call is a fault"),
                );
                parameters.push((missing.clone(), None));
            }
            None => {}
        }
    }
    Some(Some(Operation { name: name.into(), sequence: template.sequence, parameters }))
}

/// An operation that cannot run: a fault when a message reaches it. The rest of the artifact is served.
fn unavailable(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Box<dyn Mediator>> {
    let name = el.name();
    el.accept_all();
    // What is reported names the operations of all artifacts.
    cx.use_once();
    let (connector, operation) = name.split_once('.').unwrap_or((name, ""));
    let own: Vec<&str> =
        cx.program.templates.keys().filter_map(|key| key.strip_prefix(connector)?.strip_prefix('.')).collect();
    if !own.is_empty() && !cx.unusable_connectors.contains_key(connector) {
        let message = no_operation(connector, operation, own.into_iter());
        cx.error(el.place(), message);
        return None;
    }
    let first = el.place();
    let uses = cx
        .unavailable_operations
        .entry(connector.to_owned())
        .or_insert_with(|| Unavailable { first, operations: Vec::new() });
    if !uses.operations.iter().any(|known| known == name) {
        uses.operations.push(name.to_owned());
    }
    Some(Box::new(AlwaysFaults::missing("connector operation that can run", name)))
}

fn no_operation<'o>(connector: &str, operation: &str, known: impl Iterator<Item = &'o str>) -> String {
    let hint = suggestion(operation, known);
    let hint = hint.map_or_else(String::new, |meant| format!(", did you mean `{connector}.{meant}`?"));
    format!("the connector `{connector}` has no operation `{operation}`{hint}")
}

/// Reports the connectors that cannot run: one diagnostic each, with the operations that artifacts call.
pub(crate) fn report_unavailable(cx: &mut Compiler<'_>) {
    for (connector, uses) in std::mem::take(&mut cx.unavailable_operations) {
        let operations = uses.operations.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let reason = cx.unusable_connectors.get(&connector).map_or(NO_ARCHIVE, String::as_str);
        let message =
            format!("the connector `{connector}` cannot run: {reason}; these operations are faults: {operations}");
        if cx.options.strict { cx.error(uses.first, message) } else { cx.warn(uses.first, message) }
    }
}

impl Mediator for Operation {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let mut parameters = Vec::with_capacity(self.parameters.len());
        for (name, parameter) in &self.parameters {
            let Some(parameter) = parameter else { return Err(Fault::missing_parameter(&self.name, name)) };
            parameters.push((name.clone(), parameter.value(exchange)?));
        }
        let scope = FunctionScope { template: self.name.clone(), parameters, ..FunctionScope::default() };
        Ok(Flow::EnterTemplate(self.sequence, Box::new(scope)))
    }

    fn needs(&self) -> Needs {
        let needs = self.parameters.iter().filter_map(|(_, parameter)| Some(parameter.as_ref()?.needs()));
        if needs.max().unwrap_or_default() == Needs::Nothing { Needs::Nothing } else { Needs::Whole }
    }
}

impl Mediator for Both {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(Flow::Enter(self.0))
    }
}
