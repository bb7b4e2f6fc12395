//! `dynamic-endpoint`: another backend of the API.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_projects::hint;

use super::params::Params;
use crate::CallContext;
use crate::policy::chain::kind::{ChainPhase, ChainPolicy, Made, Making};

/// The policy.
pub(super) const POLICY: ChainPolicy = ChainPolicy { name: "dynamic-endpoint", make };

struct DynamicEndpoint(Arc<str>);

fn make(making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    let name = params.required_text("targetUpstream")?;
    let named = &making.site.api.endpoints.named;
    if named.iter().all(|(known, _)| *known != name) {
        let meant = hint(&name, named.iter().map(|(known, _)| &**known));
        params.error(format!("`upstreamDefinitions` has no `{name}`{meant}"));
    }
    Some(Made::request(ChainPhase::Head, DynamicEndpoint(name)))
}

impl Mediator for DynamicEndpoint {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        CallContext::of(exchange)?.upstream.choose(&self.0);
        Ok(Flow::Next)
    }
}
