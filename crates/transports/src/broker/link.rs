//! When a client connects again. A connection that failed is not tried before its pause is over: until then each use
//! returns the reason at once, so that neither requests nor brokers wait for each other.

use std::time::Duration;

use penstock_engine::background::Backoff;
use tokio::time::Instant;

/// Requests wait for a broker that is back, so the pauses stay shorter than those of services.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// The attempts to connect.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    backoff: Backoff,
    failure: Option<(Instant, String)>,
}

impl Attempts {
    /// Whether it is time for an attempt; otherwise why the last one failed.
    pub(crate) fn may_connect(&self) -> Result<(), String> {
        match &self.failure {
            Some((again, reason)) if Instant::now() < *again => Err(reason.clone()),
            _ => Ok(()),
        }
    }

    /// Notes an attempt that failed.
    pub(crate) fn failed(&mut self, reason: &str) {
        let pause = self.backoff.next_pause().min(PAUSE_MAX);
        self.failure = Some((Instant::now() + pause, reason.to_owned()));
    }

    /// Notes a connection.
    pub(crate) fn succeeded(&mut self) {
        *self = Attempts::default();
    }
}
