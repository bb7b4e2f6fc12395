//! Configuration of the authentication of callers.

use std::sync::Arc;
use std::time::Duration;

use penstock_identity::{BackendJwt, Issuer, Secret, User};

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
    /// The header field in which a proxy before us passes its client's certificate on. A client that reaches
    /// this gateway directly could claim any certificate, so the field is ignored unless it is configured.
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
