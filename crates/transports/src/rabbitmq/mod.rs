//! RabbitMQ over AMQP 0-9-1: message stores, endpoints `rabbitmq:/`, inbound endpoints and listeners of proxy services.
//!
//! A message is sent when the broker has confirmed it, and acknowledged when its flow has ended or another store has it.
//! Parameters have the names of Micro Integrator.
//!
//! Start reading at `connection.rs`, then `store.rs` (the smallest user of it).

mod address;
mod connection;
pub mod inbound;
mod message;
mod sender;
mod store;
mod topology;

use penstock_compile::{NamedConnections, StoreKind, TransportKind};

use crate::broker::sender::senders;
use sender::RabbitMq;

/// The scheme of endpoints, and the name of the transport.
const SCHEME: &str = "rabbitmq";

/// The transport.
pub const TRANSPORT: TransportKind = TransportKind {
    schemes: &[SCHEME],
    inbound: &[inbound::KIND],
    listeners: &[inbound::LISTENER],
    connections: Some(NamedConnections {
        tables: &["transport.rabbitmq.listener", "transport.rabbitmq.sender"],
        keys: &[
            ("hostname", "rabbitmq.server.host.name"),
            ("port", "rabbitmq.server.port"),
            ("username", "rabbitmq.server.user.name"),
            ("password", "rabbitmq.server.password"),
            ("virtual_host", "rabbitmq.server.virtual.host"),
            ("ssl_enable", "rabbitmq.connection.ssl.enabled"),
            ("keystore_file_name", "rabbitmq.connection.ssl.keystore.location"),
            ("keystore_location", "rabbitmq.connection.ssl.keystore.location"),
            ("keystore_password", "rabbitmq.connection.ssl.keystore.password"),
            ("keystore_type", "rabbitmq.connection.ssl.keystore.type"),
            ("truststore_file_name", "rabbitmq.connection.ssl.truststore.location"),
            ("truststore_location", "rabbitmq.connection.ssl.truststore.location"),
            ("truststore_password", "rabbitmq.connection.ssl.truststore.password"),
            ("truststore_type", "rabbitmq.connection.ssl.truststore.type"),
        ],
    }),
    store: Some(StoreKind { classes: &["rabbitmq.RabbitMQStore"], required: &[], open: store::open }),
    senders: Some(|factories| senders(RabbitMq::new(factories.to_vec()), vec![SCHEME.to_owned()])),
    ..TransportKind::new(SCHEME)
};
