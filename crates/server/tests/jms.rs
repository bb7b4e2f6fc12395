//! JMS brokers with the running program: stores, endpoints, inbound endpoints, listeners of proxy services.
//! `tools/with-activemq cargo test -p penstock-server --test jms -- --ignored`

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::time::{Duration, Instant};

use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::types::messaging::{
    AmqpValue, ApplicationProperties, Body, DistributionMode, Message, Properties, Source, Target,
};
use fe2o3_amqp::types::primitives::{SimpleValue, Symbol, Value};
use fe2o3_amqp::{Connection, Receiver, Sender, Session};
use rustix::process::Signal;
use support::broker::{self, EndpointProxies, Gate, PATIENCE, order, variable};
use support::{Folder, Server};
use tokio::runtime::Runtime;

type Sent = Message<Body<Value>>;

fn port() -> u16 {
    broker::port("PENSTOCK_TEST_JMS")
}

/// A client of the broker, which is not Penstock's.
struct Client {
    runtime: Runtime,
    session: SessionHandle<()>,
    _connection: ConnectionHandle<()>,
    links: usize,
}

impl Client {
    fn open() -> Client {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (connection, session) = runtime.block_on(async {
            let mut connection = Connection::builder()
                .container_id(format!("test-{}", std::process::id()))
                .sasl_profile(SaslProfile::Plain { username: "penstock".into(), password: "penstock".into() })
                .open(format!("amqp://127.0.0.1:{}", port()).as_str())
                .await
                .unwrap();
            let session = Session::begin(&mut connection).await.unwrap();
            (connection, session)
        });
        Client { runtime, session, _connection: connection, links: 0 }
    }

    fn link_name(&mut self) -> String {
        self.links += 1;
        format!("test-{}", self.links)
    }

    fn send(&mut self, to: &str, capability: &str, message: Sent) {
        let name = self.link_name();
        let target = Target::builder().address(to).capabilities(vec![Symbol::from(capability)]).build();
        self.runtime.block_on(async {
            let mut sender = Sender::builder().name(name).target(target).attach(&mut self.session).await.unwrap();
            assert!(sender.send(message).await.unwrap().is_accepted());
            sender.close().await.unwrap();
        });
    }

    fn receiver(&mut self, queue: &str, mode: Option<DistributionMode>) -> Receiver {
        let name = self.link_name();
        let mut source = Source::builder().address(queue).capabilities(vec![Symbol::from("queue")]);
        if let Some(mode) = mode {
            source = source.distribution_mode(mode);
        }
        let receiver = Receiver::builder().name(name).source(source.build()).credit_mode(CreditMode::Manual);
        self.runtime.block_on(receiver.attach(&mut self.session)).unwrap()
    }

    /// The next message of a queue, accepted.
    fn take(&mut self, queue: &str) -> Sent {
        let mut receiver = self.receiver(queue, None);
        self.runtime.block_on(async {
            receiver.set_credit(1).await.unwrap();
            let received = tokio::time::timeout(PATIENCE, receiver.recv::<Body<Value>>()).await;
            let delivery = received.unwrap_or_else(|_| panic!("the queue `{queue}` stays empty")).unwrap();
            receiver.accept(&delivery).await.unwrap();
            receiver.close().await.unwrap();
            delivery.into_message()
        })
    }

    fn is_empty(&mut self, queue: &str) -> bool {
        let mut receiver = self.receiver(queue, Some(DistributionMode::Copy));
        self.runtime.block_on(async {
            receiver.set_credit(1).await.unwrap();
            let received = tokio::time::timeout(Duration::from_millis(200), receiver.recv::<Body<Value>>()).await;
            let _ = receiver.close().await;
            received.is_err()
        })
    }

    fn wait_until_empty(&mut self, queue: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.is_empty(queue) {
            assert!(Instant::now() < end, "the queue `{queue}` does not run empty");
        }
    }
}

fn text_message(text: &str, properties: &[(&str, &str)]) -> Sent {
    let mut builder = ApplicationProperties::builder();
    for (name, value) in properties {
        builder = builder.insert(*name, SimpleValue::String((*value).to_owned()));
    }
    Message::builder()
        .properties(Properties { message_id: Some(format!("ID:{text}").into()), ..Properties::default() })
        .application_properties(builder.build())
        .body(Body::Value(AmqpValue(Value::String(text.to_owned()))))
        .build()
}

