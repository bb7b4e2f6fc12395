//! What happens in the background: events go to subscribers, one after the other to each and to many at once;
//! subscribers are asked; subscriptions end and are kept.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use penstock_engine::ports::{Outbound, Outgoing, SendOptions};
use penstock_message::{Body, Form, Headers, Message, Method};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::task::{JoinSet, spawn_blocking};

use super::hub::{Event, Hub, Question, Subscription, now};
use super::{keep, sign};
use crate::policy::facts::percent_encode;

/// Subscribers that are sent something at once.
const AT_ONCE_MAX: usize = 64;

/// For a subscriber's answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The pauses before an event is sent again. After the last it is given up.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(25)];

/// How often it is looked for what ended or is due.
const TICK: Duration = Duration::from_millis(250);

/// When keeping is tried again after it failed.
const KEEP_AGAIN: Duration = Duration::from_secs(5);

/// The largest answer to a question.
const ANSWER_BYTES_MAX: usize = 4096;

/// What became of an attempt.
enum Done {
    Delivered,
    /// The subscriber does not want any more (WebSub §7).
    Gone,
    Failed,
}

enum Finished {
    Sent(u64, Done),
    Answered(Box<Question>, bool),
}

impl Hub {
    /// Works for ever.
    pub(crate) async fn run(&self, outbound: Rc<dyn Outbound>) {
        let mut running: JoinSet<Finished> = JoinSet::new();
        loop {
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(TICK) => {}
                Some(Ok(finished)) = running.join_next(), if !running.is_empty() => self.finished(finished),
            }
            while let Some(finished) = running.try_join_next() {
                // A task that panicked would be a mistake of ours; its lane stays busy and loses nothing else.
                finished.into_iter().for_each(|finished| self.finished(finished));
            }
            self.start(&mut running, &outbound);
            self.keep().await;
        }
    }

    /// Starts what may start.
    fn start(&self, running: &mut JoinSet<Finished>, outbound: &Rc<dyn Outbound>) {
        let mut inner = self.lock();
        inner.forget_ended(now());
        let due = Instant::now();
        let (ready, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut inner.again).into_iter().partition(|(at, _)| *at <= due);
        inner.again = later;
        inner.ready.extend(ready.into_iter().map(|(_, id)| id));
        while running.len() < AT_ONCE_MAX {
            if let Some(question) = inner.questions.pop_front() {
                running.spawn_local(ask(outbound.clone(), question));
                continue;
            }
            let Some(id) = inner.ready.pop_front() else { break };
            let Some(subscription) = inner.subscriptions.get(&id).cloned() else { continue };
            let Some(event) = inner.lanes.get(&id).and_then(|lane| lane.events.front().cloned()) else { continue };
            let outbound = outbound.clone();
            running.spawn_local(async move { Finished::Sent(id, send(outbound, &subscription, &event).await) });
        }
    }

    fn finished(&self, finished: Finished) {
        match finished {
            Finished::Sent(id, done) => self.sent(id, &done),
            Finished::Answered(question, meant) if meant => {
                let Question { subscription, subscribes, most, .. } = *question;
                // Nobody waits for it to be kept: the subscriber was answered long ago.
                match subscribes {
                    true => drop(self.subscribe(subscription, most)),
                    false => drop(self.unsubscribe(&subscription)),
                }
            }
            Finished::Answered(..) => {}
        }
    }

    fn sent(&self, id: u64, done: &Done) {
        let mut inner = self.lock();
        if matches!(done, Done::Gone) {
            inner.remove(id);
        }
        let Some(lane) = inner.lanes.get_mut(&id) else { return };
        if matches!(done, Done::Failed) {
            lane.attempts += 1;
            if let Some(pause) = PAUSES.get(lane.attempts as usize - 1) {
                inner.again.push((Instant::now() + *pause, id));
                return;
            }
            self.failed.fetch_add(1, Ordering::Relaxed);
        } else {
            self.delivered.fetch_add(1, Ordering::Relaxed);
        }
        lane.attempts = 0;
        lane.events.pop_front();
        match lane.events.is_empty() {
            true => drop(inner.lanes.remove(&id)),
            false => inner.ready.push_back(id),
        }
    }

    /// Has changed subscriptions kept, and tells those who wait for it.
    async fn keep(&self) {
        let (bytes, waiting) = {
            let mut inner = self.lock();
            if !inner.changed || inner.not_before.is_some_and(|at| Instant::now() < at) {
                return;
            }
            inner.changed = false;
            (keep::write(inner.subscriptions.values()), std::mem::take(&mut inner.waiting))
        };
        let kept = match self.keeper.get().cloned() {
            // Disks take their time, and this core has requests to serve.
            Some(keeper) => spawn_blocking(move || keeper(&bytes).is_ok()).await.unwrap_or(false),
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

/// Sends an event once.
async fn send(outbound: Rc<dyn Outbound>, subscription: &Subscription, event: &Event) -> Done {
    let mut headers = Headers::new();
    if !event.content_type.is_empty() {
        headers.set("Content-Type", &*event.content_type);
    }
    if let Some(secret) = &subscription.secret {
        headers.set("X-Hub-Signature", sign::signature(subscription.algorithm, &secret.0, &event.body));
    }
    let outgoing = Outgoing {
        url: subscription.callback.clone(),
        method: Method::Post,
        message: Message { headers, body: Body::bytes(event.body.clone()), ..Message::default() },
        options: SendOptions::within(TIMEOUT),
    };
    match tokio::time::timeout(TIMEOUT, outbound.send(outgoing)).await {
        Ok(Ok(reply)) if (200..300).contains(&reply.status) => Done::Delivered,
        Ok(Ok(reply)) if reply.status == 410 => Done::Gone,
        _ => Done::Failed,
    }
}

/// Asks a subscriber whether it meant it: it must send back what nobody else knows.
async fn ask(outbound: Rc<dyn Outbound>, question: Question) -> Finished {
    let meant = challenge(outbound, &question).await.unwrap_or(false);
    Finished::Answered(Box::new(question), meant)
}

async fn challenge(outbound: Rc<dyn Outbound>, question: &Question) -> Option<bool> {
    let mut random = [0; 16];
    SystemRandom::new().fill(&mut random).ok()?;
    let challenge: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let Subscription { callback, topic, .. } = &question.subscription;
    let mut url = callback.to_string();
    url.push(if url.contains('?') { '&' } else { '?' });
    url.push_str(if question.subscribes { "hub.mode=subscribe" } else { "hub.mode=unsubscribe" });
    url.push_str("&hub.topic=");
    percent_encode(&mut url, topic);
    url.push_str(&format!("&hub.challenge={challenge}"));
    if let Some(seconds) = question.lease_seconds {
        url.push_str(&format!("&hub.lease_seconds={seconds}"));
    }
    let outgoing = Outgoing {
        url: url.into(),
        method: Method::Get,
        message: Message::default(),
        options: SendOptions::within(TIMEOUT),
    };
    let whole = async {
        let mut reply = outbound.send(outgoing).await.ok()?;
        let body = &mut reply.body;
        poll_fn(|cx| body.poll_pull(cx, usize::MAX, ANSWER_BYTES_MAX)).await.ok()?;
        let Form::Bytes(bytes) = reply.body.take() else { return None };
        let is_good = (200..300).contains(&reply.status);
        Some(is_good && bytes.trim_ascii() == challenge.as_bytes())
    };
    tokio::time::timeout(TIMEOUT, whole).await.ok()?
}
