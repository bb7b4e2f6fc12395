//! Accepts connections and answers what comes over them.

mod accept;
mod access;
mod connection;
mod http2;
mod passing;
mod reply;
mod shutdown;
mod switch;

use std::cell::Cell;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use penstock_engine::ports::Service;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::http1::Socket;
use super::proxy_protocol::read_header;
use super::{HttpLimits, ListenerConfig, LiveConfig, PerCore};
use accept::Acceptor;
pub use access::{AccessEntry, AccessLog};
use connection::Connection;
pub use http2::malformed_trailers;
pub use shutdown::{Shutdown, ShutdownTrigger, shutdown};

/// Connections the kernel may hold for us while we are busy.
const BACKLOG: i32 = 4096;

/// How long a listener that ends still takes connections whose handshake has begun.
const LAST_CONNECTIONS: Duration = Duration::from_millis(100);

/// A bound port, not yet served.
#[derive(Debug)]
pub struct HttpListener {
    tcp: std::net::TcpListener,
    local: SocketAddr,
    config: Arc<LiveConfig>,
}

/// Why a port could not be bound.
#[derive(Debug)]
pub struct ListenError {
    /// The address.
    pub address: SocketAddr,
    /// What the system said. `AddrInUse` means that something else listens there.
    pub cause: io::Error,
}

impl fmt::Display for ListenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause.kind() {
            io::ErrorKind::AddrInUse => write!(out, "port {} of {} is taken", self.address.port(), self.address.ip()),
            io::ErrorKind::PermissionDenied => {
                write!(out, "port {} may not be opened by this user", self.address.port())
            }
            io::ErrorKind::AddrNotAvailable => {
                write!(out, "the address {} is not one of this machine", self.address.ip())
            }
            _ => write!(out, "cannot listen on {}: {}", self.address, self.cause),
        }
    }
}

impl std::error::Error for ListenError {}

/// What the connections of a listener share.
pub(super) struct Shared {
    pub(super) core: Rc<PerCore>,
    pub(super) config: ListenerConfig,
    pub(super) limits: Rc<HttpLimits>,
    pub(super) service: Rc<dyn Service>,
    pub(super) access: Option<Rc<dyn AccessLog>>,
    /// One for all connections of the listener, of any configuration.
    pub(super) draining: Rc<Cell<bool>>,
}

impl HttpListener {
    /// Binds the port for this core. Every core binds the same address; the kernel spreads connections over them.
    /// Only the first core of a process detects that the port is in use, see
    /// [`HttpListener::check_free`].
    pub fn bind(address: SocketAddr, config: impl Into<Arc<LiveConfig>>) -> Result<HttpListener, ListenError> {
        let config = config.into();
        let tcp = listen(address, true).map_err(|cause| ListenError { address, cause })?;
        let local = tcp.local_addr().map_err(|cause| ListenError { address, cause })?;
        Ok(HttpListener { tcp, local, config })
    }

    /// Fails when something else listens on the address. `SO_REUSEPORT` would let two servers of one user share a
    /// port silently, so the server checks once before the cores bind.
    pub fn check_free(address: SocketAddr) -> Result<(), ListenError> {
        listen(address, false).map(drop).map_err(|cause| ListenError { address, cause })
    }

