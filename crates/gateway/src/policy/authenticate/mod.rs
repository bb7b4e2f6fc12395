//! Who calls: client certificate, token, API key, internal key, name and password, as the operation takes them.
//!
//! Which credentials an operation takes is decided when it is compiled. A request is let in by the first credential
//! that holds; what was sent and does not hold is refused with the first reason found. Credentials do not travel on
//! to backends.

mod api_key;
mod basic;
mod mutual_tls;
mod strip;

use std::rc::Rc;
use std::sync::Arc;

use penstock_catalog::{Api, Lifecycle, Requirement, SecurityMode};
use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Resume};
use penstock_projects::place;

use self::api_key::KeyPlace;
pub(crate) use self::api_key::{not_from_here, query_value};
use self::mutual_tls::MutualTls;
use self::strip::Strip;
use crate::caller::Caller;
use crate::error::{GatewayError, codes};
use crate::policy::{ApiKinds, Phase, PolicyKind, scopes};
use crate::security::{Need, OWN_ISSUER, Outcome, Refusal, TokenKind, Verified, Verifier};
use crate::{CallContext, ErrorStyle, Gateway, GatewayConfig, Site};

/// The kind.
pub const KIND: PolicyKind = PolicyKind {
    name: "authenticate",
    applies_to: ApiKinds::AUTHENTICATED,
    phase: Phase::Authentication,
    request: Some(compile),
    response: None,
};

/// What an operation takes.
struct Authenticate {
    config: Arc<GatewayConfig>,
    verifier: Arc<Verifier>,
    mutual_tls: Option<MutualTls>,
    /// Whether a certificate is enough.
    certificate_suffices: bool,
    /// Whether nothing is, too.
    anonymous: bool,
    jwt: bool,
    basic: bool,
    authorization_header: Arc<str>,
    api_key: Vec<KeyPlace>,
    /// Scopes of which a token must have one.
    scopes: Vec<Arc<str>>,
    strip: Option<Strip>,
    challenge: Arc<str>,
    /// In the style of API Manager.
    words: Option<Words>,
    /// Issuers by name; empty means all.
    key_managers: Vec<Arc<str>>,
}

struct Step(Arc<Authenticate>);

/// Whether an operation requires credentials.
pub(super) fn is_secured(site: &Site) -> bool {
    let open = matches!(site.operation.requirements.as_slice(), [Requirement::Nothing]);
    site.operation.secured && !open && site.api.lifecycle != Lifecycle::Prototyped
}

fn compile(gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let strip = Strip::compile(gateway, site);
    if !is_secured(site) {
        return strip.map(|strip| Box::new(strip) as Box<dyn Mediator>);
    }
    let config = &gateway.config;
    let security = &config.security;
    let api = &site.api;
    let schemes = &api.security;
    let mutual_tls = MutualTls::compile(gateway, site, cx);
    let application_is_off = schemes.application == SecurityMode::Off;
    let requirements = &site.operation.requirements;
    let takes = |wanted: fn(&Requirement) -> bool, by_api: bool| {
        !application_is_off && if requirements.is_empty() { by_api } else { requirements.iter().any(wanted) }
    };
    let jwt = takes(|requirement| matches!(requirement, Requirement::OAuth2(_)), schemes.oauth2);
    let basic = takes(|requirement| *requirement == Requirement::Basic, schemes.basic);
    let api_key = if application_is_off { Vec::new() } else { api_key::places(api, requirements) };
    let authorization_header = api.authorization_header.clone().unwrap_or(security.authorization_header.clone());
    let kinds = [mutual_tls.is_some(), jwt, basic, !api_key.is_empty()];
    let (challenge, words) = match config.error_style {
        ErrorStyle::ChoreoConnect => (challenge(&choreo_connect_challenges(kinds)), None),
        ErrorStyle::ApiManager => {
            let words = Words::new(api, &authorization_header);
            (challenge(&api_manager_challenges(kinds)), Some(words))
        }
    };
    Some(Box::new(Step(Arc::new(Authenticate {
        config: config.clone(),
        verifier: gateway.state.security.verifier(config),
        certificate_suffices: mutual_tls.is_some() && schemes.application != SecurityMode::Mandatory,
        mutual_tls,
        anonymous: requirements.contains(&Requirement::Nothing),
        jwt,
        basic,
        authorization_header,
        api_key,
        scopes: scopes::wanted(&site.operation).map(<[_]>::to_vec).unwrap_or_default(),
        strip,
        challenge,
        words,
        key_managers: key_managers(gateway, site, cx),
    }))))
}

