//! Consumers: inbound endpoints of the protocol `rabbitmq`, and proxy services with `transports="rabbitmq"`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicQosOptions, BasicRejectOptions, ConfirmSelectOptions,
};
use lapin::types::{FieldTable, ShortString};
use lapin::{BasicProperties, Channel};
use penstock_compile::{
    Compiler, Element, Feed, InboundEndpoint, InboundKind, ListenerKind, Parameters, ProxyListener,
};
use penstock_engine::background::{Control, RunService, ServiceError};
use penstock_engine::inject::{Consumer, Injected, Outcome};
use penstock_engine::ports::{Level, LocalFuture};
use penstock_message::Message;

use super::SCHEME;
use super::address::{Address, SERVER, resolved};
use super::connection::{Link, RabbitMqError, on_channel, within};
use super::message::{DEFAULT_CONTENT_TYPE, PERSISTENT, dead_lettered, has_content_type, message};
use super::store::publish;
use super::topology::{Topology, name};
use crate::broker::{body, lookup::Lookup};

/// The protocol of inbound endpoints.
pub const KIND: InboundKind = InboundKind {
    protocols: &["rabbitmq"],
    classes: &[],
    ignored: &["interval", "rabbitmq.connection.retry.interval", "rabbitmq.connection.retry.count"],
    build,
};

/// The transport of proxy services.
pub const LISTENER: ListenerKind = ListenerKind { transport: SCHEME, build: build_listener };

/// Messages that the broker sends ahead of their acknowledgement when `rabbitmq.channel.consumer.qos` is missing or 0. Micro
/// Integrator has no limit then, and holds the whole queue in memory.
const PREFETCH: u16 = 32;

/// Before a message returns to its queue when `rabbitmq.message.requeue.delay` is missing: without a pause the broker would
/// deliver it again at once, for ever.
const REQUEUE_DELAY_MS: u64 = 500;

/// Parameters beside those of connections, queues and exchanges.
const NAMES: [&str; 11] = [
    "rabbitmq.connection.factory",
    "rabbitmq.queue.auto.ack",
    "rabbitmq.channel.consumer.qos",
    "rabbitmq.consumer.tag",
    "rabbitmq.message.content.type",
    "rabbitmq.transport.ContentTypeProperty",
    "rabbitmq.message.max.dead.lettered.count",
    "rabbitmq.message.requeue.delay",
    "rabbitmq.message.error.exchange.name",
    "rabbitmq.message.error.queue.routing.key",
    "rabbitmq.concurrent.consumer.count",
];

/// A consumer of a queue.
struct Subscription {
    consumer: Consumer,
    /// Parameters of the connection may come from a connection factory, which is known when the service runs.
    lookup: Lookup,
    settings: Arc<Settings>,
}

struct Settings {
    topology: Topology,
    queue: ShortString,
    /// Acknowledge in any case.
    auto_ack: bool,
    prefetch: u16,
    /// Flows at once.
    flows_max: usize,
    tag: ShortString,
    content_type: Option<String>,
    /// The header that names the content type.
    content_type_header: Option<String>,
    /// `None`: as often as the broker dead-letters it.
    dead_lettered_max: Option<u64>,
    requeue_delay: Duration,
    error_exchange: Option<ShortString>,
    error_routing_key: ShortString,
}

fn build(endpoint: &InboundEndpoint<'_>, parameters: &Parameters, cx: &mut Compiler<'_>) -> Option<Feed> {
    let consumer = endpoint.consumer(cx)?;
    parameters.required("rabbitmq.queue.name", &endpoint.el, cx)?;
    let lookup = Lookup::new(&known(parameters));
    subscription(consumer, lookup, endpoint.sequential, parameters, &endpoint.el, cx)
}

