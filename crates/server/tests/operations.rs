//! What an operator does to a running server and what its surroundings do to it: signals, proxies in front of it, full
//! disks, missing descriptors, guessed passwords.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, Signal};
use support::{Connection, Folder, Server, api, penstock, tls};

/// An API that answers with the address of its client.
const ADDRESS: &str = "<api xmlns='http://ws.apache.org/ns/synapse' name='Address' context='/address'>\
    <resource methods='GET'><inSequence><payloadFactory media-type='json'><format>{\"from\": \"$1\"}</format>\
    <args><arg evaluator='xml' expression=\"get-property('axis2', 'REMOTE_ADDR')\"/></args></payloadFactory><respond/>\
    </inSequence></resource></api>";

/// An API whose callers log in.
const SECURED: &str = "<api xmlns='http://ws.apache.org/ns/synapse' name='S' context='/s'><resource methods='GET'>\
    <inSequence><payloadFactory media-type='json'><format>{\"in\": true}</format><args/></payloadFactory><respond/>\
    </inSequence></resource><handlers>\
    <handler class='org.wso2.micro.integrator.security.handler.RESTBasicAuthHandler'/></handlers></api>";

fn basic(name: &str, password: &str) -> String {
    use base64::Engine;
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("{name}:{password}")))
}

/// Waits until something holds.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "{what} never held");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn metric(server: &Server, name: &str) -> u64 {
    let page = server.admin("/metrics").body;
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap();
    line.parse().unwrap()
}

#[test]
fn only_trusted_proxies_report_addresses() {
    let folder = Folder::new("proxies");
    folder.write("a.xml", ADDRESS);
    let fields = [("X-Forwarded-For", "10.9.9.9"), ("Forwarded", "for=10.8.8.8")];
    let from = |server: &Server, fields: &[(&str, &str)]| {
        Connection::open(server.http).request("GET", "/address", fields, b"").body
    };
    let server = Server::start(&folder, &["run", "a.xml"], "");
    assert_eq!(from(&server, &fields), "{\"from\": \"127.0.0.1\"}");
    drop(server);
    let toml = "listener.trusted_proxies = ['127.0.0.0/8', '10.8.0.0/16']\n[access_log]\nto = 'access.log'";
    let server = Server::start(&folder, &["run", "a.xml"], toml);
    assert_eq!(from(&server, &fields), "{\"from\": \"10.9.9.9\"}");
    assert_eq!(from(&server, &fields[1..]), "{\"from\": \"10.8.8.8\"}");
    assert_eq!(from(&server, &[("X-Forwarded-For", "6.6.6.6, 10.9.9.9, 10.8.0.1")]), "{\"from\": \"10.9.9.9\"}");
    let log = || std::fs::read_to_string(folder.0.join("access.log")).unwrap_or_default();
    wait_until("the third line of the access log", || log().lines().count() == 3);
    // Two workers write, in any order.
    assert_eq!(log().lines().filter(|line| line.starts_with("10.9.9.9 - - [")).count(), 2, "{}", log());
}

