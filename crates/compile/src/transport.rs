//! What a transport registers. The crate that knows the sockets has the list.

use std::rc::Rc;
use std::sync::Arc;

use penstock_engine::ports::{ConnectionFactory, Outbound};
use penstock_engine::store::{MessageStore, StoreError};

use crate::{ConnectorKind, InboundKind, ListenerKind};

/// A transport: the protocols, URL schemes, connections and message stores that it adds.
pub struct TransportKind {
    /// Its name, as `transport` of a connection and as the back end of a message store: `rabbitmq`.
    pub name: &'static str,
    /// The schemes of the URLs that it sends to.
    pub schemes: &'static [&'static str],
    /// Its protocols of inbound endpoints.
    pub inbound: &'static [InboundKind],
    /// What proxy services listen on.
    pub listeners: &'static [ListenerKind],
    /// The native connectors that use it.
    pub connectors: &'static [ConnectorKind],
    /// Its connections that a configuration names.
    pub connections: Option<NamedConnections>,
    /// Its message stores.
    pub store: Option<StoreKind>,
    /// Prepares its senders, once for the process. Nothing is connected before it is used. HTTP, which sends what no other
    /// transport does, has none here.
    pub senders: Option<fn(&[ConnectionFactory]) -> MakeSenders>,
}

/// Makes the senders of a core, each with its URL scheme.
pub type MakeSenders = Box<dyn Fn() -> Vec<(String, Rc<dyn Outbound>)> + Send + Sync>;

/// Connections with names, which artifacts refer to.
pub struct NamedConnections {
    /// The tables of a `deployment.toml` that define them: `transport.rabbitmq.listener`.
    pub tables: &'static [&'static str],
    /// Keys of those tables, each with the parameter that it sets.
    pub keys: &'static [(&'static str, &'static str)],
}

/// Message stores whose messages are in queues of a broker.
pub struct StoreKind {
    /// The Java classes it stands for, without the package of Synapse's stores where they are in it.
    pub classes: &'static [&'static str],
    /// Parameters that a store needs.
    pub required: &'static [&'static str],
    /// Opens a store.
    pub open: OpenQueue,
}

/// Opens the store of a name with these parameters and the connections of the configuration.
pub type OpenQueue = fn(&str, &[(Arc<str>, Arc<str>)], &[ConnectionFactory]) -> Result<OpenStore, StoreError>;

/// A store that was opened; makes the handle of a core.
pub type OpenStore = Arc<dyn Fn() -> Rc<dyn MessageStore> + Send + Sync>;

impl TransportKind {
    /// A transport that adds nothing yet.
    pub const fn new(name: &'static str) -> TransportKind {
        TransportKind {
            name,
            schemes: &[],
            inbound: &[],
            listeners: &[],
            connectors: &[],
            connections: None,
            store: None,
            senders: None,
        }
    }
}
