//! Backends that speak HTTP/2: this crate's own listener, over TLS and without.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use penstock_engine::ports::{LocalFuture, Outbound, Request, Service};
use penstock_message::{Body, Message, Method, SizeHint};
use penstock_transports::http::tls::{ClientCertificates, ClientTrust, Identity, TlsClient, TlsServer};
use penstock_transports::http::{HttpSender, ListenerConfig, PerCore, SenderConfig};

use crate::common::{Chunks, Obedient, Server, collect, get, run, serve, text};

/// Returns the protocol of the request and the length of the body.
struct Protocol;

impl Service for Protocol {
    fn answer<'a>(&'a self, request: Request) -> LocalFuture<'a, Message> {
        Box::pin(async move {
            let mut message = request.message;
            let host = message.headers.get("Host").unwrap_or("-").to_owned();
            let length = collect(&mut message.body).await.map_or(0, |bytes| bytes.len());
            text(
                200,
                &format!("{} {} {length} {}", request.client.protocol, request.client.line.target(), host.len() > 1),
            )
        })
    }
}

fn sender() -> (Rc<PerCore>, HttpSender) {
    sender_of(SenderConfig::default())
}

fn sender_of(config: SenderConfig) -> (Rc<PerCore>, HttpSender) {
    let core = PerCore::start();
    let trust = ClientTrust { trust_everything: true, ..ClientTrust::default() };
    let config = SenderConfig { tls: Arc::new(TlsClient::new(trust)), ..config };
    (core.clone(), HttpSender::new(&core, config))
}

