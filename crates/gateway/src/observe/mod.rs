//! Observability of requests: counters and latencies by operation, and spans.
//!
//! Start reading at [`OperationObserver`]; `metrics.rs` counts, `trace.rs` knows W3C's context, `export.rs` sends spans
//! away.

mod call;
mod config;
mod export;
mod metrics;
mod trace;

use std::sync::Arc;

use penstock_engine::route::{Finished, Observer};

use crate::{CallContext, Gateway, GatewayConfig};

pub(crate) use call::Trace;
pub use config::TracingConfig;
pub(crate) use export::Spans;
pub(crate) use metrics::OperationMetrics;
pub(crate) use trace::TRACE;

/// Counts and traces the finished requests of managed APIs.
pub(crate) struct OperationObserver {
    metrics: Arc<OperationMetrics>,
    spans: Arc<Spans>,
    config: Arc<GatewayConfig>,
}

impl OperationObserver {
    pub(crate) fn shared(gateway: &Gateway) -> Arc<dyn Observer> {
        let state = &gateway.state;
        Arc::new(OperationObserver { metrics: state.get(), spans: state.get(), config: gateway.config.clone() })
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
        self.metrics.count(context.site.counted_at, finished.reply.status, finished.took);
        if self.config.tracing.endpoint.is_some() {
            let inner = context.innermost();
            trace::finished(&self.spans, inner.as_deref().unwrap_or(context), finished);
        }
    }
}
