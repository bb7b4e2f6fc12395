//! From a token as it was sent to one that counts.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use std::time::Duration;

use penstock_engine::ports::Outbound;
use penstock_identity::{
    IntrospectedToken, Introspector, Issuer, Jws, KeyRing, KeySource, Malformed, PublicKey, Signed, document_of,
    is_opaque, numeric_date, unix_now,
};
use serde_json::{Map, Value};

use super::SecurityState;
use super::cache::{self, Epoch};
use super::config::SecurityConfig;
use super::token::{self, Refusal, TokenKind, Verified};
use crate::error::codes;

/// Issuers of this name sign API keys.
const API_KEY_ISSUER: &str = "APIM APIkey";
/// Issuers of this name sign internal keys, and API keys when none is called [`API_KEY_ISSUER`].
const PUBLISHER_ISSUER: &str = "APIM Publisher";

/// The description for an unreadable token, that of Choreo Connect.
const UNDECODABLE: &str =
    "Not a JWT token. Failed to decode the token header. Make sure you have provided the correct security credentials";
/// Of one that was revoked.
const REVOKED: &str = "Invalid JWT token. Make sure you have provided the correct security credentials";

/// Checks tokens by one configuration. Shared by all cores; what each verified it remembers for itself.
pub(crate) struct Verifier {
    id: u64,
    skew: u64,
    /// Indices are kept by [`Need::Introspection`].
    issuers: Vec<Known>,
    own: Known,
    state: Arc<SecurityState>,
}

/// What the gateway's own tokens are known by, beside the names of the configuration.
pub const OWN_ISSUER: &str = "own";

struct Known {
    issuer: Issuer,
    ring: Option<Arc<KeyRing>>,
    introspector: Option<Introspector>,
}

/// What became of a token.
pub(crate) enum Outcome {
    /// It counts.
    Valid(Rc<Verified>),
    /// It counts, and this core had not seen it.
    First(Rc<Verified>),
    /// It does not.
    Refused(Refusal),
    /// Its issuer must be called first, for keys or introspection.
    Needs(Need),
}

/// Whose tokens an operation of the API Platform takes.
#[derive(Debug, Default)]
pub(crate) struct Among {
    /// By name or by what their tokens say; empty means any.
    pub issuers: Vec<Arc<str>>,
    /// Whether tokens must be of an issuer that is configured, or of one that is configured without saying whose.
    /// Otherwise any key that is known will do.
    pub validates_issuer: bool,
}

/// Pending calls of issuers, see [`Verifier::fetch`].
pub(crate) enum Need {
    /// Keys.
    Keys(Arc<KeyRing>),
    /// Whether a token counts, of the issuers with these indices.
    Introspection {
        /// What it is used as.
        kind: TokenKind,
        /// The token.
        token: Arc<str>,
        /// Issuers to call, in order.
        issuers: Vec<usize>,
    },
}

impl Verifier {
    /// For a configuration.
    pub(crate) fn new(config: &SecurityConfig, state: Arc<SecurityState>) -> Verifier {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let known = |issuer: &Issuer| Known {
            issuer: issuer.clone(),
            ring: key_source(issuer).map(|source| state.ring(source, config.keys_refresh)),
            introspector: match (&issuer.own_tokens, &issuer.introspection) {
                (Some(tokens), _) => Some(Introspector::own(tokens)),
                (None, remote) => remote.as_ref().map(Introspector::new),
            },
        };
        let issuers = config.issuers.iter().map(known).collect();
        let own = Issuer { name: OWN_ISSUER.into(), issuer: config.own_issuer.clone(), ..Issuer::default() };
        Verifier {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            skew: config.clock_skew.as_secs(),
            issuers,
            own: Known { issuer: own, ring: None, introspector: None },
            state,
        }
    }

