//! What happens in the background: events go to subscribers, one after the other to each and to many at once;
//! subscribers are verified; subscriptions end and are stored.

use std::rc::Rc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use penstock_engine::ports::Outbound;
use tokio::task::{JoinSet, spawn_blocking};

use super::book::now;
use super::hub::Hub;
use super::keep;
use super::send::{Done, challenge, send};
use super::subscription::Question;

/// Subscribers that are sent something at once.
const AT_ONCE_MAX: usize = 64;

/// Maximum of unproven ones, and of concurrent verifications: the others must not wait
/// for addresses that never answer.
const UNPROVEN_AT_ONCE_MAX: usize = 16;

/// Who takes longer is not proven.
const SLOW: Duration = Duration::from_secs(2);

/// The pauses before an event is sent again. After the last it is given up.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(25)];

/// How often it is looked for what ended or is due.
const TICK: Duration = Duration::from_millis(250);

/// When keeping is tried again after it failed.
const KEEP_AGAIN: Duration = Duration::from_secs(5);

enum Finished {
    Sent { id: u64, done: Done, took: Duration, was_proven: bool },
    Answered(Box<Question>, bool),
}

/// How many of what is under way may keep others waiting.
#[derive(Default)]
struct UnderWay {
    unproven: usize,
    questions: usize,
}

impl Hub {
    /// Works for ever.
    pub(crate) async fn run(&self, outbound: Rc<dyn Outbound>) {
        tokio::join!(self.deliver(outbound), self.keep_events());
    }

    async fn deliver(&self, outbound: Rc<dyn Outbound>) {
        let mut running: JoinSet<Finished> = JoinSet::new();
        let mut under_way = UnderWay::default();
        loop {
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(TICK) => {}
                Some(Ok(finished)) = running.join_next(), if !running.is_empty() => self.finished(finished, &mut under_way),
            }
            while let Some(finished) = running.try_join_next() {
                // A task that panicked would be a mistake of ours; its lane stays busy and loses nothing else.
                finished.into_iter().for_each(|finished| self.finished(finished, &mut under_way));
            }
            self.start(&mut running, &mut under_way, &outbound);
            self.keep().await;
        }
    }

    /// Starts what may start.
    fn start(&self, running: &mut JoinSet<Finished>, under_way: &mut UnderWay, outbound: &Rc<dyn Outbound>) {
        let mut inner = self.lock();
        inner.forget_ended(now());
        let due = Instant::now();
        while inner.again.first().is_some_and(|(at, _)| *at <= due) {
            let Some((_, id)) = inner.again.pop_first() else { break };
            inner.is_ready(id);
        }
        while under_way.questions < UNPROVEN_AT_ONCE_MAX {
            let Some(question) = inner.questions.pop_front() else { break };
            under_way.questions += 1;
            let outbound = outbound.clone();
            running.spawn_local(async move {
                let meant = challenge(outbound, &question).await.unwrap_or(false);
                Finished::Answered(Box::new(question), meant)
            });
        }
        while running.len() < AT_ONCE_MAX {
            let has_room = under_way.unproven < UNPROVEN_AT_ONCE_MAX;
            let unproven = if has_room { inner.ready_unproven.pop_front() } else { None };
            let was_proven = unproven.is_none();
            let Some(id) = unproven.or_else(|| inner.ready.pop_front()) else { break };
            let Some(subscription) = inner.subscriptions.get(&id).cloned() else { continue };
            let Some(event) = inner.lanes.get(&id).and_then(|lane| lane.events.front().cloned()) else { continue };
            let outbound = outbound.clone();
            under_way.unproven += usize::from(!was_proven);
            running.spawn_local(async move {
                let started = Instant::now();
                let done = send(outbound, &subscription, &event).await;
                Finished::Sent { id, done, took: started.elapsed(), was_proven }
            });
        }
    }

    fn finished(&self, finished: Finished, under_way: &mut UnderWay) {
        match &finished {
            Finished::Sent { was_proven, .. } => under_way.unproven -= usize::from(!was_proven),
            Finished::Answered(..) => under_way.questions -= 1,
        }
        match finished {
            Finished::Sent { id, done, took, .. } => self.sent(id, &done, took),
            Finished::Answered(question, meant) if meant => {
                let Question { subscription, subscribes, most, .. } = *question;
                // Storing it is not awaited: the subscriber has its response.
                match subscribes {
                    true => drop(self.subscribe(subscription, most)),
                    false => drop(self.unsubscribe(&subscription)),
                }
            }
            Finished::Answered(..) => {}
        }
    }

    fn sent(&self, id: u64, done: &Done, took: Duration) {
        let mut inner = self.lock();
        if matches!(done, Done::Gone) {
            inner.remove(id);
        }
        let Some(lane) = inner.lanes.get_mut(&id) else { return };
        lane.is_proven = !matches!(done, Done::Failed) && took <= SLOW;
        if matches!(done, Done::Failed) {
            lane.attempts += 1;
            if let Some(pause) = PAUSES.get(lane.attempts as usize - 1) {
                inner.again.insert((Instant::now() + *pause, id));
                return;
            }
            self.failed.fetch_add(1, Ordering::Relaxed);
        } else {
            self.delivered.fetch_add(1, Ordering::Relaxed);
        }
        inner.is_done(id);
        drop(inner);
        self.journal_wake.notify_one();
    }

    /// Stores changed subscriptions, and notifies the waiters.
    async fn keep(&self) {
        let (all, next, waiting) = {
            let mut inner = self.lock();
            if !inner.changed || inner.not_before.is_some_and(|at| Instant::now() < at) {
                return;
            }
            inner.changed = false;
            let all: Vec<_> = inner.subscriptions.iter().map(|(id, one)| (*id, one.clone())).collect();
            (all, inner.next, std::mem::take(&mut inner.waiting))
        };
        let kept = match self.keeper.get().cloned() {
            // Disks take their time, and deliveries and health checks run beside this.
            Some(keeper) => {
                let write = move || keep::write(all.iter().map(|(id, one)| (*id, &**one)), next);
                spawn_blocking(move || keeper(&write()).is_ok()).await.unwrap_or(false)
            }
            None => true,
        };
        {
            let mut inner = self.lock();
            inner.changed |= !kept;
            inner.not_before = (!kept).then(|| Instant::now() + KEEP_AGAIN);
        }
        for one in waiting {
            // Who waited may have gone.
            let _ = one.send(kept);
        }
    }
}

