//! System parameters of the API Platform's policies, filled from configuration files.

use std::sync::Arc;

use penstock_projects::HostDefaults;

/// How the policies of the API Platform behave when an API says nothing.
#[derive(Debug, Clone, Default)]
pub struct PlatformConfig {
    /// `jwt-auth`.
    pub jwt_auth: JwtAuthConfig,
    /// `basic-ratelimit` and `advanced-ratelimit`.
    pub rate_limit: RateLimitConfig,
    /// The hosts of APIs that name none.
    pub hosts: HostDefaults,
}

/// How tokens are taken.
#[derive(Debug, Clone)]
pub struct JwtAuthConfig {
    /// The field they are in.
    pub header: Arc<str>,
    /// What stands before them.
    pub scheme: Arc<str>,
    /// The status of a refusal.
    pub status: u16,
    /// Its format.
    pub format: RefusalFormat,
    /// What it says.
    pub message: Arc<str>,
    /// Whether a token's issuer must be one that is configured.
    pub validates_issuer: bool,
}

/// The format of a rejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RefusalFormat {
    /// `{"error":"Unauthorized","message":…}`
    #[default]
    Json,
    /// The message.
    Plain,
    /// `Unauthorized`
    Minimal,
}

impl RefusalFormat {
    /// As files write them.
    pub const WORDS: [(&'static str, RefusalFormat); 3] =
        [("json", RefusalFormat::Json), ("plain", RefusalFormat::Plain), ("minimal", RefusalFormat::Minimal)];
}

impl Default for JwtAuthConfig {
    fn default() -> JwtAuthConfig {
        JwtAuthConfig {
            header: "Authorization".into(),
            scheme: "Bearer".into(),
            status: 401,
            format: RefusalFormat::default(),
            message: "Authentication failed".into(),
            validates_issuer: true,
        }
    }
}

/// How limits count, and their headers.
#[derive(Debug, Clone)]
pub struct RateLimitConfig {
    /// How they count.
    pub algorithm: Algorithm,
    /// `X-RateLimit-Limit`, `-Remaining`, `-Reset`.
    pub tells_common: bool,
    /// `RateLimit-Policy`, `RateLimit`.
    pub tells_standard: bool,
    /// `Retry-After`.
    pub tells_retry: bool,
}

impl Default for RateLimitConfig {
    fn default() -> RateLimitConfig {
        RateLimitConfig { algorithm: Algorithm::default(), tells_common: true, tells_standard: true, tells_retry: true }
    }
}

/// How requests are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// So many in every window.
    #[default]
    FixedWindow,
    /// At a steady rate, and some at once.
    Gcra,
}

impl Algorithm {
    /// As files write them.
    pub const WORDS: [(&'static str, Algorithm); 2] =
        [("fixed-window", Algorithm::FixedWindow), ("gcra", Algorithm::Gcra)];
}
