//! Fields that follow a body: over both versions of HTTP, streamed and collected, and those that may not.

use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use penstock_transports::http::ListenerConfig;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::common::{Act, Obedient, backend, read_to_end, run, serve, short_times, talk};
use crate::proxied::proxy_to;

const CHUNKED: &str = "Host: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n";

/// What follows the body that comes back, and the body.
async fn over_http1(address: SocketAddr, path: &str, trailers: &[(&str, &str)]) -> (String, Vec<(String, String)>) {
    let fields: String = trailers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!("POST {path} HTTP/1.1\r\n{CHUNKED}\r\n2\r\nab\r\n1\r\nc\r\n0\r\n{fields}\r\n");
    let answer = talk(address, request).await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{answer}");
    if head.contains("Content-Length") {
        return (body.to_owned(), Vec::new());
    }
    let (chunks, section) = body.split_once("0\r\n").unwrap_or((body, ""));
    let data = chunks.split("\r\n").skip(1).step_by(2).collect();
    let field = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.to_ascii_lowercase(), value.to_owned())
    };
    (data, section.lines().filter(|line| !line.is_empty()).map(field).collect())
}

async fn over_http2(address: SocketAddr, path: &str, trailers: &[(&str, &str)]) -> (String, Vec<(String, String)>) {
    let socket = TcpStream::connect(address).await.unwrap();
    let (mut client, connection) = h2::client::handshake(socket).await.unwrap();
    tokio::task::spawn_local(connection);
    let request = http::Request::post(format!("http://h{path}")).body(()).unwrap();
    let (response, mut sink) = client.send_request(request, false).unwrap();
    sink.send_data(Bytes::from_static(b"abc"), false).unwrap();
    let pair = |(name, value): &(&str, &str)| {
        (http::HeaderName::from_bytes(name.as_bytes()).unwrap(), http::HeaderValue::from_str(value).unwrap())
    };
    sink.send_trailers(trailers.iter().map(pair).collect()).unwrap();
    let (parts, mut stream) = response.await.unwrap().into_parts();
    assert_eq!(parts.status, 200);
    let mut data = Vec::new();
    while let Some(chunk) = stream.data().await {
        data.extend_from_slice(&chunk.unwrap());
    }
    let fields = stream.trailers().await.unwrap().unwrap_or_default();
    let pair = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.as_str().to_owned(), value.to_str().unwrap().to_owned())
    };
    (String::from_utf8(data).unwrap(), fields.iter().map(pair).collect())
}

/// Client and backend in either version; a backend that sends the body back as it comes, or once it has all of it.
#[test]
fn they_cross_in_both_directions() {
    let sent = [("x-sum", "3"), ("x-list", "a"), ("x-list", "b"), ("grpc-status", "0")];
    // What only a head may say goes no further.
    let forbidden = [("authorization", "Bearer x"), ("set-cookie", "a=b"), ("x-forwarded-for", "1.2.3.4")];
    let expected = sent.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let all: Vec<_> = sent.into_iter().chain(forbidden).collect();
    run(async {
        let echo = serve(Rc::new(Obedient), ListenerConfig::default());
        for http2 in [false, true] {
            let proxy = proxy_to(echo.address, http2);
            for path in ["/back", "/kept"] {
                for _ in 0..2 {
                    let seen = over_http1(proxy.address, path, &all).await;
                    assert_eq!(seen, ("abc".to_owned(), expected.to_vec()), "from 1.1, to 2: {http2}, {path}");
                    let seen = over_http2(proxy.address, path, &all).await;
                    assert_eq!(seen, ("abc".to_owned(), expected.to_vec()), "from 2, to 2: {http2}, {path}");
                    assert_eq!(over_http1(proxy.address, path, &[]).await, ("abc".to_owned(), Vec::new()), "{path}");
                    assert_eq!(over_http2(proxy.address, path, &[]).await, ("abc".to_owned(), Vec::new()), "{path}");
                }
            }
            assert_eq!(proxy.core.counters.connects.get(), 1, "a connection is used again after trailers");
        }
    });
}

