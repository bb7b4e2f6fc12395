//! `<router>`: targets by conditions on the message; the first that matches, or all of them.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, Expression, MediatorKind, endpoint};
use penstock_engine::{Destination, Exchange, Fault, Flow, Joins, Mediator, Needs, Place, SequenceId, Step};
use regex::Regex;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "router", compile };

/// One route: its target and the routes behind it, or only those.
struct Route {
    expression: Expression,
    /// The whole text must match. Without it the expression has to be true.
    pattern: Option<Regex>,
    matched: SequenceId,
    rest: Option<SequenceId>,
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let mut routes = Vec::new();
    for route in el.elements("route") {
        let expression = cx.required_expression(&route, "expression")?;
        let pattern = match route.attribute("match") {
            Some(pattern) => Some(compiled(cx, &route, pattern)?),
            None => None,
        };
        let Some(target) = route.child("target") else {
            cx.error(route.place(), "<route> needs a <target>");
            return None;
        };
        let target = target_steps(cx, &target);
        routes.push((expression, pattern, target, route.flag("breakRouter", true), route.place()));
        route.finish(cx);
    }
    // From the last route to the first, so that each knows what follows it.
    let mut rest = None;
    for (expression, pattern, mut steps, breaks, at) in routes.into_iter().rev() {
        if let (false, Some(rest)) = (breaks, rest) {
            steps.push(step(Always(Then::Enter(rest)), at.clone()));
        }
        let matched = cx.add_sequence(steps);
        rest = Some(cx.add_sequence(vec![step(Route { expression, pattern, matched, rest }, at)]));
    }
    let Some(first) = rest else {
        cx.error(el.place(), "<router> has no <route>");
        return None;
    };
    let mut steps = vec![step(Always(Then::Enter(first)), el.place())];
    if !el.flag("continueAfter", false) {
        steps.push(step(Always(Then::Stop), el.place()));
    }
    Some(Box::new(Always(Then::Enter(cx.add_sequence(steps)))))
}

fn compiled(cx: &mut Compiler<'_>, route: &Element<'_>, pattern: &str) -> Option<Regex> {
    match Regex::new(&format!("^(?:{pattern})$")) {
        Ok(regex) => Some(regex),
        Err(error) => {
            let message = format!("the regular expression `{pattern}` is not valid: {error}");
            cx.error(route.attribute_place("match"), message);
            None
        }
    }
}

/// What a target does, in order: addresses the message, then its sequence, or else its endpoint.
fn target_steps(cx: &mut Compiler<'_>, target: &Element<'_>) -> Vec<Step> {
    let at = target.place();
    let mut steps = Vec::new();
    let (to, action) = (target.attribute("to").map(Arc::from), target.attribute("soapAction").map(Arc::from));
    if to.is_some() || action.is_some() {
        steps.push(step(Address { to, action }, at.clone()));
    }
    let sequence = match (target.attribute("sequence"), target.child("sequence")) {
        (Some(key), _) => Some(cx.sequence_ref(key, target.attribute_place("sequence"))),
        (None, Some(inline)) => Some(cx.sequence_of(&inline)),
        (None, None) => None,
    };
    let destination = match (target.attribute("endpoint"), target.child("endpoint")) {
        (Some(key), _) => Some(cx.endpoint_ref(key, target.attribute_place("endpoint"))),
        (None, Some(inline)) => Some(endpoint::destination(cx, &inline)),
        (None, None) => None,
    };
    target.finish(cx);
    match (sequence, destination) {
        (Some(sequence), _) => steps.push(step(Always(Then::Enter(sequence)), at)),
        (None, Some(destination)) => steps.push(step(Always(Then::Send(destination)), at)),
        (None, None) => {}
    }
    steps
}

fn step(mediator: impl Mediator + 'static, at: Place) -> Step {
    Step { mediator: Box::new(mediator), kind: "router", at }
}

/// A step that is the same for all messages.
struct Always(Then);

enum Then {
    Enter(SequenceId),
    Send(Destination),
    Stop,
}

impl Mediator for Always {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(match &self.0 {
            Then::Enter(sequence) => Flow::Enter(*sequence),
            Then::Send(destination) => Flow::Send(destination.clone(), None),
            Then::Stop => Flow::Stop,
        })
    }

    fn joins(&self) -> Joins {
        match &self.0 {
            Then::Enter(sequence) => Joins::Inside(vec![*sequence]),
            Then::Send(_) | Then::Stop => Joins::Nothing,
        }
    }
}

/// `to` and `soapAction` of a target.
struct Address {
    to: Option<Arc<str>>,
    action: Option<Arc<str>>,
}

impl Mediator for Address {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let addressing = exchange.message.addressing_mut();
        if self.to.is_some() {
            addressing.to.clone_from(&self.to);
        }
        if self.action.is_some() {
            addressing.action.clone_from(&self.action);
        }
        Ok(Flow::Next)
    }
}

impl Mediator for Route {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let matches = match &self.pattern {
            Some(pattern) => pattern.is_match(&self.expression.text(exchange)?),
            None => self.expression.truth(exchange)?,
        };
        Ok(match (matches, self.rest) {
            (true, _) => Flow::Enter(self.matched),
            (false, Some(rest)) => Flow::Enter(rest),
            (false, None) => Flow::Next,
        })
    }

    fn needs(&self) -> Needs {
        self.expression.needs()
    }

    fn joins(&self) -> Joins {
        Joins::Inside(std::iter::once(self.matched).chain(self.rest).collect())
    }
}
