//! A listener and a sender joined by a service that requests WebSocket: what the gateway's own tests cannot set.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use penstock_engine::ports::{HttpOptions, LocalFuture, Outbound, Outgoing, Request, SendOptions, Service};
use penstock_message::{Message, Method};
use penstock_transports::http::{
    AccessEntry, AccessLog, HttpLimits, HttpListener, HttpSender, HttpTimeouts, ListenerConfig, PerCore, SenderConfig,
    ShutdownTrigger, shutdown,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::{options, run};

/// Forwards every request, as a WebSocket handshake if set.
struct Proxy {
    sender: HttpSender,
    url: String,
    websocket: bool,
}

impl Service for Proxy {
    fn answer<'a>(&'a self, request: Request) -> LocalFuture<'a, Message> {
        Box::pin(async move {
            let outgoing = Outgoing {
                url: self.url.as_str().into(),
                method: Method::Get,
                message: Message { headers: request.message.headers, ..Message::default() },
                options: SendOptions {
                    http: HttpOptions { websocket: self.websocket, ..HttpOptions::default() },
                    ..options()
                },
            };
            self.sender.send(outgoing).await.unwrap_or_else(|_| Message { status: 502, ..Message::default() })
        })
    }
}

/// Keeps status, bytes and whether it is complete.
#[derive(Default)]
struct Entries(RefCell<Vec<(u16, Option<u64>, bool)>>);

impl AccessLog for Entries {
    fn record(&self, entry: &AccessEntry<'_>) {
        self.0.borrow_mut().push((entry.status, entry.body_bytes, entry.complete));
    }
}

/// What there is besides the two sockets.
struct Served {
    core: Rc<PerCore>,
    entries: Rc<Entries>,
    _trigger: ShutdownTrigger,
}

const HANDSHAKE: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const AGREED: &[u8] = b"HTTP/1.1 101 Ok\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nDate: then\r\n\r\n";

/// A proxy before a backend that is the other end of the socket.
async fn joined(websocket: bool) -> (Served, TcpStream, TcpListener) {
    let backend = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let core = PerCore::start();
    let sender = HttpSender::new(&core, SenderConfig::default());
    let url = format!("http://{}/", backend.local_addr().unwrap());
    let short = Duration::from_millis(100);
    let timeouts = HttpTimeouts { websocket_idle: short, linger: short, ..HttpTimeouts::default() };
    let limits = HttpLimits { body_bytes_max: 1000, ..HttpLimits::default() };
    let config = ListenerConfig { timeouts, limits, ..ListenerConfig::default() };
    let listener = HttpListener::bind("127.0.0.1:0".parse().unwrap(), config).unwrap();
    let mut client = TcpStream::connect(listener.local_addr()).await.unwrap();
    let entries = Rc::<Entries>::default();
    let (trigger, word) = shutdown();
    let service = Rc::new(Proxy { sender, url, websocket });
    tokio::task::spawn_local(listener.serve(core.clone(), service, Some(entries.clone()), word));
    client.write_all(HANDSHAKE).await.unwrap();
    (Served { core, entries, _trigger: trigger }, client, backend)
}

async fn head(socket: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

#[test]
fn a_connection_on_which_nothing_arrives_is_closed_on_both_sides() {
    run(async {
        let (server, mut client, backend) = joined(true).await;
        let (mut backend, _) = backend.accept().await.unwrap();
        let asked = head(&mut backend).await;
        assert!(asked.ends_with("\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"), "{asked}");
        backend.write_all(&[AGREED, b"\x81\x02hi"].concat()).await.unwrap();
        let answer = head(&mut client).await;
        let expected =
            "HTTP/1.1 101 Switching Protocols\r\nDate: then\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        assert_eq!(answer, expected);
        assert_eq!(server.core.counters.websockets.get(), 1);
        let mut got = Vec::new();
        client.read_to_end(&mut got).await.unwrap();
        assert_eq!(got, b"\x81\x02hi\x88\x02\x03\xe9");
        got.clear();
        backend.read_to_end(&mut got).await.unwrap();
        assert_eq!((&got[..2], got.len()), (&b"\x88\x82"[..], 8));
        assert_eq!(server.core.counters.frames.get(), 1);
        while server.core.counters.connections.get() > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert_eq!(server.core.counters.websockets.get(), 0);
        // One line when it is over, with what went to the client.
        assert_eq!(*server.entries.0.borrow(), [(101, Some(4), false)]);
    });
}

#[test]
fn a_backend_may_not_switch_protocols_without_a_request() {
    run(async {
        let (_server, mut client, backend) = joined(false).await;
        let (mut backend, _) = backend.accept().await.unwrap();
        let asked = head(&mut backend).await;
        assert!(!asked.contains("pgrade"), "{asked}");
        backend.write_all(AGREED).await.unwrap();
        assert!(head(&mut client).await.starts_with("HTTP/1.1 502 "));
    });
}

#[test]
fn a_frame_that_is_too_large_is_refused_by_its_header() {
    run(async {
        let (_server, mut client, backend) = joined(true).await;
        let (mut backend, _) = backend.accept().await.unwrap();
        head(&mut backend).await;
        backend.write_all(&[AGREED, b"\x82\x7e\x03\xe9"].concat()).await.unwrap();
        head(&mut client).await;
        let (mut to_client, mut to_backend) = (Vec::new(), Vec::new());
        client.read_to_end(&mut to_client).await.unwrap();
        backend.read_to_end(&mut to_backend).await.unwrap();
        assert_eq!(to_client, b"\x88\x02\x03\xe9");
        let code: Vec<u8> = to_backend[6..].iter().zip(&to_backend[2..4]).map(|(byte, mask)| byte ^ mask).collect();
        assert_eq!(code, 1009_u16.to_be_bytes());
    });
}
