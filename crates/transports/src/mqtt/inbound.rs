//! Subscribers: inbound endpoints of the protocol `mqtt`, and proxy services with `transports="mqtt"`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use penstock_compile::{
    Compiler, Element, Feed, InboundEndpoint, InboundKind, ListenerKind, Parameters, ProxyListener,
};
use penstock_engine::background::{Control, RunService, ServiceError};
use penstock_engine::clock;
use penstock_engine::inject::{Consumer, Outcome};
use penstock_engine::ports::{Level, LocalFuture};
use penstock_message::{Body, Headers, Message, Method, Value};
use rumqttc::{AsyncClient, Event, EventLoop, Outgoing, Packet, Publish, QoS, SubscribeReasonCode};
use tokio::sync::mpsc;

use super::SCHEME;
use super::address::{Address, FACTORY, HOST, QUALITY, TOPIC, quality, resolved};
use crate::broker::{handle, lookup::Lookup};

/// The protocol of inbound endpoints.
pub const KIND: InboundKind = InboundKind { protocols: &["mqtt"], classes: &[], ignored: IGNORED, build };

/// The transport of proxy services.
pub const LISTENER: ListenerKind = ListenerKind { transport: SCHEME, build: build_listener };

/// Polling, reconnection and the file store of Micro Integrator's client.
const IGNORED: &[&str] = &[
    "interval",
    "mqtt.reconnection.interval",
    "mqtt.temporary.store.directory",
    "mqtt.blocking.sender",
    "mqtt.ssl.version",
    "mqtt.ssl.keystore.type",
    "mqtt.ssl.truststore.type",
];

/// Parameters that are read.
const NAMES: [&str; 13] = [
    FACTORY,
    HOST,
    "mqtt.server.port",
    TOPIC,
    QUALITY,
    "mqtt.session.clean",
    "mqtt.client.id",
    "mqtt.subscription.username",
    "mqtt.subscription.password",
    "mqtt.ssl.enable",
    "mqtt.ssl.keystore.location",
    "mqtt.ssl.truststore.location",
    CONTENT_TYPE,
];

/// The parameters that have the content type: of inbound endpoints, of proxy services.
const CONTENT_TYPE: &str = "content.type";
const LISTENER_CONTENT_TYPE: &str = "mqtt.content.type";

/// The content type when no parameter has it.
const DEFAULT_CONTENT_TYPE: &str = "text/plain";

/// Messages that wait for a flow; more stay with the broker.
const WAITING_MAX: usize = 32;

/// Flows at once with `sequential` `false`.
const FLOWS: usize = 8;

/// How long the broker may take to end a connection.
const END_TIMEOUT: Duration = Duration::from_secs(5);

struct Subscriber {
    consumer: Consumer,
    /// Parameters of the connection may come from the configuration, which is known when the service runs.
    lookup: Lookup,
    flows_max: usize,
    content_type: String,
}

fn build(endpoint: &InboundEndpoint<'_>, parameters: &Parameters, cx: &mut Compiler<'_>) -> Option<Feed> {
    let consumer = endpoint.consumer(cx)?;
    parameters.required(HOST, &endpoint.el, cx)?;
    parameters.required(TOPIC, &endpoint.el, cx)?;
    let content_type = parameters.required(CONTENT_TYPE, &endpoint.el, cx)?.to_owned();
    let flows_max = if endpoint.sequential { 1 } else { FLOWS };
    let subscriber = Subscriber { consumer, lookup: Lookup::new(&known(parameters)), flows_max, content_type };
    subscriber.checked(parameters, &endpoint.el, cx)
}

fn build_listener(listener: &ProxyListener<'_>, parameters: &Parameters, cx: &mut Compiler<'_>) -> Option<Feed> {
    let content_type = parameters.get(LISTENER_CONTENT_TYPE).or(parameters.get(CONTENT_TYPE));
    let content_type = content_type.unwrap_or(DEFAULT_CONTENT_TYPE).to_owned();
    let (consumer, lookup) = (listener.consumer.clone(), Lookup::new(&known(parameters)));
    Subscriber { consumer, lookup, flows_max: 1, content_type }.checked(parameters, &listener.el, cx)
}

/// The parameters this transport knows, which count as read.
fn known(parameters: &Parameters) -> Vec<(Arc<str>, Arc<str>)> {
    parameters.matching(|name| NAMES.contains(&name) || name.starts_with("mqtt.ssl."))
}

impl Subscriber {
    fn checked(self, parameters: &Parameters, el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Feed> {
        let has_host = self.lookup.get(HOST).is_some();
        let checked = quality(&self.lookup).and_then(|_| match has_host {
            true => Address::parse(&self.lookup).map(drop),
            false => Ok(()),
        });
        match checked {
            Ok(()) => Some(Feed::Service(Arc::new(self))),
            Err(reason) => {
                let named = NAMES.iter().find(|name| reason.contains(**name));
                cx.error(named.map_or_else(|| el.place(), |name| parameters.place(name, el)), reason);
                None
            }
        }
    }
}

impl RunService for Subscriber {
    fn run(&self, control: Control) -> LocalFuture<'static, Result<(), ServiceError>> {
        let (consumer, lookup) = (self.consumer.clone(), self.lookup.clone());
        let (flows_max, content_type) = (self.flows_max, self.content_type.clone());
        Box::pin(async move {
            let factories = &control.core().environment.connection_factories;
            let lookup = resolved(lookup, factories).map_err(ServiceError::lasting)?;
            let topic = lookup.get(TOPIC).ok_or_else(|| ServiceError::lasting(format!("there is no `{TOPIC}`")))?;
            let session = Session {
                address: Address::parse(&lookup).map_err(ServiceError::lasting)?,
                topic: topic.to_owned(),
                quality: quality(&lookup).map_err(ServiceError::lasting)?,
                is_clean: lookup.flag("mqtt.session.clean", true),
                consumer,
                flows_max,
                content_type,
                control,
            };
            session.run().await.map_err(ServiceError::temporary)
        })
    }
}

