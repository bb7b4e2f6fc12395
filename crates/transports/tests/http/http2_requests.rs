//! What the listener makes of requests over HTTP/2 that HTTP/1.1 would refuse, or would write otherwise.

use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use penstock_transports::http::{HttpLimits, ListenerConfig};
use tokio::net::TcpStream;

use crate::common::{Obedient, run, serve};
use crate::proxied::proxy_to;

/// Sends one request whose body does not come; status and body of the answer, or that the stream was refused by the protocol.
async fn ask(address: SocketAddr, request: http::Request<()>) -> (u16, String) {
    let socket = TcpStream::connect(address).await.unwrap();
    let (mut client, connection) = h2::client::handshake(socket).await.unwrap();
    tokio::task::spawn_local(connection);
    let announces = request.headers().contains_key("content-length");
    let (response, _sink) = client.send_request(request, !announces).unwrap();
    let Ok(response) = response.await else { return (0, "reset".to_owned()) };
    let (parts, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    while let Some(Ok(chunk)) = body.data().await {
        bytes.extend_from_slice(&chunk);
    }
    (parts.status.as_u16(), String::from_utf8(bytes).unwrap())
}

fn get(uri: &str, fields: &[(&'static str, &str)]) -> http::Request<()> {
    let mut request = http::Request::get(uri).version(http::Version::HTTP_2).body(()).unwrap();
    for (name, value) in fields {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    request
}

#[test]
fn what_http_1_refuses_is_refused() {
    let many: Vec<_> = (0..300).map(|_| ("x", "a")).collect();
    let long = format!("http://h/{}", "a".repeat(20_000));
    let connect = http::Request::connect("h:1").version(http::Version::HTTP_2).body(()).unwrap();
    for (request, expected) in [
        (get("http://h/a", &many), 431),
        (get(&long, &[]), 414),
        (get("http://user:word@h/a", &[]), 400),
        (get("http://h/a", &[("host", "h"), ("host", "other")]), 400),
        (get("http://real:81/a", &[("host", "other")]), 400),
        (get("http://h/a", &[("host", "h:81")]), 400),
        (get("https://h/a", &[("host", "h:80")]), 400),
        (get("http://h/a", &[("x", " a")]), 400),
        (get("http://h/a", &[("x", "a\t")]), 400),
        (get("http://h:99999/a", &[]), 400),
        (get("http://h/a", &[("content-length", "11")]), 413),
        (connect, 400),
        (get("http://h/status/101", &[]), 502),
    ] {
        let shown = format!("{} {:?}", request.uri(), request.headers().keys().next());
        run(async {
            let limits = HttpLimits { body_bytes_max: 10, ..HttpLimits::default() };
            let server = serve(Rc::new(Obedient), ListenerConfig { limits, ..ListenerConfig::default() });
            let (status, _) = ask(server.address, request).await;
            assert_eq!(status, expected, "{shown:.60}");
            // The listener goes on.
            assert_eq!(ask(server.address, get("http://h/a", &[])).await.0, 200);
        });
    }
}

#[test]
fn the_authority_is_the_host() {
    run(async {
        let server = serve(Rc::new(Obedient), ListenerConfig::default());
        for (uri, host, expected) in [
            ("http://real:81/a", "real:81", "real:81"),
            ("http://real/a", "REAL", "real"),
            ("http://real/a", "real:80", "real"),
            ("https://real:443/a", "real", "real:443"),
        ] {
            let answer = ask(server.address, get(uri, &[("host", host)])).await;
            assert_eq!(answer, (200, format!("GET /a {expected} []")));
        }
    });
}

/// Cookies that came in several fields are one in HTTP/1.1, which knows no other way; other fields stay apart.
#[test]
fn cookies_are_put_together() {
    run(async {
        let server = serve(Rc::new(Obedient), ListenerConfig::default());
        let fields = [("cookie", "a=1"), ("cookie", "b=2"), ("x", "y"), ("cookie", "c=3")];
        for (address, expected) in
            [(server.address, "a=1; b=2; c=3"), (proxy_to(server.address, false).address, "a=1; b=2; c=3")]
        {
            assert_eq!(ask(address, get("http://h/cookies", &fields)).await, (200, expected.to_owned()));
        }
    });
}

/// A body that breaks off before its trailers did not end.
#[test]
fn a_stream_that_is_reset_has_no_end() {
    run(async {
        let server = serve(Rc::new(Obedient), ListenerConfig::default());
        let socket = TcpStream::connect(server.address).await.unwrap();
        let (mut client, connection) = h2::client::handshake(socket).await.unwrap();
        tokio::task::spawn_local(connection);
        let request = http::Request::post("http://h/kept").body(()).unwrap();
        let (response, mut sink) = client.send_request(request, false).unwrap();
        sink.send_data(Bytes::from_static(b"abc"), false).unwrap();
        tokio::task::yield_now().await;
        sink.send_reset(h2::Reason::CANCEL);
        assert!(response.await.is_err());
        while server.core.counters.in_flight.get() > 0 {
            tokio::task::yield_now().await;
        }
        let mut sum = penstock_transports::http::CountersSnapshot::default();
        server.core.counters.add_to(&mut sum);
        assert_eq!(sum.replies[1], 0, "no reply says that all is well");
    });
}
