//! `<aggregate>`: collects the branches of an `iterate` or `clone` and goes on with all of them in
//! one message.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use penstock_compile::expression::braced;
use penstock_compile::{Compiler, Element, Expression, MediatorKind};
use penstock_engine::{Exchange, Family, Fault, Flow, Mediator, Needs, Resume, SequenceId, clock};
use penstock_message::{Scope, Value};
use penstock_xml::{Document, TreeBuilder};

use crate::payload;
use crate::tree::{self, Content};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "aggregate", compile };

/// Tells the groups of one `<aggregate>` from those of another.
static NEXT: AtomicU64 = AtomicU64::new(0);

struct Aggregate {
    number: u64,
    id: Option<Arc<str>>,
    correlate: Option<Expression>,
    timeout: Option<Duration>,
    min: Count,
    max: Count,
    complete: Arc<Complete>,
}

/// What happens when a group is complete.
struct Complete {
    sequence: SequenceId,
    expression: Option<Expression>,
    enclosing: Option<Arc<str>>,
    /// `aggregateElementType="child"`: the children of what is found, not the found itself.
    children: bool,
}

/// A count, fixed or computed; what is not above zero does not count.
enum Count {
    Fixed(usize),
    Computed(Expression),
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let correlate = match el.child("correlateOn") {
        Some(correlate) => Some(cx.required_expression(&correlate, "expression")?),
        None => None,
    };
    let mut timeout = None;
    let (mut min, mut max) = (Count::Fixed(0), Count::Fixed(0));
    if let Some(condition) = el.child("completeCondition") {
        if let Some(text) = condition.attribute("timeout") {
            match text.trim().parse::<u64>() {
                Ok(0) => {}
                Ok(seconds) => timeout = Some(Duration::from_secs(seconds)),
                Err(_) => {
                    cx.error(condition.attribute_place("timeout"), format!("`{text}` is not a number of seconds"))
                }
            }
        }
        if let Some(counts) = condition.child("messageCount") {
            min = count(&counts, cx, "min")?;
            max = count(&counts, cx, "max")?;
            counts.finish(cx);
        }
        condition.finish(cx);
    }
    let Some(on_complete) = el.child("onComplete") else {
        cx.error(el.place(), "<aggregate> needs an <onComplete>");
        return None;
    };
    let complete = Complete {
        expression: cx.expression(&on_complete, "expression"),
        enclosing: on_complete.attribute("enclosingElementProperty").filter(|name| !name.is_empty()).map(Arc::from),
        children: on_complete.attribute("aggregateElementType") == Some("child"),
        sequence: match on_complete.attribute("sequence") {
            Some(key) => cx.sequence_ref(key, on_complete.attribute_place("sequence")),
            None => cx.sequence_of(&on_complete),
        },
    };
    on_complete.finish(cx);
    let id = el.attribute("id").filter(|id| !id.is_empty()).map(Arc::from);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Some(Box::new(Aggregate { number, id, correlate, timeout, min, max, complete: Arc::new(complete) }))
}

fn count(el: &Element<'_>, cx: &mut Compiler<'_>, name: &'static str) -> Option<Count> {
    let Some(text) = el.attribute(name) else { return Some(Count::Fixed(0)) };
    let at = el.attribute_place(name);
    match braced(text) {
        Some(expression) => Some(Count::Computed(Expression::compile(cx, el, expression, at)?)),
        None => match text.trim().parse::<i64>() {
            Ok(number) => Some(Count::Fixed(usize::try_from(number).unwrap_or(0))),
            Err(_) => {
                cx.error(at, format!("`{text}` is not a number"));
                None
            }
        },
    }
}

impl Count {
    fn of(&self, exchange: &mut Exchange) -> Result<usize, Fault> {
        match self {
            Count::Fixed(number) => Ok(*number),
            Count::Computed(expression) => {
                let text = expression.text(exchange)?;
                // A property of type DOUBLE says `2.0`.
                let number: f64 =
                    text.trim().parse().map_err(|_| Fault::new(format!("`{text}` is not a number of messages")))?;
                Ok(if number > 0.0 { number as usize } else { 0 })
            }
        }
    }

    fn needs(&self) -> Needs {
        match self {
            Count::Fixed(_) => Needs::Nothing,
            Count::Computed(expression) => expression.needs(),
        }
    }
}

/// What was collected so far.
#[derive(Default)]
struct Group {
    parts: Vec<Part>,
    complete: bool,
    expires: Option<Instant>,
    /// Whoever waits for the time to run out.
    waiting: Option<Waker>,
}

/// What one message contributes.
enum Part {
    Nodes(Vec<Content>),
    Json(Vec<serde_json::Value>),
}