fn text(message: &Sent) -> String {
    let Body::Value(AmqpValue(Value::String(text))) = &message.body else { panic!("no text: {message:?}") };
    text.clone()
}

fn provider(port: u16) -> String {
    format!(
        "tcp://127.0.0.1:{port}?jms.redeliveryPolicy.maximumRedeliveries=3&amp;jms.redeliveryPolicy.initialRedeliveryDelay=20"
    )
}

fn store(queue: &str, broker: u16) -> String {
    format!(
        r#"class="org.apache.synapse.message.store.impl.jms.JmsStore">
    <parameter name="java.naming.factory.initial">org.apache.activemq.jndi.ActiveMQInitialContextFactory</parameter>
    <parameter name="java.naming.provider.url">tcp://127.0.0.1:{broker}</parameter>
    <parameter name="store.jms.destination">{queue}</parameter>
    <parameter name="store.jms.username">penstock</parameter>
    <parameter name="store.jms.password">penstock</parameter>"#
    )
}

#[test]
#[ignore = "needs ActiveMQ"]
fn stored_messages_are_forwarded_in_their_order() {
    let wait_until_empty = || Client::open().wait_until_empty("store-order");
    broker::test_order("jms-store", &store("store-order", port()), wait_until_empty);
}

#[test]
#[ignore = "needs ActiveMQ"]
fn no_stored_message_is_lost_when_the_process_is_killed() {
    broker::test_kills("jms-kill", "", &store("store-kill", port()), || Client::open().wait_until_empty("store-kill"));
}

#[test]
#[ignore = "needs ActiveMQ"]
fn a_store_whose_broker_is_away_faults_and_works_again_when_it_is_back() {
    broker::test_recovery("jms-away", port(), |port| store("store-away", port), "no connection to the JMS broker");
}

fn inbound(name: &str, destination: &str, broker: u16, parameters: &str) -> String {
    format!(
        r#"<inboundEndpoint xmlns="http://ws.apache.org/ns/synapse" name="{name}" protocol="jms" sequence="take">
  <parameters>
    <parameter name="interval">1000</parameter>
    <parameter name="java.naming.factory.initial">org.apache.activemq.jndi.ActiveMQInitialContextFactory</parameter>
    <parameter name="java.naming.provider.url">{}</parameter>
    <parameter name="transport.jms.UserName">penstock</parameter>
    <parameter name="transport.jms.Password">penstock</parameter>
    <parameter name="transport.jms.Destination">{destination}</parameter>
    <parameter name="transport.jms.ContentType">application/json</parameter>
    {parameters}
  </parameters>
</inboundEndpoint>"#,
        provider(broker)
    )
}

/// What the sequence does is written in the message.
const TAKE: &str = r#"<sequence xmlns="http://ws.apache.org/ns/synapse" name="take">
  <log><property name="took" expression="json-eval($.do)"/><property name="order" expression="$trp:XOrder"/>
    <property name="count" expression="get-property('jms.message.delivery.count')"/></log>
  <switch source="json-eval($.do)">
    <case regex="rollback"><property name="SET_ROLLBACK_ONLY" value="true"/></case>
    <case regex="fail"><throwError type="MINE" errorMessage="it broke"/></case>
  </switch>
</sequence>"#;

const TRANSACTED: &str = r#"<parameter name="transport.jms.SessionTransacted">true</parameter>"#;

