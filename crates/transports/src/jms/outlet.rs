//! What sends to the queues and topics of a broker: one connection with a link for each destination. It is made when it is
//! needed, and made again after it broke.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fe2o3_amqp::Sender;
use fe2o3_amqp::types::messaging::{Body as AmqpBody, Outcome};
use fe2o3_amqp::types::primitives::Value;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::address::{Address, Destination};
use super::connection::{ANSWER_TIMEOUT, Connected, JmsError, Subscription, end_receiver, on_runtime, unique_name};
use super::message::JmsMessage;
use crate::broker::link::Attempts;

/// Links that are kept. Replies go to queues that exist for a moment only.
const SENDERS_MAX: usize = 100;

/// Why a broker that answers otherwise takes no message.
const NO_CREDIT: &str = ": it granted no credit, as brokers without free disk space or memory do";

/// A broker, connected to or not.
pub(super) struct Outlet {
    address: Address,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    attempts: Attempts,
    open: Option<Open>,
}

struct Open {
    connected: Connected,
    senders: HashMap<Destination, Arc<Mutex<Sender>>>,
}

/// Where the reply to a request arrives.
pub(super) enum ReplyQueue {
    /// On a queue for this request.
    Temporary,
    /// On a queue that other requests use, too.
    Named(Destination),
}

impl Outlet {
    pub(super) fn new(address: Address) -> Outlet {
        Outlet { address, state: Mutex::default() }
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Sends and waits until the broker has accepted the message.
    pub(super) async fn send(self: &Arc<Self>, to: &Destination, message: JmsMessage) -> Result<(), JmsError> {
        let (outlet, to) = (self.clone(), to.clone());
        // A task of its own: a caller that gives up must not leave half a message on the link.
        on_runtime(async move { outlet.deliver(&to, message).await }).await
    }

    /// Sends a request and waits for its reply. `None`: there is none in time.
    pub(super) async fn request(
        self: &Arc<Self>,
        to: &Destination,
        mut message: JmsMessage,
        reply_queue: ReplyQueue,
        wait: Duration,
    ) -> Result<Option<JmsMessage>, JmsError> {
        let (outlet, to) = (self.clone(), to.clone());
        on_runtime(async move {
            let mut state = outlet.state.lock().await;
            let open = state.open(&outlet.address).await?;
            let (mut receiver, address) = match reply_queue {
                ReplyQueue::Temporary => open.connected.temporary_queue().await?,
                ReplyQueue::Named(queue) => {
                    let selector = Some(format!("JMSCorrelationID='{}'", message_correlation(&message)));
                    let subscription = Subscription { selector, prefetch: Some(1), ..Subscription::default() };
                    (open.connected.receiver(&queue, &subscription).await?, queue.name)
                }
            };
            drop(state);
            super::message::set_reply_to(&mut message, address);
            let exchanged = timeout(wait, async {
                outlet.deliver(&to, message).await?;
                let delivery = receiver.recv::<AmqpBody<Value>>().await.map_err(JmsError::lost)?;
                receiver.accept(&delivery).await.map_err(JmsError::lost)?;
                Ok(delivery.into_message())
            });
            let exchanged = exchanged.await;
            end_receiver(receiver, false).await;
            exchanged.ok().transpose()
        })
        .await
    }

    async fn deliver(&self, to: &Destination, message: JmsMessage) -> Result<(), JmsError> {
        let sender = {
            let mut state = self.state.lock().await;
            state.open(&self.address).await?.sender(to).await?
        };
        let begun = timeout(ANSWER_TIMEOUT, async { sender.lock().await.send_batchable(message).await }).await;
        // Sending begins when the broker has granted credit.
        let had_credit = begun.is_ok();
        let accepted = match begun {
            Ok(Ok(accepted)) => timeout(ANSWER_TIMEOUT, accepted).await,
            Ok(Err(error)) => Ok(Err(error)),
            Err(elapsed) => Err(elapsed),
        };
        match accepted {
            Ok(Ok(Outcome::Accepted(_))) => return Ok(()),
            Ok(Ok(Outcome::Rejected(rejected))) => {
                let why = rejected.error.and_then(|error| error.description).unwrap_or_else(|| "it rejected it".into());
                return Err(JmsError::refused(format!("the JMS broker did not take the message: {why}")));
            }
            Ok(Ok(_)) => return Err(JmsError::refused("the JMS broker did not take the message: it released it")),
            Ok(Err(_)) | Err(_) => {}
        }
        let is_open = self.forget(to).await;
        Err(match accepted {
            Ok(Err(error)) if is_open => JmsError::refused(format!("the JMS broker did not take the message: {error}")),
            Ok(Err(error)) => JmsError::lost(error),
            _ => {
                let seconds = ANSWER_TIMEOUT.as_secs();
                let hint = if had_credit { "" } else { NO_CREDIT };
                JmsError::unreachable(format!("the JMS broker did not take the message within {seconds} s{hint}"))
            }
        })
    }

    /// Drops a link that failed. Whether the connection is open all the same.
    async fn forget(&self, to: &Destination) -> bool {
        let mut state = self.state.lock().await;
        let Some(open) = &mut state.open else { return false };
        open.senders.remove(to);
        open.connected.is_open()
    }
}

impl State {
    /// The connection, made first where necessary.
    async fn open(&mut self, address: &Address) -> Result<&mut Open, JmsError> {
        if !self.open.as_ref().is_some_and(|open| open.connected.is_open()) {
            self.open = None;
            self.attempts.may_connect().map_err(JmsError::unreachable)?;
            match Connected::open(address, &unique_name()).await {
                Ok(connected) => self.open = Some(Open { connected, senders: HashMap::new() }),
                Err(error) => {
                    self.attempts.failed(&error.reason);
                    return Err(error);
                }
            }
            self.attempts.succeeded();
        }
        self.open.as_mut().ok_or_else(|| JmsError::unreachable("there is no connection to the JMS broker"))
    }
}

impl Open {
    async fn sender(&mut self, to: &Destination) -> Result<Arc<Mutex<Sender>>, JmsError> {
        if let Some(found) = self.senders.get(to) {
            return Ok(found.clone());
        }
        if self.senders.len() >= SENDERS_MAX {
            for sender in self.senders.drain().filter_map(|(_, sender)| Arc::into_inner(sender)) {
                // A link to a queue that is gone is gone, too.
                let _ = timeout(ANSWER_TIMEOUT, sender.into_inner().close()).await;
            }
        }
        let sender = Arc::new(Mutex::new(self.connected.sender(to).await?));
        self.senders.insert(to.clone(), sender.clone());
        Ok(sender)
    }
}

/// What the reply to a message has as its correlation identifier.
fn message_correlation(message: &JmsMessage) -> String {
    let properties = message.properties.as_ref();
    let id = properties.and_then(|properties| properties.correlation_id.as_ref().or(properties.message_id.as_ref()));
    // It stands between apostrophes.
    id.map(super::message::id_text).unwrap_or_default().replace('\'', "''")
}
