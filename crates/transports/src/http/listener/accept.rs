//! Taking connections from the kernel: when file descriptors run out, and when the listener ends.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use socket2::{SockFilter, SockRef};
use tokio::net::{TcpListener, TcpStream};

use crate::http::Counters;

/// How long a listener waits when the system has no descriptors.
const WITHOUT_DESCRIPTORS: Duration = Duration::from_millis(100);

/// `EMFILE` of Linux: the process has no descriptors left.
const TOO_MANY_OPEN_FILES: u64 = 24;

/// A listening socket.
pub(super) struct Acceptor {
    listener: TcpListener,
    /// A connection whose descriptor belongs to the reserve; it waits until another is free.
    parked: Option<(TcpStream, SocketAddr)>,
}

impl Acceptor {
    pub(super) fn new(listener: TcpListener) -> Acceptor {
        Acceptor { listener, parked: None }
    }

    /// The next connection. Its descriptor is below `descriptors_max`: the kernel always gives the lowest free one, so
    /// those above stay for probes and logs. Nothing is lost when the future is dropped.
    pub(super) async fn accept(
        &mut self,
        descriptors_max: Option<RawFd>,
        counters: &Counters,
    ) -> Option<(TcpStream, SocketAddr)> {
        if let Some((tcp, peer)) = &self.parked {
            let Some(lower) = with_lower_descriptor(tcp, descriptors_max) else {
                tokio::time::sleep(WITHOUT_DESCRIPTORS).await;
                return None;
            };
            let peer = *peer;
            self.parked = None;
            return Some((lower, peer));
        }
        match self.listener.accept().await {
            Ok((tcp, peer)) if descriptors_max.is_some_and(|max| tcp.as_raw_fd() >= max) => {
                counters.accept_failed(TOO_MANY_OPEN_FILES);
                self.parked = Some((tcp, peer));
                None
            }
            Ok(accepted) => Some(accepted),
            Err(error) => {
                // A client that gave up is no failure of ours.
                if !matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) {
                    counters.accept_failed(error.raw_os_error().unwrap_or_default() as u64);
                    tokio::time::sleep(WITHOUT_DESCRIPTORS).await;
                }
                None
            }
        }
    }

    /// Refuses connections that are not yet begun: the kernel drops their first packet, so that those in the queue of the
    /// socket can be taken without others joining them. Closing the socket would reset those in the queue.
    pub(super) fn refuse_new(&self) {
        /// `tcp[13] & (SYN | ACK) == SYN`, as instructions of the classic packet filter: a filter of a TCP socket sees
        /// the segment from its header on.
        const DROP_SYN: [(u16, u8, u8, u32); 5] =
            [(0x30, 0, 0, 13), (0x54, 0, 0, 0x12), (0x15, 0, 1, 0x02), (0x06, 0, 0, 0), (0x06, 0, 0, u32::MAX)];
        let filter = DROP_SYN.map(|(code, if_true, if_false, value)| SockFilter::new(code, if_true, if_false, value));
        // Where the kernel has no filters, the queue is emptied as well as it can be.
        let _ = SockRef::from(&self.listener).attach_filter(&filter);
    }

    /// A connection that waits in the queue of the socket, without waiting for one.
    pub(super) fn take_queued(&mut self) -> Option<(TcpStream, SocketAddr)> {
        use futures_util::FutureExt;
        self.parked.take().or_else(|| self.listener.accept().now_or_never()?.ok())
    }
}

/// The same connection under a descriptor below the reserve, if one is free.
fn with_lower_descriptor(tcp: &TcpStream, descriptors_max: Option<RawFd>) -> Option<TcpStream> {
    let lower = tcp.as_fd().try_clone_to_owned().ok()?;
    if descriptors_max.is_some_and(|max| lower.as_raw_fd() >= max) {
        return None;
    }
    TcpStream::from_std(lower.into()).ok()
}
