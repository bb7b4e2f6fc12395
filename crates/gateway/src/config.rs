//! The configuration of a gateway: plain data, filled from files by the program that runs it. The configuration of a
//! policy is in the folder of the policy.

use std::time::Duration;

use penstock_catalog::Cors;

use crate::error::ErrorStyle;
use crate::observe::TracingConfig;
use crate::policy::chain::PlatformConfig;
use crate::policy::compress::CompressionConfig;
use crate::policy::graphql::GraphQlConfig;
use crate::policy::interceptor::InterceptorConfig;
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
    /// Whether errors have the format of Choreo Connect or of API Manager.
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
    /// Limits of GraphQL queries.
    pub graphql: GraphQlConfig,
    /// How the policies of the API Platform behave.
    pub platform: PlatformConfig,
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
            cors: default_cors(),
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

/// The default of API Manager and Choreo Connect: scripts of every site may call.
fn default_cors() -> Cors {
    let list = |values: &[&str]| values.iter().map(|value| (*value).into()).collect();
    Cors {
        enabled: true,
        origins: list(&["*"]),
        methods: list(&["GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"]),
        headers: list(&[
            "authorization",
            "Access-Control-Allow-Origin",
            "Content-Type",
            "SOAPAction",
            "apikey",
            "testKey",
            "Internal-Key",
        ]),
        expose_headers: Vec::new(),
        credentials: false,
    }
}
