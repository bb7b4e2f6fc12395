//! One request on its way to a cluster: attempts, the time they may take together, the circuit breaker.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use penstock_compile::Compiler;
use penstock_engine::endpoint::Delivery;
use penstock_engine::ports::{LocalFuture, Outgoing, SendOptions, TlsProfile};
use penstock_engine::websocket::{FrameGate, Switched};
use penstock_engine::{Exchange, Fault, Side, clock, codes as engine_codes};
use penstock_message::{Body, Message};

use super::cluster::{Backends, Choice};
use super::{breaker, request};
use crate::config::GatewayConfig;
use crate::error::{GatewayError, codes};
use crate::policy::{Site, facts, is_websocket};
use crate::{CallContext, Gateway};

/// The pause between attempts grows to so many times its first.
const BACK_OFF_MAX: u32 = 10;

/// The backends of an operation.
pub(super) struct Upstreams {
    config: Arc<GatewayConfig>,
    site: Arc<Site>,
    choice: Choice,
}

impl Upstreams {
    pub(super) fn new(gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Upstreams {
        let own = site.operation.endpoints.as_ref().unwrap_or(&site.api.endpoints);
        let certificates = &site.api.endpoint_certificates;
        let tls = (!certificates.is_empty()).then(|| {
            let mut profile = TlsProfile::trusting(certificates.clone());
            profile.also_common = true;
            Arc::new(profile)
        });
        let choice = Choice::new(gateway, [own, &site.api.endpoints], &tls, cx);
        Upstreams { config: gateway.config.clone(), site: site.clone(), choice }
    }

    fn backends(&self, context: &CallContext) -> Result<&Arc<Backends>, GatewayError> {
        match context.upstream.chosen() {
            None => self.choice.of_caller(&context.caller.borrow()),
            Some(name) => {
                let unknown = || GatewayError::new(codes::UPSTREAM_CONNECTION_FAILED);
                self.choice.named(&name).ok_or_else(unknown)
            }
        }
    }

    async fn attempts(&self, exchange: &mut Exchange) -> Result<Message, Fault> {
        let context = CallContext::of(exchange)?;
        let backends = self.backends(&context)?;
        let started = Instant::now();
        let deadline = (started + backends.timeout).min(exchange.deadline);
        let several = backends.retry.is_some() || backends.hosts.len() > 1;
        // Before the circuit breaker: a client that takes its time to send must not keep others out.
        let kept = request::body(exchange, several.then_some(self.config.upstream.replay_bytes_max)).await?;
        let permit = match &backends.breaker {
            None => None,
            Some(breaker) => match breaker.enter(deadline).await {
                Ok(permit) => Some(permit),
                Err(fault) => {
                    context.upstream.ended(started.elapsed(), Some(flag_of(&fault)));
                    return Err(fault);
                }
            },
        };
        let mut asked: Vec<usize> = Vec::new();
        let mut repeated = 0;
        // Held while a repetition is under way.
        let mut _right = None;
        // Waiting for a permit and for the body took its part.
        let mut left = deadline.saturating_duration_since(Instant::now());
        let outcome = loop {
            let Some(index) = backends.pick(&asked) else { break Err(unreachable()) };
            let body = match &kept {
                Some(body) => body.share().unwrap_or_default(),
                None => std::mem::take(&mut exchange.message.body),
            };
            let outcome = self.send(exchange, &context, backends, index, body, left).await;
            let Some(pause) = self.again(backends, &outcome, &mut asked, index, &mut repeated, kept.is_some()) else {
                break outcome;
            };
            _right = match backends.breaker.as_ref().map(|breaker| breaker.may_retry()) {
                Some(Err(())) => break outcome,
                Some(Ok(right)) => right,
                None => None,
            };
            if Instant::now() + pause >= deadline {
                break outcome;
            }
            drop(outcome);
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            left = deadline.saturating_duration_since(Instant::now());
        };
        context.upstream.ended(started.elapsed(), outcome.as_ref().err().map(flag_of));
        let mut reply = outcome?;
        if let Some(mut switched) = Switched::take(&mut reply.body) {
            switched.gate = context.frames.take().map(|limits| Rc::new(limits) as Rc<dyn FrameGate>);
            switched.held.extend(permit.map(|permit| Box::new(permit) as Box<dyn Any>));
            reply.body = switched.into_body();
        } else if let Some(permit) = permit {
            breaker::hold(permit, &mut reply);
        }
        Ok(reply)
    }

    async fn send(
        &self,
        exchange: &Exchange,
        context: &CallContext,
        backends: &Backends,
        index: usize,
        body: Body,
        left: Duration,
    ) -> Result<Message, Fault> {
        let host = &backends.hosts[index];
        let url = request::url(host, facts::below_now(exchange, &self.site));
        context.upstream.sending(&url, host.origin_bytes);
        let mut headers = request::headers(&exchange.message.headers, backends);
        if let Some(field) = context.trace.field() {
            headers.set("traceparent", field);
        }
        let websocket = is_websocket(&self.site);
        if websocket && context.frames.borrow().is_some() {
            // A message that is left out would be missed by a decoder that carries its window on from one to the next.
            headers.remove("Sec-WebSocket-Extensions");
        }
        let outgoing = Outgoing {
            url,
            method: exchange.message.method.clone(),
            message: Message { headers, body, ..Message::default() },
            options: SendOptions {
                tls: backends.tls.clone(),
                http2: backends.http2 && !websocket,
                websocket,
                ..SendOptions::within(left)
            },
        };
        let outcome = exchange.core().outbound.send(outgoing).await;
        if let Some(health) = &host.health {
            health.note(!outcome.as_ref().is_err_and(could_not_connect));
        }
        outcome
    }

    /// Whether to try once more, and after what pause. A backend that could not even be connected to has not seen
    /// the request, so another one of the cluster gets it at once.
    fn again(
        &self,
        backends: &Backends,
        outcome: &Result<Message, Fault>,
        asked: &mut Vec<usize>,
        index: usize,
        repeated: &mut u32,
        kept: bool,
    ) -> Option<Duration> {
        if !kept {
            return None;
        }
        if outcome.as_ref().is_err_and(could_not_connect) && asked.len() + 1 < backends.hosts.len() {
            asked.push(index);
            return Some(Duration::ZERO);
        }
        let retry = backends.retry.as_ref()?;
        let worth_it = match outcome {
            Ok(reply) => retry.statuses.contains(&reply.status),
            Err(fault) => could_not_connect(fault) && retry.statuses.contains(&503),
        };
        if !worth_it || *repeated >= retry.count {
            return None;
        }
        *repeated += 1;
        asked.clear();
        let base = self.config.upstream.retry_base;
        let longest = (base * (2_u32.saturating_pow(*repeated) - 1)).min(base * BACK_OFF_MAX);
        // Any pause up to the longest, so that those who failed together do not come back together.
        Some(Duration::from_nanos(clock::random() % (longest.as_nanos() as u64).max(1)))
    }
}

impl Delivery for Upstreams {
    fn deliver<'a>(&'a self, exchange: &'a mut Exchange) -> LocalFuture<'a, Result<Message, Fault>> {
        Box::pin(self.attempts(exchange))
    }
}

fn could_not_connect(fault: &Fault) -> bool {
    matches!(fault.number(), Some(engine_codes::CONNECTION_FAILED | engine_codes::CONNECT_TIMEOUT))
}

fn unreachable() -> Fault {
    GatewayError::new(codes::UPSTREAM_CONNECTION_FAILED).into()
}

/// How Envoy abbreviates it.
fn flag_of(fault: &Fault) -> &'static str {
    match fault.number() {
        Some(codes::UPSTREAM_TIMEOUT | engine_codes::CONNECTION_TIMED_OUT) => "UT",
        Some(codes::UPSTREAM_OVERFLOW) => "UO",
        Some(engine_codes::CONNECTION_CLOSED | engine_codes::SENDER_IO_SENDING) => "UC",
        Some(engine_codes::PROTOCOL_VIOLATION) => "UPE",
        Some(engine_codes::SENDER_IO_RECEIVING) => "UR",
        _ if fault.side == Side::Client => "DC",
        _ => "UF",
    }
}