/// What the gateway's own tokens stand in for.
const RESIDENT: &str = "Resident Key Manager";

/// The issuers whose tokens an API takes, by name. Choreo Connect takes those of all.
fn key_managers(gateway: &Gateway, site: &Site, cx: &mut Compiler<'_>) -> Vec<Arc<str>> {
    let named = &site.api.key_managers;
    if gateway.config.error_style == ErrorStyle::ChoreoConnect || named.is_empty() {
        return Vec::new();
    }
    let is_first = site.api.operations.first().is_some_and(|first| Arc::ptr_eq(first, &site.operation));
    let known = |name: &str| gateway.config.security.issuers.iter().any(|issuer| *issuer.name == *name);
    for name in named.iter().filter(|name| is_first && &***name != RESIDENT && !known(name)) {
        let message =
            format!("`keyManagers` names `{name}`, and no issuer of that name is configured (`gateway.issuers`)");
        cx.warn(place(&site.api.at), message);
    }
    let own = named.iter().any(|name| &**name == RESIDENT).then(|| OWN_ISSUER.into());
    named.iter().cloned().chain(own).collect()
}

/// What a 401 says of how to do better, by client certificate, token, name and password, and API key.
fn choreo_connect_challenges([certificate, jwt, basic, api_key]: [bool; 4]) -> Vec<&'static str> {
    let all = [
        (certificate, "Mutual SSL realm=\"Choreo Connect\""),
        (jwt, "Bearer realm=\"Choreo Connect\""),
        (api_key, "API Key realm=\"Choreo Connect\""),
        (basic, "Basic realm=\"Choreo Connect\""),
    ];
    all.into_iter().filter(|(taken, _)| *taken).map(|(_, text)| text).collect()
}

/// The same of API Manager, which names the key of the test console, too.
fn api_manager_challenges([certificate, jwt, basic, api_key]: [bool; 4]) -> Vec<&'static str> {
    let all = [
        (true, "Internal API Key realm=\"WSO2 API Manager\""),
        (certificate, "Mutual SSL realm=\"WSO2 API Manager\""),
        (jwt, "Bearer realm=\"WSO2 API Manager\""),
        (basic, "Basic Auth realm=\"WSO2 API Manager\""),
        (api_key, "API Key realm=\"WSO2 API Manager\""),
    ];
    all.into_iter().filter(|(taken, _)| *taken).map(|(_, text)| text).collect()
}

fn challenge(challenges: &[&str]) -> Arc<str> {
    let problem = "error=\"invalid_token\", error_description=\"The provided token is invalid\"";
    challenges.iter().copied().chain([problem]).collect::<Vec<_>>().join(", ").into()
}

/// What API Manager says of an API's credentials.
struct Words {
    /// Which fields a caller should send.
    missing: Arc<str>,
    /// An unknown credential: Choreo Connect has its key managers introspect it, which do not know it either.
    unknown: Arc<str>,
}

impl Words {
    fn new(api: &Api, field: &str) -> Words {
        // Its own names are compared without case, and shown so.
        let field = if field.eq_ignore_ascii_case("authorization") { "Authorization" } else { field };
        let key = api.api_key_header.as_deref().unwrap_or("ApiKey");
        let missing = format!(
            "Make sure your API invocation call has a header: '{field} : Bearer ACCESS_TOKEN' or '{field} : Basic \
             ACCESS_TOKEN' or '{key} : API_KEY'"
        );
        let (context, version) = (&api.base_path, &api.version);
        let unknown =
            format!("Access failure for API: {context}, version: {version} status: (900901) - Invalid Credentials");
        Words { missing: missing.into(), unknown: unknown.into() }
    }

    fn of(&self, refusal: &Refusal) -> Option<Arc<str>> {
        match refusal.code {
            codes::MISSING_CREDENTIALS => Some(self.missing.clone()),
            codes::INVALID_CREDENTIALS => refusal.unknown.then(|| self.unknown.clone()),
            _ => refusal.description.map(Arc::from),
        }
    }
}

/// What became of one kind of credential.
enum Attempt<'r> {
    /// None was sent.
    Absent,
    /// It holds.
    Accepted(Accepted<'r>),
    /// It does not.
    Refused(Refusal),
    /// Keys must be fetched first.
    Needs(Need),
}

/// A credential that holds.
struct Accepted<'r> {
    caller: Option<Caller>,
    token: Option<Rc<Verified>>,
    /// What must not go on to the backend.
    sent_in: SentIn<'r>,
}

