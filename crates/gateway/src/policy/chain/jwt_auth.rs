//! `jwt-auth`: lets callers in by their token.

use std::rc::Rc;
use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Mediator, Resume};
use penstock_message::Headers;
use serde_json::{Map, Value};

use super::answer;
use super::params::Params;
use crate::CallContext;
use crate::policy::chain::config::RefusalFormat;
use crate::policy::chain::kind::{ChainPhase, ChainPolicy, Made, Making};
use crate::security::{Among, Outcome, Verified, Verifier};

/// The policy.
pub(super) const POLICY: ChainPolicy = ChainPolicy { name: "jwt-auth", make };

/// Where the API Platform forwards tokens since its first version.
const FORWARDED_HEADER: &str = "x-forwarded-authorization";

/// A claim, and what it may be.
struct Matcher {
    claim: Arc<str>,
    values: Vec<Arc<str>>,
    /// Whether a text alone will do, and no number or list.
    as_text: bool,
}

/// What must hold: all of some, and one of others.
struct Wanted<T> {
    all: Vec<T>,
    any: Vec<T>,
}

/// What becomes of the field that carried the token.
enum Forward {
    /// It goes on as it came.
    AsItCame,
    /// It does not go on.
    Not,
    /// It goes on under another name, perhaps without its scheme.
    As { name: Arc<str>, bare: bool },
}

struct Rules {
    verifier: Arc<Verifier>,
    among: Among,
    header: Arc<str>,
    scheme: Arc<str>,
    audiences: Vec<Arc<str>>,
    scopes: Wanted<Arc<str>>,
    claims: Wanted<Matcher>,
    mappings: Vec<(Arc<str>, Arc<str>)>,
    forward: Forward,
    status: u16,
    format: RefusalFormat,
    message: Arc<str>,
}

struct JwtAuth(Arc<Rules>);

fn make(making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    let config = &making.gateway.config;
    let usual = &config.platform.jwt_auth;
    let issuers = params.texts("issuers");
    let scopes = wanted(params, "scopes", |params, name| params.texts(name));
    let old_scopes = params.texts("requiredScopes");
    let claims = wanted(params, "claims", matchers);
    let old_claims = params.pairs("requiredClaims");
    // The first version wanted all of them, later ones want one.
    let of_old = |scopes: Vec<Arc<str>>| match making.step.version {
        0 => Wanted { all: scopes, any: Vec::new() },
        _ => Wanted { all: Vec::new(), any: scopes },
    };
    let pair = |(claim, value): (Arc<str>, Arc<str>)| Matcher { claim, values: vec![value], as_text: true };
    let old_claims = || Wanted { all: old_claims.into_iter().map(pair).collect(), any: Vec::new() };
    let header = params.text("headerName").unwrap_or_else(|| usual.header.clone());
    // What analytics call the user.
    let _ = params.text("userIdClaim");
    let rules = Rules {
        verifier: making.gateway.state.security.verifier(config),
        among: Among { issuers, validates_issuer: params.flag("validateIssuer", usual.validates_issuer) },
        scheme: params.text("authHeaderPrefix").unwrap_or_else(|| usual.scheme.clone()),
        audiences: params.texts("audiences"),
        scopes: scopes.unwrap_or_else(|| of_old(old_scopes)),
        claims: claims.unwrap_or_else(old_claims),
        mappings: params.pairs("claimMappings"),
        forward: forward(making, params, &header),
        header,
        status: params.whole("onFailureStatusCode", 400, 599).map_or(usual.status, |status| status as u16),
        format: params.one_of("errorMessageFormat", &RefusalFormat::WORDS).unwrap_or(usual.format),
        message: params.text("errorMessage").unwrap_or_else(|| usual.message.clone()),
    };
    Some(Made::request(ChainPhase::Head, JwtAuth(Arc::new(rules))))
}

fn wanted<T>(
    params: &Params<'_>,
    name: &'static str,
    read: impl Fn(&Params<'_>, &'static str) -> Vec<T>,
) -> Option<Wanted<T>> {
    let found = params.map(name)?;
    let wanted = Wanted { all: read(&found, "allOf"), any: read(&found, "anyOf") };
    if wanted.all.is_empty() && wanted.any.is_empty() {
        found.error(format!("`{name}` needs `allOf` or `anyOf`"));
    }
    Some(wanted)
}

