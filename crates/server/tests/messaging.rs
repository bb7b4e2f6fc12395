//! What acts without a request, in the running program: tasks, stores, processors.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::Signal;
use support::broker::{store_and_forward, test_kills};
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

#[test]
fn stores_in_a_database_lose_nothing_when_the_process_is_killed() {
    test_kills("sqlite-kill", DATABASE, JDBC, || {});
}

#[test]
fn stores_in_memory_outlive_the_process_in_a_database_of_the_configuration() {
    test_kills("memory-kill", "message_stores.in_memory_database = \"sqlite:stores.db\"\n", ">", || {});
}

/// The configuration that leads the data source of the stores to a server.
fn database_at(variable: &str) -> String {
    let url = std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set; see tools/with-…"));
    DATABASE.replace("sqlite:orders.db", &url)
}

#[test]
#[ignore = "needs PostgreSQL: tools/with-postgresql"]
fn stores_on_postgresql_lose_nothing_when_the_process_is_killed() {
    test_kills("postgresql-kill", &database_at("PENSTOCK_TEST_POSTGRESQL"), JDBC, || {});
}

#[test]
#[ignore = "needs MariaDB: tools/with-mariadb"]
fn stores_on_mariadb_lose_nothing_when_the_process_is_killed() {
    test_kills("mariadb-kill", &database_at("PENSTOCK_TEST_MARIADB"), JDBC, || {});
}

fn resequencing(timeout: &str) -> String {
    format!(
        r#"class="org.apache.synapse.message.store.impl.resequencer.ResequenceMessageStore">
    <parameter name="store.jdbc.dsName">jdbc/Orders</parameter>
    <parameter name="store.jdbc.table">numbered{}</parameter>
    <parameter name="store.resequence.timeout">{timeout}</parameter>
    <parameter name="store.resequence.id.path" expression="json-eval($.id)"/>"#,
        timeout.replace('-', "_")
    )
}

fn resequences(folder: &str, toml: &str) {
    let folder = Folder::new(folder);
    let (port, received) = backend(&[500, 200]);
    folder.write("artifacts/a.xml", store_and_forward(&resequencing("-1"), port, EVERY_50_MS));
    let mut server = Server::start(&folder, &["run", "artifacts"], toml);
    let post = |server: &Server, id| server.post("/orders", "application/json", &order(id)).status;
    for id in [3, 1, 2] {
        assert_eq!(post(&server, id), 202, "{}", server.log());
    }
    let no_number = server.post("/orders", "application/json", "{\"id\":\"x\"}");
    assert_eq!(no_number.status, 500, "{}", server.log());
    // The first attempt fails; no other message overtakes it.
    for id in [1, 1, 2, 3] {
        assert_eq!(received.recv_timeout(PATIENCE).unwrap(), order(id), "{}", server.log());
    }
    let metric = "name=\"Forward\",outcome=\"succeeded\"} 3";
    server.wait_for_metrics(&[metric]);
    server.signal(Signal::KILL);
    server.wait();
    // The last number is kept.
    let server = Server::start(&folder, &["run", "artifacts"], toml);
    for id in [5, 4] {
        assert_eq!(post(&server, id), 202);
    }
    let mut next = received.recv_timeout(PATIENCE).unwrap();
    if next == order(3) {
        // It was delivered before the process was killed, and not yet removed.
        next = received.recv_timeout(PATIENCE).unwrap();
    }
    assert_eq!(next, order(4), "{}", server.log());
    assert_eq!(received.recv_timeout(PATIENCE).unwrap(), order(5), "{}", server.log());
    drop(server);
    // After the timeout a gap is passed over, and a late message is not lost.
    folder.write("artifacts/a.xml", store_and_forward(&resequencing("1"), port, EVERY_50_MS));
    let server = Server::start(&folder, &["run", "artifacts"], toml);
    for id in [9, 8] {
        assert_eq!(post(&server, id), 202);
        assert_eq!(received.recv_timeout(PATIENCE).unwrap(), order(id), "{}", server.log());
    }
}

#[test]
fn a_resequencing_store_gives_messages_in_the_order_of_their_numbers() {
    resequences("resequence", DATABASE);
}

#[test]
#[ignore = "needs PostgreSQL: tools/with-postgresql"]
fn a_resequencing_store_on_postgresql_keeps_the_order() {
    resequences("resequence-postgresql", &database_at("PENSTOCK_TEST_POSTGRESQL"));
}

#[test]
#[ignore = "needs MariaDB: tools/with-mariadb"]
fn a_resequencing_store_on_mariadb_keeps_the_order() {
    resequences("resequence-mariadb", &database_at("PENSTOCK_TEST_MARIADB"));
}

