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

pub use sender::{RabbitMq, RabbitMqSender};
pub(crate) use store::Queue as StoreQueue;

/// The scheme of endpoints, and the name of the transport.
pub const SCHEME: &str = "rabbitmq";
