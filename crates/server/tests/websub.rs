//! Subscriptions to topics on the running binary: they survive a restart, as do pending events
//! yet.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use support::{Connection, Folder, Server, penstock};

const TOML: &str = "gateway.http_port = 0\ngateway.https_port = 0\nadapter.state = \"kept\"";

const HUB: &str = "type: api\ndata:\n  name: News\n  version: 1.0.0\n  context: /news\n  type: WEBSUB\n  \
    operations: [{target: arrivals, verb: SUBSCRIBE, authType: None}]\n";

/// A subscriber: its address, and the requests it got.
fn subscriber() -> (String, Receiver<String>) {
    subscriber_at(TcpListener::bind("127.0.0.1:0").unwrap())
}

fn subscriber_at(listener: TcpListener) -> (String, Receiver<String>) {
    let url = format!("http://{}/in", listener.local_addr().unwrap());
    let (sender, got) = channel();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let (mut request, mut piece) = (String::new(), [0; 1024]);
            while !request.ends_with("the end") {
                match socket.read(&mut piece) {
                    Ok(count) if count > 0 => request.push_str(&String::from_utf8_lossy(&piece[..count])),
                    _ => break,
                }
            }
            let _ = socket.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
            let _ = sender.send(request);
        }
    });
    (url, got)
}

fn client(server: &Server) -> Connection {
    let log = server.log();
    let (_, rest) = log.split_once("  APIs     http://localhost:").unwrap_or_else(|| panic!("{log}"));
    let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Connection::open(port.parse().unwrap())
}

#[test]
fn subscriptions_are_there_after_the_next_start() {
    let (folder, (callback, got)) = (Folder::new("websub"), subscriber());
    folder.write("all/News/api.yaml", HUB);
    let server = Server::start(&folder, &["run", "all"], TOML);
    let kept = folder.0.join("kept/websub.json");
    assert!(!kept.exists(), "nothing is written before there is something");
    let path = format!("/news/1.0.0?hub.mode=subscribe&hub.topic=arrivals&hub.callback={callback}&hub.secret=s");
    assert_eq!(client(&server).request("POST", &path, &[], b"").status, 202, "{}", server.log());
    assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    // No farewell: what was promised is on the disk.
    server.signal(rustix::process::Signal::KILL);
    drop(server);
    let server = Server::start(&folder, &["run", "all"], TOML);
    let path = "/news/1.0.0/webhooks_events_receiver_resource?topic=arrivals";
    assert_eq!(client(&server).request("POST", path, &[("Content-Type", "text/plain")], b"the end").status, 202);
    let request = got.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(request.starts_with("POST /in HTTP/1.1\r\n") && request.ends_with("\r\n\r\nthe end"), "{request}");
    assert!(request.to_ascii_lowercase().contains("x-hub-signature: sha1="), "{request}");
    drop(server);
    std::fs::write(&kept, "{\"version\": 9}").unwrap();
    let config = folder.write("penstock.toml", format!("admin.port = 0\nlistener.http_port = 0\n{TOML}"));
    let finished = penstock(&folder.0, &["run", "all", "--config", config.to_str().unwrap()]);
    assert!(finished.status != 0 && finished.stderr.contains("websub.json"), "{}", finished.stderr);
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "{\"version\": 9}", "what cannot be read is not written over");
}

#[test]
fn pending_events_are_sent_after_a_restart() {
    let folder = Folder::new("websub-events");
    folder.write("all/News/api.yaml", HUB);
    let server = Server::start(&folder, &["run", "all"], TOML);
    // No server listens there yet.
    let address = format!("127.0.0.1:{}", support::ports::free());
    let path = format!("/news/1.0.0?hub.mode=subscribe&hub.topic=arrivals&hub.callback=http://{address}/in");
    assert_eq!(client(&server).request("POST", &path, &[], b"").status, 202, "{}", server.log());
    let kept = folder.0.join("kept/websub-events");
    assert!(!kept.exists(), "nothing is written before there is something");
    let event = |server: &Server, body: &str| {
        let path = "/news/1.0.0/webhooks_events_receiver_resource?topic=arrivals";
        let fields = [("Content-Type", "text/plain")];
        assert_eq!(client(server).request("POST", path, &fields, body.as_bytes()).status, 202);
    };
    for number in 0..20 {
        event(&server, &format!("{number} is the end"));
    }
    assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    // No farewell, and half an entry at the end.
    server.signal(rustix::process::Signal::KILL);
    drop(server);
    std::fs::OpenOptions::new().append(true).open(&kept).unwrap().write_all(&[9; 40]).unwrap();
    let mut server = Server::start(&folder, &["run", "all"], TOML);
    server.wait_for_log("40 bytes at the end of");
    event(&server, "20 is the end");
    server.signal(rustix::process::Signal::KILL);
    drop(server);
    let server = Server::start(&folder, &["run", "all"], TOML);
    let (_, got) = subscriber_at(TcpListener::bind(&address).unwrap());
    // In order, each at least once: the first may have been sent when a process was killed.
    let mut last = None;
    while last != Some(20) {
        let request = got.recv_timeout(Duration::from_secs(40)).unwrap();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.to_ascii_lowercase().contains("content-type: text/plain"), "{head}");
        assert!(head.contains("/news/1.0.0>; rel=\"hub\", <http://localhost"), "{head}");
        let number: u32 = body.split(' ').next().unwrap().parse().unwrap();
        assert!(number == last.map_or(0, |last| last + 1) || Some(number) == last, "{number} after {last:?}");
        last = Some(number);
    }
    // Recorded deliveries are not repeated. Records are written asynchronously.
    let size = || std::fs::metadata(&kept).unwrap().len();
    let mut before = 0;
    while std::mem::replace(&mut before, size()) != size() {
        std::thread::sleep(Duration::from_millis(500));
    }
    drop(server);
    let server = Server::start(&folder, &["run", "all"], TOML);
    event(&server, "21 is the end");
    let request = got.recv_timeout(Duration::from_secs(20)).unwrap();
    let number: u32 = request.split_once("\r\n\r\n").unwrap().1.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(number, 21, "what was delivered is not sent again");
    drop(server);
    std::fs::write(&kept, "something else").unwrap();
    let config = folder.write("penstock.toml", format!("admin.port = 0\nlistener.http_port = 0\n{TOML}"));
    let finished = penstock(&folder.0, &["run", "all", "--config", config.to_str().unwrap()]);
    assert!(finished.status != 0 && finished.stderr.contains("websub-events"), "{}", finished.stderr);
}