fn matchers(params: &Params<'_>, name: &'static str) -> Vec<Matcher> {
    let read = |item: super::params::Param<'_>| {
        let item = item.map(name)?;
        let (claim, values) = (item.required_text("claim")?, item.texts("values"));
        if values.is_empty() {
            item.error("a claim needs `values`");
        }
        Some(Matcher { claim, values, as_text: false })
    };
    params.list(name).into_iter().filter_map(read).collect()
}

fn forward(making: &Making<'_>, params: &Params<'_>, header: &Arc<str>) -> Forward {
    let forwards = params.flag("forwardToken", true);
    let name = params.text("forwardedTokenHeader");
    let bare = params.flag("forwardTokenStripScheme", false);
    match (forwards, name) {
        (false, _) => Forward::Not,
        (true, None) if making.step.version == 0 => Forward::AsItCame,
        (true, name) => {
            let name = name.unwrap_or_else(|| FORWARDED_HEADER.into());
            if name.eq_ignore_ascii_case(header) && !bare { Forward::AsItCame } else { Forward::As { name, bare } }
        }
    }
}

impl Mediator for JwtAuth {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        look(&self.0, exchange, true)
    }
}

/// Looks at the token. `may_fetch` is false once keys were fetched for this request.
fn look(rules: &Arc<Rules>, exchange: &mut Exchange, may_fetch: bool) -> Result<Flow, Fault> {
    let Some(sent) = exchange.message.headers.get(&rules.header) else {
        return Ok(rules.refuse(exchange, "no token was sent"));
    };
    let Some(text) = token_of(sent, &rules.scheme) else {
        return Ok(rules.refuse(exchange, "what was sent is no token of the scheme"));
    };
    match rules.verifier.verify_among(&rules.among, text, may_fetch) {
        Outcome::Valid(token) => rules.admit(exchange, &token),
        Outcome::First(token) => {
            if let Some(ring) = rules.verifier.stale() {
                // Ends within the time a fetch may take.
                tokio::task::spawn_local(ring.fetch(exchange.core().outbound.clone()));
            }
            rules.admit(exchange, &token)
        }
        Outcome::Refused(refusal) => Ok(rules.refuse(exchange, &refusal.reason)),
        Outcome::Needs(need) => {
            let (rules, outbound) = (rules.clone(), exchange.core().outbound.clone());
            Ok(Flow::Wait(Box::pin(async move {
                rules.verifier.fetch(need, outbound).await;
                Resume::new(move |exchange, ()| look(&rules, exchange, false))
            })))
        }
    }
}

/// What follows the scheme. Without a scheme the token may stand alone.
fn token_of<'s>(sent: &'s str, scheme: &str) -> Option<&'s str> {
    let mut parts = sent.split_ascii_whitespace();
    let (first, second, third) = (parts.next()?, parts.next(), parts.next());
    if third.is_some() {
        return None;
    }
    match second {
        Some(token) if scheme.is_empty() || first.eq_ignore_ascii_case(scheme) => Some(token),
        None if scheme.is_empty() => Some(first),
        _ => None,
    }
}

impl Rules {
    fn admit(&self, exchange: &mut Exchange, token: &Rc<Verified>) -> Result<Flow, Fault> {
        if let Some(why) = self.objection(token) {
            return Ok(self.refuse(exchange, why));
        }
        let context = CallContext::of(exchange)?;
        context.set_caller(token.caller.clone());
        *context.credential.borrow_mut() = Some(token.clone());
        exchange.explain("caller", || format!("a token of `{}`", token.issuer));
        let headers = &mut exchange.message.headers;
        self.pass_on(headers);
        if let Some(claims) = &token.caller.claims {
            for (claim, header) in &self.mappings {
                match claims.get(&**claim) {
                    Some(value) => headers.set(header, field_value(&written(value))),
                    // What the token does not say its bearer must not say either.
                    None => drop(headers.remove(header)),
                }
            }
        }
        Ok(Flow::Next)
    }

