//! What outlives a reload. One for the process.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use penstock_engine::Shared;

use crate::security::SecurityState;

/// What outlives a reload: keys and tokens, and the state of each policy by its type.
#[derive(Default)]
pub struct GatewayState {
    /// Keys, tokens, subscriptions of applications.
    pub security: Arc<SecurityState>,
    /// The ports that are open, once they are.
    pub ports: OnceLock<GatewayPorts>,
    shared: Shared,
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

impl GatewayState {
    /// The state of a policy, made on first use. It takes a lock: call it at compilation.
    pub(crate) fn get<T: Any + Default + Send + Sync>(&self) -> Arc<T> {
        self.shared.get_or_make("", T::default)
    }
}

impl fmt::Debug for GatewayState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("GatewayState").field("ports", &self.ports).finish_non_exhaustive()
    }
}
