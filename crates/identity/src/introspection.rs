//! Opaque tokens: introspected (RFC 7662) and cached.
//!
//! A token that is active is remembered per core like any other (`cache.rs`); one that is not is remembered here by its
//! digest, so that a client that repeats it costs the issuer one request.

use std::collections::HashMap;
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

/// What is known of a token that does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntrospectedToken {
    /// Its issuer says that it is not active.
    Inactive,
    /// Its issuer did not say.
    Failed(Arc<str>),
}

/// An issuer with introspection.
pub struct Introspector {
    url: Arc<str>,
    /// The value of `Authorization`; never shown.
    authorization: String,
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
        Introspector {
            url: config.url.clone(),
            authorization: format!("Basic {}", STANDARD.encode(credentials)),
            remembered_for: config.cache,
            refused: Mutex::default(),
            requests: Semaphore::new(REQUESTS_MAX),
        }
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
        let mut form = String::new();
        push_field(&mut form, "token", token);
        push_field(&mut form, "token_type_hint", "access_token");
        let (time, known) = match fetch::post_form(outbound, self.url.clone(), &self.authorization, form).await {
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
        self.remember(token, REFUSED_FOR, IntrospectedToken::Inactive);
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
