//! MQTT with the running program: endpoints, inbound endpoints, listeners of proxy services.
//! `tools/with-mosquitto cargo test -p penstock-server --test mqtt -- --ignored`

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::sync::mpsc::{Receiver, channel};

use rumqttc::{Client, Event, MqttOptions, Packet, Publish, QoS};
use rustix::process::Signal;
use support::broker::{self, Gate, PATIENCE, backend, order, variable};
use support::{Folder, Server};

fn port() -> u16 {
    broker::port("PENSTOCK_TEST_MQTT")
}

/// A client of the broker, which is not Penstock's. Its messages are confirmed one by one.
struct Peer {
    client: Client,
    messages: Receiver<Publish>,
    signs: Receiver<()>,
}

impl Peer {
    fn open(name: &str) -> Peer {
        let (client, mut connection) = Client::new(MqttOptions::new(name, "127.0.0.1", port()), 10);
        let ((message, messages), (sign, signs)) = (channel(), channel());
        std::thread::spawn(move || {
            for event in connection.iter() {
                match event {
                    Ok(Event::Incoming(Packet::Publish(publish))) => drop(message.send(publish)),
                    Ok(Event::Incoming(Packet::PubAck(_) | Packet::SubAck(_))) => drop(sign.send(())),
                    Ok(_) => {}
                    Err(_) => return,
                }
            }
        });
        Peer { client, messages, signs }
    }

    fn publish(&self, topic: &str, text: &str) {
        self.client.publish(topic, QoS::AtLeastOnce, false, text).unwrap();
        self.signs.recv_timeout(PATIENCE).unwrap();
    }

    fn subscribe(&self, topic: &str) {
        self.client.subscribe(topic, QoS::AtLeastOnce).unwrap();
        self.signs.recv_timeout(PATIENCE).unwrap();
    }
}

fn inbound(name: &str, topic: &str, broker: u16, parameters: &str) -> String {
    format!(
        r#"<inboundEndpoint xmlns="http://ws.apache.org/ns/synapse" name="{name}" protocol="mqtt" sequence="take">
  <parameters>
    <parameter name="mqtt.connection.factory">mqttFactory</parameter>
    <parameter name="mqtt.server.host.name">127.0.0.1</parameter>
    <parameter name="mqtt.server.port">{broker}</parameter>
    <parameter name="mqtt.topic.name">{topic}</parameter>
    <parameter name="content.type">application/json</parameter>
    {parameters}
  </parameters>
</inboundEndpoint>"#
    )
}

const TAKE: &str = r#"<sequence xmlns="http://ws.apache.org/ns/synapse" name="take">
  <log><property name="took" expression="json-eval($.do)"/><property name="from" expression="get-property('mqtt.topic.name')"/></log>
  <filter source="json-eval($.do)" regex="fail"><then><throwError type="MINE" errorMessage="it broke"/></then></filter>
</sequence>"#;

const KEPT: &str =
    r#"<parameter name="mqtt.session.clean">false</parameter><parameter name="mqtt.subscription.qos">1</parameter>"#;

#[test]
#[ignore = "needs Mosquitto"]
fn an_inbound_endpoint_takes_messages_connects_again_and_logs_what_fails() {
    let broker = Gate::open(port());
    let folder = Folder::new("mqtt-inbound");
    folder.write("artifacts/take.xml", TAKE);
    folder.write("artifacts/in.xml", inbound("In", "in/+", broker.port, KEPT));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    server.wait_for_log("In connected to the broker");
    let peer = Peer::open("peer-inbound");
    peer.publish("in/a", &order("one"));
    server.wait_for_log("took = one, from = in/a");
    peer.publish("in/b", &order("fail"));
    server.wait_for_log("a message of the topic `in/b` is lost, because MQTT returns none; its flow failed: it broke");
    broker.shut();
    server.wait_for_log("no connection to the MQTT broker");
    peer.publish("in/a", &order("two"));
    broker.reopen();
    server.wait_for_log("took = two");
}

