//! Counters of one core. They are summed when somebody reads them.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the latency buckets, in milliseconds, as the original exposes them.
pub const LATENCY_BOUNDS_MS: [u64; 8] = [5, 10, 25, 50, 100, 500, 1000, 5000];

/// What is counted of one service.
#[derive(Debug, Default, Clone)]
pub struct ServiceCounts {
    /// Requests.
    pub requests: u64,
    /// Requests that ran into a fault.
    pub errors: u64,
    /// Requests per latency bucket; the last one is beyond all bounds.
    pub buckets: [u64; LATENCY_BOUNDS_MS.len() + 1],
    /// Sum of latencies in microseconds.
    pub micros: u64,
}

/// Counters of one core. Only its core writes, so the lock is never contended but by a reader.
#[derive(Debug, Default)]
pub struct Metrics {
    services: Mutex<HashMap<(&'static str, std::sync::Arc<str>), ServiceCounts>>,
    in_flight: AtomicU64,
}

impl Metrics {
    /// Counts one finished request of `kind` (`api`, `proxy`) and name.
    pub fn finished(&self, kind: &'static str, name: &std::sync::Arc<str>, latency: Duration, failed: bool) {
        let mut services = self.services.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let counts = services.entry((kind, name.clone())).or_default();
        let bucket = LATENCY_BOUNDS_MS.iter().position(|bound| latency.as_millis() <= u128::from(*bound));
        counts.requests += 1;
        counts.errors += u64::from(failed);
        counts.buckets[bucket.unwrap_or(LATENCY_BOUNDS_MS.len())] += 1;
        counts.micros += latency.as_micros() as u64;
    }

    /// Counts a request in and, when the guard is dropped, out.
    pub fn enter(self: &std::sync::Arc<Metrics>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(self.clone())
    }

    /// Requests being worked on.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Adds this core's counts to a sum.
    pub fn add_to(&self, sum: &mut HashMap<(&'static str, std::sync::Arc<str>), ServiceCounts>) {
        let services = self.services.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for (key, counts) in services.iter() {
            let total = sum.entry(key.clone()).or_default();
            total.requests += counts.requests;
            total.errors += counts.errors;
            total.micros += counts.micros;
            for (bucket, count) in total.buckets.iter_mut().zip(counts.buckets) {
                *bucket += count;
            }
        }
    }
}

/// Keeps a request counted as running.
#[derive(Debug)]
pub struct InFlight(std::sync::Arc<Metrics>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
