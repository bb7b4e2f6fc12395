//! The backend of the published tests: answers every request with its own body and content type, after a delay.
//!
//! One thread per core, each with its own listener on the same port; HTTP/1.1 in `http1`, HTTP/2 in `http2`.
//! A connection that opens with the HTTP/2 preface, or negotiates `h2` over TLS, speaks HTTP/2.
pub mod arrivals;
mod http1;
mod http2;

use crate::error::Error;
use crate::observe::process::{CpuTime, thread_cpu};
use arrivals::Arrivals;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::LocalSet;
use tokio_rustls::TlsAcceptor;

/// A body larger than this is refused with 413: the largest published message has 100 KB.
pub const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Connections waiting to be accepted: a thousand users may arrive at once.
const BACKLOG: u32 = 4096;

/// How to serve.
#[derive(Debug, Clone)]
pub struct EchoSpec {
    /// Address to listen on; `None` is every address, IPv4 and IPv6.
    pub address: Option<IpAddr>,
    /// Port; 0 takes a free one.
    pub port: u16,
    /// Wait before each answer.
    pub delay: Duration,
    /// Whether to speak TLS, with a certificate made on the spot.
    pub tls: bool,
    /// Whether a request without a body is answered with its method and path in JSON, not with an empty body.
    pub describe: bool,
    /// Threads.
    pub threads: usize,
}

impl Default for EchoSpec {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        EchoSpec { address: None, port: 8688, delay: Duration::ZERO, tls: false, describe: false, threads }
    }
}

impl EchoSpec {
    fn probe_address(&self) -> SocketAddr {
        let loopback: IpAddr = Ipv4Addr::LOCALHOST.into();
        SocketAddr::new(self.address.unwrap_or(loopback), self.port)
    }
}

