//! One request on its way to a cluster: attempts, the time they may take together, the circuit breaker.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use penstock_compile::Compiler;
use penstock_engine::endpoint::Delivery;
use penstock_engine::ports::{HttpOptions, LocalFuture, Outgoing, SendOptions, TlsProfile};
use penstock_engine::websocket::Switched;
use penstock_engine::{Exchange, Fault, Side, clock, codes as engine_codes};
use penstock_message::{Body, Message};

use super::cluster::{Backends, Choice, Host};
use super::proof::Proof;
use super::{breaker, idle, request};
use crate::error::{GatewayError, codes};
use crate::policy::{graphql, websocket};
use crate::security::SecurityState;
use crate::{CallContext, Gateway, GatewayConfig, Site, client_request};

/// The pause between attempts grows to so many times its first.
const BACK_OFF_MAX: u32 = 10;

/// One of the backends, and how long it may take.
#[derive(Clone, Copy)]
struct To<'b> {
    backends: &'b Backends,
    host: &'b Host,
    left: Duration,
}

impl To<'_> {
    /// Runs something of which the request must know the end, and takes its time off.
    async fn after<T>(&mut self, knowing: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let begun = Instant::now();
        let late = |_| Fault::from(GatewayError::new(codes::UPSTREAM_TIMEOUT));
        let known = tokio::time::timeout(self.left, knowing).await.map_err(late)?;
        self.left = self.left.saturating_sub(begun.elapsed());
        known
    }
}

/// The backends of an operation.
pub(super) struct Upstreams {
    config: Arc<GatewayConfig>,
    security: Arc<SecurityState>,
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
        let security = gateway.state.security.clone();
        Upstreams { config: gateway.config.clone(), security, site: site.clone(), choice }
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

    /// Where a request goes at a backend.
    fn url(&self, exchange: &Exchange, site: &Site, to: &To<'_>) -> Arc<str> {
        if to.backends.is_addressed() {
            return request::url(to.host, "");
        }
        request::url(to.host, &client_request::for_backend(exchange, site, self.config.error_style))
    }

