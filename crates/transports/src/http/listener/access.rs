//! What a listener logs of every exchange.

use std::any::Any;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use penstock_message::{Headers, RequestLine};

/// One finished exchange.
#[derive(Debug)]
pub struct AccessEntry<'a> {
    /// The client's address, as [`penstock_engine::ports::Client::address`] has it.
    pub address: IpAddr,
    /// The address at the other end of the connection.
    pub peer: SocketAddr,
    /// What for.
    pub line: &'a RequestLine,
    /// `HTTP/1.0`, `HTTP/1.1`, `HTTP/2`.
    pub protocol: &'static str,
    /// What was answered.
    pub status: u16,
    /// Body bytes of the reply as framed; `None` when its length was not known in advance.
    pub body_bytes: Option<u64>,
    /// From the request's head to the last byte of the reply.
    pub took: Duration,
    /// Whether the reply reached the socket completely.
    pub complete: bool,
    /// The fields of the request, when [`AccessLog::wants_headers`].
    pub request_headers: Option<&'a Headers>,
    /// What the maker of the answer noted for the log.
    pub extension: Option<&'a Rc<dyn Any>>,
}

/// Takes entries. Called on the core after the reply; must not block.
pub trait AccessLog {
    /// Writes one.
    fn record(&self, entry: &AccessEntry<'_>);

    /// Whether entries shall have the fields of their requests, which must be kept for it.
    fn wants_headers(&self) -> bool {
        false
    }
}
