//! Access tokens: JWTs that end with the process, by logout, and with the user's password.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::json;

/// The tokens that are valid, by their hashes: looking one up compares no secret.
pub(super) struct Tokens {
    /// `None` where the system has no random numbers: no token is issued then.
    key: Option<hmac::Key>,
    issued: Mutex<HashMap<[u8; 32], Issued>>,
}

struct Issued {
    user: String,
    /// The hash of the password that the user had.
    password: [u8; 32],
    since: Instant,
    until: Instant,
}

/// How many tokens there are and how long they live.
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenPolicy {
    pub(super) lifetime: Duration,
    pub(super) tokens_max: usize,
    pub(super) replaces_oldest: bool,
}

/// Why there is no token.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotIssued {
    /// There are as many as there may be.
    Full,
    /// The system has no random numbers.
    NoRandomNumbers,
}

impl Tokens {
    pub(super) fn new() -> Tokens {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok();
        Tokens { key, issued: Mutex::default() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], Issued>> {
        self.issued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a token for a user who logged in with this password, or its hash.
    pub(super) fn issue(
        &self,
        user: &str,
        password: &str,
        is_admin: bool,
        issuer: &str,
        policy: TokenPolicy,
    ) -> Result<String, NotIssued> {
        let key = self.key.as_ref().ok_or(NotIssued::NoRandomNumbers)?;
        let mut id = [0; 16];
        SystemRandom::new().fill(&mut id).map_err(|_| NotIssued::NoRandomNumbers)?;
        let seconds = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let now = SystemTime::now();
        let claims = json!({
            "iss": issuer,
            "sub": user,
            "scope": if is_admin { "admin" } else { "default" },
            "iat": seconds(now),
            "exp": seconds(now + policy.lifetime),
            "jti": URL_SAFE_NO_PAD.encode(id),
        });
        let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(json!({ "alg": "HS256", "typ": "JWT" })), part(claims));
        let signature = hmac::sign(key, signed.as_bytes());
        let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature));
        let now = Instant::now();
        let mut issued = self.lock();
        issued.retain(|_, token| token.until > now);
        if issued.len() >= policy.tokens_max {
            if !policy.replaces_oldest {
                return Err(NotIssued::Full);
            }
            if let Some(oldest) = issued.iter().min_by_key(|(_, token)| token.since).map(|(hash, _)| *hash) {
                issued.remove(&oldest);
            }
        }
        let entry =
            Issued { user: user.to_owned(), password: hashed(password), since: now, until: now + policy.lifetime };
        issued.insert(hashed(&token), entry);
        Ok(token)
    }

    /// The user of a valid token. `password` gives the password, or its hash, that a user has now.
    pub(super) fn user(&self, token: &str, password: impl FnOnce(&str) -> Option<String>) -> Option<String> {
        let mut issued = self.lock();
        let hash = hashed(token);
        let found = issued.get(&hash)?;
        let is_current = password(&found.user).is_some_and(|password| hashed(&password) == found.password);
        if !is_current || found.until <= Instant::now() {
            issued.remove(&hash);
            return None;
        }
        Some(found.user.clone())
    }

    /// Ends a token.
    pub(super) fn revoke(&self, token: &str) {
        self.lock().remove(&hashed(token));
    }
}

fn hashed(text: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: TokenPolicy = TokenPolicy { lifetime: Duration::from_secs(60), tokens_max: 2, replaces_oldest: true };

    fn issue(tokens: &Tokens, policy: TokenPolicy) -> Result<String, NotIssued> {
        tokens.issue("anna", "secret", true, "https://host", policy)
    }

    #[test]
    fn a_token_ends_with_its_time_by_logout_and_with_the_password() {
        let tokens = Tokens::new();
        let known = |token: &str, password: &str| tokens.user(token, |_| Some(password.to_owned()));
        let token = issue(&tokens, POLICY).unwrap();
        let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
        let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!((&claims["sub"], &claims["scope"]), (&json!("anna"), &json!("admin")));
        assert_eq!(known(&token, "secret").as_deref(), Some("anna"));
        assert_eq!(known(&token[1..], "secret"), None);
        assert_eq!(known(&token, "changed"), None);
        let token = issue(&tokens, POLICY).unwrap();
        tokens.revoke(&token);
        assert_eq!(known(&token, "secret"), None);
        let ended = issue(&tokens, TokenPolicy { lifetime: Duration::ZERO, ..POLICY }).unwrap();
        assert_eq!(known(&ended, "secret"), None);
    }

    #[test]
    fn there_are_at_most_so_many() {
        let tokens = Tokens::new();
        let known = |token: &str| tokens.user(token, |_| Some("secret".to_owned())).is_some();
        let first = issue(&tokens, POLICY).unwrap();
        let second = issue(&tokens, POLICY).unwrap();
        assert_eq!(issue(&tokens, TokenPolicy { replaces_oldest: false, ..POLICY }), Err(NotIssued::Full));
        let third = issue(&tokens, POLICY).unwrap();
        assert_eq!((known(&first), known(&second), known(&third)), (false, true, true));
    }
}
