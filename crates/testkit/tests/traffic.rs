//! Traffic of managed APIs over real sockets: backends, retries, timeouts, circuit breakers, rate limits, browsers.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "traffic/backends.rs"]
mod backends;
#[path = "traffic/bodies.rs"]
mod bodies;
#[path = "traffic/browsers.rs"]
mod browsers;
#[path = "traffic/callers.rs"]
mod callers;
#[path = "traffic/kept.rs"]
mod kept;
#[path = "traffic/limits.rs"]
mod limits;
#[path = "traffic/proofs.rs"]
mod proofs;
#[path = "traffic/validated.rs"]
mod validated;
#[path = "traffic/watched.rs"]
mod watched;

use std::sync::Arc;

use penstock_catalog::{Api, Cluster, Operation};
use penstock_testkit::gateway::{Backend, api};

/// An unsecured API.
fn open_api(base: &str, backend: &Backend, operations: &[&str]) -> Api {
    let mut api = api(base, &backend.url(), operations);
    api.operations = api
        .operations
        .iter()
        .map(|operation| Arc::new(Operation { secured: false, ..(**operation).clone() }))
        .collect();
    api
}

/// The same with a changed cluster.
fn with_cluster(base: &str, backend: &Backend, change: impl FnOnce(&mut Cluster)) -> Api {
    let mut api = open_api(base, backend, &["GET /*", "POST /*"]);
    let mut cluster = (**api.endpoints.production.as_ref().unwrap()).clone();
    change(&mut cluster);
    api.endpoints.production = Some(Arc::new(cluster));
    api
}

/// What became of requests sent at the same moment, sorted.
fn at_once(count: usize, request: impl Fn() -> u16 + Sync) -> Vec<u16> {
    let mut statuses: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(&request)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    statuses.sort_unstable();
    statuses
}
