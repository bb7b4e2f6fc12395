//! Explains a request to callers with the key: `x-penstock-explain` of the response has the route, the
//! steps with the time each took, what was counted and why it was refused. Tokens, keys and users are not in it.

use std::sync::Arc;

use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Trace};

use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::security::Secret;
use crate::{CallContext, Gateway, GatewayConfig, Site};

/// The kind. The first of the list: earlier steps are not recorded.
pub const KIND: PolicyKind = PolicyKind {
    name: "explain",
    applies_to: ApiKinds::AUTHENTICATED.and(ApiKinds::PLATFORM).and(ApiKinds::PUBLISHERS),
    phase: Phase::Client,
    request: Some(compile),
    response: None,
};

/// The field of requests that holds the key.
const HEADER: &str = "x-penstock-explain";

struct Explain(Secret);

fn compile(gateway: &Gateway, _site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    mediator(&gateway.config)
}

/// The step, when explanations are enabled.
pub(crate) fn mediator(config: &GatewayConfig) -> Option<Box<dyn Mediator>> {
    let key = config.security.explain_key.clone()?;
    Some(Box::new(Explain(key)))
}

impl Mediator for Explain {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let Some(key) = exchange.message.headers.get(HEADER) else { return Ok(Flow::Next) };
        let may_know = self.0.is(key);
        // Right or wrong, it is nothing for a backend.
        exchange.message.headers.remove(HEADER);
        if !may_know {
            return Ok(Flow::Next);
        }
        let trace = Trace::start();
        let route = match exchange.extension::<CallContext>() {
            None => "none".to_owned(),
            Some(context) => {
                let Site { api, base_path, operation, .. } = &*context.site;
                format!("{} {}{} of {}:{}", operation.method, base_path, operation.path, api.name, api.version)
            }
        };
        trace.note("route", route);
        exchange.trace = Some(trace);
        Ok(Flow::Next)
    }
}
