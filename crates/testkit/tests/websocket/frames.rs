//! Frames on their way: sizes, order, what is none, and how connections end.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use penstock_testkit::gateway::{Setup, TestGateway};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use crate::open_api;
use crate::sockets::{EchoBackend, close_code, connect, echoes, masked, next_text, raw, raw_backend, rest, run};

fn gateway(url: &str) -> TestGateway {
    TestGateway::start(Setup::of([open_api("/ws", url, &["/*"])]))
}

#[test]
fn messages_of_every_size_pass_in_order() {
    let backend = EchoBackend::start();
    let gateway = gateway(&backend.url());
    run(async {
        let mut socket = connect(&gateway, "/ws/x", &[]).await.unwrap();
        let sizes = [0, 1, 125, 126, 127, 65_535, 65_536, 70_000, 1 << 20, 20 << 20];
        for size in sizes {
            let sent: Vec<u8> = (0..size).map(|index: usize| (index * 31 % 251) as u8).collect();
            let (mut sink, mut stream) = socket.split();
            let (outcome, got) = tokio::join!(sink.send(Message::binary(sent.clone())), stream.next());
            outcome.unwrap();
            assert!(got.unwrap().unwrap().into_data() == sent, "{size} bytes");
            socket = sink.reunite(stream).unwrap();
        }
        for round in 0..1000 {
            socket.feed(Message::text(format!("{round}"))).await.unwrap();
        }
        socket.flush().await.unwrap();
        for round in 0..1000 {
            assert_eq!(next_text(&mut socket).await, format!("{round}"));
        }
    });
}

#[test]
fn control_frames_pass_between_the_pieces_of_a_message() {
    let backend = EchoBackend::start();
    let gateway = gateway(&backend.url());
    run(async {
        let mut socket = raw(&gateway, "/ws/x").await;
        let pieces = [masked(0x01, b"one "), masked(0x89, b"ping"), masked(0x00, b"two "), masked(0x80, b"three")];
        for byte in pieces.concat() {
            socket.write_all(&[byte]).await.unwrap();
        }
        let mut got = [0; 6 + 15];
        socket.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"\x8a\x04ping\x81\x0done two three");
    });
}

#[test]
fn either_side_may_close() {
    let backend = EchoBackend::start();
    let gateway = gateway(&backend.url());
    run(async {
        let mut socket = connect(&gateway, "/ws/x", &[]).await.unwrap();
        let frame = CloseFrame { code: 4001.into(), reason: "enough".into() };
        socket.close(Some(frame)).await.unwrap();
        assert_eq!(close_code(&mut socket).await, 4001);
        assert_eq!(backend.ends(1).await, [Some(4001)]);

        let mut socket = connect(&gateway, "/ws/x", &[]).await.unwrap();
        socket.send(Message::text("close")).await.unwrap();
        assert!(matches!(socket.next().await, Some(Ok(Message::Close(None)))));
        assert!(socket.next().await.is_none(), "and the connection ends");
    });
}

#[test]
fn a_client_that_only_listens_any_more_gets_the_rest() {
    let backend = EchoBackend::start();
    let gateway = gateway(&backend.url());
    run(async {
        let mut socket = raw(&gateway, "/ws/x").await;
        socket.write_all(&masked(0x81, b"last words")).await.unwrap();
        socket.shutdown().await.unwrap();
        assert_eq!(rest(&mut socket).await, b"\x81\x0alast words");
        assert_eq!(backend.ends(1).await, [None]);
    });
}

