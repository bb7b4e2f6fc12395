//! Circuit breakers: how much of a backend is used at once, counted over all cores.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use penstock_catalog::CircuitBreakers;
use penstock_engine::Fault;
use penstock_message::Message;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{GatewayError, codes};
use crate::watched_body::{BodyWatch, watch};

/// Requests that may wait for a connection when an API limits connections and not the queue. Envoy's own limit.
const PENDING_DEFAULT: u32 = 1024;

/// The circuit breaker of a cluster.
#[derive(Debug)]
pub(super) struct Breaker {
    requests: Option<Arc<Semaphore>>,
    connections: Option<Arc<Semaphore>>,
    waiting: AtomicUsize,
    waiting_max: usize,
    retries: Option<Arc<Semaphore>>,
}

/// The right to be under way; given back when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Permit {
    _request: Option<OwnedSemaphorePermit>,
    _connection: Option<OwnedSemaphorePermit>,
}

impl Breaker {
    /// A breaker, when there is anything to count. Backends that speak HTTP/2 are not limited by connections: one
    /// carries many requests.
    pub(super) fn new(limits: &CircuitBreakers, http2: bool) -> Option<Breaker> {
        let semaphore = |limit: Option<u32>| limit.map(|limit| Arc::new(Semaphore::new(limit as usize)));
        let connections = limits.connections_max.filter(|_| !http2);
        let any = limits.requests_max.or(connections).or(limits.retries_max).is_some();
        any.then(|| Breaker {
            requests: semaphore(limits.requests_max),
            connections: semaphore(connections),
            waiting: AtomicUsize::new(0),
            waiting_max: limits.pending_max.unwrap_or(PENDING_DEFAULT) as usize,
            retries: semaphore(limits.retries_max),
        })
    }

    /// Lets a request through, waits for a connection, or refuses it.
    pub(super) async fn enter(&self, deadline: Instant) -> Result<Permit, Fault> {
        let request = self.requests.clone().map(Semaphore::try_acquire_owned).transpose().map_err(|_| overflow())?;
        let connection = match &self.connections {
            None => None,
            Some(connections) => match connections.clone().try_acquire_owned() {
                Ok(connection) => Some(connection),
                Err(_) => Some(self.wait(connections.clone(), deadline).await?),
            },
        };
        Ok(Permit { _request: request, _connection: connection })
    }

    async fn wait(&self, connections: Arc<Semaphore>, deadline: Instant) -> Result<OwnedSemaphorePermit, Fault> {
        struct Place<'a>(&'a AtomicUsize);
        impl Drop for Place<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _place = Place(&self.waiting);
        if before >= self.waiting_max {
            return Err(overflow());
        }
        match tokio::time::timeout_at(deadline.into(), connections.acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(overflow()),
            Err(_) => Err(GatewayError::new(codes::UPSTREAM_TIMEOUT).into()),
        }
    }

    /// Whether a repetition may be under way; the right to it.
    pub(super) fn may_retry(&self) -> Result<Option<OwnedSemaphorePermit>, ()> {
        self.retries.clone().map(Semaphore::try_acquire_owned).transpose().map_err(drop)
    }
}

fn overflow() -> Fault {
    GatewayError::new(codes::UPSTREAM_OVERFLOW).into()
}

/// Keeps the permit until the body of the response has been sent on.
pub(super) fn hold(permit: Permit, reply: &mut Message) {
    watch(&mut reply.body, |_| permit);
}

impl BodyWatch for Permit {}
