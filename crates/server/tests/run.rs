//! `penstock run` over real sockets: serving, probes, metrics, logs, ports, signals.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::{Connection, Folder, Reply, Server, api, penstock};

#[test]
fn serves_answers_probes_and_counts() {
    let folder = Folder::new("run");
    folder.write("artifacts/a.xml", api("one"));
    let server = Server::start(&folder, &["run", "artifacts"], "[access_log]\nto = \"access.log\"");
    let reply = server.get("/a");
    assert_eq!((reply.status, reply.body.as_str()), (200, "{\"text\": \"one\"}"), "{}", server.log());
    assert_eq!(server.get("/nowhere").status, 404);
    assert_eq!(server.admin("/liveness").body, "{\"server\" : \"started\"}");
    let health = server.admin("/healthz");
    assert_eq!((health.status, health.body.as_str()), (200, "{\"status\":\"ready\"}"));
    server.wait_for_metrics(&[
        "wso2_integration_api_request_count_total{service_name=\"A\",service_type=\"api\"} 1\n",
        "wso2_integration_api_request_count_error_total{service_name=\"A\",service_type=\"api\"} 0\n",
        "wso2_integration_api_latency_seconds_count{service_name=\"A\",service_type=\"api\"} 1\n",
        "wso2_integration_api_latency_seconds_bucket{service_name=\"A\",service_type=\"api\",le=\"+Inf\"} 1\n",
        "wso2_integration_service_up{service_name=\"A\",service_type=\"api\"} 1\n",
        "wso2_integration_server_up{host=\"localhost\"",
        "# TYPE wso2_integration_proxy_latency_seconds histogram\n",
        "penstock_replies_total{class=\"4xx\"} 1\n",
        "process_resident_memory_bytes ",
    ]);
    assert_eq!(server.admin("/other").status, 404);
    let access = wait_for(&folder, "access.log", "404");
    assert!(access.contains("] \"GET /a HTTP/1.1\" 200 15 "), "{access}");
}

