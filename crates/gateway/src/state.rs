//! What outlives a reload: counters, keys, caches. One for the process.

use std::fmt::Write;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use penstock_catalog::Plan;
use penstock_engine::ports::Outbound;

use crate::compiled::CompiledApis;
use crate::mcp::Sessions;
use crate::observe::{OperationMetrics, Spans};
use crate::policy::chain::Buckets;
use crate::policy::limits::{Counters, LimitUse, Plans};
use crate::policy::response_cache::ResponseCache;
use crate::policy::schema_validation::Definition;
use crate::security::SecurityState;
use crate::upstream::{Clusters, HealthChecks};
use crate::websub::{EventFile, Hub};

/// How often counters that nobody needs are forgotten.
const SWEEP: Duration = Duration::from_secs(60);

/// What outlives a reload.
#[derive(Debug, Default)]
pub struct GatewayState {
    /// Keys, tokens, who subscribed to what.
    pub security: Arc<SecurityState>,
    /// The ports that are open, once they are.
    pub ports: OnceLock<GatewayPorts>,
    /// Who is up.
    pub(crate) health: HealthChecks,
    /// Backends in use.
    pub(crate) clusters: Clusters,
    /// What was used of limits.
    pub(crate) counters: Counters,
    /// The same for the policies of the API Platform.
    pub(crate) buckets: Buckets,
    /// Answers that may be given again.
    pub(crate) responses: ResponseCache,
    /// Requests by operation.
    pub(crate) metrics: OperationMetrics,
    /// Spans that wait to be sent.
    pub(crate) spans: Spans,
    /// Subscriptions to topics, and events on their way.
    pub(crate) hub: Hub,
    /// Sessions of clients of MCP servers.
    pub(crate) sessions: Sessions,
    /// APIs as they were compiled last.
    pub(crate) compiled: CompiledApis,
    /// The definition that was read last: the operations of an API are compiled one after the other.
    definition: Mutex<Option<ReadDefinition>>,
    plans: Mutex<Option<(Vec<Plan>, Arc<Plans>)>>,
}

/// A definition's text, and what it says.
type ReadDefinition = (Arc<[u8]>, Arc<Definition>);

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
    /// Does for ever what no request may wait for: health checks, and whatever else is due. Runs on the management
    /// runtime, with a sender of its own.
    pub async fn run_background(&self, outbound: Rc<dyn Outbound>) {
        let sweep = async {
            loop {
                tokio::time::sleep(SWEEP).await;
                self.counters.sweep();
                self.buckets.sweep();
                self.responses.sweep(Instant::now());
            }
        };
        let revoked = self.security.revocations.run(outbound.clone());
        let keys = self.security.refresh_keys(outbound.clone());
        tokio::join!(self.health.run(), self.spans.run(outbound.clone()), self.hub.run(outbound), revoked, keys, sweep);
    }

    /// Has subscriptions to topics kept by a function, which gets all of them whenever one changes; `kept` is what it got
    /// last. The error says why that cannot be read.
    pub fn keep_subscriptions(
        &self,
        keeper: impl Fn(&[u8]) -> Result<(), String> + Send + Sync + 'static,
        kept: Option<&[u8]>,
    ) -> Result<(), String> {
        self.hub.kept_by(keeper, kept)
    }

    /// Has events for subscribers kept in a file until they are delivered; `kept` is what is in it. Subscriptions must be
    /// known before. Says how many bytes at its end are no whole entry.
    pub fn keep_events(&self, file: Box<dyn EventFile>, kept: &[u8]) -> Result<usize, String> {
        self.hub.events_kept_in(file, kept)
    }

    /// Writes counters and latencies in the text format of Prometheus.
    pub fn write_metrics(&self, page: &mut String) {
        self.metrics.write(page);
        self.hub.write_metrics(page);
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            page,
            "# HELP penstock_gateway_spans_dropped_total Spans that the receiver did not get.\n\
             # TYPE penstock_gateway_spans_dropped_total counter\n\
             penstock_gateway_spans_dropped_total {}",
            self.spans.dropped()
        );
    }

    /// What was used of limits whose key holds `part`.
    pub fn limits_used(&self, part: &str) -> Vec<LimitUse> {
        self.counters.used(part)
    }

    /// Starts the limits anew whose key holds `part`; says how many.
    pub fn reset_limits(&self, part: &str) -> usize {
        self.counters.reset(part)
    }

    /// An API's definition, read once for all its operations.
    pub(crate) fn definition_of(&self, bytes: &Arc<[u8]>) -> Option<Arc<Definition>> {
        let mut last = self.definition.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, definition)) = &*last
            && Arc::ptr_eq(known, bytes)
        {
            return Some(definition.clone());
        }
        let definition = Arc::new(Definition::parse(bytes)?);
        *last = Some((bytes.clone(), definition.clone()));
        Some(definition)
    }

    /// The plans of a configuration, compiled once for all operations.
    pub(crate) fn plans_of(&self, plans: &[Plan]) -> Arc<Plans> {
        let mut last = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, compiled)) if known == plans => compiled.clone(),
            _ => {
                let compiled = Arc::new(Plans::new(plans));
                *last = Some((plans.to_vec(), compiled.clone()));
                compiled
            }
        }
    }
}
