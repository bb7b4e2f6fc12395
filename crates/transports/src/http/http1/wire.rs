//! A socket with the bytes that were read and not used, and those that were written and not sent.

use std::cell::RefCell;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use penstock_message::{BodyError, Headers};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::incoming::Decoder;
use crate::http::HttpLimits;
use crate::http::per_core::{PerCore, READ_BUFFER_BYTES, Timer};

/// Room below which a read would bring too little.
const READ_ROOM_MIN: usize = 4 * 1024;

/// Bytes of an incomplete head or chunk that are moved out of a read buffer while their connection waits.
const PARKED_BYTES_MAX: usize = 16 * 1024;

/// A TCP connection, with or without TLS.
pub(crate) enum Socket {
    Plain(TcpStream),
    Tls(Box<tokio_rustls::TlsStream<TcpStream>>),
}

impl Socket {
    pub(crate) fn tcp(&self) -> &TcpStream {
        match self {
            Socket::Plain(tcp) => tcp,
            Socket::Tls(tls) => tls.get_ref().0,
        }
    }
}

impl Socket {
    /// The protocol that TLS agreed on.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        match self {
            Socket::Plain(_) => None,
            Socket::Tls(tls) => tls.get_ref().1.alpn_protocol(),
        }
    }

    /// The verified certificate of the peer, in DER.
    pub(crate) fn peer_certificate(&self) -> Option<Arc<[u8]>> {
        match self {
            Socket::Plain(_) => None,
            Socket::Tls(tls) => tls.get_ref().1.peer_certificates()?.first().map(|own| own.as_ref().into()),
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(tcp) => Pin::new(tcp).poll_read(cx, buffer),
            Socket::Tls(tls) => Pin::new(tls).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Plain(tcp) => Pin::new(tcp).poll_write(cx, bytes),
            Socket::Tls(tls) => Pin::new(tls).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Plain(tcp) => Pin::new(tcp).poll_write_vectored(cx, slices),
            Socket::Tls(tls) => Pin::new(tls).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(_) => Poll::Ready(Ok(())),
            Socket::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Socket::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}

/// A wire is shared by the connection it belongs to and the body streams that read from it.
pub(crate) type SharedWire = Rc<RefCell<Wire>>;

/// One connection and the state of the message that arrives on it.
pub(crate) struct Wire {
    socket: Socket,
    pub(crate) core: Rc<PerCore>,
    pub(crate) limits: Rc<HttpLimits>,
    /// Read and not used. Without memory of its own while empty.
    pub(crate) buffer: BytesMut,
    /// Accepted by [`Wire::send`] and not written, because the socket was full.
    unsent: BytesMut,
    /// Where the body of the current incoming message stands.
    pub(crate) decoder: Decoder,
    /// The trailers it ended with.
    pub(crate) trailers: Option<Headers>,
    /// Counts incoming messages, so that a body stream of an earlier one reads nothing.
    pub(crate) message: u32,
    /// Whether `100 Continue` must be sent before the body is read.
    pub(crate) continue_due: bool,
    /// Why the body of the current incoming message could not be read.
    pub(crate) body_error: Option<BodyError>,
    /// Bytes of it that were discarded.
    pub(crate) drained_bytes: u64,
    /// Body bytes of the current incoming message so far, and how many there may be.
    pub(crate) body_bytes: u64,
    pub(crate) body_bytes_max: u64,
    pub(crate) read_timer: Rc<Timer>,
    /// Whether the read timer runs for a piece of a body.
    pub(crate) read_waits: bool,
    pub(crate) read_timeout: Duration,
    /// The same for a body of events, which may be quiet for long.
    pub(crate) quiet_timeout: Duration,
    /// Whether the current incoming message has such a body.
    pub(crate) may_be_quiet: bool,
    write_timer: Rc<Timer>,
    write_waits: bool,
    pub(crate) write_timeout: Duration,
}

impl Wire {
    /// A wire over a fresh connection. `read_timeout` and `write_timeout` are times without progress.
    pub(crate) fn new(
        socket: Socket,
        core: &Rc<PerCore>,
        limits: &Rc<HttpLimits>,
        read_timeout: Duration,
        write_timeout: Duration,
    ) -> Wire {
        Wire {
            socket,
            core: core.clone(),
            limits: limits.clone(),
            buffer: BytesMut::new(),
            unsent: BytesMut::new(),
            decoder: Decoder::Done,
            trailers: None,
            message: 0,
            continue_due: false,
            body_error: None,
            drained_bytes: 0,
            body_bytes: 0,
            body_bytes_max: u64::MAX,
            read_timer: core.timer(),
            read_waits: false,
            read_timeout,
            quiet_timeout: read_timeout,
            may_be_quiet: false,
            write_timer: core.timer(),
            write_waits: false,
            write_timeout,
        }
    }

    /// The connection itself.
    pub(crate) fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }

    /// Takes the connection and what was read from it, for another protocol.
    pub(crate) fn into_parts(mut self) -> (Socket, BytesMut) {
        let buffer = std::mem::take(&mut self.buffer);
        (self.socket, buffer)
    }

    /// Reads once; 0 at the end.
    pub(crate) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.buffer.capacity() - self.buffer.len() < READ_ROOM_MIN {
            if self.buffer.is_empty() {
                self.buffer = self.core.take_buffer();
            } else {
                self.buffer.reserve(READ_BUFFER_BYTES);
            }
        }
        let outcome = pin!(self.socket.read_buf(&mut self.buffer)).poll(cx);
        match &outcome {
            Poll::Ready(Ok(count)) => self.core.counters.read_bytes.add(*count as u64),
            _ => self.park(),
        }
        outcome
    }

    /// Removes bytes from the read buffer and lets go of its memory when it is empty.
    pub(crate) fn consume(&mut self, count: usize) {
        self.buffer.advance(count);
        if self.buffer.is_empty() {
            self.core.give_buffer(std::mem::take(&mut self.buffer));
        }
    }

    /// Gives the read buffer back while the connection waits, keeping a small copy of what is in it.
    fn park(&mut self) {
        if self.buffer.is_empty() {
            self.core.give_buffer(std::mem::take(&mut self.buffer));
        } else if self.buffer.len() <= PARKED_BYTES_MAX && self.buffer.capacity() > 2 * PARKED_BYTES_MAX {
            let parked = BytesMut::from(&self.buffer[..]);
            self.core.give_buffer(std::mem::replace(&mut self.buffer, parked));
        }
    }

    /// Writes the slices, keeping what the socket does not take. Call [`Wire::poll_flush`] before the next.
    pub(crate) fn send(&mut self, cx: &mut Context<'_>, slices: &[&[u8]]) -> io::Result<()> {
        let mut sent = 0;
        if self.unsent.is_empty() {
            let socket = Pin::new(&mut self.socket);
            let outcome = match slices {
                [one] => socket.poll_write(cx, one),
                [one, two] => socket.poll_write_vectored(cx, &[IoSlice::new(one), IoSlice::new(two)]),
                more => {
                    let vectors: Vec<_> = more.iter().map(|slice| IoSlice::new(slice)).collect();
                    socket.poll_write_vectored(cx, &vectors)
                }
            };
            if let Poll::Ready(result) = outcome {
                sent = result?;
                self.core.counters.written_bytes.add(sent as u64);
            }
        }
        for slice in slices {
            match slice.get(sent..) {
                Some(rest) => {
                    self.unsent.extend_from_slice(rest);
                    sent = 0;
                }
                None => sent -= slice.len(),
            }
        }
        Ok(())
    }

    /// Whether everything that was sent is on its way, without asking TLS.
    pub(crate) fn is_flushed(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Waits until everything that was sent is on its way.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            match Pin::new(&mut self.socket).poll_write(cx, &self.unsent) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => {
                    self.core.counters.written_bytes.add(count as u64);
                    self.unsent.advance(count);
                    self.write_waits = false;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return self.poll_write_timeout(cx),
            }
        }
        if self.unsent.capacity() > 0 {
            self.unsent = BytesMut::new();
        }
        match &mut self.socket {
            Socket::Plain(_) => {}
            Socket::Tls(tls) => match Pin::new(tls).poll_flush(cx) {
                Poll::Ready(result) => result?,
                Poll::Pending => return self.poll_write_timeout(cx),
            },
        }
        if std::mem::take(&mut self.write_waits) {
            self.write_timer.disarm();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write_timeout(&mut self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        if !self.write_waits {
            self.write_waits = true;
            self.write_timer.arm(&self.core, self.write_timeout);
        }
        if self.write_timer.poll_fired(cx) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}
