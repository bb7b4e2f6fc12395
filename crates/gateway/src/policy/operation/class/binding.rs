//! `CrossSiteRequestForgeryValidationMediator`: a token that is bound to a cookie is good together with it only.

use md5::{Digest, Md5};
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use serde_json::Value;

use super::settings::{Compiled, PolicyClasses, Settings};
use crate::CallContext;
use crate::error::{GatewayError, codes};
use crate::hex::hex;

struct Binding {
    cookie: String,
}

/// The name that API Manager's servers give the cookie.
const USUAL_COOKIE: &str = "atbv";

pub(super) fn compile(settings: &Settings, _classes: &PolicyClasses) -> Compiled {
    Ok(Box::new(Binding { cookie: settings.text("csrfCookieName").unwrap_or(USUAL_COOKIE).trim().to_owned() }))
}

impl Mediator for Binding {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        let caller = context.caller.borrow();
        let claim = |name: &str| caller.claims.as_ref()?.get(name).and_then(Value::as_str);
        let (Some("cookie"), Some(reference)) = (claim("binding_type"), claim("binding_ref")) else {
            return Ok(Flow::Next);
        };
        let prefix = format!("{}=", self.cookie);
        let cookies = exchange.message.headers.get("cookie").unwrap_or_default();
        let value = cookies.split(';').find_map(|cookie| cookie.trim().strip_prefix(&*prefix)).unwrap_or_default();
        // The token names the digest, so this is what the cookie has to be compared by.
        if hex(&Md5::digest(value.as_bytes())) == reference {
            return Ok(Flow::Next);
        }
        Err(GatewayError::new(codes::INVALID_CREDENTIALS).because("the token is bound to another cookie").into())
    }
}
