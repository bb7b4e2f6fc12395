//! Messages in a durable queue. A message is stored when the broker has confirmed it, and leaves the queue when it is
//! acknowledged; the queue has it again when this process ends before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lapin::options::{
    BasicAckOptions, BasicGetOptions, BasicNackOptions, BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions,
};
use lapin::types::{FieldTable, ShortString};
use lapin::{Acker, BasicProperties, Channel, Confirmation};
use penstock_engine::ports::LocalFuture;
use penstock_engine::store::{MessageStore, Record, Reservation, StoreError};

use super::address::{Address, STORE};
use super::connection::{Link, RabbitMqError, on_channel, within};
use super::message::PERSISTENT;
use super::topology::{ExchangeDefinition, QueueDefinition, Topology, name};
use crate::broker::{handle, lookup::Lookup};

/// The queue of one store.
pub(crate) struct Queue {
    link: Link,
    topology: Topology,
    queue: ShortString,
    exchange: ShortString,
    routing_key: ShortString,
    /// With confirms.
    publisher: tokio::sync::Mutex<Option<Channel>>,
    consumer: tokio::sync::Mutex<Option<Channel>>,
    reserved: Mutex<Reserved>,
}

#[derive(Default)]
struct Reserved {
    next_token: u64,
    ackers: HashMap<u64, (Acker, Channel)>,
}

impl Queue {
    /// The store of these parameters, not connected.
    pub(crate) fn new(store: &str, parameters: &[(Arc<str>, Arc<str>)]) -> Result<Queue, StoreError> {
        Queue::parse(store, &Lookup::new(parameters)).map_err(|message| StoreError {
            message: format!("message store `{store}`: {message}"),
            is_unreachable: false,
        })
    }

    fn parse(store: &str, lookup: &Lookup) -> Result<Queue, String> {
        let address = Address::parse(lookup, &STORE)?;
        let queue = name(lookup.get("store.rabbitmq.queue.name").unwrap_or(store))?;
        let exchange = lookup.get("store.rabbitmq.exchange.name").map(name).transpose()?;
        let routing_key = match lookup.get("store.rabbitmq.route.key") {
            // Without an exchange of its own a message reaches the queue by the queue's name only.
            Some(key) if exchange.is_some() => name(key)?,
            _ => queue.clone(),
        };
        let topology = Topology {
            queue: Some(QueueDefinition {
                name: queue.clone(),
                is_declared: true,
                options: QueueDeclareOptions::durable(),
                arguments: FieldTable::default(),
            }),
            exchange: exchange.clone().map(ExchangeDefinition::durable_direct),
            routing_key: Some(routing_key.clone()),
        };
        Ok(Queue {
            link: Link::new(address, format!("Penstock message store {store}")),
            topology,
            queue,
            exchange: exchange.unwrap_or_default(),
            routing_key,
            publisher: tokio::sync::Mutex::default(),
            consumer: tokio::sync::Mutex::default(),
            reserved: Mutex::default(),
        })
    }

    fn reserved(&self) -> MutexGuard<'_, Reserved> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn publisher(&self) -> Result<Channel, RabbitMqError> {
        let mut publisher = self.publisher.lock().await;
        if let Some(channel) = publisher.as_ref().filter(|channel| channel.status().connected()) {
            return Ok(channel.clone());
        }
        let channel = self.topology.declare(&self.link).await?;
        within(channel.confirm_select(ConfirmSelectOptions::default())).await?;
        *publisher = Some(channel.clone());
        Ok(channel)
    }

    async fn consumer(&self) -> Result<Channel, RabbitMqError> {
        let mut consumer = self.consumer.lock().await;
        if let Some(channel) = consumer.as_ref().filter(|channel| channel.status().connected()) {
            return Ok(channel.clone());
        }
        let channel = self.topology.declare(&self.link).await?;
        *consumer = Some(channel.clone());
        // What the channel before had not acknowledged is in the queue again.
        self.reserved().ackers.clear();
        Ok(channel)
    }

    async fn put(&self, record: Record) -> Result<(), RabbitMqError> {
        let properties = BasicProperties::default()
            .with_delivery_mode(PERSISTENT)
            .with_message_id(name(&record.id).map_err(RabbitMqError::refused)?)
            .with_content_type("application/json".into())
            .with_priority(record.priority.unwrap_or_default());
        let channel = self.publisher().await?;
        publish(&channel, &self.exchange, &self.routing_key, true, &record.bytes, properties).await
    }

    async fn reserve(self: Arc<Queue>) -> Result<Option<Reservation>, RabbitMqError> {
        let channel = self.consumer().await?;
        let got =
            on_channel(&channel, channel.basic_get(self.queue.clone(), BasicGetOptions { no_ack: false })).await?;
        let Some(message) = got else { return Ok(None) };
        let delivery = message.delivery;
        let id = delivery.properties.message_id().as_ref().map_or_else(String::new, ToString::to_string);
        let record = Record { id: id.into(), priority: *delivery.properties.priority(), bytes: delivery.data.into() };
        let token = {
            let mut reserved = self.reserved();
            reserved.next_token += 1;
            let token = reserved.next_token;
            reserved.ackers.insert(token, (delivery.acker, channel));
            token
        };
        Ok(Some(Reservation { record, token, hold: Some(Box::new(Hold { queue: self, token })) }))
    }

    fn take(&self, token: u64) -> Option<(Acker, Channel)> {
        self.reserved().ackers.remove(&token)
    }

    async fn acknowledge(&self, token: u64) -> Result<(), RabbitMqError> {
        let gone = || {
            RabbitMqError::unreachable(
                "the connection to RabbitMQ was lost before the message was acknowledged; it will be delivered again",
            )
        };
        let (acker, channel) = self.take(token).ok_or_else(gone)?;
        match on_channel(&channel, acker.ack(BasicAckOptions::default())).await? {
            true => Ok(()),
            false => Err(gone()),
        }
    }

    /// The number of messages that no consumer has.
    async fn count(&self) -> Result<u64, RabbitMqError> {
        let channel = self.consumer().await?;
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let queue = within(channel.queue_declare(self.queue.clone(), options, FieldTable::default())).await?;
        Ok(u64::from(queue.message_count()))
    }
}

