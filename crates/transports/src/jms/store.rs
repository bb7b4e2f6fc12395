//! Messages in a queue of a JMS broker. A message is stored when the broker has accepted it, and leaves the queue when it is
//! acknowledged; the queue has it again when this process ends before.

use std::sync::Arc;
use std::time::Duration;

use fe2o3_amqp::Receiver;
use fe2o3_amqp::link::RecvError;
use fe2o3_amqp::link::delivery::DeliveryInfo;
use fe2o3_amqp::link::receiver::ReceiverDisposer;
use fe2o3_amqp::types::messaging::Body as AmqpBody;
use fe2o3_amqp::types::primitives::Value;
use penstock_compile::OpenStore;
use penstock_engine::ports::ConnectionFactory;
use penstock_engine::store::{Record, StoreError};

use super::address::{Address, Destination, STORE, resolved};
use super::connection::{Connected, JmsError, Subscription, unique_name};
use super::message::{id_text, payload, stored};
use super::outlet::Outlet;
use crate::broker::link::Attempts;
use crate::broker::lookup::Lookup;
use crate::broker::store::{BrokerQueue, Reserved, opened};

/// How long `take` waits for a message.
const EMPTY_AFTER: Duration = Duration::from_millis(100);

/// Opens the store of these parameters.
pub(super) fn open(
    store: &str,
    parameters: &[(Arc<str>, Arc<str>)],
    factories: &[ConnectionFactory],
) -> Result<OpenStore, StoreError> {
    opened(store, Queue::parse(store, Lookup::new(parameters), factories))
}

/// The queue of one store.
struct Queue {
    address: Address,
    destination: Destination,
    outlet: Arc<Outlet>,
    consumer: tokio::sync::Mutex<(Attempts, Option<Open>)>,
}

/// A consumer, and whether the broker may send it a message.
struct Open {
    connected: Connected,
    receiver: Receiver,
    has_credit: bool,
}

impl Queue {
    fn parse(store: &str, lookup: Lookup, factories: &[ConnectionFactory]) -> Result<Queue, String> {
        let lookup = resolved(lookup, factories)?;
        let address = Address::parse(&lookup, &STORE, factories)?;
        let name = lookup.get("store.jms.destination").map_or_else(|| format!("{store}_Queue"), str::to_owned);
        Ok(Queue {
            outlet: Arc::new(Outlet::new(address.clone())),
            address,
            destination: Destination::parse(&name, false, &lookup),
            consumer: tokio::sync::Mutex::default(),
        })
    }

    async fn connect(&self) -> Result<Open, JmsError> {
        let mut connected = Connected::open(&self.address, &unique_name()).await?;
        let receiver = connected.receiver(&self.destination, &Subscription::default()).await?;
        Ok(Open { connected, receiver, has_credit: false })
    }
}

impl BrokerQueue for Queue {
    const BROKER: &str = "the JMS broker";
    type Delivery = (DeliveryInfo, ReceiverDisposer);
    type Error = JmsError;

    async fn put(&self, record: Record) -> Result<(), JmsError> {
        self.outlet.send(&self.destination, stored(&record.id, record.priority, &record.bytes)).await
    }

    async fn take(&self, reserved: &Reserved<Self::Delivery>) -> Result<Option<(Record, Self::Delivery)>, JmsError> {
        let mut guard = self.consumer.lock().await;
        let (attempts, open) = &mut *guard;
        if !open.as_ref().is_some_and(|open| open.connected.is_open()) {
            *open = None;
            // What the consumer before had not acknowledged is in the queue again.
            reserved.clear();
            attempts.may_connect().map_err(JmsError::unreachable)?;
            match self.connect().await {
                Ok(connected) => *open = Some(connected),
                Err(error) => {
                    attempts.failed(&error.reason);
                    return Err(error);
                }
            }
            attempts.succeeded();
        }
        let Some(consumer) = open.as_mut() else { return Err(JmsError::refused("there is no consumer")) };
        if !consumer.has_credit {
            consumer.receiver.set_credit(1).await.map_err(JmsError::lost)?;
            consumer.has_credit = true;
        }
        // A message that comes after the wait is the next one: it stays with the receiver.
        let received = tokio::time::timeout(EMPTY_AFTER, consumer.receiver.recv::<AmqpBody<Value>>());
        let Ok(received) = received.await else { return Ok(None) };
        consumer.has_credit = false;
        let delivery = match received {
            Ok(delivery) => delivery,
            // The broker moves it to its dead letters; otherwise the store would never get past it.
            Err(RecvError::MessageDecode(undecodable)) => {
                consumer.receiver.reject(undecodable.info, None).await.map_err(JmsError::lost)?;
                let (queue, why) = (&self.destination.name, undecodable.source);
                return Err(JmsError::refused(format!(
                    "a message of `{queue}` was rejected: it cannot be decoded: {why}"
                )));
            }
            Err(error) => {
                *open = None;
                return Err(JmsError::lost(error));
            }
        };
        let taken = (DeliveryInfo::from(&delivery), consumer.receiver.disposer());
        let message = delivery.into_message();
        let id = message.properties.as_ref().and_then(|properties| properties.message_id.as_ref()).map(id_text);
        let priority = message.header.as_ref().map(|header| header.priority.0);
        let (bytes, _) = payload(message.body);
        let record = Record { id: id.unwrap_or_default().into(), priority, sequence: None, bytes: bytes.into() };
        Ok(Some((record, taken)))
    }

    async fn acknowledge(&self, (info, disposer): Self::Delivery) -> Result<bool, JmsError> {
        disposer.accept(info).await.map(|()| true).map_err(JmsError::lost)
    }

    async fn give_back((info, disposer): Self::Delivery) -> Result<(), JmsError> {
        disposer.release(info).await.map_err(JmsError::lost)
    }
}

impl From<JmsError> for StoreError {
    fn from(error: JmsError) -> StoreError {
        StoreError { message: error.reason, is_unreachable: error.is_unreachable }
    }
}
