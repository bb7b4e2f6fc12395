//! MQTT 3.1.1: endpoints `mqtt:/`, inbound endpoints and listeners of proxy services.
//!
//! A message is sent when the broker has confirmed it as its quality of service asks for, and acknowledged when its flow has
//! ended. Parameters have the names of Micro Integrator.
//!
//! Start reading at `address.rs`, then `inbound.rs`.

mod address;
pub mod inbound;
mod sender;

use penstock_compile::{NamedConnections, TransportKind};

use crate::broker::sender::senders;
use sender::Mqtt;

/// The scheme of endpoints, and the name of the transport.
const SCHEME: &str = "mqtt";

/// The transport.
pub const TRANSPORT: TransportKind = TransportKind {
    schemes: &[SCHEME],
    inbound: &[inbound::KIND],
    listeners: &[inbound::LISTENER],
    connections: Some(NamedConnections {
        tables: &["transport.mqtt.listener", "transport.mqtt.sender"],
        keys: &[
            ("hostname", "mqtt.server.host.name"),
            ("server_port", "mqtt.server.port"),
            ("client_id", "mqtt.client.id"),
            ("topic_name", "mqtt.topic.name"),
            ("subscription_username", "mqtt.subscription.username"),
            ("subscription_password", "mqtt.subscription.password"),
        ],
    }),
    senders: Some(|factories| senders(Mqtt::new(factories.to_vec()), vec![SCHEME.to_owned()])),
    ..TransportKind::new(SCHEME)
};
