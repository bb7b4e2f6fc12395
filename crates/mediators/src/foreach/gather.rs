//! The new version: one branch for each element, side by side or in order; the results replace the
//! collection, or become a variable or the body.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, Expression};
use penstock_engine::{Branch, BranchEnd, Exchange, Fault, Flow, Fork, Mediator, Needs, Resume, SequenceId};
use penstock_json::path::{Dialect, JsonPath, value_at};
use penstock_message::{Message, Value};

use super::in_place::{element_places, moved, put_nodes, with_message};
use crate::results::Output;
use crate::split::{Collection, put_element, with_payload};
use penstock_engine::payload;
use penstock_message::tree;

struct ForEach {
    inner: Arc<Inner>,
}

struct Inner {
    collection: Expression,
    sequence: SequenceId,
    parallel: bool,
    counter: Option<Arc<str>>,
    goal: Goal,
}

/// What happens to the results.
enum Goal {
    /// They replace the elements: of the body, or of a variable.
    Original(Place),
    Output(Output),
    /// They are not awaited.
    Nothing,
}

/// Where the collection lies.
enum Place {
    Body(Option<JsonPath>),
    Variable(Arc<str>, JsonPath),
    /// Found by an XPath: the body when the nodes are of it, else the variable that holds them.
    Nodes,
}

pub(super) fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let collection = cx.required_expression(el, "collection")?;
    let parallel = el.flag("parallel-execution", true);
    let counter = el.attribute("counter-variable").filter(|name| !name.is_empty()).map(Arc::from);
    if parallel && counter.is_some() {
        cx.warn(el.attribute_place("counter-variable"), "a counter needs `parallel-execution=\"false\"`");
    }
    let goal = if el.flag("continue-without-aggregation", false) {
        for unused in
            ["update-original", "target-variable", "result-content-type", "result-enclosing-element", "result-target"]
        {
            el.attribute(unused);
        }
        Goal::Nothing
    } else if el.flag("update-original", true) && el.attribute("result-target").is_none() {
        for unused in ["target-variable", "result-content-type", "result-enclosing-element", "result-type"] {
            el.attribute(unused);
        }
        Goal::Original(place_of(&collection.text))
    } else {
        Goal::Output(Output::compile(el, cx)?)
    };
    let sequence = super::sequence_of(el, cx)?;
    Some(Box::new(ForEach { inner: Arc::new(Inner { collection, sequence, parallel, counter, goal }) }))
}

/// `${payload.a.b}`, `${$.a.b}`, `${vars.x.a}`: a place that can be written to.
fn place_of(text: &str) -> Place {
    let inner = text.trim().trim_start_matches("${").trim_end_matches('}').trim();
    let path = |rest: &str| JsonPath::parse(&format!("${rest}"), Dialect::Artifacts).ok();
    for start in ["payload", "$"] {
        if let Some(rest) = inner.strip_prefix(start).filter(|rest| rest.is_empty() || rest.starts_with(['.', '['])) {
            return Place::Body(path(rest));
        }
    }
    for start in ["vars.", "var."] {
        if let Some(rest) = inner.strip_prefix(start) {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            if let Some(path) = path(&rest[end..]) {
                return Place::Variable(rest[..end].into(), path);
            }
        }
    }
    Place::Nodes
}

impl Inner {
    fn message(&self, exchange: &mut Exchange, collection: &Collection, index: usize) -> Result<Message, Fault> {
        let mut message = with_payload(exchange, |exchange| put_element(exchange, collection, index))?;
        if let Some(counter) = &self.counter {
            message.variables.set(counter.clone(), Value::Integer(index as i64));
        }
        Ok(message)
    }

    fn results(&self, exchange: &mut Exchange, ends: Vec<BranchEnd>) -> Result<Vec<Option<Value>>, Fault> {
        let mut results = Vec::with_capacity(ends.len());
        for (index, end) in ends.into_iter().enumerate() {
            if let Some(fault) = end.fault {
                super::log_failure(exchange, index, &fault);
                return Err(fault);
            }
            results.push(with_message(exchange, end.message, payload::payload_of)?);
        }
        Ok(results)
    }

