//! A client and a backend that speak WebSocket, and raw connections of either side.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use penstock_testkit::gateway::{TestGateway, client_tls};
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config, client_async_with_config};

/// Longer than any test takes; a test that gets here hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a test.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("the test hangs") })
}

/// Both sides take frames of any size.
fn config() -> WebSocketConfig {
    WebSocketConfig::default().max_frame_size(None).max_message_size(None)
}

/// A handshake that a backend got.
#[derive(Debug, Clone)]
pub struct Seen {
    pub target: String,
    headers: Vec<(String, String)>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }
}

/// What a backend knows.
#[derive(Default)]
struct Known {
    seen: Mutex<Vec<Seen>>,
    /// How each connection ended: the code of the frame that closed it, if there was one.
    ends: Mutex<Vec<Option<u16>>>,
    /// Bytes of messages it could send so far.
    sent: AtomicU64,
}

/// Protocols that backends choose when a client offers them.
const PROTOCOLS: [&str; 3] = ["chat", "graphql-transport-ws", "graphql-ws"];

/// Sends every message back. `close` makes it close, `flood N` makes it send N messages of 64 KiB; a query of GraphQL
/// says in its extensions what is sent after it.
pub struct EchoBackend {
    port: u16,
    known: Arc<Known>,
    pub certificate: Option<CertificateDer<'static>>,
}

impl EchoBackend {
    pub fn start() -> EchoBackend {
        EchoBackend::launch(None)
    }

    pub fn start_tls() -> EchoBackend {
        EchoBackend::launch(Some(rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap()))
    }

    fn launch(identity: Option<rcgen::CertifiedKey<rcgen::KeyPair>>) -> EchoBackend {
        let (ready, started) = mpsc::channel();
        let known = Arc::<Known>::default();
        let certificate = identity.as_ref().map(|identity| identity.cert.der().clone());
        let shared = known.clone();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                ready.send(listener.local_addr().unwrap().port()).unwrap();
                let tls = identity.map(|identity| {
                    let key = rustls::pki_types::PrivateKeyDer::try_from(identity.signing_key.serialize_der()).unwrap();
                    let provider = Arc::new(rustls::crypto::ring::default_provider());
                    let config = rustls::ServerConfig::builder_with_provider(provider)
                        .with_safe_default_protocol_versions()
                        .unwrap()
                        .with_no_client_auth()
                        .with_single_cert(vec![identity.cert.der().clone()], key);
                    tokio_rustls::TlsAcceptor::from(Arc::new(config.unwrap()))
                });
                while let Ok((socket, _)) = listener.accept().await {
                    let (known, tls) = (shared.clone(), tls.clone());
                    tokio::spawn(async move {
                        match tls {
                            None => echo(socket, &known).await,
                            Some(tls) => {
                                if let Ok(socket) = tls.accept(socket).await {
                                    echo(socket, &known).await;
                                }
                            }
                        }
                    });
                }
            });
        });
        let port = started.recv_timeout(PATIENCE).unwrap();
        EchoBackend { port, known, certificate }
    }

    /// `ws://127.0.0.1:PORT`, or with `wss` and `localhost`.
    pub fn url(&self) -> String {
        match self.certificate {
            None => format!("ws://127.0.0.1:{}", self.port),
            Some(_) => format!("wss://localhost:{}", self.port),
        }
    }

    /// The handshakes so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.known.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn last(&self) -> Seen {
        self.seen().pop().expect("the backend got a handshake")
    }

    /// Waits until so many connections have ended; their codes.
    pub async fn ends(&self, count: usize) -> Vec<Option<u16>> {
        loop {
            let ends = self.known.ends.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if ends.len() >= count {
                return ends;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub fn sent_bytes(&self) -> u64 {
        self.known.sent.load(Ordering::Relaxed)
    }
}

async fn echo(socket: impl AsyncRead + AsyncWrite + Unpin, known: &Known) {
    #[expect(clippy::result_large_err, reason = "the library's own type")]
    let note = |request: &Request, mut response: Response| {
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = request.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
        let seen = Seen { target: request.uri().to_string(), headers };
        let offered = seen.header("sec-websocket-protocol").unwrap_or_default();
        if let Some(chosen) = PROTOCOLS.iter().find(|known| offered.split(", ").any(|one| one == **known)) {
            response.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static(chosen));
        }
        known.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
        Ok(response)
    };
    let Ok(mut socket) = accept_hdr_async_with_config(socket, note, Some(config())).await else { return };
    let mut code = None;
    while let Some(Ok(message)) = socket.next().await {
        let outcome = match &message {
            Message::Text(text) if text.as_str() == "close" => socket.close(None).await,
            Message::Text(text) if text.starts_with("flood ") => {
                flood(&mut socket, text[6..].parse().unwrap(), known).await
            }
            Message::Text(text) if text.contains("\"say\"") => say(&mut socket, text).await,
            Message::Text(_) | Message::Binary(_) => socket.send(message).await,
            Message::Close(frame) => {
                code = frame.as_ref().map(|frame| frame.code.into());
                Ok(())
            }
            _ => Ok(()),
        };
        if outcome.is_err() {
            break;
        }
    }
    known.ends.lock().unwrap_or_else(PoisonError::into_inner).push(code);
}

/// Sends back what came and what its extensions say.
async fn say<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut WebSocketStream<S>, text: &str) -> Result<(), Error> {
    socket.send(Message::text(text)).await?;
    let came: serde_json::Value = serde_json::from_str(text).unwrap();
    for one in came["payload"]["extensions"]["say"].as_array().unwrap() {
        socket.send(Message::text(one.to_string())).await?;
    }
    Ok(())
}

