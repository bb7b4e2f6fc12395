//! The policies of WSO2's API Platform: a row of them for each operation, those of the API before those of the operation.
//!
//! Requests pass the row in its order, answers in the opposite one. As in the original, what looks at heads alone runs
//! before what looks at bodies, whatever the order in the row. A policy that answers by itself ends everything: neither
//! the backend nor the policies of the answer see the request.
//!
//! Start reading at [`ChainPolicy`] and [`CHAIN`], the list; one file each. `params.rs` is what they read their
//! parameters with, `state.rs` what they keep from the request to the answer.

mod answer;
mod api_key_auth;
mod basic_auth;
mod config;
mod cors;
mod duration;
mod dynamic_endpoint;
mod guardrail;
mod headers;
mod interceptor_service;
mod jwt_auth;
mod log_message;
mod params;
mod ratelimit;
mod request_rewrite;
mod respond;
mod state;

use std::sync::Arc;

use penstock_catalog::ChainStep;
use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Step};

use self::params::{Notes, Params};
use super::operation::enter;
use crate::policy::{PolicyKind, Site};
use crate::{CallContext, Gateway, place};

pub use config::{JwtAuthConfig, PlatformConfig, RateLimitConfig, RefusalFormat};
pub(crate) use duration::go_duration;
pub use ratelimit::Algorithm;
pub(crate) use ratelimit::Buckets;
pub(crate) use state::ChainState;

/// The kind.
pub const KIND: PolicyKind =
    PolicyKind { name: "chain", request: Some(compile_request), response: Some(compile_response) };

/// A policy of the API Platform.
pub(crate) struct ChainPolicy {
    /// What files call it.
    name: &'static str,
    /// Reads its parameters and makes its mediators.
    make: fn(&Making<'_>, &Params<'_>) -> Option<Made>,
}

/// All that are served. Whatever is not among them is refused by its name.
const CHAIN: &[ChainPolicy] = &[
    headers::ADD,
    ratelimit::ADVANCED,
    api_key_auth::POLICY,
    basic_auth::POLICY,
    ratelimit::BASIC,
    guardrail::CONTENT_LENGTH,
    cors::POLICY,
    dynamic_endpoint::POLICY,
    interceptor_service::POLICY,
    guardrail::JSON_SCHEMA,
    jwt_auth::POLICY,
    log_message::POLICY,
    headers::MODIFY,
    guardrail::REGEX,
    headers::REMOVE,
    request_rewrite::POLICY,
    respond::POLICY,
    guardrail::SENTENCE_COUNT,
    headers::SET,
    guardrail::WORD_COUNT,
];

/// Whether a policy is served.
pub(crate) fn is_known(name: &str) -> bool {
    names().any(|known| known == name)
}

/// The names of all policies.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    CHAIN.iter().map(|policy| policy.name)
}

/// Where a policy of a row is applied.
pub(crate) struct Making<'a> {
    gateway: &'a Gateway,
    site: &'a Arc<Site>,
    step: &'a ChainStep,
    /// Its place in the row, by which it finds what it kept.
    index: usize,
}

/// When a mediator runs among the others of its flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// It looks at heads alone.
    Head,
    /// It runs once there is a body.
    Body,
}

/// What a policy does in either flow.
#[derive(Default)]
pub(crate) struct Made {
    request: Option<(Phase, Box<dyn Mediator>)>,
    response: Option<(Phase, Box<dyn Mediator>)>,
}

impl Made {
    fn request(phase: Phase, mediator: impl Mediator + 'static) -> Made {
        Made { request: Some((phase, Box::new(mediator))), response: None }
    }

    fn and_response(self, phase: Phase, mediator: impl Mediator + 'static) -> Made {
        Made { response: Some((phase, Box::new(mediator))), ..self }
    }
}

fn compile_request(gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let platform = site.api.platform.as_ref()?;
    let notes = Notes::default();
    let sandbox = platform.sandbox_host.clone().map(|host| Step {
        mediator: Box::new(Sandbox(host)),
        kind: "sandbox",
        at: place(&site.operation.at),
    });
    let steps = steps(gateway, site, &notes, false, |made| made.request);
    for (at, message) in notes.take() {
        cx.error(place(&at), message);
    }
    enter(sandbox.into_iter().chain(steps).collect(), cx)
}

fn compile_response(gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    site.api.platform.as_ref()?;
    // What is wrong was said for the request.
    let steps = steps(gateway, site, &Notes::default(), true, |made| made.response);
    enter(steps, cx)
}

/// The steps of a flow: heads before bodies.
fn steps(
    gateway: &Gateway,
    site: &Arc<Site>,
    notes: &Notes,
    backwards: bool,
    of: impl Fn(Made) -> Option<(Phase, Box<dyn Mediator>)>,
) -> Vec<Step> {
    let mut found: Vec<(Phase, Step)> = Vec::new();
    for (index, step) in site.operation.chain.iter().enumerate() {
        let Some(policy) = CHAIN.iter().find(|policy| *policy.name == *step.name) else {
            notes.error(&step.at, format!("the policy `{}` is not known", step.name));
            continue;
        };
        if let Some((_, at)) = &step.condition {
            notes.error(at, "`executionCondition` is not supported");
            continue;
        }
        let made = {
            let params = Params::new(&step.parameters, notes);
            (policy.make)(&Making { gateway, site, step, index }, &params)
        };
        if let Some((phase, mediator)) = made.and_then(&of) {
            found.push((phase, Step { mediator, kind: policy.name, at: place(&step.at) }));
        }
    }
    if backwards {
        found.reverse();
    }
    found.sort_by_key(|(phase, _)| *phase);
    found.into_iter().map(|(_, step)| step).collect()
}

/// Sends requests for a host to the sandbox.
struct Sandbox(Arc<str>);

impl Mediator for Sandbox {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let host = exchange.message.headers.get("host").unwrap_or_default();
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        if name.eq_ignore_ascii_case(&self.0) {
            let context = CallContext::of(exchange)?;
            std::rc::Rc::make_mut(&mut context.caller.borrow_mut()).sandbox = true;
        }
        Ok(Flow::Next)
    }
}
