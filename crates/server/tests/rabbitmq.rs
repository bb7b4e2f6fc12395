//! RabbitMQ with the running program: stores, endpoints, inbound endpoints, listeners of proxy services.
//! `tools/with-rabbitmq cargo test -p penstock-server --test rabbitmq -- --ignored`

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::time::{Duration, Instant};

use lapin::message::Delivery;
use lapin::options::*;
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use support::broker::{self, EndpointProxies, Gate, PATIENCE, order};
use support::{Folder, Server};
use tokio::runtime::Runtime;

fn port() -> u16 {
    broker::port("PENSTOCK_TEST_RABBITMQ")
}

/// A client of the broker, which is not Penstock's.
struct Client {
    runtime: Runtime,
    channel: Channel,
    _connection: Connection,
}

impl Client {
    fn open() -> Client {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let uri = format!("amqp://guest:guest@127.0.0.1:{}/%2f", port());
        let (connection, channel) = runtime.block_on(async {
            let connection = Connection::connect(&uri, ConnectionProperties::default()).await.unwrap();
            let channel = connection.create_channel().await.unwrap();
            channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
            (connection, channel)
        });
        Client { runtime, channel, _connection: connection }
    }

    fn declare(&self, queue: &str, arguments: &[(&str, AMQPValue)]) {
        let mut table = FieldTable::default();
        for (name, value) in arguments {
            table.insert((*name).into(), value.clone());
        }
        let declared = self.channel.queue_declare(queue.into(), QueueDeclareOptions::durable(), table);
        self.runtime.block_on(declared).unwrap();
    }

    fn publish(&self, queue: &str, body: &str, properties: BasicProperties) {
        self.runtime.block_on(async {
            let options = BasicPublishOptions::default();
            let confirm = self.channel.basic_publish("".into(), queue.into(), options, body.as_bytes(), properties);
            assert!(confirm.await.unwrap().await.unwrap().is_ack());
        });
    }

