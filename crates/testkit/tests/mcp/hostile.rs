//! What no client should send.

use std::io::{Read, Write};

use super::*;

#[test]
fn what_is_no_message_is_refused_and_costs_little() {
    let backend = telling();
    let gateway = served(direct(&backend.url(), json!({}), json!([getting()])));
    let bearer = gateway.bearer(&json!({}));
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{}1{}}}",
        "[".repeat(50_000),
        "]".repeat(50_000)
    );
    let nested = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{}1{}}}",
        "{\"a\":".repeat(120),
        "}".repeat(120)
    );
    let wide = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"a\":[{}1]}}}}",
        "[],".repeat(200_000)
    );
    let long =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{}\",\"method\":\"{}\"}}", "i".repeat(10_000), "m".repeat(10_000));
    let batch = format!("[{}]", vec![r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#; 1000].join(","));
    for (body, status, code) in [
        ("", 400, -32600),
        ("null", 400, -32600),
        ("\u{feff}{}", 400, -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"", 400, -32700),
        ("POST / HTTP/1.1\r\n\r\n", 400, -32700),
        (&batch, 400, -32600),
        (&deep, 400, -32700),
        (&nested, 200, -32602),
        (&wide, 400, -32600),
        (&long, 200, -32601),
        (r#"{"jsonrpc":"2.0","id":{"a":1},"method":"tools/list"}"#, 400, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"getPet"}"#, 400, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":["getPet"]}}"#, 200, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"getPet","arguments":"id"}}"#, 200, -32602),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"getPet","arguments":{"id":"\u0000\r\n"}}}"#,
            200,
            0,
        ),
    ] {
        let reply = gateway.client().request("POST", PATH, &[("Authorization", &bearer)], body.as_bytes());
        let shown = body.get(..60).unwrap_or(body);
        assert_eq!((reply.status, reply.json()["error"]["code"].as_i64().unwrap_or(0)), (status, code), "{shown}");
    }
    // What can be escaped is, and reaches the backend as text.
    assert_eq!(backend.last().target, "/pet/%00%0D%0A");
}

#[test]
fn messages_have_a_size_limit_for_all_clients() {
    let backend = telling();
    let gateway = served(direct(&backend.url(), json!({}), json!([getting()])));
    let large = vec![b' '; 5 << 20];
    // Also without `Content-Length`. The connection may end before all of it was sent.
    let mut chunked: Vec<u8> = Vec::new();
    for chunk in large.chunks(1 << 16) {
        chunked.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        chunked.extend(chunk);
        chunked.extend(b"\r\n");
    }
    chunked.extend(b"0\r\n\r\n");
    let plain = gateway.client().try_request("POST", PATH, &[], &large);
    let chunked = gateway.client().try_request("POST", PATH, &[("Transfer-Encoding", "chunked")], &chunked);
    for reply in [plain, chunked].into_iter().flatten() {
        assert_eq!(reply.status, 413, "{}", reply.text());
    }
    let head = format!("POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", 5 << 20);
    let mut socket = std::net::TcpStream::connect(("127.0.0.1", gateway.http)).unwrap();
    socket.write_all(head.as_bytes()).unwrap();
    let mut answer = [0; 12];
    socket.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    let mut talk = Talk::with(&gateway, json!({}));
    assert_eq!(talk.tools(), ["getPet"]);
    // A large argument within it is passed on.
    let schema = json!({ "properties": { "requestBody": { "type": "string", "contentType": "text/plain" } } });
    let put = tool("put", "PUT", "/x", schema, json!({}));
    let gateway = served(direct(&backend.url(), json!({}), json!([put])));
    let mut talk = Talk::with(&gateway, json!({}));
    let text = "ü".repeat(1 << 20);
    assert_eq!(told(&talk.call("put", json!({ "requestBody": text })))["body"].as_str().map(str::len), Some(2 << 20));
}
