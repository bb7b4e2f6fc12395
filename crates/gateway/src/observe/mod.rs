//! What a gateway tells of its requests: counters and latencies by operation, and spans for those who trace.
//!
//! Start reading at [`OperationObserver`]; `metrics.rs` counts, `trace.rs` knows W3C's context, `export.rs` sends spans
//! away.

mod export;
mod metrics;
mod trace;

use std::sync::Arc;

use penstock_engine::route::{Finished, Observer};

use crate::context::CallContext;
use crate::state::GatewayState;
use crate::{Gateway, GatewayConfig};

pub(crate) use export::Spans;
pub(crate) use metrics::OperationMetrics;
pub(crate) use trace::{TRACE, Trace};

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

/// Counts and traces the finished requests of managed APIs.
pub(crate) struct OperationObserver {
    state: Arc<GatewayState>,
    config: Arc<GatewayConfig>,
}

impl OperationObserver {
    pub(crate) fn shared(gateway: &Gateway) -> Arc<dyn Observer> {
        Arc::new(OperationObserver { state: gateway.state.clone(), config: gateway.config.clone() })
    }
}

impl std::fmt::Debug for OperationObserver {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "OperationObserver")
    }
}

impl Observer for OperationObserver {
    fn finished(&self, finished: &Finished<'_>) {
        let Some(context) = finished.extension.and_then(|extension| extension.downcast_ref::<CallContext>()) else {
            return;
        };
        self.state.metrics.count(context.site.counted_at, finished.reply.status, finished.took);
        if self.config.tracing.endpoint.is_some() {
            let inner = context.innermost();
            trace::finished(&self.state, inner.as_deref().unwrap_or(context), finished);
        }
    }
}