#[test]
#[ignore = "needs ActiveMQ"]
fn a_message_is_accepted_after_its_flow_and_redelivered_when_it_rolls_back() {
    let folder = Folder::new("jms-inbound");
    folder.write("artifacts/take.xml", TAKE);
    folder.write("artifacts/in.xml", inbound("In", "in-first", port(), TRANSACTED));
    folder.write("artifacts/auto.xml", inbound("Auto", "in-auto", port(), ""));
    let spoiling = Gate::open_replacing(port(), "spoilt", &[0xff; 6]);
    folder.write("artifacts/bad.xml", inbound("Bad", "in-bad", spoiling.port, ""));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    let mut client = Client::open();
    client.send("in-first", "queue", text_message(&order("well"), &[("XOrder", "7")]));
    server.wait_for_log("took = well, order = 7, count = 1");
    client.wait_until_empty("in-first");
    for action in ["rollback", "fail"] {
        client.send("in-first", "queue", text_message(&order(action), &[]));
        assert_eq!(text(&client.take("DLQ")), order(action), "{}", server.log());
        for count in 1..=4 {
            server.wait_for_log(&format!("took = {action}, order = null, count = {count}"));
        }
        assert_eq!(server.log().matches(&format!("took = {action}")).count(), 4, "{}", server.log());
    }
    // Without a transaction and a manual acknowledgement a message is delivered once.
    client.send("in-auto", "queue", text_message(&order("rollback"), &[]));
    server.wait_for_log_times("took = rollback", 5);
    client.wait_until_empty("in-auto");
    assert_eq!(server.log().matches("took = rollback").count(), 5, "{}", server.log());
    // One that cannot be decoded is rejected, and the next one is consumed over the same link.
    client.send("in-bad", "queue", text_message(&order("spoilt"), &[]));
    client.send("in-bad", "queue", text_message(&order("after"), &[]));
    server.wait_for_log("took = after");
    assert_eq!(text(&client.take("DLQ")), order("spoilt"), "{}", server.log());
    server.wait_for_log("a message of `in-bad` was rejected: it cannot be decoded");
    assert_eq!(server.log().matches("consuming `in-bad`").count(), 1, "{}", server.log());
    assert_eq!(server.log().matches("cannot be decoded").count(), 1, "{}", server.log());
}

#[test]
#[ignore = "needs ActiveMQ"]
fn a_consumer_returns_messages_that_were_under_way_and_connects_again() {
    let broker = Gate::open(port());
    let folder = Folder::new("jms-inbound-away");
    folder.write("artifacts/take.xml", TAKE);
    folder.write("artifacts/in.xml", inbound("Away", "in-away", broker.port, ""));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    let mut client = Client::open();
    client.send("in-away", "queue", text_message(&order("one"), &[]));
    server.wait_for_log("took = one");
    broker.shut();
    server.wait_for_log("no connection to the JMS broker");
    client.send("in-away", "queue", text_message(&order("two"), &[]));
    broker.reopen();
    server.wait_for_log("took = two");
    client.wait_until_empty("in-away");
}

#[test]
#[ignore = "needs ActiveMQ"]
fn a_durable_subscription_keeps_messages_while_the_program_is_stopped() {
    let folder = Folder::new("jms-topic");
    folder.write("artifacts/take.xml", TAKE);
    let durable = r#"<parameter name="transport.jms.ConnectionFactoryType">topic</parameter>
    <parameter name="transport.jms.SubscriptionDurable">true</parameter>
    <parameter name="transport.jms.DurableSubscriberClientID">penstock-test</parameter>
    <parameter name="transport.jms.DurableSubscriberName">orders</parameter>
    <parameter name="transport.jms.MessageSelector">XOrder &lt;&gt; 'no'</parameter>"#;
    folder.write("artifacts/in.xml", inbound("Topic", "news", port(), durable));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    server.wait_for_log("consuming `news`");
    let mut client = Client::open();
    client.send("news", "topic", text_message(&order("first"), &[("XOrder", "1")]));
    server.wait_for_log("took = first");
    server.signal(Signal::TERM);
    server.wait();
    client.send("news", "topic", text_message(&order("filtered"), &[("XOrder", "no")]));
    client.send("news", "topic", text_message(&order("second"), &[("XOrder", "2")]));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    server.wait_for_log("took = second, order = 2");
    assert!(!server.log().contains("took = filtered"), "{}", server.log());
}