#[test]
#[ignore = "needs Mosquitto"]
fn a_message_whose_flow_has_not_ended_is_delivered_again_after_a_kill() {
    let (port_of_backend, received) = backend();
    // The first backend never responds.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = Folder::new("mqtt-kill");
    let sequence = |port: u16| {
        format!(
            r#"<sequence xmlns="http://ws.apache.org/ns/synapse" name="take"><property name="DISABLE_CHUNKING" value="true" scope="axis2"/>
  <call><endpoint><http uri-template="http://127.0.0.1:{port}/" method="POST"/></endpoint></call><log><property name="sent" value="yes"/></log></sequence>"#
        )
    };
    folder.write("artifacts/take.xml", sequence(silent.local_addr().unwrap().port()));
    folder.write("artifacts/in.xml", inbound("Kept", "kept", port(), KEPT));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    server.wait_for_log("Kept connected to the broker");
    Peer::open("peer-kill").publish("kept", &order("once"));
    let _under_way = silent.accept().unwrap();
    server.signal(Signal::KILL);
    server.wait();
    folder.write("artifacts/take.xml", sequence(port_of_backend));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    assert_eq!(received.recv_timeout(PATIENCE).unwrap(), order("once"), "{}", server.log());
    server.wait_for_log("sent = yes");
    // Acknowledged now: it does not come again.
    server.signal(Signal::TERM);
    server.wait();
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    server.wait_for_log("Kept connected to the broker");
    Peer::open("peer-kill-2").publish("kept", &order("next"));
    assert_eq!(received.recv_timeout(PATIENCE).unwrap(), order("next"), "{}", server.log());
}

#[test]
#[ignore = "needs Mosquitto"]
fn an_endpoint_publishes_and_a_proxy_listens_over_tls() {
    let folder = Folder::new("mqtt-endpoint");
    folder.write(
        "artifacts/a.xml",
        format!(
            r#"<definitions xmlns="http://ws.apache.org/ns/synapse">
  <proxy name="Plain"><target><inSequence>
    <property name="OUT_ONLY" value="true"/>
    <property name="FORCE_SC_ACCEPTED" value="true" scope="axis2"/>
    <send><endpoint><address uri="mqtt:/x?mqtt.server.host.name=127.0.0.1&amp;mqtt.server.port={}&amp;mqtt.topic.name=out/plain&amp;mqtt.subscription.qos=2"/></endpoint></send>
  </inSequence></target></proxy>
  <proxy name="Secure"><target><inSequence>
    <property name="OUT_ONLY" value="true"/>
    <property name="FORCE_SC_ACCEPTED" value="true" scope="axis2"/>
    <send><endpoint><address uri="mqtt:/secure?mqtt.connection.factory=Broker"/></endpoint></send>
  </inSequence></target></proxy>
  <proxy name="Listener" transports="mqtt">
    <target><inSequence><log><property name="heard" expression="json-eval($.a)"/></log></inSequence></target>
    <parameter name="mqtt.connection.factory">Broker</parameter>
    <parameter name="mqtt.topic.name">secure</parameter>
    <parameter name="mqtt.content.type">application/json</parameter>
  </proxy>
</definitions>"#,
            port()
        ),
    );
    let toml = format!(
        "[connections.Broker]\ntransport = \"mqtt\"\n\"mqtt.server.host.name\" = \"localhost\"\n\"mqtt.server.port\" = {}\n\
         \"mqtt.ssl.enable\" = true\n\"mqtt.ssl.truststore.location\" = \"{}\"\n",
        variable("PENSTOCK_TEST_MQTT_TLS"),
        variable("PENSTOCK_TEST_MQTT_CERTIFICATE"),
    );
    let mut server = Server::start(&folder, &["run", "artifacts"], &toml);
    server.wait_for_log("Listener/mqtt connected to the broker");
    let peer = Peer::open("peer-endpoint");
    peer.subscribe("out/plain");
    for body in ["{\"a\":1}", "{\"a\":2}"] {
        assert_eq!(server.post("/services/Plain", "application/json", body).status, 202, "{}", server.log());
        assert_eq!(&*peer.messages.recv_timeout(PATIENCE).unwrap().payload, body.as_bytes());
    }
    assert_eq!(server.post("/services/Secure", "application/json", "{\"a\":7}").status, 202, "{}", server.log());
    server.wait_for_log("heard = 7");
}
