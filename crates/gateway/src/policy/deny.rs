//! Deny conditions: matching requests are rejected with 900805.

use std::sync::Arc;

use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator};

use crate::error::{GatewayError, codes};
use crate::policy::limits::Conditions;
use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::{CallContext, Gateway, Site};

/// The kind. It stands behind the policies that find out who calls.
pub const KIND: PolicyKind = PolicyKind {
    name: "deny",
    applies_to: ApiKinds::AUTHENTICATED.and(ApiKinds::PLATFORM).and(ApiKinds::PUBLISHERS),
    phase: Phase::Authorization,
    request: Some(compile),
    response: None,
};

/// Rejects requests that match one of its conditions.
struct Deny(Vec<Conditions>);

fn compile(gateway: &Gateway, _site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let denials = &gateway.config.limits.denials;
    let compiled = || denials.iter().map(|denial| Conditions::new(&denial.conditions)).collect();
    (!denials.is_empty()).then(|| Box::new(Deny(compiled())) as Box<dyn Mediator>)
}

impl Mediator for Deny {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        match self.0.iter().any(|conditions| conditions.hold(exchange, &context)) {
            true => Err(GatewayError::new(codes::BLOCKED).into()),
            false => Ok(Flow::Next),
        }
    }
}
