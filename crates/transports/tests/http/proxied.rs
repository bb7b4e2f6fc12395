//! The listener and the sender together: what passes through both.

use std::rc::Rc;

use penstock_transports::http::{HttpSender, ListenerConfig, SenderConfig};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::common::{Act, Forward, Obedient, backend, read_to_end, read_until, run, serve, serve_on};

const END: &str = "\r\n\r\n";

fn proxy(backend: std::net::SocketAddr) -> crate::common::Server {
    proxy_to(backend, false)
}

/// With a backend over HTTP/2, or HTTP/1.1.
pub(super) fn proxy_to(backend: std::net::SocketAddr, http2: bool) -> crate::common::Server {
    let core = penstock_transports::http::PerCore::start();
    let sender = HttpSender::new(&core, SenderConfig::default());
    serve_on(core, Rc::new(Forward { backend: format!("http://{backend}"), sender, http2 }), ListenerConfig::default())
}

#[test]
fn bodies_of_all_sizes_pass_through_both_ways() {
    run(async {
        let echo = serve(Rc::new(Obedient), ListenerConfig::default());
        let proxy = proxy(echo.address);
        let mut socket = TcpStream::connect(proxy.address).await.unwrap();
        for size in [0, 1, 2047, 2048, 2049, 10_000, 65_000, 65_536, 66_000, 300_000] {
            let body = "x".repeat(size);
            for chunked in [false, true] {
                let mut request = String::from("POST /a HTTP/1.1\r\nHost: h\r\n");
                if chunked {
                    request.push_str("Transfer-Encoding: chunked\r\n\r\n");
                    for piece in body.as_bytes().chunks(30_000) {
                        request.push_str(&format!("{:X}\r\n{}\r\n", piece.len(), String::from_utf8_lossy(piece)));
                    }
                    request.push_str("0\r\n\r\n");
                } else {
                    request.push_str(&format!("Content-Length: {size}\r\n\r\n{body}"));
                }
                socket.write_all(request.as_bytes()).await.unwrap();
                let reply = read_until(&mut socket, "]").await;
                let expected = format!("POST /a {} [{body}]", echo.address);
                assert_eq!(
                    reply,
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{expected}", expected.len()),
                    "{size} {chunked}"
                );
            }
        }
        assert_eq!(proxy.core.counters.connects.get(), 1);
    });
}

#[test]
fn a_backend_that_answers_while_it_reads_does_not_deadlock() {
    run(async {
        let echo = serve(Rc::new(Obedient), ListenerConfig::default());
        let proxy = proxy(echo.address);
        let size = 8_000_000;
        let socket = TcpStream::connect(proxy.address).await.unwrap();
        let (mut input, mut output) = socket.into_split();
        let writer = tokio::task::spawn_local(async move {
            let head = format!("POST /back HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {size}\r\n\r\n");
            output.write_all(head.as_bytes()).await.unwrap();
            output.write_all(&vec![b'y'; size]).await.unwrap();
            output
        });
        let mut bytes = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut input, &mut bytes).await.unwrap();
        writer.await.unwrap();
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        assert_eq!(bytes.len() - head, size);
    });
}

#[test]
fn trailers_and_interim_replies_pass() {
    run(async {
        let reply = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n";
        let (address, heard) = backend(vec![vec![Act::Until("X-In: 2\r\n\r\n"), Act::Say(reply)]]).await;
        let proxy = proxy(address);
        let mut socket = TcpStream::connect(proxy.address).await.unwrap();
        let request = "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\nX-In: 2\r\n\r\n";
        socket.write_all(request.as_bytes()).await.unwrap();
        let answer = read_to_end(&mut socket).await;
        assert_eq!(
            answer,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n"
        );
        assert!(heard.borrow()[0].ends_with("1\r\nb\r\n0\r\nX-In: 2\r\n\r\n"), "{:?}", heard.borrow());
    });
}

#[test]
fn head_keeps_the_length_of_what_it_does_not_send() {
    run(async {
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n";
        let (address, _) = backend(vec![vec![Act::Until(END), Act::Say(ok), Act::Until(END), Act::Say(ok)]]).await;
        let proxy = proxy(address);
        let mut socket = TcpStream::connect(proxy.address).await.unwrap();
        for _ in 0..2 {
            socket.write_all(b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
            assert_eq!(read_until(&mut socket, END).await, ok);
        }
    });
}

/// An answer to HEAD that does not say how long the other would be does not say that it would be empty.
#[test]
fn responses_to_head_have_no_invented_length() {
    run(async {
        let bare = "HTTP/1.1 200 OK\r\n\r\n";
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let none = "HTTP/1.1 204 No Content\r\n\r\n";
        for (reply, expected) in [(bare, chunked), (chunked, chunked), (none, none)] {
            let (address, _) =
                backend(vec![vec![Act::Until(END), Act::Say(reply), Act::Until(END), Act::Say(reply)]]).await;
            let proxy = proxy(address);
            let mut socket = TcpStream::connect(proxy.address).await.unwrap();
            for _ in 0..2 {
                socket.write_all(b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
                assert_eq!(read_until(&mut socket, END).await, expected);
            }
            assert_eq!(proxy.core.counters.connects.get(), 1);
        }
    });
}

#[test]
fn a_reply_that_breaks_before_it_began_is_a_bad_gateway() {
    run(async {
        let reply = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n";
        let (address, _) = backend(vec![vec![Act::Until(END), Act::Say(reply)]]).await;
        let proxy = proxy(address);
        let answer = crate::common::talk(proxy.address, "GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
        assert_eq!(
            answer,
            "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nContent-Length: 26\r\nConnection: close\r\n\r\n\
             a chunk size is malformed\n"
        );
    });
}

#[test]
fn a_reply_that_breaks_off_cuts_the_client_off_too() {
    run(async {
        let reply = "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\nabc";
        let (address, _) = backend(vec![vec![Act::Until(END), Act::Say(reply)]]).await;
        let proxy = proxy(address);
        let answer = crate::common::talk(proxy.address, "GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
        assert_eq!(answer, reply);
    });
}
