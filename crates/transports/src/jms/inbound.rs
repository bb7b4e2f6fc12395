//! Consumers: inbound endpoints of the protocol `jms`, and proxy services with `transports="jms"`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fe2o3_amqp::Receiver;
use fe2o3_amqp::link::RecvError;
use fe2o3_amqp::link::delivery::{Delivery, DeliveryInfo};
use fe2o3_amqp::types::messaging::{Body as AmqpBody, Modified};
use fe2o3_amqp::types::primitives::Value as AmqpAny;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use penstock_compile::{
    Compiler, Element, Feed, InboundEndpoint, InboundKind, ListenerKind, Parameters, ProxyListener,
};
use penstock_engine::background::{Control, RunService, ServiceError};
use penstock_engine::inject::{Consumer, Injected, Outcome};
use penstock_engine::ports::{Level, LocalFuture};
use penstock_message::{Message, Value};

use super::SCHEME;
use super::address::{Address, Destination, FACTORY, PROVIDER_URL, TRANSPORT, is_topic, resolved};
use super::connection::{Connected, JmsError, Subscription, end_receiver, unique_name};
use super::content::{self, Rule};
use super::message::{Format, Hyphens, Received, outgoing, received};
use super::outlet::Outlet;
use crate::broker::{body, lookup::Lookup};

/// The protocol of inbound endpoints.
pub const KIND: InboundKind = InboundKind { protocols: &["jms"], classes: &[], ignored: IGNORED, build };

/// The transport of proxy services.
pub const LISTENER: ListenerKind = ListenerKind { transport: SCHEME, build: build_listener };

/// Polling, pooling and reconnection of Micro Integrator: messages are pushed here, and attempts to connect do not end.
const IGNORED: &[&str] = &[
    "interval",
    "java.naming.factory.initial",
    "transport.jms.ConnectionFactoryJNDIName",
    "transport.jms.CacheLevel",
    "transport.jms.JMSSpecVersion",
    "transport.jms.ReceiveTimeout",
    "transport.jms.PubSubNoLocal",
    "transport.jms.retry.duration",
    "transport.jms.ResetConnectionOnPollingSuspension",
    "transport.jms.MaxConcurrentConsumers",
    "transport.jms.IdleTaskLimit",
    "transport.jms.InitialReconnectDuration",
    "transport.jms.ReconnectProgressFactor",
    "transport.jms.MaxReconnectDuration",
    "transport.jms.ConsumeErrorDelay",
    "transport.jms.MaxConsumeErrorRetriesBeforeDelay",
];

/// Parameters that are read, beside those that name destinations (`queue.NAME`).
const NAMES: [&str; 22] = [
    FACTORY,
    PROVIDER_URL,
    "transport.jms.ConnectionFactoryType",
    "transport.jms.DestinationType",
    "transport.jms.Destination",
    "transport.jms.ReplyDestination",
    "transport.jms.ReplyDestinationType",
    "transport.jms.UserName",
    "transport.jms.Password",
    "transport.jms.SessionTransacted",
    "transport.jms.SessionAcknowledgement",
    "transport.jms.ContentType",
    "transport.jms.ContentTypeProperty",
    "transport.jms.MessagePropertyHyphens",
    "transport.jms.MessageSelector",
    "transport.jms.SubscriptionDurable",
    "transport.jms.SharedSubscription",
    "transport.jms.DurableSubscriberName",
    "transport.jms.DurableSubscriberClientID",
    "transport.jms.ConcurrentConsumers",
    "transport.jms.RetriesBeforeSuspension",
    "transport.jms.PollingSuspensionPeriod",
];

/// The name that inbound endpoints have for `transport.jms.ConcurrentConsumers`.
const CONCURRENT: &str = "concurrent.consumers";

/// Messages that the broker sends ahead of their acknowledgement.
const PREFETCH: u32 = 32;

