//! Services that are found by rules of their own: managed APIs.
//!
//! The engine queries a [`Router`] before proxies and APIs. It is independent of what an
//! API gateway is; it runs the sequences of the [`Operation`] it is given like those of any service.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use penstock_message::Message;

use crate::Place;
use crate::mediator::SequenceId;
use crate::ports::Client;

/// Finds operations of managed APIs.
pub trait Router: Send + Sync {
    /// The operation a request is for; `None` leaves the request to proxies and APIs. The message
    /// has the client's headers and an unread body; the router may note what it found in it.
    fn route(&self, client: &Client, message: &mut Message) -> Option<Routed>;

    /// Every service at every address, for lists.
    fn services(&self) -> Vec<ServiceSummary> {
        Vec::new()
    }

    /// The same with operations and backends.
    fn listing(&self) -> Vec<ServiceListing> {
        Vec::new()
    }
}

/// A service with what it offers.
#[derive(Debug, Clone)]
pub struct ServiceListing {
    /// The service.
    pub summary: ServiceSummary,
    /// Method and path template of each operation.
    pub operations: Vec<(Arc<str>, Arc<str>)>,
    /// Addresses of its backends.
    pub endpoints: Vec<Arc<str>>,
}

/// A service at one of its addresses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceSummary {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it speaks: `HTTP`, `SOAP`.
    pub kind: &'static str,
    /// Where it is served.
    pub path: String,
    /// The hosts it is served on; none means every one.
    pub hosts: Vec<Arc<str>>,
}

/// What a router found.
pub struct Routed {
    /// The operation.
    pub operation: Arc<Operation>,
    /// What its mediators find as [`crate::Exchange::extension`].
    pub extension: Option<Rc<dyn Any>>,
}

/// One operation of a managed API.
#[derive(Debug, Default)]
pub struct Operation {
    /// The name metrics are counted under: `API:version`.
    pub name: Arc<str>,
    /// `{api:NAME}`, for log lines.
    pub label: Arc<str>,
    /// What requests run.
    pub in_sequence: Option<SequenceId>,
    /// What answers run.
    pub out_sequence: Option<SequenceId>,
    /// The handler of faults; the only one, since the program's `fault` belongs to integrations.
    pub fault_sequence: Option<SequenceId>,
    /// Counts finished requests in place of the core's own metrics.
    pub observer: Option<Arc<dyn Observer>>,
    /// Where it was written.
    pub at: Place,
}

/// Called when a request of an operation completes. Runs on the cores: must not block.
pub trait Observer: Send + Sync + std::fmt::Debug {
    /// A request is over, as far as the flow is concerned: its answer may still be leaving.
    fn finished(&self, finished: &Finished<'_>);
}

/// A finished request.
pub struct Finished<'a> {
    /// The answer.
    pub reply: &'a Message,
    /// How long the flow took.
    pub took: Duration,
    /// Whether a fault was raised.
    pub failed: bool,
    /// What the router noted.
    pub extension: Option<&'a Rc<dyn Any>>,
}