#[test]
#[ignore = "needs ActiveMQ"]
fn an_endpoint_sends_and_waits_for_replies_of_a_listening_proxy() {
    let folder = Folder::new("jms-endpoint");
    let to = |queue: &str, query: &str| format!("jms:/{queue}?transport.jms.ConnectionFactory=Broker&amp;{query}");
    let proxies = EndpointProxies {
        transport: "jms",
        properties: r#"<property name="JMS_PRIORITY" value="7" scope="axis2"/>
    <property name="JMS_TYPE" value="order" scope="axis2"/>
    <property name="X-Order" value="5" scope="transport"/>"#,
        plain: &to("out-plain", "transport.jms.MessagePropertyHyphens=replace"),
        asked: &to("out-answer", "transport.jms.ContentTypeProperty=kind"),
        wait: "JMS_WAIT_REPLY",
        silent: &to("out-silent", ""),
        answer: "out-answer",
        parameters: r#"<parameter name="transport.jms.ConnectionFactory">Broker</parameter>
    <parameter name="transport.jms.ContentType"><rules><jmsProperty>kind</jmsProperty><default>text/plain</default></rules></parameter>"#,
    };
    folder.write("artifacts/a.xml", proxies.to_xml());
    let named =
        to("out-answer", "transport.jms.ContentTypeProperty=kind&amp;transport.jms.ReplyDestination=out-replies");
    folder.write(
        "artifacts/named.xml",
        format!(
            r#"<proxy xmlns="http://ws.apache.org/ns/synapse" name="AskNamed"><target><inSequence>
  <call><endpoint><address uri="{named}"/></endpoint></call><respond/>
</inSequence></target></proxy>"#
        ),
    );
    let url = format!(
        "amqps://localhost:{}?transport.trustStoreLocation={}&transport.trustStorePassword=penstock",
        variable("PENSTOCK_TEST_JMS_TLS"),
        variable("PENSTOCK_TEST_JMS_TRUSTSTORE")
    );
    let toml = format!(
        "[connections.Broker]\ntransport = \"jms\"\n\"java.naming.provider.url\" = \"{url}\"\n\
         \"transport.jms.UserName\" = \"penstock\"\n\"transport.jms.Password\" = \"penstock\"\n"
    );
    let mut server = Server::start(&folder, &["run", "artifacts"], &toml);
    server.wait_for_log("consuming `out-answer`");
    let mut client = Client::open();
    assert_eq!(server.post("/services/Plain", "application/json", "{\"a\":1}").status, 202, "{}", server.log());
    let message = client.take("out-plain");
    assert_eq!(text(&message), "{\"a\":1}");
    let header = message.header.as_ref().unwrap();
    assert_eq!((header.durable, header.priority.0), (true, 7));
    assert_eq!(message.properties.as_ref().unwrap().subject.as_deref(), Some("order"));
    let properties = message.application_properties.as_ref().unwrap();
    assert_eq!(properties.get("X_DASHED_Order"), Some(&SimpleValue::String("5".into())));

    let map = r#"<JMSMap xmlns="http://axis.apache.org/axis2/java/transports/jms/map-payload"><a>1</a></JMSMap>"#;
    assert_eq!(server.post("/services/Plain", "application/xml", map).status, 202, "{}", server.log());
    let message = client.take("out-plain");
    let Body::Value(AmqpValue(Value::Map(entries))) = &message.body else { panic!("no map: {message:?}") };
    assert_eq!(entries.get(&Value::String("a".into())), Some(&Value::String("1".into())));

    for proxy in ["Ask", "AskNamed"] {
        let reply = server.post(&format!("/services/{proxy}"), "application/json", "{\"a\":5}");
        assert_eq!((reply.status, reply.body.as_str()), (200, "{\"got\":\"5\"}"), "{}", server.log());
    }
    let reply = server.post("/services/Silent", "application/json", "{\"a\":5}");
    assert!(reply.body.contains("fault"), "{}\n{}", reply.body, server.log());
    server.wait_for_log("Did not receive a JMS response within 200 ms to the queue temporary");
}

#[test]
#[ignore = "needs ActiveMQ"]
fn a_broker_that_does_not_speak_amqp_is_named() {
    // What ActiveMQ Classic writes as soon as a client connects.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let _ = std::io::Write::write_all(&mut socket.unwrap(), b"\0\0\0\xf0\x01ActiveMQ\0\0\0\x0c");
        }
    });
    let folder = Folder::new("jms-openwire");
    folder.write("artifacts/take.xml", TAKE);
    folder.write("artifacts/in.xml", inbound("In", "in-mapped", other, ""));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    server.wait_for_log("the broker speaks OpenWire on this port");
    drop(server);
    let toml = format!(
        "[connections.Classic]\ntransport = \"jms\"\nreplaces = \"tcp://127.0.0.1:{other}\"\n\
         \"java.naming.provider.url\" = \"amqp://127.0.0.1:{}\"\n",
        port()
    );
    let mut server = Server::start(&folder, &["run", "artifacts"], &toml);
    server.wait_for_log("consuming `in-mapped`");
    Client::open().send("in-mapped", "queue", text_message(&order("mapped"), &[]));
    server.wait_for_log("took = mapped");
}
