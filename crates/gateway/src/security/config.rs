//! Issuers, users and backend tokens, filled from configuration files.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use penstock_catalog::Secret as SharedSecret;
use penstock_engine::is_secret;

use super::PublicKey;

/// How callers prove who they are.
#[derive(Debug, Clone)]
pub struct SecurityConfig {
    /// Whose tokens count.
    pub issuers: Vec<Issuer>,
    /// The name under which the gateway issues tokens itself (`/testkey`).
    pub own_issuer: Arc<str>,
    /// Names and passwords for basic authentication.
    pub users: Vec<User>,
    /// Names and passwords for `/testkey`; without any it is not there.
    pub test_key_users: Vec<User>,
    /// How long a token of `/testkey` is good.
    pub test_key_lifetime: Duration,
    /// The header field of tokens, for APIs that name none.
    pub authorization_header: Arc<str>,
    /// The header field of internal keys.
    pub internal_key_header: Arc<str>,
    /// The header field in which a proxy before us passes its client's certificate on. Whoever reaches this gateway
    /// directly could claim any certificate, so it counts only when it is named here.
    pub certificate_header: Option<Arc<str>>,
    /// Whether credentials travel on to backends.
    pub forward_credentials: bool,
    /// How wrong clocks may be.
    pub clock_skew: Duration,
    /// Backend tokens.
    pub backend_jwt: Option<BackendJwt>,
    /// When keys of issuers are fetched again.
    pub keys_refresh: Duration,
    /// Limit of requests for the keys, and its window.
    pub jwks_rate: (u32, Duration),
    /// The host of `/health`, `/ready`, `/testkey` and `/.wellknown/jwks`.
    pub system_host: Arc<str>,
    /// What `x-penstock-explain` must say; nothing is explained without it.
    pub explain_key: Option<Secret>,
}

impl Default for SecurityConfig {
    fn default() -> SecurityConfig {
        SecurityConfig {
            issuers: Vec::new(),
            own_issuer: "https://localhost:9095/testkey".into(),
            users: Vec::new(),
            test_key_users: Vec::new(),
            test_key_lifetime: Duration::from_secs(3600),
            authorization_header: "authorization".into(),
            internal_key_header: "Internal-Key".into(),
            certificate_header: None,
            forward_credentials: false,
            clock_skew: Duration::from_secs(5),
            backend_jwt: None,
            keys_refresh: Duration::from_secs(3600),
            jwks_rate: (1000, Duration::from_secs(10)),
            system_host: "localhost".into(),
            explain_key: None,
        }
    }
}

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
pub(crate) fn knows(users: &[User], name: &str, password: &str) -> bool {
    let is = |user: &User| is_secret(user.name.as_bytes(), name.as_bytes()) & user.password.is(password);
    users.iter().fold(false, |found, user| found | is(user))
}
