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
        let EndpointSecurity::Basic(credentials) = self;
        write!(out, "Basic({credentials:?})")
    }
}

impl std::fmt::Debug for BasicCredentials {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}:***", self.username)
    }
}
