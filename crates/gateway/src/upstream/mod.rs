//! The last policy of every request: to the backend.

use std::sync::Arc;

use penstock_compile::Compiler;
use penstock_engine::{Destination, Exchange, Fault, Flow, Mediator};
use penstock_message::Addressing;

use crate::error::{GatewayError, codes};
use crate::policy::{PolicyKind, Site};
use crate::{CallContext, Gateway};

/// The kind.
pub const KIND: PolicyKind = PolicyKind { name: "upstream", request: Some(compile), response: None };

/// Sends to the backend of the caller's key.
struct Upstream;

fn compile(_gateway: &Gateway, _site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    Some(Box::new(Upstream))
}

impl Mediator for Upstream {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        let site = &context.site;
        let endpoints = site.operation.endpoints.as_ref().unwrap_or(&site.api.endpoints);
        let cluster = endpoints.production.as_ref().or(endpoints.sandbox.as_ref());
        let Some(base) = cluster.and_then(|cluster| cluster.urls.first()) else {
            return Err(GatewayError::new(codes::UPSTREAM_CONNECTION_FAILED).into());
        };
        let target = exchange.client.line.target();
        let rest = target.strip_prefix(&*site.api.base_path).unwrap_or(target);
        let url = format!("{}{rest}", base.trim_end_matches('/'));
        exchange.message.addressing = Some(Box::new(Addressing { to: Some(url.into()), ..Addressing::default() }));
        Ok(Flow::Send(Destination::Implicit, None))
    }
}
