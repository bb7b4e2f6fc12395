//! Times, and who is to blame when one passes: the client that sends its body, or the backend that gets it.

use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use penstock_engine::ports::{LocalFuture, Outbound, Outgoing, Request, Service};
use penstock_engine::{Fault, Side};
use penstock_message::{Body, BodyError, BodyStream, Message, Method, SizeHint};
use penstock_transports::http::{HttpTimeouts, ListenerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::common::{Act, Obedient, backend, collect, get, run, sender, serve};

/// A body whose pieces the test sends; it ends with them.
struct Fed(UnboundedReceiver<Result<Bytes, BodyError>>);

impl BodyStream for Fed {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        self.0.poll_recv(cx)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::Unknown
    }

    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }
}

type Feed = UnboundedSender<Result<Bytes, BodyError>>;

fn fed() -> (Feed, Body) {
    let (feed, pieces) = unbounded_channel();
    (feed, Body::stream(Box::new(Fed(pieces))))
}

const PIECE: Bytes = Bytes::from_static(b"piece");

/// A request whose endpoint has 100 ms.
fn upload(address: std::net::SocketAddr, body: Body, http2: bool, deadline: Duration) -> Outgoing {
    let mut outgoing = get(address, "/back");
    outgoing.method = Method::Post;
    outgoing.message.body = body;
    outgoing.options.http.http2 = http2;
    outgoing.options.response_timeout = Duration::from_millis(100);
    outgoing.options.time_left = deadline;
    outgoing
}

const LONG: Duration = Duration::from_secs(15);

/// What happens when `act` feeds the body of a request to a backend that waits for all of it.
fn outcome(http2: bool, deadline: Duration, act: impl AsyncFnOnce(Feed)) -> Result<String, Fault> {
    run(async {
        let server = serve(Rc::new(Obedient), ListenerConfig::default());
        let (_core, sender) = sender();
        let (feed, body) = fed();
        let mut outgoing = upload(server.address, body, http2, deadline);
        outgoing.url = format!("http://{}/kept", server.address).into();
        let (reply, ()) = tokio::join!(sender.send(outgoing), act(feed));
        let mut reply = reply?;
        Ok(String::from_utf8(collect(&mut reply.body).await.unwrap().to_vec()).unwrap())
    })
}

#[test]
fn a_slow_body_does_not_use_up_the_time_of_the_backend() {
    for http2 in [false, true] {
        let sent = outcome(http2, LONG, async |feed| {
            feed.send(Ok(PIECE)).unwrap();
            tokio::time::sleep(Duration::from_millis(500)).await;
            feed.send(Ok(PIECE)).unwrap();
        });
        assert_eq!(sent.unwrap(), "piecepiece", "HTTP/2: {http2}");
    }
}

#[test]
fn a_body_that_breaks_off_is_the_clients() {
    for http2 in [false, true] {
        for (error, status) in [
            (BodyError::Timeout, 408),
            (BodyError::Incomplete("cut".into()), 400),
            (BodyError::Malformed("chunk".into()), 400),
            (BodyError::TooLarge { limit_bytes: 1 }, 413),
        ] {
            let sent = outcome(http2, LONG, async |feed| {
                feed.send(Ok(PIECE)).unwrap();
                feed.send(Err(error)).unwrap();
            });
            let fault = sent.unwrap_err();
            assert_eq!((fault.side, fault.status), (Side::Client, Some(status)), "HTTP/2: {http2}, {fault}");
        }
    }
}

#[test]
fn the_deadline_blames_a_client_that_still_sends() {
    for http2 in [false, true] {
        let open = std::cell::RefCell::new(None);
        let sent = outcome(http2, Duration::from_millis(200), async |feed| {
            feed.send(Ok(PIECE)).unwrap();
            open.replace(Some(feed));
        });
        let fault = sent.unwrap_err();
        assert_eq!((fault.side, fault.status), (Side::Client, Some(408)), "HTTP/2: {http2}, {fault}");
    }
}

/// What a scripted backend of HTTP/1.1 makes of an upload that stays open.
fn against(script: Vec<Act>, time_left: Duration, complete: bool) -> Fault {
    run(async {
        let (address, _) = backend(vec![script]).await;
        let (_core, sender) = sender();
        let (feed, body) = fed();
        feed.send(Ok(PIECE)).unwrap();
        let open = (!complete).then_some(feed);
        let fault = sender.send(upload(address, body, false, time_left)).await.unwrap_err();
        drop(open);
        fault
    })
}

