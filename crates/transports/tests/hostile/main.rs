//! Ten thousand broken requests, and what is left of the server afterwards. A process of its own, because it looks at
//! the memory of the process.

#![allow(missing_docs, clippy::unwrap_used, dead_code, reason = "tests: a panic is the report; shared helpers")]

#[path = "../http/common.rs"]
mod common;

use std::rc::Rc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::{Forward, Obedient, Server, read_until, run, serve, serve_on};
use penstock_transports::http::{HttpSender, ListenerConfig, PerCore, SenderConfig};

const ATTACKS: usize = 10_000;
const AT_ONCE: usize = 50;

/// What is broken in every possible way. `BODY` becomes 3,000 bytes.
const TEMPLATES: [&str; 10] = [
    "GET /a HTTP/1.1\r\nHost: h\r\nAccept: */*\r\n\r\n",
    "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3000\r\n\r\nBODY",
    "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nbb8\r\nBODY\r\n3;x=y\r\nabc\r\n0\r\nX-T: 1\r\n\r\n",
    "POST /back HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nbb8\r\nBODY\r\n0\r\n\r\n",
    "POST /kept HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n1\r\na\r\n0\r\nX-T: 1\r\nX-U: 2\r\nX-U:\r\n\r\n",
    "POST /unread HTTP/1.1\r\nHost: h\r\nContent-Length: 3000\r\nExpect: 100-continue\r\n\r\nBODY",
    "HEAD /exact HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /chunks HTTP/1.0\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u{4}\0\0\0\0\0\0\0\u{1}\u{1}\u{5}\0\0\0\u{1}abc",
    "GET http://h:1/a?b=%zz HTTP/1.1\r\nHost: h\r\nConnection: close, host, x\r\nX: y\r\n\r\n",
    "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}",
];

/// Bytes that mean something to a parser.
const TRICKS: [&[u8]; 14] = [
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b"\t",
    b":",
    b";",
    b"\r\n\r\n",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"99999999999999999999",
    b"\xff\xfe",
    b"0\r\n\r\n",
];

/// A small generator with a fixed seed, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    fn attack(&mut self) -> Vec<u8> {
        let mut bytes = TEMPLATES[self.below(TEMPLATES.len())].replace("BODY", &"x".repeat(3000)).into_bytes();
        for _ in 0..self.below(4) {
            let at = self.below(bytes.len());
            match self.below(5) {
                0 => bytes[at] = self.below(256) as u8,
                1 => bytes.truncate(at),
                2 => drop(bytes.drain(at..(at + self.below(20)).min(bytes.len()))),
                3 => {
                    let trick = TRICKS[self.below(TRICKS.len())];
                    bytes.splice(at..at, trick.iter().copied());
                }
                _ => {
                    let end = (at + self.below(200)).min(bytes.len());
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
            }
            if bytes.is_empty() {
                break;
            }
        }
        bytes
    }
}

fn proxied() -> (Server, Server) {
    let backend = serve(Rc::new(Obedient), ListenerConfig::default());
    let core = PerCore::start();
    let sender = HttpSender::new(&core, SenderConfig::default());
    let forward = Forward { backend: format!("http://{}", backend.address), sender, http2: false };
    (serve_on(core, Rc::new(forward), ListenerConfig::default()), backend)
}

async fn strike(server: &Server, attacks: Vec<Vec<u8>>) {
    let mut running = tokio::task::JoinSet::new();
    for attack in attacks {
        let address = server.address;
        running.spawn_local(async move {
            let mut socket = TcpStream::connect(address).await.unwrap();
            let _ = socket.write_all(&attack).await;
            let _ = socket.shutdown().await;
            let mut answer = Vec::new();
            let _ = socket.read_to_end(&mut answer).await;
        });
    }
    while running.join_next().await.is_some() {}
}

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn ten_thousand_hostile_requests_leave_no_trace() {
    run(async {
        let (proxy, backend) = proxied();
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut batch = || (0..AT_ONCE).map(|_| random.attack()).collect::<Vec<_>>();
        // Allocators and pools fill up first.
        for _ in 0..20 {
            strike(&proxy, batch()).await;
        }
        let before = resident_kb();
        for _ in 0..ATTACKS / AT_ONCE {
            strike(&proxy, batch()).await;
        }
        while proxy.core.counters.connections.get() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(proxy.core.counters.in_flight.get(), 0);
        let grown = resident_kb().saturating_sub(before);
        assert!(grown < 8 * 1024, "{grown} KB more than before");

        let mut socket = TcpStream::connect(proxy.address).await.unwrap();
        socket.write_all(b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab").await.unwrap();
        let expected = format!("POST /a {} [ab]", backend.address);
        assert!(read_until(&mut socket, "]").await.ends_with(&expected));
    });
}

/// Backends are no more to be trusted than clients.
#[test]
fn hostile_replies_do_not_reach_the_client_as_something_else() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut random = Random(0x2545_f491_4f6c_dd1d);
        tokio::task::spawn_local(async move {
            const REPLIES: [&str; 5] = [
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nA: b\r\nC: d\r\n\r\n",
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nA: b\r\n\r\nuntil close",
                "HTTP/1.0 204 No Content\r\nConnection: keep-alive\r\n\r\n",
            ];
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut reply = REPLIES[random.below(REPLIES.len())].as_bytes().to_vec();
                for _ in 0..random.below(3) {
                    let at = random.below(reply.len());
                    let trick = TRICKS[random.below(TRICKS.len())];
                    reply.splice(at..at, trick.iter().copied());
                }
                reply.truncate(reply.len() - random.below(4));
                tokio::task::spawn_local(async move {
                    let mut waste = [0u8; 4096];
                    let _ = socket.read(&mut waste).await;
                    let _ = socket.write_all(&reply).await;
                });
            }
        });
        let core = PerCore::start();
        let sender = HttpSender::new(&core, SenderConfig::default());
        let forward = Forward { backend: format!("http://{address}"), sender, http2: false };
        let proxy = serve_on(core, Rc::new(forward), ListenerConfig::default());
        for _ in 0..1000 {
            let answer = common::talk(proxy.address, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
            assert!(answer.starts_with("HTTP/1.1 ") && answer.matches("HTTP/1.1 ").count() == 1, "{answer:?}");
        }
    });
}
