//! A listener with a service that does as the path says, and raw sockets to talk to it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use penstock_engine::Fault;
use penstock_engine::ports::{HttpOptions, LocalFuture, Outbound, Outgoing, Request, SendOptions, Service};
use penstock_message::{Body, BodyError, BodyStream, Form, Headers, Message, Method, SizeHint};
use penstock_transports::http::{
    HttpListener, HttpSender, HttpTimeouts, ListenerConfig, PerCore, SenderConfig, ShutdownTrigger, shutdown,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Longer than any test takes; a test that gets here hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a test on a runtime of its own.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default()).unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("the test hangs") })
}

/// A listener that is being served.
pub struct Server {
    pub address: SocketAddr,
    pub core: Rc<PerCore>,
    pub trigger: ShutdownTrigger,
    pub ended: tokio::task::JoinHandle<std::io::Result<()>>,
}

/// Serves `service` on a free port.
pub fn serve(service: Rc<dyn Service>, config: ListenerConfig) -> Server {
    let core = PerCore::start();
    serve_on(core, service, config)
}

/// The same on a given core.
pub fn serve_on(core: Rc<PerCore>, service: Rc<dyn Service>, config: ListenerConfig) -> Server {
    let listener = HttpListener::bind("127.0.0.1:0".parse().unwrap(), config).unwrap();
    let address = listener.local_addr();
    let (trigger, word) = shutdown();
    let ended = tokio::task::spawn_local(listener.serve(core.clone(), service, None, word));
    Server { address, core, trigger, ended }
}

/// Times short enough for tests of what happens when they pass.
pub fn short_times() -> ListenerConfig {
    let short = Duration::from_millis(60);
    let timeouts = HttpTimeouts { idle: short, head: short, body: short, linger: short, ..HttpTimeouts::default() };
    ListenerConfig { timeouts, ..ListenerConfig::default() }
}

/// Sends bytes and returns everything that comes until the server closes, without `Date`.
pub async fn talk(address: SocketAddr, bytes: impl AsRef<[u8]>) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    // The server may refuse and close before everything is written.
    let _ = socket.write_all(bytes.as_ref()).await;
    read_to_end(&mut socket).await
}

/// Everything until the end or a reset, without `Date`.
pub async fn read_to_end(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = socket.read_to_end(&mut bytes).await;
    without_date(&bytes)
}

/// Reads until what came ends in `end`.
pub async fn read_until(socket: &mut TcpStream, end: &str) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end.as_bytes()) {
        let byte = socket.read_u8().await;
        match byte {
            Ok(byte) => bytes.push(byte),
            Err(_) => return format!("{} then closed", without_date(&bytes)),
        }
    }
    without_date(&bytes)
}

fn without_date(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut kept = String::new();
    for line in text.split_inclusive('\n').filter(|line| !line.starts_with("Date: ")) {
        kept.push_str(line);
    }
    kept
}

/// Does as the path says.
pub struct Obedient;

impl Service for Obedient {
    fn answer<'a>(&'a self, request: Request) -> LocalFuture<'a, Message> {
        Box::pin(async move {
            let client = request.client;
            let mut message = request.message;
            let path = client.line.path().to_owned();
            match path.as_str() {
                "/unread" => text(200, "unread"),
                "/chunks" => Message {
                    status: 200,
                    body: Body::stream(Box::new(Chunks::new(&["one", "two"], SizeHint::Unknown))),
                    ..Message::default()
                },
                "/trailers" => {
                    let mut chunks = Chunks::new(&["one"], SizeHint::Unknown);
                    let mut trailers = Headers::new();
                    trailers.set("X-Sum", "3");
                    chunks.trailers = Some(trailers);
                    Message { status: 200, body: Body::stream(Box::new(chunks)), ..Message::default() }
                }
                "/exact" => Message {
                    status: 200,
                    body: Body::stream(Box::new(Chunks::new(&["one", "two"], SizeHint::Exact(6)))),
                    ..Message::default()
                },
                "/kept" => match std::future::poll_fn(|cx| message.body.poll_pull(cx, usize::MAX, 1 << 30)).await {
                    Ok(()) => Message { status: 200, body: message.body, ..Message::default() },
                    Err(error) => refused(error),
                },
                "/back" => Message { status: 200, body: message.body, ..Message::default() },
                "/looked" => {
                    let seen = look_for_mark(&mut message.body).await;
                    let mut reply = Message { status: 200, body: message.body, ..Message::default() };
                    reply.headers.set("X-Seen", seen);
                    reply
                }
                "/evil" => {
                    let mut reply = text(200, "evil");
                    reply.headers.set("X-Split", "a\r\nX-Injected: b");
                    reply.headers.set("Bad Name", "c");
                    reply.headers.set("Content-Length", "99");
                    reply.headers.set("Transfer-Encoding", "chunked");
                    reply
                }
                "/upgrade" => {
                    let mut reply = Message { status: 426, ..Message::default() };
                    reply.headers.set("Upgrade", "websocket");
                    reply
                }
                "/cookies" => {
                    let cookies: Vec<_> = message.headers.get_all("Cookie").map(String::from_utf8_lossy).collect();
                    text(200, &cookies.join(" | "))
                }
                _ if path.starts_with("/status/") => {
                    Message { status: path[8..].parse().unwrap(), ..Message::default() }
                }
                _ => match collect(&mut message.body).await {
                    Ok(body) => {
                        let body = String::from_utf8_lossy(&body);
                        let host = message.headers.get("Host").unwrap_or("-").to_owned();
                        text(200, &format!("{} {} {host} [{body}]", client.line.method.as_str(), client.line.target()))
                    }
                    Err(error) => refused(error),
                },
            }
        })
    }
}

