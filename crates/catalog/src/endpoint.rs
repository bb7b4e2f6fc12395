//! Backends of APIs.

use std::sync::Arc;
use std::time::Duration;

use crate::At;

/// The backends of an API or an operation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Endpoints {
    /// For callers with production keys.
    pub production: Option<Arc<Cluster>>,
    /// For callers with sandbox keys.
    pub sandbox: Option<Arc<Cluster>>,
    /// By name, for interceptors to choose (`x-wso2-endpoints`).
    pub named: Vec<(Arc<str>, Arc<Cluster>)>,
}

/// Backends that do the same work.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cluster {
    /// Absolute addresses, all with the same path.
    pub urls: Vec<Arc<str>>,
    /// How one is chosen.
    pub kind: ClusterKind,
    /// For the whole answer; the gateway's when absent.
    pub timeout: Option<Duration>,
    /// For connecting; the gateway's when absent.
    pub connect_timeout: Option<Duration>,
    /// Whether backends get the `Host` of the request instead of their own.
    pub keeps_host: bool,
    /// How a failed request is repeated.
    pub retry: Option<Retry>,
    /// What is refused rather than queued.
    pub circuit_breakers: Option<CircuitBreakers>,
    /// What the gateway proves itself with.
    pub security: Option<EndpointSecurity>,
    /// Whether HTTP/2 is spoken.
    pub http2: bool,
    /// Where it was written.
    pub at: At,
}

/// How one of several backends is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClusterKind {
    /// In turn.
    #[default]
    LoadBalance,
    /// The first that is healthy.
    Failover,
    /// The one whose address a policy sets; there are no others.
    Addressed,
}

/// How a failed request is repeated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Retry {
    /// At the most.
    pub count: u32,
    /// For answers with these; the gateway's when empty.
    pub statuses: Vec<u16>,
}

/// What is refused rather than queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CircuitBreakers {
    /// Connections at once.
    pub connections_max: Option<u32>,
    /// Requests at once.
    pub requests_max: Option<u32>,
    /// Requests that wait for a connection.
    pub pending_max: Option<u32>,
    /// Repetitions at once.
    pub retries_max: Option<u32>,
}

/// What the gateway proves itself with to a backend.
#[derive(Clone, PartialEq, Eq)]
pub enum EndpointSecurity {
    /// Name and password.
    Basic(BasicCredentials),
    /// Name and password, of which the backend sees a hash.
    Digest(BasicCredentials),
    /// A token.
    OAuth(OAuthCredentials),
    /// A key that always is the same.
    ApiKey(ApiKeyCredentials),
}

/// How tokens for a backend are requested. Its debug form hides the secrets.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct OAuthCredentials {
    /// The address of the token service.
    pub token_url: Arc<str>,
    /// The client.
    pub client_id: Arc<str>,
    /// The client's secret.
    pub client_secret: Arc<str>,
    /// The user of the password grant; without one it is a client credentials grant.
    pub user: Option<BasicCredentials>,
    /// Further fields of the form.
    pub parameters: Vec<(Arc<str>, Arc<str>)>,
    /// How long the token service may take; the gateway's own time when absent.
    pub timeout: Option<Duration>,
}

/// A key of a backend. Its debug form hides it.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ApiKeyCredentials {
    /// The name of the header field or query parameter.
    pub name: Arc<str>,
    /// The key.
    pub value: Arc<str>,
    /// Whether it is sent in the query.
    pub in_query: bool,
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(pub Arc<str>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "***")
    }
}

/// Name and password. Never shown: its debug form hides the password.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct BasicCredentials {
    /// The name.
    pub username: Arc<str>,
    /// The password.
    pub password: Arc<str>,
}

impl std::fmt::Debug for EndpointSecurity {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EndpointSecurity::Basic(credentials) => write!(out, "Basic({credentials:?})"),
            EndpointSecurity::Digest(credentials) => write!(out, "Digest({credentials:?})"),
            EndpointSecurity::OAuth(credentials) => write!(out, "OAuth({credentials:?})"),
            EndpointSecurity::ApiKey(credentials) => write!(out, "ApiKey({credentials:?})"),
        }
    }
}

impl std::fmt::Debug for OAuthCredentials {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:*** for {:?}", self.client_id, self.user)
    }
}

impl std::fmt::Debug for ApiKeyCredentials {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:***", self.name)
    }
}

impl std::fmt::Debug for BasicCredentials {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:***", self.username)
    }
}
