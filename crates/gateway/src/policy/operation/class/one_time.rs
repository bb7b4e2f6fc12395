//! `OneTimeTokenRevocationMediator`: a token with a certain scope is good for one request.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Mediator};

use super::settings::{Compiled, PolicyClasses, Settings};
use crate::CallContext;
use crate::error::{GatewayError, codes};
use crate::security::SecurityState;

struct OneTime {
    scope: String,
    security: Arc<SecurityState>,
}

pub(super) fn compile(settings: &Settings, classes: &PolicyClasses) -> Compiled {
    let scope = settings.text("scope").unwrap_or("OTT").trim().to_owned();
    Ok(Box::new(OneTime { scope, security: classes.gateway.state.security.clone() }))
}

impl Mediator for OneTime {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        let credential = context.credential.borrow();
        let Some(token) = credential.as_ref().filter(|token| token.scopes.iter().any(|scope| **scope == *self.scope))
        else {
            return Ok(Flow::Next);
        };
        let refuse = |why| Err(GatewayError::new(codes::INVALID_CREDENTIALS).because(why).into());
        // Of concurrent requests one is accepted: the first that revokes the token.
        match self.security.revoke_soon(token) {
            true => Ok(Flow::Next),
            false => refuse("the token was used before"),
        }
    }
}
