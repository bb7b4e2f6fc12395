//! The parts of the state that act without a request, and those that operators read: background work, metrics, limits,
//! the files of hubs.

use std::fmt::Write;
use std::rc::Rc;
use std::time::{Duration, Instant};

use penstock_engine::ports::Outbound;

use crate::GatewayState;
use crate::observe::{OperationMetrics, Spans};
use crate::policy::chain::Buckets;
use crate::policy::limits::{Counters, LimitUse};
use crate::policy::response_cache::ResponseCache;
use crate::upstream::HealthChecks;
use crate::websub::{EventFile, Hub};

/// How often unused counters and expired responses are removed.
const SWEEP: Duration = Duration::from_secs(60);

impl GatewayState {
    /// Runs health checks, deliveries, exports and fetches without end, on the management runtime with its own sender.
    pub async fn run_background(&self, outbound: Rc<dyn Outbound>) {
        let (counters, buckets, responses) =
            (self.get::<Counters>(), self.get::<Buckets>(), self.get::<ResponseCache>());
        let sweep = async {
            loop {
                tokio::time::sleep(SWEEP).await;
                counters.sweep();
                buckets.sweep();
                responses.sweep(Instant::now());
            }
        };
        let (health, spans, hub) = (self.get::<HealthChecks>(), self.get::<Spans>(), self.get::<Hub>());
        let revoked = self.security.revocations.run(outbound.clone());
        let keys = self.security.refresh_keys(outbound.clone());
        tokio::join!(health.run(), spans.run(outbound.clone()), hub.run(outbound), revoked, keys, sweep);
    }

    /// Has subscriptions to topics kept by a function, which gets all of them whenever one changes; `kept` is what it got
    /// last. The error says why that cannot be read.
    pub fn keep_subscriptions(
        &self,
        keeper: impl Fn(&[u8]) -> Result<(), String> + Send + Sync + 'static,
        kept: Option<&[u8]>,
    ) -> Result<(), String> {
        self.get::<Hub>().kept_by(keeper, kept)
    }

    /// Has events for subscribers kept in a file until they are delivered; `kept` is its content. Subscriptions must be
    /// known before. Returns how many bytes at its end are no whole entry.
    pub fn keep_events(&self, file: Box<dyn EventFile>, kept: &[u8]) -> Result<usize, String> {
        self.get::<Hub>().events_kept_in(file, kept)
    }

    /// Writes counters and latencies in the text format of Prometheus.
    pub fn write_metrics(&self, page: &mut String) {
        self.get::<OperationMetrics>().write(page);
        self.get::<Hub>().write_metrics(page);
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            page,
            "# HELP penstock_gateway_spans_dropped_total Spans that the receiver did not get.\n\
             # TYPE penstock_gateway_spans_dropped_total counter\n\
             penstock_gateway_spans_dropped_total {}",
            self.get::<Spans>().dropped()
        );
    }

    /// The use of limits whose key contains `part`.
    pub fn limits_used(&self, part: &str) -> Vec<LimitUse> {
        self.get::<Counters>().used(part)
    }

    /// Resets the limits whose key contains `part`; returns how many.
    pub fn reset_limits(&self, part: &str) -> usize {
        self.get::<Counters>().reset(part)
    }
}