/// A subscriber that runs.
struct Session {
    address: Address,
    topic: String,
    quality: QoS,
    is_clean: bool,
    consumer: Consumer,
    flows_max: usize,
    content_type: String,
    control: Control,
}

/// What the connection reports.
enum Report {
    Connected,
    Subscribed(Vec<SubscribeReasonCode>),
    Message(Publish),
    Lost(String),
}

impl Session {
    async fn run(&self) -> Result<(), String> {
        let mut control = self.control.clone();
        while control.next().await {
            self.consume().await?;
        }
        Ok(())
    }

    /// Consumes until the service must pause or stop.
    async fn consume(&self) -> Result<(), String> {
        let name = &self.consumer.source.name;
        // A session that the broker keeps is found again by its name.
        let id = if self.is_clean { format!("penstock-{}", clock::uuid()) } else { format!("penstock-{name}") };
        let (client, events) = self.address.client(&id, self.is_clean).await?;
        let (sender, mut reports) = mpsc::channel(WAITING_MAX);
        handle()?.spawn(pump(events, sender));
        let (acknowledged, queue) = mpsc::unbounded_channel();
        handle()?.spawn(acknowledge(client.clone(), queue));
        let mut flows = FuturesUnordered::new();
        let outcome = loop {
            let has_room = flows.len() < self.flows_max;
            let report = self.control.until(async {
                tokio::select! {
                    report = reports.recv(), if has_room => Some(report),
                    Some(publish) = flows.next(), if !flows.is_empty() => {
                        // Fails when the connection is gone: the broker delivers the message again.
                        let _ = acknowledged.send(publish);
                        None
                    }
                }
            });
            match report.await {
                None => break Ok(()),
                Some(None) => {}
                Some(Some(Some(Report::Connected))) => {
                    client.subscribe(&self.topic, self.quality).await.map_err(|error| error.to_string())?;
                }
                Some(Some(Some(Report::Subscribed(codes)))) => {
                    if codes.contains(&SubscribeReasonCode::Failure) {
                        break Err(format!("{} refused the subscription of `{}`", self.address, self.topic));
                    }
                    self.control.working();
                    let text = format!("{name} connected to the broker: `{}` of {}", self.topic, self.address);
                    self.control.log(Level::Info, &text);
                }
                Some(Some(Some(Report::Message(publish)))) => flows.push(self.process(publish)),
                Some(Some(Some(Report::Lost(reason)))) => {
                    break Err(format!("no connection to {}: {reason}", self.address));
                }
                Some(Some(None)) => break Err(format!("the connection to {} ended", self.address)),
            }
        };
        while let Some(publish) = flows.next().await {
            let _ = acknowledged.send(publish);
        }
        drop(acknowledged);
        if outcome.is_ok() {
            // The acknowledgements go out before the connection ends.
            let ended = async { while reports.recv().await.is_some() {} };
            let _ = tokio::time::timeout(END_TIMEOUT, ended).await;
        }
        outcome
    }

    /// Runs the flow of a message.
    async fn process(&self, publish: Publish) -> Publish {
        let mut headers = Headers::new();
        headers.set("Content-Type", &self.content_type);
        let body = Body::bytes(publish.payload.clone());
        let mut message = Message { headers, body, method: Method::Post, ..Message::default() };
        message.properties.set(TOPIC, Value::string(publish.topic.as_str()));
        let injected = self.consumer.consume(&self.control, message).await;
        let why = match &injected.outcome {
            Outcome::Done => return publish,
            Outcome::RolledBack => "its flow rolled back".to_owned(),
            Outcome::Failed(fault) => format!("its flow failed: {}", fault.message),
        };
        let text = format!("a message of the topic `{}` is lost, because MQTT returns none; {why}", publish.topic);
        self.control.log(Level::Error, &text);
        publish
    }
}

/// Acknowledges messages, then ends the connection. A task of its own: a flow must not wait for the connection while the
/// connection waits for a flow.
async fn acknowledge(client: AsyncClient, mut queue: mpsc::UnboundedReceiver<Publish>) {
    while let Some(publish) = queue.recv().await {
        if client.ack(&publish).await.is_err() {
            return;
        }
    }
    let _ = client.disconnect().await;
}

/// Keeps the connection, on the runtime of broker clients. Ends when it is lost or the receiver of its reports is gone.
async fn pump(mut events: EventLoop, reports: mpsc::Sender<Report>) {
    loop {
        let event = tokio::select! {
            event = events.poll() => event,
            () = reports.closed() => return,
        };
        let report = match event {
            Ok(Event::Incoming(Packet::ConnAck(_))) => Report::Connected,
            Ok(Event::Incoming(Packet::SubAck(answer))) => Report::Subscribed(answer.return_codes),
            Ok(Event::Incoming(Packet::Publish(publish))) => Report::Message(publish),
            Ok(Event::Outgoing(Outgoing::Disconnect)) => return,
            Ok(_) => continue,
            Err(error) => Report::Lost(error.to_string()),
        };
        let is_lost = matches!(report, Report::Lost(_));
        if reports.send(report).await.is_err() || is_lost {
            return;
        }
    }
}
