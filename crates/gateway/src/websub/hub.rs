//! Subscriptions, and events on their way to them. Shared by all cores.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use penstock_catalog::{Secret, SigningAlgorithm};
use tokio::sync::{Notify, oneshot};

use super::keep;
use crate::policy::limits::Subscriber;

/// Subscriptions of all hubs. They are written as a whole when one changes.
const SUBSCRIPTIONS_MAX: usize = 20_000;

/// Events that wait for one subscriber. A subscriber that is away for longer loses what comes then.
const WAITING_MAX: usize = 1_000;

/// Bytes of all events that wait. Beyond them publishers are refused.
const BYTES_MAX: usize = 64 << 20;

/// Events that wait for all subscribers, each counted once for each of them. Beyond it publishers are refused.
const PAIRS_MAX: usize = 2_000_000;

/// What an event takes besides its body.
const EVENT_BYTES: usize = 256;

/// Subscribers that wait to be asked whether they meant it.
const QUESTIONS_MAX: usize = 1_000;

/// Those of one application. Addresses that do not answer take their time, and one application is not to fill the line.
const QUESTIONS_OF_ONE_MAX: usize = 100;

/// Somebody's wish to get the events of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subscription {
    /// The hub: host and base path of its API.
    pub api: Arc<str>,
    /// The topic, as [`super::topic_name`] makes it.
    pub topic: Arc<str>,
    /// Where events go.
    pub callback: Arc<str>,
    /// What events are signed with.
    pub secret: Option<Secret>,
    /// How.
    pub algorithm: SigningAlgorithm,
    /// When it ends, in seconds since 1970; never when absent.
    pub ends: Option<u64>,
    /// Whose plans count.
    pub who: Subscriber,
}

impl Subscription {
    /// What a new one has in common with the one whose place it takes.
    fn wish(&self) -> Wish {
        [&self.api, &self.topic, &self.callback, &self.who.application].map(Arc::clone)
    }

    fn has_ended(&self, now: u64) -> bool {
        self.ends.is_some_and(|ends| ends <= now)
    }
}

/// What a publisher says about the body.
pub(super) type Fields = Vec<(&'static str, String)>;

/// Something that was published.
pub(super) struct Event {
    pub fields: Fields,
    pub body: Bytes,
    /// All bytes that wait, of which this event's are taken when nobody waits for it any more.
    waiting: Arc<AtomicUsize>,
}

impl Drop for Event {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.body.len() + EVENT_BYTES, Ordering::Relaxed);
    }
}

/// A subscriber that is asked whether it meant it (WebSub §5.3).
pub(super) struct Question {
    pub subscription: Subscription,
    /// The topic as the subscriber wrote it: it is to know it again.
    pub topic: String,
    pub subscribes: bool,
    pub lease_seconds: Option<u64>,
    /// How many the plan allows.
    pub most: Option<u64>,
}

/// What waits for one subscriber, in the order it was published.
#[derive(Default)]
pub(super) struct Lane {
    pub events: VecDeque<Arc<Event>>,
    /// How often the first was sent.
    pub attempts: u32,
    /// Whether it is under way, or waits for its turn.
    pub busy: bool,
    /// Whether the last attempt succeeded and did not take long.
    pub is_proven: bool,
}

/// API, topic, address and application.
type Wish = [Arc<str>; 4];

#[derive(Default)]
pub(super) struct Inner {
    pub subscriptions: BTreeMap<u64, Arc<Subscription>>,
    by_wish: HashMap<Wish, u64>,
    /// In the order of their numbers.
    by_topic: HashMap<(Arc<str>, Arc<str>), Vec<u64>>,
    by_end: BTreeSet<(u64, u64)>,
    pub lanes: HashMap<u64, Lane>,
    /// Events in all lanes.
    pub pairs: usize,
    /// Lanes whose first event may be sent.
    pub ready: VecDeque<u64>,
    /// Those of subscribers that are not proven.
    pub ready_unproven: VecDeque<u64>,
    /// Lanes whose first event is sent again, and when.
    pub again: Vec<(Instant, u64)>,
    pub questions: VecDeque<Question>,
    /// Whether what is kept is not what is known.
    pub changed: bool,
    /// Who waits until it is kept.
    pub waiting: Vec<oneshot::Sender<bool>>,
    /// When keeping may be tried again.
    pub not_before: Option<Instant>,
    next: u64,
}