fn build_listener(listener: &ProxyListener<'_>, parameters: &Parameters, cx: &mut Compiler<'_>) -> Option<Feed> {
    let mut entries = known(parameters);
    if parameters.get("rabbitmq.queue.name").is_none() {
        entries.push(("rabbitmq.queue.name".into(), listener.name.into()));
    }
    if parameters.flag("rabbitmq.proxy.throttle.enabled", false) {
        let at = parameters.place("rabbitmq.proxy.throttle.enabled", &listener.el);
        cx.warn(at, "throttling of a RabbitMQ listener is not supported; use `rabbitmq.channel.consumer.qos`");
    }
    subscription(listener.consumer.clone(), Lookup::new(&entries), true, parameters, &listener.el, cx)
}

/// The parameters this transport knows, which count as read.
fn known(parameters: &Parameters) -> Vec<(Arc<str>, Arc<str>)> {
    const PREFIXES: [&str; 4] =
        ["rabbitmq.server.", "rabbitmq.queue.", "rabbitmq.exchange.", "rabbitmq.connection.ssl."];
    parameters.matching(|name| NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
}

fn subscription(
    consumer: Consumer,
    lookup: Lookup,
    sequential: bool,
    parameters: &Parameters,
    el: &Element<'_>,
    cx: &mut Compiler<'_>,
) -> Option<Feed> {
    // What a connection factory leaves open has a default, so mistakes of the artifact show here.
    let checked = Address::parse(&lookup, &SERVER).and_then(|_| Settings::parse(&lookup, sequential));
    match checked {
        Ok(settings) => Some(Feed::Service(Arc::new(Subscription { consumer, lookup, settings: Arc::new(settings) }))),
        Err(reason) => {
            let named = NAMES.iter().chain(&["rabbitmq.server.port"]).find(|name| reason.contains(*name));
            cx.error(named.map_or_else(|| el.place(), |name| parameters.place(name, el)), reason);
            None
        }
    }
}

impl Settings {
    fn parse(lookup: &Lookup, sequential: bool) -> Result<Settings, String> {
        let topology = Topology::parse(lookup)?;
        let queue =
            topology.queue.as_ref().map(|queue| queue.name.clone()).ok_or("there is no `rabbitmq.queue.name`")?;
        let prefetch = lookup.number("rabbitmq.channel.consumer.qos")?.filter(|qos| *qos > 0).unwrap_or(PREFETCH);
        let consumers = lookup.number("rabbitmq.concurrent.consumer.count")?.unwrap_or(1usize);
        let delay = lookup.number("rabbitmq.message.requeue.delay")?.unwrap_or(REQUEUE_DELAY_MS);
        let text = |key: &str| lookup.get(key).map(name).transpose();
        Ok(Settings {
            topology,
            queue,
            auto_ack: lookup.flag("rabbitmq.queue.auto.ack", true),
            prefetch,
            flows_max: if sequential { consumers.clamp(1, usize::from(prefetch)) } else { usize::from(prefetch) },
            tag: text("rabbitmq.consumer.tag")?.unwrap_or_default(),
            content_type: lookup.get("rabbitmq.message.content.type").map(str::to_owned),
            content_type_header: lookup.get("rabbitmq.transport.ContentTypeProperty").map(str::to_owned),
            dead_lettered_max: lookup.number("rabbitmq.message.max.dead.lettered.count")?,
            requeue_delay: Duration::from_millis(delay),
            error_exchange: text("rabbitmq.message.error.exchange.name")?,
            error_routing_key: text("rabbitmq.message.error.queue.routing.key")?.unwrap_or_default(),
        })
    }
}

impl RunService for Subscription {
    fn run(&self, control: Control) -> LocalFuture<'static, Result<(), ServiceError>> {
        let (consumer, settings, lookup) = (self.consumer.clone(), self.settings.clone(), self.lookup.clone());
        Box::pin(async move {
            let lookup = resolved(lookup, &control.core().environment.connection_factories);
            let address = lookup.and_then(|lookup| Address::parse(&lookup, &SERVER)).map_err(ServiceError::lasting)?;
            let link = Link::new(address, format!("Penstock {}", consumer.source.name));
            let session = Session { consumer, settings, link: &link, control };
            let outcome = session.run().await;
            link.close().await;
            outcome.map_err(|error| ServiceError::temporary(error.reason))
        })
    }
}

/// A consumer that is connected.
struct Session<'a> {
    consumer: Consumer,
    settings: Arc<Settings>,
    link: &'a Link,
    control: Control,
}

