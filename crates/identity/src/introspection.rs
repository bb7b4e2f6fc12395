//! Opaque tokens: introspected (RFC 7662) and cached.
//!
//! A token that is active is remembered per core like any other (`cache.rs`); one that is not is remembered here by its
//! digest, so that a client that repeats it costs the issuer one request.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use penstock_engine::ports::Outbound;
use penstock_message::push_field;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};
use tokio::sync::Semaphore;

use super::config::Introspection;
use super::fetch;

/// Tokens that are not active and remembered.
const REFUSED_MAX: usize = 10_000;

/// How long they are: a token is not reactivated, but a new one may not be known everywhere yet.
const REFUSED_FOR: Duration = Duration::from_secs(10);

/// Pause before the same token is introspected again after a failure.
const FAILED_FOR: Duration = Duration::from_secs(1);

/// Requests to one issuer at a time: made-up tokens must not become a flood.
const REQUESTS_MAX: usize = 64;

/// How long a token of this process is remembered before it is looked up again. Revocation does not wait for it.
const OWN_REMEMBERED_FOR: Duration = Duration::from_secs(60);

/// How long a text is remembered that is no token of this process: looking one up costs a query of the database.
const OWN_REFUSED_FOR: Duration = Duration::from_secs(1);

/// Opaque tokens and API keys that this process issued.
pub trait OpaqueTokens: Send + Sync {
    /// The claims of a token that is valid now. It blocks.
    fn claims(&self, token: &str) -> Option<Map<String, Value>>;
}

/// The store of opaque tokens of an issuer in this process.
#[derive(Clone)]
pub struct OwnTokens(pub Arc<dyn OpaqueTokens>);

impl fmt::Debug for OwnTokens {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("OwnTokens")
    }
}

/// What is known of a token that does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntrospectedToken {
    /// Its issuer says that it is not active.
    Inactive,
    /// Its issuer did not say.
    Failed(Arc<str>),
}

/// Where tokens are introspected.
enum Source {
    Endpoint {
        url: Arc<str>,
        /// The value of `Authorization`; never shown.
        authorization: String,
    },
    Own(OwnTokens),
}

/// An issuer with introspection.
pub struct Introspector {
    source: Source,
    /// How long an active token is remembered at most.
    pub remembered_for: Duration,
    refused: Mutex<HashMap<[u8; 32], (Instant, IntrospectedToken)>>,
    requests: Semaphore,
}

impl Introspector {
    /// An introspector that has asked about no token.
    pub fn new(config: &Introspection) -> Introspector {
        let part = |text: &str| {
            let mut form = String::new();
            push_field(&mut form, "", text);
            form.split_off(1)
        };
        // RFC 6749 §2.3.1: both parts are encoded as in a form.
        let credentials = format!("{}:{}", part(&config.client_id), part(&config.client_secret.0));
        let authorization = format!("Basic {}", STANDARD.encode(credentials));
        Introspector::from_source(Source::Endpoint { url: config.url.clone(), authorization }, config.cache)
    }

    /// For the tokens that this process issued.
    pub fn own(tokens: &OwnTokens) -> Introspector {
        Introspector::from_source(Source::Own(tokens.clone()), OWN_REMEMBERED_FOR)
    }

    fn from_source(source: Source, remembered_for: Duration) -> Introspector {
        let requests = Semaphore::new(REQUESTS_MAX);
        Introspector { source, remembered_for, refused: Mutex::default(), requests }
    }

    /// Whether this process issued its tokens.
    pub fn is_own(&self) -> bool {
        matches!(self.source, Source::Own(_))
    }

    /// Why a token does not count, when that is remembered.
    pub fn known(&self, token: &str) -> Option<IntrospectedToken> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, known) = refused.get(&fingerprint(token))?;
        (Instant::now() < *until).then(|| known.clone())
    }

    /// The claims of an active token; `None` when it is not active or the issuer did not say, which is remembered.
    pub async fn ask(&self, outbound: &dyn Outbound, token: &str) -> Option<Map<String, Value>> {
        // Closed never, so there is always a permit to wait for.
        let _permit = self.requests.acquire().await.ok()?;
        if self.known(token).is_some() {
            return None;
        }
        let (url, authorization) = match &self.source {
            Source::Endpoint { url, authorization } => (url.clone(), authorization),
            Source::Own(tokens) => {
                let (tokens, text) = (tokens.0.clone(), token.to_owned());
                let found = tokio::task::spawn_blocking(move || tokens.claims(&text)).await.ok().flatten();
                if found.is_none() {
                    self.refuse(token);
                }
                return found;
            }
        };
        let mut form = String::new();
        push_field(&mut form, "token", token);
        push_field(&mut form, "token_type_hint", "access_token");
        let (time, known) = match fetch::post_form(outbound, url, authorization, form).await {
            Ok(Value::Object(claims)) if claims.get("active") == Some(&Value::Bool(true)) => return Some(claims),
            Ok(Value::Object(claims)) if claims.get("active") == Some(&Value::Bool(false)) => {
                (REFUSED_FOR, IntrospectedToken::Inactive)
            }
            Ok(_) => (FAILED_FOR, IntrospectedToken::Failed("the response has no `active`".into())),
            Err(why) => (FAILED_FOR, IntrospectedToken::Failed(why.into())),
        };
        self.remember(token, time, known);
        None
    }

    /// Remembers that an active token does not count here.
    pub fn refuse(&self, token: &str) {
        let time = if self.is_own() { OWN_REFUSED_FOR } else { REFUSED_FOR };
        self.remember(token, time, IntrospectedToken::Inactive);
    }

    fn remember(&self, token: &str, time: Duration, known: IntrospectedToken) {
        let now = Instant::now();
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() >= REFUSED_MAX {
            refused.retain(|_, (until, _)| now < *until);
        }
        if refused.len() >= REFUSED_MAX {
            refused.clear();
        }
        refused.insert(fingerprint(token), (now + time, known));
    }
}

fn fingerprint(token: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}

/// Whether a text may be such a token (RFC 6750 §2.1, `b64token`).
pub fn is_opaque(text: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    !text.is_empty() && text.len() <= super::TOKEN_BYTES_MAX && text.bytes().all(is_good)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use penstock_engine::Fault;
    use penstock_engine::ports::{LocalFuture, Outgoing};
    use penstock_message::Message;
    use serde_json::json;

    use super::*;

    /// No request leaves the process.
    struct Nowhere;

    impl Outbound for Nowhere {
        fn send<'a>(&'a self, outgoing: Outgoing) -> LocalFuture<'a, Result<Message, Fault>> {
            panic!("a request to {}", outgoing.url)
        }
    }

    /// Knows one token, and counts lookups.
    #[derive(Default)]
    struct One(AtomicUsize);

    impl OpaqueTokens for One {
        fn claims(&self, token: &str) -> Option<Map<String, Value>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            (token == "known").then(|| json!({"jti": "1"}).as_object().cloned()).flatten()
        }
    }

    #[tokio::test]
    async fn tokens_of_this_process_are_looked_up_and_unknown_ones_remembered() {
        let store = Arc::new(One::default());
        let introspector = Introspector::own(&OwnTokens(store.clone()));
        assert!(introspector.is_own());
        let claims = introspector.ask(&Nowhere, "known").await.unwrap();
        assert_eq!((&claims["jti"], introspector.known("known")), (&json!("1"), None));
        assert_eq!(introspector.ask(&Nowhere, "unknown").await, None);
        assert_eq!(introspector.known("unknown"), Some(IntrospectedToken::Inactive));
        assert_eq!(store.0.load(Ordering::Relaxed), 2);
    }
}