impl ExchangeDefinition {
    fn durable_direct(name: ShortString) -> ExchangeDefinition {
        ExchangeDefinition {
            is_declared: !name.as_str().starts_with("amq."),
            name,
            kind: lapin::ExchangeKind::Direct,
            options: lapin::options::ExchangeDeclareOptions {
                durable: true,
                ..lapin::options::ExchangeDeclareOptions::default()
            },
            arguments: FieldTable::default(),
        }
    }
}

/// Publishes on a channel with confirms and waits for the confirmation. `is_mandatory`: a message that reaches no queue is an
/// error.
pub(super) async fn publish(
    channel: &Channel,
    exchange: &ShortString,
    routing_key: &ShortString,
    is_mandatory: bool,
    payload: &[u8],
    properties: BasicProperties,
) -> Result<(), RabbitMqError> {
    let options = BasicPublishOptions { mandatory: is_mandatory, ..BasicPublishOptions::default() };
    let published = channel.basic_publish(exchange.clone(), routing_key.clone(), options, payload, properties);
    let confirm = on_channel(channel, published).await?;
    match on_channel(channel, confirm).await? {
        Confirmation::Ack(None) => Ok(()),
        Confirmation::Ack(Some(returned)) | Confirmation::Nack(Some(returned)) => Err(RabbitMqError::refused(format!(
            "RabbitMQ returned the message: {} (exchange `{exchange}`, routing key `{routing_key}`)",
            returned.reply_text
        ))),
        Confirmation::Nack(None) => Err(RabbitMqError::refused("RabbitMQ did not store the message")),
        Confirmation::NotRequested => Err(RabbitMqError::refused("the channel has no publisher confirms")),
    }
}

/// Returns a message to its queue when its consumer is gone.
struct Hold {
    queue: Arc<Queue>,
    token: u64,
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Without a runtime the process ends, and the broker returns the message itself.
        if let (Some((acker, channel)), Ok(runtime)) = (self.queue.take(self.token), handle()) {
            runtime.spawn(async move {
                let _ = return_to_queue(&acker, &channel).await;
            });
        }
    }
}

async fn return_to_queue(acker: &Acker, channel: &Channel) -> Result<(), RabbitMqError> {
    on_channel(channel, acker.nack(BasicNackOptions { requeue: true, ..BasicNackOptions::default() })).await.map(drop)
}

/// The store as a core has it.
pub(crate) struct Handle(pub(crate) Arc<Queue>);

fn failed(error: RabbitMqError) -> StoreError {
    StoreError { message: error.reason, is_unreachable: error.is_unreachable }
}

impl MessageStore for Handle {
    fn put(&self, record: Record) -> LocalFuture<'static, Result<(), StoreError>> {
        let queue = self.0.clone();
        Box::pin(async move { queue.put(record).await.map_err(failed) })
    }

    fn reserve(&self) -> LocalFuture<'static, Result<Option<Reservation>, StoreError>> {
        let queue = self.0.clone();
        Box::pin(async move { queue.reserve().await.map_err(failed) })
    }

    fn acknowledge(&self, token: u64) -> LocalFuture<'static, Result<(), StoreError>> {
        let queue = self.0.clone();
        Box::pin(async move { queue.acknowledge(token).await.map_err(failed) })
    }

    fn release(&self, token: u64) -> LocalFuture<'static, Result<(), StoreError>> {
        let queue = self.0.clone();
        Box::pin(async move {
            match queue.take(token) {
                Some((acker, channel)) => return_to_queue(&acker, &channel).await.map_err(failed),
                // The broker has it again since the connection was lost.
                None => Ok(()),
            }
        })
    }

    fn count(&self) -> LocalFuture<'static, Result<Option<u64>, StoreError>> {
        let queue = self.0.clone();
        Box::pin(async move { queue.count().await.map(Some).map_err(failed) })
    }

    fn browse(&self, _: usize) -> LocalFuture<'static, Result<Vec<Record>, StoreError>> {
        let message = "the messages of a queue of RabbitMQ cannot be listed without taking them".to_owned();
        Box::pin(std::future::ready(Err(StoreError { message, is_unreachable: false })))
    }
}
