//! HTTP: a listener and a sender that share one core.
//!
//! Everything here lives on one thread: a current-thread runtime per core, one [`PerCore`] on it, the listener's
//! connections as local tasks, the sender's pool beside them. HTTP/1.1 is spoken directly on the sockets:
//!
//! - [`http1`] is the protocol: heads, chunks, bodies, and the [`http1::Wire`] (a socket with its two buffers) they move over.
//! - [`listener`] answers clients, [`sender`] calls backends. A body that arrives on one wire and leaves on another
//!   is recognised by the receiving side and goes from buffer to socket without being copied.
//! - [`websocket`] is what a connection becomes when both sides agree to leave HTTP.
//!
//! How a request costs so little: one read brings head and body, one write sends them; a read buffer belongs to a
//! connection only while it holds bytes, so the same few stay in the cache; a deadline is a number that a periodic
//! sweep looks at, not a timer.
//!
//! Start reading at [`HttpListener`] and [`HttpSender`].

mod config;
mod counters;
mod date;
pub mod http1;
mod http2;
pub mod inbound;
mod listener;
mod per_core;
mod proxy_protocol;
mod reason;
mod sender;
pub mod tls;
pub mod websocket;

pub use config::{AddressFilter, HttpLimits, HttpTimeouts, ListenerConfig, LiveConfig, SenderConfig};
pub use counters::{Counters, CountersSnapshot};
pub use listener::{
    AccessEntry, AccessLog, HttpListener, ListenError, Shutdown, ShutdownTrigger, malformed_trailers, shutdown,
};
pub use per_core::PerCore;
pub use proxy_protocol::{ProxyError, ProxyHeader};
pub use sender::HttpSender;

use penstock_compile::TransportKind;

/// The transport. Its sender, which belongs to a core, takes what no other transport sends.
pub const TRANSPORT: TransportKind = TransportKind {
    schemes: &["http", "https", "ws", "wss"],
    inbound: &[inbound::HTTP, inbound::HTTPS],
    ..TransportKind::new("http")
};
