//! The keys an issuer publishes: read, fetched through the engine's outbound port, kept when the issuer is away.

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use penstock_engine::ports::{Outbound, Outgoing, SendOptions};
use penstock_message::{Form, Headers, Message, Method};
use serde_json::Value;

use super::{Algorithm, Jws, PublicKey};

/// From the request to the last byte; a request of a client waits for it.
const FETCH_TIME_MAX: Duration = Duration::from_secs(5);

/// Real sets take a few kilobytes.
const JWKS_BYTES_MAX: usize = 256 * 1024;

/// Keys of one set that are looked at.
const KEYS_MAX: usize = 100;

/// Between two fetches: tokens with made-up key ids must not become a flood of requests to an issuer.
const FETCH_PAUSE: Duration = Duration::from_secs(5);

/// Keys older than this are fetched again in the background, so that one that was withdrawn does not live for ever.
const KEYS_AGE_MAX: Duration = Duration::from_secs(3600);

/// A published key.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PublishedKey {
    kid: Option<String>,
    algorithm: Option<String>,
    key: PublicKey,
}

/// The keys of one address, shared by all cores.
pub(crate) struct KeyRing {
    url: Arc<str>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signed {
    /// One did.
    Yes,
    /// The one the token names did not.
    No,
    /// None is the one the token names.
    UnknownKey,
}

impl KeyRing {
    /// Keys of an address, not fetched yet.
    pub(crate) fn new(url: Arc<str>) -> KeyRing {
        KeyRing { url, keys: RwLock::default(), attempt: Mutex::default(), turn: tokio::sync::Mutex::default() }
    }

    fn set(&self) -> Arc<KeySet> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether one of the keys made the signature of a token.
    pub(crate) fn signed(&self, jws: &Jws<'_>) -> Signed {
        let set = self.set();
        let fits = |key: &&PublishedKey| {
            (jws.kid.is_none() || key.kid.is_none() || key.kid == jws.kid)
                && key.algorithm.as_deref().is_none_or(|name| name == jws.algorithm.name())
        };
        let mut named = false;
        for key in set.keys.iter().filter(fits) {
            named |= key.kid == jws.kid;
            if key.key.verifies(jws.algorithm, jws.signed.as_bytes(), &jws.signature) {
                return Signed::Yes;
            }
        }
        if named { Signed::No } else { Signed::UnknownKey }
    }

    /// Why there are no keys at all, when there are none.
    pub(crate) fn failure(&self) -> Option<String> {
        let set = self.set();
        if set.fetched.is_some() { None } else { Some(set.failure.clone().unwrap_or_default()) }
    }

    /// Whether fetching now is neither too soon after the last time nor under way since.
    pub(crate) fn may_fetch(&self) -> bool {
        let attempt = *self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever comes while another fetches joins the wait for it.
        attempt.is_none_or(|at| at.elapsed() >= FETCH_PAUSE) || self.turn.try_lock().is_err()
    }

    /// Whether the keys are so old that somebody should look whether they still hold.
    pub(crate) fn is_stale(&self) -> bool {
        self.set().fetched.is_some_and(|at| at.elapsed() >= KEYS_AGE_MAX) && self.may_fetch()
    }

    /// Fetches, unless somebody else just did. What was there stays when it fails.
    pub(crate) async fn fetch(self: Arc<Self>, outbound: Rc<dyn Outbound>) {
        let _turn = self.turn.lock().await;
        {
            let mut attempt = self.attempt.lock().unwrap_or_else(PoisonError::into_inner);
            if attempt.is_some_and(|at| at.elapsed() < FETCH_PAUSE) {
                return;
            }
            *attempt = Some(Instant::now());
        }
        let outcome = match tokio::time::timeout(FETCH_TIME_MAX, get(&*outbound, self.url.clone())).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!("no answer within {} s", FETCH_TIME_MAX.as_secs())),
        };
        *self.attempt.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let next = match outcome {
            Ok(keys) => KeySet { keys, fetched: Some(Instant::now()), failure: None },
            Err(why) => {
                let old = self.set();
                KeySet { keys: old.keys.clone(), fetched: old.fetched, failure: Some(why) }
            }
        };
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
    }
}

async fn get(outbound: &dyn Outbound, url: Arc<str>) -> Result<Vec<PublishedKey>, String> {
    let mut headers = Headers::new();
    headers.set("Accept", "application/json");
    let outgoing = Outgoing {
        url,
        method: Method::Get,
        message: Message { headers, ..Message::default() },
        options: SendOptions::within(FETCH_TIME_MAX),
    };
    let mut reply = outbound.send(outgoing).await.map_err(|fault| fault.to_string())?;
    if reply.status != 200 {
        return Err(format!("status {}", reply.status));
    }
    let body = &mut reply.body;
    std::future::poll_fn(|cx| body.poll_pull(cx, usize::MAX, JWKS_BYTES_MAX))
        .await
        .map_err(|error| error.to_string())?;
    match body.form() {
        Form::Bytes(bytes) => parse(bytes),
        _ => Err("an empty answer".to_owned()),
    }
}

/// Reads a set of keys; those that sign nothing are passed over.
fn parse(bytes: &[u8]) -> Result<Vec<PublishedKey>, String> {
    let set: Value = serde_json::from_slice(bytes).map_err(|_| "the answer is not JSON".to_owned())?;
    let keys = set.get("keys").and_then(Value::as_array).ok_or("the answer has no `keys`")?;
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
    if keys.is_empty() { Err("the answer has no key that can check a signature".to_owned()) } else { Ok(keys) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_and_what_is_no_set_is_refused() {
        let point = "A".repeat(43);
        let set = format!(
            "{{\"keys\":[{{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"a\",\"x\":\"{point}\",\"y\":\"{point}\"}},\
             {{\"kty\":\"EC\",\"crv\":\"P-256\",\"use\":\"enc\",\"x\":\"{point}\",\"y\":\"{point}\"}},\
             {{\"kty\":\"oct\",\"k\":\"AA\",\"alg\":\"HS256\"}},{{\"kty\":\"RSA\"}},7]}}"
        );
        let keys = parse(set.as_bytes()).unwrap();
        assert_eq!((keys.len(), keys[0].kid.as_deref()), (1, Some("a")));
        for bad in ["", "[]", "{\"keys\":{}}", "{\"keys\":[]}", "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AA\"}]}", "<html>"]
        {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
