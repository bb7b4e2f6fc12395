//! What a listener answers to raw bytes.

use std::rc::Rc;

use crate::common::{Obedient, read_to_end, read_until, run, serve, short_times, talk};
use penstock_transports::http::{
    AccessEntry, AccessLog, CountersSnapshot, HttpListener, ListenerConfig, PerCore, shutdown,
};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Every reply to a request that ends the connection, in one string.
fn check(request: &str, expected: &str) {
    let answer = run(async {
        let server = serve(Rc::new(Obedient), ListenerConfig::default());
        talk(server.address, request).await
    });
    assert_eq!(answer, expected, "to {request:?}");
}

pub(super) const GET: &str = "GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
const GET_REPLY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\nGET /a h []";

#[test]
fn bodies_arrive_however_they_are_framed() {
    check(GET, GET_REPLY);
    let close = "Host: h\r\nConnection: close\r\n";
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 17\r\nConnection: close\r\n\r\n";
    let expected = &format!("{head}POST /a h [12345]");
    check(&format!("POST /a HTTP/1.1\r\n{close}Content-Length: 5\r\n\r\n12345"), expected);
    check(
        &format!("POST /a HTTP/1.1\r\n{close}Transfer-Encoding: chunked\r\n\r\n2\r\n12\r\n03;a=b\r\n345\r\n0\r\n\r\n"),
        expected,
    );
    check(
        &format!("POST /a HTTP/1.1\r\n{close}Transfer-Encoding: Chunked\r\n\r\n5\r\n12345\r\n0\r\nX-T: 1\r\n\r\n"),
        expected,
    );
    check(&format!("\r\n\r\nPOST /a HTTP/1.1\r\n{close}content-length: 5\r\n\r\n12345"), expected);
}

#[test]
fn replies_are_framed_for_the_client() {
    let request = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    let close = "Connection: close\r\n\r\n";
    check(
        &request("/chunks"),
        &format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{close}3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"),
    );
    check(
        &request("/trailers"),
        &format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{close}3\r\none\r\n0\r\nX-Sum: 3\r\n\r\n"),
    );
    check(&request("/exact"), &format!("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n{close}onetwo"));
    check(&request("/status/204"), &format!("HTTP/1.1 204 No Content\r\n{close}"));
    check(&request("/status/304"), &format!("HTTP/1.1 304 Not Modified\r\n{close}"));
    check(&request("/status/202"), &format!("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n{close}"));
    // A reply that only announces another one, or another protocol, is none.
    check(&request("/status/101"), &format!("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n{close}"));
    check(&request("/status/100"), &format!("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n{close}"));
    check(
        "GET /status/101 HTTP/1.1\r\nHost: h\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n\r\n",
        &format!("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n{close}"),
    );
    // Each test names its request.
    check(&request("/status/426"), &format!("HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n{close}"));
    check(
        &request("/upgrade"),
        &format!(
            "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{close}"
        ),
    );
    check(&request("/status/799"), &format!("HTTP/1.1 799 \r\nContent-Length: 0\r\n{close}"));
    check(
        &request("/evil"),
        &format!("HTTP/1.1 200 OK\r\nX-Split: aX-Injected: b\r\nContent-Length: 4\r\n{close}evil"),
    );
    check(
        "HEAD /exact HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
        &format!("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n{close}"),
    );
}

#[test]
fn a_body_may_come_back_on_its_own_connection() {
    let body = "x".repeat(300_000);
    let request =
        format!("POST /back HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 300000\r\n\r\n{body}");
    check(&request, &format!("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\nConnection: close\r\n\r\n{body}"));
}