fn wait_for(folder: &Folder, file: &str, text: &str) -> String {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let found = std::fs::read_to_string(folder.0.join(file)).unwrap_or_default();
        if found.contains(text) || Instant::now() > end {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_good_are_served_and_the_faulty_named() {
    let folder = Folder::new("faulty");
    folder.write("artifacts/a.xml", api("one"));
    folder.write("artifacts/b.xml", "<proxy xmlns='http://ws.apache.org/ns/synapse' name='B'><target><inSequence><nonsense/></inSequence></target></proxy>");
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    assert_eq!(server.get("/a").status, 200);
    server.wait_for_log("artifacts/b.xml:1:77: error: unknown mediator <nonsense>");
    server.wait_for_log("FAILED   proxy B (artifacts/b.xml:1:1)");
    assert_eq!(server.admin("/healthz").body, "{\"status\":\"ready\",\"faulty\":[\"B\"]}");
    let strict = penstock(&folder.0, &["run", "--strict", "artifacts"]);
    assert_eq!(strict.status, 1);
    assert!(strict.stderr.contains("b.xml:1:77: error:") && strict.stderr.contains("--strict"), "{}", strict.stderr);
}

#[test]
fn a_taken_port_is_named() {
    let folder = Folder::new("taken");
    let taken = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    folder.write("penstock.toml", format!("listener.http_port = {port}\nlistener.https_port = 0\nadmin.port = 0"));
    let done = penstock(&folder.0, &["run"]);
    assert_eq!(done.status, 3);
    assert!(done.stderr.contains(&format!("error: port {port} of 0.0.0.0 is taken: ")), "{}", done.stderr);
    assert!(done.stderr.contains("listener.http_port"), "{}", done.stderr);
}

#[test]
fn lines_of_json_carry_the_correlation_id() {
    let folder = Folder::new("json-log");
    folder.write(
        "a.xml",
        "<api xmlns='http://ws.apache.org/ns/synapse' name='A' context='/a'><resource methods='GET'><inSequence>\
         <log level='custom'><property name='k' value='v'/></log><respond/></inSequence></resource></api>",
    );
    let mut server = Server::start(&folder, &["run", "a.xml", "--log-format", "json"], "");
    server.get("/a");
    server.wait_for_log("\"message\":\"k = v\"");
    let log = server.log();
    for line in log.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
    let line = log.lines().find(|line| line.contains("k = v")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(
        (&line["level"], &line["logger"], &line["service"]),
        (&"INFO".into(), &"LogMediator".into(), &"api:A".into())
    );
    assert!(line["correlation_id"].as_str().is_some_and(|id| id.len() > 8), "{line}");
}

/// A backend that takes one request and responds when the test wants it.
struct HeldBackend {
    port: u16,
    arrived: Receiver<()>,
    respond: Sender<()>,
}

impl HeldBackend {
    fn start() -> HeldBackend {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ((arrive, arrived), (respond, response)) = (channel(), channel());
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
            while !request.ends_with(b"hello") {
                let read = socket.read(&mut buffer).unwrap();
                assert!(read > 0, "the request broke off");
                request.extend_from_slice(&buffer[..read]);
            }
            arrive.send(()).unwrap();
            if response.recv().is_ok() {
                let _ =
                    socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello");
            }
        });
        HeldBackend { port, arrived, respond }
    }

    /// Sends a request through a server that runs in the folder; returns when the backend has it.
    fn request(&self, folder: &Folder, toml: &str) -> (Server, JoinHandle<std::io::Result<Reply>>) {
        let artifact = format!(
            "<proxy xmlns='http://ws.apache.org/ns/synapse' name='P' transports='http'><target><inSequence>\
             <property name='DISABLE_CHUNKING' value='true' scope='axis2'/></inSequence><endpoint>\
             <address uri='http://127.0.0.1:{}/'/></endpoint><outSequence><send/></outSequence></target></proxy>",
            self.port
        );
        folder.write("p.xml", artifact);
        let server = Server::start(folder, &["run", "p.xml"], toml);
        let port = server.http;
        let client = std::thread::spawn(move || {
            Connection::open(port).try_request("POST", "/services/P", &[("Content-Type", "text/plain")], b"hello")
        });
        self.arrived.recv_timeout(Duration::from_secs(30)).unwrap();
        (server, client)
    }
}

#[test]
fn a_running_request_is_finished_before_the_end() {
    let backend = HeldBackend::start();
    let folder = Folder::new("drain");
    let (mut server, client) = backend.request(&folder, "");
    server.signal(Signal::TERM);
    server.wait_for_log("SIGTERM: requests that are running get 30 s");
    backend.respond.send(()).unwrap();
    let reply = client.join().unwrap().unwrap();
    assert_eq!((reply.status, reply.body.as_str()), (200, "hello"));
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    assert!(std::net::TcpStream::connect(("127.0.0.1", server.http)).is_err());
}

#[test]
fn a_second_signal_ends_at_once() {
    let backend = HeldBackend::start();
    let folder = Folder::new("second");
    let (mut server, _client) = backend.request(&folder, "");
    server.signal(Signal::INT);
    server.wait_for_log("SIGINT");
    server.signal(Signal::INT);
    // The backend has not responded.
    assert_eq!(server.wait().code(), Some(130));
}

#[test]
fn the_end_is_bounded() {
    let backend = HeldBackend::start();
    let folder = Folder::new("bounded");
    let (mut server, _client) = backend.request(&folder, "[timeouts]\ndrain = \"300ms\"");
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
}

#[test]
fn a_certificate_of_ones_own_is_used_on_both_sides() {
    let folder = Folder::new("tls");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    folder.write("certificate.pem", made.cert.pem());
    folder.write("key.pem", made.signing_key.serialize_pem());
    folder.write("artifacts/a.xml", api("one"));
    let https = support::ports::free();
    let proxy = format!(
        "<proxy xmlns='http://ws.apache.org/ns/synapse' name='P' transports='http'><target><endpoint><address uri='https://localhost:{https}/a'/></endpoint>\
         <outSequence><send/></outSequence></target></proxy>"
    );
    folder.write("artifacts/p.xml", proxy);
    let tls = "[tls]\ncertificate = \"certificate.pem\"\nkey = \"key.pem\"\n";
    let fixed = |more: &str| format!("{tls}{more}\n");
    let config = |more: &str| {
        format!("listener.http_port = 0\nlistener.https_port = {https}\nadmin.port = 0\nworkers = 1\n{}", fixed(more))
    };
    let server = Server::start_with(&folder, &["run", "artifacts"], &config("trust = \"certificate.pem\""));
    let reply = server.get("/services/P");
    assert_eq!((reply.status, reply.body.as_str()), (200, "{\"text\": \"one\"}"), "{}", server.log());
    drop(server);
    // It is not trusted by default.
    let server = Server::start_with(&folder, &["run", "artifacts"], &config(""));
    assert_ne!(server.get("/services/P").status, 200);
}
