//! What outlives a reload: counters, keys, caches. One for the process.

use std::sync::OnceLock;

/// What outlives a reload.
#[derive(Debug, Default)]
pub struct GatewayState {
    /// The ports that are open, once they are.
    pub ports: OnceLock<GatewayPorts>,
}

/// The ports managed APIs are served on.
#[derive(Debug, Clone, Copy)]
pub struct GatewayPorts {
    /// For HTTP.
    pub http: u16,
    /// For HTTPS.
    pub https: u16,
    /// Whether integrations are served on one of them too.
    pub shared: bool,
}
