//! A connection to a mailbox server, with or without TLS, that limits how much the server may send.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::account::Account;
use crate::http::tls::{ClientTrust, TlsClient};

/// The largest mail, in bytes; bodies of other brokers have the same limit.
pub(super) const MAIL_BYTES_MAX: usize = 128 << 20;

/// What a server may send for one command beside a mail.
const ANSWER_BYTES_MAX: usize = 16 << 20;

enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection.
pub(super) struct Connection {
    socket: Socket,
    /// Bytes that the server may still send.
    bytes_left: usize,
}

/// The libraries above want to print it.
impl fmt::Debug for Connection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Connection")
    }
}

impl Connection {
    /// Connects, without TLS.
    pub(super) async fn open(account: &Account) -> io::Result<Connection> {
        let connected = timeout(account.timeout, TcpStream::connect((account.host.as_str(), account.port))).await;
        let socket = connected.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "connecting took too long"))??;
        socket.set_nodelay(true)?;
        Ok(Connection { socket: Socket::Plain(socket), bytes_left: ANSWER_BYTES_MAX })
    }

    /// Starts TLS. The server's certificate must have the name of the host.
    pub(super) async fn with_tls(self, account: &Account) -> io::Result<Connection> {
        let Socket::Plain(socket) = self.socket else { return Ok(self) };
        let trust = ClientTrust { trust_everything: account.trusts_any, ..ClientTrust::default() };
        // Reads the authorities of the machine from files.
        let config = tokio::task::spawn_blocking(move || TlsClient::new(trust).config()).await;
        let config = config.map_err(io::Error::other)?.map_err(|error| io::Error::other(error.to_string()))?;
        let mut config = rustls::ClientConfig::clone(&config);
        // The protocols of HTTP.
        config.alpn_protocols.clear();
        let name = ServerName::try_from(account.host.clone()).map_err(io::Error::other)?;
        let started = timeout(account.timeout, TlsConnector::from(Arc::new(config)).connect(name, socket)).await;
        let socket = started.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "TLS took too long"))??;
        Ok(Connection { socket: Socket::Tls(Box::new(socket)), ..self })
    }

    /// Lets the server send the answer to a command, and a mail of that size.
    pub(super) fn allow(&mut self, mail_bytes: usize) {
        // IMAP writes a mail as it is, POP3 doubles dots.
        self.bytes_left = ANSWER_BYTES_MAX + mail_bytes.min(MAIL_BYTES_MAX) * 2;
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(match &mut self.socket {
            Socket::Plain(socket) => Pin::new(socket).poll_read(cx, buffer),
            Socket::Tls(socket) => Pin::new(socket).poll_read(cx, buffer),
        })?;
        let read = buffer.filled().len() - before;
        match self.bytes_left.checked_sub(read) {
            Some(left) => self.bytes_left = left,
            None => return Poll::Ready(Err(io::Error::other("the server sent more than was asked for"))),
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.socket {
            Socket::Plain(socket) => Pin::new(socket).poll_write(cx, bytes),
            Socket::Tls(socket) => Pin::new(socket).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.socket {
            Socket::Plain(socket) => Pin::new(socket).poll_flush(cx),
            Socket::Tls(socket) => Pin::new(socket).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.socket {
            Socket::Plain(socket) => Pin::new(socket).poll_shutdown(cx),
            Socket::Tls(socket) => Pin::new(socket).poll_shutdown(cx),
        }
    }
}
