//! The rights of a query: a scope of each operation, depth and complexity within its plans
//! allow.

use std::sync::Arc;

use penstock_catalog::{Operation, PlanLevel, QueryLimits};
use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator};

use super::Definition;
use crate::error::{GatewayError, codes};
use crate::policy::limits::Plans;
use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::security::TokenKind;
use crate::{CallContext, Gateway, Site};

/// The kind.
pub const KIND: PolicyKind = PolicyKind {
    name: "graphql-rights",
    applies_to: ApiKinds::GRAPHQL.and(ApiKinds::GRAPHQL_SOCKET),
    phase: Phase::Authorization,
    request: Some(compile),
    response: None,
};

struct Rights {
    definition: Arc<Definition>,
    plans: Arc<Plans>,
    /// What holds for every caller: the gateway's own limits and those of the API's plan.
    limits: QueryLimits,
}

fn compile(gateway: &Gateway, site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let definition = site.graphql.clone()?;
    let plans = Plans::of_gateway(gateway);
    let config = &gateway.config.graphql;
    let own = QueryLimits { depth: config.depth_max, complexity: config.complexity_max };
    let limits = match &site.api.tier {
        Some(tier) => own.and(plans.query_limits(PlanLevel::Api, tier)),
        None => own,
    };
    Some(Box::new(Rights { definition, plans, limits }))
}

impl Mediator for Rights {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        let asked = context.graphql.query.borrow().clone();
        let Some(asked) = asked else { return Ok(Flow::Next) };
        if let Some(path) = self.definition.missing_scope(&context, &asked.operations) {
            return Err(GatewayError::missing_scope(path).into());
        }
        let caller = context.caller.borrow();
        let limits = self
            .limits
            .and(self.plans.query_limits(PlanLevel::Subscription, &caller.subscription_tier))
            .and(self.plans.query_limits(PlanLevel::Application, &caller.application_tier));
        context.graphql.limits.set(limits);
        if let Some(depth) = limits.depth.filter(|depth| asked.depth > *depth) {
            return Err(too_deep(Some(asked.depth), depth).into());
        }
        if let Some(complexity) = limits.complexity.filter(|complexity| asked.complexity > *complexity) {
            // API Manager says no number here.
            let error = GatewayError::described(codes::QUERY_TOO_COMPLEX, "[maximum query complexity exceeded]");
            return Err(error.because(&format!("the query counts {} of {complexity}", asked.complexity)).into());
        }
        Ok(Flow::Next)
    }
}

impl Definition {
    /// The first operation of which the caller's token has no scope.
    pub(super) fn missing_scope<'c>(&self, context: &'c CallContext, operations: &[usize]) -> Option<&'c str> {
        let credential = context.credential.borrow();
        let token = credential.as_ref().filter(|token| token.kind == TokenKind::Jwt)?;
        let secured = operations.iter().filter(|index| self.asks_for_credentials(**index));
        let mut operations = secured.filter_map(|index| context.site.api.operations.get(*index));
        let is_missing = |operation: &&Arc<Operation>| {
            let wanted = &operation.scopes;
            !wanted.is_empty() && !token.scopes.iter().any(|scope| wanted.contains(scope))
        };
        operations.find(is_missing).map(|operation| &*operation.path)
    }
}

/// A query that is deeper than it may be; how deep it is is not known of one that was not read to its end.
pub(super) fn too_deep(depth: Option<u64>, deepest: u64) -> GatewayError {
    let depth = depth.unwrap_or(deepest + 1);
    GatewayError::described(codes::QUERY_TOO_DEEP, format!("[maximum query depth exceeded {depth} > {deepest}]"))
}
