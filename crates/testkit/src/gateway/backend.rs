//! A server that answers as a closure says and remembers what it was sent: backends, interceptor services, issuers of
//! keys.

use std::io::{self, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::PATIENCE;
use super::client::ClientIdentity;
use super::wire::{self, Socket, read_as};

/// Where connections are refused: only root may listen on this port, and no server does.
pub const NOWHERE: &str = "http://127.0.0.1:1";

/// A request as a backend got it.
#[derive(Debug, Clone)]
pub struct Received {
    /// The method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// The header fields in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// The fields that followed it.
    pub trailers: Vec<(String, String)>,
}

read_as!(Received);

/// What a backend answers.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Header fields, framing excepted.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// The fields that follow it; with some it is sent in one chunk.
    pub trailers: Vec<(String, String)>,
    /// How long it thinks first.
    pub delay: Duration,
    /// Bytes sent in place of a reply, after which the connection is closed.
    pub instead: Option<Vec<u8>>,
}

impl Answer {
    /// A reply with a body of that type.
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Answer {
        Answer {
            status,
            headers: vec![("Content-Type".to_owned(), content_type.to_owned())],
            body: body.into(),
            trailers: Vec::new(),
            delay: Duration::ZERO,
            instead: None,
        }
    }

    /// 200 with JSON.
    pub fn json(value: &serde_json::Value) -> Answer {
        Answer::new(200, "application/json", value.to_string())
    }

    /// A status and nothing else.
    pub fn status(status: u16) -> Answer {
        Answer { headers: Vec::new(), ..Answer::new(status, "", "") }
    }

    /// Something that is no HTTP.
    pub fn garbage(bytes: impl Into<Vec<u8>>) -> Answer {
        Answer { instead: Some(bytes.into()), ..Answer::status(200) }
    }

    /// With another header field.
    pub fn with(mut self, name: &str, value: &str) -> Answer {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With another field after the body.
    pub fn ending_with(mut self, name: &str, value: &str) -> Answer {
        self.trailers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// After a while.
    pub fn after(mut self, delay: Duration) -> Answer {
        self.delay = delay;
        self
    }
}

/// Holds answers back until it is opened: what happens before is independent of them.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// Lets all answers go.
    pub fn open(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    /// Waits until it is opened.
    pub fn wait(&self) {
        let is_open = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.0.1.wait_while(is_open, |is_open| !*is_open));
    }
}

type Handler = dyn Fn(&Received) -> Answer + Send + Sync;

/// A running server. It ends when it is dropped.
pub struct Backend {
    /// Its port.
    pub port: u16,
    received: Arc<Mutex<Vec<Received>>>,
    stopped: Arc<AtomicBool>,
    certificate: Option<CertificateDer<'static>>,
}

impl Backend {
    /// Answers every request as the closure says.
    pub fn start(handler: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> Backend {
        Backend::launch(Arc::new(handler), None, None)
    }

    /// The same, with its answers held back until the gate is open.
    pub fn start_held(handler: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> (Backend, Gate) {
        let gate = Gate::default();
        let held = gate.clone();
        let backend = Backend::start(move |request| {
            held.wait();
            handler(request)
        });
        (backend, gate)
    }

    /// Answers 200 with the request's body and its content type, or 204 when there is none.
    pub fn echo() -> Backend {
        Backend::start(echo)
    }

    /// The same with TLS; with `client`, only for clients with that certificate.
    pub fn start_tls(
        handler: impl Fn(&Received) -> Answer + Send + Sync + 'static,
        client: Option<&CertificateDer<'static>>,
    ) -> Backend {
        let identity = ClientIdentity::new("localhost");
        let config = server_config(&identity.certificate, &identity.key, client);
        Backend::launch(Arc::new(handler), Some(config), Some(identity.certificate))
    }

    fn launch(
        handler: Arc<Handler>,
        tls: Option<Arc<ServerConfig>>,
        certificate: Option<CertificateDer<'static>>,
    ) -> Backend {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let received = Arc::new(Mutex::default());
        let stopped = Arc::new(AtomicBool::new(false));
        let backend = Backend { port, received, stopped, certificate };
        let (received, stopped) = (backend.received.clone(), backend.stopped.clone());
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(socket) = socket else { continue };
                let (handler, received, tls) = (handler.clone(), received.clone(), tls.clone());
                std::thread::spawn(move || serve(socket, tls, &*handler, &received));
            }
        });
        backend
    }

