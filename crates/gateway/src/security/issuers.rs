//! From a token as it was sent to one that counts.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cache::{self, Epoch};
use super::config::{Issuer, SecurityConfig};
use super::jose::{Jws, Malformed};
use super::jwks::{KeyRing, Signed};
use super::token::{self, Kind, Refusal, Verified};
use super::{PublicKey, SecurityState, unix_now};
use crate::error::codes;

/// Issuers of this name sign API keys.
const API_KEY_ISSUER: &str = "APIM APIkey";
/// Issuers of this name sign internal keys, and API keys when none is called [`API_KEY_ISSUER`].
const PUBLISHER_ISSUER: &str = "APIM Publisher";

/// What a client is told of a token that cannot be read, word for word as the original says it.
const UNDECODABLE: &str =
    "Not a JWT token. Failed to decode the token header. Make sure you have provided the correct security credentials";
/// Of one that was revoked.
const REVOKED: &str = "Invalid JWT token. Make sure you have provided the correct security credentials";

/// Checks tokens by one configuration. Shared by all cores; what each verified it remembers for itself.
pub(crate) struct Verifier {
    id: u64,
    skew: u64,
    issuers: Vec<Known>,
    own: Known,
    state: Arc<SecurityState>,
}

/// What the gateway's own tokens are known by, beside the names of the configuration.
pub const OWN_ISSUER: &str = "own";

struct Known {
    issuer: Issuer,
    ring: Option<Arc<KeyRing>>,
}

/// What became of a token.
pub(crate) enum Outcome {
    /// It counts.
    Valid(Rc<Verified>),
    /// It counts, and this core had not seen it.
    First(Rc<Verified>),
    /// It does not.
    Refused(Refusal),
    /// Nobody knows before the keys of its issuer were fetched.
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

/// Keys that must be fetched.
pub(crate) struct Need(pub Arc<KeyRing>);

impl Verifier {
    /// For a configuration.
    pub(crate) fn new(config: &SecurityConfig, state: Arc<SecurityState>) -> Verifier {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let known = |issuer: &Issuer| Known {
            issuer: issuer.clone(),
            ring: issuer.jwks_url.as_ref().map(|url| state.ring(url)),
        };
        let issuers = config.issuers.iter().map(known).collect();
        let own = Issuer { name: OWN_ISSUER.into(), issuer: config.own_issuer.clone(), ..Issuer::default() };
        Verifier {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            skew: config.clock_skew.as_secs(),
            issuers,
            own: Known { issuer: own, ring: None },
            state,
        }
    }

    /// What is known of a token that this core has verified before. It is compared whole, so nothing else need be asked.
    pub(crate) fn recall(&self, kind: Kind, sent: &[u8]) -> Option<Outcome> {
        let found = self.with_epoch(|epoch| cache::get(epoch, sent))?;
        if found.kind != kind {
            return None;
        }
        if !found.is_expired(unix_now(), self.skew) {
            return Some(Outcome::Valid(found));
        }
        cache::remove(sent);
        Some(Outcome::Refused(Refusal::invalid("the token expired").of_token(kind)))
    }

    /// Checks a token. `may_fetch` is false for the second look, after keys were fetched.
    pub(crate) fn verify(&self, kind: Kind, text: &str, may_fetch: bool) -> Outcome {
        self.verify_by(kind, &Among::default(), text, may_fetch)
    }

    fn verify_by(&self, kind: Kind, among: &Among, text: &str, may_fetch: bool) -> Outcome {
        let outcome = self.examine(kind, among, text, may_fetch).unwrap_or_else(Outcome::Refused);
        if let Outcome::First(verified) = &outcome {
            self.with_epoch(|epoch| cache::put(epoch, verified.clone()));
        }
        outcome
    }

    /// What is known of a token, or what becomes clear now.
    pub(crate) fn look_up(&self, kind: Kind, text: &str, may_fetch: bool) -> Outcome {
        self.recall(kind, text.as_bytes()).unwrap_or_else(|| self.verify(kind, text, may_fetch))
    }

    /// The same for an operation of the API Platform. What was found for another operation counts when its issuer does
    /// here; otherwise another issuer with the same name for itself may have signed it too.
    pub(crate) fn verify_among(&self, among: &Among, text: &str, may_fetch: bool) -> Outcome {
        match self.recall(Kind::Platform, text.as_bytes()) {
            Some(Outcome::Valid(token)) if !self.takes(among, &token) => {}
            Some(outcome) => return outcome,
            None => {}
        }
        self.verify_by(Kind::Platform, among, text, may_fetch)
    }

