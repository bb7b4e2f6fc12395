//! JMS brokers over AMQP 1.0: message stores, endpoints `jms:/`, inbound endpoints and listeners of proxy services. Artifacts
//! name a JNDI provider; its URL is the address of the broker.
//!
//! A message is sent when the broker has accepted it, and accepted when its flow has ended or another store has it.
//! Parameters have the names of Micro Integrator.
//!
//! Start reading at `connection.rs`, then `message.rs` (what a JMS message is in AMQP 1.0).

mod address;
mod connection;
mod content;
pub mod inbound;
mod message;
mod outlet;
mod sender;
mod store;

use penstock_compile::{NamedConnections, StoreKind, TransportKind};

use crate::broker::sender::senders;
use sender::Jms;

/// The scheme of endpoints, and the name of the transport.
const SCHEME: &str = "jms";

/// The transport.
pub const TRANSPORT: TransportKind = TransportKind {
    schemes: &[SCHEME],
    inbound: &[inbound::KIND],
    listeners: &[inbound::LISTENER],
    connections: Some(NamedConnections {
        tables: &["transport.jms.listener", "transport.jms.sender"],
        keys: &[
            ("initial_naming_factory", "java.naming.factory.initial"),
            ("provider_url", "java.naming.provider.url"),
            ("connection_factory_name", "transport.jms.ConnectionFactoryJNDIName"),
            ("connection_factory_type", "transport.jms.ConnectionFactoryType"),
            ("destination", "transport.jms.Destination"),
            ("username", "transport.jms.UserName"),
            ("password", "transport.jms.Password"),
        ],
    }),
    store: Some(StoreKind {
        classes: &[
            "jms.JmsStore",
            "org.wso2.carbon.message.store.persistence.jms.JMSMessageStore",
            "org.wso2.carbon.message.store.persistence.jms.JMSMessageStoreFactory",
        ],
        required: &["java.naming.provider.url"],
        open: store::open,
    }),
    senders: Some(|factories| senders(Jms::new(factories.to_vec()), vec![SCHEME.to_owned()])),
    ..TransportKind::new(SCHEME)
};