    /// What is known of a token that this core has verified before. It is compared whole, so no other check is needed.
    pub(crate) fn recall(&self, kind: TokenKind, sent: &[u8]) -> Option<Outcome> {
        let found = self.with_epoch(|epoch| cache::get(epoch, sent))?;
        if found.kind != kind {
            return None;
        }
        if !found.is_expired(unix_now(), self.skew) {
            return Some(Outcome::Valid(found));
        }
        cache::remove(sent);
        if found.introspected {
            return None;
        }
        Some(Outcome::Refused(Refusal::invalid("the token expired").of_token(kind)))
    }

    /// Checks a token. `may_fetch` is false for the second look, after keys were fetched.
    pub(crate) fn verify(&self, kind: TokenKind, text: &str, may_fetch: bool) -> Outcome {
        self.verify_by(kind, &Among::default(), text, may_fetch)
    }

    fn verify_by(&self, kind: TokenKind, among: &Among, text: &str, may_fetch: bool) -> Outcome {
        let outcome = self.examine(kind, among, text, may_fetch).unwrap_or_else(Outcome::Refused);
        if let Outcome::First(verified) = &outcome {
            self.with_epoch(|epoch| cache::put(epoch, verified.clone()));
        }
        outcome
    }

    /// What is known of a token, or what becomes clear now.
    pub(crate) fn look_up(&self, kind: TokenKind, text: &str, may_fetch: bool) -> Outcome {
        self.recall(kind, text.as_bytes()).unwrap_or_else(|| self.verify(kind, text, may_fetch))
    }

    /// The same for an operation of the API Platform. What was found for another operation counts when its issuer does
    /// here; otherwise another issuer with the same name for itself may have signed it too.
    pub(crate) fn verify_among(&self, among: &Among, text: &str, may_fetch: bool) -> Outcome {
        match self.recall(TokenKind::Platform, text.as_bytes()) {
            Some(Outcome::Valid(token)) if !self.takes(among, &token) => {}
            Some(outcome) => return outcome,
            None => {}
        }
        self.verify_by(TokenKind::Platform, among, text, may_fetch)
    }

