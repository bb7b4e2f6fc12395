//! `<switch source="…">`: the first case whose regular expression matches the whole text.

use penstock_compile::{Compiler, Element, Expression, MediatorKind};
use penstock_engine::{Exchange, Fault, Flow, Joins, Mediator, Needs, SequenceId};
use regex::Regex;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "switch", compile };

struct Switch {
    source: Expression,
    cases: Vec<(Regex, SequenceId)>,
    default: Option<SequenceId>,
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let source = cx.required_expression(el, "source")?;
    let mut cases = Vec::new();
    for case in el.elements("case") {
        let Some(pattern) = case.required(cx, "regex") else { continue };
        match Regex::new(&format!("^(?:{pattern})$")) {
            Ok(regex) => cases.push((regex, cx.sequence_of(&case))),
            Err(error) => {
                cx.error(
                    case.attribute_place("regex"),
                    format!("the regular expression `{pattern}` is not valid: {error}"),
                );
            }
        }
        case.finish(cx);
    }
    let default = el.child("default").map(|default| cx.sequence_of(&default));
    if cases.is_empty() && default.is_none() {
        cx.warn(el.place(), "<switch> has no <case>: it does nothing");
    }
    Some(Box::new(Switch { source, cases, default }))
}

impl Mediator for Switch {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        if self.source.is_absent(exchange) {
            return Ok(self.default.map_or(Flow::Next, Flow::Enter));
        }
        let Some(text) = self.source.first_text(exchange)? else { return Ok(Flow::Pull) };
        let found = self.cases.iter().find(|(regex, _)| regex.is_match(&text)).map(|(_, sequence)| *sequence);
        Ok(found.or(self.default).map_or(Flow::Next, Flow::Enter))
    }

    fn needs(&self) -> Needs {
        self.source.peek_needs()
    }

    fn joins(&self) -> Joins {
        Joins::Inside(self.cases.iter().map(|(_, sequence)| *sequence).chain(self.default).collect())
    }
}
