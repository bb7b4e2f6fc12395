//! What goes to subscribers: events, and questions.

use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;

use penstock_engine::ports::{Outbound, Outgoing, SendOptions};
use penstock_message::{Body, Form, Headers, Message, Method};
use ring::rand::{SecureRandom, SystemRandom};

use super::event::Event;
use super::sign;
use super::subscription::{Question, Subscription, link};
use crate::hex::hex;
use crate::text::percent_encode;

/// For a subscriber's answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The largest answer to a question.
const ANSWER_BYTES_MAX: usize = 4096;

/// What became of an attempt.
pub(super) enum Done {
    Delivered,
    /// The subscriber does not want any more (WebSub §7).
    Gone,
    Failed,
}

/// Sends an event once.
pub(super) async fn send(outbound: Rc<dyn Outbound>, subscription: &Subscription, event: &Event) -> Done {
    let mut headers = Headers::new();
    for (name, value) in &event.fields {
        headers.set(name, value.as_str());
    }
    if !subscription.hub.is_empty() {
        headers.set("Link", link(&subscription.hub, &subscription.topic));
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

/// Verifies a subscriber: it must return the challenge. `None` if it could not be reached.
pub(super) async fn challenge(outbound: Rc<dyn Outbound>, question: &Question) -> Option<bool> {
    let mut random = [0; 16];
    SystemRandom::new().fill(&mut random).ok()?;
    let challenge = hex(&random);
    let mut url = question.subscription.callback.to_string();
    url.push(if url.contains('?') { '&' } else { '?' });
    url.push_str(if question.subscribes { "hub.mode=subscribe" } else { "hub.mode=unsubscribe" });
    url.push_str("&hub.topic=");
    percent_encode(&mut url, &question.topic);
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
