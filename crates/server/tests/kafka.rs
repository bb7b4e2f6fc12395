//! Kafka with the running program.
//! `tools/with-kafka cargo test -p penstock-server --features kafka --test kafka -- --ignored`

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use support::{Folder, Server};

fn servers() -> String {
    format!("127.0.0.1:{}", std::env::var("PENSTOCK_TEST_KAFKA").expect("run under tools/with-kafka"))
}

/// Produces records by the producer of Kafka itself. The topic is made with the first.
fn produce(topic: &str, values: &[&str]) {
    let producer = std::env::var("PENSTOCK_TEST_KAFKA_PRODUCER").unwrap();
    let mut child = Command::new(producer).arg(topic).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(values.join("\n").as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

fn inbound(topic: &str, parameters: &str) -> String {
    format!(
        r#"<inboundEndpoint xmlns="http://ws.apache.org/ns/synapse" name="In" sequence="take" onError="failed"
    class="org.wso2.carbon.inbound.kafka.KafkaMessageConsumer">
  <parameters>
    <parameter name="bootstrap.servers">{}</parameter>
    <parameter name="key.deserializer">org.apache.kafka.common.serialization.StringDeserializer</parameter>
    <parameter name="value.deserializer">org.apache.kafka.common.serialization.StringDeserializer</parameter>
    <parameter name="group.id">{topic}-group</parameter>
    <parameter name="poll.timeout">1000</parameter>
    <parameter name="topic.name">{topic}</parameter>
    <parameter name="contentType">application/json</parameter>
    <parameter name="auto.offset.reset">earliest</parameter>
    {parameters}
  </parameters>
</inboundEndpoint>"#,
        servers()
    )
}

const TAKE: &str = r#"<definitions xmlns="http://ws.apache.org/ns/synapse">
  <sequence name="take">
    <log><property name="took" expression="json-eval($.do)"/><property name="offset" expression="get-property('offset')"/></log>
    <filter source="json-eval($.do)" regex="rollback"><then><property name="SET_ROLLBACK_ONLY" value="true"/></then></filter>
  </sequence>
  <sequence name="failed"><log><property name="gave up" expression="json-eval($.do)"/></log></sequence>
</definitions>"#;

#[test]
#[ignore = "needs Kafka"]
fn records_are_committed_after_their_flow_and_tried_again_when_it_rolls_back() {
    let folder = Folder::new("kafka-inbound");
    folder.write("artifacts/take.xml", TAKE);
    let manual = r#"<parameter name="enable.auto.commit">false</parameter>
    <parameter name="failure.retry.count">2</parameter><parameter name="failure.retry.interval">50</parameter>"#;
    produce("orders", &["{\"do\":\"one\"}", "{\"do\":\"rollback\"}", "{\"do\":\"two\"}"]);
    folder.write("artifacts/in.xml", inbound("orders", manual));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    server.wait_for_log("took = one, offset = 0");
    server.wait_for_log("gave up = rollback");
    server.wait_for_log("took = two, offset = 2");
    assert_eq!(server.log().matches("took = rollback").count(), 3, "{}", server.log());
    server.signal(Signal::TERM);
    server.wait();
    produce("orders", &["{\"do\":\"three\"}"]);
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    server.wait_for_log("took = three, offset = 3");
    assert!(!server.log().contains("took = two"), "{}", server.log());
}
