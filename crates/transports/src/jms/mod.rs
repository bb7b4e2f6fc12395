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

pub use sender::{Jms, JmsSender};
pub(crate) use store::Queue as StoreQueue;

/// The scheme of endpoints, and the name of the transport.
pub const SCHEME: &str = "jms";
