//! What a token says once its signature holds.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use penstock_catalog::{Api, IpRange};
use penstock_identity::{Issuer, KeyRing, PublicKey, numeric_date};
use serde_json::{Map, Value};

use super::state::ForBackend;
use crate::caller::{Caller, nothing};
use crate::error::{GatewayError, codes};

/// What a token is used as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// An access token.
    Jwt,
    /// An access token, at an API of the API Platform.
    Platform,
    /// An API key.
    ApiKey,
    /// The key of a publisher's test console.
    Internal,
}

impl TokenKind {
    /// What interceptors and policy agents get.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TokenKind::Jwt | TokenKind::Platform => "JWT",
            TokenKind::ApiKey => "API Key",
            TokenKind::Internal => "Internal Key",
        }
    }

    /// Whether a token with this `token_type` may be used as such.
    fn accepts(self, token_type: Option<&str>) -> bool {
        let is = |name: &str| token_type.is_some_and(|found| found.eq_ignore_ascii_case(name));
        match self {
            TokenKind::Jwt | TokenKind::Platform => !is("apiKey") && !is("InternalKey"),
            TokenKind::ApiKey => is("apiKey"),
            TokenKind::Internal => is("InternalKey"),
        }
    }
}

/// Why a credential is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// One of the gateway's codes.
    pub code: u32,
    /// For the log and for explanations; never holds key or token.
    pub reason: Cow<'static, str>,
    /// The description, if it differs from the table's.
    pub description: Option<&'static str>,
    /// Whether it is unknown: no JWT, or of an unknown issuer.
    pub unknown: bool,
}

impl Refusal {
    /// The usual one.
    pub(crate) fn invalid(reason: impl Into<Cow<'static, str>>) -> Refusal {
        Refusal { code: codes::INVALID_CREDENTIALS, reason: reason.into(), description: None, unknown: false }
    }

    /// The same of what was seen to be a token. Choreo Connect distinguishes it from what is no token.
    pub(crate) fn of_token(self, kind: TokenKind) -> Refusal {
        let description = self.description.or(match kind {
            _ if self.code != codes::INVALID_CREDENTIALS => None,
            TokenKind::ApiKey => Some(WRONG_KEY),
            TokenKind::Jwt | TokenKind::Internal | TokenKind::Platform => Some(WRONG_TOKEN),
        });
        Refusal { description, ..self }
    }
}

/// Choreo Connect's description for an invalid token.
const WRONG_TOKEN: &str = "Invalid Credentials. Make sure you have provided the correct security credentials";
/// Of an API key, with both its full stops.
const WRONG_KEY: &str = "API key authentication failed.. Make sure you have provided the correct security credentials";

impl From<Refusal> for GatewayError {
    fn from(refusal: Refusal) -> GatewayError {
        GatewayError {
            code: refusal.code,
            description: refusal.description.map(Arc::from),
            reason: Some(refusal.reason.as_ref().into()),
        }
    }
}

/// An API the token says its application subscribed to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SubscribedApi {
    pub name: Arc<str>,
    pub context: Arc<str>,
    pub version: Arc<str>,
    pub tier: Arc<str>,
}

/// A token whose signature, issuer and time were checked.
#[derive(Debug)]
pub(crate) struct Verified {
    /// What it is used as.
    pub kind: TokenKind,
    /// Whose it is, by the name of the configuration.
    pub issuer: Arc<str>,
    /// What it calls its issuer.
    pub named: Arc<str>,
    /// When it ends, in seconds since 1970; the skew is not in it.
    pub expires: u64,
    /// Its id.
    pub jti: Option<Arc<str>>,
    /// Who calls with it.
    pub caller: Rc<Caller>,
    /// Its scopes.
    pub scopes: Vec<Arc<str>>,
    /// `aud`.
    pub audiences: Vec<Arc<str>>,
    /// Whether it says what its application subscribed to, and to what.
    pub subscribed: Option<Vec<SubscribedApi>>,
    /// Whether its application must have subscribed.
    pub validate_subscription: bool,
    /// Addresses an API key may come from; empty means any.
    pub permitted_ips: Vec<IpRange>,
    /// Pages an API key may be used on, with `*`; empty means any.
    pub permitted_referers: Vec<Arc<str>>,
    /// The published key that signed it.
    pub signed_by: Option<(Arc<KeyRing>, PublicKey)>,
    /// Whether it was introspected: after its time in the cache it is introspected again.
    pub introspected: bool,
    /// Backend tokens of its caller, by base path, with their expiry.
    pub for_backends: RefCell<HashMap<Arc<str>, ForBackend>>,
    /// Checked subscriptions of its application.
    at_apis: RefCell<Vec<AtApi>>,
}