#[test]
fn a_body_that_was_looked_at_leaves_whole() {
    let check = |before: usize, after: usize, mark: &str, seen: &str| {
        let body = format!("{}{mark}{}", "a".repeat(before), "b".repeat(after));
        let (length, half) = (body.len(), body.len() / 2);
        let head = "POST /looked HTTP/1.1\r\nHost: h\r\nConnection: close\r\n";
        let chunks = format!("{half:x}\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n", &body[..half], length - half, &body[half..]);
        for (framing, sent) in
            [(format!("Content-Length: {length}"), &body), ("Transfer-Encoding: chunked".to_owned(), &chunks)]
        {
            let answer = run(async {
                let server = serve(Rc::new(Obedient), ListenerConfig::default());
                talk(server.address, format!("{head}{framing}\r\n\r\n{sent}")).await
            });
            let (head, answered) = answer.split_once("\r\n\r\n").unwrap();
            assert!(!framing.contains("Length") || head.contains(&format!("X-Seen: {seen}\r\n")), "{head}: {before}");
            // Chunks are cut anew on their way back.
            let answered: String = match head.contains("chunked") {
                true => answered.split("\r\n").skip(1).step_by(2).collect(),
                false => answered.to_owned(),
            };
            assert!(answered == body, "{} of {length} bytes came back: {head}", answered.len());
        }
    };
    check(2_500, 2_500, "!", "found, untouched");
    check(10_000, 200_000, "!", "found, untouched");
    check(100_000, 200_000, "!", "found, taken");
    check(2_500, 0, "!", "found, untouched");
    check(2_500, 0, "", "absent");
    check(200_000, 0, "", "absent");
}

#[test]
fn old_clients_get_what_they_understand() {
    check("GET /a HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\nGET /a - []");
    check(
        "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /a HTTP/1.0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: keep-alive\r\n\r\nGET /a - []\
         HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\nGET /a - []",
    );
    check(
        "GET /chunks HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nonetwo",
    );
}

#[test]
fn requests_may_queue_up() {
    let ok = |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    check(
        &format!(
            "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nabPOST /unread HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \
             chunked\r\n\r\n1\r\nc\r\n0\r\n\r\nPOST /unread HTTP/1.1\r\nHost: h\r\nContent-Length: 3000\r\n\r\n{}{GET}",
            "z".repeat(3000)
        ),
        &format!("{}{}{}{GET_REPLY}", ok("POST /1 h [ab]"), ok("unread"), ok("unread")),
    );
}

#[test]
fn an_absolute_target_names_the_host() {
    check(
        "GET http://other:81/a?b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 20\r\nConnection: close\r\n\r\nGET /a?b other:81 []",
    );
    check(
        "GET http://other HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 14\r\nConnection: close\r\n\r\nGET / other []",
    );
    check(
        "OPTIONS * HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 14\r\nConnection: close\r\n\r\nOPTIONS * h []",
    );
}