#[test]
fn their_announcement_crosses_where_they_can() {
    run(async {
        let reply =
            "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n";
        let counted = "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nContent-Length: 1\r\n\r\na";
        for (reply, expected) in [
            (
                reply,
                "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n",
            ),
            (counted, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\na"),
        ] {
            let (address, heard) = backend(vec![vec![Act::Until("X-In: 2\r\n\r\n"), Act::Say(reply)]]).await;
            let proxy = proxy_to(address, false);
            let request = format!("POST / HTTP/1.1\r\n{CHUNKED}Trailer: X-In\r\n\r\n1\r\nb\r\n0\r\nX-In: 2\r\n\r\n");
            assert_eq!(talk(proxy.address, request).await, expected);
            let heard = heard.borrow()[0].clone();
            assert!(
                heard.contains("\r\nTrailer: X-In\r\n") && heard.ends_with("\r\n1\r\nb\r\n0\r\nX-In: 2\r\n\r\n"),
                "{heard}"
            );
        }
    });
}

/// A client of HTTP/1.0 gets the body without them.
#[test]
fn old_clients_do_without() {
    run(async {
        let server = serve(Rc::new(Obedient), ListenerConfig::default());
        let answer = talk(server.address, "GET /trailers HTTP/1.0\r\n\r\n").await;
        assert_eq!(answer, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\none");
    });
}

/// The sections that no message can end with, and those that break off: each has its own response, reported once, and
/// the connection ends. The service sees a body that failed, never one that ended.
#[test]
fn sections_that_are_none_are_refused() {
    let huge = format!("X: {}\r\n\r\n", "a".repeat(9_000));
    let endless = "X: a\r\n".repeat(2_000);
    let many = format!("{}\r\n", "X: a\r\n".repeat(300));
    for section in [
        huge.as_str(),
        endless.as_str(),
        many.as_str(),
        "X: a\rY: b\r\n\r\n",
        "X: a\nY: b\r\n\r\n",
        "X: a\0\r\n\r\n",
        "X : a\r\n\r\n",
        "X\r\n\r\n",
        ": a\r\n\r\n",
        " X: a\r\n\r\n",
        "X: a\r\n folded\r\n\r\n",
        "Host: h\r\n\r\n",
        "Content-Length: 1\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: h\r\n\r\n",
    ] {
        for path in ["/a", "/kept"] {
            let answer = run(async {
                let server = serve(Rc::new(Obedient), ListenerConfig::default());
                let body = format!("1\r\na\r\n0\r\n{section}GET /b HTTP/1.1\r\nHost: h\r\n\r\n");
                talk(
                    server.address,
                    format!("POST {path} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{body}"),
                )
                .await
            });
            assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer:?} to {section:.40?}");
            assert!(answer.contains("the trailers are malformed"), "{answer:?} to {section:.40?}");
            assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer:?} to {section:.40?}");
        }
    }
}

#[test]
fn missing_trailers_are_reported() {
    let request = format!("POST /a HTTP/1.1\r\n{CHUNKED}\r\n1\r\na\r\n0\r\nX: ");
    // It stops: too slow. It is cut: no body.
    let (slow, cut) = run(async {
        let server = serve(Rc::new(Obedient), short_times());
        let slow = talk(server.address, &request).await;
        let server = serve(Rc::new(Obedient), ListenerConfig::default());
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        socket.shutdown().await.unwrap();
        (slow, read_to_end(&mut socket).await)
    });
    assert!(slow.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{slow}");
    assert!(cut.starts_with("HTTP/1.1 400 Bad Request\r\n") && cut.ends_with("the connection was closed\n"), "{cut}");
}

/// The same from a backend: before the reply began it is an error, afterwards the connection is closed.
#[test]
fn sections_of_backends_are_not_believed_either() {
    run(async {
        for (section, whole) in
            [("X: a\n\r\n", false), ("Content-Length: 1\r\n\r\n", false), ("X: a\r\n", false), ("X: a\r\n\r\n", true)]
        {
            let reply = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n{section}");
            let (address, _) = backend(vec![vec![Act::Until("\r\n\r\n"), Act::Say(reply.leak())]]).await;
            let proxy = proxy_to(address, false);
            let answer = talk(proxy.address, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
            assert_eq!(answer.ends_with("0\r\nX: a\r\n\r\n"), whole, "{answer:?}");
            assert!(whole || answer.ends_with("1\r\na\r\n"), "{answer:?}");
        }
    });
}