/// Flows at once of an endpoint with `sequential` `false` that names no number.
const FLOWS: usize = 8;

/// More than this is a mistake.
const FLOWS_MAX: usize = 1000;

/// `PollingSuspensionPeriod`
const SUSPENSION_MS: u64 = 60_000;

struct JmsConsumer {
    consumer: Consumer,
    /// Parameters of the connection may come from the configuration, which is known when the service runs.
    lookup: Lookup,
    settings: Arc<Settings>,
}

struct Settings {
    flows_max: usize,
    rules: Vec<Rule>,
    format: Format,
    /// Whether a message whose flow rolls back is delivered again.
    can_roll_back: bool,
    /// Messages in a row that roll back before the consumer pauses; 0: it does not.
    retries_before_suspension: u32,
    suspension: Duration,
    /// Micro Integrator sets the parameters of an inbound endpoint as properties of its messages.
    properties: Vec<(String, String)>,
}

fn build(endpoint: &InboundEndpoint<'_>, parameters: &Parameters, cx: &mut Compiler<'_>) -> Option<Feed> {
    let consumer = endpoint.consumer(cx)?;
    parameters.required("transport.jms.Destination", &endpoint.el, cx)?;
    if parameters.get(FACTORY).is_none() {
        parameters.required(PROVIDER_URL, &endpoint.el, cx)?;
    }
    let lookup = Lookup::new(&known(parameters));
    // A message of no known type is SOAP, as for Micro Integrator's builder.
    let defaults = vec![Rule::Type, Rule::Field, Rule::All("text/xml".to_owned())];
    let properties = lookup.beginning_with("").filter(|(name, _)| *name != "transport.jms.Password");
    let properties = properties.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let flows = if endpoint.sequential { 1 } else { FLOWS };
    feed(Definition { consumer, lookup, flows, defaults, properties }, parameters, &endpoint.el, cx)
}

fn build_listener(listener: &ProxyListener<'_>, parameters: &Parameters, cx: &mut Compiler<'_>) -> Option<Feed> {
    let mut entries = known(parameters);
    if parameters.get("transport.jms.Destination").is_none() {
        entries.push(("transport.jms.Destination".into(), listener.name.into()));
    }
    if parameters.flag("jms.proxy.throttle.enabled", false) {
        let at = parameters.place("jms.proxy.throttle.enabled", &listener.el);
        cx.warn(at, "throttling of a JMS listener is not supported");
    }
    let defaults = vec![
        Rule::Property("contentType".to_owned()),
        Rule::Bytes("application/octet-stream".to_owned()),
        Rule::Text("text/plain".to_owned()),
    ];
    let (consumer, lookup) = (listener.consumer.clone(), Lookup::new(&entries));
    feed(Definition { consumer, lookup, flows: 1, defaults, properties: Vec::new() }, parameters, &listener.el, cx)
}

/// The parameters this transport knows, which count as read.
fn known(parameters: &Parameters) -> Vec<(Arc<str>, Arc<str>)> {
    parameters.matching(|name| {
        NAMES.contains(&name) || name == CONCURRENT || name.starts_with("queue.") || name.starts_with("topic.")
    })
}

/// What an artifact says.
struct Definition {
    consumer: Consumer,
    lookup: Lookup,
    flows: usize,
    /// The rules when no parameter has the content type.
    defaults: Vec<Rule>,
    properties: Vec<(String, String)>,
}

