//! What the clients of message brokers have in common: the thread they live on, how they read parameters, when they connect
//! again, and their TLS.

pub(crate) mod body;
pub(crate) mod kept;
pub(crate) mod link;
pub(crate) mod lookup;
#[cfg(any(feature = "jms", feature = "mail", feature = "mqtt", feature = "rabbitmq"))]
pub(crate) mod sender;
#[cfg(any(feature = "jms", feature = "rabbitmq"))]
pub(crate) mod store;
mod thread;
pub(crate) mod tls;

pub(crate) use thread::handle;
