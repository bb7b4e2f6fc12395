//! Operation policies: which apply to an operation, what they are by definition, and the steps they become.
//!
//! A policy is actions of Choreo Connect (`action/`), a Synapse sequence (`synapse/`), or a question to a policy agent
//! (`opa.rs`). What cannot be used is left out with a warning, as Choreo Connect does; the others still apply. With
//! `--strict` it is an error.

mod action;
mod builtin;
pub(crate) mod class;
mod definition;
mod fault_flow;
mod opa;
mod step;
pub(crate) mod synapse;

use std::sync::Arc;

use penstock_catalog::{Interceptor, PolicyUse};
use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator, SequenceId, Step};
use penstock_projects::place;

use self::definition::{Resolved, resolve};
use self::fault_flow::{BeginFault, EndFault};
use self::step::{PolicyStep, Problem, Stage};
use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::{ErrorStyle, Gateway, Site};

/// The kind.
pub const KIND: PolicyKind = PolicyKind {
    name: "operation-policies",
    applies_to: ApiKinds::MESSAGES,
    phase: Phase::Message,
    request: Some(compile_request),
    response: Some(compile_response),
};

fn compile_request(gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let steps = steps(gateway, site, Stage::Request, cx);
    enter(steps, cx)
}

fn compile_response(gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let steps = steps(gateway, site, Stage::Response, cx);
    enter(steps, cx)
}

/// Runs steps as one of its own; `None` when there are none.
pub(crate) fn enter(steps: Vec<Step>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    if steps.is_empty() {
        return None;
    }
    Some(Box::new(Policy { sequence: cx.add_sequence(steps) }))
}

/// What runs when a request of an operation failed: its policies, then `answer`. `None` when it has no such policies.
pub(crate) fn fault_sequence(
    gateway: &Gateway,
    site: &Arc<Site>,
    answer: impl FnOnce() -> Box<dyn Mediator>,
    cx: &mut Compiler<'_>,
) -> Option<SequenceId> {
    let policies = steps(gateway, site, Stage::Fault, cx);
    if policies.is_empty() {
        return None;
    }
    let (style, at) = (gateway.config.error_style, place(&site.operation.at));
    let step = |mediator, kind| Step { mediator, kind, at: at.clone() };
    let mut steps = vec![step(Box::new(BeginFault { style }), "error")];
    steps.extend(policies);
    steps.push(step(Box::new(EndFault { style, answer: answer() }), "error"));
    Some(cx.add_sequence(steps))
}

/// The interceptor services that policies of a site name: for requests, for answers. The last of each counts.
pub(crate) fn interceptors(site: &Site) -> (Option<Interceptor>, Option<Interceptor>) {
    let of = |stage: Stage| {
        let mut uses = stage.uses(site).into_iter().rev();
        uses.find_map(|one| match resolve(one, ErrorStyle::ChoreoConnect) {
            Ok(Resolved::Action(call)) => action::interceptor(&call).ok().flatten(),
            _ => None,
        })
    };
    (of(Stage::Request), of(Stage::Response))
}

/// The steps of one flow.
fn steps(gateway: &Gateway, site: &Arc<Site>, stage: Stage, cx: &mut Compiler<'_>) -> Vec<Step> {
    let mut works: Vec<(PolicyStep, &PolicyUse)> = Vec::new();
    for one in stage.uses(site) {
        match work(gateway, site, stage, one, cx) {
            Ok(Some(work)) => works.push((work, one)),
            Ok(None) => {}
            Err(problem) => report(cx, one, problem),
        }
    }
    step::order(&mut works);
    let step =
        |(work, one): (PolicyStep, &PolicyUse)| Step { mediator: work.mediator, kind: work.kind, at: place(&one.at) };
    works.into_iter().map(step).collect()
}

/// What one policy does in a flow; `None` when others do it.
fn work(
    gateway: &Gateway,
    site: &Arc<Site>,
    stage: Stage,
    one: &PolicyUse,
    cx: &mut Compiler<'_>,
) -> Result<Option<PolicyStep>, Problem> {
    match resolve(one, gateway.config.error_style).map_err(Problem::Unprotected)? {
        Resolved::Action(call) => action::compile(gateway, site, stage, &call),
        Resolved::Synapse(sequence) => synapse::compile(gateway, site, one, &sequence, cx),
    }
}

fn report(cx: &mut Compiler<'_>, one: &PolicyUse, problem: Problem) {
    let at = place(&one.at);
    match problem {
        Problem::Skip(why) => {
            let message = format!("the policy `{}` is ignored: {why}", one.name);
            if cx.options.strict { cx.error(at, message) } else { cx.warn(at, message) }
        }
        Problem::Unprotected(why) => {
            let message = format!("the policy `{}` cannot be enforced: {why}", one.name);
            cx.unprotected(at, message);
        }
        Problem::Refuse(why) => cx.error(at, format!("the policy `{}` cannot be used: {why}", one.name)),
    }
}

/// Runs the policies of a flow.
struct Policy {
    sequence: SequenceId,
}

impl Mediator for Policy {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(Flow::Enter(self.sequence))
    }
}
