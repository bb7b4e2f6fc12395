//! `<conditionalRouter>`: sequences by conditions on the address, headers and query.

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Exchange, Fault, Flow, Joins, Mediator, SequenceId, Step};
use penstock_message::Scope;

use crate::condition::Condition;
use crate::uri::Uri;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "conditionalRouter", compile };

/// One route: its target and the routes behind it, or only those.
struct Route {
    condition: Option<Condition>,
    matched: SequenceId,
    rest: Option<SequenceId>,
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let mut routes = Vec::new();
    for route in el.elements("conditionalRoute") {
        let condition = match route.child("condition") {
            Some(condition) => Some(Condition::inside(cx, &condition)?),
            None => None,
        };
        route.attribute("asynchronous");
        let Some(target) = route.child("target") else {
            cx.error(route.place(), "<conditionalRoute> needs a <target>");
            return None;
        };
        let sequence = target_sequence(cx, &target);
        routes.push((condition, sequence, route.flag("breakRoute", false), route.place()));
        route.finish(cx);
    }
    if routes.is_empty() {
        cx.error(el.place(), "<conditionalRouter> has no <conditionalRoute>");
        return None;
    }
    // From the last route to the first, so that each knows what follows it.
    let mut rest = None;
    for (condition, target, breaks, at) in routes.into_iter().rev() {
        let mut after = vec![Step { mediator: Box::new(Enter(target)), kind: "target", at: at.clone() }];
        if let (false, Some(rest)) = (breaks, rest) {
            after.push(Step { mediator: Box::new(Enter(rest)), kind: "conditionalRoute", at: at.clone() });
        }
        let matched = cx.add_sequence(after);
        let route = Box::new(Route { condition, matched, rest });
        rest = Some(cx.add_sequence(vec![Step { mediator: route, kind: "conditionalRoute", at }]));
    }
    let mut steps = vec![Step { mediator: Box::new(Enter(rest?)), kind: "conditionalRouter", at: el.place() }];
    if !el.flag("continueAfter", false) {
        steps.push(Step { mediator: Box::new(End), kind: "conditionalRouter", at: el.place() });
    }
    Some(Box::new(Enter(cx.add_sequence(steps))))
}

fn target_sequence(cx: &mut Compiler<'_>, target: &Element<'_>) -> SequenceId {
    let sequence = match target.attribute("sequence") {
        Some(key) => cx.sequence_ref(key, target.attribute_place("sequence")),
        None => match target.child("sequence") {
            Some(inline) => cx.sequence_of(&inline),
            None => cx.sequence_of(target),
        },
    };
    target.finish(cx);
    sequence
}

/// Enters a sequence.
struct Enter(SequenceId);

impl Mediator for Enter {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(Flow::Enter(self.0))
    }

    fn joins(&self) -> Joins {
        Joins::Inside(vec![self.0])
    }
}

/// Ends the message's way: nothing follows a router that does not continue.
struct End;

impl Mediator for End {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(Flow::Stop)
    }
}

impl Mediator for Route {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let address = exchange.property(Scope::Default, "To").map(|value| value.to_text().into_owned());
        let uri = Uri::parse(&address.unwrap_or_default());
        let holds = self.condition.as_ref().is_none_or(|condition| condition.holds(&uri, exchange));
        Ok(match (holds, self.rest) {
            (true, _) => Flow::Enter(self.matched),
            (false, Some(rest)) => Flow::Enter(rest),
            (false, None) => Flow::Next,
        })
    }

    fn joins(&self) -> Joins {
        Joins::Inside(std::iter::once(self.matched).chain(self.rest).collect())
    }
}