    fn with_epoch<T>(&self, use_cache: impl FnOnce(Epoch<'_>) -> T) -> T {
        let is_revoked = |token: &Verified| self.state.is_revoked(token.jti.as_deref(), &token.caller.token);
        let revocations = self.state.revocations.number();
        use_cache(Epoch { verifier: self.id, revocations, is_revoked: &is_revoked })
    }

    fn examine(&self, kind: Kind, among: &Among, text: &str, may_fetch: bool) -> Result<Outcome, Refusal> {
        let jws = Jws::parse(text).map_err(|why| {
            let unknown = matches!(why, Malformed::Header | Malformed::Payload);
            let refusal = Refusal { unknown, ..Refusal::invalid(why.reason()) };
            match why {
                Malformed::TooLong | Malformed::Parts => refusal,
                Malformed::Header | Malformed::Algorithm | Malformed::Payload if kind != Kind::ApiKey => {
                    Refusal { description: Some(UNDECODABLE), ..refusal }
                }
                _ => refusal.of_token(kind),
            }
        })?;
        self.judge(kind, among, text, jws, may_fetch).map_err(|refusal| refusal.of_token(kind))
    }

    fn judge(&self, kind: Kind, among: &Among, text: &str, jws: Jws<'_>, may_fetch: bool) -> Result<Outcome, Refusal> {
        if self.state.is_revoked(jws.claims.get("jti").and_then(|jti| jti.as_str()), text) {
            return Err(Refusal { description: Some(REVOKED), ..Refusal::invalid("the token was revoked") });
        }
        let known = match self.signer_of(kind, among, &jws)? {
            Found::Issuer(known) => known,
            Found::Need(ring) if may_fetch => return Ok(Outcome::Needs(Need(ring))),
            Found::Need(ring) => return Err(unknown_key(&ring)),
        };
        let now = unix_now();
        if token::is_malformed_time(&jws.claims, "nbf") {
            return Err(Refusal::invalid("the claim `nbf` of the token is not a number"));
        }
        if token::seconds(&jws.claims, "nbf").is_some_and(|from| from > now + self.skew) {
            return Err(Refusal::invalid("the token is not good yet"));
        }
        let verified = Verified::read(kind, text.into(), jws.claims, &known.issuer)?;
        if verified.is_expired(now, self.skew) {
            return Err(Refusal::invalid("the token expired"));
        }
        Ok(Outcome::First(Rc::new(verified)))
    }

    /// The issuer whose key made the signature.
    fn signer_of<'v>(&'v self, kind: Kind, among: &Among, jws: &Jws<'_>) -> Result<Found<'v>, Refusal> {
        let named = jws.claims.get("iss").and_then(|iss| iss.as_str()).unwrap_or_default();
        let is_ours = || self.own_key().verifies(jws.algorithm, jws.signed.as_bytes(), &jws.signature);
        let candidates: Vec<&Known> = match kind {
            Kind::Jwt if named == &*self.own.issuer.issuer && is_ours() => return Ok(Found::Issuer(&self.own)),
            Kind::Jwt => self.issuers.iter().filter(|known| *known.issuer.issuer == *named).collect(),
            Kind::Platform
                if among.names(&self.own.issuer, named) && named == &*self.own.issuer.issuer && is_ours() =>
            {
                return Ok(Found::Issuer(&self.own));
            }
            Kind::Platform => self.candidates_among(among, named),
            // Keys are signed by the gateway or its publisher, whatever they call themselves.
            _ if is_ours() => return Ok(Found::Issuer(&self.own)),
            Kind::ApiKey => {
                let called = |name: &str| self.issuers.iter().filter(|k| *k.issuer.name == *name).collect::<Vec<_>>();
                let own = called(API_KEY_ISSUER);
                if own.is_empty() { called(PUBLISHER_ISSUER) } else { own }
            }
            Kind::Internal => self.issuers.iter().filter(|known| *known.issuer.name == *PUBLISHER_ISSUER).collect(),
        };
        if candidates.is_empty() {
            let reason = match kind {
                Kind::Jwt if named == &*self.own.issuer.issuer => "the signature of the token is wrong".into(),
                Kind::Jwt | Kind::Platform => format!("no issuer `{}` is configured", shown(named)),
                _ => "the key was not signed by this gateway, and no other signer of keys is configured".to_owned(),
            };
            let unknown = kind == Kind::Jwt && named != &*self.own.issuer.issuer;
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
                return Ok(Found::Issuer(known));
            }
            match known.ring.as_ref().map(|ring| (ring, ring.signed(jws))) {
                Some((_, Signed::Yes)) => return Ok(Found::Issuer(known)),
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
    Issuer(&'v Known),
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

/// A stranger's text, safe to log.
fn shown(text: &str) -> String {
    const SHOWN_MAX: usize = 100;
    text.chars().take(SHOWN_MAX).flat_map(char::escape_default).collect()
}
