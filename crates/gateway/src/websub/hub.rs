//! Subscriptions, and events on their way to them. Shared by all cores.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::{Notify, oneshot};

use super::book::{Inner, SUBSCRIPTIONS_MAX, now};
use super::entry::Entry;
use super::event::{Event, Fields};
use super::journal::{EventFile, Journal};
use super::keep;
use super::subscription::{Full, Question, Subscription};
use crate::hex::hex;
use crate::policy::limits::Subscriber;

/// Bytes of all events that wait. Beyond them publishers are refused.
const BYTES_MAX: usize = 64 << 20;

/// Events that wait for all subscribers, each counted once for each of them. Beyond it publishers are refused.
const PAIRS_MAX: usize = 2_000_000;

/// Pending verifications.
const QUESTIONS_MAX: usize = 1_000;

/// Those of one application. Addresses that do not answer take their time, and one application is not to fill the line.
const QUESTIONS_OF_ONE_MAX: usize = 100;

/// What keeps subscriptions; what it says is logged.
type Keeper = dyn Fn(&[u8]) -> Result<(), String> + Send + Sync;

/// All hubs.
#[derive(Default)]
pub(crate) struct Hub {
    inner: Mutex<Inner>,
    pub(super) wake: Notify,
    pub(super) keeper: OnceLock<Arc<Keeper>>,
    /// Where events are kept, until their writer takes it.
    pub(super) journal: Mutex<Option<Journal>>,
    pub(super) journal_wake: Notify,
    waiting_bytes: Arc<AtomicUsize>,
    pub(super) delivered: AtomicU64,
    pub(super) failed: AtomicU64,
    /// What this hub's marks begin with. Another one may have the same topics.
    seed: OnceLock<[u8; 16]>,
}

impl fmt::Debug for Hub {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Hub")
    }
}