    fn with_epoch<T>(&self, use_cache: impl FnOnce(Epoch<'_>) -> T) -> T {
        let is_revoked =
            |token: &Verified| self.state.is_revoked(token.jti.as_deref(), &token.caller.token) || token.is_orphaned();
        // Both only grow, so their sum changes with either.
        let revocations = self.state.revocations.number() + self.state.removals.load(Ordering::Acquire);
        use_cache(Epoch { verifier: self.id, revocations, is_revoked: &is_revoked })
    }

    fn examine(&self, kind: TokenKind, among: &Among, text: &str, may_fetch: bool) -> Result<Outcome, Refusal> {
        let parsed = Jws::parse(text);
        if parsed.is_err()
            && let Some(outcome) = self.introspect(kind, among, text, may_fetch, |_| true)
        {
            return outcome.map_err(|refusal| refusal.of_token(kind));
        }
        let jws = parsed.map_err(|why| {
            let unknown = matches!(why, Malformed::Header | Malformed::Payload);
            let refusal = Refusal { unknown, ..Refusal::invalid(why.reason()) };
            match why {
                Malformed::TooLong | Malformed::Parts => refusal,
                Malformed::Header | Malformed::Algorithm | Malformed::Payload if kind != TokenKind::ApiKey => {
                    Refusal { description: Some(UNDECODABLE), ..refusal }
                }
                _ => refusal.of_token(kind),
            }
        })?;
        self.judge(kind, among, text, jws, may_fetch).map_err(|refusal| refusal.of_token(kind))
    }

    fn judge(
        &self,
        kind: TokenKind,
        among: &Among,
        text: &str,
        jws: Jws<'_>,
        may_fetch: bool,
    ) -> Result<Outcome, Refusal> {
        if self.state.is_revoked(jws.claims.get("jti").and_then(|jti| jti.as_str()), text) {
            return Err(Refusal { description: Some(REVOKED), ..Refusal::invalid("the token was revoked") });
        }
        let named = jws.claims.get("iss").and_then(|iss| iss.as_str()).unwrap_or_default();
        let only_it_can_read =
            |known: &Known| *known.issuer.issuer == *named && known.ring.is_none() && known.issuer.keys.is_empty();
        if let Some(outcome) = self.introspect(kind, among, text, may_fetch, only_it_can_read) {
            return outcome;
        }
        let (known, signed_by) = match self.signer_of(kind, among, &jws)? {
            Found::Issuer(known, signed_by) => (known, signed_by),
            Found::Need(ring) if may_fetch => return Ok(Outcome::Needs(Need::Keys(ring))),
            Found::Need(ring) => return Err(unknown_key(&ring)),
        };
        let now = unix_now();
        if token::is_malformed_time(&jws.claims, "nbf") {
            return Err(Refusal::invalid("the claim `nbf` of the token is not a number"));
        }
        if numeric_date(&jws.claims, "nbf").is_some_and(|from| from > now + self.skew) {
            return Err(Refusal::invalid("the token is not good yet"));
        }
        let mut verified = Verified::read(kind, text.into(), jws.claims, &known.issuer)?;
        verified.signed_by = signed_by;
        if verified.is_expired(now, self.skew) {
            return Err(Refusal::invalid("the token expired"));
        }
        Ok(Outcome::First(Rc::new(verified)))
    }

    /// Whether any issuer has introspection.
    pub(crate) fn introspects(&self) -> bool {
        self.issuers.iter().any(|known| known.introspector.is_some())
    }

    /// The cached result of introspection; `None` without such an issuer among the allowed ones.
    fn introspect(
        &self,
        kind: TokenKind,
        among: &Among,
        text: &str,
        may_fetch: bool,
        wanted: impl Fn(&Known) -> bool,
    ) -> Option<Result<Outcome, Refusal>> {
        if kind == TokenKind::Internal || !is_opaque(text) {
            return None;
        }
        let signs_keys = |known: &Known| [API_KEY_ISSUER, PUBLISHER_ISSUER].contains(&&*known.issuer.name);
        let is_own = |known: &Known| known.introspector.as_ref().is_some_and(Introspector::is_own);
        let fits = |known: &Known| {
            // Other issuers introspect access tokens only.
            if (kind == TokenKind::ApiKey) != (is_own(known) && signs_keys(known)) {
                return false;
            }
            let counts = kind != TokenKind::Platform || among.names(&known.issuer, &known.issuer.issuer);
            counts && wanted(known)
        };
        let asked = self.issuers.iter().enumerate().filter(|(_, known)| fits(known));
        let asked: Vec<_> = asked.filter_map(|(index, known)| Some((index, known.introspector.as_ref()?))).collect();
        if asked.is_empty() {
            return None;
        }
        let unknown = asked.iter().filter(|(_, introspector)| introspector.known(text).is_none());
        let issuers: Vec<usize> = unknown.map(|(index, _)| *index).collect();
        if may_fetch && !issuers.is_empty() {
            return Some(Ok(Outcome::Needs(Need::Introspection { kind, token: text.into(), issuers })));
        }
        let failure = asked.iter().find_map(|(_, introspector)| match introspector.known(text)? {
            IntrospectedToken::Failed(why) => Some(why),
            IntrospectedToken::Inactive => None,
        });
        Some(Err(match failure {
            // A token that is of no other issuer either.
            None => Refusal {
                unknown: kind == TokenKind::Jwt && asked.iter().all(|(_, introspector)| introspector.is_own()),
                ..Refusal::invalid("the token is not active")
            },
            Some(why) => Refusal {
                code: codes::UNCLASSIFIED_AUTHENTICATION,
                ..Refusal::invalid(format!("the token cannot be introspected: {why}"))
            },
        }))
    }

    /// Calls issuers; the next lookup finds the results.
    pub(crate) async fn fetch(&self, need: Need, outbound: Rc<dyn Outbound>) {
        let (kind, token, issuers) = match need {
            Need::Keys(ring) => return ring.fetch(outbound).await,
            Need::Introspection { kind, token, issuers } => (kind, token, issuers),
        };
        for known in issuers.into_iter().filter_map(|index| self.issuers.get(index)) {
            let Some(introspector) = &known.introspector else { continue };
            let Some(claims) = introspector.ask(&*outbound, &token).await else { continue };
            match self.active(kind, &token, claims, known, introspector.remembered_for) {
                Some(verified) => return self.with_epoch(|epoch| cache::put(epoch, Rc::new(verified))),
                None => introspector.refuse(&token),
            }
        }
    }

    /// A token that its issuer calls active, when its claims agree.
    fn active(
        &self,
        kind: TokenKind,
        text: &Arc<str>,
        mut claims: Map<String, Value>,
        known: &Known,
        remembered_for: Duration,
    ) -> Option<Verified> {
        let now = unix_now();
        let until = now.saturating_add(remembered_for.as_secs().max(1));
        let ends = numeric_date(&claims, "exp");
        let is_over = ends.is_some_and(|ends| now > ends.saturating_add(self.skew));
        let is_early = numeric_date(&claims, "nbf").is_some_and(|from| from > now + self.skew);
        let names_another = claims.get("iss").is_some_and(|iss| iss.as_str() != Some(&*known.issuer.issuer));
        let jti = claims.get("jti").and_then(Value::as_str);
        if is_over || is_early || names_another || self.state.is_revoked(jti, text) {
            return None;
        }
        claims.insert("iss".to_owned(), (*known.issuer.issuer).into());
        claims.insert("exp".to_owned(), ends.unwrap_or(until).into());
        let mut verified = Verified::read(kind, text.clone(), claims, &known.issuer).ok()?;
        verified.expires = verified.expires.min(until);
        verified.introspected = true;
        Some(verified)
    }

    /// The issuer whose key made the signature.
    fn signer_of<'v>(&'v self, kind: TokenKind, among: &Among, jws: &Jws<'_>) -> Result<Found<'v>, Refusal> {
        let named = jws.claims.get("iss").and_then(|iss| iss.as_str()).unwrap_or_default();
        let is_ours = || self.own_key().verifies(jws.algorithm, jws.signed.as_bytes(), &jws.signature);
        let candidates: Vec<&Known> = match kind {
            TokenKind::Jwt if named == &*self.own.issuer.issuer && is_ours() => {
                return Ok(Found::Issuer(&self.own, None));
            }
            TokenKind::Jwt => self.issuers.iter().filter(|known| *known.issuer.issuer == *named).collect(),
            TokenKind::Platform
                if among.names(&self.own.issuer, named) && named == &*self.own.issuer.issuer && is_ours() =>
            {
                return Ok(Found::Issuer(&self.own, None));
            }
            TokenKind::Platform => self.candidates_among(among, named),
            // API keys are signed by the gateway or its publisher, for any `iss`.
            _ if is_ours() => return Ok(Found::Issuer(&self.own, None)),
            TokenKind::ApiKey => {
                let called = |name: &str| self.issuers.iter().filter(|k| *k.issuer.name == *name).collect::<Vec<_>>();
                let own = called(API_KEY_ISSUER);
                if own.is_empty() { called(PUBLISHER_ISSUER) } else { own }
            }
            TokenKind::Internal => {
                self.issuers.iter().filter(|known| *known.issuer.name == *PUBLISHER_ISSUER).collect()
            }
        };
        if candidates.is_empty() {
            let reason = match kind {
                TokenKind::Jwt if named == &*self.own.issuer.issuer => "the signature of the token is wrong".into(),
                TokenKind::Jwt | TokenKind::Platform => format!("no issuer `{}` is configured", shown(named)),
                _ => "the key was not signed by this gateway, and no other signer of keys is configured".to_owned(),
            };
            let unknown = kind == TokenKind::Jwt && named != &*self.own.issuer.issuer;
            return Err(Refusal { unknown, ..Refusal::invalid(reason) });
        }
        let mut need = None;
        for known in candidates {
            let fits = |kid: &Option<Arc<str>>| match (kid, &jws.kid) {
                (Some(ours), Some(theirs)) => **ours == **theirs,
                _ => true,
            };
            let mut keys = known.issuer.keys.iter().filter(|key| fits(&key.kid));
            if keys.any(|key| key.key.verifies(jws.algorithm, jws.signed.as_bytes(), &jws.signature)) {
                return Ok(Found::Issuer(known, None));
            }
            match known.ring.as_ref().map(|ring| (ring, ring.signed(jws))) {
                Some((ring, Signed::Yes(key))) => return Ok(Found::Issuer(known, Some((ring.clone(), key)))),
                Some((ring, Signed::UnknownKey)) => need = Some(ring.clone()),
                Some((_, Signed::No)) | None => {}
            }
        }
        match need {
            Some(ring) if ring.may_fetch() || ring.failure().is_some() => Ok(Found::Need(ring)),
            Some(ring) => Err(unknown_key(&ring)),
            None => Err(Refusal::invalid("the signature of the token is wrong")),
        }
    }

    /// The issuers that may have signed a token of one that calls itself so.
    fn candidates_among(&self, among: &Among, named: &str) -> Vec<&Known> {
        let all = || self.issuers.iter();
        if !among.issuers.is_empty() {
            let says = |known: &&Known| known.issuer.issuer.is_empty() || *known.issuer.issuer == *named;
            return all().filter(|known| among.names(&known.issuer, named)).filter(says).collect();
        }
        let own: Vec<&Known> = all().filter(|known| !named.is_empty() && *known.issuer.issuer == *named).collect();
        match own.is_empty() {
            false => own,
            // One that is configured without a name for itself stands for any.
            true if among.validates_issuer && named.is_empty() => Vec::new(),
            true if among.validates_issuer => all().filter(|known| known.issuer.issuer.is_empty()).collect(),
            true => all().collect(),
        }
    }

    /// Whether the issuer of a token that was verified may have signed it here.
    fn takes(&self, among: &Among, token: &Verified) -> bool {
        match *token.issuer == *OWN_ISSUER {
            true => among.names(&self.own.issuer, &token.named),
            false => {
                let candidates = self.candidates_among(among, &token.named);
                candidates.iter().any(|known| known.issuer.name == token.issuer)
            }
        }
    }

    fn own_key(&self) -> PublicKey {
        self.state.signer().public().clone()
    }

    /// Keys that are so old that they should be fetched again.
    pub(crate) fn stale(&self) -> Option<Arc<KeyRing>> {
        self.issuers.iter().filter_map(|known| known.ring.as_ref()).find(|ring| ring.is_stale()).cloned()
    }
}

impl Among {
    /// Whether an issuer is among them.
    fn names(&self, issuer: &Issuer, named: &str) -> bool {
        self.issuers.is_empty()
            || self.issuers.contains(&issuer.name)
            || (*issuer.issuer == *named && self.issuers.iter().any(|one| **one == *named))
    }
}

enum Found<'v> {
    /// This one, by a key that it publishes or by one that is configured.
    Issuer(&'v Known, Option<(Arc<KeyRing>, PublicKey)>),
    Need(Arc<KeyRing>),
}

fn unknown_key(ring: &KeyRing) -> Refusal {
    match ring.failure() {
        None => Refusal::invalid("the issuer of the token has no such key"),
        // Not the client's fault, which the code says.
        Some(why) => Refusal {
            code: codes::UNCLASSIFIED_AUTHENTICATION,
            ..Refusal::invalid(format!("the keys of the token's issuer cannot be fetched: {why}"))
        },
    }
}

/// Where an issuer publishes its keys. By default it is discovered.
fn key_source(issuer: &Issuer) -> Option<KeySource> {
    if let Some(url) = &issuer.jwks_url {
        return Some(KeySource::Jwks(url.clone()));
    }
    let has_other = !issuer.keys.is_empty() || issuer.introspection.is_some();
    let document = match &issuer.discovery_url {
        Some(document) => document.clone(),
        None if has_other => return None,
        None => document_of(&issuer.issuer)?,
    };
    Some(KeySource::Discovery { document, issuer: issuer.issuer.clone() })
}

/// A stranger's text, safe to log.
fn shown(text: &str) -> String {
    const SHOWN_MAX: usize = 100;
    text.chars().take(SHOWN_MAX).flat_map(char::escape_default).collect()
}
