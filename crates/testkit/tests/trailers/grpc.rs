//! gRPC as it is on the wire: messages with a prefix of five bytes, the outcome behind them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::HeaderMap;
use penstock_catalog::Cluster;
use penstock_testkit::gateway::{Answer, Backend, Setup, TestGateway, api};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

/// No call takes that long; one that does hangs.
const PATIENCE: Duration = Duration::from_secs(20);

fn frame(message: &str) -> Bytes {
    let mut bytes = vec![0];
    bytes.extend_from_slice(&(message.len() as u32).to_be_bytes());
    bytes.extend_from_slice(message.as_bytes());
    bytes.into()
}

/// The messages in these bytes, and how many bytes they take.
fn messages(bytes: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = bytes;
    while let [0, a, b, c, d, after @ ..] = rest {
        let (message, later) = after.split_at(u32::from_be_bytes([*a, *b, *c, *d]) as usize);
        found.push(String::from_utf8_lossy(message).into_owned());
        rest = later;
    }
    assert!(rest.is_empty(), "a message is cut off");
    found
}

fn status(code: &str) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.parse().unwrap());
    trailers.insert("grpc-message", "said%20so".parse().unwrap());
    trailers.insert("x-detail-bin", "AAEC".parse().unwrap());
    trailers
}

async fn all_of(body: &mut RecvStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk.unwrap();
        body.flow_control().release_capacity(chunk.len()).unwrap();
        bytes.extend_from_slice(&chunk);
    }
    bytes
}

type Heads = Arc<Mutex<Vec<HeaderMap>>>;

/// A server of four methods. What the heads of its calls said is kept.
fn server() -> (SocketAddr, Heads) {
    let (told, address) = mpsc::channel();
    let heads = Heads::default();
    let kept = heads.clone();
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default()).unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            told.send(listener.local_addr().unwrap()).unwrap();
            while let Ok((socket, _)) = listener.accept().await {
                let kept = kept.clone();
                tokio::task::spawn_local(async move {
                    let mut connection = h2::server::handshake(socket).await.unwrap();
                    while let Some(Ok((request, respond))) = connection.accept().await {
                        kept.lock().unwrap().push(request.headers().clone());
                        tokio::task::spawn_local(serve(request, respond));
                    }
                });
            }
        });
    });
    (address.recv().unwrap(), heads)
}

async fn serve(request: http::Request<RecvStream>, mut respond: SendResponse<Bytes>) {
    let method = request.uri().path().strip_prefix("/shop.Orders/").unwrap().to_owned();
    let mut body = request.into_body();
    let mut response = http::Response::new(());
    response.headers_mut().insert("content-type", "application/grpc+proto".parse().unwrap());
    let send = |sink: &mut SendStream<Bytes>, text: &str| sink.send_data(frame(text), false).unwrap();
    match method.as_str() {
        "Unary" => {
            let asked = messages(&all_of(&mut body).await);
            let mut sink = respond.send_response(response, false).unwrap();
            send(&mut sink, &format!("to {}", asked.concat()));
            sink.send_trailers(status("0")).unwrap();
        }
        // Nothing but a head.
        "Refused" => {
            response.headers_mut().extend(status("5"));
            respond.send_response(response, true).unwrap();
        }
        "Stream" => {
            let asked = messages(&all_of(&mut body).await);
            let mut sink = respond.send_response(response, false).unwrap();
            for number in 0..3 {
                send(&mut sink, &format!("{number} to {}", asked.concat()));
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
            sink.send_trailers(status("0")).unwrap();
        }
        // Answers every message as it comes.
        _ => {
            let mut sink = respond.send_response(response, false).unwrap();
            while let Some(chunk) = body.data().await {
                let chunk = chunk.unwrap();
                body.flow_control().release_capacity(chunk.len()).unwrap();
                // The end may come by itself.
                if !chunk.is_empty() {
                    send(&mut sink, &format!("to {}", messages(&chunk).concat()));
                }
            }
            sink.send_trailers(status("7")).unwrap();
        }
    }
}

/// A call that was begun.
struct Call {
    sink: SendStream<Bytes>,
    body: RecvStream,
    head: http::response::Parts,
}

/// Begins a call over a connection of its own, with one message unless that is empty.
async fn call(port: u16, method: &str, message: &str, goes_on: bool) -> Call {
    let socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (client, connection) = h2::client::handshake(socket).await.unwrap();
    tokio::task::spawn_local(connection);
    let mut client = client.ready().await.unwrap();
    let request = http::Request::post(format!("http://localhost/shop.Orders/{method}"))
        .header("content-type", "application/grpc+proto")
        .header("te", "trailers")
        .body(())
        .unwrap();
    let (response, mut sink) = client.send_request(request, false).unwrap();
    sink.send_data(frame(message), !goes_on).unwrap();
    let (head, body) = response.await.unwrap().into_parts();
    assert_eq!(
        (head.status.as_u16(), &head.headers["content-type"]),
        (200, &"application/grpc+proto".parse().unwrap())
    );
    Call { sink, body, head }
}

impl Call {
    async fn next(&mut self) -> String {
        let chunk = self.body.data().await.unwrap().unwrap();
        self.body.flow_control().release_capacity(chunk.len()).unwrap();
        messages(&chunk).concat()
    }

    /// The rest of the messages, and what followed them.
    async fn end(mut self) -> (Vec<String>, HeaderMap) {
        let bytes = all_of(&mut self.body).await;
        (messages(&bytes), self.body.trailers().await.unwrap().unwrap_or_default())
    }
}

fn gateway(backend: SocketAddr, service: Option<&Backend>) -> TestGateway {
    let url = format!("http://{backend}/shop.Orders");
    let mut api = api("/shop.Orders", &url, &["POST /{method}"]);
    let operation = Arc::get_mut(&mut api.operations[0]).unwrap();
    operation.secured = false;
    operation.response_interceptor = service.map(|service| penstock_catalog::Interceptor {
        service_url: service.url().into(),
        includes: vec![penstock_catalog::InterceptorPart::ResponseTrailers],
        ..Default::default()
    });
    let cluster = Cluster { urls: vec![url.into()], http2: true, ..Cluster::default() };
    api.endpoints.production = Some(Arc::new(cluster));
    TestGateway::start(Setup::of([api]))
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default()).unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("the call hangs") });
}

