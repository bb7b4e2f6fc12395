//! What tests with brokers share: a backend, a way to a broker that can be cut, and the tests of message stores.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{Folder, Server};

/// Nothing that is waited for here takes longer on any machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A variable of the script that starts the broker.
pub fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run this test under its script in tools/"))
}

pub fn port(name: &str) -> u16 {
    variable(name).parse().unwrap()
}

/// A message that names what the sequence under test does with it.
pub fn order(action: &str) -> String {
    format!("{{\"do\":\"{action}\"}}")
}

/// A backend that responds with 200 and hands out the body of each request.
pub fn backend() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (mut socket, sender) = (socket.unwrap(), sender.clone());
            // A request may break off when the program is killed.
            std::thread::spawn(move || {
                let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
                loop {
                    let read = socket.read(&mut buffer).unwrap_or(0);
                    if read == 0 {
                        return;
                    }
                    request.extend_from_slice(&buffer[..read]);
                    let text = String::from_utf8_lossy(&request).into_owned();
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                    let head = head.to_ascii_lowercase();
                    let length = head.split_once("content-length: ").unwrap().1.split("\r\n").next().unwrap();
                    if body.len() >= length.parse().unwrap() {
                        let _ = sender.send(body.to_owned());
                        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                        return;
                    }
                }
            });
        }
    });
    (port, receiver)
}

/// Forwards connections to the broker until it is shut.
pub struct Gate {
    pub port: u16,
    is_open: Arc<AtomicBool>,
    sockets: Arc<Mutex<Vec<TcpStream>>>,
}

impl Gate {
    pub fn open(broker: u16) -> Gate {
        Gate::open_replacing(broker, "", &[])
    }

    /// Puts other bytes of the same number in place of a text that the broker sends.
    pub fn open_replacing(broker: u16, text: &'static str, by: &'static [u8]) -> Gate {
        assert_eq!(text.len(), by.len());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let gate = Gate {
            port: listener.local_addr().unwrap().port(),
            is_open: Arc::new(AtomicBool::new(true)),
            sockets: Arc::default(),
        };
        let (is_open, sockets) = (gate.is_open.clone(), gate.sockets.clone());
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                if !is_open.load(Ordering::SeqCst) {
                    continue;
                }
                let broker = TcpStream::connect(("127.0.0.1", broker)).unwrap();
                let clones = |from: &TcpStream, to: &TcpStream| (from.try_clone().unwrap(), to.try_clone().unwrap());
                let (from, to) = clones(&client, &broker);
                std::thread::spawn(move || forward(from, to, "", &[]));
                let (from, to) = clones(&broker, &client);
                std::thread::spawn(move || forward(from, to, text, by));
                sockets.lock().unwrap().extend([client, broker]);
            }
        });
        gate
    }

    /// Breaks all connections and takes no other.
    pub fn shut(&self) {
        self.is_open.store(false, Ordering::SeqCst);
        for socket in self.sockets.lock().unwrap().drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    pub fn reopen(&self) {
        self.is_open.store(true, Ordering::SeqCst);
    }
}

/// An API that stores, a store, and a processor that forwards to a port. `store` is the rest of the element of the store.
pub fn store_and_forward(store: &str, backend: u16, parameters: &str) -> String {
    format!(
        r#"<definitions xmlns="http://ws.apache.org/ns/synapse">
  <messageStore name="Orders" {store}</messageStore>
  <endpoint name="Backend"><http uri-template="http://127.0.0.1:{backend}/orders" method="POST"/></endpoint>
  <messageProcessor name="Forward" messageStore="Orders" targetEndpoint="Backend"
      class="org.apache.synapse.message.processor.impl.forwarder.ScheduledMessageForwardingProcessor">
    <parameter name="client.retry.interval">50</parameter>
    {parameters}
  </messageProcessor>
  <sequence name="deactivated"><log><property name="why" value="PROCESSOR DEACTIVATED"/></log></sequence>
  <api name="orders" context="/orders">
    <resource methods="POST">
      <inSequence>
        <property name="OUT_ONLY" value="true"/>
        <property name="DISABLE_CHUNKING" value="true" scope="axis2"/>
        <store messageStore="Orders"/>
      </inSequence>
    </resource>
  </api>
</definitions>"#
    )
}

/// Parameters of a processor that forwards at once and does not give up.
const UNTIL_DELIVERED: &str =
    r#"<parameter name="interval">1</parameter><parameter name="max.delivery.attempts">0</parameter>"#;

/// Stores 20 messages and receives them in their order.
pub fn test_order(folder: &str, store: &str, wait_until_empty: impl FnOnce()) {
    let folder = Folder::new(folder);
    let (backend, received) = backend();
    folder.write("artifacts/a.xml", store_and_forward(store, backend, UNTIL_DELIVERED));
    let server = Server::start(&folder, &["run", "artifacts"], "");
    let body = |id: i32| format!("{{\"id\":{id}}}");
    for id in 0..20 {
        assert_eq!(server.post("/orders", "application/json", &body(id)).status, 202, "{}", server.log());
    }
    for id in 0..20 {
        assert_eq!(received.recv_timeout(PATIENCE).unwrap(), body(id), "{}", server.log());
    }
    wait_until_empty();
}

