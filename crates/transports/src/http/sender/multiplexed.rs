//! The HTTP/2 connections to one backend: who opens one, which have room for a request, when they end.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use penstock_engine::{Fault, codes};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::backend_fault;
use super::url::Url;
use crate::http::SenderConfig;
use crate::http::http1::Socket;

/// Requests at once on one connection, unless the backend allows fewer. With more another connection is opened.
const STREAMS_MAX: usize = 100;

/// What a backend may send of one body before we have read it.
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;

/// The same for all bodies of a connection.
const CONNECTION_WINDOW_BYTES: u32 = 8 * 1024 * 1024;

/// What waits of one request body that the backend does not take.
const SEND_BUFFER_BYTES: usize = 256 * 1024;

/// The HTTP/2 connections to one backend.
#[derive(Default)]
pub(crate) struct Multiplexed {
    connections: RefCell<Vec<Rc<Connection>>>,
    opening: RefCell<Option<Rc<Opening>>>,
    /// Whether TLS agreed on HTTP/1.1 when HTTP/2 was offered.
    pub(super) declined: Cell<bool>,
}

/// A connection that is being opened. Others wait for it, so that many first requests do not open one each, and fail with it,
/// so that they do not try one after another what has just failed.
#[derive(Default)]
struct Opening {
    ended: Notify,
    failure: RefCell<Option<Fault>>,
}

/// The turn to open a connection. It is over when this is dropped, however that comes.
pub(super) struct Opener<'m> {
    all: &'m Multiplexed,
    opening: Rc<Opening>,
}

/// What a request may do.
pub(super) enum Turn<'m> {
    /// Go out on this connection.
    Use(Rc<Connection>),
    /// Open one.
    Open(Opener<'m>),
    /// Go out over HTTP/1.1.
    Decline,
}

/// One connection.
pub(crate) struct Connection {
    pub(super) sender: RefCell<SendRequest<Bytes>>,
    running: Cell<usize>,
    last_used: Cell<Instant>,
    pub(super) over: Cell<bool>,
}

/// Counts a request as long as its answer lasts.
pub(super) struct Running(Rc<Connection>);

impl Running {
    pub(super) fn new(connection: &Rc<Connection>) -> Running {
        connection.running.set(connection.running.get() + 1);
        Running(connection.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.set(self.0.running.get() - 1);
        self.0.last_used.set(Instant::now());
    }
}

impl Opener<'_> {
    pub(super) fn failed(&self, fault: &Fault) {
        *self.opening.failure.borrow_mut() = Some(fault.clone());
    }
}

impl Drop for Opener<'_> {
    fn drop(&mut self) {
        self.all.opening.take();
        self.opening.ended.notify_waiters();
    }
}

impl Connection {
    /// Whether it takes no more requests: it broke, or the backend sent a GOAWAY.
    fn is_over(&self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        self.over.get() || matches!(self.sender.borrow_mut().poll_ready(&mut cx), Poll::Ready(Err(_)))
    }

    fn has_room(&self) -> bool {
        self.running.get() < self.sender.borrow().current_max_send_streams().min(STREAMS_MAX)
    }

    /// When to look again whether it rested for so long; `None` when it did.
    fn rests_until(&self, idle: Duration, now: Instant) -> Option<Instant> {
        let since = if self.running.get() > 0 { now } else { self.last_used.get() };
        Some(since + idle).filter(|until| *until > now)
    }
}

impl Multiplexed {
    /// A connection with room for a request.
    fn take(&self) -> Option<Rc<Connection>> {
        let mut connections = self.connections.borrow_mut();
        connections.retain(|connection| !connection.is_over());
        connections.iter().find(|connection| connection.has_room()).cloned()
    }

    /// What a request may do, once it may do something.
    pub(super) async fn turn(&self) -> Result<Turn<'_>, Fault> {
        loop {
            if self.declined.get() {
                return Ok(Turn::Decline);
            }
            if let Some(connection) = self.take() {
                return Ok(Turn::Use(connection));
            }
            let Some(opening) = self.opening.borrow().clone() else {
                let opening = Rc::<Opening>::default();
                *self.opening.borrow_mut() = Some(opening.clone());
                return Ok(Turn::Open(Opener { all: self, opening }));
            };
            opening.ended.notified().await;
            let failure = opening.failure.borrow().clone();
            if let Some(fault) = failure {
                return Err(fault);
            }
        }
    }

    /// Begins HTTP/2 on a new socket.
    pub(super) async fn begin(
        &self,
        socket: Socket,
        url: &Url<'_>,
        config: &SenderConfig,
    ) -> Result<Rc<Connection>, Fault> {
        let mut builder = h2::client::Builder::new();
        builder
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_send_buffer_size(SEND_BUFFER_BYTES)
            .max_header_list_size(u32::try_from(config.limits.head_bytes_max).unwrap_or(u32::MAX))
            .enable_push(false);
        let handshake = tokio::time::timeout(config.timeouts.handshake, builder.handshake(socket)).await;
        let failed = |why: &str| {
            let message = format!("`{}` does not speak HTTP/2: {why}", url.authority);
            backend_fault(codes::CONNECTION_FAILED, message).retryable()
        };
        let (sender, driver) = match handshake {
            Ok(Ok(parts)) => parts,
            Ok(Err(error)) => return Err(failed(&error.to_string())),
            Err(_) => return Err(failed("no response in time")),
        };
        let connection = Rc::new(Connection {
            sender: RefCell::new(sender),
            running: Cell::new(0),
            last_used: Cell::new(Instant::now()),
            over: Cell::new(false),
        });
        let (ended, idle) = (connection.clone(), config.timeouts.pool_idle);
        tokio::task::spawn_local(async move {
            let mut driver = std::pin::pin!(driver);
            let mut pause = std::pin::pin!(tokio::time::sleep(idle));
            // An idle connection is closed before the backend does it at a worse moment.
            loop {
                tokio::select! {
                    _ = &mut driver => break,
                    () = &mut pause => match ended.rests_until(idle, Instant::now()) {
                        Some(until) => pause.as_mut().reset(until),
                        None => break,
                    }
                }
            }
            ended.over.set(true);
        });
        self.connections.borrow_mut().push(connection.clone());
        Ok(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_is_counted_from_the_last_use() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (io, _other) = tokio::io::duplex(64);
        let (sender, _driver) = runtime.block_on(h2::client::handshake(io)).unwrap();
        let start = Instant::now();
        let connection = Rc::new(Connection {
            sender: RefCell::new(sender),
            running: Cell::new(0),
            last_used: Cell::new(start),
            over: Cell::new(false),
        });
        let second = Duration::from_secs(1);
        let idle = 10 * second;
        assert_eq!(connection.rests_until(idle, start + 10 * second), None);
        connection.last_used.set(start + 9 * second);
        assert_eq!(connection.rests_until(idle, start + 10 * second), Some(start + 19 * second));
        let running = Running::new(&connection);
        assert_eq!(connection.rests_until(idle, start + 20 * second), Some(start + 30 * second));
        drop(running);
        assert!(connection.last_used.get() < start + 9 * second, "the end of a request is a use");
    }
}