#[test]
fn the_proxy_protocol_is_read_where_it_is_configured() {
    let folder = Folder::new("proxy-protocol");
    folder.write("a.xml", ADDRESS);
    let talk = |server: &Server, begin: &[u8]| {
        let mut socket = TcpStream::connect(("127.0.0.1", server.http)).unwrap();
        let request = b"GET /address HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        socket.write_all(&[begin, request].concat()).unwrap();
        let mut response = String::new();
        // A reset instead of an answer is no answer, too.
        let _ = socket.read_to_string(&mut response);
        response.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned()
    };
    let first = b"PROXY TCP4 192.0.2.9 192.0.2.1 56324 443\r\n";
    let second = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc6\x33\x64\x07\x0a\0\0\x01\xdc\x04\x01\xbb";
    let server = Server::start(
        &folder,
        &["run", "a.xml"],
        "listener.proxy_protocol = true\nlistener.trusted_proxies = '127.0.0.1'",
    );
    assert_eq!(talk(&server, first), "{\"from\": \"192.0.2.9\"}");
    assert_eq!(talk(&server, second), "{\"from\": \"198.51.100.7\"}");
    assert_eq!(talk(&server, b"PROXY UNKNOWN\r\n"), "{\"from\": \"127.0.0.1\"}");
    assert_eq!(talk(&server, b""), "", "a trusted proxy that sends no header is refused");
    assert_eq!(talk(&server, b"PROXY TCP4 192.0.2.9\r\n"), "");
    drop(server);
    let server = Server::start(
        &folder,
        &["run", "a.xml"],
        "listener.proxy_protocol = true\nlistener.trusted_proxies = ['10.0.0.0/8']",
    );
    assert_eq!(talk(&server, b""), "{\"from\": \"127.0.0.1\"}");
    assert!(talk(&server, first).contains("malformed"), "from others the header is no part of HTTP");
    folder.write("penstock.toml", "listener.proxy_protocol = true");
    let done = penstock(&folder.0, &["run", "a.xml"]);
    assert!(done.status != 0 && done.stderr.contains("listener.trusted_proxies"), "{}", done.stderr);
}

