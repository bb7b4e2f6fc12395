//! Endpoints `rabbitmq:/…`: publish and wait for the confirmation, or send a request and wait for the reply.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use lapin::message::Delivery;
use lapin::options::{BasicConsumeOptions, QueueDeclareOptions};
use lapin::types::{FieldTable, ShortString};
use lapin::{Channel, Consumer};
use penstock_engine::ports::{ConnectionFactory, Outgoing};
use penstock_engine::{Fault, Side, codes};
use penstock_message::{Body, Message};
use tokio::sync::oneshot;

use super::address::{Address, SERVER, resolved};
use super::connection::{Link, RabbitMqError, within};
use super::message::{message, properties};
use super::store::{publish, publishing_channel};
use super::topology::{Topology, name};
use crate::broker::kept::{Connections, Parsed};
use crate::broker::sender::SharedClient;
use crate::broker::{body, body::directive, handle, lookup::Lookup};

/// How long a reply or a confirmation is waited for.
const WAIT_MS: u64 = 30_000;

/// The connections of all endpoints. One for the whole process.
pub(crate) struct RabbitMq {
    factories: Vec<ConnectionFactory>,
    links: Connections<Link>,
    destinations: Parsed<Destination>,
}

/// What a URL means.
struct Destination {
    link: Arc<Link>,
    topology: Topology,
    exchange: ShortString,
    routing_key: ShortString,
    has_confirms: bool,
    confirm_wait: Duration,
    reply_wait: Duration,
    reply_queue: Option<ShortString>,
    publisher: tokio::sync::Mutex<Option<Channel>>,
    replies: tokio::sync::Mutex<Option<Replies>>,
}

/// Where replies arrive, and who waits for them by correlation identifier.
#[derive(Clone)]
struct Replies {
    channel: Channel,
    queue: ShortString,
    waiting: Arc<Mutex<HashMap<String, oneshot::Sender<Delivery>>>>,
}

impl RabbitMq {
    /// No connections yet. `factories`: the connection factories of the configuration.
    pub(crate) fn new(factories: Vec<ConnectionFactory>) -> RabbitMq {
        RabbitMq { factories, links: Connections::default(), destinations: Parsed::default() }
    }

    fn parse(&self, url: &str) -> Result<Destination, String> {
        let (path, lookup) = Lookup::from_url(url);
        let lookup = resolved(lookup, &self.factories)?;
        let address = Address::parse(&lookup, &SERVER)?;
        let topology = Topology::parse(&lookup)?;
        let queue = topology.queue.as_ref().map(|queue| queue.name.clone());
        let routing_key = match (&topology.routing_key, &topology.exchange, queue) {
            (Some(key), _, _) => key.clone(),
            (None, _, Some(queue)) => queue,
            (None, _, None) => name(&path)?,
        };
        let exchange = topology.exchange.as_ref().map_or_else(ShortString::default, |exchange| exchange.name.clone());
        let millis = |name: &str| lookup.number(name).map(|wait| Duration::from_millis(wait.unwrap_or(WAIT_MS)));
        Ok(Destination {
            link: self.link(address),
            topology,
            exchange,
            routing_key,
            has_confirms: lookup.flag("rabbitmq.publisher.confirms.enabled", false),
            confirm_wait: millis("rabbitmq.publisher.confirms.wait.timeout")?,
            reply_wait: millis("rabbitmq.wait.reply.timeout")?,
            reply_queue: lookup.get("rabbitmq.replyto.name").map(name).transpose()?,
            publisher: tokio::sync::Mutex::default(),
            replies: tokio::sync::Mutex::default(),
        })
    }

    fn link(&self, address: Address) -> Arc<Link> {
        self.links.get_or_make(|link| *link.address() == address, || Link::new(address.clone(), "Penstock endpoints"))
    }
}

impl Destination {
    async fn publisher(&self) -> Result<Channel, RabbitMqError> {
        publishing_channel(&self.publisher, &self.topology, &self.link).await
    }

    async fn replies(&self) -> Result<Replies, RabbitMqError> {
        let mut replies = self.replies.lock().await;
        if let Some(open) = replies.as_ref().filter(|open| open.channel.status().connected()) {
            return Ok(open.clone());
        }
        let channel = self.link.channel().await?;
        let (name, options) = match &self.reply_queue {
            Some(name) => (name.clone(), QueueDeclareOptions::durable()),
            None => (ShortString::default(), QueueDeclareOptions::exclusive().auto_delete()),
        };
        let declared = channel.queue_declare(name.clone(), options, FieldTable::default());
        let queue = match within(declared).await {
            Ok(queue) => queue.name().clone(),
            Err(error) if error.is_inequivalent => name,
            Err(error) => return Err(error),
        };
        let channel = match channel.status().connected() {
            true => channel,
            false => self.link.channel().await?,
        };
        let options = BasicConsumeOptions { no_ack: true, ..BasicConsumeOptions::default() };
        let consumer = channel.basic_consume(queue.clone(), ShortString::default(), options, FieldTable::default());
        let consumer = within(consumer).await?;
        let open = Replies { channel, queue, waiting: Arc::default() };
        let runtime = handle().map_err(RabbitMqError::refused)?;
        runtime.spawn(hand_out(consumer, open.waiting.clone()));
        *replies = Some(open.clone());
        Ok(open)
    }
}

