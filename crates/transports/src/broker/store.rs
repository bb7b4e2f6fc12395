//! A queue of a broker as a message store. A message that was taken is reserved: it leaves the queue when it is acknowledged,
//! and is in the queue again when its consumer is gone, the connection breaks or this process ends.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use penstock_compile::OpenStore;
use penstock_engine::ports::LocalFuture;
use penstock_engine::store::{MessageStore, Record, Reservation, StoreError};

use super::handle;

/// A queue, as its broker's client reads and writes it.
pub(crate) trait BrokerQueue: Send + Sync + 'static {
    /// The broker in messages for users: `RabbitMQ`.
    const BROKER: &str;
    /// What acknowledges or returns a message that was taken.
    type Delivery: Send + 'static;
    type Error: Into<StoreError>;

    /// Adds a message. When it returns, the broker has confirmed it.
    fn put(&self, record: Record) -> impl Future<Output = Result<(), Self::Error>>;

    /// Takes the next message. A queue that connects again forgets `reserved`, because the broker has those messages again.
    fn take(
        &self,
        reserved: &Reserved<Self::Delivery>,
    ) -> impl Future<Output = Result<Option<(Record, Self::Delivery)>, Self::Error>>;

    /// Removes a message that was taken; `false` when the connection that it was taken on is lost.
    fn acknowledge(&self, delivery: Self::Delivery) -> impl Future<Output = Result<bool, Self::Error>>;

    /// Returns a message that was taken to its queue.
    fn give_back(delivery: Self::Delivery) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// The number of messages that no consumer has; `None` when the broker does not count them.
    fn count(&self) -> impl Future<Output = Result<Option<u64>, Self::Error>> {
        std::future::ready(Ok(None))
    }
}

/// Messages that were taken and not acknowledged, by token.
pub(crate) struct Reserved<D>(Mutex<(u64, HashMap<u64, D>)>);

impl<D> Reserved<D> {
    fn lock(&self) -> MutexGuard<'_, (u64, HashMap<u64, D>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, delivery: D) -> u64 {
        let mut reserved = self.lock();
        reserved.0 += 1;
        let token = reserved.0;
        reserved.1.insert(token, delivery);
        token
    }

    fn remove(&self, token: u64) -> Option<D> {
        self.lock().1.remove(&token)
    }

    /// Forgets all messages: the broker has them again.
    pub(crate) fn clear(&self) {
        self.lock().1.clear();
    }
}

struct Shared<Q: BrokerQueue> {
    queue: Q,
    reserved: Reserved<Q::Delivery>,
}

/// The store of a queue. Clones are the same store.
struct BrokerStore<Q: BrokerQueue>(Arc<Shared<Q>>);

impl<Q: BrokerQueue> Clone for BrokerStore<Q> {
    fn clone(&self) -> BrokerStore<Q> {
        BrokerStore(self.0.clone())
    }
}

/// Opens the store of a queue, not connected; `queue` has the reason when its parameters are wrong.
pub(crate) fn opened<Q: BrokerQueue>(store: &str, queue: Result<Q, String>) -> Result<OpenStore, StoreError> {
    let queue = queue.map_err(|message| StoreError {
        message: format!("message store `{store}`: {message}"),
        is_unreachable: false,
    })?;
    let shared = Arc::new(Shared { queue, reserved: Reserved(Mutex::default()) });
    Ok(Arc::new(move || Rc::new(BrokerStore(shared.clone()))))
}

impl<Q: BrokerQueue> MessageStore for BrokerStore<Q> {
    fn put(&self, record: Record) -> LocalFuture<'static, Result<(), StoreError>> {
        let store = self.0.clone();
        Box::pin(async move { store.queue.put(record).await.map_err(Into::into) })
    }

    fn reserve(&self) -> LocalFuture<'static, Result<Option<Reservation>, StoreError>> {
        let store = self.0.clone();
        Box::pin(async move {
            let Some((record, delivery)) = store.queue.take(&store.reserved).await.map_err(Into::into)? else {
                return Ok(None);
            };
            let token = store.reserved.add(delivery);
            Ok(Some(Reservation { record, token, hold: Some(Box::new(Hold { store, token })) }))
        })
    }

    fn acknowledge(&self, token: u64) -> LocalFuture<'static, Result<(), StoreError>> {
        let store = self.0.clone();
        Box::pin(async move {
            let is_removed = match store.reserved.remove(token) {
                Some(delivery) => store.queue.acknowledge(delivery).await.map_err(Into::into)?,
                None => false,
            };
            if is_removed {
                return Ok(());
            }
            let message = format!(
                "the connection to {} was lost before the message was acknowledged; it will be delivered again",
                Q::BROKER
            );
            Err(StoreError { message, is_unreachable: true })
        })
    }

    fn release(&self, token: u64) -> LocalFuture<'static, Result<(), StoreError>> {
        let store = self.0.clone();
        Box::pin(async move {
            match store.reserved.remove(token) {
                Some(delivery) => Q::give_back(delivery).await.map_err(Into::into),
                // The broker has it again since the connection was lost.
                None => Ok(()),
            }
        })
    }

    fn count(&self) -> LocalFuture<'static, Result<Option<u64>, StoreError>> {
        let store = self.0.clone();
        Box::pin(async move { store.queue.count().await.map_err(Into::into) })
    }

    fn browse(&self, _: usize) -> LocalFuture<'static, Result<Vec<Record>, StoreError>> {
        let message = format!("the messages in a queue of {} cannot be listed without taking them", Q::BROKER);
        Box::pin(std::future::ready(Err(StoreError { message, is_unreachable: false })))
    }
}

/// Returns a message to its queue when its consumer is gone.
struct Hold<Q: BrokerQueue> {
    store: Arc<Shared<Q>>,
    token: u64,
}

impl<Q: BrokerQueue> Drop for Hold<Q> {
    fn drop(&mut self) {
        // Without a runtime the process ends, and the broker returns the message itself.
        if let (Some(delivery), Ok(runtime)) = (self.store.reserved.remove(self.token), handle()) {
            runtime.spawn(async move {
                let _ = Q::give_back(delivery).await;
            });
        }
    }
}