fn secure(service: Rc<dyn Service>, http2: bool) -> Server {
    let identity = Identity::self_signed(&["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let tls = Arc::new(TlsServer::new(&identity, &ClientCertificates::None, http2).unwrap());
    serve(service, ListenerConfig { tls: Some(tls), ..ListenerConfig::default() })
}

async fn ask(sender: &HttpSender, scheme: &str, server: &Server, path: &str, body: Body) -> String {
    let mut outgoing = get(server.address, "/");
    outgoing.url = format!("{scheme}://{}{path}", server.address).into();
    outgoing.options.http.http2 = true;
    outgoing.method = if body.is_empty() { Method::Get } else { Method::Post };
    outgoing.message.body = body;
    let mut reply = sender.send(outgoing).await.unwrap_or_else(|fault| panic!("{fault}"));
    let bytes = collect(&mut reply.body).await.unwrap();
    format!("{} {}", reply.status, String::from_utf8_lossy(&bytes))
}

#[test]
fn one_connection_carries_all_requests() {
    run(async {
        for (scheme, server) in
            [("http", serve(Rc::new(Protocol), ListenerConfig::default())), ("https", secure(Rc::new(Protocol), true))]
        {
            let (core, sender) = sender();
            let ask = |path: &'static str, body| ask(&sender, scheme, &server, path, body);
            assert_eq!(ask("/a?b", Body::empty()).await, "200 HTTP/2 /a?b 0 true");
            assert_eq!(ask("", Body::bytes("abc")).await, "200 HTTP/2 / 3 true");
            let pieces = Chunks::new(&["one", "two"], SizeHint::Unknown);
            assert_eq!(ask("/s", Body::stream(Box::new(pieces))).await, "200 HTTP/2 /s 6 true");
            let large = Bytes::from(vec![b'x'; 3 << 20]);
            assert_eq!(ask("/l", Body::bytes(large)).await, format!("200 HTTP/2 /l {} true", 3 << 20));
            let many: Vec<_> = (0..50).map(|_| ask("/m", Body::empty())).collect();
            for one in many {
                assert_eq!(one.await, "200 HTTP/2 /m 0 true");
            }
            assert_eq!(core.counters.connects.get(), 1, "{scheme}");
        }
    });
}

#[test]
fn bodies_and_trailers_come_back() {
    run(async {
        let server = serve(Rc::new(Obedient), ListenerConfig::default());
        let (_core, sender) = sender();
        let large = "y".repeat(2 << 20);
        let answer = ask(&sender, "http", &server, "/back", Body::bytes(large.clone())).await;
        assert_eq!(answer.len(), 4 + large.len());
        assert_eq!(ask(&sender, "http", &server, "/trailers", Body::empty()).await, "200 one");
        assert_eq!(ask(&sender, "http", &server, "/status/404", Body::empty()).await, "404 ");
    });
}

#[test]
fn a_backend_without_http_2_is_called_over_http_1() {
    run(async {
        let server = secure(Rc::new(Protocol), false);
        let (core, sender) = sender();
        for _ in 0..3 {
            assert_eq!(ask(&sender, "https", &server, "/a", Body::bytes("x")).await, "200 HTTP/1.1 /a 1 true");
        }
        assert_eq!(core.counters.connects.get(), 1, "the connection on which it declined is used");
    });
}

#[test]
fn a_backend_that_goes_away_is_a_fault_and_comes_back() {
    run(async {
        let server = serve(Rc::new(Protocol), ListenerConfig::default());
        let (_core, sender) = sender();
        assert_eq!(ask(&sender, "http", &server, "/", Body::empty()).await, "200 HTTP/2 / 0 true");
        server.trigger.stop();
        let _ = server.ended.await;
        let mut outgoing = get(server.address, "/");
        outgoing.options.http.http2 = true;
        let fault = sender.send(outgoing).await.unwrap_err();
        assert!(matches!(fault.number(), Some(101_503 | 101_505)), "{fault}");
    });
}

#[test]
fn a_connection_that_cannot_be_opened_is_tried_once_for_all_who_wait() {
    run(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut config = SenderConfig::default();
        config.timeouts.connect = Duration::from_millis(200);
        let (_core, sender) = sender_of(config);
        let ask = async || {
            let mut outgoing = get(address, "/");
            outgoing.url = format!("https://{address}/").into();
            outgoing.options.http.http2 = true;
            sender.send(outgoing).await.unwrap_err().number()
        };
        // A backend that takes connections and says nothing.
        let mut taken = Vec::new();
        let asked = futures_util::future::join_all((0..5).map(|_| ask()));
        let silent = async {
            loop {
                taken.push(listener.accept().await);
            }
        };
        let outcomes = tokio::select! { outcomes = asked => outcomes, () = silent => unreachable!() };
        assert_eq!(outcomes, [Some(101_508); 5]);
        assert_eq!(taken.len(), 1);
    });
}

#[test]
fn a_connection_whose_end_was_announced_gets_no_more_requests() {
    run(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::task::spawn_local(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::task::spawn_local(async move {
                    let mut connection = h2::server::handshake(socket).await.unwrap();
                    let mut bodies = Vec::new();
                    while let Some(Ok((_request, mut respond))) = connection.accept().await {
                        let mut body = respond.send_response(http::Response::new(()), false).unwrap();
                        connection.graceful_shutdown();
                        body.send_data(Bytes::from_static(b"begun"), false).unwrap();
                        bodies.push(body);
                    }
                });
            }
        });
        let (core, sender) = sender();
        let mut answers = Vec::new();
        for connects in 1..=3 {
            let mut outgoing = get(address, "/");
            outgoing.options.http.http2 = true;
            outgoing.method = Method::Post;
            // A body that cannot be sent again.
            outgoing.message.body = Body::stream(Box::new(Chunks::new(&["one"], SizeHint::Unknown)));
            let mut reply = sender.send(outgoing).await.unwrap_or_else(|fault| panic!("{fault}"));
            // It lasts as long as this answer, of which only a part comes.
            std::future::poll_fn(|cx| reply.body.poll_pull(cx, 1, 100)).await.unwrap();
            answers.push(reply);
            assert_eq!(core.counters.connects.get(), connects);
        }
    });
}
