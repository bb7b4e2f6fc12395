//! One connection and one exchange on it: write the request, read the response, nothing else.
use crate::http::response::{Malformed, ResponseReader, SAMPLE_BYTES};
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Size of the read buffer: a 100 KB response takes a few reads, a small one a single read.
pub const READ_BYTES: usize = 64 * 1024;

/// A socket with or without TLS.
pub enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Why an exchange gave no complete response.
#[derive(Debug)]
pub enum Broken {
    Connect(io::Error),
    ConnectTimeout,
    Tls(io::Error),
    /// The server closed the connection before the first byte of the response.
    Closed,
    Io(io::Error),
    Timeout,
    Malformed(Malformed),
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Broken::Connect(error) => write!(f, "cannot connect: {error}"),
            Broken::ConnectTimeout => f.write_str("connecting took too long"),
            Broken::Tls(error) => write!(f, "the TLS handshake failed: {error}"),
            Broken::Closed => f.write_str("the server closed the connection without a response"),
            Broken::Io(error) => write!(f, "the connection failed: {error}"),
            Broken::Timeout => f.write_str("no complete response within the time limit"),
            Broken::Malformed(malformed) => malformed.fmt(f),
        }
    }
}

/// An open connection of one user.
pub struct Connection {
    stream: Stream,
    /// The response being read; after an exchange, the last one.
    pub reader: ResponseReader,
    /// Exchanges completed on it.
    pub exchanges: u64,
}

/// Opens a socket to an address, with the TLS handshake for this host if there is a connector.
pub async fn open(
    address: impl tokio::net::ToSocketAddrs,
    host: &str,
    tls: Option<&TlsConnector>,
    timeout: Duration,
) -> Result<Stream, Broken> {
    let opening = async {
        let socket = TcpStream::connect(address).await.map_err(Broken::Connect)?;
        let _ = socket.set_nodelay(true);
        let Some(connector) = tls else { return Ok(Stream::Plain(socket)) };
        let name = rustls::pki_types::ServerName::try_from(host.to_owned())
            .map_err(|error| Broken::Tls(io::Error::other(error)))?;
        let stream = connector.connect(name, socket).await.map_err(Broken::Tls)?;
        Ok(Stream::Tls(Box::new(stream)))
    };
    tokio::time::timeout(timeout, opening).await.unwrap_or(Err(Broken::ConnectTimeout))
}

/// Room for reading that connections of one thread share: it is only filled and emptied within a single poll.
pub type ReadBuffer = RefCell<Vec<u8>>;

impl Connection {
    /// Wraps an open socket. `sample_bytes` of each body are kept.
    pub fn new(stream: Stream, sample_bytes: usize) -> Self {
        Connection { stream, reader: ResponseReader::new(sample_bytes.max(SAMPLE_BYTES), false), exchanges: 0 }
    }

    /// Whether the server has closed this idle connection. Unsolicited bytes are an error.
    pub async fn closed_while_idle(&mut self, read_buffer: &ReadBuffer) -> Result<bool, Broken> {
        self.reader.reset();
        std::future::poll_fn(|cx| {
            let mut scratch = read_buffer.borrow_mut();
            let mut buffer = ReadBuf::new(&mut scratch);
            Poll::Ready(match self.stream.poll_read(cx, &mut buffer) {
                Poll::Pending => Ok(false),
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => Err(Broken::Malformed(Malformed::ExtraBytes)),
                Poll::Ready(_) => Ok(true),
            })
        })
        .await
    }

    /// Sends the request and reads the whole response into [`Connection::reader`].
    /// `first_byte` is set to the moment the response begins, if the caller wants to know.
    pub async fn exchange(
        &mut self,
        request: &[u8],
        read_buffer: &ReadBuffer,
        patience: &mut Patience,
        mut first_byte: Option<&mut Option<Instant>>,
    ) -> Result<(), Broken> {
        self.reader.reset();
        let mut written = 0;
        let outcome = std::future::poll_fn(|cx| {
            if written < request.len() {
                match self.stream.poll_write_all(cx, request, &mut written) {
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(broken(error))),
                    Poll::Ready(Ok(())) | Poll::Pending => {}
                }
            }
            // A server may answer while the request is still being written, so reading never waits for writing.
            match self.poll_response(cx, read_buffer, &mut first_byte) {
                Poll::Pending => patience.poll(cx).map(|()| Err(Broken::Timeout)),
                ready => ready,
            }
        })
        .await;
        self.exchanges += 1;
        if written < request.len() {
            // The rest of the request would be taken for the next one.
            self.reader.keep_alive = false;
        }
        outcome
    }

    fn poll_response(
        &mut self,
        cx: &mut Context<'_>,
        read_buffer: &ReadBuffer,
        first_byte: &mut Option<&mut Option<Instant>>,
    ) -> Poll<Result<(), Broken>> {
        let mut scratch = read_buffer.borrow_mut();
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            match self.stream.poll_read(cx, &mut buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(broken(error))),
                Poll::Ready(Ok(())) => {}
            }
            let bytes = buffer.filled();
            if bytes.is_empty() {
                let nothing_came = self.reader.received_bytes == 0;
                return Poll::Ready(match self.reader.close() {
                    Ok(()) => Ok(()),
                    Err(_) if nothing_came => Err(Broken::Closed),
                    Err(malformed) => Err(Broken::Malformed(malformed)),
                });
            }
            if let Some(slot) = first_byte
                && slot.is_none()
            {
                **slot = Some(Instant::now());
            }
            match self.reader.feed(bytes) {
                Ok(true) => return Poll::Ready(Ok(())),
                Ok(false) => {}
                Err(malformed) => return Poll::Ready(Err(Broken::Malformed(malformed))),
            }
        }
    }
}

fn broken(error: io::Error) -> Broken {
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => Broken::Closed,
        _ => Broken::Io(error),
    }
}

impl Stream {
    fn poll_write_all(&mut self, cx: &mut Context<'_>, bytes: &[u8], written: &mut usize) -> Poll<io::Result<()>> {
        while *written < bytes.len() {
            let rest = &bytes[*written..];
            let count = match self {
                Stream::Plain(stream) => std::task::ready!(Pin::new(stream).poll_write(cx, rest))?,
                Stream::Tls(stream) => std::task::ready!(Pin::new(stream.as_mut()).poll_write(cx, rest))?,
            };
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *written += count;
        }
        match self {
            Stream::Plain(_) => Poll::Ready(Ok(())),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, buffer),
        }
    }
}

/// The time limit of a user's exchanges. The timer is set once and looked at when it fires: moving it for every
/// request would cost more than the request.
pub struct Patience {
    limit: Duration,
    deadline: Instant,
    sleep: Pin<Box<Sleep>>,
}

impl Patience {
    pub fn new(limit: Duration) -> Self {
        Patience { limit, deadline: Instant::now() + limit, sleep: Box::pin(tokio::time::sleep(limit)) }
    }

    /// Starts anew for an exchange that begins now.
    pub fn begin(&mut self, now: Instant) {
        self.deadline = now + self.limit;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.sleep.as_mut().poll(cx).is_ready() {
            if Instant::now() >= self.deadline {
                return Poll::Ready(());
            }
            self.sleep.as_mut().reset(self.deadline.into());
        }
        Poll::Pending
    }
}