#[test]
fn what_is_no_frame_ends_its_connection_and_no_other() {
    let backend = EchoBackend::start();
    let gateway = gateway(&backend.url());
    run(async {
        let mut other = connect(&gateway, "/ws/y", &[]).await.unwrap();
        for (count, bad) in [
            (1, vec![0x81, 0x02, b'n', b'o']),
            (2, vec![0x83, 0x80, 0, 0, 0, 0]),
            (3, masked(0xc1, b"bits")),
            (4, masked(0x80, b"of nothing")),
            (5, vec![0x81, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0]),
        ] {
            let mut socket = raw(&gateway, "/ws/x").await;
            socket.write_all(&[masked(0x81, b"ok"), bad].concat()).await.unwrap();
            let mut got = [0; 4];
            socket.read_exact(&mut got).await.unwrap();
            // What was good before is carried; 1002 is behind it, or in its place when the echo came too late.
            match &got {
                b"\x81\x02ok" => assert_eq!(rest(&mut socket).await, b"\x88\x02\x03\xea"),
                _ => assert_eq!(&got, b"\x88\x02\x03\xea"),
            }
            assert_eq!(backend.ends(count).await[count - 1], Some(1001), "the backend gets a close frame");
            echoes(&mut other, "still here").await;
        }
    });
}

#[test]
fn a_protocol_violation_of_the_backend_closes_both_sides() {
    run(async {
        let (url, got) = raw_backend(b"\x81\x02ok\x81\x80\0\0\0\0").await;
        let gateway = gateway(&url);
        let mut socket = raw(&gateway, "/ws/x").await;
        assert_eq!(rest(&mut socket).await, b"\x81\x02ok\x88\x02\x03\xe9");
        let got = got.await.unwrap();
        let code: Vec<u8> = got[6..8].iter().zip(&got[2..4]).map(|(byte, mask)| byte ^ mask).collect();
        assert_eq!((&got[..2], code), (&[0x88, 0x82][..], 1002_u16.to_be_bytes().to_vec()));
    });
}

#[test]
fn a_side_that_vanishes_takes_the_other_with_it() {
    let backend = EchoBackend::start();
    let vanishing = gateway(&backend.url());
    run(async {
        let mut socket = connect(&vanishing, "/ws/x", &[]).await.unwrap();
        echoes(&mut socket, "hi").await;
        drop(socket);
        assert_eq!(backend.ends(1).await, [None]);

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gateway = gateway(&format!("ws://{}", listener.local_addr().unwrap()));
        let backend = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            crate::sockets::read_head(&mut socket).await;
            let head = b"HTTP/1.1 101 Ok\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                         Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
            socket.write_all(head).await.unwrap();
        };
        let (mut socket, ()) = tokio::join!(raw(&gateway, "/ws/x"), backend);
        assert_eq!(rest(&mut socket).await, b"");
    });
}

#[test]
fn a_client_that_does_not_read_keeps_the_backend_from_sending() {
    const MESSAGES: u64 = 1600;
    let backend = EchoBackend::start();
    let gateway = gateway(&backend.url());
    run(async {
        let mut socket = connect(&gateway, "/ws/x", &[]).await.unwrap();
        let mut other = connect(&gateway, "/ws/y", &[]).await.unwrap();
        socket.send(Message::text(format!("flood {MESSAGES}"))).await.unwrap();
        // What the buffers of four sockets take, and then nothing more.
        let (mut before, mut still) = (0, 0);
        while still < 20 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let now = backend.sent_bytes();
            still = if now == before && now > 0 { still + 1 } else { 0 };
            before = now;
        }
        assert!(before < MESSAGES * 64 * 1024 / 2, "{before} bytes were taken from the backend");
        echoes(&mut other, "others are served").await;
        for _ in 0..MESSAGES {
            assert_eq!(socket.next().await.unwrap().unwrap().len(), 64 * 1024);
        }
        echoes(&mut socket, "and then it goes on").await;
    });
}

#[test]
fn connected_clients_get_1001_when_the_gateway_stops() {
    let backend = EchoBackend::start();
    let mut gateway = gateway(&backend.url());
    run(async {
        let mut socket = connect(&gateway, "/ws/x", &[]).await.unwrap();
        echoes(&mut socket, "hi").await;
        gateway.stop();
        assert_eq!(close_code(&mut socket).await, 1001);
        assert_eq!(backend.ends(1).await, [Some(1001)]);
    });
}