/// Where a credential was sent. Borrowed: counting a name that all cores share would cost more than the rest.
enum SentIn<'r> {
    Header(&'r str),
    Query(&'r str),
}

/// Looks for one kind of credential.
type Look = for<'r> fn(&'r Authenticate, &mut Exchange, &CallContext, bool) -> Attempt<'r>;

/// All kinds, in the order they are looked for.
const KINDS: [Look; 4] = [internal_key, bearer, api_key::attempt, basic::attempt];

impl Mediator for Step {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        // Once only: the field that carries a certificate does not go on, so a second look would miss it.
        let by_certificate = match &self.0.mutual_tls {
            None => false,
            Some(mutual_tls) => {
                mutual_tls.check(exchange, &context).map_err(|refusal| self.0.refuse(exchange, refusal))?
            }
        };
        look(&self.0, exchange, by_certificate, true)
    }
}

/// Looks at what was sent. `may_fetch` is false once keys were fetched for this request.
fn look(
    rules: &Arc<Authenticate>,
    exchange: &mut Exchange,
    by_certificate: bool,
    may_fetch: bool,
) -> Result<Flow, Fault> {
    let context = CallContext::of(exchange)?;
    let mut refusal = None;
    // A token without the required scopes. Another credential may be valid; otherwise `scopes` rejects it.
    let mut insufficient = None;
    for kind in KINDS {
        match kind(rules, exchange, &context, may_fetch) {
            Attempt::Absent => {}
            Attempt::Refused(why) => refusal = refusal.or(Some(why)),
            Attempt::Needs(need) => return Ok(fetch_and_look_again(rules, exchange, by_certificate, need)),
            Attempt::Accepted(accepted) if insufficient.is_none() && rules.lacks_scope(&accepted) => {
                insufficient = Some(accepted);
            }
            Attempt::Accepted(accepted) => {
                return admit(rules, exchange, &context, accepted, by_certificate);
            }
        }
    }
    if let Some(accepted) = insufficient {
        return admit(rules, exchange, &context, accepted, by_certificate);
    }
    match refusal {
        Some(refusal) => Err(rules.refuse(exchange, refusal)),
        None if by_certificate && rules.certificate_suffices || rules.anonymous => {
            if let Some(strip) = &rules.strip {
                strip.apply(exchange, &context);
            }
            Ok(Flow::Next)
        }
        None => Err(rules.refuse(exchange, rules.missing())),
    }
}

fn fetch_and_look_again(rules: &Arc<Authenticate>, exchange: &Exchange, by_certificate: bool, need: Need) -> Flow {
    let (rules, outbound) = (rules.clone(), exchange.core().outbound.clone());
    Flow::Wait(Box::pin(async move {
        rules.verifier.fetch(need, outbound).await;
        Resume::new(move |exchange, ()| look(&rules, exchange, by_certificate, false))
    }))
}

/// Lets a caller in.
fn admit(
    rules: &Authenticate,
    exchange: &mut Exchange,
    context: &CallContext,
    accepted: Accepted<'_>,
    by_certificate: bool,
) -> Result<Flow, Fault> {
    let Accepted { caller, token, sent_in } = accepted;
    {
        let mut slot = context.caller.borrow_mut();
        let tier = by_certificate.then(|| slot.subscription_tier.clone());
        if let Some(caller) = token.as_ref().map(|token| token.caller.clone()).or_else(|| caller.map(Rc::new)) {
            *slot = caller;
        }
        if let Some(tier) = tier.filter(|tier| !tier.is_empty()) {
            Rc::make_mut(&mut slot).subscription_tier = tier;
        }
    }
    exchange.explain("caller", || {
        let caller = context.caller.borrow();
        let kind = if caller.sandbox { "sandbox" } else { "production" };
        format!("{} for {kind}, application `{}`", caller.token_type, caller.application_name)
    });
    *context.credential.borrow_mut() = token;
    if let Some(strip) = &rules.strip {
        strip.apply(exchange, context);
    } else if !rules.config.security.forward_credentials {
        match sent_in {
            SentIn::Header(name) => drop(exchange.message.headers.remove(name)),
            SentIn::Query(name) => api_key::remove_from_query(exchange, context, name),
        }
    }
    Ok(Flow::Next)
}

impl Authenticate {
    /// Whether an access token has none of the required scopes.
    fn lacks_scope(&self, accepted: &Accepted<'_>) -> bool {
        let token = accepted.token.as_ref().filter(|token| token.kind == TokenKind::Jwt);
        token.is_some_and(|token| !self.scopes.is_empty() && !token.has_one_of(&self.scopes))
    }

