//! Messages in a queue of a JMS broker. A message is stored when the broker has accepted it, and leaves the queue when it is
//! acknowledged; the queue has it again when this process ends before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fe2o3_amqp::Receiver;
use fe2o3_amqp::link::delivery::DeliveryInfo;
use fe2o3_amqp::link::receiver::ReceiverDisposer;
use fe2o3_amqp::types::messaging::Body as AmqpBody;
use fe2o3_amqp::types::primitives::Value;
use penstock_engine::ports::{ConnectionFactory, LocalFuture};
use penstock_engine::store::{MessageStore, Record, Reservation, StoreError};

use super::address::{Address, Destination, STORE, resolved};
use super::connection::{Connected, JmsError, Subscription, unique_name};
use super::message::{id_text, payload, stored};
use super::outlet::Outlet;
use crate::broker::{handle, link::Attempts, lookup::Lookup};

/// How long an empty queue is asked for a message.
const EMPTY_AFTER: Duration = Duration::from_millis(100);

/// The queue of one store.
pub(crate) struct Queue {
    address: Address,
    destination: Destination,
    outlet: Arc<Outlet>,
    consumer: tokio::sync::Mutex<(Attempts, Option<Open>)>,
    reserved: Mutex<Reserved>,
}

/// A consumer, and whether the broker may send it a message.
struct Open {
    connected: Connected,
    receiver: Receiver,
    has_credit: bool,
}

#[derive(Default)]
struct Reserved {
    next_token: u64,
    deliveries: HashMap<u64, (DeliveryInfo, ReceiverDisposer)>,
}

impl Queue {
    /// The store of these parameters, not connected.
    pub(crate) fn new(
        store: &str,
        parameters: &[(Arc<str>, Arc<str>)],
        factories: &[ConnectionFactory],
    ) -> Result<Queue, StoreError> {
        let lookup = Lookup::new(parameters);
        let parsed = resolved(lookup, factories)
            .and_then(|lookup| Address::parse(&lookup, &STORE, factories).map(|address| (address, lookup)));
        let (address, lookup) = parsed.map_err(|message| StoreError {
            message: format!("message store `{store}`: {message}"),
            is_unreachable: false,
        })?;
        let name = lookup.get("store.jms.destination").map_or_else(|| format!("{store}_Queue"), str::to_owned);
        Ok(Queue {
            outlet: Arc::new(Outlet::new(address.clone())),
            address,
            destination: Destination::parse(&name, false, &lookup),
            consumer: tokio::sync::Mutex::default(),
            reserved: Mutex::default(),
        })
    }

    fn reserved(&self) -> MutexGuard<'_, Reserved> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn put(&self, record: Record) -> Result<(), JmsError> {
        self.outlet.send(&self.destination, stored(&record.id, record.priority, &record.bytes)).await
    }

    async fn reserve(self: Arc<Queue>) -> Result<Option<Reservation>, JmsError> {
        let mut guard = self.consumer.lock().await;
        let (attempts, open) = &mut *guard;
        if !open.as_ref().is_some_and(|open| open.connected.is_open()) {
            *open = None;
            // What the consumer before had not acknowledged is in the queue again.
            self.reserved().deliveries.clear();
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
            Err(error) => {
                *open = None;
                return Err(JmsError::lost(error));
            }
        };
        let (disposer, info) = (consumer.receiver.disposer(), DeliveryInfo::from(&delivery));
        let message = delivery.into_message();
        let id = message.properties.as_ref().and_then(|properties| properties.message_id.as_ref()).map(id_text);
        let priority = message.header.as_ref().map(|header| header.priority.0);
        let (bytes, _) = payload(message.body);
        let record = Record { id: id.unwrap_or_default().into(), priority, bytes: bytes.into() };
        let token = {
            let mut reserved = self.reserved();
            reserved.next_token += 1;
            let token = reserved.next_token;
            reserved.deliveries.insert(token, (info, disposer));
            token
        };
        drop(guard);
        Ok(Some(Reservation { record, token, hold: Some(Box::new(Hold { queue: self, token })) }))
    }

    async fn connect(&self) -> Result<Open, JmsError> {
        let mut connected = Connected::open(&self.address, &unique_name()).await?;
        let receiver = connected.receiver(&self.destination, &Subscription::default()).await?;
        Ok(Open { connected, receiver, has_credit: false })
    }

    fn take(&self, token: u64) -> Option<(DeliveryInfo, ReceiverDisposer)> {
        self.reserved().deliveries.remove(&token)
    }

    async fn acknowledge(&self, token: u64) -> Result<(), JmsError> {
        let lost = "before the message was acknowledged; it will be delivered again";
        let (info, disposer) = self.take(token).ok_or_else(|| JmsError::lost(lost))?;
        disposer.accept(info).await.map_err(JmsError::lost)
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
        if let (Some((info, disposer)), Ok(runtime)) = (self.queue.take(self.token), handle()) {
            runtime.spawn(async move {
                let _ = disposer.release(info).await;
            });
        }
    }
}

/// The store as a core has it.
pub(crate) struct Handle(pub(crate) Arc<Queue>);

fn failed(error: JmsError) -> StoreError {
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
                Some((info, disposer)) => disposer.release(info).await.map_err(JmsError::lost).map_err(failed),
                // The broker has it again since the connection was lost.
                None => Ok(()),
            }
        })
    }

    fn count(&self) -> LocalFuture<'static, Result<Option<u64>, StoreError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn browse(&self, _: usize) -> LocalFuture<'static, Result<Vec<Record>, StoreError>> {
        let message = "the messages of a JMS queue cannot be listed without taking them".to_owned();
        Box::pin(std::future::ready(Err(StoreError { message, is_unreachable: false })))
    }
}
