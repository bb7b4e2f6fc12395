//! Configuration of tracing.

use std::sync::Arc;

/// How requests are traced.
#[derive(Debug, Clone)]
pub struct TracingConfig {
    /// Where spans go: the address of an OTLP receiver over HTTP (`http://localhost:4318/v1/traces`). Nothing is traced
    /// without it.
    pub endpoint: Option<Arc<str>>,
    /// What part of the requests that no caller traces already, from 0 to 1.
    pub ratio: f64,
    /// `service.name`.
    pub service: Arc<str>,
}

impl Default for TracingConfig {
    fn default() -> TracingConfig {
        TracingConfig { endpoint: None, ratio: 1.0, service: "penstock".into() }
    }
}
