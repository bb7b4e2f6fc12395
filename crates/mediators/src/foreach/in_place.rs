//! The old version: each element is transformed where it is, one after another.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, Expression};
use penstock_engine::{Branch, BranchEnd, Exchange, Fault, Flow, Fork, Mediator, Needs, Resume, SequenceId};
use penstock_json::path::{Location, value_at};
use penstock_message::{Form, Message, Value};
use penstock_xml::{Document, NodeId};

use crate::split::{Collection, put_element, with_payload};
use penstock_engine::payload;
use penstock_message::tree::{self, Change, Changes, Content};

struct ForEach {
    inner: Arc<Inner>,
}

struct Inner {
    id: Option<Arc<str>>,
    expression: Expression,
    sequence: SequenceId,
    continue_on_failure: bool,
}

pub(super) fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let expression = cx.required_expression(el, "expression")?;
    for inside in el.children().flat_map(|sequence| sequence.children().collect::<Vec<_>>()) {
        if matches!(inside.name(), "call" | "callout" | "send") {
            cx.error(
                inside.place(),
                format!(
                    "<{}> cannot be used inside this <foreach>; with the attribute `collection` it can",
                    inside.name()
                ),
            );
        }
    }
    let inner = Inner {
        id: el.attribute("id").filter(|id| !id.is_empty()).map(Arc::from),
        expression,
        sequence: super::sequence_of(el, cx)?,
        continue_on_failure: el.flag("continueLoopOnFailure", false),
    };
    Some(Box::new(ForEach { inner: Arc::new(inner) }))
}

/// A loop that is running: the message it started with, and what became of the elements so far.
struct Loop {
    original: Message,
    collection: Collection,
    results: Vec<Option<Value>>,
}

impl Inner {
    fn name(&self, what: &str) -> Arc<str> {
        match &self.id {
            Some(id) => format!("{id}_{what}").into(),
            None => what.into(),
        }
    }

    /// Starts the next iteration, or puts the results in place. Each iteration starts with the
    /// properties the one before left.
    fn next(self: Arc<Self>, exchange: &mut Exchange, mut running: Loop) -> Result<Flow, Fault> {
        let index = running.results.len();
        exchange.message.properties.set(self.name("FOREACH_COUNTER"), Value::Integer(index as i64));
        if index == running.collection.len() {
            return self.finish(exchange, running);
        }
        let message = with_payload(exchange, |exchange| put_element(exchange, &running.collection, index))?;
        let sequence = Some(self.sequence);
        let join = Resume::new(move |exchange: &mut Exchange, ends: Vec<BranchEnd>| {
            for end in ends {
                if let Some(fault) = end.fault {
                    super::log_failure(exchange, index, &fault);
                    if !self.continue_on_failure {
                        exchange.message = running.original;
                        return Err(fault);
                    }
                    running.results.push(None);
                    continue;
                }
                exchange.message.properties = end.message.properties.clone();
                exchange.message.variables = end.message.variables.clone();
                let result = with_message(exchange, end.message, payload::payload_of)?;
                running.results.push(result);
            }
            self.next(exchange, running)
        });
        let branches = vec![Branch { message, sequence, endpoint: None }];
        Ok(Flow::Fork(Box::new(Fork { branches, parallel: false, join: Some(join), continue_parent: false, id: None })))
    }

    fn finish(&self, exchange: &mut Exchange, running: Loop) -> Result<Flow, Fault> {
        let after = exchange.message.properties.clone();
        let variables = exchange.message.variables.clone();
        exchange.message = running.original;
        exchange.message.properties = after;
        exchange.message.variables = variables;
        match &running.collection {
            Collection::Xml(document, nodes) => put_nodes(exchange, document, nodes, &running.results)?,
            Collection::Json(_) => self.put_json(exchange, &running.results)?,
        }
        Ok(Flow::Next)
    }

