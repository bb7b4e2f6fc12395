//! The policies of WSO2's API Platform: a row of them for each operation, those of the API before those of the operation.
//!
//! Requests pass the row in its order, answers in the opposite one. As in the API Platform, what looks at heads alone runs
//! before what looks at bodies, in any order of the list. A policy that responds ends processing: neither
//! the backend nor the policies of the answer see the request.
//!
//! Start reading at [`kind::ChainPolicy`] and [`CHAIN`], the list; one file each. `params.rs` is what they read their
//! parameters with, `state.rs` what they keep from the request to the answer, `variables.rs` what their
//! expressions are about.

mod answer;
mod api_key_auth;
mod basic_auth;
mod config;
mod cors;
mod dynamic_endpoint;
mod guardrail;
mod headers;
mod host_rewrite;
mod interceptor_service;
mod jwt_auth;
mod kind;
mod log_message;
mod params;
mod ratelimit;
mod request_rewrite;
mod respond;
mod state;
mod variables;

use std::sync::Arc;

use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, Step};
use penstock_projects::place;

use self::kind::{ChainPhase, ChainPolicy, Making};
use self::params::{Notes, Params};
use self::variables::OF_CONDITIONS;
use super::operation::enter;
use crate::cel::{Expression, Value};
use crate::error::{GatewayError, codes};
use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::router::{best_rank, rank, without_port};
use crate::{CallContext, Gateway, Site};

pub use config::{Algorithm, JwtAuthConfig, PlatformConfig, RateLimitConfig, RefusalFormat};
pub(crate) use ratelimit::Buckets;
pub(crate) use state::ChainState;

/// The kind.
pub const KIND: PolicyKind = PolicyKind {
    name: "chain",
    applies_to: ApiKinds::PLATFORM,
    phase: Phase::Message,
    request: Some(compile_request),
    response: Some(compile_response),
};

/// All supported ones. Any other is rejected by its name.
const CHAIN: &[ChainPolicy] = &[
    headers::ADD,
    ratelimit::ADVANCED,
    api_key_auth::POLICY,
    basic_auth::POLICY,
    ratelimit::BASIC,
    guardrail::CONTENT_LENGTH,
    cors::POLICY,
    dynamic_endpoint::POLICY,
    host_rewrite::POLICY,
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

/// The names of all policies.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    CHAIN.iter().map(|policy| policy.name)
}

fn compile_request(gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let platform = site.api.platform.as_ref()?;
    let notes = Notes::default();
    let endpoints = site.operation.endpoints.as_ref().unwrap_or(&site.api.endpoints);
    let sandbox = platform.sandbox_host.clone().map(|host| Step {
        mediator: Box::new(Sandbox { host, main: platform.hosts.clone(), exists: endpoints.sandbox.is_some() }),
        kind: "sandbox",
        at: place(&site.operation.at),
    });
    let (steps, reads_sent) = steps(gateway, site, &notes, false);
    for (at, message) in notes.take() {
        cx.error(place(&at), message);
    }
    let keep = reads_sent.then(|| Step { mediator: Box::new(KeepSent), kind: "sent", at: place(&site.operation.at) });
    enter(sandbox.into_iter().chain(keep).chain(steps).collect(), cx)
}

fn compile_response(gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    site.api.platform.as_ref()?;
    // What is wrong was said for the request.
    let (steps, _) = steps(gateway, site, &Notes::default(), true);
    enter(steps, cx)
}

/// The steps of a flow, heads before bodies, and whether they read the request's fields as they were sent.
fn steps(gateway: &Gateway, site: &Arc<Site>, notes: &Notes, of_answer: bool) -> (Vec<Step>, bool) {
    let mut found: Vec<(ChainPhase, Step)> = Vec::new();
    let mut reads_sent = false;
    for (index, step) in site.operation.chain.iter().enumerate() {
        let Some(policy) = CHAIN.iter().find(|policy| *policy.name == *step.name) else {
            notes.error(&step.at, format!("the policy `{}` is not supported", step.name));
            continue;
        };
        let condition = match step.condition.as_ref().map(|(text, at)| (Expression::parse(text, OF_CONDITIONS), at)) {
            None => None,
            Some((Ok(condition), _)) => Some(condition),
            Some((Err(why), at)) => {
                notes.error(at, format!("`executionCondition`: {why}"));
                continue;
            }
        };
        let made = {
            let params = Params::new(&step.parameters, notes);
            (policy.make)(&Making { gateway, site, step, index }, &params)
        };
        let Some(made) = made else { continue };
        reads_sent |= made.reads_sent || condition.is_some();
        let Some((phase, mediator)) = (if of_answer { made.response } else { made.request }) else { continue };
        let mediator = match condition {
            None => mediator,
            Some(condition) => Box::new(Conditional { condition, mediator, phase: phase.name(of_answer) }),
        };
        found.push((phase, Step { mediator, kind: policy.name, at: place(&step.at) }));
    }
    if of_answer {
        found.reverse();
    }
    found.sort_by_key(|(phase, _)| *phase);
    (found.into_iter().map(|(_, step)| step).collect(), reads_sent)
}

/// A policy that runs only where its condition holds.
struct Conditional {
    condition: Expression,
    mediator: Box<dyn Mediator>,
    phase: &'static str,
}

impl Mediator for Conditional {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let holds = variables::evaluate(&self.condition, exchange, self.phase, false, |value| match value? {
            Value::Bool(holds) => Ok(holds),
            _ => Err("it gives neither true nor false".to_owned()),
        })?;
        match holds {
            Ok(true) => self.mediator.run(exchange),
            Ok(false) => Ok(Flow::Next),
            // A policy may protect the API, so a failing condition rejects the request.
            Err(why) => Err(Fault::new(format!("`executionCondition` cannot be computed: {why}"))),
        }
    }

    fn needs(&self) -> Needs {
        self.mediator.needs()
    }
}

/// Keeps the fields of a request as they were sent.
struct KeepSent;

impl Mediator for KeepSent {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let sent = exchange.message.headers.clone();
        CallContext::of(exchange)?.chain.borrow_mut().sent = Some(sent);
        Ok(Flow::Next)
    }
}

/// Sends requests to the sandbox whose host its pattern describes more closely than those of the API.
struct Sandbox {
    host: Arc<str>,
    main: Vec<Arc<str>>,
    /// Whether the operation has a sandbox; it is not served there otherwise.
    exists: bool,
}

impl Mediator for Sandbox {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let host = without_port(exchange.message.headers.get("host").unwrap_or_default());
        if rank(&self.host, host).is_some_and(|sandbox| best_rank(&self.main, host).is_none_or(|main| sandbox > main)) {
            if !self.exists {
                return Err(GatewayError::new(codes::NOT_FOUND).into());
            }
            let context = CallContext::of(exchange)?;
            std::rc::Rc::make_mut(&mut context.caller.borrow_mut()).sandbox = true;
        }
        Ok(Flow::Next)
    }
}
