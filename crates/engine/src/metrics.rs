//! Counters of one core, summed when they are read.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Upper bounds of the latency buckets, in milliseconds, as Micro Integrator exposes them.
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
    services: Mutex<Services>,
    in_flight: AtomicU64,
}

/// The kind and name of a service.
type Service = (&'static str, Arc<str>);

#[derive(Debug, Default)]
struct Services {
    counts: Vec<(Service, ServiceCounts)>,
    places: HashMap<Service, usize>,
    /// The place of the service that was counted last, which is often the next.
    last: usize,
}

impl Services {
    fn of(&mut self, kind: &'static str, name: &Arc<str>) -> &mut ServiceCounts {
        let is_last =
            |((last_kind, last_name), _): &(Service, ServiceCounts)| *last_kind == kind && Arc::ptr_eq(last_name, name);
        if !self.counts.get(self.last).is_some_and(is_last) {
            let next = self.counts.len();
            self.last = *self.places.entry((kind, name.clone())).or_insert(next);
            match self.counts.get_mut(self.last) {
                // Another program's text of the same name: it is the one that comes again.
                Some(((_, old), _)) => old.clone_from(name),
                None => self.counts.push(((kind, name.clone()), ServiceCounts::default())),
            }
        }
        &mut self.counts[self.last].1
    }
}

impl Metrics {
    /// Counts one finished request of `kind` (`api`, `proxy`) and name.
    pub fn finished(&self, kind: &'static str, name: &Arc<str>, latency: Duration, failed: bool) {
        let mut services = self.services.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let counts = services.of(kind, name);
        let millis = latency.as_millis() as u64;
        let bucket = LATENCY_BOUNDS_MS.iter().position(|bound| millis <= *bound);
        counts.requests += 1;
        counts.errors += u64::from(failed);
        counts.buckets[bucket.unwrap_or(LATENCY_BOUNDS_MS.len())] += 1;
        counts.micros += latency.as_micros() as u64;
    }

    /// Counts a request in and, when the guard is dropped, out.
    pub fn enter(self: &Arc<Metrics>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(self.clone())
    }

    /// Requests being worked on.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Adds this core's counts to a sum.
    pub fn add_to(&self, sum: &mut HashMap<(&'static str, Arc<str>), ServiceCounts>) {
        let services = self.services.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for (key, counts) in &services.counts {
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
pub struct InFlight(Arc<Metrics>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
