//! Where the engine meets the world. A transport implements these; the engine calls them by trait.

use std::any::Any;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use penstock_message::{Message, Method, RequestLine};

use crate::{Fault, Passage, RequestHead};

/// A future that stays on its core.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Who sent a request and how.
#[derive(Debug, Clone)]
pub struct Client {
    /// The request line.
    pub line: RequestLine,
    /// The client's address: the peer's, or the one that a trusted proxy reports ([`crate::TrustedProxies`]).
    pub address: IpAddr,
    /// The address at the other end of the connection; behind a PROXY protocol the one that it names.
    pub peer: SocketAddr,
    /// The address it connected to.
    pub local: SocketAddr,
    /// `HTTP/1.0`, `HTTP/1.1`, `HTTP/2`.
    pub protocol: &'static str,
    /// The certificate the client proved to own, in DER, when the listener requested one.
    pub certificate: Option<Arc<[u8]>>,
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

    /// Where a request is passed on as it is, decided by its head. The listener then sends it, passes the response back and
    /// calls [`Passage::finish`], or gives the outcome to [`Service::resume`].
    fn passage(&self, _head: &RequestHead<'_>) -> Option<Passage> {
        None
    }

    /// Answers a request that was passed on, with the outcome in place of that of its first send.
    fn resume<'a>(
        &'a self,
        request: Request,
        _passage: Passage,
        _outcome: Result<Message, Fault>,
    ) -> LocalFuture<'a, Message> {
        self.answer(request)
    }
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

/// Options of one outgoing message that every transport has.
#[derive(Debug, Clone)]
pub struct SendOptions {
    /// From the end of the request to the reply's head. How long the client takes to send its body does not count.
    pub response_timeout: Duration,
    /// From now to the deadline of the request this is sent for.
    pub time_left: Duration,
    /// For connecting, when it is not the sender's usual time.
    pub connect_timeout: Option<Duration>,
    /// `OUT_ONLY`: the reply is not used, and done means that the transport took the message.
    pub one_way: bool,
    /// Certificates to trust, when the route has some of its own.
    pub tls: Option<Arc<TlsProfile>>,
    /// Options of HTTP.
    pub http: HttpOptions,
}

/// Options of one outgoing HTTP request.
#[derive(Debug, Clone, Copy, Default)]
pub struct HttpOptions {
    /// `DISABLE_CHUNKING`: send a Content-Length, buffering a stream of unknown size if needed.
    pub content_length: bool,
    /// `FORCE_HTTP_1.0`.
    pub http10: bool,
    /// `NO_KEEPALIVE`.
    pub close: bool,
    /// `POST_TO_URI`: absolute form in the request line.
    pub absolute_form: bool,
    /// Whether HTTP/2 is spoken: as TLS agrees on it, with prior knowledge without TLS.
    pub http2: bool,
    /// Whether the request is a WebSocket handshake. The body of a reply with the status 101 is then a
    /// [`crate::websocket::Switched`].
    pub websocket: bool,
}

impl SendOptions {
    /// A plain request whose reply must begin within `response_timeout`, counted from now: its body is here.
    pub fn within(response_timeout: Duration) -> SendOptions {
        let time_left = response_timeout;
        SendOptions {
            response_timeout,
            time_left,
            connect_timeout: None,
            one_way: false,
            tls: None,
            http: HttpOptions::default(),
        }
    }
}

/// Whom to trust over TLS for some requests, beside what the sender trusts for all others. Two profiles with the
/// same content share connections.
#[derive(Default)]
pub struct TlsProfile {
    /// Certificates to trust, each in PEM or DER.
    pub roots: Vec<Arc<[u8]>>,
    /// Whether `roots` come beside what the sender trusts anyway, and not in its place.
    pub also_common: bool,
    prepared: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl TlsProfile {
    /// Trusts these certificates only, and what the sender trusts when there is none.
    pub fn trusting(roots: Vec<Arc<[u8]>>) -> TlsProfile {
        let also_common = roots.is_empty();
        TlsProfile { roots, also_common, prepared: OnceLock::new() }
    }

    /// What a transport makes of the profile, made once.
    pub fn prepared<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<Arc<T>> {
        self.prepared.get_or_init(|| Arc::new(make())).clone().downcast().ok()
    }

    /// Whether both trust the same.
    pub fn is_like(&self, other: &TlsProfile) -> bool {
        self.roots == other.roots && self.also_common == other.also_common
    }
}

impl std::fmt::Debug for TlsProfile {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "TlsProfile({} certificates)", self.roots.len())
    }
}