    /// The bound address, with the port when it was 0.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Serves until `shutdown`, then drains: takes the connections that are begun, accepts no more, closes idle
    /// connections, gives running exchanges their time. Run it inside a `LocalSet` or a local runtime.
    pub async fn serve(
        self,
        core: Rc<PerCore>,
        service: Rc<dyn Service>,
        access: Option<Rc<dyn AccessLog>>,
        mut shutdown: Shutdown,
    ) -> io::Result<()> {
        let mut acceptor = Acceptor::new(TcpListener::from_std(self.tcp)?);
        let draining = Rc::new(Cell::new(false));
        let counters = core.counters.clone();
        let share = || {
            let config = self.config.get();
            let limits = Rc::new(config.limits.clone());
            let (core, service, access, draining) = (core.clone(), service.clone(), access.clone(), draining.clone());
            Rc::new(Shared { core, config, limits, service, access, draining })
        };
        let mut generation = self.config.generation();
        let mut shared = share();
        let mut connections = JoinSet::new();
        loop {
            let has_room = connections.len() < shared.config.connections_max;
            tokio::select! {
                biased;
                () = shutdown.wait() => break,
                Some(_) = connections.join_next() => {}
                accepted = acceptor.accept(shared.config.descriptors_max, &counters), if has_room => {
                    if generation != self.config.generation() {
                        generation = self.config.generation();
                        shared = share();
                    }
                    if let Some((tcp, peer)) = accepted {
                        connections.spawn_local(serve_connection(tcp, peer, shared.clone()));
                    }
                }
            }
        }
        acceptor.refuse_new();
        draining.set(true);
        core.wake_all();
        // The handshakes that the kernel has begun end within a round trip.
        let end = tokio::time::Instant::now() + LAST_CONNECTIONS;
        while let Ok(accepted) =
            tokio::time::timeout_at(end, acceptor.accept(shared.config.descriptors_max, &counters)).await
        {
            if let Some((tcp, peer)) = accepted {
                connections.spawn_local(serve_connection(tcp, peer, shared.clone()));
            }
        }
        while let Some((tcp, peer)) = acceptor.take_queued() {
            connections.spawn_local(serve_connection(tcp, peer, shared.clone()));
        }
        drop(acceptor);
        let drain = shared.config.timeouts.drain;
        let finished = tokio::time::timeout(drain, async { while connections.join_next().await.is_some() {} });
        if finished.await.is_err() {
            connections.shutdown().await;
        }
        Ok(())
    }
}

async fn serve_connection(mut tcp: TcpStream, mut peer: SocketAddr, shared: Rc<Shared>) {
    // Without it the last piece of a reply waits for an acknowledgement.
    let _ = tcp.set_nodelay(true);
    let Ok(local) = tcp.local_addr() else { return };
    let counters = shared.core.counters.clone();
    counters.accepted.add(1);
    counters.connections.add(1);
    let _closed = OnDrop(|| counters.connections.subtract(1));
    let config = &shared.config;
    if config.proxy_protocol && config.trusted_proxies.trusts(peer.ip()) {
        match Box::pin(tokio::time::timeout(config.timeouts.head, read_header(&mut tcp))).await {
            Ok(Ok(header)) => peer = header.source.unwrap_or(peer),
            // The protocol has no answer for a wrong header.
            Ok(Err(_)) | Err(_) => return counters.refused.add(1),
        }
    }
    let socket = match &shared.config.tls {
        None => Socket::Plain(tcp),
        Some(tls) => {
            let handshake = tokio_rustls::TlsAcceptor::from(tls.current()).accept(tcp);
            // What few connections need is boxed, so that the others do not reserve the room for it.
            match Box::pin(tokio::time::timeout(shared.config.timeouts.handshake, handshake)).await {
                Ok(Ok(stream)) => Socket::Tls(Box::new(stream.into())),
                // The library has sent its alert; nothing more can be sent.
                Ok(Err(_)) | Err(_) => return,
            }
        }
    };
    if socket.alpn() == Some(b"h2") {
        return Box::pin(http2::serve(socket, bytes::BytesMut::new(), peer, local, &shared)).await;
    }
    if let Some((socket, read)) = Connection::new(socket, peer, local, &shared).serve().await {
        Box::pin(http2::serve(socket, read, peer, local, &shared)).await;
    }
}

/// Also runs when a task is aborted.
pub(super) struct OnDrop<F: Fn()>(pub(super) F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn listen(address: SocketAddr, share: bool) -> io::Result<std::net::TcpListener> {
    let socket = socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None)?;
    // Connections of an earlier process in TIME_WAIT must not keep a new one from starting.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(share)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