/// Hands replies to the requests that wait for them. A reply that comes too late, or that matches no request, is dropped.
async fn hand_out(mut consumer: Consumer, waiting: Arc<Mutex<HashMap<String, oneshot::Sender<Delivery>>>>) {
    let lock = || waiting.lock().unwrap_or_else(PoisonError::into_inner);
    while let Some(Ok(delivery)) = consumer.next().await {
        let id = delivery.properties.correlation_id().as_ref().map(ToString::to_string);
        if let Some(sender) = id.and_then(|id| lock().remove(&id)) {
            // The request may have timed out.
            let _ = sender.send(delivery);
        }
    }
    lock().clear();
}

impl SharedClient for RabbitMq {
    async fn deliver(self: Arc<Self>, outgoing: Outgoing) -> Result<Message, Fault> {
        let Outgoing { url, message: mut sent, options, .. } = outgoing;
        let destination = self
            .destinations
            .get_or_parse(&url, |url| self.parse(url))
            .map_err(|reason| Fault::new(format!("RabbitMQ endpoint: {reason}")))?;
        let payload = body::whole(std::mem::take(&mut sent.body)).await?;
        if !options.one_way && !destination.has_confirms {
            return request(&destination, sent, &payload, options.time_left).await;
        }
        let wait = wait(&sent, "RABBITMQ_WAIT_CONFIRMS", destination.confirm_wait)?.min(options.time_left);
        let properties = properties(&sent).map_err(Fault::new)?;
        let published = async {
            let channel = destination.publisher().await?;
            let Destination { exchange, routing_key, .. } = &*destination;
            // An exchange decides by itself whom a message is for, and that may be no queue.
            let is_mandatory = exchange.as_str().is_empty();
            publish(&channel, exchange, routing_key, is_mandatory, &payload, properties).await
        };
        match tokio::time::timeout(wait, published).await {
            Ok(published) => published.map_err(failed)?,
            Err(_) => {
                return Err(timed_out(format!(
                    "Did not receive a confirmation within {}ms for the message published to the exchange: {} with the routing \
                     key: {}",
                    wait.as_millis(),
                    destination.exchange,
                    destination.routing_key
                )));
            }
        }
        if options.one_way {
            return Ok(Message { status: 202, ..Message::default() });
        }
        // With confirms the request is its own reply.
        Ok(Message { status: 200, headers: sent.headers, body: Body::bytes(payload), ..Message::default() })
    }
}

async fn request(
    destination: &Destination,
    sent: Message,
    payload: &[u8],
    time_left: Duration,
) -> Result<Message, Fault> {
    let wait = wait(&sent, "RABBITMQ_WAIT_REPLY", destination.reply_wait)?.min(time_left);
    let replies = destination.replies().await.map_err(failed)?;
    let properties = properties(&sent).map_err(Fault::new)?.with_reply_to(replies.queue.clone());
    let id = properties.correlation_id().as_ref().map_or_else(String::new, ToString::to_string);
    let waiting = Waiting { replies: &replies, id: id.clone() };
    let (sender, receiver) = oneshot::channel();
    let before = replies.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
    if before.is_some() {
        return Err(Fault::new("two requests with the same correlation identifier wait for a reply over RabbitMQ"));
    }
    let exchanged = async {
        let channel = destination.publisher().await?;
        publish(&channel, &destination.exchange, &destination.routing_key, true, payload, properties).await?;
        receiver
            .await
            .map_err(|_| RabbitMqError::unreachable("the connection to RabbitMQ was lost before the reply came"))
    };
    let exchanged = tokio::time::timeout(wait, exchanged).await;
    drop(waiting);
    let mut delivery = match exchanged {
        Ok(exchanged) => exchanged.map_err(failed)?,
        Err(_) => {
            return Err(timed_out(format!(
                "Did not receive a response within {}ms to the replyTo queue {}",
                wait.as_millis(),
                replies.queue
            )));
        }
    };
    Ok(Message { status: 200, ..message(&mut delivery, None) })
}

/// Removes a request when its caller no longer waits for the reply.
struct Waiting<'a> {
    replies: &'a Replies,
    id: String,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.replies.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

fn wait(message: &Message, property: &str, default: Duration) -> Result<Duration, Fault> {
    let Some(text) = directive(message, property) else { return Ok(default) };
    let wrong = |_| Fault::new(format!("the property `{property}` is not a number of milliseconds: `{text}`"));
    text.parse().map(Duration::from_millis).map_err(wrong)
}

fn failed(error: RabbitMqError) -> Fault {
    let code = if error.is_unreachable { codes::CONNECTION_FAILED } else { codes::SENDER_IO_SENDING };
    Fault::coded(code, Side::Backend, error.reason)
}

fn timed_out(text: String) -> Fault {
    Fault::coded(codes::CONNECTION_TIMED_OUT, Side::Backend, text)
}