fn feed(from: Definition, parameters: &Parameters, el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Feed> {
    let Definition { consumer, lookup, flows, defaults, properties } = from;
    let settings = Settings::parse(&lookup, flows, defaults, properties);
    // A connection of the configuration may replace the URL, so only what no configuration can mend is an error here.
    let checked = match lookup.get(PROVIDER_URL) {
        Some(_) => Address::parse(&lookup, &TRANSPORT, &[]).and(settings),
        None => settings,
    };
    match checked {
        Ok(settings) => Some(Feed::Service(Arc::new(JmsConsumer { consumer, lookup, settings: Arc::new(settings) }))),
        Err(reason) => {
            let named = NAMES.iter().chain(&[CONCURRENT]).find(|name| reason.contains(**name));
            cx.error(named.map_or_else(|| el.place(), |name| parameters.place(name, el)), reason);
            None
        }
    }
}

impl Settings {
    fn parse(
        lookup: &Lookup,
        flows: usize,
        defaults: Vec<Rule>,
        properties: Vec<(String, String)>,
    ) -> Result<Settings, String> {
        let content_type_property = lookup.get("transport.jms.ContentTypeProperty").map(str::to_owned);
        let mut rules: Vec<Rule> = content_type_property.iter().cloned().map(Rule::Property).collect();
        match lookup.get("transport.jms.ContentType") {
            Some(text) => rules.extend(content::parse(text)?),
            None => rules.extend(defaults),
        }
        let consumers = match lookup.number(CONCURRENT)? {
            Some(number) => Some(number),
            None => lookup.number("transport.jms.ConcurrentConsumers")?,
        };
        let acknowledgement = lookup.get("transport.jms.SessionAcknowledgement").unwrap_or("AUTO_ACKNOWLEDGE");
        let suspension = lookup.number("transport.jms.PollingSuspensionPeriod")?.unwrap_or(SUSPENSION_MS);
        Ok(Settings {
            flows_max: consumers.unwrap_or(flows).clamp(1, FLOWS_MAX),
            rules,
            format: Format {
                hyphens: Hyphens::parse(lookup.get("transport.jms.MessagePropertyHyphens"))?,
                content_type_property,
            },
            can_roll_back: lookup.flag("transport.jms.SessionTransacted", false)
                || acknowledgement == "CLIENT_ACKNOWLEDGE",
            retries_before_suspension: lookup.number("transport.jms.RetriesBeforeSuspension")?.unwrap_or(0),
            suspension: Duration::from_millis(suspension),
            properties,
        })
    }
}

/// What is consumed, once the connection is known.
struct Inlet {
    address: Address,
    destination: Destination,
    reply_queue: Option<Destination>,
    subscription: Subscription,
    /// The client identifier of a durable subscription, or a name that no other has.
    container: String,
}

impl Inlet {
    fn new(lookup: &Lookup, settings: &Settings, source: &str, control: &Control) -> Result<Inlet, String> {
        let name = lookup.get("transport.jms.Destination").unwrap_or_default();
        let destination = Destination::parse(name, is_topic(lookup, "transport.jms.DestinationType"), lookup);
        let reply_queue = lookup
            .get("transport.jms.ReplyDestination")
            .map(|name| Destination::parse(name, is_topic(lookup, "transport.jms.ReplyDestinationType"), lookup));
        let text = |name: &str| lookup.get(name).unwrap_or(source).to_owned();
        let is_durable = destination.is_topic && lookup.flag("transport.jms.SubscriptionDurable", false);
        let durable = is_durable
            .then(|| (text("transport.jms.DurableSubscriberName"), text("transport.jms.DurableSubscriberClientID")));
        let flows = u32::try_from(settings.flows_max).unwrap_or(u32::MAX);
        // A message that rolls back returns to the head of its queue: with others sent ahead, it would come after them.
        let prefetch = if settings.can_roll_back { flows } else { flows.max(PREFETCH) };
        Ok(Inlet {
            address: Address::parse(lookup, &TRANSPORT, &control.core().environment.connection_factories)?,
            destination,
            reply_queue,
            container: durable.as_ref().map_or_else(unique_name, |(_, client)| client.clone()),
            subscription: Subscription {
                durable,
                is_shared: lookup.flag("transport.jms.SharedSubscription", false),
                selector: lookup.get("transport.jms.MessageSelector").map(str::to_owned),
                prefetch: Some(prefetch),
            },
        })
    }
}

impl RunService for JmsConsumer {
    fn run(&self, control: Control) -> LocalFuture<'static, Result<(), ServiceError>> {
        let (consumer, settings, lookup) = (self.consumer.clone(), self.settings.clone(), self.lookup.clone());
        Box::pin(async move {
            let inlet = resolved(lookup, &control.core().environment.connection_factories)
                .and_then(|lookup| Inlet::new(&lookup, &settings, &consumer.source.name, &control));
            let inlet = inlet.map_err(ServiceError::lasting)?;
            let outlet = Arc::new(Outlet::new(inlet.address.clone()));
            let session = Session { consumer, settings, inlet, outlet, control, failures: AtomicU32::new(0) };
            session.run().await.map_err(|error| ServiceError::temporary(error.reason))
        })
    }
}