/// The sender of a transport. One per core.
pub trait Outbound {
    /// Sends and waits for the head of the reply; its body streams. The reply's `status`, `reason`,
    /// `headers` and `body` are set, nothing else.
    fn send<'a>(&'a self, outgoing: Outgoing) -> LocalFuture<'a, Result<Message, Fault>>;

    /// The sender of HTTP as its transport knows it, for a listener of the same transport.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

/// The senders of all transports, found by the scheme of the URL; HTTP sends what no other has.
pub struct Senders {
    http: Rc<dyn Outbound>,
    others: Vec<(Rc<str>, Rc<dyn Outbound>)>,
}

impl Senders {
    /// Only HTTP.
    pub fn new(http: Rc<dyn Outbound>) -> Senders {
        Senders { http, others: Vec::new() }
    }

    /// Adds the sender of a scheme.
    pub fn with(mut self, scheme: &str, sender: Rc<dyn Outbound>) -> Senders {
        self.others.push((scheme.into(), sender));
        self
    }
}

impl Outbound for Senders {
    fn send<'a>(&'a self, outgoing: Outgoing) -> LocalFuture<'a, Result<Message, Fault>> {
        if outgoing.url.starts_with("http") {
            return self.http.send(outgoing);
        }
        let scheme = outgoing.url.split_once(':').map_or("", |(scheme, _)| scheme);
        let found = self.others.iter().find(|(known, _)| known.eq_ignore_ascii_case(scheme));
        found.map_or(&self.http, |(_, sender)| sender).send(outgoing)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        self.http.as_any()
    }
}

/// How loud a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Detail for one who looks for a mistake.
    Trace,
    /// Detail.
    Debug,
    /// What happens.
    Info,
    /// What may be a mistake.
    Warn,
    /// What failed.
    Error,
    /// What ends the process.
    Fatal,
}

/// A log line of a flow.
#[derive(Debug)]
pub struct Record<'a> {
    /// How loud.
    pub level: Level,
    /// Who says it: `LogMediator`, `FaultHandler`, …
    pub logger: &'a str,
    /// The service, as `{api:Name}` or `{proxy:Name}`, or empty.
    pub service: &'a str,
    /// The correlation id of the request.
    pub correlation: &'a str,
    /// The text.
    pub text: &'a str,
}

/// Where log lines go. Called on the cores: must not block for long.
pub trait LogSink: Send + Sync {
    /// Writes one line.
    fn write(&self, record: &Record<'_>);

    /// Whether lines of that level are written at all.
    fn enabled(&self, level: Level) -> bool;
}

/// Parameters of a connection that artifacts refer to by name: `rabbitmq.connection.factory`.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectionFactory {
    /// The transport: `rabbitmq`, `jms`.
    pub transport: String,
    /// The name.
    pub name: String,
    /// Names and values, as the transport calls them in artifacts.
    pub parameters: Vec<(String, String)>,
}

/// Without the values, among which are passwords.
impl std::fmt::Debug for ConnectionFactory {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "ConnectionFactory({} {})", self.transport, self.name)
    }
}

/// What a flow may read of its surroundings. Read once at start.
#[derive(Debug, Default)]
pub struct Environment {
    /// Environment variables, `.env` included.
    pub variables: std::collections::HashMap<String, String>,
    /// `file.properties`.
    pub file: std::collections::HashMap<String, String>,
    /// System properties (`-Dname=value`, and `server` facts such as `carbon.home`).
    pub system: std::sync::RwLock<std::collections::HashMap<String, String>>,
    /// Names and passwords that UsernameToken and basic authentication accept.
    pub users: crate::Users,
    /// Connections of brokers and mail servers by name, for endpoints and listeners that refer to them.
    pub connection_factories: Vec<ConnectionFactory>,
    /// Secrets by alias.
    pub secrets: crate::Secrets,
    /// What flows wrote to the registry.
    pub registry: Arc<crate::Registry>,
    /// Whether `/services/` does not list the proxy services.
    pub services_hidden: bool,
    /// The host name and ports of the listeners, for rewritten WSDL addresses.
    pub host: String,
    /// The port of the HTTP listener.
    pub http_port: u16,
    /// The port of the HTTPS listener.
    pub https_port: u16,
}
