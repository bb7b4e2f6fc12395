//! A key for the sandbox at an API without one, and the other way round: rejected before anything else is checked.

use std::sync::Arc;

use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator};

use crate::error::{GatewayError, NO_PRODUCTION, NO_SANDBOX, codes};
use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::{CallContext, ErrorStyle, Gateway, Site};

/// The kind.
pub const KIND: PolicyKind = PolicyKind {
    name: "key-type",
    applies_to: ApiKinds::HTTP.and(ApiKinds::CONNECTIONS).and(ApiKinds::MCP),
    phase: Phase::Authorization,
    request: Some(compile),
    response: None,
};

/// Refuses keys of the type for which there is no backend.
struct KeyType {
    /// The type there is no backend for.
    sandbox: bool,
    style: ErrorStyle,
}

fn compile(gateway: &Gateway, site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let endpoints = site.operation.endpoints.as_ref().unwrap_or(&site.api.endpoints);
    let sandbox = match (&endpoints.production, &endpoints.sandbox) {
        (Some(_), None) => true,
        (None, Some(_)) => false,
        _ => return None,
    };
    Some(Box::new(KeyType { sandbox, style: gateway.config.error_style }))
}

impl Mediator for KeyType {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        let caller = context.caller.borrow();
        if !caller.key_type_known || caller.sandbox != self.sandbox {
            return Ok(Flow::Next);
        }
        let description = match (self.style, self.sandbox) {
            (ErrorStyle::ChoreoConnect, true) => {
                "Sandbox key offered to an API with no sandbox endpoint. Make sure you have provided the correct security credentials"
            }
            (ErrorStyle::ChoreoConnect, false) => {
                "Production key offered to an API with no production endpoint. Make sure you have provided the correct security credentials"
            }
            (ErrorStyle::ApiManager, true) => NO_SANDBOX,
            (ErrorStyle::ApiManager, false) => NO_PRODUCTION,
        };
        Err(GatewayError::described(codes::INVALID_CREDENTIALS, description).into())
    }
}