#[test]
fn connections_in_the_accept_queue_are_served_before_the_end() {
    let folder = Folder::new("accept-queue");
    folder.write("a.xml", api("one"));
    let mut server = Server::start(&folder, &["run", "a.xml"], "");
    let (port, served) = (server.http, Arc::new(AtomicU64::new(0)));
    let clients: Vec<_> = (0..24)
        .map(|_| {
            let served = served.clone();
            std::thread::spawn(move || {
                let mut failures = Vec::new();
                // A connection for every request, until none is accepted any more.
                while let Ok(mut socket) = TcpStream::connect(("127.0.0.1", port)) {
                    let mut response = Vec::new();
                    let outcome = socket
                        .write_all(b"GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
                        .and_then(|()| socket.read_to_end(&mut response));
                    if outcome.is_err() || !response.starts_with(b"HTTP/1.1 200 ") {
                        failures.push(format!("{outcome:?}"));
                    }
                    served.fetch_add(1, Ordering::Relaxed);
                }
                failures
            })
        })
        .collect();
    wait_until("500 requests", || served.load(Ordering::Relaxed) > 500);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    let failures: Vec<String> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    assert_eq!(failures, [""; 0]);
}

#[test]
fn a_hangup_reads_the_configuration_again_and_loses_no_request() {
    let folder = Folder::new("hangup");
    folder.write("a.xml", api("one"));
    folder.write("s.xml", SECURED);
    let toml = |password: &str, port: u16, more: &str| {
        format!(
            "listener.http_port = {port}\nlistener.https_port = 0\nadmin.port = 0\nworkers = 2\n\
             access_log.to = 'access.log'\n{more}\n[users]\nanna = '{password}'\n"
        )
    };
    let mut server = Server::start_with(&folder, &["run", "a.xml", "s.xml"], &toml("old", 0, ""));
    let login = |password: &str| {
        let field = basic("anna", password);
        Connection::open(server.http).request("GET", "/s", &[("Authorization", &field)], b"").status
    };
    assert_eq!([login("old"), login("new")], [200, 403]);
    let stop = Arc::new(AtomicBool::new(false));
    let client = {
        let (stop, port) = (stop.clone(), server.http);
        std::thread::spawn(move || {
            let mut kept = Connection::open(port);
            while !stop.load(Ordering::Relaxed) {
                assert_eq!(kept.request("GET", "/a", &[], b"").status, 200);
                assert_eq!(Connection::open(port).request("GET", "/a", &[], b"").status, 200);
            }
        })
    };
    std::fs::rename(folder.0.join("access.log"), folder.0.join("access.log.1")).unwrap();
    folder.write("penstock.toml", toml("new", 1, "limits.target = '1KiB'"));
    server.signal(Signal::HUP);
    server.wait_for_log("SIGHUP: 2 artifacts are served now");
    server.wait_for_log("SIGHUP: keys that change only with a restart: listener.http_port");
    let login = |password: &str| {
        let field = basic("anna", password);
        Connection::open(server.http).request("GET", "/s", &[("Authorization", &field)], b"").status
    };
    assert_eq!([login("new"), login("old")], [200, 403]);
    assert_eq!(server.get(&format!("/a?{}", "x".repeat(2000))).status, 414);
    let lines = || std::fs::read_to_string(folder.0.join("access.log")).unwrap_or_default();
    wait_until("a line in the new access log", || lines().contains("GET /s"));
    folder.write("penstock.toml", "nonsense = 1");
    server.signal(Signal::HUP);
    server.wait_for_log("unknown key `nonsense`; keeping the previous configuration");
    assert_eq!(server.get("/a").status, 200);
    stop.store(true, Ordering::Relaxed);
    client.join().unwrap();
    let metrics = server.admin("/metrics").body;
    assert!(metrics.contains("penstock_replies_total{class=\"5xx\"} 0\n"), "{metrics}");
}

#[test]
fn other_signals_end_nothing() {
    let folder = Folder::new("signals");
    folder.write("a.xml", api("one"));
    let mut server = Server::start(&folder, &["run", "a.xml"], "");
    for signal in [
        Signal::USR1,
        Signal::USR2,
        Signal::QUIT,
        Signal::PIPE,
        Signal::ALARM,
        Signal::VTALARM,
        Signal::PROF,
        Signal::XCPU,
        Signal::XFSZ,
        Signal::IO,
        Signal::POWER,
        Signal::STKFLT,
    ] {
        server.signal(signal);
        server.wait_for_log(&format!("signal {}: ignored", signal.as_raw()));
    }
    assert_eq!(server.get("/a").status, 200);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn certificates_are_watched_and_chosen_by_name() {
    let folder = Folder::new("certificates");
    folder.write("a.xml", api("one"));
    let make = |name: &str, host: &str| {
        let made = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
        folder.write(&format!("{name}.key"), made.signing_key.serialize_pem());
        folder.write(&format!("{name}.pem"), made.cert.pem());
        made.cert.der().to_vec()
    };
    let (default, named, wild) = (make("own", "localhost"), make("named", "api.test"), make("wild", "*.test"));
    let toml = "[tls]\ncertificate = 'own.pem'\nkey = 'own.key'\n\
                [tls.hosts.'api.test']\ncertificate = 'named.pem'\nkey = 'named.key'\n\
                [tls.hosts.'*.test']\ncertificate = 'wild.pem'\nkey = 'wild.key'\n";
    let mut server = Server::start(&folder, &["run", "a.xml"], toml);
    let https = server.port_after("HTTPS    https://localhost:");
    for (name, expected) in
        [("localhost", &default), ("api.test", &named), ("API.test", &named), ("b.test", &wild), ("a.b.test", &default)]
    {
        assert!(tls::certificate(https, name) == *expected, "{name}");
    }
    let renewed = make("named", "api.test");
    server.wait_for_log("new connections get these certificates");
    assert!(tls::certificate(https, "api.test") == renewed);
    assert!(tls::certificate(https, "localhost") == default);
    folder.write("named.pem", "nonsense");
    server.wait_for_log("keeping the previous certificates");
    assert!(tls::certificate(https, "api.test") == renewed);
    assert!(tls::request(https, "GET", "/a", &[]).starts_with("HTTP/1.1 200 "));
}

#[test]
fn messages_cannot_forge_lines_of_the_log() {
    let folder = Folder::new("log-lines");
    folder.write(
        "a.xml",
        "<api xmlns='http://ws.apache.org/ns/synapse' name='A' context='/a'><resource methods='GET'><inSequence>\
         <log level='custom'><property name='q' expression=\"get-property('query.param.q')\"/></log><respond/>\
         </inSequence></resource></api>",
    );
    let mut server = Server::start(&folder, &["run", "a.xml"], "");
    server.get("/a?q=a%0d%0a[2026-01-01%2000:00:00,000]%20ERROR%20%7BFake%7D%20-%20forged%1b[2J%e2%80%a8end");
    server.wait_for_log("forged");
    let log = server.log();
    let line = log.lines().find(|line| line.contains("forged")).unwrap();
    assert!(line.contains("q = a\\r\\n[2026-01-01 00:00:00,000] ERROR {Fake} - forged\\u001b[2J\\u2028end"), "{line}");
}

#[test]
fn a_full_disk_drops_lines_counts_them_and_blocks_nothing() {
    let folder = Folder::new("full-disk");
    folder.write("a.xml", api("one"));
    let mut server = Server::start(&folder, &["run", "a.xml"], "[access_log]\nto = 'access.log'");
    // Writes fail behind this size of a file, as they do on a full disk.
    let limit = Rlimit { current: Some(1000), maximum: None };
    rustix::process::prlimit(Some(server.process()), Resource::Fsize, limit).unwrap();
    let mut connection = Connection::open(server.http);
    for _ in 0..100 {
        assert_eq!(connection.request("GET", "/a", &[], b"").status, 200);
    }
    server.wait_for_log("the access log cannot be written: File too large");
    let read = |name: &str| std::fs::read_to_string(folder.0.join(name)).unwrap_or_default();
    wait_until("every line is written or counted", || {
        read("access.log").matches('\n').count() as u64 + metric(&server, "penstock_log_lines_dropped_total") == 100
    });
    let dropped = metric(&server, "penstock_log_lines_dropped_total");
    assert!(dropped > 50, "{dropped}");
    std::fs::rename(folder.0.join("access.log"), folder.0.join("access.log.1")).unwrap();
    server.signal(Signal::HUP);
    server.wait_for_log("SIGHUP: 1 artifacts are served now");
    assert_eq!(connection.request("GET", "/a", &[], b"").status, 200);
    server.wait_for_log(&format!("{dropped} log lines were dropped: File too large"));
    wait_until("the line after the rotation", || read("access.log").matches('\n').count() == 1);
    assert_eq!(server.log().matches("the access log cannot be written").count(), 1, "{}", server.log());
}

#[test]
fn probes_answer_when_traffic_has_used_all_descriptors() {
    let folder = Folder::new("descriptors");
    folder.write("a.xml", api("one"));
    let mut server =
        Server::start_under(&folder, &["sh", "-c", "ulimit -n 128; exec \"$0\" \"$@\""], &["run", "a.xml"], "");
    server.wait_for_log("the limit of 128 file descriptors leaves 96 for connections");
    let mut first = Connection::open(server.http);
    assert_eq!(first.request("GET", "/a", &[], b"").status, 200);
    let mut waiting: Vec<TcpStream> =
        (0..300).map(|_| TcpStream::connect(("127.0.0.1", server.http)).unwrap()).collect();
    server.wait_for_log("accepting connections failed");
    for _ in 0..50 {
        assert_eq!(server.admin("/healthz").status, 200);
    }
    assert_eq!(first.request("GET", "/a", &[], b"").status, 200, "open connections are served");
    let said = server.log().matches("accepting connections failed").count();
    assert!(said <= 20, "{said} lines:\n{}", server.log());
    // The connection that waited longest is served once others end.
    let mut last = waiting.pop().unwrap();
    drop(waiting);
    last.write_all(b"GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    last.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
}

#[test]
fn the_soft_limit_of_descriptors_is_raised() {
    let folder = Folder::new("soft-limit");
    folder.write("a.xml", api("one"));
    let server =
        Server::start_under(&folder, &["sh", "-c", "ulimit -Sn 64; exec \"$0\" \"$@\""], &["run", "a.xml"], "");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.process().as_raw_nonzero())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<&str> = line.split_whitespace().skip(3).take(2).collect();
    assert_eq!(numbers[0], numbers[1], "{line}");
}

#[test]
fn guessing_passwords_is_slowed_down() {
    let folder = Folder::new("logins");
    folder.write("s.xml", SECURED);
    let adapter = support::ports::free();
    let toml = format!(
        "gateway.http_port = 0\ngateway.https_port = 0\nlistener.trusted_proxies = ['127.0.0.1']\n\
         [users]\nanna = 'secret'\n[admin.users]\nroot = 'secret'\n\
         [adapter]\nenabled = true\nport = {adapter}\nstate = 'state'\nusers = {{ admin = 'secret' }}\n"
    );
    let server = Server::start(&folder, &["run", "s.xml"], &toml);
    let ask = |port: u16, path: &str, from: &str, name: &str, password: &str| {
        let field = basic(name, password);
        let fields = [("Authorization", field.as_str()), ("X-Forwarded-For", from)];
        let reply = Connection::open(port).request("GET", path, &fields, b"");
        (reply.status, reply.head.to_ascii_lowercase().contains("retry-after: "))
    };
    let handler = |from: &str, name: &str, password: &str| ask(server.http, "/s", from, name, password);
    let admin = |from: &str, name: &str, password: &str| ask(server.admin, "/gateway/limits", from, name, password);
    // A name that exists and one that does not are answered alike.
    for name in ["anna", "nobody"] {
        let refusals: Vec<_> = (0..7).map(|_| handler("192.0.2.1", name, "wrong")).collect();
        assert_eq!((refusals[0], refusals[6]), ((403, false), (403, true)), "{name}");
        assert_eq!(handler("192.0.2.2", name, "wrong"), (403, true), "the account has a back-off for every address");
    }
    assert_eq!(handler("192.0.2.3", "anna", "secret").0, 403);
    assert_eq!(admin("192.0.2.1", "root", "secret").0, 200, "another login has counters of its own");
    let refusals: Vec<_> = (0..7).map(|_| admin("192.0.2.4", "other", "wrong")).collect();
    assert_eq!((refusals[0], refusals[6]), ((401, false), (429, true)));
    let deploy = |name: &str, password: &str| {
        let field = basic(name, password);
        tls::request(adapter, "GET", "/api/mgw/adapter/0.1/apis", &[("Authorization", &field)])
    };
    assert!(deploy("admin", "secret").starts_with("HTTP/1.1 200 "));
    let refusals: Vec<_> = (0..7).map(|_| deploy("guess", "wrong")).collect();
    assert!(refusals[0].starts_with("HTTP/1.1 401 "), "{}", refusals[0]);
    assert!(refusals[6].starts_with("HTTP/1.1 429 ") && refusals[6].contains("Retry-After: "), "{}", refusals[6]);
    assert!(deploy("admin", "secret").starts_with("HTTP/1.1 200 "));
}

#[test]
fn limits_are_shown_to_this_machine_or_after_a_login() {
    let folder = Folder::new("admin-login");
    folder.write("a.xml", api("one"));
    let server = Server::start(&folder, &["run", "a.xml"], "");
    let ask =
        |path: &str, fields: &[(&str, &str)]| Connection::open(server.admin).request("GET", path, fields, b"").status;
    let forwarded = [("X-Forwarded-For", "192.0.2.1")];
    assert_eq!((ask("/gateway/limits", &[]), ask("/gateway/limits", &forwarded)), (200, 403));
    for path in ["/healthz", "/liveness", "/metrics", "/metric-service/metrics"] {
        assert_eq!(ask(path, &forwarded), 200, "{path}");
    }
}
