//! Bandwidth: the bytes of answers, added to the limits that the request was counted under.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::{Body, BodyError, Form, Message, SizeHint};

use super::call::Metered;
use super::counters::Counters;
use super::plans::Plans;
use crate::watched_body::{BodyWatch, watch};
use crate::{CallContext, Gateway, Site};

/// Adds the answer's bytes.
struct Meter(Arc<Counters>);

pub(super) fn compile(gateway: &Gateway, _site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let plans = Plans::of_gateway(gateway);
    let custom = gateway.config.limits.custom.iter();
    let any = plans.any_bytes() || { custom }.any(|custom| custom.limit.unit == penstock_catalog::LimitUnit::Bytes);
    any.then(|| Box::new(Meter(gateway.state.get())) as Box<dyn Mediator>)
}

/// The bytes of a request's body, as far as they are announced.
pub(super) fn of_request(message: &Message) -> u64 {
    known(&message.body).unwrap_or(0)
}

fn known(body: &Body) -> Option<u64> {
    match body.form() {
        Form::Empty => Some(0),
        Form::Bytes(bytes) => Some(bytes.len() as u64),
        Form::Text(text) => Some(text.len() as u64),
        Form::Stream { head, rest } => match rest.size_hint() {
            SizeHint::Exact(size) => Some(size.saturating_add(head.len() as u64)),
            SizeHint::Unknown => None,
        },
        Form::Xml(_) | Form::Json(_) => Some(0),
    }
}

impl Mediator for Meter {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let metered = CallContext::of(exchange)?.limits.metered.take();
        if metered.is_empty() {
            return Ok(Flow::Next);
        }
        let body = &mut exchange.message.body;
        match known(body) {
            Some(bytes) => add(&self.0, &metered, bytes),
            None => watch(body, |head| {
                add(&self.0, &metered, head.len() as u64);
                BytesPassed { counters: self.0.clone(), metered, bytes: 0 }
            }),
        }
        Ok(Flow::Next)
    }
}

fn add(counters: &Counters, metered: &[Metered], bytes: u64) {
    let now = counters.millis(Instant::now());
    for (counter, limit) in metered {
        counter.add(bytes, *limit, now);
    }
}

/// Counts the bytes of a body of unknown length when it is over.
struct BytesPassed {
    counters: Arc<Counters>,
    metered: Vec<Metered>,
    bytes: u64,
}

impl Drop for BytesPassed {
    fn drop(&mut self) {
        add(&self.counters, &self.metered, self.bytes);
    }
}

impl BodyWatch for BytesPassed {
    fn passes(&mut self, chunk: &Bytes) -> Result<(), BodyError> {
        self.bytes += chunk.len() as u64;
        Ok(())
    }
}