    async fn attempts(&self, exchange: &mut Exchange) -> Result<Message, Fault> {
        let context = CallContext::of(exchange)?;
        let backends = self.backends(&context)?;
        let started = Instant::now();
        let resilience = self.site.operation.resilience;
        let deadline = match resilience.timeout {
            Some(Duration::ZERO) => exchange.deadline,
            timeout => (started + timeout.unwrap_or(backends.timeout)).min(exchange.deadline),
        };
        let answers = backends.proof.as_ref().is_some_and(Proof::answers);
        let several = backends.retry.is_some() || backends.hosts.len() > 1 || answers;
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
        let addressed = if backends.is_addressed() { Some(addressed(exchange)?) } else { None };
        let mut asked: Vec<usize> = Vec::new();
        let mut repeated = 0;
        // Held while a repetition is under way.
        let mut _right = None;
        // Waiting for a permit and for the body took its part.
        let waited = permit.is_some() || kept.is_some();
        let mut left = deadline.saturating_duration_since(if waited { Instant::now() } else { started });
        let outcome = loop {
            let picked = match &addressed {
                Some(host) if asked.is_empty() => Some((0, host)),
                Some(_) => None,
                None => backends.pick(&asked).map(|index| (index, &backends.hosts[index])),
            };
            let Some((index, host)) = picked else { break Err(unreachable()) };
            let body = match &kept {
                Some(body) => body.share().unwrap_or_default(),
                None => std::mem::take(&mut exchange.message.body),
            };
            let request = To { backends, host, left };
            let outcome = self.prove_and_send(exchange, &context, &request, body, &kept).await;
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
        context.upstream.answered(reply.status);
        if let Some(time) = resilience.idle_timeout.filter(|time| !time.is_zero()) {
            idle::bound(time, &mut reply);
        }
        if let Some(mut switched) = Switched::take(&mut reply.body) {
            switched.gate = match &self.site.graphql {
                Some(definition) => {
                    Some(graphql::gate(definition, &self.config, &self.security, &context, &reply.headers))
                }
                None => websocket::gate(&self.config, &self.security, &context),
            };
            switched.held.extend(permit.map(|permit| Box::new(permit) as Box<dyn Any>));
            reply.body = switched.into_body();
        } else if let Some(permit) = permit {
            breaker::hold(permit, &mut reply);
        }
        Ok(reply)
    }

    /// Sends with what the backend wants to be shown, and once more when it wants something else.
    async fn prove_and_send(
        &self,
        exchange: &mut Exchange,
        context: &CallContext,
        to: &To<'_>,
        body: Body,
        kept: &Option<Body>,
    ) -> Result<Message, Fault> {
        let Some(proof) = to.backends.proof.as_ref().filter(|proof| proof.answers()) else {
            return self.send(exchange, context, to, body, None).await;
        };
        let url = self.url(exchange, &context.site, to);
        let target = match url.get(to.host.origin_bytes..) {
            None | Some("") => "/",
            Some(target) => target,
        };
        let mut to = *to;
        let shown = to.after(proof.first(exchange, target)).await?;
        let sent = Instant::now();
        let refusal = self.send(exchange, context, &to, body, shown.as_deref()).await?;
        if refusal.status != 401 {
            return Ok(refusal);
        }
        let Some(kept) = kept else {
            proof.refused(&refusal, shown.as_deref());
            return Ok(refusal);
        };
        to.left = to.left.saturating_sub(sent.elapsed());
        let better = to.after(proof.second(exchange, &refusal, shown.as_deref(), target)).await?;
        let Some(better) = better else { return Ok(refusal) };
        drop(refusal);
        let reply = self.send(exchange, context, &to, kept.share().unwrap_or_default(), Some(&better)).await?;
        if reply.status == 401 {
            proof.refused_again(exchange);
        }
        Ok(reply)
    }

    async fn send(
        &self,
        exchange: &Exchange,
        context: &CallContext,
        to: &To<'_>,
        body: Body,
        authorization: Option<&str>,
    ) -> Result<Message, Fault> {
        let (backends, host) = (to.backends, to.host);
        let url = self.url(exchange, &context.site, to);
        context.upstream.sending(&url, host.origin_bytes);
        let url = backends.proof.as_ref().map_or(url.clone(), |proof| proof.address(url));
        let mut headers = request::headers(&exchange.message.headers, backends, authorization);
        if let Some(field) = context.trace.field() {
            headers.set("traceparent", field);
        }
        let websocket = context.opens_socket.get();
        if websocket && (self.site.graphql.is_some() || context.limits.frames.borrow().is_some()) {
            // A message that is left out would be missed by a decoder that carries its window on from one to the next,
            // and one that is compressed cannot be read.
            headers.remove("Sec-WebSocket-Extensions");
        }
        let outgoing = Outgoing {
            url,
            method: exchange.message.method.clone(),
            message: Message { headers, body, ..Message::default() },
            options: SendOptions {
                tls: backends.tls.clone(),
                http: HttpOptions { http2: backends.http2 && !websocket, websocket, ..HttpOptions::default() },
                time_left: exchange.deadline.saturating_duration_since(Instant::now()),
                connect_timeout: backends.connect_timeout(),
                ..SendOptions::within(to.left)
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
        // A random pause up to the longest, so that requests that failed together are not retried together.
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

/// The backend that a policy named.
fn addressed(exchange: &Exchange) -> Result<Host, Fault> {
    let to = exchange.message.addressing.as_ref().and_then(|addressing| addressing.to.as_deref());
    let unknown = || GatewayError::new(codes::NO_CLUSTER).because("no policy set the address of the backend (`To`)");
    to.and_then(Host::parse).ok_or_else(|| unknown().into())
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
