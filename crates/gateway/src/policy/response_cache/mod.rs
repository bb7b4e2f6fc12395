//! Answers of backends are kept and given again, for as long as the API and the answer allow.
//!
//! A request is looked up where it would leave for the backend: everything that decides over requests has run, and all
//! fields a backend would see are there. A kept answer then runs the response flow like one that just came.
//! `control.rs` knows what may be kept and for how long, `key.rs` what makes two requests the same.

mod control;
mod key;

use std::any::Any;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use penstock_compile::Compiler;
use penstock_engine::kept::{self, Key, Measured, Store};
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::{AbsentBody, Body, BodyError, BodyStream, Form, Headers, Message, Method, SizeHint};

use self::key::KeyRule;
use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::{CallContext, Gateway, Site};

/// The kind.
pub const KIND: PolicyKind = PolicyKind {
    name: "response-cache",
    applies_to: ApiKinds::MESSAGES,
    phase: Phase::Message,
    request: Some(find),
    response: Some(keep),
};

/// Larger answers are files; they stream. Eight of them fill a shard of the store.
const ENTRY_BYTES_MAX: usize = 1 << 20;

/// Kept answers of all APIs.
pub(crate) type ResponseCache = Store<Kept>;

/// A kept answer.
#[derive(Debug)]
pub(crate) struct Kept {
    fields: Vec<(Box<str>, Box<[u8]>)>,
    reason: Option<Arc<str>>,
    body: Bytes,
    /// When it came.
    since: Instant,
    /// How old it was then.
    was_old: Duration,
    /// How old it may become.
    lifetime: Duration,
}

/// Answers with what was kept.
struct Find {
    responses: Arc<ResponseCache>,
    rule: KeyRule,
}

/// Keeps what may be kept.
struct Keep {
    responses: Arc<ResponseCache>,
    lifetime: Duration,
}

/// How long answers of the site are kept, when they are.
fn lifetime(site: &Site) -> Option<Duration> {
    let wanted = site.api.response_cache.filter(|lifetime| !lifetime.is_zero());
    wanted.filter(|_| matches!(&*site.operation.method, "GET" | "HEAD"))
}

fn find(gateway: &Gateway, site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    lifetime(site)?;
    let rule = KeyRule::new(site, &gateway.config);
    Some(Box::new(Find { responses: gateway.state.get(), rule }))
}

fn keep(gateway: &Gateway, site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let lifetime = lifetime(site)?;
    Some(Box::new(Keep { responses: gateway.state.get(), lifetime }))
}

impl Mediator for Find {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let message = &exchange.message;
        let wish = control::Wish::from_headers(&message.headers);
        // A policy may have changed the method.
        let is_plain = matches!(message.method, Method::Get | Method::Head) && message.body.is_empty();
        if !is_plain || wish.is_no_store {
            return Ok(Flow::Next);
        }
        let context = CallContext::of(exchange)?;
        let key = self.rule.key(exchange, &context);
        let now = Instant::now();
        if let Some(kept) = self.responses.get(&key, now)
            && wish.takes(kept.age(now))
        {
            exchange.explain("cache", || format!("an answer that is {} s old", kept.age(now).as_secs()));
            exchange.message.replace_by_reply(kept.message(now));
            return Ok(Flow::Loopback);
        }
        context.cache_key.set(Some((key, exchange.message.method.clone())));
        Ok(Flow::Next)
    }
}

impl Mediator for Keep {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        // An answer does not say what it answers.
        let Some((key, method)) = context.cache_key.take() else { return Ok(Flow::Next) };
        let message = &mut exchange.message;
        let Some(terms) = control::terms(message.status, &message.headers, self.lifetime) else {
            return Ok(Flow::Next);
        };
        let keeper = Keeper { responses: self.responses.clone(), key, kept: Kept::new(message, &method, terms) };
        match message.body.form() {
            // A body that is not sent has only a length.
            _ if method == Method::Head && message.headers.contains("content-length") => {
                keeper.keep(Vec::new());
            }
            _ if method == Method::Head => {}
            Form::Empty => keeper.keep(Vec::new()),
            Form::Bytes(bytes) if bytes.len() <= ENTRY_BYTES_MAX => keeper.keep(bytes.to_vec()),
            Form::Stream { .. } => {
                if let Form::Stream { head, rest } = message.body.take() {
                    message.body = Body::stream(Box::new(Copied::new(head, rest, keeper)));
                }
            }
            _ => {}
        }
        Ok(Flow::Next)
    }
}