/// A consumer that runs.
struct Session {
    consumer: Consumer,
    settings: Arc<Settings>,
    inlet: Inlet,
    /// For replies.
    outlet: Arc<Outlet>,
    control: Control,
    /// Messages in a row that rolled back.
    failures: AtomicU32,
}

enum Event {
    Delivery(Box<Result<Delivery<AmqpBody<AmqpAny>>, RecvError>>),
    Ended(Settled),
}

/// A message whose flow has ended.
struct Settled {
    delivery: DeliveryInfo,
    verdict: Verdict,
}

enum Verdict {
    Accept,
    /// The broker delivers it again, and counts that.
    Redeliver,
    /// The broker moves it to its dead letters.
    Reject,
}

impl Session {
    async fn run(&self) -> Result<(), JmsError> {
        let mut control = self.control.clone();
        // A connection for each time between two pauses: what the broker sent ahead goes back when it is closed.
        while control.next().await {
            let mut connected = Connected::open(&self.inlet.address, &self.inlet.container).await?;
            let outcome = self.consume(&mut connected).await;
            connected.close().await;
            if outcome? {
                control.sleep(self.settings.suspension).await;
            }
        }
        Ok(())
    }

    /// Consumes until the service must pause or stop. Whether it has failed so often that it pauses by itself.
    async fn consume(&self, connected: &mut Connected) -> Result<bool, JmsError> {
        let Inlet { address, destination, subscription, .. } = &self.inlet;
        let mut receiver = connected.receiver(destination, subscription).await?;
        self.control.working();
        self.control.log(Level::Info, &format!("consuming `{}` of {address}", destination.name));
        let mut flows = FuturesUnordered::new();
        let mut outcome = loop {
            let has_room = flows.len() < self.settings.flows_max && !self.must_suspend();
            let event = self.control.until(async {
                tokio::select! {
                    delivery = receiver.recv(), if has_room => Some(Event::Delivery(Box::new(delivery))),
                    Some(ended) = flows.next(), if !flows.is_empty() => Some(Event::Ended(ended)),
                    else => None,
                }
            });
            match event.await.flatten() {
                None => break Ok(()),
                Some(Event::Delivery(delivery)) => match *delivery {
                    Ok(delivery) => flows.push(self.process(delivery)),
                    // The link would break for each delivery of it.
                    Err(RecvError::MessageDecode(undecodable)) => {
                        let why = undecodable.source.to_string();
                        if let Err(error) = self.reject_undecodable(&receiver, undecodable.info, &why).await {
                            break Err(error);
                        }
                    }
                    Err(error) => break Err(JmsError::lost(error)),
                },
                Some(Event::Ended(ended)) => {
                    if let Err(error) = settle(&receiver, ended).await {
                        break Err(error);
                    }
                }
            }
        };
        while let Some(ended) = flows.next().await {
            outcome = outcome.and(settle(&receiver, ended).await);
        }
        drop(flows);
        end_receiver(receiver, subscription.durable.is_some()).await;
        outcome.map(|()| self.must_suspend() && self.failures.swap(0, Ordering::Relaxed) > 0)
    }