/// What keeps subscriptions; what it says is logged.
type Keeper = dyn Fn(&[u8]) -> Result<(), String> + Send + Sync;

/// All hubs.
#[derive(Default)]
pub(crate) struct Hub {
    inner: Mutex<Inner>,
    pub(super) wake: Notify,
    pub(super) keeper: OnceLock<Arc<Keeper>>,
    waiting_bytes: Arc<AtomicUsize>,
    pub(super) delivered: AtomicU64,
    pub(super) failed: AtomicU64,
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
}

/// Why a subscription is not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// The application has as many as its plan allows.
    Plan,
    /// All hubs together have as many as they may.
    All,
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Hub {
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has subscriptions kept by a function, which gets all of them whenever one changes; `kept` is what it got last.
    pub(crate) fn kept_by(
        &self,
        keeper: impl Fn(&[u8]) -> Result<(), String> + Send + Sync + 'static,
        kept: Option<&[u8]>,
    ) -> Result<(), String> {
        let read = kept.map(keep::read).transpose()?;
        let _ = self.keeper.set(Arc::new(keeper));
        let mut inner = self.lock();
        for subscription in read.unwrap_or_default().into_iter().take(SUBSCRIPTIONS_MAX) {
            inner.add(subscription);
        }
        inner.changed = false;
        Ok(())
    }

    /// Takes a subscription, or puts it in the place of the same one. The receiver hears when it is kept.
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
            // Nobody waits for it when nothing is there to be kept.
            let _ = sender.send(true);
        }
        drop(inner);
        self.wake.notify_one();
        receiver
    }

    /// Has a subscriber asked; whether there was room for it.
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

    /// Passes an event on to all subscribers of a topic whose plans allow it; whether there was room for it.
    pub(super) fn publish(
        &self,
        (api, topic): (&Arc<str>, &Arc<str>),
        fields: Fields,
        body: Bytes,
        admits: impl Fn(&Subscriber) -> bool,
    ) -> bool {
        let bytes = body.len() + EVENT_BYTES;
        if self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > BYTES_MAX {
            self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        let waiting = self.waiting_bytes.clone();
        let event = Arc::new(Event { fields, body, waiting });
        let mut inner = self.lock();
        let now = now();
        let ids = inner.by_topic.get(&(api.clone(), topic.clone())).cloned().unwrap_or_default();
        if inner.pairs + ids.len() > PAIRS_MAX {
            return false;
        }
        for id in ids {
            let Some(subscription) = inner.subscriptions.get(&id).filter(|one| !one.has_ended(now)) else { continue };
            if !admits(&subscription.who) {
                continue;
            }
            let lane = inner.lanes.entry(id).or_default();
            if lane.events.len() >= WAITING_MAX {
                self.failed.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            lane.events.push_back(event.clone());
            let was_busy = std::mem::replace(&mut lane.busy, true);
            inner.pairs += 1;
            if !was_busy {
                inner.is_ready(id);
            }
        }
        drop(inner);
        self.wake.notify_one();
        true
    }
}

impl Inner {
    fn find(&self, wanted: &Subscription) -> Option<u64> {
        self.by_wish.get(&wanted.wish()).copied()
    }

    fn room_for(&self, wanted: &Subscription, most: Option<u64>) -> Result<(), Full> {
        if self.find(wanted).is_some() {
            return Ok(());
        }
        let same = |one: &&Arc<Subscription>| one.api == wanted.api && one.who.application == wanted.who.application;
        match most {
            _ if self.subscriptions.len() >= SUBSCRIPTIONS_MAX => Err(Full::All),
            Some(most) if self.subscriptions.values().filter(same).count() as u64 >= most => Err(Full::Plan),
            _ => Ok(()),
        }
    }

    pub(super) fn add(&mut self, subscription: Subscription) {
        self.changed = true;
        let id = match self.find(&subscription) {
            Some(id) => id,
            None => {
                let id = self.next;
                self.next += 1;
                self.by_topic.entry((subscription.api.clone(), subscription.topic.clone())).or_default().push(id);
                self.by_wish.insert(subscription.wish(), id);
                id
            }
        };
        if let Some(ends) = self.subscriptions.get(&id).and_then(|before| before.ends) {
            self.by_end.remove(&(ends, id));
        }
        self.by_end.extend(subscription.ends.map(|ends| (ends, id)));
        self.subscriptions.insert(id, Arc::new(subscription));
    }

    /// Removes a subscription and what waits for it.
    pub(super) fn remove(&mut self, id: u64) {
        let Some(subscription) = self.subscriptions.remove(&id) else { return };
        self.changed = true;
        self.by_wish.remove(&subscription.wish());
        if let Some(ends) = subscription.ends {
            self.by_end.remove(&(ends, id));
        }
        self.pairs -= self.lanes.remove(&id).map_or(0, |lane| lane.events.len());
        let key = (subscription.api.clone(), subscription.topic.clone());
        if let Some(ids) = self.by_topic.get_mut(&key) {
            if let Ok(at) = ids.binary_search(&id) {
                ids.remove(at);
            }
            if ids.is_empty() {
                self.by_topic.remove(&key);
            }
        }
    }

    pub(super) fn forget_ended(&mut self, now: u64) {
        while let Some((_, id)) = self.by_end.first().copied().filter(|(ends, _)| *ends <= now) {
            self.by_end.pop_first();
            self.remove(id);
        }
    }

    /// A lane's first event may be sent.
    pub(super) fn is_ready(&mut self, id: u64) {
        match self.lanes.get(&id).is_some_and(|lane| lane.is_proven) {
            true => self.ready.push_back(id),
            false => self.ready_unproven.push_back(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscription(topic: &str, callback: &str, application: &str) -> Subscription {
        let who = Subscriber { application: application.into(), ..Subscriber::default() };
        Subscription {
            api: "/hub".into(),
            topic: topic.into(),
            callback: callback.into(),
            secret: None,
            algorithm: SigningAlgorithm::Sha1,
            ends: None,
            who,
        }
    }

    fn waiting(hub: &Hub) -> Vec<usize> {
        hub.lock().lanes.values().map(|lane| lane.events.len()).collect()
    }

    fn publish(hub: &Hub, topic: &str, body: &'static [u8]) -> bool {
        hub.publish((&"/hub".into(), &topic.into()), Fields::new(), Bytes::from_static(body), |_| true)
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
        assert_eq!(hub.waiting_bytes.load(Ordering::Relaxed), (5 + EVENT_BYTES) * WAITING_MAX);
        assert_eq!(hub.lock().pairs, WAITING_MAX);
        let large = Bytes::from(vec![0; BYTES_MAX]);
        assert!(!hub.publish((&"/hub".into(), &"a".into()), Fields::new(), large, |_| true));
        drop(hub.unsubscribe(&subscription("a", "http://x/", "app")));
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

    #[test]
    fn many_are_found_and_end_one_by_one() {
        let hub = Hub::default();
        let started = Instant::now();
        let mut inner = hub.lock();
        for number in 0..SUBSCRIPTIONS_MAX {
            let callback = format!("http://x/{number}");
            inner.add(Subscription { ends: Some(10 + number as u64), ..subscription("a", &callback, "app") });
        }
        // Another lease takes the place of the first.
        inner.add(Subscription { ends: None, ..subscription("a", "http://x/0", "app") });
        inner.add(Subscription { ends: Some(10), ..subscription("a", "http://x/1", "app") });
        assert_eq!(inner.room_for(&subscription("b", "http://x/", "app"), None), Err(Full::All));
        inner.forget_ended(10);
        assert_eq!(inner.subscriptions.len(), SUBSCRIPTIONS_MAX - 1);
        inner.forget_ended(u64::MAX);
        assert_eq!((inner.subscriptions.len(), inner.by_wish.len(), inner.by_end.len()), (1, 1, 0));
        assert_eq!(inner.by_topic.values().map(Vec::len).sum::<usize>(), 1);
        assert!(started.elapsed().as_secs() < 5, "it does not take long because there are many");
    }
}