    fn finish(&self, exchange: &mut Exchange, collection: &Collection, ends: Vec<BranchEnd>) -> Result<(), Fault> {
        let results = self.results(exchange, ends)?;
        match &self.goal {
            Goal::Nothing => Ok(()),
            Goal::Output(output) => output.put(exchange, results.into_iter().flatten().collect()),
            Goal::Original(place) => self.put_back(exchange, place, collection, &results),
        }
    }

    fn put_back(
        &self,
        exchange: &mut Exchange,
        place: &Place,
        collection: &Collection,
        results: &[Option<Value>],
    ) -> Result<(), Fault> {
        match (place, collection) {
            (Place::Variable(name, path), Collection::Json(_)) => {
                let value = exchange.message.variables.get(name).cloned();
                let Some(value) = value else { return Ok(()) };
                let root = replaced(crate::enrich::json_of(&value)?, path, results)?;
                exchange.message.variables.set(name.clone(), Value::Json(Arc::new(root)));
                Ok(())
            }
            (Place::Body(Some(path)), Collection::Json(_)) => {
                let root = replaced((*exchange.json()?).clone(), path, results)?;
                payload::set_json(exchange, Arc::new(root));
                Ok(())
            }
            (_, Collection::Xml(document, nodes)) => {
                let holder = exchange.message.variables.iter().find_map(|(name, value)| match value {
                    Value::Xml(held, top) if Arc::ptr_eq(held, document) => Some((Arc::<str>::from(name), top.clone())),
                    _ => None,
                });
                match holder {
                    Some((name, top))
                        if top.iter().any(|node| {
                            document.subtree(*node).contains(&nodes.first().map_or(0, |node| node.index()))
                        }) =>
                    {
                        let edited = Arc::new(tree::edit(document, &moved(document, nodes, results)));
                        let top = edited.root_element().into_iter().collect();
                        exchange.message.variables.set(name, Value::Xml(edited, top));
                        Ok(())
                    }
                    _ => put_nodes(exchange, document, nodes, results),
                }
            }
            _ => Err(Fault::new(format!(
                "the collection `{}` cannot be written to; name a target variable",
                self.collection.text
            ))),
        }
    }
}

fn replaced(
    mut root: serde_json::Value,
    path: &JsonPath,
    results: &[Option<Value>],
) -> Result<serde_json::Value, Fault> {
    let places = element_places(&root, path);
    for (place, result) in places.iter().zip(results) {
        if let (Some(result), Some(slot)) = (result, value_at(&mut root, place)) {
            *slot = crate::enrich::json_of(result)?;
        }
    }
    Ok(root)
}

impl Mediator for ForEach {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let inner = self.inner.clone();
        let collection = Collection::select(&inner.collection, exchange)?;
        let limit = exchange.program().limits.branches_max;
        if collection.len() > limit {
            return Err(Fault::new(format!("<foreach> finds {} elements, more than {limit}", collection.len())));
        }
        let mut branches = Vec::with_capacity(collection.len());
        for index in 0..collection.len() {
            let message = inner.message(exchange, &collection, index)?;
            branches.push(Branch { message, sequence: Some(inner.sequence), endpoint: None });
        }
        let parallel = inner.parallel;
        if matches!(inner.goal, Goal::Nothing) {
            return Ok(Flow::Fork(Box::new(Fork { branches, parallel, join: None, continue_parent: true, id: None })));
        }
        let join = Resume::new(move |exchange: &mut Exchange, ends: Vec<BranchEnd>| {
            inner.finish(exchange, &collection, ends)?;
            Ok(Flow::Next)
        });
        Ok(Flow::Fork(Box::new(Fork { branches, parallel, join: Some(join), continue_parent: false, id: None })))
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_can_be_written_to() {
        assert!(matches!(place_of("${payload.a.b}"), Place::Body(Some(_))));
        assert!(matches!(place_of("${payload}"), Place::Body(Some(_))));
        assert!(matches!(place_of("${vars.x.list}"), Place::Variable(name, _) if &*name == "x"));
        assert!(matches!(place_of("${xpath('//a')}"), Place::Nodes));
    }
}
