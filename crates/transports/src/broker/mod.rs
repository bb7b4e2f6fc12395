//! What the clients of message brokers have in common: the thread they live on, how they read parameters, when they connect
//! again, and their TLS.

pub(crate) mod body;
pub(crate) mod kept;
pub(crate) mod link;
pub(crate) mod lookup;
mod thread;
pub(crate) mod tls;

pub(crate) use thread::handle;