    /// The broker moves a message that cannot be decoded to its dead letters.
    async fn reject_undecodable(&self, receiver: &Receiver, delivery: DeliveryInfo, why: &str) -> Result<(), JmsError> {
        let queue = &self.inlet.destination.name;
        self.control.log(Level::Error, &format!("a message of `{queue}` was rejected: it cannot be decoded: {why}"));
        self.control.count(false);
        settle(receiver, Settled { delivery, verdict: Verdict::Reject }).await
    }

    fn must_suspend(&self) -> bool {
        let most = self.settings.retries_before_suspension;
        most > 0 && self.failures.load(Ordering::Relaxed) >= most
    }

    /// Runs the flow of a message.
    async fn process(&self, delivery: Delivery<AmqpBody<AmqpAny>>) -> Settled {
        let (info, message) = delivery.into_parts();
        let Received { mut message, redeliveries, reply_to, correlation } = received(message, &self.settings.rules);
        for (name, value) in &self.settings.properties {
            message.properties.set(name.as_str(), Value::string(value.as_str()));
        }
        let count = Value::Integer(i64::from(redeliveries) + 1);
        message.properties.set("jms.message.delivery.count", count);
        let id = message.headers.get("JMS_MESSAGE_ID").unwrap_or_default().to_owned();
        let injected = self.consumer.consume(&self.control, message).await;
        let reply_queue = reply_to.map(|name| Destination::queue(&name)).or_else(|| self.inlet.reply_queue.clone());
        if let (Some(reply_queue), Some(reply)) = (reply_queue, &injected.reply)
            && let Err(why) = self.reply(&reply_queue, correlation, reply).await
        {
            self.control.log(Level::Error, &format!("the response was not sent to `{}`: {why}", reply_queue.name));
        }
        let verdict = self.verdict(&injected, redeliveries, &id).await;
        Settled { delivery: info, verdict }
    }

    async fn verdict(&self, injected: &Injected, redeliveries: u32, id: &str) -> Verdict {
        if injected.outcome.is_done() || !self.settings.can_roll_back {
            self.failures.store(0, Ordering::Relaxed);
            return Verdict::Accept;
        }
        self.failures.fetch_add(1, Ordering::Relaxed);
        if redeliveries < self.inlet.address.redeliveries_max {
            self.control.until(tokio::time::sleep(self.inlet.address.redelivery_delay)).await;
            return Verdict::Redeliver;
        }
        let why = match &injected.outcome {
            Outcome::Failed(fault) => format!("its flow failed: {}", fault.message),
            _ => "its flow rolled back".to_owned(),
        };
        let text = format!("message `{id}` was rejected after {} deliveries; {why}", redeliveries.saturating_add(1));
        self.control.log(Level::Warn, &text);
        Verdict::Reject
    }

    async fn reply(&self, to: &Destination, correlation: Option<String>, reply: &Message) -> Result<(), String> {
        let program = self.control.core().program().program.clone();
        let (payload, headers) =
            body::written(reply, &program.conversion).map_err(|fault| fault.message.to_string())?;
        let mut sent = Message { headers, ..Message::default() };
        if let Some(correlation) = correlation {
            sent.axis2.set("JMS_COORELATION_ID", Value::string(correlation));
        }
        let message = outgoing(&sent, &payload, &self.settings.format)?;
        self.outlet.send(to, message).await.map_err(|error| error.reason)
    }
}

async fn settle(receiver: &Receiver, ended: Settled) -> Result<(), JmsError> {
    let settled = match ended.verdict {
        Verdict::Accept => receiver.accept(ended.delivery).await,
        Verdict::Redeliver => {
            let modified =
                Modified { delivery_failed: Some(true), undeliverable_here: None, message_annotations: None };
            receiver.modify(ended.delivery, modified).await
        }
        Verdict::Reject => receiver.reject(ended.delivery, None).await,
    };
    settled.map_err(JmsError::lost)
}
