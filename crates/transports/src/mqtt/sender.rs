//! Endpoints `mqtt:/…`: publish and wait for the broker's confirmation.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use penstock_engine::ports::{ConnectionFactory, Outgoing};
use penstock_engine::{Fault, Side, clock, codes};
use penstock_message::Message;
use rumqttc::{AsyncClient, Event, EventLoop, Outgoing as Written, Packet, QoS};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::address::{Address, TOPIC, quality, resolved};
use crate::broker::kept::{Connections, Parsed};
use crate::broker::link::Attempts;
use crate::broker::sender::SharedClient;
use crate::broker::{body, handle, lookup::Lookup};

/// How long the broker may take to confirm a message.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(30);

/// The connections of all endpoints. One for the whole process.
pub(crate) struct Mqtt {
    factories: Vec<ConnectionFactory>,
    links: Connections<Link>,
    endpoints: Parsed<Endpoint>,
}

/// What a URL means.
struct Endpoint {
    link: Arc<Link>,
    topic: String,
    quality: QoS,
    is_retained: bool,
}

/// A broker, connected to or not.
struct Link {
    address: Address,
    state: tokio::sync::Mutex<State>,
}

#[derive(Default)]
struct State {
    attempts: Attempts,
    open: Option<Open>,
}

/// A connection. Messages are confirmed in the order in which they are handed to it.
struct Open {
    client: AsyncClient,
    confirmations: mpsc::UnboundedSender<oneshot::Sender<()>>,
}

impl Mqtt {
    /// No connections yet. `factories`: the connection factories of the configuration.
    pub(crate) fn new(factories: Vec<ConnectionFactory>) -> Mqtt {
        Mqtt { factories, links: Connections::default(), endpoints: Parsed::default() }
    }

    fn parse(&self, url: &str) -> Result<Endpoint, String> {
        let (path, lookup) = Lookup::from_url(url);
        let lookup = resolved(lookup, &self.factories)?;
        let topic = lookup.get(TOPIC).unwrap_or(&path).to_owned();
        if topic.is_empty() || topic.contains(['+', '#']) {
            return Err(format!("`{topic}` is not a topic that messages can be published to"));
        }
        Ok(Endpoint {
            link: self.link(Address::parse(&lookup)?),
            topic,
            quality: quality(&lookup)?,
            is_retained: lookup.flag("mqtt.message.retained", false),
        })
    }

    fn link(&self, address: Address) -> Arc<Link> {
        self.links.get_or_make(
            |link| link.address == address,
            || Link { address: address.clone(), state: tokio::sync::Mutex::default() },
        )
    }
}

impl Link {
    /// Publishes; what is returned is filled when the broker has confirmed the message, and dropped when the connection is
    /// lost before.
    async fn publish(&self, endpoint: &Endpoint, payload: Bytes) -> Result<oneshot::Receiver<()>, String> {
        let mut state = self.state.lock().await;
        let is_open = state.open.as_ref().is_some_and(|open| !open.confirmations.is_closed());
        if !is_open {
            state.open = None;
            state.attempts.may_connect()?;
            match self.connect().await {
                Ok(open) => state.open = Some(open),
                Err(cause) => {
                    let reason = format!("no connection to {}: {cause}", self.address);
                    state.attempts.failed(&reason);
                    return Err(reason);
                }
            }
            state.attempts.succeeded();
        }
        let lost = || format!("the connection to {} was lost", self.address);
        let open = state.open.as_ref().ok_or_else(lost)?;
        let (sender, receiver) = oneshot::channel();
        // Both in the same order, which the lock keeps.
        open.confirmations.send(sender).map_err(|_| lost())?;
        let published =
            open.client.publish_bytes(endpoint.topic.as_str(), endpoint.quality, endpoint.is_retained, payload);
        if published.await.is_err() {
            state.open = None;
            return Err(lost());
        }
        Ok(receiver)
    }

    async fn connect(&self) -> Result<Open, String> {
        let (client, events) = self.address.client(&format!("penstock-{}", clock::uuid()), true).await?;
        let (confirmations, waiting) = mpsc::unbounded_channel();
        let (connected, connection) = oneshot::channel();
        handle()?.spawn(pump(events, waiting, connected));
        connection.await.map_err(|_| "it ended".to_owned())??;
        Ok(Open { client, confirmations })
    }
}

/// Keeps the connection, on the runtime of broker clients. Ends when it is lost or its link is dropped.
async fn pump(
    mut events: EventLoop,
    mut waiting: mpsc::UnboundedReceiver<oneshot::Sender<()>>,
    connected: oneshot::Sender<Result<(), String>>,
) {
    let mut connected = Some(connected);
    let mut in_order: VecDeque<oneshot::Sender<()>> = VecDeque::new();
    let mut by_packet: HashMap<u16, oneshot::Sender<()>> = HashMap::new();
    loop {
        let event = events.poll().await;
        while let Ok(sender) = waiting.try_recv() {
            in_order.push_back(sender);
        }
        match event {
            Ok(Event::Incoming(Packet::ConnAck(_))) => {
                if let Some(connected) = connected.take() {
                    let _ = connected.send(Ok(()));
                }
            }
            Ok(Event::Outgoing(Written::Publish(packet))) => match (in_order.pop_front(), packet) {
                // Without a quality of service a message is done when it is written.
                (Some(sender), 0) => drop(sender.send(())),
                (Some(sender), _) => drop(by_packet.insert(packet, sender)),
                (None, _) => {}
            },
            Ok(Event::Incoming(Packet::PubAck(answer))) => confirm(&mut by_packet, answer.pkid),
            Ok(Event::Incoming(Packet::PubComp(answer))) => confirm(&mut by_packet, answer.pkid),
            Ok(_) => {}
            Err(error) => {
                if let Some(connected) = connected.take() {
                    let _ = connected.send(Err(error.to_string()));
                }
                return;
            }
        }
    }
}

fn confirm(waiting: &mut HashMap<u16, oneshot::Sender<()>>, packet: u16) {
    if let Some(sender) = waiting.remove(&packet) {
        // The message may have timed out.
        let _ = sender.send(());
    }
}

impl SharedClient for Mqtt {
    async fn deliver(self: Arc<Self>, outgoing: Outgoing) -> Result<Message, Fault> {
        let Outgoing { url, message: mut sent, options, .. } = outgoing;
        let endpoint = self
            .endpoints
            .get_or_parse(&url, |url| self.parse(url))
            .map_err(|reason| Fault::new(format!("MQTT endpoint: {reason}")))?;
        let payload = body::whole(std::mem::take(&mut sent.body)).await?;
        let sender = endpoint.clone();
        // A task of its own: a caller that gives up must not change the order of confirmations.
        let published = handle().map_err(Fault::new)?.spawn(async move { sender.link.publish(&sender, payload).await });
        let confirmed = async {
            let confirmation = published.await.map_err(|error| error.to_string())??;
            confirmation.await.map_err(|_| {
                format!("the connection to {} was lost before it confirmed the message", endpoint.link.address)
            })
        };
        match timeout(CONFIRM_TIMEOUT.min(options.time_left), confirmed).await {
            // MQTT has no replies.
            Ok(Ok(())) => Ok(Message { status: 202, ..Message::default() }),
            Ok(Err(reason)) => Err(Fault::coded(codes::CONNECTION_FAILED, Side::Backend, reason)),
            Err(_) => {
                let text = format!("{} did not confirm the message in time", endpoint.link.address);
                Err(Fault::coded(codes::CONNECTION_TIMED_OUT, Side::Backend, text))
            }
        }
    }
}
