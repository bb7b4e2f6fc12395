//! Limits, timeouts and switches, each with its reason and the error it leads to.

use std::fmt;
use std::net::IpAddr;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use penstock_engine::TrustedProxies;

use super::tls::{TlsClient, TlsServer};

/// Sizes beyond which a message is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpLimits {
    /// Request or status line and all fields. More: 431 from the listener, fault 101506 from the sender. A trailer section may
    /// have 8 KiB of it. More: 400, or a body that breaks off.
    pub head_bytes_max: usize,
    /// Fields in one head. More: 431, or fault 101506.
    pub fields_max: usize,
    /// The request target. Longer: 414.
    pub target_bytes_max: usize,
    /// A request body. More: 413.
    pub body_bytes_max: u64,
    /// What the sender collects when a stream of unknown size must leave with a Content-Length. More: fault 101500.
    pub collected_bytes_max: usize,
    /// Maximum of an unread request body that is discarded to keep the connection. More: the connection is closed.
    pub drain_bytes_max: u64,
}

impl Default for HttpLimits {
    fn default() -> HttpLimits {
        HttpLimits {
            // Cookies and tokens fit; four times what nginx and HAProxy allow in one field.
            head_bytes_max: 64 * 1024,
            // Ten times what browsers send.
            fields_max: 200,
            target_bytes_max: 16 * 1024,
            // Bodies stream, so this is a guard against mistakes, not against memory.
            body_bytes_max: 2 * 1024 * 1024 * 1024,
            collected_bytes_max: 64 * 1024 * 1024,
            // One full buffer: reading it costs less than a new connection.
            drain_bytes_max: 64 * 1024,
        }
    }
}

/// Timeouts of the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpTimeouts {
    /// A connection without a request. Closed silently.
    pub idle: Duration,
    /// From the first byte of a head to its last. Then: 408.
    pub head: Duration,
    /// Between two pieces of a request body. Then: `BodyError::Timeout`, 408 if nothing was answered yet.
    pub body: Duration,
    /// Between two pieces of a reply that the client takes. Then the connection is reset.
    pub write: Duration,
    /// A TLS handshake, from either side.
    pub handshake: Duration,
    /// All attempts to connect to a backend. Then: fault 101508.
    pub connect: Duration,
    /// Between two pieces of a backend's reply body. Then: `BodyError::Timeout`.
    pub reply_body: Duration,
    /// An idle pooled backend connection.
    pub pool_idle: Duration,
    /// Waiting for the client's close after ours, so that it can read the reply.
    pub linger: Duration,
    /// What running exchanges get when the listener drains.
    pub drain: Duration,
    /// From a request's head to the last byte of its reply, unless that is a stream of events or of gRPC. Then: the
    /// connection, or the stream of HTTP/2, is reset.
    pub deadline: Duration,
    /// Between two pieces of a stream of events or of gRPC, in either direction. Then: `BodyError::Timeout`.
    pub stream_idle: Duration,
    /// A WebSocket connection on which nothing arrives from either side. Both get 1001.
    pub websocket_idle: Duration,
}

impl Default for HttpTimeouts {
    fn default() -> HttpTimeouts {
        HttpTimeouts {
            // The socket timeout of Micro Integrator.
            idle: Duration::from_secs(180),
            head: Duration::from_secs(30),
            body: Duration::from_secs(60),
            write: Duration::from_secs(60),
            handshake: Duration::from_secs(10),
            connect: Duration::from_secs(10),
            reply_body: Duration::from_secs(60),
            // Below the keep-alive time of common backends (Tomcat 60 s, nginx 75 s).
            pool_idle: Duration::from_secs(30),
            linger: Duration::from_secs(2),
            drain: Duration::from_secs(30),
            // Micro Integrator's socket timeout.
            deadline: Duration::from_secs(180),
            stream_idle: Duration::from_secs(300),
            // The stream timeout of Choreo Connect's router.
            websocket_idle: Duration::from_secs(300),
        }
    }
}

/// How a listener behaves.
#[derive(Debug, Clone)]
pub struct ListenerConfig {
    /// Sizes.
    pub limits: HttpLimits,
    /// Times.
    pub timeouts: HttpTimeouts,
    /// Connections at once on this core. More wait in the kernel's queue.
    pub connections_max: usize,
    /// Whether clients may speak HTTP/2 (by ALPN over TLS, by prior knowledge without).
    pub http2: bool,
    /// TLS, for a port that speaks HTTPS.
    pub tls: Option<Arc<TlsServer>>,
    /// The proxies that may report the addresses of clients.
    pub trusted_proxies: Arc<TrustedProxies>,
    /// Whether connections of trusted proxies begin with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// Descriptors from this number on are not for connections; they are the reserve of the process.
    pub descriptors_max: Option<RawFd>,
}

/// The configuration of listeners, which may change while they run. Connections keep the one they began with.
#[derive(Debug)]
pub struct LiveConfig {
    generation: AtomicU64,
    config: RwLock<ListenerConfig>,
}

impl LiveConfig {
    /// Replaces the configuration for connections to come.
    pub fn replace(&self, config: ListenerConfig) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// The number of the present configuration; another one after it changed.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The present configuration.
    pub fn get(&self) -> ListenerConfig {
        self.config.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl From<ListenerConfig> for Arc<LiveConfig> {
    fn from(config: ListenerConfig) -> Arc<LiveConfig> {
        Arc::new(LiveConfig { generation: AtomicU64::new(0), config: RwLock::new(config) })
    }
}

impl Default for ListenerConfig {
    fn default() -> ListenerConfig {
        ListenerConfig {
            limits: HttpLimits::default(),
            timeouts: HttpTimeouts::default(),
            // Memory for heads and buffers stays within a few hundred megabytes.
            connections_max: 20_000,
            http2: true,
            tls: None,
            trusted_proxies: Arc::default(),
            proxy_protocol: false,
            descriptors_max: None,
        }
    }
}

/// How a sender behaves.
#[derive(Debug, Clone)]
pub struct SenderConfig {
    /// Sizes.
    pub limits: HttpLimits,
    /// Times.
    pub timeouts: HttpTimeouts,
    /// Idle connections kept for one backend on this core.
    pub idle_per_backend_max: usize,
    /// TLS towards HTTPS backends; one for all cores.
    pub tls: Arc<TlsClient>,
    /// See [`ListenerConfig::descriptors_max`].
    pub descriptors_max: Option<RawFd>,
    /// Which addresses may be connected to; all when there is none. It sees the resolved address, so that a name cannot
    /// lead elsewhere than it did when it was checked.
    pub address_filter: Option<AddressFilter>,
}

/// Which addresses a sender may connect to.
#[derive(Clone)]
pub struct AddressFilter(Arc<dyn Fn(IpAddr) -> bool + Send + Sync>);

impl AddressFilter {
    /// A filter that allows what the function returns `true` for.
    pub fn new(allows: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> AddressFilter {
        AddressFilter(Arc::new(allows))
    }

    /// Whether an address may be connected to.
    pub fn allows(&self, address: IpAddr) -> bool {
        (self.0)(address)
    }
}

impl fmt::Debug for AddressFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AddressFilter")
    }
}

impl Default for SenderConfig {
    fn default() -> SenderConfig {
        SenderConfig {
            limits: HttpLimits::default(),
            timeouts: HttpTimeouts::default(),
            idle_per_backend_max: 512,
            tls: Arc::default(),
            descriptors_max: None,
            address_filter: None,
        }
    }
}
