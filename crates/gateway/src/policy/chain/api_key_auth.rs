//! `api-key-auth`: lets callers in by a key that this gateway signs and that names the API.

use std::rc::Rc;
use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Mediator, Resume};

use super::answer;
use super::params::Params;
use crate::caller::Caller;
use crate::policy::authenticate::{not_from_here, query_value};
use crate::policy::chain::kind::{ChainPhase, ChainPolicy, Made, Making};
use crate::policy::subscription::subscribed_by_token;
use crate::security::{Outcome, TokenKind, Verifier};
use crate::{CallContext, text};

/// The policy.
pub(super) const POLICY: ChainPolicy = ChainPolicy { name: "api-key-auth", make };

struct Rules {
    verifier: Arc<Verifier>,
    name: Arc<str>,
    in_query: bool,
    prefix: Option<Arc<str>>,
}

struct ApiKeyAuth(Arc<Rules>);

fn make(making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    let name = params.text("key").unwrap_or_else(|| "API-Key".into());
    if name.is_empty() || name.len() > 128 {
        params.error("`key` has 1 to 128 characters");
    }
    let in_query = params.one_of("in", &[("header", false), ("query", true)]).unwrap_or(false);
    let prefix = params.text("valuePrefix").or_else(|| params.text("value-prefix")).filter(|prefix| !prefix.is_empty());
    let verifier = making.gateway.state.security.verifier(&making.gateway.config);
    Some(Made::request(ChainPhase::Head, ApiKeyAuth(Arc::new(Rules { verifier, name, in_query, prefix }))))
}

impl Mediator for ApiKeyAuth {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        look(&self.0, exchange, true)
    }
}

fn look(rules: &Arc<Rules>, exchange: &mut Exchange, may_fetch: bool) -> Result<Flow, Fault> {
    let Some(key) = rules.key(exchange) else { return Ok(refuse(exchange)) };
    match rules.verifier.look_up(TokenKind::ApiKey, &key, may_fetch) {
        Outcome::Valid(token) | Outcome::First(token) => {
            let context = CallContext::of(exchange)?;
            let mut caller = Caller::clone(&token.caller);
            if not_from_here(exchange, &token).is_some() || !subscribed_by_token(&token, &context.site, &mut caller) {
                return Ok(refuse(exchange));
            }
            context.set_caller(Rc::new(caller));
            Ok(Flow::Next)
        }
        Outcome::Refused(_) => Ok(refuse(exchange)),
        Outcome::Needs(need) => {
            let (rules, outbound) = (rules.clone(), exchange.core().outbound.clone());
            Ok(Flow::Wait(Box::pin(async move {
                rules.verifier.fetch(need, outbound).await;
                Resume::new(move |exchange, ()| look(&rules, exchange, false))
            })))
        }
    }
}

impl Rules {
    fn key(&self, exchange: &Exchange) -> Option<String> {
        let sent = if self.in_query {
            text::percent_decoded(query_value(exchange.client.line.query(), &self.name)?, true).into_owned()
        } else {
            exchange.message.headers.get(&self.name)?.trim().to_owned()
        };
        let key = match &self.prefix {
            None => sent,
            Some(prefix) => {
                let begin = sent.get(..prefix.len())?;
                begin.eq_ignore_ascii_case(prefix).then(|| sent[prefix.len()..].to_owned())?
            }
        };
        Some(key).filter(|key| !key.is_empty())
    }
}

fn refuse(exchange: &mut Exchange) -> Flow {
    answer::refusal(exchange, 401, "Unauthorized", "Valid API key required")
}