    fn pass_on(&self, headers: &mut Headers) {
        if !self.header.eq_ignore_ascii_case(FORWARDED_HEADER) {
            headers.remove(FORWARDED_HEADER);
        }
        match &self.forward {
            Forward::AsItCame => {
                // Of several the one that was looked at.
                let sent = headers.get(&self.header).unwrap_or_default().to_owned();
                headers.set(&self.header, sent);
            }
            Forward::Not => drop(headers.remove(&self.header)),
            Forward::As { name, bare } => {
                let sent = headers.get(&self.header).unwrap_or_default();
                let value = if *bare { token_of(sent, &self.scheme).unwrap_or_default() } else { sent };
                let value = value.to_owned();
                headers.remove(&self.header);
                headers.set(name, value);
            }
        }
    }

    /// Why a token that holds is not enough.
    fn objection(&self, token: &Verified) -> Option<&'static str> {
        if !self.audiences.is_empty() && !token.audiences.iter().any(|audience| self.audiences.contains(audience)) {
            return Some("the token is for other audiences");
        }
        if !self.scopes.holds(|scope| token.scopes.contains(scope)) {
            return Some("the token lacks the required scopes");
        }
        let nothing = Map::new();
        let claims = token.caller.claims.as_deref().unwrap_or(&nothing);
        if !self.claims.holds(|matcher| matcher.fits(claims)) {
            return Some("the token lacks the required claims");
        }
        None
    }

    fn refuse(&self, exchange: &mut Exchange, why: &str) -> Flow {
        exchange.explain("refused", || why.to_owned());
        let mut headers = answer::json();
        let body = match self.format {
            RefusalFormat::Json => {
                return answer::refusal(exchange, self.status, "Unauthorized", &self.message);
            }
            RefusalFormat::Plain => {
                headers.set("content-type", "text/plain");
                self.message.to_string()
            }
            RefusalFormat::Minimal => "Unauthorized".to_owned(),
        };
        answer::immediately(exchange, self.status, headers, body)
    }
}

impl<T> Wanted<T> {
    fn holds(&self, is_there: impl Fn(&T) -> bool) -> bool {
        self.all.iter().all(&is_there) && (self.any.is_empty() || self.any.iter().any(&is_there))
    }
}

impl Matcher {
    fn fits(&self, claims: &Map<String, Value>) -> bool {
        let is_one = |value: &Value| self.values.iter().any(|wanted| **wanted == *written(value));
        match claims.get(&*self.claim) {
            Some(value) if self.as_text && !value.is_string() => false,
            Some(Value::Array(values)) => values.iter().any(is_one),
            Some(value) => is_one(value),
            None => false,
        }
    }
}

/// A claim as text: numbers without their fraction, as the API Platform writes them.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or_else(String::new, |number| (number as i64).to_string())
        }
        other => other.to_string(),
    }
}

/// What may stand in a field of a claim: a token may hold line ends.
fn field_value(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_follows_its_scheme() {
        for (sent, scheme, expected) in [
            ("Bearer a.b.c", "Bearer", Some("a.b.c")),
            ("bearer  a.b.c ", "Bearer", Some("a.b.c")),
            ("Bearer", "Bearer", None),
            ("Bearer Bearer a", "Bearer", None),
            ("JWT a", "Bearer", None),
            ("a.b.c", "", Some("a.b.c")),
            ("Any a.b.c", "", Some("a.b.c")),
            ("", "", None),
        ] {
            assert_eq!(token_of(sent, scheme), expected, "{sent} {scheme}");
        }
    }

    #[test]
    fn claims_are_compared_as_texts() {
        let claims = json!({"a": "x", "n": 7, "f": 7.9, "b": true, "list": ["p", "q"], "o": {"k": 1}});
        let claims = claims.as_object().unwrap();
        for (claim, values, expected) in [
            ("a", vec!["y", "x"], true),
            ("a", vec!["X"], false),
            ("n", vec!["7"], true),
            ("f", vec!["7"], true),
            ("b", vec!["true"], true),
            ("list", vec!["z", "q"], true),
            ("list", vec!["r"], false),
            ("o", vec!["{\"k\":1}"], true),
            ("none", vec![""], false),
        ] {
            let matcher =
                Matcher { claim: claim.into(), values: values.into_iter().map(Arc::from).collect(), as_text: false };
            assert_eq!(matcher.fits(claims), expected, "{claim}");
        }
    }
}