/// APIs a token's caller is remembered at. An application that calls more of them is looked up again now and then.
const REMEMBERED_APIS_MAX: usize = 16;

/// What is known of a caller at an API.
#[derive(Debug)]
struct AtApi {
    /// Compared by its place, which is not used for another as long as this is held.
    api: Weak<Api>,
    /// The generation of the applications and subscriptions.
    accesses: u64,
    caller: Rc<Caller>,
}

impl Verified {
    /// Reads the claims of a token of an issuer. Times are checked by the caller.
    pub(crate) fn read(
        kind: TokenKind,
        token: Arc<str>,
        claims: Map<String, Value>,
        issuer: &Issuer,
    ) -> Result<Verified, Refusal> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        if !kind.accepts(text("token_type")) {
            return Err(Refusal::invalid("the token is of another type than the place it was sent in"));
        }
        let expires = match numeric_date(&claims, "exp") {
            Some(expires) => expires,
            // Keys may be made without an end; they end by being revoked.
            None if kind != TokenKind::Jwt && !claims.contains_key("exp") => u64::MAX,
            None => return Err(Refusal::invalid("the token has no `exp`")),
        };
        let audiences = texts(claims.get("aud"), false);
        if !issuer.audiences.is_empty() && !audiences.iter().any(|audience| issuer.audiences.contains(audience)) {
            return Err(Refusal { code: codes::AUDIENCE, ..Refusal::invalid("the token is for another audience") });
        }
        let application = claims.get("application");
        let of_application = |name: &str| -> Arc<str> {
            application.and_then(|application| application.get(name)).map_or_else(nothing, plain)
        };
        let consumer_key = text(&issuer.consumer_key_claim).or_else(|| text("client_id"));
        let key_type = text("keytype");
        let application_id = match of_application("uuid") {
            uuid if uuid.is_empty() => of_application("id"),
            uuid => uuid,
        };
        let mut caller = Caller {
            token_type: kind.name(),
            token,
            sandbox: key_type.is_some_and(|kind| kind.eq_ignore_ascii_case("SANDBOX")),
            key_type_known: key_type.is_some(),
            subject: text("sub").map_or_else(nothing, Arc::from),
            consumer_key: consumer_key.map_or_else(|| application_id.clone(), Arc::from),
            application_name: of_application("name"),
            application_tier: of_application("tier"),
            application_id,
            ..Caller::default()
        };
        let list = |name: &str| {
            let entries = text(name).unwrap_or_default().split(',').map(str::trim).filter(|entry| !entry.is_empty());
            entries.map(str::to_owned).collect::<Vec<_>>()
        };
        let mut permitted_ips = Vec::new();
        for range in list("permittedIP") {
            let parsed = IpRange::parse(&range);
            permitted_ips
                .push(parsed.ok_or_else(|| Refusal::invalid("`permittedIP` of the key has an invalid address"))?);
        }
        let mut scopes = texts(claims.get(&*issuer.scopes_claim), true);
        if &*issuer.scopes_claim == "scope" {
            // Both names are read, unless the configuration gives another one.
            scopes.extend(texts(claims.get("scp"), true));
        }
        let mut verified = Verified {
            kind,
            issuer: issuer.name.clone(),
            named: text("iss").map_or_else(nothing, Arc::from),
            expires,
            jti: text("jti").map(Arc::from),
            caller: Rc::default(),
            scopes,
            audiences,
            subscribed: subscribed(&claims),
            validate_subscription: match kind {
                TokenKind::Jwt => issuer.validate_subscription,
                TokenKind::ApiKey => !issuer.keys_for_any_api,
                TokenKind::Internal | TokenKind::Platform => true,
            },
            permitted_ips,
            permitted_referers: list("permittedReferer").into_iter().map(Arc::from).collect(),
            signed_by: None,
            introspected: false,
            for_backends: RefCell::default(),
            at_apis: RefCell::default(),
        };
        caller.claims = Some(Arc::new(renamed(claims, issuer)));
        verified.caller = Rc::new(caller);
        Ok(verified)
    }

    /// The caller at an API that it was found to have subscribed to, unless subscriptions changed since.
    pub(crate) fn caller_at(&self, api: &Arc<Api>, accesses: u64) -> Option<Rc<Caller>> {
        let known = self.at_apis.borrow();
        let found = known.iter().find(|known| known.api.as_ptr() == Arc::as_ptr(api) && known.accesses == accesses)?;
        Some(found.caller.clone())
    }

    /// Remembers that.
    pub(crate) fn remember_at(&self, api: &Arc<Api>, accesses: u64, caller: &Rc<Caller>) {
        let mut known = self.at_apis.borrow_mut();
        known.retain(|known| known.accesses == accesses && known.api.as_ptr() != Arc::as_ptr(api));
        if known.len() >= REMEMBERED_APIS_MAX {
            known.clear();
        }
        known.push(AtApi { api: Arc::downgrade(api), accesses, caller: caller.clone() });
    }

    /// Whether it has one of these scopes.
    pub(crate) fn has_one_of(&self, scopes: &[Arc<str>]) -> bool {
        self.scopes.iter().any(|scope| scopes.contains(scope))
    }

    /// Whether it is over. How long an issuer's word counts is our own clock's matter.
    pub(crate) fn is_expired(&self, now: u64, skew: u64) -> bool {
        let skew = if self.introspected { 0 } else { skew };
        now > self.expires.saturating_add(skew)
    }

    /// Whether the key that signed it was withdrawn.
    pub(super) fn is_orphaned(&self) -> bool {
        self.signed_by.as_ref().is_some_and(|(ring, key)| !ring.has(key))
    }
}

