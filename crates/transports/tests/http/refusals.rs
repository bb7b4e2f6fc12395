//! What the listener refuses, and how.

use std::rc::Rc;

use penstock_transports::http::{HttpLimits, ListenerConfig};

use crate::common::{Obedient, run, serve, talk};
use crate::listener::GET;

fn refused(request: &str, status_line: &str) {
    let answer = run(async {
        let server = serve(Rc::new(Obedient), ListenerConfig::default());
        talk(server.address, request).await
    });
    assert!(answer.starts_with(&format!("HTTP/1.1 {status_line}\r\n")), "{answer:?} to {request:?}");
    assert!(answer.contains("Connection: close\r\n"), "{answer:?} to {request:?}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer:?} to {request:?}");
}

/// RFC 9112 §11: where two parties could disagree about the end of a message, there is no message.
#[test]
fn smuggling_is_refused() {
    let post = |fields: &str, body: &str| format!("POST /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n{body}{GET}");
    for fields in [
        "Content-Length: 1\r\nContent-Length: 2\r\n",
        "Content-Length: 1\r\nContent-Length: 1\r\n",
        "Content-Length: 1, 1\r\n",
        "Content-Length: +1\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 0x1\r\n",
        "Content-Length: 1 1\r\n",
        "Content-Length:\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding:\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Content-Length : 1\r\n",
        "Content-Length: 1\n",
        "X: a\rContent-Length: 1\r\n",
        "X: a\nTransfer-Encoding: chunked\r\n",
        "X: a\r\n Content-Length: 1\r\n",
        "X: a\r\n\tTransfer-Encoding: chunked\r\n",
        " Content-Length: 1\r\n",
        "X: a\0\r\n",
        "X\0: a\r\n",
        "X(: a\r\n",
        ": a\r\n",
        "X\r\n",
        "Host: other\r\n",
    ] {
        refused(&post(fields, "a"), "400 Bad Request");
    }
    refused(&post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), "501 Not Implemented");
    refused(&post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"), "501 Not Implemented");
    refused("GET /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 Bad Request");
}

#[test]
fn malformed_chunks_are_refused() {
    let long_extension = format!("1;{}\r\na\r\n0\r\n\r\n", "e".repeat(300));
    for chunks in [
        "g\r\n",
        "\r\n",
        " 1\r\na\r\n0\r\n\r\n",
        "-1\r\na\r\n0\r\n\r\n",
        "0x1\r\na\r\n0\r\n\r\n",
        "1 \r\na\r\n0\r\n\r\n",
        "1\na\r\n0\r\n\r\n",
        "1\r\nab\r\n0\r\n\r\n",
        "1\r\na\n0\r\n\r\n",
        "1\r\na\r\n0\r\nX: 1\n\r\n",
        "1\r\na\r\n0\r\n X: 1\r\n\r\n",
        "1\r\na\r\n0\r\nContent-Length: 1\r\n\r\n",
        "1;a\nb\r\na\r\n0\r\n\r\n",
        "10000000000000000\r\na\r\n",
        "FFFFFFFFFFFFFFFF\r\na\r\n",
        long_extension.as_str(),
    ] {
        refused(
            &format!("POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}{GET}"),
            "400 Bad Request",
        );
    }
}

#[test]
fn malformed_start_lines_are_refused() {
    for line in [
        "GET  /a HTTP/1.1",
        "GET /a",
        "GET /a HTTP/1.1 ",
        "GET /a http/1.1",
        "G T /a HTTP/1.1",
        "(GET) /a HTTP/1.1",
        "GET /a\tHTTP/1.1",
        "GET /a#b HTTP/1.1",
        "GET a HTTP/1.1",
        "GET * HTTP/1.1",
        "CONNECT a:1 HTTP/1.1",
        "CONNECT /a HTTP/1.1",
        "CONNECT http://a/ HTTP/1.1",
        "GET http:///a HTTP/1.1",
        "GET http://a b/ HTTP/1.1",
        "GET ftp://a/ HTTP/1.1",
        "GET /a HTTP/1.x",
        "GET /\u{7f} HTTP/1.1",
    ] {
        refused(&format!("{line}\r\nHost: h\r\n\r\n"), "400 Bad Request");
    }
    refused("GET /a HTTP/2.0\r\nHost: h\r\n\r\n", "505 HTTP Version Not Supported");
    refused("GET /a HTTP/1.1\r\n\r\n", "400 Bad Request");
    for host in ["a b", "a, b", "a:b", "a:65536", "a:1:2", ":80", "u@a", "[::1", "::1", "[a]", "%zz", "a\\b"] {
        refused(&format!("GET /a HTTP/1.1\r\nHost: {host}\r\n\r\n"), "400 Bad Request");
        refused(&format!("GET http://{host}/a HTTP/1.1\r\nHost: h\r\n\r\n"), "400 Bad Request");
    }
    refused("GET /a HTTP/1.1\r\nHost: h\r\nExpect: tea\r\n\r\n", "417 Expectation Failed");
    refused("\u{16}\u{3}\u{1}\u{2}\0\u{1}\0", "400 Bad Request");
}

#[test]
fn what_is_too_large_is_refused() {
    refused(&format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(20_000)), "414 URI Too Long");
    refused(&format!("GET /{}", "a".repeat(20_000)), "414 URI Too Long");
    refused(
        &format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n", "a".repeat(70_000)),
        "431 Request Header Fields Too Large",
    );
    refused(&format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}", "a".repeat(70_000)), "431 Request Header Fields Too Large");
    refused(
        &format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "X: a\r\n".repeat(300)),
        "431 Request Header Fields Too Large",
    );
    let limits = HttpLimits { body_bytes_max: 10, ..HttpLimits::default() };
    let config = ListenerConfig { limits, ..ListenerConfig::default() };
    for (fields, body) in
        [("Content-Length: 11", "12345678901"), ("Transfer-Encoding: chunked", "b\r\n12345678901\r\n0\r\n\r\n")]
    {
        let answer = run(async {
            let server = serve(Rc::new(Obedient), config.clone());
            talk(server.address, format!("POST /exact HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n{body}{GET}")).await
        });
        assert!(answer.starts_with("HTTP/1.1 413 ") || answer.starts_with("HTTP/1.1 200 "), "{answer:?}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer:?}");
    }
}