    fn put_json(&self, exchange: &mut Exchange, results: &[Option<Value>]) -> Result<(), Fault> {
        let Some(path) = self.expression.json_path() else { return Ok(()) };
        let mut root = (*exchange.json()?).clone();
        let places = element_places(&root, path);
        for (place, result) in places.iter().zip(results) {
            if let (Some(value), Some(slot)) = (result, value_at(&mut root, place)) {
                *slot = crate::enrich::json_of(value)?;
            }
        }
        payload::set_json(exchange, Arc::new(root));
        Ok(())
    }
}

/// Where each element that a path walks over stands: the elements of a list, else what is found.
pub(super) fn element_places(root: &serde_json::Value, path: &penstock_json::path::JsonPath) -> Vec<Location> {
    let mut places = Vec::new();
    let found = path.locate(root);
    let several = found.len() != 1;
    let selected = path.select(root);
    for (location, value) in found.into_iter().zip(selected) {
        match value {
            serde_json::Value::Array(elements) if !several => {
                for index in 0..elements.len() {
                    let mut place = location.clone();
                    place.push(penstock_json::path::Step::Element(index));
                    places.push(place);
                }
            }
            _ => places.push(location),
        }
    }
    places
}

/// As in Micro Integrator, the nodes go and their results come behind everything else in the parent of the first of them.
/// What has no result comes as it was.
pub(super) fn moved(document: &Arc<Document>, nodes: &[NodeId], results: &[Option<Value>]) -> Changes {
    let mut changes: Changes = nodes.iter().map(|node| (*node, Change::Replace(Vec::new()))).collect();
    if let Some(parent) = nodes.first().and_then(|first| document.parent(*first)) {
        let results = nodes.iter().zip(results).flat_map(|(node, result)| match result {
            Some(result) => payload::contents_of(result),
            None => vec![Content::Node(document.clone(), *node)],
        });
        changes.insert(parent, Change::Append(results.collect()));
    }
    changes
}

/// Puts the results where the nodes were.
pub(super) fn put_nodes(
    exchange: &mut Exchange,
    document: &Arc<Document>,
    nodes: &[NodeId],
    results: &[Option<Value>],
) -> Result<(), Fault> {
    let envelope = exchange.xml()?;
    if !Arc::ptr_eq(document, &envelope.document) {
        return Err(Fault::new("the elements of <foreach> are not part of the message"));
    }
    let edited = tree::edit(document, &moved(document, nodes, results));
    let edited = tree::envelope_of(edited, envelope.soap)
        .ok_or_else(|| Fault::new("the message is no longer a SOAP envelope"))?;
    exchange.message.body.set(Form::Xml(Arc::new(edited)));
    Ok(())
}

/// Evaluates something on another message. The side that a fault blames is the one that sent this message's body.
pub fn with_message<T>(
    exchange: &mut Exchange,
    message: Message,
    read: impl FnOnce(&mut Exchange) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let own = std::mem::replace(&mut exchange.message, message);
    let outcome = read(exchange);
    let readable = exchange.check_readable();
    let outcome = outcome.and_then(|found| readable.map(|()| found)).map_err(|fault| exchange.blamed(fault));
    exchange.message = own;
    outcome
}

impl Mediator for ForEach {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let collection = Collection::select(&self.inner.expression, exchange)?;
        if let Some(original) = payload::payload_of(exchange)? {
            exchange.message.properties.set(self.inner.name("FOREACH_ORIGINAL_MESSAGE"), original);
        }
        let original = payload::copy_of(&exchange.message);
        let results = Vec::with_capacity(collection.len());
        self.inner.clone().next(exchange, Loop { original, collection, results })
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

#[cfg(test)]
mod tests {
    use penstock_json::path::{Dialect, JsonPath};

    use super::*;

    #[test]
    fn lists_are_walked_element_by_element() {
        let root = serde_json::json!({"a": [1, 2, 3], "b": [{"c": 1}, {"c": 2}]});
        for (path, expected) in [("$.a", vec![2, 2, 2]), ("$.b[*].c", vec![3, 3]), ("$.b[0].c", vec![3])] {
            let places = element_places(&root, &JsonPath::parse(path, Dialect::Artifacts).unwrap());
            assert_eq!(places.iter().map(Vec::len).collect::<Vec<_>>(), expected, "{path}");
        }
    }
}
