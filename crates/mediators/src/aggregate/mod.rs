//! `<aggregate>`: collects the branches of an `iterate` or `clone` and goes on with all of them in
//! one message.

mod complete;

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use penstock_compile::expression::braced;
use penstock_compile::{Compiler, Element, Expression, MediatorKind};
use penstock_engine::{Exchange, Family, Fault, Flow, Joins, Mediator, Needs, Resume, clock};
use penstock_message::Value;

use complete::{Complete, Contribution, Group};
use penstock_engine::payload;
use penstock_message::tree::Content;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "aggregate", compile };

/// Distinguishes the groups of several `<aggregate>`.
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
    fn evaluate(&self, exchange: &mut Exchange) -> Result<usize, Fault> {
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

    fn part(&self, exchange: &mut Exchange) -> Result<Contribution, Fault> {
        let Some(expression) = &self.complete.expression else {
            return Ok(match payload::payload_of(exchange)? {
                Some(Value::Json(json)) => Contribution::Json(vec![(*json).clone()]),
                Some(value) => Contribution::Nodes(payload::contents_of(&value)),
                None => Contribution::Nodes(Vec::new()),
            });
        };
        if let Some(path) = expression.json_path() {
            // An empty answer contributes nothing.
            if exchange.message.body.is_empty() {
                return Ok(Contribution::Json(Vec::new()));
            }
            let root = exchange.json()?;
            return Ok(Contribution::Json(path.items(&root).map(one).into_iter().collect()));
        }
        Ok(match expression.value(exchange)? {
            None => Contribution::Nodes(Vec::new()),
            Some(Value::Json(json)) => match &*json {
                serde_json::Value::Array(elements) => Contribution::Json(elements.clone()),
                other => Contribution::Json(vec![other.clone()]),
            },
            Some(Value::Xml(document, nodes)) if self.complete.children => {
                let inside = nodes.iter().flat_map(|node| document.children(*node).collect::<Vec<_>>());
                Contribution::Nodes(inside.map(|node| Content::Node(document.clone(), node)).collect())
            }
            Some(value) => Contribution::Nodes(payload::contents_of(&value)),
        })
    }

    /// Whether the group has all it needs.
    fn is_full(&self, count: usize, family: &Family, min: usize, max: usize) -> bool {
        // An `iterate` with another name says nothing about how many there are.
        let all = family.id == self.id && count >= family.size;
        all || (min > 0 && count >= min) || (max > 0 && count >= max)
    }
}

/// As in Micro Integrator, a message of a group has to say which.
fn uncorrelated() -> Fault {
    Fault::new("Failed to evaluate correlate expression: it finds nothing in the message")
}

impl Mediator for Aggregate {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let Some(family) = self.family(exchange) else {
            // Nothing was split: there is nothing to collect, as in Micro Integrator.
            return Ok(Flow::Next);
        };
        let mut key = self.number.to_string();
        if let Some(correlate) = &self.correlate {
            match correlate.value(exchange)? {
                Some(Value::Boolean(false)) => return Ok(Flow::Next),
                Some(Value::Xml(_, nodes)) if nodes.is_empty() => return Err(uncorrelated()),
                None => return Err(uncorrelated()),
                Some(_) => {}
            }
            key.push(':');
            key.push_str(&correlate.text(exchange)?);
        }
        let group = family.slot(&key, RefCell::<Group>::default);
        if group.borrow().complete {
            return Ok(Flow::Stop);
        }
        let part = self.part(exchange)?;
        let (min, max) = (self.min.evaluate(exchange)?, self.max.evaluate(exchange)?);
        // Reading a large part pauses, and another branch may have completed the group meanwhile.
        if group.borrow().complete {
            return Ok(Flow::Stop);
        }
        let count = {
            let mut group = group.borrow_mut();
            group.parts.push(part);
            family.collected.update(|count| count + 1);
            group.parts.len()
        };
        if self.is_full(count, &family, min, max) {
            return self.complete.finish(exchange, &family, &group);
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
                        if group.borrow().complete {
                            Ok(Flow::Stop)
                        } else {
                            complete.finish(exchange, &family, &group)
                        }
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

    fn joins(&self) -> Joins {
        Joins::Branches
    }
}

/// A message contributes one value: what was found, or a list of it when it was several.
fn one(mut found: Vec<serde_json::Value>) -> serde_json::Value {
    match found.len() {
        0 => serde_json::Value::Null,
        1 => found.remove(0),
        _ => serde_json::Value::Array(found),
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
