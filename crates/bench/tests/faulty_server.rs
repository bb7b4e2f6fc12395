//! Faults that a server makes, against what the load generator reports: neither more nor less may be reported than was
//! injected.
#![expect(clippy::unwrap_used, reason = "a panic in a test is the report")]

use bytes::Bytes;
use penstock_bench::figures::{Figures, Metric};
use penstock_bench::http::request::Request;
use penstock_bench::http::url::Url;
use penstock_bench::load::expect::Expect;
use penstock_bench::load::{self, LoadOutcome, LoadSpec, Protocol};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// Close the connection without a response.
    Drop,
    /// Close it with RST.
    Reset,
    /// Keep it open without a response.
    Hang,
    /// Close it in the middle of the body.
    Truncate,
    /// Another body of the same length.
    WrongBody,
    /// Status 503 with the right body.
    ServerError,
    /// Close the connection after a correct response without announcing it.
    CloseAfterwards,
}

/// Every request with this number, and every multiple of it, meets the fault.
const EVERY: u64 = 10;

#[derive(Default)]
struct Counts {
    requests: AtomicU64,
    injected: AtomicU64,
}

fn start(fault: Fault, every: u64) -> (u16, Arc<Counts>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let counts = Arc::new(Counts::default());
    let shared = counts.clone();
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let counts = shared.clone();
            std::thread::spawn(move || serve(socket, fault, every, &counts));
        }
    });
    (port, counts)
}

/// Serves until the client or a fault ends the connection.
fn serve(socket: TcpStream, fault: Fault, every: u64, counts: &Counts) -> Option<()> {
    socket.set_nodelay(true).ok()?;
    let mut reader = BufReader::new(socket);
    loop {
        let body = read_request(&mut reader)?;
        let number = counts.requests.fetch_add(1, Ordering::SeqCst) + 1;
        let faulty = number.is_multiple_of(every);
        counts.injected.fetch_add(u64::from(faulty), Ordering::SeqCst);
        let head = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
        let mut response = [head("200 OK"), body.clone()].concat();
        if faulty {
            match fault {
                Fault::Drop => return None,
                Fault::Reset => {
                    rustix::net::sockopt::set_socket_linger(reader.get_ref(), Some(Duration::ZERO)).unwrap();
                    return None;
                }
                Fault::Hang => {
                    // The client gives up and closes.
                    let _ = reader.read(&mut [0]);
                    return None;
                }
                Fault::Truncate => {
                    response.truncate(response.len() - body.len() / 2);
                    reader.get_mut().write_all(&response).ok()?;
                    return None;
                }
                Fault::WrongBody => response = [head("200 OK"), vec![b'?'; body.len()]].concat(),
                Fault::ServerError => response = [head("503 Service Unavailable"), body.clone()].concat(),
                Fault::CloseAfterwards => {}
            }
        }
        reader.get_mut().write_all(&response).ok()?;
        if faulty && fault == Fault::CloseAfterwards {
            return None;
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            return Some(body);
        }
    }
}

fn spec(port: u16) -> LoadSpec {
    LoadSpec {
        request: Request {
            method: "POST".into(),
            url: Url::parse(&format!("http://127.0.0.1:{port}/")).unwrap(),
            headers: Vec::new(),
            body: Bytes::from_static(b"<order><symbol>IBM</symbol></order>"),
            keep_alive: true,
        },
        expect: Expect { status: Some(200), same_body: true, ..Expect::default() },
        tokens: Arc::default(),
        users: 6,
        ramp_up: Duration::ZERO,
        duration: Duration::from_millis(400),
        warm_up: Duration::ZERO,
        requests_per_user_max: None,
        rate: None,
        protocol: Protocol::Http1,
        threads: 2,
        connect_timeout: Duration::from_secs(5),
        response_timeout: Duration::from_secs(1),
        jtl: None,
        stop: Arc::default(),
    }
}

fn run(spec: &LoadSpec) -> LoadOutcome {
    load::run(spec, &mut |_| {}).unwrap()
}

#[test]
fn every_injected_fault_is_reported_and_nothing_else() {
    println!("{:<12} {:>9} {:>9} {:>9}", "fault", "requests", "injected", "reported");
    for fault in [Fault::Drop, Fault::Reset, Fault::Hang, Fault::Truncate, Fault::WrongBody, Fault::ServerError] {
        let (port, counts) = start(fault, EVERY);
        let tally = run(&spec(port)).tally;
        let (requests, injected) = (counts.requests.load(Ordering::SeqCst), counts.injected.load(Ordering::SeqCst));
        println!("{:<12} {requests:>9} {injected:>9} {:>9}", format!("{fault:?}"), tally.errors);
        assert!(injected > 0, "{fault:?}");
        assert_eq!((tally.samples(), tally.errors), (requests, injected), "{fault:?}: {:?}", tally.reasons);
    }
}

#[test]
fn requests_that_hang_until_the_end_are_errors_and_no_throughput() {
    // Every request hangs, and the window ends long before the response timeout.
    let (port, _) = start(Fault::Hang, 1);
    let outcome = run(&LoadSpec { duration: Duration::from_millis(100), ..spec(port) });
    let tally = &outcome.tally;
    assert_eq!((tally.samples(), tally.errors, tally.late.errors), (6, 6, 6), "{:?}", tally.reasons);
    assert_eq!(Figures::of_load(&outcome).get(Metric::Throughput), Some(0.0));
}

#[test]
fn refused_connections_are_errors_and_no_throughput() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // The load generator looks for the address with one connection; afterwards nothing listens.
    let server = std::thread::spawn(move || drop(listener.accept().map(|_| listener)));
    let outcome = run(&spec(port));
    server.join().unwrap();
    let figures = Figures::of_load(&outcome);
    assert!(outcome.tally.errors >= 6, "{:?}", outcome.tally.reasons);
    assert_eq!(outcome.tally.errors, outcome.tally.samples());
    // Not `Sent`: a connection that the kernel accepted before the listener closed may carry a request.
    assert_eq!(figures.get(Metric::Throughput), Some(0.0));
}

#[test]
fn a_connection_closed_between_requests_is_counted_as_a_reconnect() {
    let (port, counts) = start(Fault::CloseAfterwards, 1);
    // Twenty milliseconds between two requests: the client sees the closed connection before it writes.
    let tally = run(&LoadSpec { users: 1, threads: 1, rate: Some(50.0), ..spec(port) }).tally;
    assert!(tally.reconnects > 0, "{tally:?}");
    assert!(tally.samples() >= counts.requests.load(Ordering::SeqCst), "no request is sent twice");
}
