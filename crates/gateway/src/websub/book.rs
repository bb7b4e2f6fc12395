//! What a hub knows: subscriptions by wish, topic and end, and what waits for each of them.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::oneshot;

use super::entry::Entry;
use super::event::Event;
use super::subscription::{Full, Question, Subscription, Wish};

/// Subscriptions of all hubs. They are written as a whole when one changes.
pub(super) const SUBSCRIPTIONS_MAX: usize = 20_000;

/// Events that wait for one subscriber. A subscriber that is away for longer loses what comes then.
pub(super) const WAITING_MAX: usize = 1_000;

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
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
    pub again: BTreeSet<(Instant, u64)>,
    pub questions: VecDeque<Question>,
    /// Whether what is kept is not what is known.
    pub changed: bool,
    /// Who waits until it is kept.
    pub waiting: Vec<oneshot::Sender<bool>>,
    /// When keeping may be tried again.
    pub not_before: Option<Instant>,
    /// The number of the next subscription. None is given twice: events that are kept name them.
    pub next: u64,
    /// The number of the next event.
    pub next_event: u64,
    /// What became of events and is not in their journal yet.
    pub entries: Vec<Entry>,
    /// Who waits until it is.
    pub publishers: Vec<oneshot::Sender<bool>>,
}

impl Inner {
    pub(super) fn find(&self, wanted: &Subscription) -> Option<u64> {
        self.by_wish.get(&wanted.wish()).copied()
    }

    pub(super) fn room_for(&self, wanted: &Subscription, most: Option<u64>) -> Result<(), Full> {
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
        let number = self.next;
        self.add_numbered(number, subscription);
    }

    /// Adds a subscription that has its number already, if it is new.
    pub(super) fn add_numbered(&mut self, number: u64, subscription: Subscription) {
        self.changed = true;
        let id = match self.find(&subscription) {
            Some(id) => id,
            None => {
                let id = number;
                self.next = self.next.max(number.saturating_add(1));
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
        if let Some(lane) = self.lanes.remove(&id) {
            self.pairs -= lane.events.len();
            self.entries.extend(lane.events.iter().map(|event| Entry::Done(event.number, id)));
        }
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

    /// The subscribers of a topic.
    pub(super) fn of_topic(&self, api: &Arc<str>, topic: &Arc<str>) -> Vec<(u64, Arc<Subscription>)> {
        let ids = self.by_topic.get(&(api.clone(), topic.clone()));
        let now = now();
        let lasting = |id: &u64| Some((*id, self.subscriptions.get(id).filter(|one| !one.has_ended(now))?.clone()));
        ids.into_iter().flatten().filter_map(lasting).collect()
    }

    /// Puts an event behind those that wait for a subscriber; whether there was room for it.
    pub(super) fn wait_for(&mut self, id: u64, event: &Arc<Event>) -> bool {
        let lane = self.lanes.entry(id).or_default();
        if lane.events.len() >= WAITING_MAX {
            return false;
        }
        lane.events.push_back(event.clone());
        let was_busy = std::mem::replace(&mut lane.busy, true);
        self.pairs += 1;
        if !was_busy {
            self.is_ready(id);
        }
        true
    }

    /// Takes away the first event that waits for a subscriber: it was delivered or given up.
    pub(super) fn is_done(&mut self, id: u64) {
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        lane.attempts = 0;
        let Some(event) = lane.events.pop_front() else { return };
        lane.busy = !lane.events.is_empty();
        let is_busy = lane.busy;
        self.pairs -= 1;
        self.entries.push(Entry::Done(event.number, id));
        if is_busy {
            self.is_ready(id);
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
    use super::super::subscription::example as subscription;
    use super::*;

    #[test]
    fn many_are_found_and_end_one_by_one() {
        let mut inner = Inner::default();
        let started = Instant::now();
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
