//! What acts without a request, in the running program: tasks, stores, processors.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::Signal;
use support::broker::store_and_forward;
use support::{Folder, Server};

/// Nothing that is waited for here takes longer on any machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A backend that hands out the body of each request and responds with the next of these statuses, then with the last.
fn backend(statuses: &'static [u16]) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for (index, socket) in listener.incoming().enumerate() {
            let mut socket = socket.unwrap();
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            let body = loop {
                let read = socket.read(&mut buffer).unwrap();
                request.extend_from_slice(&buffer[..read]);
                let text = String::from_utf8_lossy(&request).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head
                    .to_ascii_lowercase()
                    .split_once("content-length: ")
                    .map_or(0, |(_, rest)| rest.split("\r\n").next().unwrap().parse::<usize>().unwrap());
                if read == 0 || body.len() >= length {
                    break body.to_owned();
                }
            };
            let status = statuses.get(index).or(statuses.last()).unwrap();
            let reply = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            socket.write_all(reply.as_bytes()).unwrap();
            if sender.send(body).is_err() {
                return;
            }
        }
    });
    (port, receiver)
}

const EVERY_50_MS: &str = r#"<parameter name="interval">50</parameter>"#;

const JDBC: &str = r#"class="org.apache.synapse.message.store.impl.jdbc.JDBCMessageStore">
    <parameter name="store.jdbc.dsName">jdbc/Orders</parameter>"#;

const DATABASE: &str = "[databases.\"jdbc/Orders\"]\nurl = \"sqlite:orders.db\"\n";

fn order(id: u32) -> String {
    format!("{{\"id\":{id}}}")
}

#[test]
fn a_stored_message_is_forwarded_once_its_backend_takes_it() {
    for (name, store) in [("memory", ">"), ("table", JDBC)] {
        let folder = Folder::new(&format!("forward-{name}"));
        let (port, received) = backend(&[500, 503, 200]);
        folder.write("artifacts/a.xml", store_and_forward(store, port, EVERY_50_MS));
        let server = Server::start(&folder, &["run", "artifacts"], DATABASE);
        for id in 1..=3 {
            assert_eq!(server.post("/orders", "application/json", &order(id)).status, 202);
        }
        // Two attempts fail, and the message stays the first.
        for id in [1, 1, 1, 2, 3] {
            assert_eq!(received.recv_timeout(PATIENCE).unwrap(), order(id), "{name}: {}", server.log());
        }
    }
}

#[test]
fn an_undeliverable_message_deactivates_the_processor_and_outlives_the_process() {
    let folder = Folder::new("undeliverable");
    let (port, received) = backend(&[500, 500, 200]);
    let parameters = r#"<parameter name="interval">50</parameter>
    <parameter name="max.delivery.attempts">2</parameter>
    <parameter name="message.processor.deactivate.sequence">deactivated</parameter>"#;
    folder.write("artifacts/a.xml", store_and_forward(JDBC, port, parameters));
    let registry = "registry.folder = \"registry\"\n";
    let toml = format!("{registry}{DATABASE}");
    let mut server = Server::start(&folder, &["run", "artifacts"], &toml);
    assert_eq!(server.post("/orders", "application/json", &order(7)).status, 202);
    for _ in 0..2 {
        assert_eq!(received.recv_timeout(PATIENCE).unwrap(), order(7));
    }
    server.wait_for_log("Successfully deactivated the message processor [Forward]");
    server.wait_for_log("PROCESSOR DEACTIVATED");
    server.signal(Signal::KILL);
    server.wait();
    // Still deactivated after a restart, until the state is another.
    let server = Server::start(&folder, &["run", "artifacts"], &toml);
    server.wait_for_metrics(&["penstock_background_service_up{kind=\"messageProcessor\",name=\"Forward\"} 0"]);
    drop(server);
    std::fs::remove_dir_all(folder.0.join("registry")).unwrap();
    let _server = Server::start(&folder, &["run", "artifacts"], &toml);
    assert_eq!(received.recv_timeout(PATIENCE).unwrap(), order(7));
}

#[test]
fn a_task_runs_at_the_start_and_as_often_as_its_count() {
    let folder = Folder::new("task");
    folder.write(
        "artifacts/a.xml",
        r#"<definitions xmlns="http://ws.apache.org/ns/synapse">
  <sequence name="tick"><log><property name="body" expression="concat('TICK ', //n)"/></log></sequence>
  <task name="Ticker">
    <trigger interval="1" count="2"/>
    <property name="injectTo" value="sequence"/>
    <property name="sequenceName" value="tick"/>
    <property name="message"><n xmlns="">42</n></property>
  </task>
</definitions>"#,
    );
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    server.wait_for_log("TICK 42");
    let metric = "penstock_background_service_messages_total{kind=\"task\",name=\"Ticker\",outcome=\"succeeded\"} 2";
    let up = "penstock_background_service_up{kind=\"task\",name=\"Ticker\"} 0";
    server.wait_for_metrics(&[metric, up]);
    server.wait_for_log_times("TICK 42", 2);
    assert_eq!(server.log().matches("TICK 42").count(), 2, "{}", server.log());
}
