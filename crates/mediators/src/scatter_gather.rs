//! `<scatter-gather>`: runs sequences on copies of the message and gathers what an expression finds
//! in each.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, Expression, MediatorKind};
use penstock_engine::ports::Level;
use penstock_engine::{Branch, BranchEnd, Exchange, Fault, Flow, Fork, Mediator, Needs, Resume, SequenceId, Side};
use penstock_message::Value;

use crate::foreach::with_message;
use crate::results::Output;
use crate::template::Template;
use penstock_engine::payload::copy_of;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "scatter-gather", compile };

struct ScatterGather {
    inner: Arc<Inner>,
}

struct Inner {
    sequences: Vec<SequenceId>,
    parallel: bool,
    expression: Expression,
    condition: Option<Expression>,
    /// As soon as so many answered, the rest is not waited for.
    min: Option<Template>,
    max: Option<Template>,
    /// With a limit in time, what is there then is enough.
    fewer_will_do: bool,
    output: Output,
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let Some(aggregation) = el.child("aggregation") else {
        cx.error(el.place(), "<scatter-gather> needs an <aggregation>");
        return None;
    };
    let expression_name =
        if aggregation.attribute("expression").is_some() { "expression" } else { "value-to-aggregate" };
    let expression = cx.required_expression(&aggregation, expression_name)?;
    let condition = cx.expression(&aggregation, "condition");
    // Each branch has the time its endpoints have.
    let fewer_will_do = aggregation.attribute("timeout").is_some();
    let min = count(&aggregation, cx, "min-messages")?;
    let max = count(&aggregation, cx, "max-messages")?;
    aggregation.finish(cx);
    let mut sequences = Vec::new();
    for sequence in el.elements("sequence") {
        sequences.push(match sequence.attribute("key") {
            Some(key) => cx.sequence_ref(key, sequence.attribute_place("key")),
            None => cx.sequence_of(&sequence),
        });
    }
    if sequences.is_empty() {
        cx.error(el.place(), "<scatter-gather> needs a <sequence>");
        return None;
    }
    let output = Output::compile(el, cx)?;
    let parallel = el.flag("parallel-execution", true);
    Some(Box::new(ScatterGather {
        inner: Arc::new(Inner { sequences, parallel, expression, condition, min, max, fewer_will_do, output }),
    }))
}

/// The outer `None` after an error.
fn count(el: &Element<'_>, cx: &mut Compiler<'_>, name: &'static str) -> Option<Option<Template>> {
    match el.attribute(name) {
        None => Some(None),
        Some(text) => Template::compile(cx, el, text, el.attribute_place(name)).map(Some),
    }
}

fn number(template: Option<&Template>, exchange: &mut Exchange) -> Result<Option<usize>, Fault> {
    let Some(template) = template else { return Ok(None) };
    let text = template.text(exchange)?;
    match text.trim().parse::<i64>() {
        Ok(number) => Ok(usize::try_from(number).ok().filter(|number| *number > 0)),
        Err(_) => Err(Fault::new(format!("`{text}` is not a number of messages"))),
    }
}

impl Inner {
    fn gather(&self, exchange: &mut Exchange, ends: Vec<BranchEnd>) -> Result<(), Fault> {
        let min = number(self.min.as_ref(), exchange)?;
        let max = number(self.max.as_ref(), exchange)?;
        let enough = min.into_iter().chain(max).min().unwrap_or(usize::MAX);
        let mut results: Vec<Value> = Vec::with_capacity(ends.len());
        let mut failure: Option<Fault> = None;
        let mut all_failed = true;
        for end in ends {
            if results.len() >= enough {
                break;
            }
            if let Some(fault) = end.fault {
                // An invalid request fails, with any result of the other branches.
                if fault.side == Side::Client {
                    return Err(fault);
                }
                exchange.log(Level::Error, "ScatterGather", &format!("a failed branch is omitted: {fault}"));
                failure.get_or_insert(fault);
                continue;
            }
            all_failed = false;
            let found = with_message(exchange, end.message, |exchange| {
                if let Some(condition) = &self.condition
                    && !condition.truth(exchange)?
                {
                    return Ok(None);
                }
                self.expression.value(exchange)
            })?;
            results.extend(found);
        }
        if let (true, Some(fault)) = (all_failed, failure) {
            return Err(fault);
        }
        if let Some(min) = min
            && results.len() < min
            && !self.fewer_will_do
        {
            return Err(Fault::new(format!("{} branches answered, {min} are needed", results.len())));
        }
        self.output.put(exchange, results)
    }
}

impl Mediator for ScatterGather {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let inner = self.inner.clone();
        let branches = inner
            .sequences
            .iter()
            .map(|sequence| Branch { message: copy_of(&exchange.message), sequence: Some(*sequence), endpoint: None })
            .collect();
        let parallel = inner.parallel;
        let join = Resume::new(move |exchange: &mut Exchange, ends: Vec<BranchEnd>| {
            inner.gather(exchange, ends)?;
            Ok(Flow::Next)
        });
        Ok(Flow::Fork(Box::new(Fork { branches, parallel, join: Some(join), continue_parent: false, id: None })))
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}
