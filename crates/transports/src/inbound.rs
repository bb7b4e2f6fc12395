//! The protocols of inbound endpoints and the transports of proxy services: the lists. How to add one stands in
//! [`penstock_compile::inbound`].

use penstock_compile::{InboundKind, ListenerKind};

#[cfg(feature = "jms")]
use crate::jms;
#[cfg(feature = "kafka")]
use crate::kafka;
#[cfg(feature = "mail")]
use crate::mail;
#[cfg(feature = "mqtt")]
use crate::mqtt;
#[cfg(feature = "rabbitmq")]
use crate::rabbitmq;
use crate::{file, http};

/// The protocols of inbound endpoints.
pub const PROTOCOLS: &[InboundKind] = &[
    file::inbound::KIND,
    http::inbound::HTTP,
    http::inbound::HTTPS,
    #[cfg(feature = "jms")]
    jms::inbound::KIND,
    #[cfg(feature = "kafka")]
    kafka::inbound::KIND,
    #[cfg(feature = "mqtt")]
    mqtt::inbound::KIND,
    #[cfg(feature = "rabbitmq")]
    rabbitmq::inbound::KIND,
];

/// The transports that proxy services listen on, beside HTTP.
pub const LISTENERS: &[ListenerKind] = &[
    file::inbound::LISTENER,
    #[cfg(feature = "jms")]
    jms::inbound::LISTENER,
    #[cfg(feature = "mail")]
    mail::inbound::LISTENER,
    #[cfg(feature = "mqtt")]
    mqtt::inbound::LISTENER,
    #[cfg(feature = "rabbitmq")]
    rabbitmq::inbound::LISTENER,
];
