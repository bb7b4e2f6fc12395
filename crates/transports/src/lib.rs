//! One folder per transport: listener, sender and what configures them.
//!
//! A transport turns bytes on a socket into a [`penstock_engine::ports::Request`] for a
//! [`penstock_engine::ports::Service`], and an [`penstock_engine::ports::Outgoing`] into bytes on another
//! socket. It is independent of mediators, artifacts and configuration files.
//!
//! [`store`] has the back ends of message stores. Message brokers and mail are behind cargo features, one each.
//!
//! Start reading at [`TRANSPORTS`], then [`http`].

#[cfg(any(feature = "jms", feature = "kafka", feature = "mail", feature = "mqtt", feature = "rabbitmq"))]
mod broker;
mod clients;
pub mod file;
pub mod http;
#[cfg(feature = "jms")]
pub mod jms;
#[cfg(feature = "kafka")]
pub mod kafka;
#[cfg(feature = "mail")]
pub mod mail;
#[cfg(feature = "mqtt")]
pub mod mqtt;
#[cfg(feature = "rabbitmq")]
pub mod rabbitmq;
pub mod store;

pub use clients::SharedClients;

use penstock_compile::TransportKind;

/// The transports.
pub const TRANSPORTS: &[TransportKind] = &[
    http::TRANSPORT,
    file::TRANSPORT,
    #[cfg(feature = "jms")]
    jms::TRANSPORT,
    #[cfg(feature = "kafka")]
    kafka::TRANSPORT,
    #[cfg(feature = "mail")]
    mail::TRANSPORT,
    #[cfg(feature = "mqtt")]
    mqtt::TRANSPORT,
    #[cfg(feature = "rabbitmq")]
    rabbitmq::TRANSPORT,
];