#[test]
fn calls_pass_with_their_outcome() {
    let (backend, heads) = server();
    let gateway = gateway(backend, None);
    run(async {
        let (answers, trailers) = call(gateway.http, "Unary", "one", false).await.end().await;
        assert_eq!((answers, trailers), (vec!["to one".to_owned()], status("0")));

        // A call that is refused has its outcome in the head and nothing else.
        let refused = call(gateway.http, "Refused", "one", false).await;
        assert_eq!(refused.head.headers["grpc-status"], "5");
        assert_eq!(refused.end().await, (Vec::new(), HeaderMap::new()));

        // Each message arrives when it was sent, not with the last.
        let mut streamed = call(gateway.http, "Stream", "one", false).await;
        assert_eq!(streamed.next().await, "0 to one");
        let (rest, trailers) = streamed.end().await;
        assert_eq!((rest, trailers), (vec!["1 to one".to_owned(), "2 to one".to_owned()], status("0")));

        // Both sides speak in turns.
        let mut both = call(gateway.http, "Both", "one", true).await;
        assert_eq!(both.next().await, "to one");
        both.sink.send_data(frame("two"), false).unwrap();
        assert_eq!(both.next().await, "to two");
        both.sink.send_data(frame("three"), true).unwrap();
        assert_eq!(both.end().await, (vec!["to three".to_owned()], status("7")));
    });
    for head in heads.lock().unwrap().iter() {
        assert_eq!(
            (&head["te"], &head["content-type"]),
            (&"trailers".parse().unwrap(), &"application/grpc+proto".parse().unwrap())
        );
    }
}

/// An interceptor service knows how a call ended, and may say otherwise.
#[test]
fn services_get_the_outcome() {
    let (backend, _) = server();
    let service = Backend::start(|_| Answer::json(&json!({ "trailersToReplace": { "grpc-status": "13" } })));
    let gateway = gateway(backend, Some(&service));
    run(async {
        let (answers, trailers) = call(gateway.http, "Unary", "one", false).await.end().await;
        assert_eq!((answers, &trailers["grpc-status"]), (vec!["to one".to_owned()], &"13".parse().unwrap()));
    });
    let told = service.last().json()["responseTrailers"].clone();
    assert_eq!(told, json!({ "grpc-status": "0", "grpc-message": "said%20so", "x-detail-bin": "AAEC" }));
}