impl Hub {
    /// Writes counters in the text format of Prometheus.
    pub(crate) fn write_metrics(&self, page: &mut String) {
        let counts = [("delivered", &self.delivered), ("lost", &self.failed)];
        for (name, count) in counts {
            let count = count.load(Ordering::Relaxed);
            // Writing to a `String` cannot fail.
            let _ = writeln!(
                page,
                "# HELP penstock_gateway_events_{name}_total Events for subscribers that were {name}.\n\
                 # TYPE penstock_gateway_events_{name}_total counter\n\
                 penstock_gateway_events_{name}_total {count}"
            );
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an event has in its path when it was published at a topic here.
    pub(super) fn mark(&self, api: &str, topic: &str) -> String {
        let seed = self.seed.get_or_init(|| {
            let mut seed = [0; 16];
            // Without random numbers hubs of the same name cannot be told apart; nothing else is lost.
            let _ = SystemRandom::new().fill(&mut seed);
            seed
        });
        let digest = digest::digest(&digest::SHA256, &[seed, api.as_bytes(), b"\n", topic.as_bytes()].concat());
        hex(&digest.as_ref()[..8])
    }

    /// Has subscriptions kept by a function, which gets all of them whenever one changes; `kept` is what it got last.
    pub(crate) fn kept_by(
        &self,
        keeper: impl Fn(&[u8]) -> Result<(), String> + Send + Sync + 'static,
        kept: Option<&[u8]>,
    ) -> Result<(), String> {
        let read = kept.map(keep::read).transpose()?.unwrap_or_default();
        let _ = self.keeper.set(Arc::new(keeper));
        let mut inner = self.lock();
        inner.next = inner.next.max(read.next);
        for (number, subscription) in read.subscriptions.into_iter().take(SUBSCRIPTIONS_MAX) {
            inner.add_numbered(number, subscription);
        }
        inner.changed = false;
        Ok(())
    }

    /// Has events kept in a file until they are delivered; `kept` is what is in it. Subscriptions must be known before.
    /// Says how many bytes at the end of the file are no whole entry: what was being written when the process ended.
    pub(crate) fn events_kept_in(&self, file: Box<dyn EventFile>, kept: &[u8]) -> Result<usize, String> {
        let (journal, torn) = Journal::read(file, kept, &self.waiting_bytes)?;
        let mut inner = self.lock();
        inner.next_event = journal.next_event();
        for (event, subscriber) in journal.waiting() {
            // Not given again, also when whose it was is not known any more.
            inner.next = inner.next.max(subscriber.saturating_add(1));
            let waits = inner.subscriptions.contains_key(&subscriber) && inner.wait_for(subscriber, &event);
            if !waits {
                inner.entries.push(Entry::Done(event.number, subscriber));
            }
        }
        drop(inner);
        *self.journal.lock().unwrap_or_else(PoisonError::into_inner) = Some(journal);
        self.wake.notify_one();
        Ok(torn)
    }

    /// Adds or replaces a subscription. The receiver is notified when it is saved.
    pub(super) fn subscribe(
        &self,
        subscription: Subscription,
        most: Option<u64>,
    ) -> Result<oneshot::Receiver<bool>, Full> {
        let mut inner = self.lock();
        inner.forget_ended(now());
        inner.room_for(&subscription, most)?;
        inner.add(subscription);
        Ok(self.when_kept(inner))
    }

    /// Whether a subscription would be taken.
    pub(super) fn has_room(&self, subscription: &Subscription, most: Option<u64>) -> bool {
        let mut inner = self.lock();
        inner.forget_ended(now());
        inner.room_for(subscription, most).is_ok()
    }

    /// Ends a subscription, when there is one.
    pub(super) fn unsubscribe(&self, subscription: &Subscription) -> oneshot::Receiver<bool> {
        let mut inner = self.lock();
        if let Some(id) = inner.find(subscription) {
            inner.remove(id);
        }
        self.when_kept(inner)
    }

    fn when_kept(&self, mut inner: MutexGuard<'_, Inner>) -> oneshot::Receiver<bool> {
        let (sender, receiver) = oneshot::channel();
        if inner.changed {
            inner.waiting.push(sender);
        } else {
            // Without storage there is nothing to wait for.
            let _ = sender.send(true);
        }
        drop(inner);
        self.wake.notify_one();
        receiver
    }

    /// Queues a verification; whether there was room for it.
    pub(super) fn ask(&self, question: Question) -> bool {
        let mut inner = self.lock();
        let who = &question.subscription.who.application;
        let of_one = inner.questions.iter().filter(|known| known.subscription.who.application == *who).count();
        let room = inner.questions.len() < QUESTIONS_MAX && of_one < QUESTIONS_OF_ONE_MAX;
        if room {
            inner.questions.push_back(question);
        }
        drop(inner);
        self.wake.notify_one();
        room
    }

    /// Passes an event on to all subscribers of a topic whose plans allow it. The receiver hears when it is kept; there is
    /// none when there was no room for it.
    pub(super) fn publish(
        &self,
        (api, topic): (&Arc<str>, &Arc<str>),
        fields: Fields,
        body: Bytes,
        admits: impl Fn(&Subscriber) -> bool,
    ) -> Option<oneshot::Receiver<bool>> {
        let bytes = Event::bytes(&fields, &body);
        if self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > BYTES_MAX {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return None;
        }
        let inner = self.lock();
        let (mut to, pairs) = (inner.of_topic(api, topic), inner.pairs);
        drop(inner);
        if pairs + to.len() > PAIRS_MAX {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return None;
        }
        // Plans have locks of their own and may be many.
        to.retain(|(_, subscription)| admits(&subscription.who));
        let mut inner = self.lock();
        let number = inner.next_event;
        inner.next_event += 1;
        let event = Arc::new(Event::new(number, fields, body, &self.waiting_bytes));
        let mut taken = Vec::with_capacity(to.len());
        for (id, _) in to {
            // It may have ended meanwhile.
            if inner.subscriptions.contains_key(&id) {
                match inner.wait_for(id, &event) {
                    true => taken.push(id),
                    false => drop(self.failed.fetch_add(1, Ordering::Relaxed)),
                }
            }
        }
        let (sender, receiver) = oneshot::channel();
        if taken.is_empty() {
            let _ = sender.send(true);
        } else {
            inner.entries.push(Entry::Event(event, taken));
            inner.publishers.push(sender);
        }
        drop(inner);
        self.wake.notify_one();
        self.journal_wake.notify_one();
        Some(receiver)
    }
}

#[cfg(test)]
mod tests {
    use super::super::book::WAITING_MAX;
    use super::super::subscription::example as subscription;
    use super::*;

    fn waiting(hub: &Hub) -> Vec<usize> {
        hub.lock().lanes.values().map(|lane| lane.events.len()).collect()
    }

    fn publish(hub: &Hub, topic: &str, body: &'static [u8]) -> bool {
        hub.publish((&"/hub".into(), &topic.into()), Fields::new(), Bytes::from_static(body), |_| true).is_some()
    }

    #[test]
    fn a_subscription_is_taken_once_and_its_plan_counts() {
        let hub = Hub::default();
        for topic in ["a", "b", "a"] {
            assert!(hub.subscribe(subscription(topic, "http://x/", "app"), Some(2)).is_ok());
        }
        assert_eq!(hub.lock().subscriptions.len(), 2);
        assert_eq!(hub.subscribe(subscription("c", "http://x/", "app"), Some(2)).err(), Some(Full::Plan));
        assert!(hub.subscribe(subscription("c", "http://x/", "other"), Some(2)).is_ok());
        drop(hub.unsubscribe(&subscription("a", "http://x/", "app")));
        assert!(hub.subscribe(subscription("c", "http://x/", "app"), Some(2)).is_ok());
        // One that ended makes room.
        let ended = Subscription { ends: Some(1), ..subscription("c", "http://x/", "app") };
        assert!(hub.subscribe(ended, Some(2)).is_ok());
        assert!(hub.subscribe(subscription("d", "http://x/", "app"), Some(2)).is_ok());
    }

    #[test]
    fn what_waits_is_bounded() {
        let hub = Hub::default();
        assert!(hub.subscribe(subscription("a", "http://x/", "app"), None).is_ok());
        for _ in 0..WAITING_MAX + 5 {
            assert!(publish(&hub, "a", b"event"));
        }
        assert_eq!((waiting(&hub), hub.failed.load(Ordering::Relaxed)), (vec![WAITING_MAX], 5));
        assert_eq!(
            hub.waiting_bytes.load(Ordering::Relaxed),
            Event::bytes(&Fields::new(), &Bytes::from_static(b"event")) * WAITING_MAX
        );
        assert_eq!(hub.lock().pairs, WAITING_MAX);
        let large = Bytes::from(vec![0; BYTES_MAX]);
        assert!(hub.publish((&"/hub".into(), &"a".into()), Fields::new(), large, |_| true).is_none());
        drop(hub.unsubscribe(&subscription("a", "http://x/", "app")));
        // As the writer of the journal does.
        hub.lock().entries.clear();
        assert_eq!((waiting(&hub), hub.waiting_bytes.load(Ordering::Relaxed), hub.lock().pairs), (vec![], 0, 0));
        assert!(publish(&hub, "nobody", b"event") && waiting(&hub).is_empty());
        hub.lock().pairs = PAIRS_MAX;
        assert!(hub.subscribe(subscription("a", "http://x/", "app"), None).is_ok());
        assert!(!publish(&hub, "a", b"event"));
    }

    #[test]
    fn one_application_does_not_fill_the_line() {
        let hub = Hub::default();
        let ask = |application: &str| {
            let subscription = subscription("a", "http://x/", application);
            let topic = "a".to_owned();
            hub.ask(Question { subscription, topic, subscribes: true, lease_seconds: None, most: None })
        };
        assert_eq!((0..QUESTIONS_OF_ONE_MAX + 5).filter(|_| ask("app")).count(), QUESTIONS_OF_ONE_MAX);
        assert!(ask("other"));
        let others = (0..QUESTIONS_MAX).filter(|number| ask(&number.to_string())).count();
        assert_eq!(others, QUESTIONS_MAX - QUESTIONS_OF_ONE_MAX - 1);
    }
}