    /// The next message of a queue, acknowledged.
    fn take(&self, queue: &str) -> Delivery {
        let end = Instant::now() + PATIENCE;
        self.runtime.block_on(async {
            loop {
                let got = self.channel.basic_get(queue.into(), BasicGetOptions { no_ack: true }).await.unwrap();
                if let Some(message) = got {
                    return message.delivery;
                }
                assert!(Instant::now() < end, "the queue `{queue}` stays empty");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
    }

    fn count(&self, queue: &str) -> u32 {
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let queue = self.channel.queue_declare(queue.into(), options, FieldTable::default());
        self.runtime.block_on(queue).unwrap().message_count()
    }

    fn wait_until_empty(&self, queue: &str) {
        let end = Instant::now() + PATIENCE;
        while self.count(queue) > 0 {
            assert!(Instant::now() < end, "the queue `{queue}` does not run empty");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn text(delivery: &Delivery) -> String {
    String::from_utf8_lossy(&delivery.data).into_owned()
}

fn dead_letters_to(queue: &str) -> [(&'static str, AMQPValue); 2] {
    [
        ("x-dead-letter-exchange", AMQPValue::LongString("".into())),
        ("x-dead-letter-routing-key", AMQPValue::LongString(queue.into())),
    ]
}

fn store(queue: &str, broker: u16) -> String {
    format!(
        r#"class="org.apache.synapse.message.store.impl.rabbitmq.RabbitMQStore">
    <parameter name="store.rabbitmq.host.name">127.0.0.1</parameter>
    <parameter name="store.rabbitmq.host.port">{broker}</parameter>
    <parameter name="store.rabbitmq.queue.name">{queue}</parameter>
    <parameter name="store.rabbitmq.exchange.name">{queue}-exchange</parameter>
    <parameter name="store.producer.guaranteed.delivery.enable">true</parameter>"#
    )
}

#[test]
#[ignore = "needs RabbitMQ"]
fn stored_messages_are_forwarded_in_their_order() {
    let wait_until_empty = || Client::open().wait_until_empty("store-order");
    broker::test_order("rabbitmq-store", &store("store-order", port()), wait_until_empty);
}

#[test]
#[ignore = "needs RabbitMQ"]
fn no_stored_message_is_lost_when_the_process_is_killed() {
    let wait_until_empty = || Client::open().wait_until_empty("store-kill");
    broker::test_kills("rabbitmq-kill", "", &store("store-kill", port()), wait_until_empty);
}

#[test]
#[ignore = "needs RabbitMQ"]
fn a_store_whose_broker_is_away_faults_and_works_again_when_it_is_back() {
    broker::test_recovery("rabbitmq-away", port(), |port| store("store-away", port), "no connection to RabbitMQ");
}

fn inbound(name: &str, queue: &str, broker: u16, parameters: &str) -> String {
    format!(
        r#"<inboundEndpoint xmlns="http://ws.apache.org/ns/synapse" name="{name}" protocol="rabbitmq" sequence="take">
  <parameters>
    <parameter name="rabbitmq.connection.factory">Broker</parameter>
    <parameter name="rabbitmq.server.host.name">127.0.0.1</parameter>
    <parameter name="rabbitmq.server.port">{broker}</parameter>
    <parameter name="rabbitmq.queue.name">{queue}</parameter>
    {parameters}
  </parameters>
</inboundEndpoint>"#
    )
}

/// What the sequence does is written in the message.
const TAKE: &str = r#"<sequence xmlns="http://ws.apache.org/ns/synapse" name="take">
  <log><property name="took" expression="json-eval($.do)"/><property name="order" expression="$trp:X-Order"/></log>
  <switch source="json-eval($.do)">
    <case regex="rollback"><property name="SET_ROLLBACK_ONLY" value="true"/></case>
    <case regex="requeue"><property name="SET_REQUEUE_ON_ROLLBACK" value="true"/></case>
    <case regex="fail"><throwError type="MINE" errorMessage="it broke"/></case>
  </switch>
</sequence>"#;

const JSON: &str = r#"<parameter name="rabbitmq.message.content.type">application/json</parameter>"#;

fn with_order(value: &str) -> BasicProperties {
    let mut headers = FieldTable::default();
    headers.insert("X-Order".into(), AMQPValue::LongString(value.into()));
    BasicProperties::default().with_headers(headers)
}

#[test]
#[ignore = "needs RabbitMQ"]
fn a_message_is_acknowledged_after_its_flow_and_dead_lettered_when_it_rolls_back() {
    let client = Client::open();
    client.declare("in-dead", &[]);
    client.declare("in-error", &[]);
    client.declare("in-first", &dead_letters_to("in-dead"));
    client.declare("in-loop", &dead_letters_to("in-loop-wait"));
    let waits = [dead_letters_to("in-loop").to_vec(), vec![("x-message-ttl", AMQPValue::LongInt(50))]].concat();
    client.declare("in-loop-wait", &waits);
    let folder = Folder::new("rabbitmq-inbound");
    folder.write("artifacts/take.xml", TAKE);
    let manual = format!(
        r#"{JSON}<parameter name="rabbitmq.queue.auto.ack">false</parameter>
    <parameter name="rabbitmq.message.requeue.delay">20</parameter>"#
    );
    let limited = format!(
        r#"{manual}<parameter name="rabbitmq.message.max.dead.lettered.count">2</parameter>
    <parameter name="rabbitmq.message.error.exchange.name">amq.direct</parameter>
    <parameter name="rabbitmq.message.error.queue.routing.key">in-error</parameter>"#
    );
    let bound = client.channel.queue_bind(
        "in-error".into(),
        "amq.direct".into(),
        "in-error".into(),
        QueueBindOptions::default(),
        FieldTable::default(),
    );
    client.runtime.block_on(bound).unwrap();
    folder.write("artifacts/first.xml", inbound("First", "in-first", port(), &manual));
    folder.write("artifacts/loop.xml", inbound("Loop", "in-loop", port(), &limited));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");

    client.publish("in-first", &order("well"), with_order("7"));
    server.wait_for_log("took = well, order = 7");
    client.wait_until_empty("in-first");
    for action in ["rollback", "fail"] {
        client.publish("in-first", &order(action), BasicProperties::default());
        assert_eq!(text(&client.take("in-dead")), order(action), "{}", server.log());
    }
    client.publish("in-first", &order("requeue"), BasicProperties::default());
    server.wait_for_log_times("took = requeue", 3);

    // Dead-lettered three times, then the error queue has it.
    client.publish("in-loop", &order("rollback"), BasicProperties::default());
    assert_eq!(text(&client.take("in-error")), order("rollback"), "{}", server.log());
    server.wait_for_log_times("took = rollback", 1 + 4);
    assert_eq!(server.log().matches("took = rollback").count(), 1 + 4, "{}", server.log());
}

#[test]
#[ignore = "needs RabbitMQ"]
fn a_consumer_returns_messages_that_were_under_way_and_connects_again() {
    let client = Client::open();
    client.declare("in-away", &[]);
    let broker = Gate::open(port());
    let folder = Folder::new("rabbitmq-inbound-away");
    folder.write("artifacts/take.xml", TAKE);
    folder.write("artifacts/in.xml", inbound("Away", "in-away", broker.port, JSON));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    client.publish("in-away", &order("one"), BasicProperties::default());
    server.wait_for_log("took = one");
    broker.shut();
    server.wait_for_log("no connection to RabbitMQ");
    client.publish("in-away", &order("two"), BasicProperties::default());
    broker.reopen();
    server.wait_for_log("took = two");
    client.wait_until_empty("in-away");
}

#[test]
#[ignore = "needs RabbitMQ"]
fn an_endpoint_publishes_and_waits_for_replies_of_a_listening_proxy() {
    let client = Client::open();
    client.declare("out-plain", &[]);
    let folder = Folder::new("rabbitmq-endpoint");
    let to = |query: &str| format!("rabbitmq:/x?rabbitmq.connection.factory=Broker&amp;{query}");
    let proxies = EndpointProxies {
        transport: "rabbitmq",
        properties: r#"<property name="rabbitmq.message.priority" value="4" scope="axis2"/>"#,
        plain: &to("rabbitmq.queue.name=out-plain&amp;rabbitmq.exchange.name=out-exchange"),
        asked: &to("rabbitmq.queue.name=out-answer"),
        wait: "RABBITMQ_WAIT_REPLY",
        silent: &to("rabbitmq.queue.name=out-silent"),
        answer: "Answer",
        parameters: r#"<parameter name="rabbitmq.connection.factory">Broker</parameter>
    <parameter name="rabbitmq.queue.name">out-answer</parameter>"#,
    };
    folder.write("artifacts/a.xml", proxies.to_xml());
    let toml = format!(
        "[connections.Broker]\ntransport = \"rabbitmq\"\n\"rabbitmq.server.host.name\" = \"127.0.0.1\"\n\
         \"rabbitmq.server.port\" = {}\n",
        port()
    );
    let mut server = Server::start(&folder, &["run", "artifacts"], &toml);
    server.wait_for_log("consuming the queue `out-answer`");
    assert_eq!(server.post("/services/Plain", "application/json", "{\"a\":1}").status, 202, "{}", server.log());
    let delivery = client.take("out-plain");
    assert_eq!(text(&delivery), "{\"a\":1}");
    assert_eq!(delivery.properties.content_type().as_ref().unwrap().as_str(), "application/json");
    assert_eq!((*delivery.properties.delivery_mode(), *delivery.properties.priority()), (Some(2), Some(4)));

    let reply = server.post("/services/Ask", "application/json", "{\"a\":5}");
    assert_eq!((reply.status, reply.body.as_str()), (200, "{\"got\":\"5\"}"), "{}", server.log());
    let reply = server.post("/services/Silent", "application/json", "{\"a\":5}");
    assert!(reply.body.contains("fault"), "{}\n{}", reply.body, server.log());
    server.wait_for_log("Did not receive a response within 200ms to the replyTo queue");
}