/// The reply to a request whose body cannot be read.
fn refused(error: BodyError) -> Message {
    let fault = Fault::from(error);
    text(fault.status.unwrap(), &fault.message)
}

/// A reply of text.
pub fn text(status: u16, text: &str) -> Message {
    Message { status, body: Body::bytes(text.to_owned()), ..Message::default() }
}

/// All of a body.
pub async fn collect(body: &mut Body) -> Result<Bytes, BodyError> {
    std::future::poll_fn(|cx| body.poll_pull(cx, usize::MAX, 1 << 30)).await?;
    Ok(match body.take() {
        Form::Bytes(bytes) => bytes,
        _ => Bytes::new(),
    })
}

/// Looks at a body until it has shown a `!`. Says whether it was found, and whether it had to be taken for that.
async fn look_for_mark(body: &mut Body) -> &'static str {
    loop {
        let found = body.available().contains(&b'!');
        let taken = !matches!(body.form(), Form::Stream { head, .. } if head.is_empty());
        match (found, taken) {
            (true, false) => return "found, untouched",
            (true, true) => return "found, taken",
            (false, _) if !body.is_stream() => return "absent",
            (false, _) => std::future::poll_fn(|cx| body.poll_more(cx, 1 << 30)).await.unwrap(),
        }
    }
}

/// A stream of given pieces.
pub struct Chunks {
    pieces: VecDeque<Bytes>,
    hint: SizeHint,
    pub trailers: Option<Headers>,
}

impl Chunks {
    pub fn new(pieces: &[&'static str], hint: SizeHint) -> Chunks {
        let pieces = pieces.iter().map(|piece| Bytes::from_static(piece.as_bytes())).collect();
        Chunks { pieces, hint, trailers: None }
    }
}

impl BodyStream for Chunks {
    fn poll_chunk(&mut self, _cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        Poll::Ready(self.pieces.pop_front().map(Ok))
    }

    fn size_hint(&self) -> SizeHint {
        self.hint
    }

    fn trailers(&mut self) -> Option<Headers> {
        self.trailers.take()
    }

    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }
}

/// Forwards everything to one backend, as a pass-through proxy does.
pub struct Forward {
    pub backend: String,
    pub sender: HttpSender,
    pub http2: bool,
}

impl Service for Forward {
    fn answer<'a>(&'a self, request: Request) -> LocalFuture<'a, Message> {
        Box::pin(async move {
            let mut message = request.message;
            message.headers.remove("Host");
            let url = format!("{}{}", self.backend, request.client.line.target()).into();
            let method = request.client.line.method.clone();
            let options =
                SendOptions { http: HttpOptions { http2: self.http2, ..HttpOptions::default() }, ..options() };
            match self.sender.send(Outgoing { url, method, message, options }).await {
                Ok(reply) => reply,
                Err(fault) => text(502, &format!("{:?} {fault}", fault.number())),
            }
        })
    }
}

pub fn options() -> SendOptions {
    SendOptions::within(Duration::from_secs(5))
}

/// A request without body.
pub fn get(address: SocketAddr, target: &str) -> Outgoing {
    Outgoing {
        url: format!("http://{address}{target}").into(),
        method: Method::Get,
        message: Message::default(),
        options: options(),
    }
}

/// A sender on a core of its own.
pub fn sender() -> (Rc<PerCore>, HttpSender) {
    let core = PerCore::start();
    let sender = HttpSender::new(&core, SenderConfig::default());
    (core, sender)
}

/// What a scripted backend does with one connection, in order.
#[derive(Clone)]
pub enum Act {
    /// Reads until the bytes that came since the last act end so.
    Until(&'static str),
    /// Writes.
    Say(&'static str),
    /// Closes with a reset.
    Reset,
    /// Keeps the connection open and does nothing.
    Hold,
}

/// What a scripted backend heard, connection by connection.
pub type Heard = Rc<RefCell<Vec<String>>>;

/// A backend that plays one script per connection, then closes it; after the last script it accepts no more.
pub async fn backend(scripts: Vec<Vec<Act>>) -> (SocketAddr, Heard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let heard = Heard::default();
    let log = heard.clone();
    tokio::task::spawn_local(async move {
        for script in scripts {
            let (socket, _) = listener.accept().await.unwrap();
            log.borrow_mut().push(String::new());
            let index = log.borrow().len() - 1;
            tokio::task::spawn_local(play(socket, script, log.clone(), index));
        }
    });
    (address, heard)
}

async fn play(mut socket: TcpStream, script: Vec<Act>, log: Heard, index: usize) {
    for act in script {
        match act {
            Act::Until(end) => {
                let mut bytes = Vec::new();
                while !bytes.ends_with(end.as_bytes()) {
                    match socket.read_u8().await {
                        Ok(byte) => {
                            bytes.push(byte);
                            log.borrow_mut()[index].push(byte as char);
                        }
                        Err(_) => return,
                    }
                }
            }
            Act::Say(text) => {
                if socket.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
            }
            Act::Reset => {
                socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
                return;
            }
            Act::Hold => {
                let _ = socket.read_u8().await;
                std::future::pending::<()>().await;
            }
        }
    }
}