/// A running backend; it ends when this is dropped.
pub struct EchoServer {
    port: u16,
    delay_us: Arc<AtomicU64>,
    arrivals: Arc<Arrivals>,
    tasks: Vec<PathBuf>,
    end: Option<watch::Sender<()>>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl EchoServer {
    /// Opens the port and starts the threads.
    pub fn start(spec: &EchoSpec) -> Result<EchoServer, Error> {
        let acceptor = match spec.tls {
            true => Some(TlsAcceptor::from(crate::tls::self_signed_server_config()?)),
            false => None,
        };
        let delay_us = Arc::new(AtomicU64::new(0));
        let (end, ended) = watch::channel(());
        let (announce, announced) = mpsc::channel();
        let mut server = EchoServer {
            port: spec.port,
            delay_us,
            arrivals: Arc::default(),
            tasks: Vec::new(),
            end: Some(end),
            threads: Vec::new(),
        };
        server.set_delay(spec.delay);
        // The threads share the port, and would share it with a stranger of the same user too: ask for it alone first.
        let taken =
            |error| Error::Environment(format!("the echo backend cannot listen on port {}: {error}", spec.port));
        drop(std::net::TcpListener::bind(spec.probe_address()).map_err(taken)?);
        for index in 0..spec.threads.max(1) {
            let worker = Worker {
                address: spec.address,
                port: server.port,
                acceptor: acceptor.clone(),
                delay_us: server.delay_us.clone(),
                arrivals: server.arrivals.clone(),
                describe: spec.describe,
                ended: ended.clone(),
            };
            let announce = announce.clone();
            let thread = std::thread::Builder::new().name(format!("echo-{index}")).spawn(move || worker.run(&announce));
            server.threads.push(thread.map_err(|error| Error::Environment(format!("cannot start a thread: {error}")))?);
            let opened = announced.recv().map_err(|_| Error::Environment("the echo backend ended".to_owned()))?;
            let (port, task) = opened.map_err(|error| {
                Error::Environment(format!("the echo backend cannot listen on port {}: {error}", server.port))
            })?;
            server.port = port;
            server.tasks.push(task);
        }
        Ok(server)
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What reaches it.
    pub fn arrivals(&self) -> &Arrivals {
        &self.arrivals
    }

    /// Changes the delay for requests that arrive from now on.
    pub fn set_delay(&self, delay: Duration) {
        self.delay_us.store(u64::try_from(delay.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// CPU time its threads have used.
    pub fn cpu(&self) -> CpuTime {
        self.tasks.iter().fold(CpuTime::default(), |sum, task| sum + thread_cpu(task))
    }
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        self.end = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

struct Worker {
    address: Option<IpAddr>,
    port: u16,
    acceptor: Option<TlsAcceptor>,
    delay_us: Arc<AtomicU64>,
    arrivals: Arc<Arrivals>,
    describe: bool,
    ended: watch::Receiver<()>,
}

/// What every connection of a thread needs.
struct Service {
    acceptor: Option<TlsAcceptor>,
    delay_us: Arc<AtomicU64>,
    arrivals: Arc<Arrivals>,
    describe: bool,
}

impl Service {
    /// What a request without a body is answered with, when it is not an empty body.
    fn description(&self, method: &[u8], target: &[u8]) -> Option<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\\', "\\\\").replace('"', "\\\"");
        self.describe.then(|| format!("{{\"method\":\"{}\",\"path\":\"{}\"}}", text(method), text(target)))
    }

    async fn wait(&self) {
        let delay_us = self.delay_us.load(Ordering::Relaxed);
        if delay_us > 0 {
            let begun = Instant::now();
            tokio::time::sleep(Duration::from_micros(delay_us)).await;
            self.arrivals.record_wait(begun.elapsed());
        }
    }
}

type Opened = io::Result<(u16, PathBuf)>;

impl Worker {
    fn run(self, announce: &mpsc::Sender<Opened>) {
        let opened = tokio::runtime::Builder::new_current_thread().enable_all().build().and_then(|runtime| {
            let listener = runtime.block_on(async { listen(self.address, self.port) })?;
            let port = listener.local_addr()?.port();
            let task = std::fs::read_link("/proc/thread-self").unwrap_or_default();
            Ok((runtime, listener, port, Path::new("/proc").join(task)))
        });
        match opened {
            Err(error) => {
                let _ = announce.send(Err(error));
            }
            Ok((runtime, listener, port, task)) => {
                let _ = announce.send(Ok((port, task)));
                let Worker { acceptor, delay_us, arrivals, describe, .. } = self;
                let mut ended = self.ended;
                let service = Rc::new(Service { acceptor, delay_us, arrivals, describe });
                let local = LocalSet::new();
                local.spawn_local(accept(listener, service));
                // The sender is dropped when the server ends.
                runtime.block_on(local.run_until(async { while ended.changed().await.is_ok() {} }));
            }
        }
    }
}

fn listen(address: Option<IpAddr>, port: u16) -> io::Result<TcpListener> {
    let bind = |address: IpAddr| {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.set_reuseaddr(true)?;
        socket.set_reuseport(true)?;
        socket.bind(SocketAddr::new(address, port))?;
        socket.listen(BACKLOG)
    };
    match address {
        Some(address) => bind(address),
        // The IPv6 wildcard takes IPv4 connections too; where there is no IPv6, IPv4 alone will do.
        None => bind(Ipv6Addr::UNSPECIFIED.into()).or_else(|error| match error.kind() {
            io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
            _ => bind(Ipv4Addr::UNSPECIFIED.into()),
        }),
    }
}

async fn accept(listener: TcpListener, service: Rc<Service>) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                let _ = socket.set_nodelay(true);
                tokio::task::spawn_local(serve(socket, service.clone()));
            }
            // Out of file descriptors: wait for connections to close instead of spinning.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Serves one connection to its end. What goes wrong on it is the client's to notice.
async fn serve(socket: tokio::net::TcpStream, service: Rc<Service>) {
    let _: io::Result<()> = async {
        match &service.acceptor {
            None => serve_plain(socket, &service).await,
            Some(acceptor) => {
                let stream = acceptor.accept(socket).await?;
                if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                    http2::serve(stream, service.clone()).await
                } else {
                    http1::serve(stream, Vec::new(), &service).await
                }
            }
        }
    }
    .await;
}

/// The first bytes of an HTTP/2 connection (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

async fn serve_plain(mut socket: tokio::net::TcpStream, service: &Rc<Service>) -> io::Result<()> {
    let mut first = Vec::with_capacity(http1::READ_BYTES);
    while first.len() < PREFACE.len() && PREFACE.starts_with(&first) {
        if socket.read_buf(&mut first).await? == 0 {
            return Ok(());
        }
    }
    if first.starts_with(PREFACE) {
        return http2::serve(Replay { first, at: 0, stream: socket }, service.clone()).await;
    }
    http1::serve(socket, first, service).await
}

/// A stream some of whose bytes were read already.
struct Replay<S> {
    first: Vec<u8>,
    at: usize,
    stream: S,
}

impl<S: AsyncRead + Unpin> AsyncRead for Replay<S> {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        let this = &mut *self;
        if this.at < this.first.len() {
            let count = buffer.remaining().min(this.first.len() - this.at);
            buffer.put_slice(&this.first[this.at..this.at + count]);
            this.at += count;
            return std::task::Poll::Ready(Ok(()));
        }
        std::pin::Pin::new(&mut this.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Replay<S> {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<io::Result<usize>> {
        std::pin::Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::pin::Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::pin::Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
