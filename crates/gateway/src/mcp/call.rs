//! One call on its way: its message, and the sequences for its response and its fault.

use std::cell::Cell;

use bytes::Bytes;
use penstock_engine::SequenceId;
use penstock_message::Message;
use serde_json::{Map, Value};

/// The request in a message of a client.
pub(crate) struct Call {
    /// The request's name; null for what is not answered.
    pub id: Value,
    /// What takes the answer.
    pub response: SequenceId,
    /// What takes a fault; the server's own when absent.
    pub fault: Option<SequenceId>,
    /// Whether a tool over HTTP is called, whose faults are results.
    pub is_http_tool: bool,
    /// The arguments of the tool, until they are made a request.
    pub arguments: Cell<Map<String, Value>>,
    /// What is sent on to the server behind this one.
    pub forwarded: Cell<Bytes>,
    /// The response that is known before any call.
    pub answer: Cell<Option<Message>>,
}
