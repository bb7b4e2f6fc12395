//! Frames that cost the listener work and move nothing on, written byte by byte: what honest clients send passes, more ends
//! the connection.

use std::net::SocketAddr;
use std::rc::Rc;

use penstock_transports::http::ListenerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

use crate::common::{Obedient, Server, run, serve};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

/// `GET /unread` or `POST /PATH` of the host `h`, as header blocks without an entry for the dynamic table.
fn block(method: u8, path: &str) -> Vec<u8> {
    let mut block = vec![method, 0x86, 0x01, 1, b'h', 0x04, path.len() as u8];
    block.extend(path.as_bytes());
    block
}
const GET: u8 = 0x82;
const POST: u8 = 0x83;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

struct Client {
    write: OwnedWriteHalf,
    read: tokio::net::tcp::OwnedReadHalf,
}

impl Client {
    async fn open(address: SocketAddr) -> Client {
        let socket = TcpStream::connect(address).await.unwrap();
        socket.set_nodelay(true).unwrap();
        let (read, mut write) = socket.into_split();
        write.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await.unwrap();
        Client { write, read }
    }

    /// The next frame; `None` at the end of the connection.
    async fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.read.read_exact(&mut head).await.ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.read.read_exact(&mut payload).await.ok()?;
        let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
        Some(Frame { kind: head[3], flags: head[4], stream, payload })
    }

    /// Reads to the GOAWAY and the end of the connection; the code that says why.
    async fn goaway(&mut self) -> Option<u32> {
        let mut code = None;
        while let Some(frame) = self.next().await {
            if frame.kind == GOAWAY {
                code = frame.payload[4..8].try_into().ok().map(u32::from_be_bytes);
            }
        }
        code
    }

    /// The first byte of a response: its status.
    async fn status(&mut self, stream: u32) -> u8 {
        loop {
            let frame = self.next().await.expect("a response");
            assert_ne!(frame.kind, GOAWAY, "{:?}", frame.payload);
            if frame.kind == HEADERS && frame.stream == stream {
                return frame.payload[0];
            }
        }
    }

    /// One request and its whole response, whose status is 200.
    async fn get(&mut self, stream: u32) {
        self.write.write_all(&frame(HEADERS, 5, stream, &block(GET, "/unread"))).await.unwrap();
        assert_eq!(self.status(stream).await, STATUS_200);
        while self.next().await.expect("the rest of the response").flags & 1 == 0 {}
    }
}

/// `:status: 200` of the static table.
const STATUS_200: u8 = 0x88;
/// `:status: 400`.
const STATUS_400: u8 = 0x8c;

const ENHANCE_YOUR_CALM: u32 = 0xb;

fn server() -> Server {
    serve(Rc::new(Obedient), ListenerConfig::default())
}

#[test]
fn a_flood_of_frames_ends_its_connection() {
    let open = frame(HEADERS, 4, 1, &block(POST, "/back"));
    for (what, first, flood) in [
        ("SETTINGS", vec![], frame(SETTINGS, 0, 0, &[])),
        ("SETTINGS that change windows", vec![], frame(SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0])),
        ("PING", vec![], frame(PING, 0, 0, &[0; 8])),
        ("answers to no PING", vec![], frame(PING, 1, 0, &[0; 8])),
        ("PRIORITY", vec![], frame(PRIORITY, 0, 3, &[0, 0, 0, 0, 9])),
        ("WINDOW_UPDATE", vec![], frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])),
        ("WINDOW_UPDATE of a stream", open.clone(), frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])),
        ("unknown frames", vec![], frame(0x7a, 0, 0, &[0; 20])),
        ("empty DATA", open.clone(), frame(DATA, 0, 1, &[])),
        ("DATA of padding", open, frame(DATA, 8, 1, &[3, 0, 0, 0])),
    ] {
        run(async {
            let server = server();
            let mut client = Client::open(server.address).await;
            client.write.write_all(&first).await.unwrap();
            let (mut write, flood) = (client.write, flood.repeat(100));
            let writer = tokio::task::spawn_local(async move {
                for _ in 0..200 {
                    if write.write_all(&flood).await.is_err() {
                        break;
                    }
                }
            });
            let mut client = Client { write: Client::open(server.address).await.write, read: client.read };
            assert_eq!(client.goaway().await, Some(ENHANCE_YOUR_CALM), "{what}");
            writer.abort();
            Client::open(server.address).await.get(1).await;
        });
    }
}

