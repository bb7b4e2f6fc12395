//! Issuers, keys and users, as they are configured.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use penstock_catalog::Secret as SharedSecret;
use penstock_engine::is_secret;

use super::{OwnTokens, PublicKey};

/// Whose tokens count.
#[derive(Debug, Clone)]
pub struct Issuer {
    /// What it is called in configuration. Two names mean something: `APIM APIkey`, or without one `APIM Publisher`,
    /// signs API keys.
    pub name: Arc<str>,
    /// `iss` of its tokens.
    pub issuer: Arc<str>,
    /// Keys that are known.
    pub keys: Vec<TrustedKey>,
    /// Where its keys are published.
    pub jwks_url: Option<Arc<str>>,
    /// The document that says where its keys are published, when it is not at the address of the issuer.
    pub discovery_url: Option<Arc<str>>,
    /// Its introspection endpoint.
    pub introspection: Option<Introspection>,
    /// Its opaque tokens, when this process issues them.
    pub own_tokens: Option<OwnTokens>,
    /// Whether the caller's application must have subscribed to the API.
    pub validate_subscription: bool,
    /// Whether API keys need not say which APIs they are for.
    pub keys_for_any_api: bool,
    /// The claim with the consumer key.
    pub consumer_key_claim: Arc<str>,
    /// The claim with the scopes.
    pub scopes_claim: Arc<str>,
    /// Audiences of which a token must name one; empty means any.
    pub audiences: Vec<Arc<str>>,
    /// What its claims are called here: theirs, ours.
    pub claim_mapping: Vec<(Arc<str>, Arc<str>)>,
}

impl Default for Issuer {
    fn default() -> Issuer {
        Issuer {
            name: Arc::default(),
            issuer: Arc::default(),
            keys: Vec::new(),
            jwks_url: None,
            discovery_url: None,
            introspection: None,
            own_tokens: None,
            validate_subscription: false,
            keys_for_any_api: false,
            consumer_key_claim: "azp".into(),
            scopes_claim: "scope".into(),
            audiences: Vec::new(),
            claim_mapping: Vec::new(),
        }
    }
}

/// Introspection at an issuer (RFC 7662).
#[derive(Debug, Clone)]
pub struct Introspection {
    /// The address.
    pub url: Arc<str>,
    /// What this gateway is called there.
    pub client_id: Arc<str>,
    /// What it proves that with.
    pub client_secret: SharedSecret,
    /// How long an active token is remembered at most.
    pub cache: Duration,
}

impl Default for Introspection {
    fn default() -> Introspection {
        Introspection {
            url: Arc::default(),
            client_id: Arc::default(),
            client_secret: SharedSecret::default(),
            // So long a token may count that was revoked at its issuer.
            cache: Duration::from_secs(60),
        }
    }
}

/// A key that is known.
#[derive(Debug, Clone)]
pub struct TrustedKey {
    /// Required `kid` of its tokens.
    pub kid: Option<Arc<str>>,
    /// The key.
    pub key: PublicKey,
}

/// Backend tokens.
#[derive(Debug, Clone)]
pub struct BackendJwt {
    /// The header field.
    pub header: Arc<str>,
    /// How long it is good.
    pub ttl: Duration,
    /// What claims begin with.
    pub dialect: Arc<str>,
    /// How its parts are written.
    pub encoding: Encoding,
}

impl Default for BackendJwt {
    fn default() -> BackendJwt {
        BackendJwt {
            header: "X-JWT-Assertion".into(),
            ttl: Duration::from_secs(3600),
            dialect: "http://wso2.org/claims".into(),
            encoding: Encoding::default(),
        }
    }
}

/// How the parts of a backend's token are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// In the standard alphabet with padding, the default of API Manager and Choreo Connect.
    #[default]
    Base64,
    /// As RFC 7515 says.
    Base64Url,
}

/// A user.
#[derive(Debug, Clone)]
pub struct User {
    /// The name.
    pub name: Arc<str>,
    /// The password.
    pub password: Secret,
}

/// A text that is never shown.
#[derive(Clone)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Keeps a secret.
    pub fn new(text: impl Into<Arc<str>>) -> Secret {
        Secret(text.into())
    }

    /// Whether it is that; the time it takes does not say where they differ.
    pub fn is(&self, other: &str) -> bool {
        is_secret(self.0.as_bytes(), other.as_bytes())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

/// Whether the list has that user with that password. All of them are compared, so that the time does not tell which names
/// exist.
pub fn knows(users: &[User], name: &str, password: &str) -> bool {
    let is = |user: &User| is_secret(user.name.as_bytes(), name.as_bytes()) & user.password.is(password);
    users.iter().fold(false, |found, user| found | is(user))
}
