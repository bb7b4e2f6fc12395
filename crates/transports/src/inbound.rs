//! The protocols of inbound endpoints and the transports of proxy services: the lists. How to add one stands in
//! [`penstock_compile::inbound`].

use penstock_compile::{InboundKind, ListenerKind};

use crate::{file, http};

/// The protocols of inbound endpoints.
pub const PROTOCOLS: &[InboundKind] = &[file::inbound::KIND, http::inbound::HTTP, http::inbound::HTTPS];

/// The transports that proxy services listen on, beside HTTP.
pub const LISTENERS: &[ListenerKind] = &[file::inbound::LISTENER];
