//! The socket under HTTP/2: what was read before the protocol was known comes first, frames are watched as they pass, and
//! closing leaves the client time to read the last frames.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::frames::FrameScanner;
use super::watch::FrameWatch;
use crate::http::http1::Socket;

/// How long and how much the close of a connection still reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct LingerLimits {
    pub(super) time: Duration,
    pub(super) bytes: u64,
}

/// A client's socket, with frames watched.
pub(super) struct WatchedSocket {
    read: BytesMut,
    socket: Socket,
    frames: FrameScanner,
    watch: Rc<FrameWatch>,
    linger: LingerLimits,
    closing: Option<Closing>,
}

/// Our side is closed; what still arrives is thrown away.
struct Closing {
    until: Pin<Box<Sleep>>,
    read: u64,
}

impl WatchedSocket {
    /// `read` is what was read of it already.
    pub(super) fn new(read: BytesMut, socket: Socket, watch: &Rc<FrameWatch>, linger: LingerLimits) -> WatchedSocket {
        let frames = FrameScanner::new(watch.clone());
        WatchedSocket { read, socket, frames, watch: watch.clone(), linger, closing: None }
    }

    /// Closing a socket with unread bytes resets the connection, and the client may never see the GOAWAY.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(closing) = &mut self.closing else { return Poll::Ready(()) };
        let mut waste = [0; 4096];
        while closing.read < self.linger.bytes && closing.until.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut waste);
            match ready!(Pin::new(&mut self.socket).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => closing.read += buffer.filled().len() as u64,
                _ => break,
            }
        }
        Poll::Ready(())
    }
}

impl AsyncRead for WatchedSocket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.watch.is_exceeded() {
            // The task that polls looks at the watch next and ends the connection.
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        if self.read.is_empty() {
            ready!(Pin::new(&mut self.socket).poll_read(cx, buffer))?;
        } else {
            let count = self.read.len().min(buffer.remaining());
            buffer.put_slice(&self.read[..count]);
            self.read.advance(count);
        }
        let new = buffer.filled().get(before..).unwrap_or_default();
        self.frames.scan(new);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for WatchedSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closing.is_none() {
            ready!(Pin::new(&mut self.socket).poll_shutdown(cx))?;
            let until = Box::pin(tokio::time::sleep(self.linger.time));
            self.closing = Some(Closing { until, read: 0 });
        }
        self.poll_linger(cx).map(Ok)
    }
}