#[test]
fn requests_that_are_reset_at_once_end_their_connection() {
    run(async {
        let server = server();
        let mut client = Client::open(server.address).await;
        let mut stream = 1;
        let code = loop {
            // One request at a time, so that each is accepted.
            let frames = [
                frame(HEADERS, 4, stream, &block(POST, "/back")),
                frame(RESET, 0, stream, &[0, 0, 0, 8]),
                frame(PING, 0, 0, &[1; 8]),
            ];
            if client.write.write_all(&frames.concat()).await.is_err() || stream > 20_000 {
                break client.goaway().await;
            }
            stream += 2;
            let answered = loop {
                match client.next().await {
                    Some(Frame { kind: PING, .. }) => break None,
                    Some(Frame { kind: GOAWAY, payload, .. }) => {
                        break payload[4..8].try_into().ok().map(u32::from_be_bytes);
                    }
                    Some(_) => {}
                    None => panic!("closed without GOAWAY"),
                }
            };
            if answered.is_some() {
                break answered;
            }
        };
        assert_eq!(code, Some(ENHANCE_YOUR_CALM));
        assert!(stream < 6_000, "{stream}");
    });
}

/// A window that is opened by one byte at a time makes a frame of every byte.
#[test]
fn a_reply_is_not_sent_byte_by_byte() {
    run(async {
        let server = server();
        let mut client = Client::open(server.address).await;
        // SETTINGS_INITIAL_WINDOW_SIZE 0.
        let mut start = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
        start.extend(frame(HEADERS, 4, 1, &block(POST, "/back")));
        start.extend(frame(DATA, 1, 1, &[b'x'; 16_000]));
        client.write.write_all(&start).await.unwrap();
        let update = frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]);
        let mut write = client.write;
        tokio::task::spawn_local(async move { while write.write_all(&update).await.is_ok() {} });
        let (mut bytes, mut code) = (0, None);
        let mut read = client.read;
        let mut head = [0; 9];
        while read.read_exact(&mut head).await.is_ok() {
            let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            if read.read_exact(&mut payload).await.is_err() {
                break;
            }
            match head[3] {
                DATA => bytes += payload.len(),
                GOAWAY => code = Some(payload[7]),
                _ => {}
            }
        }
        assert_eq!(code, Some(ENHANCE_YOUR_CALM as u8));
        assert!(bytes < 3_000, "{bytes} bytes");
    });
}

/// Twice as many frames as the budget allows at once, but with replies between them.
#[test]
fn an_honest_client_is_served() {
    run(async {
        let server = server();
        let mut client = Client::open(server.address).await;
        for number in 0..700 {
            let stream = 2 * number + 1;
            client.write.write_all(&frame(PING, 0, 0, &[0; 8])).await.unwrap();
            client.write.write_all(&frame(PRIORITY, 0, stream, &[0, 0, 0, 0, 9])).await.unwrap();
            client.write.write_all(&frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 6])).await.unwrap();
            client.get(stream).await;
        }
    });
}

#[test]
fn malformed_trailers_are_refused() {
    let field = &[0x00, 1, b'x', 1, b'y'][..];
    for (what, trailers, expected) in [
        ("plain", field.to_vec(), STATUS_200),
        ("an indexed pseudo-header field", vec![0x82], STATUS_400),
        ("one by the index of its name", [&[0x04, 2, b'/', b'b'][..], field].concat(), STATUS_400),
        ("one in full", vec![0x00, 5, b':', b'p', b'a', b't', b'h', 1, b'/'], STATUS_400),
        ("a value that begins with white space", vec![0x00, 1, b'x', 2, b' ', b'y'], STATUS_400),
        ("a value that ends with white space", vec![0x00, 1, b'x', 2, b'y', b'\t'], STATUS_400),
    ] {
        for split in [false, true] {
            run(async {
                let server = server();
                let mut client = Client::open(server.address).await;
                let mut bytes = frame(HEADERS, 4, 1, &block(POST, "/kept"));
                bytes.extend(frame(DATA, 0, 1, b"abc"));
                if split {
                    bytes.extend(frame(HEADERS, 1, 1, &trailers[..1]));
                    bytes.extend(frame(CONTINUATION, 4, 1, &trailers[1..]));
                } else {
                    bytes.extend(frame(HEADERS, 5, 1, &trailers));
                }
                client.write.write_all(&bytes).await.unwrap();
                assert_eq!(client.status(1).await, expected, "{what}");
                // The connection goes on.
                client.get(3).await;
            });
        }
    }
}
