//! Services that are found by rules of their own: managed APIs.
//!
//! The engine asks a [`Router`] before it looks for proxies and APIs. It knows nothing of what an
//! API gateway is; it runs the sequences of the [`Operation`] it is given like those of any service.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use penstock_message::Message;

use crate::Place;
use crate::mediator::SequenceId;
use crate::ports::Client;

/// Finds operations of managed APIs.
pub trait Router: Send + Sync {
    /// The operation a request is for; `None` leaves the request to proxies and APIs. The message
    /// has the client's headers and an unread body; the router may note what it found in it.
    fn route(&self, client: &Client, message: &mut Message) -> Option<Routed>;
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
    /// Where it was written.
    pub at: Place,
}