impl Aggregate {
    /// The family this message belongs to. Families inside of it are over for the aggregated message.
    fn family(&self, exchange: &mut Exchange) -> Option<Rc<Family>> {
        let own = exchange.kinship.clone()?;
        let matches = |family: &Family| self.id.is_none() || family.id == self.id;
        if matches(&own.family) || !exchange.ancestry.iter().any(|kinship| matches(&kinship.family)) {
            return Some(own.family);
        }
        while let Some(outer) = exchange.ancestry.pop() {
            exchange.kinship = Some(outer.clone());
            if matches(&outer.family) {
                return Some(outer.family);
            }
        }
        Some(own.family)
    }

    fn part(&self, exchange: &mut Exchange) -> Result<Part, Fault> {
        let Some(expression) = &self.complete.expression else {
            return Ok(match payload::payload_of(exchange)? {
                Some(Value::Json(json)) => Part::Json(vec![(*json).clone()]),
                Some(value) => Part::Nodes(payload::contents_of(&value)),
                None => Part::Nodes(Vec::new()),
            });
        };
        if let Some(path) = expression.json_path() {
            // An empty answer contributes nothing.
            if exchange.message.body.is_empty() {
                return Ok(Part::Json(Vec::new()));
            }
            let root = exchange.json()?;
            return Ok(Part::Json(path.items(&root).unwrap_or_default()));
        }
        Ok(match expression.value(exchange)? {
            None => Part::Nodes(Vec::new()),
            Some(Value::Json(json)) => match &*json {
                serde_json::Value::Array(elements) => Part::Json(elements.clone()),
                other => Part::Json(vec![other.clone()]),
            },
            Some(Value::Xml(document, nodes)) if self.complete.children => {
                let inside = nodes.iter().flat_map(|node| document.children(*node).collect::<Vec<_>>());
                Part::Nodes(inside.map(|node| Content::Node(document.clone(), node)).collect())
            }
            Some(value) => Part::Nodes(payload::contents_of(&value)),
        })
    }

    /// Whether the group has all it needs.
    fn is_full(&self, count: usize, family: &Family, min: usize, max: usize) -> bool {
        // An `iterate` with another name says nothing about how many there are.
        let all = family.id == self.id && count >= family.size;
        all || (min > 0 && count >= min) || (max > 0 && count >= max)
    }
}

impl Mediator for Aggregate {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let Some(family) = self.family(exchange) else {
            // Nothing was split: there is nothing to collect, as in the original.
            return Ok(Flow::Next);
        };
        let mut key = self.number.to_string();
        if let Some(correlate) = &self.correlate {
            key.push(':');
            key.push_str(&correlate.text(exchange)?);
        }
        let group = family.slot(&key, RefCell::<Group>::default);
        if group.borrow().complete {
            return Ok(Flow::Stop);
        }
        let part = self.part(exchange)?;
        let (min, max) = (self.min.of(exchange)?, self.max.of(exchange)?);
        let count = {
            let mut group = group.borrow_mut();
            group.parts.push(part);
            group.parts.len()
        };
        if self.is_full(count, &family, min, max) {
            return self.complete.finish(exchange, &group);
        }
        let first = group.borrow().expires.is_none();
        match self.timeout {
            Some(timeout) if first => {
                let expires = Instant::now() + timeout;
                group.borrow_mut().expires = Some(expires);
                let complete = self.complete.clone();
                let waited = wait(group.clone(), expires);
                Ok(Flow::Wait(Box::pin(async move {
                    waited.await;
                    Resume::new(move |exchange: &mut Exchange, ()| {
                        if group.borrow().complete { Ok(Flow::Stop) } else { complete.finish(exchange, &group) }
                    })
                })))
            }
            _ => Ok(Flow::Stop),
        }
    }

    fn needs(&self) -> Needs {
        let expression = self.complete.expression.as_ref().map_or(Needs::Whole, Expression::needs);
        let correlate = self.correlate.as_ref().map_or(Needs::Nothing, Expression::needs);
        let strongest = expression.max(correlate).max(self.min.needs()).max(self.max.needs());
        if strongest == Needs::Nothing { Needs::Nothing } else { Needs::Whole }
    }
}

/// Until the time is over, or the group is complete without it.
async fn wait(group: Rc<RefCell<Group>>, expires: Instant) {
    let mut sleep = clock::sleep_until(expires);
    poll_fn(|cx| {
        let mut group = group.borrow_mut();
        if group.complete || sleep.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        group.waiting = Some(cx.waker().clone());
        Poll::Pending
    })
    .await;
}

