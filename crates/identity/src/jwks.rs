//! The keys an issuer publishes: read, fetched through the engine's outbound port, kept when the issuer is away.

use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use penstock_engine::ports::Outbound;
use serde_json::Value;

use super::discovery::KeySource;
use super::{Algorithm, Jws, PublicKey};

/// Keys of one set that are looked at.
const KEYS_MAX: usize = 100;

/// Between two fetches: tokens with made-up key ids must not become a flood of requests to an issuer.
const FETCH_PAUSE: Duration = Duration::from_secs(5);

/// A published key.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PublishedKey {
    kid: Option<String>,
    algorithm: Option<String>,
    key: PublicKey,
}

/// The keys of one issuer, shared by all cores.
pub struct KeyRing {
    source: KeySource,
    /// Keys older than this are fetched again, so that one that was withdrawn does not live for ever.
    age_max: Duration,
    /// Counts the fetches after which a key was missing, of all rings together.
    removals: Arc<AtomicU64>,
    keys: RwLock<Arc<KeySet>>,
    attempt: Mutex<Option<Instant>>,
    /// Held while one request fetches; the others that need keys wait for it.
    turn: tokio::sync::Mutex<()>,
}

/// What was fetched last, and what went wrong since.
#[derive(Debug, Default)]
struct KeySet {
    keys: Vec<PublishedKey>,
    fetched: Option<Instant>,
    failure: Option<String>,
}

/// Whether published keys made a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signed {
    /// This one did.
    Yes(PublicKey),
    /// The one the token names did not.
    No,
    /// None is the one the token names.
    UnknownKey,
}

impl KeyRing {
    /// Keys that are not fetched yet.
    pub fn new(source: KeySource, age_max: Duration, removals: Arc<AtomicU64>) -> KeyRing {
        let (keys, attempt, turn) = (RwLock::default(), Mutex::default(), tokio::sync::Mutex::default());
        KeyRing { source, age_max, removals, keys, attempt, turn }
    }

    /// Whether a key is among them.
    pub fn has(&self, key: &PublicKey) -> bool {
        self.set().keys.iter().any(|known| known.key == *key)
    }

    /// Between two fetches.
    fn pause(&self) -> Duration {
        FETCH_PAUSE.min(self.age_max)
    }

    fn set(&self) -> Arc<KeySet> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether one of the keys made the signature of a token.
    pub fn signed(&self, jws: &Jws<'_>) -> Signed {
        let set = self.set();
        let fits = |key: &&PublishedKey| {
            (jws.kid.is_none() || key.kid.is_none() || key.kid == jws.kid)
                && key.algorithm.as_deref().is_none_or(|name| name == jws.algorithm.name())
        };
        let mut named = false;
        for key in set.keys.iter().filter(fits) {
            named |= key.kid == jws.kid;
            if key.key.verifies(jws.algorithm, jws.signed.as_bytes(), &jws.signature) {
                return Signed::Yes(key.key.clone());
            }
        }
        if named { Signed::No } else { Signed::UnknownKey }
    }

    /// Why there are no keys at all, when there are none.
    pub fn failure(&self) -> Option<String> {
        let set = self.set();
        if set.fetched.is_some() { None } else { Some(set.failure.clone().unwrap_or_default()) }
    }

    /// Whether fetching now is neither too soon after the last time nor under way since.
    pub fn may_fetch(&self) -> bool {
        let attempt = *self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        // Concurrent requests share one fetch.
        attempt.is_none_or(|at| at.elapsed() >= self.pause()) || self.turn.try_lock().is_err()
    }

    /// Whether the keys are due for a refresh.
    pub fn is_stale(&self) -> bool {
        self.set().fetched.is_some_and(|at| at.elapsed() >= self.age_max) && self.may_fetch()
    }

    /// Fetches, unless just done. A failure keeps the known keys.
    pub async fn fetch(self: Arc<Self>, outbound: Rc<dyn Outbound>) {
        let _turn = self.turn.lock().await;
        {
            let mut attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
            if attempt.is_some_and(|at| at.elapsed() < self.pause()) {
                return;
            }
            *attempt = Some(Instant::now());
        }
        let outcome = self.source.fetch(&*outbound).await.and_then(|set| parse(&set));
        *self.attempt.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let old = self.set();
        let is_missing = |keys: &[PublishedKey]| old.keys.iter().any(|key| keys.iter().all(|new| new.key != key.key));
        let removed = outcome.as_ref().is_ok_and(|keys| is_missing(keys));
        let next = match outcome {
            Ok(keys) => KeySet { keys, fetched: Some(Instant::now()), failure: None },
            Err(why) => KeySet { keys: old.keys.clone(), fetched: old.fetched, failure: Some(why) },
        };
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        if removed {
            // After the keys: who sees the new number sees the new keys.
            self.removals.fetch_add(1, Ordering::Release);
        }
    }
}

/// Reads a set of keys; those that sign nothing are passed over.
fn parse(set: &Value) -> Result<Vec<PublishedKey>, String> {
    let keys = set.get("keys").and_then(Value::as_array).ok_or("the response has no `keys`")?;
    let read = |jwk: &Value| {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        if text("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let algorithm = text("alg").map(str::to_owned);
        if algorithm.as_deref().is_some_and(|name| Algorithm::named(name).is_none()) {
            return None;
        }
        Some(PublishedKey { kid: text("kid").map(str::to_owned), algorithm, key: PublicKey::from_jwk(jwk)? })
    };
    let keys: Vec<_> = keys.iter().take(KEYS_MAX).filter_map(read).collect();
    if keys.is_empty() { Err("the response has no key that can check a signature".to_owned()) } else { Ok(keys) }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "KeyRing({:?})", self.source)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn sets_are_read_and_what_is_no_set_is_refused() {
        let point = "A".repeat(43);
        let set = format!(
            "{{\"keys\":[{{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"a\",\"x\":\"{point}\",\"y\":\"{point}\"}},\
             {{\"kty\":\"EC\",\"crv\":\"P-256\",\"use\":\"enc\",\"x\":\"{point}\",\"y\":\"{point}\"}},\
             {{\"kty\":\"oct\",\"k\":\"AA\",\"alg\":\"HS256\"}},{{\"kty\":\"RSA\"}},7]}}"
        );
        let parse = |text: &str| super::parse(&serde_json::from_str(text).unwrap_or_default());
        let keys = parse(&set).unwrap();
        assert_eq!((keys.len(), keys[0].kid.as_deref()), (1, Some("a")));
        for bad in ["", "[]", "{\"keys\":{}}", "{\"keys\":[]}", "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AA\"}]}", "<html>"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