/// Whether a claim about time is there and no number (RFC 7519 §2, NumericDate): nothing can be said about it.
pub(crate) fn is_malformed_time(claims: &Map<String, Value>, name: &str) -> bool {
    claims.get(name).is_some_and(|time| !time.as_f64().is_some_and(f64::is_finite))
}

/// A list of texts, or one text; blanks separate several in one text when `split`.
fn texts(value: Option<&Value>, split: bool) -> Vec<Arc<str>> {
    match value {
        Some(Value::String(text)) if split => text.split_ascii_whitespace().map(Arc::from).collect(),
        Some(Value::String(text)) => vec![text.as_str().into()],
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(Arc::from).collect(),
        _ => Vec::new(),
    }
}

/// A text as it is, anything else as JSON: the ids of applications are numbers in some tokens.
fn plain(value: &Value) -> Arc<str> {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Null => nothing(),
        other => other.to_string().into(),
    }
}

fn subscribed(claims: &Map<String, Value>) -> Option<Vec<SubscribedApi>> {
    let entries = claims.get("subscribedAPIs")?.as_array()?;
    let read = |entry: &Value| {
        let field = |name: &str| entry.get(name).map(plain).unwrap_or_default();
        SubscribedApi {
            name: field("name"),
            context: field("context"),
            version: field("version"),
            tier: field("subscriptionTier"),
        }
    };
    Some(entries.iter().map(read).collect())
}

/// The claims under the names they have here.
fn renamed(claims: Map<String, Value>, issuer: &Issuer) -> Map<String, Value> {
    if issuer.claim_mapping.is_empty() {
        return claims;
    }
    let ours = |name: String| {
        let mapped = issuer.claim_mapping.iter().find(|(theirs, _)| **theirs == *name);
        mapped.map_or(name, |(_, ours)| ours.to_string())
    };
    claims.into_iter().map(|(name, value)| (ours(name), value)).collect()
}