impl Complete {
    /// Makes the message that goes on.
    fn finish(&self, exchange: &mut Exchange, group: &RefCell<Group>) -> Result<Flow, Fault> {
        let parts = {
            let mut group = group.borrow_mut();
            group.complete = true;
            if let Some(waiting) = group.waiting.take() {
                waiting.wake();
            }
            std::mem::take(&mut group.parts)
        };
        // The joined message belongs to the family its parent belonged to.
        exchange.kinship = exchange.ancestry.pop();
        let enclosing =
            match &self.enclosing {
                Some(name) => {
                    let value = exchange.property(Scope::Default, name);
                    Some(value.ok_or_else(|| {
                        Fault::new(format!("the property `{name}` for the enclosing element is not set"))
                    })?)
                }
                None => None,
            };
        if parts.iter().any(|part| matches!(part, Part::Json(_))) {
            let elements = parts.into_iter().flat_map(Part::into_json).collect();
            payload::set_json(exchange, Arc::new(enclosed_json(elements, enclosing)));
        } else {
            let contents: Vec<Content> = parts.into_iter().flat_map(Part::into_nodes).collect();
            let contents = match enclosing {
                Some(value) => vec![enclosed_xml(&value, &contents)?],
                None => contents,
            };
            join_nodes(exchange, &contents)?;
        }
        Ok(Flow::Enter(self.sequence))
    }
}

/// A JSON message stays one: what is XML for the sake of an XPath goes out as JSON again.
fn join_nodes(exchange: &mut Exchange, contents: &[Content]) -> Result<(), Fault> {
    let media_type = exchange.message.content_type().map(str::to_owned);
    let was_json = exchange.message.media_type() == penstock_message::MediaType::Json;
    payload::replace_by_nodes(exchange, contents)?;
    if was_json {
        payload::set_media_type(exchange, media_type.as_deref().unwrap_or("application/json"));
    }
    Ok(())
}

impl Part {
    fn into_json(self) -> Vec<serde_json::Value> {
        match self {
            Part::Json(elements) => elements,
            Part::Nodes(contents) => contents
                .iter()
                .map(|content| serde_json::Value::String(tree::text_of(std::slice::from_ref(content))))
                .collect(),
        }
    }

    fn into_nodes(self) -> Vec<Content> {
        match self {
            Part::Nodes(contents) => contents,
            Part::Json(_) => Vec::new(),
        }
    }
}

/// The list, as the member that the property names when there is one.
fn enclosed_json(elements: Vec<serde_json::Value>, enclosing: Option<Value>) -> serde_json::Value {
    let list = serde_json::Value::Array(elements);
    let mut hull = serde_json::Map::new();
    match enclosing {
        None => return list,
        Some(Value::Json(json)) => match &*json {
            // An object with one member says how the list is called.
            serde_json::Value::Object(members) => {
                hull = members.clone();
                match members.keys().next_back() {
                    Some(last) => hull.insert(last.clone(), list),
                    None => return list,
                };
            }
            serde_json::Value::String(name) => {
                hull.insert(name.clone(), list);
            }
            _ => return list,
        },
        Some(Value::Xml(document, nodes)) => match nodes.first() {
            Some(node) => {
                hull.insert(document.local_name(*node).to_owned(), list);
            }
            None => return list,
        },
        Some(other) => {
            hull.insert(other.to_text().into_owned(), list);
        }
    }
    serde_json::Value::Object(hull)
}

/// A copy of the enclosing element with the parts after its own content.
fn enclosed_xml(enclosing: &Value, parts: &[Content]) -> Result<Content, Fault> {
    let hull = payload::contents_of(enclosing);
    let Some(Content::Node(document, node)) = hull.first() else {
        return Err(Fault::new("the property for the enclosing element is not XML"));
    };
    let mut builder = TreeBuilder::new();
    tree::open_copy(&mut builder, document, *node);
    builder.copy_children(document, *node);
    tree::insert(&mut builder, parts);
    builder.end_element();
    let document: Arc<Document> = Arc::new(builder.finish());
    let root = document
        .root_element()
        .ok_or_else(|| Fault::new("the property for the enclosing element is not an element"))?;
    Ok(Content::Node(document, root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_get_the_name_the_property_gives_them() {
        let elements = || vec![serde_json::json!(1), serde_json::json!(2)];
        for (enclosing, expected) in [
            (None, "[1,2]"),
            (Some(Value::string("all")), r#"{"all":[1,2]}"#),
            (Some(Value::Json(Arc::new(serde_json::json!({"n": 0, "all": null})))), r#"{"n":0,"all":[1,2]}"#),
        ] {
            assert_eq!(enclosed_json(elements(), enclosing).to_string(), expected);
        }
    }
}
