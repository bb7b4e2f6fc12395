//! Messages in a durable queue. A message is stored when the broker has confirmed it, and leaves the queue when it is
//! acknowledged; the queue has it again when this process ends before.

use std::sync::Arc;

use lapin::options::{
    BasicAckOptions, BasicGetOptions, BasicNackOptions, BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions,
};
use lapin::types::{FieldTable, ShortString};
use lapin::{Acker, BasicProperties, Channel, Confirmation};
use penstock_compile::OpenStore;
use penstock_engine::ports::ConnectionFactory;
use penstock_engine::store::{Record, StoreError};

use super::address::{Address, STORE};
use super::connection::{Link, RabbitMqError, on_channel, within};
use super::message::PERSISTENT;
use super::topology::{ExchangeDefinition, QueueDefinition, Topology, name};
use crate::broker::lookup::Lookup;
use crate::broker::store::{BrokerQueue, Reserved, opened};

/// Opens the store of these parameters.
pub(super) fn open(
    store: &str,
    parameters: &[(Arc<str>, Arc<str>)],
    _: &[ConnectionFactory],
) -> Result<OpenStore, StoreError> {
    opened(store, Queue::parse(store, &Lookup::new(parameters)))
}

/// The queue of one store.
struct Queue {
    link: Link,
    topology: Topology,
    queue: ShortString,
    exchange: ShortString,
    routing_key: ShortString,
    /// With confirms.
    publisher: tokio::sync::Mutex<Option<Channel>>,
    consumer: tokio::sync::Mutex<Option<Channel>>,
}

impl Queue {
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
        })
    }

    async fn publisher(&self) -> Result<Channel, RabbitMqError> {
        publishing_channel(&self.publisher, &self.topology, &self.link).await
    }

    async fn consumer(&self, reserved: &Reserved<(Acker, Channel)>) -> Result<Channel, RabbitMqError> {
        let mut consumer = self.consumer.lock().await;
        if let Some(channel) = consumer.as_ref().filter(|channel| channel.status().connected()) {
            return Ok(channel.clone());
        }
        let channel = self.topology.declare(&self.link).await?;
        *consumer = Some(channel.clone());
        reserved.clear();
        Ok(channel)
    }
}

impl BrokerQueue for Queue {
    const BROKER: &str = "RabbitMQ";
    type Delivery = (Acker, Channel);
    type Error = RabbitMqError;

    async fn put(&self, record: Record) -> Result<(), RabbitMqError> {
        let properties = BasicProperties::default()
            .with_delivery_mode(PERSISTENT)
            .with_message_id(name(&record.id).map_err(RabbitMqError::refused)?)
            .with_content_type("application/json".into())
            .with_priority(record.priority.unwrap_or_default());
        let channel = self.publisher().await?;
        publish(&channel, &self.exchange, &self.routing_key, true, &record.bytes, properties).await
    }

    async fn take(
        &self,
        reserved: &Reserved<Self::Delivery>,
    ) -> Result<Option<(Record, Self::Delivery)>, RabbitMqError> {
        let channel = self.consumer(reserved).await?;
        let got =
            on_channel(&channel, channel.basic_get(self.queue.clone(), BasicGetOptions { no_ack: false })).await?;
        let Some(message) = got else { return Ok(None) };
        let delivery = message.delivery;
        let id = delivery.properties.message_id().as_ref().map_or_else(String::new, ToString::to_string);
        let record = Record {
            id: id.into(),
            priority: *delivery.properties.priority(),
            sequence: None,
            bytes: delivery.data.into(),
        };
        Ok(Some((record, (delivery.acker, channel))))
    }

    async fn acknowledge(&self, (acker, channel): Self::Delivery) -> Result<bool, RabbitMqError> {
        on_channel(&channel, acker.ack(BasicAckOptions::default())).await
    }

    async fn give_back((acker, channel): Self::Delivery) -> Result<(), RabbitMqError> {
        let options = BasicNackOptions { requeue: true, ..BasicNackOptions::default() };
        on_channel(&channel, acker.nack(options)).await.map(drop)
    }

    async fn count(&self) -> Result<Option<u64>, RabbitMqError> {
        let channel = self.publisher().await?;
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        let queue = within(channel.queue_declare(self.queue.clone(), options, FieldTable::default())).await?;
        Ok(Some(u64::from(queue.message_count())))
    }
}

impl From<RabbitMqError> for StoreError {
    fn from(error: RabbitMqError) -> StoreError {
        StoreError { message: error.reason, is_unreachable: error.is_unreachable }
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

/// The channel with confirms that is kept, or a new one after what it publishes to was declared.
pub(super) async fn publishing_channel(
    kept: &tokio::sync::Mutex<Option<Channel>>,
    topology: &Topology,
    link: &Link,
) -> Result<Channel, RabbitMqError> {
    let mut kept = kept.lock().await;
    if let Some(channel) = kept.as_ref().filter(|channel| channel.status().connected()) {
        return Ok(channel.clone());
    }
    let channel = topology.declare(link).await?;
    within(channel.confirm_select(ConfirmSelectOptions::default())).await?;
    *kept = Some(channel.clone());
    Ok(channel)
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
