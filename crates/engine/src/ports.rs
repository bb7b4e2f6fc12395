//! Where the engine meets the world. A transport implements these; the engine calls them by trait.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use penstock_message::{Message, Method, RequestLine};

use crate::Fault;

/// A future that stays on its core.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Who sent a request and how.
#[derive(Debug, Clone)]
pub struct Client {
    /// The request line.
    pub line: RequestLine,
    /// The peer's address.
    pub peer: SocketAddr,
    /// The address it connected to.
    pub local: SocketAddr,
    /// `HTTP/1.0`, `HTTP/1.1`, `HTTP/2`.
    pub protocol: &'static str,
}

/// A request as a listener hands it over. The body is a stream, bytes or empty.
#[derive(Debug)]
pub struct Request {
    /// Who and how.
    pub client: Rc<Client>,
    /// Headers and body; `message.method` is the client's.
    pub message: Message,
}

/// What a listener calls for each request. Never fails: a failure is a reply too.
///
/// The reply is a message whose `status` is final (never 0) and whose body is empty, bytes or a stream; headers are
/// those to send, without framing (Content-Length, Transfer-Encoding and Connection are the listener's).
pub trait Service {
    /// Answers one request.
    fn answer<'a>(&'a self, request: Request) -> LocalFuture<'a, Message>;
}

/// A request for a backend.
#[derive(Debug)]
pub struct Outgoing {
    /// Absolute: `http://host:port/path?query`.
    pub url: Arc<str>,
    /// The method.
    pub method: Method,
    /// Headers as they shall go out, hop-by-hop fields and framing excepted; the sender adds Host
    /// unless it is there.
    pub message: Message,
    /// How the sender behaves for this request.
    pub options: SendOptions,
}

/// Knobs of one outgoing request.
#[derive(Debug, Clone)]
pub struct SendOptions {
    /// From now to the reply's head.
    pub response_timeout: Duration,
    /// `DISABLE_CHUNKING`: send a Content-Length, buffering a stream of unknown size if needed.
    pub content_length: bool,
    /// `FORCE_HTTP_1.0`.
    pub http10: bool,
    /// `NO_KEEPALIVE`.
    pub close: bool,
    /// `POST_TO_URI`: absolute form in the request line.
    pub absolute_form: bool,
    /// `OUT_ONLY`: nobody waits for the reply's body.
    pub one_way: bool,
}

/// The sender of a transport. One per core.
pub trait Outbound {
    /// Sends and waits for the head of the reply; its body streams. The reply's `status`, `reason`,
    /// `headers` and `body` are set, nothing else.
    fn send<'a>(&'a self, outgoing: Outgoing) -> LocalFuture<'a, Result<Message, Fault>>;
}
