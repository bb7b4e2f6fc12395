//! What one compilation of APIs works with.

use std::any::Any;
use std::sync::Arc;

use penstock_engine::Shared;

use crate::{GatewayConfig, GatewayState};

/// Compiles API projects. One for each compilation; what outlives a reload is in [`GatewayState`].
#[derive(Clone)]
pub struct Gateway {
    /// The configuration.
    pub config: Arc<GatewayConfig>,
    /// Counters, keys and caches that outlive the compilation.
    pub state: Arc<GatewayState>,
    /// What several operations are compiled from.
    cache: Arc<Shared>,
}

impl Gateway {
    /// A gateway with this configuration, for one compilation.
    pub fn new(config: Arc<GatewayConfig>, state: Arc<GatewayState>) -> Gateway {
        Gateway { config, state, cache: Arc::default() }
    }

    /// A value that is made once for the compilation.
    pub(crate) fn cached<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.cache.get_or_make("", make)
    }
}
