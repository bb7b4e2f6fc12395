//! `<filter>`: if and else, by a condition (`xpath`) or by matching a text (`source` and `regex`).

use penstock_compile::{Compiler, Element, Expression, MediatorKind};
use penstock_engine::{Decision, Exchange, Fault, Flow, Joins, Mediator, Needs, RequestHead, SequenceId};
use regex::Regex;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "filter", compile };

struct Filter {
    condition: Condition,
    then: SequenceId,
    otherwise: Option<SequenceId>,
}

enum Condition {
    True(Expression),
    /// The whole text must match.
    Matches(Expression, Regex),
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let condition = match el.attribute("regex") {
        Some(pattern) => {
            let source = cx.required_expression(el, "source")?;
            match Regex::new(&format!("^(?:{pattern})$")) {
                Ok(regex) => Condition::Matches(source, regex),
                Err(error) => {
                    cx.error(
                        el.attribute_place("regex"),
                        format!("the regular expression `{pattern}` is not valid: {error}"),
                    );
                    return None;
                }
            }
        }
        None => Condition::True(cx.required_expression(el, "xpath")?),
    };
    let (then, otherwise) = match el.child("then") {
        Some(then) => (branch(cx, &then), el.child("else").map(|otherwise| branch(cx, &otherwise))),
        None => (cx.sequence_of(el), None),
    };
    Some(Box::new(Filter { condition, then, otherwise }))
}

/// `<then>` and `<else>` hold mediators, or name a sequence.
fn branch(cx: &mut Compiler<'_>, el: &Element<'_>) -> SequenceId {
    match el.attribute("sequence") {
        Some(key) => cx.sequence_ref(key, el.attribute_place("sequence")),
        None => cx.sequence_of(el),
    }
}

impl Mediator for Filter {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let holds = match &self.condition {
            Condition::True(condition) => condition.early_truth(exchange)?,
            Condition::Matches(source, _) if source.is_absent(exchange) => Some(false),
            Condition::Matches(source, regex) => source.first_text(exchange)?.map(|text| regex.is_match(&text)),
        };
        let Some(holds) = holds else { return Ok(Flow::Pull) };
        Ok(match (holds, self.otherwise) {
            (true, _) => Flow::Enter(self.then),
            (false, Some(otherwise)) => Flow::Enter(otherwise),
            (false, None) => Flow::Next,
        })
    }

    fn decide(&self, head: &RequestHead<'_>) -> Decision<'_> {
        let value = |source: &Expression| source.header().map(|name| head.fields.get(name));
        let holds = match &self.condition {
            Condition::True(source) => value(source).map(|value| value.is_some_and(|value| !value.is_empty())),
            Condition::Matches(source, regex) => {
                value(source).map(|value| value.is_some_and(|value| regex.is_match(&String::from_utf8_lossy(value))))
            }
        };
        match (holds, self.otherwise) {
            (None, _) => Decision::Unknown,
            (Some(true), _) => Decision::Enter(self.then),
            (Some(false), Some(otherwise)) => Decision::Enter(otherwise),
            (Some(false), None) => Decision::Next,
        }
    }

    fn needs(&self) -> Needs {
        match &self.condition {
            Condition::True(source) | Condition::Matches(source, _) => source.peek_needs(),
        }
    }

    fn joins(&self) -> Joins {
        Joins::Inside(std::iter::once(self.then).chain(self.otherwise).collect())
    }
}
