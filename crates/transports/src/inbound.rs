//! The protocols of inbound endpoints and the transports of proxy services: the lists. How to add one stands in
//! [`penstock_compile::inbound`].

use penstock_compile::{InboundKind, ListenerKind};

#[cfg(feature = "rabbitmq")]
use crate::rabbitmq;
use crate::{file, http};

/// The protocols of inbound endpoints.
pub const PROTOCOLS: &[InboundKind] = &[
    file::inbound::KIND,
    http::inbound::HTTP,
    http::inbound::HTTPS,
    #[cfg(feature = "rabbitmq")]
    rabbitmq::inbound::KIND,
];

/// The transports that proxy services listen on, beside HTTP.
pub const LISTENERS: &[ListenerKind] = &[
    file::inbound::LISTENER,
    #[cfg(feature = "rabbitmq")]
    rabbitmq::inbound::LISTENER,
];
