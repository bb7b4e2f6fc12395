//! Whether a token may do what it is used for: it must have one of the operation's scopes. Keys, passwords and
//! certificates have no scopes and need none.

use std::sync::Arc;

use penstock_catalog::{Operation, Requirement};
use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator};

use super::authenticate::is_secured;
use crate::error::GatewayError;
use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::security::TokenKind;
use crate::{CallContext, Gateway, Site};

/// The kind.
pub const KIND: PolicyKind = PolicyKind {
    name: "scopes",
    applies_to: ApiKinds::HTTP.and(ApiKinds::CONNECTIONS).and(ApiKinds::MCP).and(ApiKinds::SUBSCRIBERS),
    phase: Phase::Authorization,
    request: Some(compile),
    response: None,
};

struct Scopes(Vec<Arc<str>>);

fn compile(_gateway: &Gateway, site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let scopes = wanted(&site.operation)?;
    is_secured(site).then(|| Box::new(Scopes(scopes.to_vec())) as Box<dyn Mediator>)
}

/// The scopes of which a token must have one.
pub(super) fn wanted(operation: &Operation) -> Option<&[Arc<str>]> {
    let of_requirement = || {
        operation.requirements.iter().find_map(|requirement| match requirement {
            Requirement::OAuth2(scopes) if !scopes.is_empty() => Some(&**scopes),
            _ => None,
        })
    };
    if operation.scopes.is_empty() { of_requirement() } else { Some(&operation.scopes) }
}

impl Mediator for Scopes {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        let credential = context.credential.borrow();
        let Some(token) = credential.as_ref().filter(|token| token.kind == TokenKind::Jwt) else {
            return Ok(Flow::Next);
        };
        if token.has_one_of(&self.0) {
            return Ok(Flow::Next);
        }
        Err(GatewayError::missing_scope(&context.site.operation.path).into())
    }
}
