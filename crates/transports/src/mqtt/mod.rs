//! MQTT 3.1.1: endpoints `mqtt:/`, inbound endpoints and listeners of proxy services.
//!
//! A message is sent when the broker has confirmed it as its quality of service asks for, and acknowledged when its flow has
//! ended. Parameters have the names of Micro Integrator.
//!
//! Start reading at `address.rs`, then `inbound.rs`.

mod address;
pub mod inbound;
mod sender;

pub use sender::{Mqtt, MqttSender};

/// The scheme of endpoints, and the name of the transport.
pub const SCHEME: &str = "mqtt";