async fn flood<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<S>,
    count: usize,
    known: &Known,
) -> Result<(), Error> {
    for _ in 0..count {
        socket.send(Message::binary(vec![7; 64 * 1024])).await?;
        known.sent.fetch_add(64 * 1024, Ordering::Relaxed);
    }
    Ok(())
}

/// The response instead of 101.
#[derive(Debug)]
pub struct Refused {
    pub status: u16,
    pub body: String,
}

pub type Plain = WebSocketStream<TcpStream>;

/// Connects; what the gateway answered with besides.
pub async fn connect_with(
    gateway: &TestGateway,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<(Plain, tokio_tungstenite::tungstenite::handshake::client::Response), Refused> {
    let socket = TcpStream::connect(("127.0.0.1", gateway.http)).await.unwrap();
    handshake(socket, "ws", path, headers).await
}

/// Connects.
pub async fn connect(gateway: &TestGateway, path: &str, headers: &[(&str, &str)]) -> Result<Plain, Refused> {
    connect_with(gateway, path, headers).await.map(|(socket, _)| socket)
}

/// Connects over TLS.
pub async fn connect_tls(gateway: &TestGateway, path: &str) -> WebSocketStream<impl AsyncRead + AsyncWrite + Unpin> {
    let mut config = client_tls(&gateway.certificate, None);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let socket = TcpStream::connect(("127.0.0.1", gateway.https)).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let socket = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, socket).await.unwrap();
    handshake(socket, "wss", path, &[]).await.unwrap().0
}

async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(
    socket: S,
    scheme: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<(WebSocketStream<S>, tokio_tungstenite::tungstenite::handshake::client::Response), Refused> {
    let mut request = format!("{scheme}://localhost{path}").into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap());
    }
    match client_async_with_config(request, socket, Some(config())).await {
        Ok(connected) => Ok(connected),
        Err(Error::Http(response)) => {
            let body = response.body().as_deref().unwrap_or_default();
            Err(Refused { status: response.status().as_u16(), body: String::from_utf8_lossy(body).into_owned() })
        }
        Err(error) => panic!("the handshake failed: {error}"),
    }
}

/// Sends a text and waits for it to come back.
pub async fn echoes<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut WebSocketStream<S>, text: &str) {
    socket.send(Message::text(text)).await.unwrap();
    assert_eq!(next_text(socket).await, text);
}

/// The next message, which must be a text.
pub async fn next_text<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut WebSocketStream<S>) -> String {
    match socket.next().await {
        Some(Ok(Message::Text(text))) => text.to_string(),
        other => panic!("no text but {other:?}"),
    }
}

/// The code of the frame that closes, which must come next.
pub async fn close_code<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut WebSocketStream<S>) -> u16 {
    match socket.next().await {
        Some(Ok(Message::Close(Some(frame)))) => frame.code.into(),
        other => panic!("not closed but {other:?}"),
    }
}

/// A connection after its handshake, as bytes.
pub async fn raw(gateway: &TestGateway, path: &str) -> TcpStream {
    let mut socket = TcpStream::connect(("127.0.0.1", gateway.http)).await.unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let head = read_head(&mut socket).await;
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
    assert!(head.contains("Upgrade: websocket\r\n") && head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
    socket
}

/// A head, and nothing behind it.
pub async fn read_head(socket: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// A frame as a client sends it, with an empty mask.
pub fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    assert!(payload.len() < 126);
    [&[first, 0x80 | payload.len() as u8, 0, 0, 0, 0], payload].concat()
}

/// Everything until the end.
pub async fn rest(socket: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = socket.read_to_end(&mut bytes).await;
    bytes
}

/// A backend that is raw bytes after its handshake: sends them, and gives back all it got until the end.
pub async fn raw_backend(after: &'static [u8]) -> (String, tokio::task::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    let got = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_head(&mut socket).await;
        let head = "HTTP/1.1 101 Whatever\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\n\
                    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
        socket.write_all(&[head.as_bytes(), after].concat()).await.unwrap();
        rest(&mut socket).await
    });
    (url, got)
}