enum Event {
    Delivery(Option<Box<lapin::Result<Delivery>>>),
    Ended(Result<(), RabbitMqError>),
}

impl Session<'_> {
    async fn run(&self) -> Result<(), RabbitMqError> {
        let mut control = self.control.clone();
        // A channel for each time between two pauses: what the broker sent ahead goes back when it is closed.
        while control.next().await {
            self.consume(&mut control).await?;
        }
        Ok(())
    }

    async fn consume(&self, control: &mut Control) -> Result<(), RabbitMqError> {
        let Settings { topology, queue, tag, prefetch, flows_max, .. } = &*self.settings;
        let channel = topology.declare(self.link).await?;
        within(channel.basic_qos(*prefetch, BasicQosOptions::default())).await?;
        let consumed =
            channel.basic_consume(queue.clone(), tag.clone(), BasicConsumeOptions::default(), FieldTable::default());
        let mut deliveries = within(consumed).await?;
        control.working();
        control.log(Level::Info, &format!("consuming the queue `{queue}` of {}", self.link.address()));
        let mut flows = FuturesUnordered::new();
        let mut outcome = loop {
            let has_room = flows.len() < *flows_max;
            let event = control.until(async {
                tokio::select! {
                    delivery = deliveries.next(), if has_room => Event::Delivery(delivery.map(Box::new)),
                    Some(ended) = flows.next(), if !flows.is_empty() => Event::Ended(ended),
                }
            });
            match event.await {
                None => break Ok(()),
                Some(Event::Delivery(Some(delivery))) => match *delivery {
                    Ok(delivery) => flows.push(self.process(&channel, delivery)),
                    Err(error) => break Err(error.into()),
                },
                Some(Event::Delivery(None)) => {
                    break Err(RabbitMqError::unreachable(format!(
                        "RabbitMQ ended the consumer of the queue `{queue}`"
                    )));
                }
                Some(Event::Ended(Ok(()))) => {}
                Some(Event::Ended(Err(error))) => break Err(error),
            }
        };
        if outcome.is_ok() {
            outcome = within(channel.basic_cancel(deliveries.tag(), BasicCancelOptions::default())).await;
        }
        while let Some(ended) = flows.next().await {
            outcome = outcome.and(ended);
        }
        if channel.status().connected() {
            outcome = outcome.and(within(channel.close(200, "paused".into())).await);
        }
        outcome
    }

    /// Runs the flow of a message and acknowledges it.
    async fn process(&self, channel: &Channel, mut delivery: Delivery) -> Result<(), RabbitMqError> {
        let settings = &self.settings;
        // A message that goes to the error exchange goes there as it came.
        let original = delivery.data.clone();
        let received = self.received(&mut delivery);
        let injected = self.consumer.consume(&self.control, received).await;
        if let Some(reply_to) = delivery.properties.reply_to().clone() {
            self.reply(&delivery, reply_to, &injected).await;
        }
        let requeues = is_set(&injected.message, "SET_REQUEUE_ON_ROLLBACK");
        if settings.auto_ack || injected.outcome.is_done() && !requeues {
            return acknowledged(channel, &delivery).await;
        }
        let id = delivery.properties.message_id().as_ref().map_or("", |id| id.as_str());
        if requeues {
            self.log(
                Level::Warn,
                &format!("message `{id}` returns to the queue in {} ms", settings.requeue_delay.as_millis()),
            );
            self.control.until(tokio::time::sleep(settings.requeue_delay)).await;
            return rejected(channel, &delivery, true).await;
        }
        let why = match &injected.outcome {
            Outcome::Failed(fault) => format!("its flow failed: {}", fault.message),
            _ => "its flow rolled back".to_owned(),
        };
        let deaths = dead_lettered(&delivery, settings.queue.as_str());
        if settings.dead_lettered_max.is_none_or(|most| deaths <= most) {
            let text =
                "rejected: RabbitMQ dead-letters it if the queue has a dead-letter exchange, and drops it otherwise";
            self.log(Level::Warn, &format!("message `{id}` was {text}; {why}"));
            return rejected(channel, &delivery, false).await;
        }
        match &settings.error_exchange {
            Some(exchange) => {
                self.publish_to(exchange, &settings.error_routing_key, true, &original, delivery.properties.clone())
                    .await?;
                self.log(Level::Warn, &format!("message `{id}` went to the exchange `{exchange}`; {why}"));
            }
            None => {
                self.log(Level::Error, &format!("message `{id}` was discarded after {deaths} dead-letterings; {why}"))
            }
        }
        acknowledged(channel, &delivery).await
    }

    fn received(&self, delivery: &mut Delivery) -> Message {
        let settings = &self.settings;
        let from_header = settings.content_type_header.as_deref().and_then(|header| {
            let table = delivery.properties.headers().as_ref()?;
            let lapin::types::AMQPValue::LongString(text) = table.inner().get(header)? else { return None };
            Some(String::from_utf8_lossy(text.as_bytes()).into_owned())
        });
        let content_type = settings.content_type.clone().or(from_header);
        if !has_content_type(delivery, content_type.as_deref()) {
            let id = delivery.properties.message_id().as_ref().map_or("", |id| id.as_str());
            let text = format!("Unable to determine content type for message {id}, setting to {DEFAULT_CONTENT_TYPE}");
            self.log(Level::Warn, &text);
        }
        message(delivery, content_type.as_deref())
    }

    /// Sends the response of the flow to the sender that waits for it. A failure is logged: the message is done all the same.
    async fn reply(&self, delivery: &Delivery, reply_to: ShortString, injected: &Injected) {
        let Some(reply) = &injected.reply else { return };
        let program = self.control.core().program().program.clone();
        let correlation = delivery.properties.correlation_id().clone().or(delivery.properties.message_id().clone());
        let sent = async {
            let (payload, headers) =
                body::written(reply, &program.conversion).map_err(|fault| fault.message.to_string())?;
            let content_type = name(headers.get("Content-Type").unwrap_or(DEFAULT_CONTENT_TYPE))?;
            let mut properties =
                BasicProperties::default().with_content_type(content_type).with_delivery_mode(PERSISTENT);
            if let Some(correlation) = correlation {
                properties = properties.with_correlation_id(correlation);
            }
            let exchange = ShortString::default();
            let published = self.publish_to(&exchange, &reply_to, false, &payload, properties).await;
            published.map_err(|error| error.reason)
        };
        if let Err(why) = sent.await {
            self.log(Level::Error, &format!("the response was not sent to the queue `{reply_to}`: {why}"));
        }
    }

    /// Publishes on a channel of its own, whose errors do not touch the consumer.
    async fn publish_to(
        &self,
        exchange: &ShortString,
        routing_key: &ShortString,
        is_mandatory: bool,
        payload: &[u8],
        properties: BasicProperties,
    ) -> Result<(), RabbitMqError> {
        let channel: Channel = self.link.channel().await?;
        within(channel.confirm_select(ConfirmSelectOptions::default())).await?;
        publish(&channel, exchange, routing_key, is_mandatory, payload, properties).await?;
        within(channel.close(200, "done".into())).await
    }

    fn log(&self, level: Level, text: &str) {
        self.control.log(level, text);
    }
}

fn is_set(message: &Message, name: &str) -> bool {
    message.properties.is_true(name) || message.axis2.is_true(name)
}

async fn acknowledged(channel: &Channel, delivery: &Delivery) -> Result<(), RabbitMqError> {
    settled(on_channel(channel, delivery.acker.ack(BasicAckOptions::default())).await?)
}

async fn rejected(channel: &Channel, delivery: &Delivery, requeue: bool) -> Result<(), RabbitMqError> {
    settled(on_channel(channel, delivery.acker.reject(BasicRejectOptions { requeue })).await?)
}

fn settled(is_settled: bool) -> Result<(), RabbitMqError> {
    let lost = "the connection to RabbitMQ was lost before a message was acknowledged; it will be delivered again";
    is_settled.then_some(()).ok_or_else(|| RabbitMqError::unreachable(lost))
}