/// Kills the program while messages wait and are under way: all arrive, at most one twice for each kill.
pub fn test_kills(folder: &str, toml: &str, store: &str, wait_until_empty: impl FnOnce()) {
    const MESSAGES: usize = 400;
    const KILLS: usize = 6;
    let folder = Folder::new(folder);
    let (backend, received) = backend();
    folder.write("artifacts/a.xml", store_and_forward(store, backend, UNTIL_DELIVERED));
    let mut server = Server::start(&folder, &["run", "artifacts"], toml);
    let mut accepted = 0;
    for kill in 0..=KILLS {
        while accepted < MESSAGES * (kill + 1) / (KILLS + 1) {
            let body = format!("{{\"id\":{accepted}}}");
            assert_eq!(server.post("/orders", "application/json", &body).status, 202, "{}", server.log());
            accepted += 1;
        }
        if kill < KILLS {
            server.signal(Signal::KILL);
            server.wait();
            server = Server::start(&folder, &["run", "artifacts"], toml);
        }
    }
    let mut seen: HashMap<String, usize> = HashMap::new();
    while seen.len() < accepted {
        let body = received
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| panic!("lost {}\n{}", accepted - seen.len(), server.log()));
        *seen.entry(body).or_default() += 1;
    }
    wait_until_empty();
    for body in received.try_iter() {
        *seen.entry(body).or_default() += 1;
    }
    let duplicates: usize = seen.values().map(|times| times - 1).sum();
    assert!(duplicates <= KILLS, "{duplicates} duplicates");
}

/// Cuts the connection to the broker: requests fault, the processor is faulty, and both work again afterwards. `store` gets the
/// port of the way to the broker.
pub fn test_recovery(folder: &str, broker: u16, store: impl Fn(u16) -> String, no_connection: &str) {
    let folder = Folder::new(folder);
    let (backend, received) = backend();
    let broker = Gate::open(broker);
    folder.write("artifacts/a.xml", store_and_forward(&store(broker.port), backend, UNTIL_DELIVERED));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    assert_eq!(server.post("/orders", "application/json", "1").status, 202, "{}", server.log());
    assert_eq!(received.recv_timeout(PATIENCE).unwrap(), "1");
    broker.shut();
    assert_eq!(server.post("/orders", "application/json", "2").status, 500);
    server.wait_for_log(no_connection);
    let end = Instant::now() + PATIENCE;
    while !server.admin("/healthz").body.contains("\"faulty\":[\"Forward\"]") {
        assert!(Instant::now() < end, "{}\n{}", server.admin("/healthz").body, server.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    broker.reopen();
    let end = Instant::now() + PATIENCE;
    while server.post("/orders", "application/json", "3").status != 202 {
        assert!(Instant::now() < end, "{}", server.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    // The acknowledgement of the first may have been lost with the connection.
    let next = || received.recv_timeout(PATIENCE).unwrap();
    let mut body = next();
    while body == "1" {
        body = next();
    }
    assert_eq!(body, "3");
}

fn forward(mut from: TcpStream, mut to: TcpStream, text: &str, by: &[u8]) {
    let mut buffer = [0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let bytes = &mut buffer[..read];
        let starts = 0..(read + 1).saturating_sub(text.len());
        for at in starts.filter(|_| !text.is_empty()) {
            if bytes[at..].starts_with(text.as_bytes()) {
                bytes[at..at + by.len()].copy_from_slice(by);
            }
        }
        if to.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// Proxy services that send to `plain`, that wait for a reply of `asked`, and that wait in vain for one of `silent`; and the
/// proxy service `answer` that listens on a transport with these parameters.
pub struct EndpointProxies<'a> {
    pub transport: &'a str,
    /// Properties of the message to `plain`.
    pub properties: &'a str,
    pub plain: &'a str,
    pub asked: &'a str,
    /// The property with the time to wait for a reply.
    pub wait: &'a str,
    pub silent: &'a str,
    pub answer: &'a str,
    pub parameters: &'a str,
}

impl EndpointProxies<'_> {
    pub fn to_xml(&self) -> String {
        let EndpointProxies { transport, properties, plain, asked, wait, silent, answer, parameters } = self;
        format!(
            r#"<definitions xmlns="http://ws.apache.org/ns/synapse">
  <proxy name="Plain"><target><inSequence>
    <property name="OUT_ONLY" value="true"/>
    <property name="FORCE_SC_ACCEPTED" value="true" scope="axis2"/>
    {properties}
    <send><endpoint><address uri="{plain}"/></endpoint></send>
  </inSequence></target></proxy>
  <proxy name="Ask"><target><inSequence>
    <call><endpoint><address uri="{asked}"/></endpoint></call><respond/>
  </inSequence></target></proxy>
  <proxy name="Silent"><target><inSequence>
    <property name="{wait}" value="200" scope="axis2"/>
    <call><endpoint><address uri="{silent}"/></endpoint></call><respond/>
  </inSequence><faultSequence>
    <payloadFactory media-type="json"><format>{{"fault":"$1"}}</format><args>
      <arg expression="get-property('ERROR_MESSAGE')"/></args></payloadFactory><respond/>
  </faultSequence></target></proxy>
  <proxy name="{answer}" transports="{transport}">
    <target><inSequence>
      <payloadFactory media-type="json"><format>{{"got":"$1"}}</format><args><arg evaluator="json" expression="$.a"/></args></payloadFactory>
      <respond/>
    </inSequence></target>
    {parameters}
  </proxy>
</definitions>"#
        )
    }
}