    /// `http://127.0.0.1:PORT`, or with `https` and `localhost`.
    pub fn url(&self) -> String {
        match self.certificate {
            None => format!("http://127.0.0.1:{}", self.port),
            Some(_) => format!("https://localhost:{}", self.port),
        }
    }

    /// The certificate to trust, when it speaks TLS.
    pub fn certificate(&self) -> Option<&CertificateDer<'static>> {
        self.certificate.as_ref()
    }

    /// Everything it got so far.
    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What it got last.
    pub fn last(&self) -> Received {
        self.received().pop().expect("the backend got a request")
    }

    /// Forgets what it got.
    pub fn forget(&self) {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Sends the body back.
pub fn echo(request: &Received) -> Answer {
    match request.body.is_empty() {
        true => Answer::status(204),
        false => Answer::new(200, request.header("content-type").unwrap_or("text/plain"), request.body.clone()),
    }
}

fn server_config(
    certificate: &CertificateDer<'static>,
    key: &PrivateKeyDer<'static>,
    client: Option<&CertificateDer<'static>>,
) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("the provider knows the versions");
    let builder = match client {
        None => builder.with_no_client_auth(),
        Some(client) => {
            let mut roots = RootCertStore::empty();
            roots.add(client.clone()).expect("a certificate can be trusted");
            let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().expect("there is one to trust"))
        }
    };
    Arc::new(builder.with_single_cert(vec![certificate.clone()], key.clone_key()).expect("key and certificate fit"))
}

fn serve(socket: TcpStream, tls: Option<Arc<ServerConfig>>, handler: &Handler, received: &Mutex<Vec<Received>>) {
    let _ = socket.set_read_timeout(Some(PATIENCE));
    let _ = socket.set_nodelay(true);
    let socket = match tls {
        None => Socket::Plain(socket),
        Some(config) => match ServerConnection::new(config) {
            Ok(connection) => Socket::Server(Box::new(StreamOwned::new(connection, socket))),
            Err(_) => return,
        },
    };
    let mut reader = BufReader::new(socket);
    // The gateway may close a connection at any time; that ends the thread and nothing else.
    while let Ok(true) = exchange(&mut reader, handler, received) {}
}

/// Answers one request; whether another may follow.
fn exchange(reader: &mut BufReader<Socket>, handler: &Handler, received: &Mutex<Vec<Received>>) -> io::Result<bool> {
    let Some(mut raw) = wire::read_head(reader)? else { return Ok(false) };
    wire::read_body(reader, &mut raw, false)?;
    let mut words = raw.first_line.split(' ').map(str::to_owned);
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    let request = Received { method, target, headers: raw.headers, body: raw.body, trailers: raw.trailers };
    received.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
    let answer = handler(&request);
    std::thread::sleep(answer.delay);
    let out = reader.get_mut();
    if let Some(bytes) = answer.instead {
        out.write_all(&bytes)?;
        out.flush()?;
        return Ok(false);
    }
    let mut head = format!("HTTP/1.1 {} Whatever\r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let chunked = !answer.trailers.is_empty();
    let length = answer.body.len();
    if chunked {
        head.push_str(&format!("Transfer-Encoding: chunked\r\n\r\n{length:x}"));
    } else if answer.status != 204 {
        head.push_str(&format!("Content-Length: {length}\r\n"));
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    if request.method != "HEAD" {
        bytes.extend_from_slice(&answer.body);
    }
    if chunked {
        let fields: String = answer.trailers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        bytes.extend_from_slice(format!("\r\n0\r\n{fields}\r\n").as_bytes());
    }
    out.write_all(&bytes)?;
    out.flush()?;
    Ok(true)
}