impl Hub {
    /// Writes down for ever what becomes of events, many at once when there are many.
    async fn keep_events(&self) {
        let mut journal = None;
        // Once the file is lost by a mistake of ours, nothing is promised any more.
        let mut is_lost = false;
        let mut not_before: Option<Instant> = None;
        loop {
            tokio::select! {
                () = self.journal_wake.notified() => {}
                () = tokio::time::sleep(TICK) => {}
            }
            if not_before.is_some_and(|at| Instant::now() < at) {
                // The disk is full or gone. What happened stays in line, and who published hears that it is not kept.
                for one in std::mem::take(&mut self.lock().publishers) {
                    let _ = one.send(false);
                }
                continue;
            }
            journal = journal.or_else(|| self.journal.lock().unwrap_or_else(PoisonError::into_inner).take());
            let (entries, publishers) = {
                let mut inner = self.lock();
                (std::mem::take(&mut inner.entries), std::mem::take(&mut inner.publishers))
            };
            let mut kept = !is_lost;
            if let Some(mut writer) = journal.take() {
                // Disks take their time, and deliveries and health checks run beside this.
                let written = spawn_blocking(move || {
                    let kept = writer.write(entries);
                    (writer, kept)
                });
                match written.await {
                    Ok((writer, written)) => (journal, kept) = (Some(writer), written),
                    Err(_) => (is_lost, kept) = (true, false),
                }
                not_before = (!kept && !is_lost).then(|| Instant::now() + KEEP_AGAIN);
            }
            for one in publishers {
                // Who waited may have gone.
                let _ = one.send(kept);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use bytes::Bytes;
    use penstock_engine::Fault;
    use penstock_engine::ports::{LocalFuture, Outgoing};
    use penstock_message::Message;

    use super::super::subscription::Subscription;
    use super::*;
    use crate::policy::limits::Subscriber;

    /// Addresses that never answer, but for those of `quick`.
    #[derive(Default)]
    struct Holes {
        held: Cell<usize>,
    }

    impl Outbound for Holes {
        fn send<'a>(&'a self, outgoing: Outgoing) -> LocalFuture<'a, Result<Message, Fault>> {
            Box::pin(async move {
                if outgoing.url.starts_with("http://quick/") {
                    return Ok(Message { status: 204, ..Message::default() });
                }
                self.held.set(self.held.get() + 1);
                std::future::pending().await
            })
        }
    }

    fn subscription(callback: String) -> Subscription {
        Subscription {
            api: "/hub".into(),
            topic: "t".into(),
            callback: callback.into(),
            hub: "".into(),
            secret: None,
            algorithm: penstock_catalog::SigningAlgorithm::Sha1,
            ends: None,
            who: Subscriber::default(),
        }
    }

    #[test]
    fn unreachable_callbacks_delay_no_others() {
        let hub = Arc::new(Hub::default());
        let holes = Rc::new(Holes::default());
        let outbound = holes.clone();
        let publish = |hub: &Hub| {
            hub.publish((&"/hub".into(), &"t".into()), Vec::new(), Bytes::from_static(b"e"), |_| true).is_some()
        };
        let delivered = |hub: &Hub| hub.delivered.load(Ordering::Relaxed);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let running = hub.clone();
            tokio::task::spawn_local(async move { running.run(outbound).await });
            let until = |count| {
                let hub = hub.clone();
                async move {
                    while delivered(&hub) < count {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            };
            assert!(hub.subscribe(subscription("http://quick/1".to_owned()), None).is_ok());
            assert!(publish(&hub));
            until(1).await;
            for number in 0..100 {
                let meant = subscription(format!("http://hole/{number}"));
                let asked = subscription(format!("http://hole/asked/{number}"));
                assert!(hub.subscribe(meant, None).is_ok());
                let topic = "t".to_owned();
                let (lease_seconds, most) = (None, None);
                assert!(hub.ask(Question { subscription: asked, topic, subscribes: true, lease_seconds, most }));
            }
            for count in 2..50 {
                assert!(publish(&hub));
                until(count).await;
            }
            assert_eq!(holes.held.get(), 2 * UNPROVEN_AT_ONCE_MAX);
        });
    }
}
