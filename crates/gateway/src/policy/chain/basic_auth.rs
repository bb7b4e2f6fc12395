//! `basic-auth`: lets callers in by a name and a password.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Login, Mediator, Realm, basic_credentials, is_secret};

use super::answer;
use super::params::Params;
use crate::CallContext;
use crate::caller::Caller;
use crate::policy::chain::kind::{ChainPhase, ChainPolicy, Made, Making};

/// The policy.
pub(super) const POLICY: ChainPolicy = ChainPolicy { name: "basic-auth", make };

struct BasicAuth {
    username: Arc<str>,
    password: Arc<str>,
    /// Whether others are accepted too, as anonymous.
    lets_others_in: bool,
    challenge: String,
}

fn make(_making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    let (username, password) = (params.required_text("username"), params.required_text("password"));
    let lets_others_in = params.flag("allowUnauthenticated", false);
    let realm = params.text("realm").filter(|realm| !realm.is_empty()).unwrap_or_else(|| "Restricted".into());
    if realm.chars().any(char::is_control) {
        params.error("`realm` holds a control character");
    }
    let challenge = format!("Basic realm=\"{}\"", realm.replace('\\', "\\\\").replace('"', "\\\""));
    let policy = BasicAuth { username: username?, password: password?, lets_others_in, challenge };
    Some(Made::request(ChainPhase::Head, policy))
}

impl Mediator for BasicAuth {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let sent = exchange.message.headers.get("authorization").and_then(basic_credentials);
        // Both are compared, so that the time does not say which was wrong.
        let login = sent.map(|(name, password)| {
            let logins = &exchange.core().environment.users.logins;
            logins.attempt(Realm::Policy, &name, exchange.client.address, || {
                is_secret(self.username.as_bytes(), name.as_bytes())
                    & is_secret(self.password.as_bytes(), password.as_bytes())
            })
        });
        if login.is_some_and(Login::is_accepted) {
            let context = CallContext::of(exchange)?;
            let caller = Caller { token_type: "Basic", subject: self.username.clone(), ..Caller::default() };
            context.set_caller(std::rc::Rc::new(caller));
            return Ok(Flow::Next);
        }
        if self.lets_others_in {
            return Ok(Flow::Next);
        }
        let flow = answer::refusal(exchange, 401, "Unauthorized", "Authentication required");
        exchange.message.headers.append("www-authenticate", &self.challenge);
        if let Some(seconds) = login.and_then(Login::retry_after_seconds) {
            exchange.message.headers.append("retry-after", seconds.to_string());
        }
        Ok(flow)
    }
}
