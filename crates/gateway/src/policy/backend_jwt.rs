//! Sends backends a signed token about the caller. The same caller gets the same token until it expires, on
//! every core.

use std::sync::{Arc, PoisonError};

use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use serde_json::Value;

use super::authenticate::is_secured;
use crate::caller::Caller;
use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::security::{BackendJwt, Claims, ForBackend, SecurityState, issue, unix_now};
use crate::{CallContext, ErrorStyle, Gateway, Site};

/// The kind.
pub const KIND: PolicyKind = PolicyKind {
    name: "backend-jwt",
    applies_to: ApiKinds::HTTP.and(ApiKinds::CONNECTIONS).and(ApiKinds::MCP),
    phase: Phase::Message,
    request: Some(compile),
    response: None,
};

/// Tokens that all cores share; with more callers than that at once the oldest are signed again.
const SHARED_MAX: usize = 20_000;

/// Claims of the caller's own token that API Manager and Choreo Connect keep for themselves; the others go on.
const RESTRICTED_CLAIMS: &[&str] =
    &["iss", "sub", "aud", "exp", "nbf", "iat", "jti", "application", "tierInfo", "subscribedAPIs", "aut"];

/// The tenant that is always there, and what Choreo Connect has instead, which knows of none.
const SUPER_TENANT: &str = "-1234";
const NO_TENANT: &str = "0";

/// What either original says of all callers.
const USER_TYPE: &str = "Application_User";

struct TellBackend {
    settings: BackendJwt,
    style: ErrorStyle,
    state: Arc<SecurityState>,
}

fn compile(gateway: &Gateway, site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let settings = gateway.config.security.backend_jwt.clone()?;
    if !is_secured(site) {
        return Some(Box::new(NothingToTell(settings)));
    }
    let style = gateway.config.error_style;
    Some(Box::new(TellBackend { settings, style, state: gateway.state.security.clone() }))
}

/// Unsecured operation: the client's own header is removed.
struct NothingToTell(BackendJwt);

impl Mediator for NothingToTell {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        exchange.message.headers.remove(&self.0.header);
        Ok(Flow::Next)
    }
}

impl Mediator for TellBackend {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        let api = &context.site.api;
        let now = unix_now();
        let credential = context.credential.borrow();
        let own = credential.as_ref().map(|token| &token.for_backends);
        if let Some(known) =
            own.and_then(|own| own.borrow().get(&*api.base_path).filter(|known| known.0 > now).cloned())
        {
            exchange.message.headers.set(&self.settings.header, known.1.as_bytes());
            return Ok(Flow::Next);
        }
        let caller = context.caller.borrow();
        let made = self.shared(&caller, &context.site, now)?;
        exchange.message.headers.set(&self.settings.header, made.1.as_bytes());
        if let Some(own) = own {
            own.borrow_mut().insert(api.base_path.clone(), made);
        }
        Ok(Flow::Next)
    }
}

impl TellBackend {
    /// The token all cores use for a caller and an API.
    fn shared(&self, caller: &Caller, site: &Site, now: u64) -> Result<ForBackend, Fault> {
        let who = if caller.token.is_empty() { &caller.subject } else { &caller.token };
        let key = format!("{}\n{who}", site.api.base_path);
        let shared = || self.state.backend_tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = shared().get(&key).filter(|known| known.0 > now) {
            return Ok(known.clone());
        }
        // Signed outside of the lock: others wait for no signature but their own.
        let claims = self.claims(caller, site, now);
        let signed = issue(&self.state.signer(), &claims, self.settings.encoding);
        let token = signed.map_err(|error| Fault::new(format!("no token for the backend: {error}")))?;
        let mut shared = shared();
        if let Some(known) = shared.get(&key).filter(|known| known.0 > now) {
            return Ok(known.clone());
        }
        if shared.len() >= SHARED_MAX {
            shared.retain(|_, known| known.0 > now);
            if shared.len() >= SHARED_MAX {
                shared.clear();
            }
        }
        let made: ForBackend = (now + self.settings.ttl.as_secs(), token.into());
        shared.insert(key, made.clone());
        Ok(made)
    }

    fn claims(&self, caller: &Caller, site: &Site, now: u64) -> Claims {
        let mut claims = Claims::default();
        claims.set("iss", "wso2.org/products/am");
        claims.set("iat", now);
        claims.set("exp", now + self.settings.ttl.as_secs());
        let theirs = caller.claims.as_deref();
        let application = |name: &str| match theirs.and_then(|claims| claims.get("application")?.get(name)) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        let is_api_manager = self.style == ErrorStyle::ApiManager;
        let (number, uuid) = (application("id"), application("uuid"));
        let api = &site.api;
        for (name, value) in [
            ("subscriber", &*application("owner")),
            ("applicationid", if is_api_manager && !number.is_empty() { &*number } else { &*caller.application_id }),
            ("applicationUUId", &uuid),
            ("enduserTenantId", if is_api_manager { SUPER_TENANT } else { NO_TENANT }),
            ("applicationname", &caller.application_name),
            ("applicationtier", &caller.application_tier),
            ("apiname", &api.name),
            ("apicontext", &api.base_path),
            ("version", &api.version),
            ("tier", &caller.subscription_tier),
            ("keytype", if caller.sandbox { "SANDBOX" } else { "PRODUCTION" }),
            ("usertype", USER_TYPE),
            ("enduser", &caller.subject),
        ] {
            if !value.is_empty() {
                claims.set(&format!("{}/{name}", self.settings.dialect), value);
            }
        }
        for (name, value) in theirs.into_iter().flatten() {
            // Who it is about is said by either token.
            if !RESTRICTED_CLAIMS.contains(&name.as_str()) || name == "sub" {
                claims.set(name, value.clone());
            }
        }
        claims
    }
}