/// An answer whose body is still to come.
struct Keeper {
    responses: Arc<ResponseCache>,
    key: Key,
    kept: Kept,
}

impl Keeper {
    fn keep(self, body: Vec<u8>) {
        let kept = Kept { body: body.into(), ..self.kept };
        let lifetime = kept.lifetime.saturating_sub(kept.was_old);
        self.responses.put(self.key, kept, lifetime, Instant::now());
    }
}

/// A body that is copied on its way to the client, and kept once it is whole.
struct Copied {
    head: Bytes,
    rest: Box<dyn BodyStream>,
    copy: Vec<u8>,
    /// Absent once the answer is kept, or cannot be.
    keeper: Option<Keeper>,
}

impl Copied {
    fn new(head: Bytes, rest: Box<dyn BodyStream>, keeper: Keeper) -> Copied {
        let fits = match rest.size_hint() {
            SizeHint::Exact(size) => size.saturating_add(head.len() as u64) <= ENTRY_BYTES_MAX as u64,
            SizeHint::Unknown => true,
        };
        Copied { head, rest, copy: Vec::new(), keeper: fits.then_some(keeper) }
    }

    fn copy(&mut self, bytes: &[u8]) {
        if self.keeper.is_none() {
            return;
        }
        if self.copy.len() + bytes.len() > ENTRY_BYTES_MAX {
            self.keeper = None;
            self.copy = Vec::new();
            return;
        }
        self.copy.extend_from_slice(bytes);
        // With a known length the end is not polled.
        if self.rest.size_hint() == SizeHint::Exact(0) {
            self.ended();
        }
    }

    fn ended(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            keeper.keep(std::mem::take(&mut self.copy));
        }
    }
}

impl BodyStream for Copied {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let chunk = match std::mem::take(&mut self.head) {
            head if head.is_empty() => self.rest.poll_chunk(cx),
            head => Poll::Ready(Some(Ok(head))),
        };
        match &chunk {
            Poll::Ready(Some(Ok(bytes))) => self.copy(bytes),
            Poll::Ready(Some(Err(_))) => self.keeper = None,
            Poll::Ready(None) => self.ended(),
            Poll::Pending => {}
        }
        chunk
    }

    fn size_hint(&self) -> SizeHint {
        match self.rest.size_hint() {
            SizeHint::Exact(size) => SizeHint::Exact(size.saturating_add(self.head.len() as u64)),
            SizeHint::Unknown => SizeHint::Unknown,
        }
    }

    fn trailers(&mut self) -> Option<Headers> {
        self.rest.trailers()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl Measured for Kept {
    fn bytes(&self) -> usize {
        self.body.len() + kept::field_bytes(self.fields.iter().map(|(name, value)| (name.as_bytes(), &**value)))
    }
}

impl Kept {
    fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since).saturating_add(self.was_old)
    }

    /// What is kept of an answer, its body excepted.
    fn new(message: &Message, method: &Method, terms: control::Terms) -> Kept {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned().into_boxed_str();
        let fields = message.headers.iter().filter(|(name, _)| !control::is_of_one_transfer(name, method));
        Kept {
            fields: fields.map(|(name, value)| (text(name), value.into())).collect(),
            reason: message.reason.clone(),
            body: Bytes::new(),
            since: Instant::now(),
            was_old: terms.age,
            lifetime: terms.lifetime,
        }
    }

    /// The answer once more.
    fn message(&self, now: Instant) -> Message {
        let mut headers = Headers::new();
        for (name, value) in &self.fields {
            headers.append(name, value);
        }
        headers.set("Age", self.age(now).as_secs().to_string());
        let length = headers.get("content-length").and_then(|length| length.trim().parse().ok());
        let body = match length {
            // Only answers to HEAD are kept with their length.
            Some(length) => Body::stream(Box::new(AbsentBody { length: Some(length) })),
            None => Body::bytes(self.body.clone()),
        };
        Message { headers, body, status: 200, reason: self.reason.clone(), ..Message::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_that_a_backend_made_up_is_only_old() {
        let since = Instant::now();
        let terms = control::Terms { age: Duration::MAX, lifetime: Duration::MAX };
        let kept = Kept { since, ..Kept::new(&Message::default(), &Method::Get, terms) };
        assert_eq!(kept.age(since + Duration::from_secs(1)), Duration::MAX);
    }
}