    /// Choreo Connect has one answer for wrong credentials and for none.
    fn missing(&self) -> Refusal {
        let code = match self.config.error_style {
            ErrorStyle::ChoreoConnect => codes::INVALID_CREDENTIALS,
            ErrorStyle::ApiManager => codes::MISSING_CREDENTIALS,
        };
        Refusal { code, ..Refusal::invalid("no credential that the operation takes was sent") }
    }

    fn refuse(&self, exchange: &mut Exchange, refusal: Refusal) -> Fault {
        let words = self.words.as_ref().map(|words| words.of(&refusal));
        let mut error = GatewayError::from(refusal);
        if let Some(description) = words {
            error.description = description;
        }
        if error.status(self.config.error_style) == 401 {
            exchange.reply_headers.append("WWW-Authenticate", &*self.challenge);
        }
        error.into()
    }

    /// Checks a token, and looks after its issuer's keys once in a while.
    fn verify<'r>(
        &'r self,
        exchange: &Exchange,
        kind: TokenKind,
        sent: &[u8],
        may_fetch: bool,
        sent_in: SentIn<'r>,
    ) -> Attempt<'r> {
        let examined = || match std::str::from_utf8(sent) {
            Ok(text) if kind != TokenKind::Jwt || is_one_token(text) || self.verifier.introspects() => {
                self.verifier.verify(kind, text, may_fetch)
            }
            text => {
                let refusal = Refusal::invalid("what was sent is not one token of three parts");
                // Tokens without parts are those that only who issued them can read.
                let unknown = text.is_ok_and(|text| !text.contains('.'));
                Outcome::Refused(Refusal { unknown, ..refusal })
            }
        };
        match self.verifier.recall(kind, sent).unwrap_or_else(examined) {
            Outcome::Valid(token) => Attempt::Accepted(Accepted { caller: None, token: Some(token), sent_in }),
            Outcome::First(token) => {
                if let Some(ring) = self.verifier.stale() {
                    // Ends within the time a fetch may take.
                    tokio::task::spawn_local(ring.fetch(exchange.core().outbound.clone()));
                }
                Attempt::Accepted(Accepted { caller: None, token: Some(token), sent_in })
            }
            Outcome::Refused(refusal) => Attempt::Refused(refusal),
            Outcome::Needs(need) => Attempt::Needs(need),
        }
    }
}

/// The key of a publisher's test console, which every secured operation takes.
fn internal_key<'r>(
    rules: &'r Authenticate,
    exchange: &mut Exchange,
    _context: &CallContext,
    may_fetch: bool,
) -> Attempt<'r> {
    let name = &rules.config.security.internal_key_header;
    match exchange.message.headers.get_bytes(name) {
        None => Attempt::Absent,
        Some(sent) => rules.verify(exchange, TokenKind::Internal, sent.trim_ascii(), may_fetch, SentIn::Header(name)),
    }
}

/// The scheme of access tokens (RFC 6750 §2.1).
const BEARER: &[u8] = b"bearer";

/// Whether it is three parts, and nothing before or after them.
fn is_one_token(text: &str) -> bool {
    !text.contains(char::is_whitespace) && text.bytes().filter(|byte| *byte == b'.').count() == 2
}

/// An access token.
fn bearer<'r>(rules: &'r Authenticate, exchange: &mut Exchange, context: &CallContext, may_fetch: bool) -> Attempt<'r> {
    if !rules.jwt {
        return Attempt::Absent;
    }
    let name = &rules.authorization_header;
    let value = exchange.message.headers.get_bytes(name).map(<[u8]>::trim_ascii);
    let Some((scheme, [b' ', sent @ ..])) = value.and_then(|value| value.split_at_checked(BEARER.len())) else {
        return Attempt::Absent;
    };
    if !scheme.eq_ignore_ascii_case(BEARER) {
        return Attempt::Absent;
    }
    let attempt = rules.verify(exchange, TokenKind::Jwt, sent.trim_ascii_start(), may_fetch, SentIn::Header(name));
    if let Attempt::Accepted(Accepted { token: Some(token), .. }) = &attempt
        && !rules.key_managers.is_empty()
        && !rules.key_managers.contains(&token.issuer)
    {
        return Attempt::Refused(Refusal::invalid("the token's issuer is not a key manager of the API"));
    }
    let audiences = &context.site.api.audiences;
    if let Attempt::Accepted(Accepted { token: Some(token), .. }) = &attempt
        && !audiences.is_empty()
        && !token.audiences.iter().any(|audience| audiences.contains(audience))
    {
        let refusal = Refusal::invalid("the token is for other audiences than those of the API");
        return Attempt::Refused(Refusal { code: codes::AUDIENCE, ..refusal });
    }
    attempt
}