#[test]
fn a_backend_is_blamed_for_its_own_time_only() {
    let silent = || vec![Act::Until("0\r\n\r\n"), Act::Hold];
    let fault = against(silent(), LONG, true);
    assert_eq!((fault.side, fault.number()), (Side::Backend, Some(101_504)));
    // The deadline leaves it less than its timeout.
    let fault = against(silent(), Duration::from_millis(60), true);
    assert_eq!((fault.side, fault.status), (Side::Us, Some(504)));
    let fault = against(vec![Act::Until("0\r\n\r\n"), Act::Reset], LONG, true);
    assert_eq!(fault.side, Side::Backend);
    // It closes while the client has more to send.
    for end in [vec![Act::Until("piece\r\n")], vec![Act::Until("piece\r\n"), Act::Reset]] {
        let fault = against(end, LONG, false);
        assert_eq!((fault.side, fault.status), (Side::Client, Some(502)), "{fault}");
    }
}

/// Replies with a body that begins and never ends.
struct Endless {
    content_type: &'static str,
    open: std::cell::RefCell<Vec<Feed>>,
}

impl Service for Endless {
    fn answer<'a>(&'a self, _request: Request) -> LocalFuture<'a, Message> {
        let (feed, body) = fed();
        feed.send(Ok(PIECE)).unwrap();
        self.open.borrow_mut().push(feed);
        let mut reply = Message { status: 200, body, ..Message::default() };
        reply.headers.set("Content-Type", self.content_type);
        Box::pin(std::future::ready(reply))
    }
}

fn endless(content_type: &'static str) -> (Rc<Endless>, ListenerConfig) {
    let timeouts = HttpTimeouts { deadline: Duration::from_millis(200), ..HttpTimeouts::default() };
    let service = Rc::new(Endless { content_type, open: std::cell::RefCell::default() });
    (service, ListenerConfig { timeouts, ..ListenerConfig::default() })
}

#[test]
fn a_reply_that_streams_past_the_deadline_is_reset() {
    run(async {
        let (service, config) = endless("text/plain");
        let server = serve(service, config);
        for version in ["1.1", "1.0"] {
            let mut socket = TcpStream::connect(server.address).await.unwrap();
            socket.write_all(format!("GET / HTTP/{version}\r\nHost: h\r\n\r\n").as_bytes()).await.unwrap();
            let error = socket.read_to_end(&mut Vec::new()).await.unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "HTTP/{version}");
        }
        let mut body = ask_over_http2(&server).await;
        assert_eq!(body.data().await.unwrap().unwrap(), PIECE);
        let error = body.data().await.unwrap().unwrap_err();
        assert!(error.is_reset() && error.is_remote(), "{error}");
    });
}

#[test]
fn events_and_grpc_stream_past_the_deadline() {
    for content_type in ["text/event-stream; charset=utf-8", "application/grpc+proto"] {
        run(async {
            let (service, config) = endless(content_type);
            let server = serve(service.clone(), config);
            let mut body = ask_over_http2(&server).await;
            let mut socket = TcpStream::connect(server.address).await.unwrap();
            socket.write_all(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await.unwrap();
            assert_eq!(body.data().await.unwrap().unwrap(), PIECE);
            while service.open.borrow().len() < 2 {
                tokio::task::yield_now().await;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
            for feed in service.open.borrow_mut().drain(..) {
                feed.send(Ok(PIECE)).unwrap();
            }
            assert_eq!(body.data().await.unwrap().unwrap(), PIECE);
            let mut reply = String::new();
            socket.read_to_string(&mut reply).await.unwrap();
            assert!(reply.ends_with("5\r\npiece\r\n5\r\npiece\r\n0\r\n\r\n"), "{reply}");
        });
    }
}

async fn ask_over_http2(server: &crate::common::Server) -> h2::RecvStream {
    let socket = TcpStream::connect(server.address).await.unwrap();
    let (mut client, connection) = h2::client::handshake(socket).await.unwrap();
    tokio::task::spawn_local(connection);
    let request = http::Request::get("http://h/").body(()).unwrap();
    let (response, _) = client.send_request(request, true).unwrap();
    response.await.unwrap().into_body()
}