/// A store whose database is away, the store that takes its messages, and the processor that brings them to a third one,
/// which puts them into their order again.
#[test]
fn a_message_that_its_store_does_not_take_reaches_the_failover_store() {
    let folder = Folder::new("failover-store");
    let (port, received) = backend(&[200]);
    let artifacts = store_and_forward(&resequencing("-1"), port, EVERY_50_MS)
        .replace("<store messageStore=\"Orders\"/>", "<store messageStore=\"Away\"/>")
        .replace(
            "<endpoint name",
            r#"<messageStore name="Away" class="org.apache.synapse.message.store.impl.resequencer.ResequenceMessageStore">
    <parameter name="store.jdbc.connection.url">jdbc:postgresql://127.0.0.1:9/away</parameter>
    <parameter name="store.resequence.timeout">-1</parameter>
    <parameter name="store.resequence.id.path" expression="json-eval($.id)"/>
    <parameter name="store.producer.guaranteed.delivery.enable">true</parameter>
    <parameter name="store.failover.message.store.name">Spare</parameter>
  </messageStore>
  <messageStore name="Spare"/>
  <messageProcessor name="Return" messageStore="Spare"
      class="org.apache.synapse.message.processor.impl.failover.FailoverScheduledMessageForwardingProcessor">
    <parameter name="interval">50</parameter>
    <parameter name="message.target.store.name">Orders</parameter>
  </messageProcessor>
  <endpoint name"#,
        );
    folder.write("artifacts/a.xml", artifacts);
    let server = Server::start(&folder, &["run", "artifacts"], DATABASE);
    for id in [2, 1] {
        assert_eq!(server.post("/orders", "application/json", &order(id)).status, 202, "{}", server.log());
    }
    for id in [1, 2] {
        assert_eq!(received.recv_timeout(PATIENCE).unwrap(), order(id), "{}", server.log());
    }
}

/// Two nodes with one database: the task runs on one, and on the other after the first is gone.
fn runs_on_one_node(name: &str, database: &str) {
    let (folders, backends) =
        ([1, 2].map(|node| Folder::new(&format!("{name}-{node}"))), [backend(&[200]), backend(&[200])]);
    let toml =
        |node: usize| format!("[coordination]\ndatabase = \"{database}\"\nnode = \"node{node}\"\nlease = \"5s\"\n");
    for (folder, (port, _)) in folders.iter().zip(&backends) {
        folder.write(
            "artifacts/a.xml",
            format!(
                r#"<definitions xmlns="http://ws.apache.org/ns/synapse">
  <sequence name="tick">
    <property name="DISABLE_CHUNKING" value="true" scope="axis2"/>
    <call><endpoint><http uri-template="http://127.0.0.1:{port}/" method="POST"/></endpoint></call>
  </sequence>
  <task name="{name}">
    <trigger interval="1"/>
    <property name="injectTo" value="sequence"/>
    <property name="sequenceName" value="tick"/>
    <property name="message"><n xmlns="">42</n></property>
  </task>
</definitions>"#
            ),
        );
    }
    let start = |node: usize| Server::start(&folders[node], &["run", "artifacts"], &toml(node));
    let standby = format!("penstock_background_service_up{{kind=\"task\",name=\"{name}\"}} 0");
    let next = |node: usize| backends[node].1.recv_timeout(PATIENCE);
    let mut first = start(0);
    first.wait_for_log("runs on this node, with lease");
    let mut second = start(1);
    second.wait_for_metrics(&[&standby]);
    for _ in 0..2 {
        next(0).unwrap();
    }
    assert!(backends[1].1.try_recv().is_err(), "the task ran on both nodes");
    first.signal(Signal::KILL);
    first.wait();
    second.wait_for_log("runs on this node, with lease");
    next(1).unwrap();
    // A node that comes back waits; one that stops gives its leases back.
    let mut first = start(0);
    first.wait_for_metrics(&[&standby]);
    backends[0].1.try_iter().count();
    next(1).unwrap();
    assert!(backends[0].1.try_recv().is_err(), "the task ran on both nodes");
    drop(second);
    first.wait_for_log("runs on this node, with lease");
    next(0).unwrap();
}

#[test]
fn a_coordinated_task_runs_on_one_node() {
    let folder = Folder::new("coordination");
    runs_on_one_node("Coordinated", &format!("sqlite:{}", folder.0.join("leases.db").display()));
}

#[test]
#[ignore = "needs PostgreSQL: tools/with-postgresql"]
fn a_task_coordinated_over_postgresql_runs_on_one_node() {
    runs_on_one_node("CoordinatedP", &std::env::var("PENSTOCK_TEST_POSTGRESQL").unwrap());
}

#[test]
#[ignore = "needs MariaDB: tools/with-mariadb"]
fn a_task_coordinated_over_mariadb_runs_on_one_node() {
    runs_on_one_node("CoordinatedM", &std::env::var("PENSTOCK_TEST_MARIADB").unwrap());
}
