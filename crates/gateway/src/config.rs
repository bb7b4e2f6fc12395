//! How a gateway behaves. Whoever wires the program fills it from files.

use std::time::Duration;

use penstock_catalog::Cors;

use crate::observe::TracingConfig;
use crate::policy::CompressionConfig;
pub use crate::policy::chain::{
    Algorithm, HostDefaults, JwtAuthConfig, PlatformConfig, RateLimitConfig, RefusalFormat,
};
use crate::policy::graphql::GraphQlConfig;
use crate::policy::limits::LimitsConfig;
use crate::security::SecurityConfig;
use crate::upstream::UpstreamConfig;

/// How a gateway behaves.
#[derive(Debug, Clone)]
pub struct GatewayConfig {
    /// The port for HTTP; requests that came in by another one are not the gateway's.
    pub http_port: u16,
    /// The port for HTTPS.
    pub https_port: u16,
    /// Whether an error is told as Choreo Connect or as API Manager tells it.
    pub error_style: ErrorStyle,
    /// Whether SOAP clients get their errors as SOAP faults.
    pub soap_errors: bool,
    /// Whether recorded oddities of Choreo Connect are reproduced (`compat = "choreo-connect"`).
    pub compat: bool,
    /// Managed APIs that are served although a policy of theirs cannot be enforced.
    pub serve_unprotected: Vec<std::sync::Arc<str>>,
    /// Whether `X-Forwarded-Proto` and `X-Forwarded-Host` say how a client knows this gateway.
    pub trusts_forwarded: bool,
    /// Rules for browsers of APIs that have none.
    pub cors: Cors,
    /// Hosts by the name of a deployment environment.
    pub vhosts: Vec<(String, String)>,
    /// Which environment this gateway is, for projects that have parameters for several.
    pub environment: String,
    /// The host of APIs that name no environment; requests for any host reach them when it is empty.
    pub default_vhost: String,
    /// What relative `servers` of definitions are below; without it they name no backend.
    pub servers_base: Option<std::sync::Arc<str>>,
    /// For a backend's whole answer, when its API says nothing.
    pub route_timeout: Duration,
    /// The most an API may say; [`GatewayConfig::route_timeout`] when absent.
    pub route_timeout_max: Option<Duration>,
    /// How callers prove who they are.
    pub security: SecurityConfig,
    /// How backends are treated.
    pub upstream: UpstreamConfig,
    /// Limits by name, and who is refused.
    pub limits: LimitsConfig,
    /// How answers are compressed.
    pub compression: CompressionConfig,
    /// The largest body of a request; the listener's own limit when absent.
    pub request_bytes_max: Option<u64>,
    /// Where spans go.
    pub tracing: TracingConfig,
    /// How interceptor services are treated.
    pub interceptors: InterceptorConfig,
    /// What GraphQL APIs may be asked.
    pub graphql: GraphQlConfig,
    /// How the policies of the API Platform behave.
    pub platform: PlatformConfig,
}

/// How interceptor services are treated when an API says nothing.
#[derive(Debug, Clone)]
pub struct InterceptorConfig {
    /// For a service's whole answer.
    pub timeout: Duration,
    /// Whether messages go on as they are when a service fails. Otherwise they are refused.
    pub passthrough_on_error: bool,
    /// The largest answer of a service.
    pub reply_bytes_max: usize,
}

impl Default for InterceptorConfig {
    fn default() -> InterceptorConfig {
        InterceptorConfig {
            // What the original's router gives a cluster.
            timeout: Duration::from_secs(20),
            passthrough_on_error: false,
            // A body of the largest size that is buffered by default, in base64, with room for headers.
            reply_bytes_max: 64 * 1024 * 1024,
        }
    }
}

/// How an error is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ErrorStyle {
    /// `error_message`, `code`, `error_description`.
    #[default]
    ChoreoConnect,
    /// `code`, `message`, `description`; XML for those who ask for it.
    ApiManager,
}

impl Default for GatewayConfig {
    fn default() -> GatewayConfig {
        GatewayConfig {
            http_port: 8280,
            https_port: 8243,
            error_style: ErrorStyle::default(),
            soap_errors: false,
            compat: false,
            serve_unprotected: Vec::new(),
            trusts_forwarded: false,
            cors: crate::policy::usual_cors(),
            vhosts: Vec::new(),
            environment: String::new(),
            default_vhost: String::new(),
            servers_base: None,
            route_timeout: Duration::from_secs(60),
            route_timeout_max: None,
            security: SecurityConfig::default(),
            upstream: UpstreamConfig::default(),
            limits: LimitsConfig::default(),
            compression: CompressionConfig::default(),
            request_bytes_max: None,
            tracing: TracingConfig::default(),
            interceptors: InterceptorConfig::default(),
            graphql: GraphQlConfig::default(),
            platform: PlatformConfig::default(),
        }
    }
}