#[test]
fn a_client_that_waits_for_100_gets_it_when_its_body_is_read() {
    run(async {
        let server = serve(Rc::new(Obedient), ListenerConfig::default());
        let head = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
        let mut socket = TcpStream::connect(server.address).await.unwrap();
        socket.write_all(head.as_bytes()).await.unwrap();
        assert_eq!(read_until(&mut socket, "\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
        socket.write_all(b"ab").await.unwrap();
        let reply = read_until(&mut socket, "]").await;
        assert_eq!(reply, "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\nPOST /a h [ab]");

        // It is not read: the final reply has `Connection: close`.
        socket.write_all(head.replace("/a", "/unread").as_bytes()).await.unwrap();
        let reply = read_to_end(&mut socket).await;
        assert_eq!(reply, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nunread");
    });
}

#[test]
fn slow_clients_get_408_and_are_closed() {
    let check = |bytes: &str, expected: &str| {
        let answer = run(async {
            let server = serve(Rc::new(Obedient), short_times());
            talk(server.address, bytes).await
        });
        assert!(answer.starts_with(expected), "{answer:?} to {bytes:?}");
        assert!(!expected.is_empty() || answer.is_empty(), "{answer:?} to {bytes:?}");
    };
    check("", "");
    check("GET /a HT", "HTTP/1.1 408 Request Timeout\r\n");
    check("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n123", "HTTP/1.1 408 Request Timeout\r\n");
    check("POST /back HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n123", "HTTP/1.1 200 OK\r\n");
}

#[test]
fn draining_finishes_what_runs_and_closes_what_waits() {
    run(async {
        let server = serve(Rc::new(Obedient), ListenerConfig::default());
        let mut idle = TcpStream::connect(server.address).await.unwrap();
        idle.write_all(b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
        read_until(&mut idle, "[]").await;
        let mut busy = TcpStream::connect(server.address).await.unwrap();
        busy.write_all(b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\na").await.unwrap();
        while server.core.counters.in_flight.get() == 0 {
            tokio::task::yield_now().await;
        }
        server.trigger.stop();
        assert_eq!(read_to_end(&mut idle).await, "");
        busy.write_all(b"b").await.unwrap();
        let reply = read_to_end(&mut busy).await;
        assert_eq!(reply, "HTTP/1.1 200 OK\r\nContent-Length: 14\r\nConnection: close\r\n\r\nPOST /a h [ab]");
        server.ended.await.unwrap().unwrap();
        assert!(TcpStream::connect(server.address).await.is_err());
        assert_eq!(server.core.counters.connections.get(), 0);
    });
}

/// Keeps the records of an access log.
#[derive(Default)]
struct Recorder(std::cell::RefCell<Vec<Line>>);

/// Request, status, length, whether it arrived.
type Line = (String, u16, Option<u64>, bool);

impl AccessLog for Recorder {
    fn record(&self, entry: &AccessEntry<'_>) {
        let line = format!("{} {} {}", entry.line.method.as_str(), entry.line.target(), entry.protocol);
        self.0.borrow_mut().push((line, entry.status, entry.body_bytes, entry.complete));
    }
}

#[test]
fn every_exchange_is_logged_and_counted() {
    run(async {
        let listener = HttpListener::bind("127.0.0.1:0".parse().unwrap(), ListenerConfig::default()).unwrap();
        let address = listener.local_addr();
        let core = PerCore::start();
        let told = Rc::new(Recorder::default());
        let (_trigger, word) = shutdown();
        tokio::task::spawn_local(listener.serve(core.clone(), Rc::new(Obedient), Some(told.clone()), word));
        let requests = "HEAD /exact HTTP/1.1\r\nHost: h\r\n\r\nGET /status/404 HTTP/1.1\r\nHost: h\r\n\r\n\
                        GET /chunks HTTP/1.1\r\nHost: h\r\n\r\nbroken\r\n\r\n";
        talk(address, requests).await;
        let entry = |line: &str, status, length| (line.to_owned(), status, length, true);
        assert_eq!(
            *told.0.borrow(),
            [
                entry("HEAD /exact HTTP/1.1", 200, Some(6)),
                entry("GET /status/404 HTTP/1.1", 404, Some(0)),
                entry("GET /chunks HTTP/1.1", 200, None),
            ]
        );
        let mut sum = CountersSnapshot::default();
        core.counters.add_to(&mut sum);
        assert_eq!((sum.accepted, sum.requests, sum.refused, sum.replies), (1, 3, 1, [0, 2, 0, 2, 0]));
        assert_eq!(sum.read_bytes, requests.len() as u64);
    });
}

#[test]
fn no_more_connections_than_allowed_are_served_at_once() {
    run(async {
        let server = serve(Rc::new(Obedient), ListenerConfig { connections_max: 1, ..ListenerConfig::default() });
        let mut first = TcpStream::connect(server.address).await.unwrap();
        first.write_all(b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
        read_until(&mut first, "[]").await;
        let mut second = TcpStream::connect(server.address).await.unwrap();
        second.write_all(GET.as_bytes()).await.unwrap();
        first.write_all(b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
        read_until(&mut first, "[]").await;
        assert_eq!(server.core.counters.accepted.get(), 1);
        drop(first);
        assert_eq!(read_to_end(&mut second).await, GET_REPLY);
    });
}

#[test]
fn a_port_in_use_is_reported() {
    run(async {
        let server = serve(Rc::new(Obedient), ListenerConfig::default());
        let error = HttpListener::check_free(server.address).unwrap_err();
        assert_eq!(error.to_string(), format!("port {} of 127.0.0.1 is taken", server.address.port()));
    });
}
