//! Bodies: compressed for clients that accept it, refused when they are too large.

use std::io::Read;

use penstock_testkit::gateway::{Answer, Backend, Reply, Setup, TestGateway};

use crate::open_api;

fn unzipped(reply: &Reply) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(&*reply.body).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn answers_are_compressed_for_those_who_take_it() {
    let text = "a line that comes again and again\n".repeat(5000);
    let body = text.clone();
    let backend = Backend::start(move |request| {
        let (kind, body) = match request.target.as_str() {
            "/short" => ("text/plain", "short".to_owned()),
            "/image" => ("image/png", body.clone()),
            _ => ("text/plain; charset=utf-8", body.clone()),
        };
        let answer = Answer::new(200, kind, body).with("ETag", "\"1\"");
        if request.target == "/zipped" { answer.with("Content-Encoding", "br") } else { answer }
    });
    let gateway = TestGateway::start(Setup::of([open_api("/a", &backend, &["GET /*"])]));
    let mut client = gateway.client();
    let reply = client.get("/a/long", &[("Accept-Encoding", "br, gzip")]);
    assert_eq!(reply.header("content-encoding"), Some("gzip"));
    assert_eq!((reply.header("vary"), reply.header("etag")), (Some("accept-encoding"), None));
    assert!(reply.body.len() < text.len() / 20, "{}", reply.body.len());
    assert_eq!(unzipped(&reply), text);
    for (path, accepted) in
        [("/a/long", "br"), ("/a/long", "gzip;q=0"), ("/a/short", "gzip"), ("/a/image", "gzip"), ("/a/zipped", "gzip")]
    {
        let reply = client.get(path, &[("Accept-Encoding", accepted)]);
        assert_ne!(reply.header("content-encoding"), Some("gzip"), "{path} {accepted}");
        assert_eq!(reply.header("etag"), Some("\"1\""), "{path} {accepted}");
    }
    let off = Setup::of([open_api("/a", &backend, &["GET /*"])]);
    let gateway = TestGateway::start(off.configured(|config| config.compression.enabled = false));
    assert_eq!(gateway.client().get("/a/long", &[("Accept-Encoding", "gzip")]).text(), text);
}

#[test]
fn a_body_beyond_the_limit_is_refused() {
    let backend = Backend::echo();
    let setup = Setup::of([open_api("/a", &backend, &["POST /x"])]);
    let gateway = TestGateway::start(setup.configured(|config| config.request_bytes_max = Some(1000)));
    let mut client = gateway.client();
    assert_eq!(client.request("POST", "/a/x", &[], &[b'x'; 1000]).status, 200);
    assert_eq!(backend.received().len(), 1);
    assert_eq!(client.request("POST", "/a/x", &[], &[b'x'; 1001]).status, 413);
    assert_eq!(backend.received().len(), 1, "the backend hears nothing of it");
    let mut chunked = b"3e8\r\n".to_vec();
    chunked.extend([b'x'; 1000]);
    chunked.extend(b"\r\n1\r\nx\r\n0\r\n\r\n");
    let reply = gateway.client().request("POST", "/a/x", &[("Transfer-Encoding", "chunked")], &chunked);
    assert_eq!((reply.status, &reply.json()["code"]), (413, &serde_json::json!("413")));
}
