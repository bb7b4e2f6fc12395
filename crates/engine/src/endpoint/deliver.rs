//! Sending a message to an endpoint: readiness, groups, timeouts, and what a failure does to state.

use std::future::{Future, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use penstock_message::{Form, Message, SoapVersion};

use super::{Endpoint, EndpointKind, Format, Leaf, Sessions, Target, TimeoutAction, TimeoutDuration, TokenSource};
use crate::mediator::Destination;
use crate::ports::{HttpOptions, LocalFuture, Outgoing, SendOptions};
use crate::{Direction, Exchange, Fault, Side, codes, local, outgoing, slices, wait};

/// Groups inside groups inside groups are a configuration that refers to itself.
const MAX_NESTING: usize = 16;

/// Sends the exchange's message and returns the answer. The message keeps headers and a body that
/// can be kept, so that a fault handler still sees what was sent.
pub(crate) fn deliver<'a>(
    exchange: &'a mut Exchange,
    destination: &'a Destination,
    depth: usize,
) -> LocalFuture<'a, Result<Box<Message>, Fault>> {
    Box::pin(async move {
        if depth > MAX_NESTING {
            return Err(Fault::new("endpoints refer to each other in a circle"));
        }
        let endpoint = match destination {
            Destination::Implicit => return Box::pin(implicit(exchange)).await,
            Destination::Address(url) => return Box::pin(to_address(exchange, url.clone(), true)).await,
            Destination::Endpoint(id) => exchange.program().endpoint(*id).clone(),
            Destination::Named(name) => match exchange.program().endpoint_names.get(&**name) {
                Some(id) => exchange.program().endpoint(*id).clone(),
                None => {
                    let text = format!("Couldn't find the endpoint with the key : {name}");
                    return Err(Fault::coded(codes::INDIRECT_MISSING, Side::Us, text));
                }
            },
        };
        match &endpoint.kind {
            EndpointKind::Leaf(leaf) => deliver_leaf(exchange, &endpoint, &**leaf).await,
            EndpointKind::Indirect(resolve) => {
                let target = resolve(exchange)?;
                exchange.check_readable()?;
                deliver(exchange, &target, depth + 1).await
            }
            EndpointKind::Failover { members, stays } => {
                let first = stays.as_ref().map_or(0, |member| member.load(Ordering::Relaxed));
                let turn = Turn { first, failover: true, next: None };
                let (reply, index) = Box::pin(deliver_group(exchange, &endpoint, members, turn, depth)).await?;
                if let Some(member) = stays {
                    member.store(index, Ordering::Relaxed);
                }
                Ok(reply)
            }
            EndpointKind::LoadBalance { members, failover, next, sessions: None } => {
                let turn = Turn { first: next.fetch_add(1, Ordering::Relaxed), failover: *failover, next: Some(next) };
                Box::pin(deliver_group(exchange, &endpoint, members, turn, depth)).await.map(|(reply, _)| reply)
            }
            EndpointKind::LoadBalance { members, failover, next, sessions: Some(sessions) } => {
                Box::pin(deliver_in_session(exchange, &endpoint, members, *failover, next, sessions, depth)).await
            }
            EndpointKind::Recipients { .. } => {
                let members = recipients(exchange, destination)?.unwrap_or_default();
                Box::pin(deliver_all(exchange, &members, depth)).await
            }
            EndpointKind::Managed(delivery) => {
                exchange.sent = true;
                let started = Instant::now();
                let outcome = delivery.deliver(exchange).await.map(Box::new);
                if let Some(journal) = &exchange.journal {
                    let status = outcome.as_ref().map(|reply| reply.status);
                    journal.called(endpoint.label(), "", "", status, started.elapsed());
                }
                outcome
            }
        }
    })
}

/// Whose turn it is in a group.
struct Turn<'e> {
    /// The member that is tried first.
    first: usize,
    /// Whether others are tried when it fails.
    failover: bool,
    /// Where turns are counted: a member that was passed over has had its turn.
    next: Option<&'e AtomicUsize>,
}

/// Tries members from the first on until one answers, is not worth a retry, or all were tried.
async fn deliver_group(
    exchange: &mut Exchange,
    group: &Endpoint,
    members: &[Destination],
    turn: Turn<'_>,
    depth: usize,
) -> Result<(Box<Message>, usize), Fault> {
    let Turn { first, failover, next } = turn;
    if members.is_empty() {
        return Err(Fault::coded(
            codes::GROUP_NOT_READY,
            Side::Us,
            format!("endpoint `{}` has no members", group.label()),
        ));
    }
    if !group.state.is_on() {
        return Err(not_ready(group, codes::GROUP_NOT_READY, None));
    }
    if failover {
        // A body that streamed away cannot be sent to the next member.
        wait::buffer_body(exchange).await?;
    }
    let mut last = None;
    let mut soonest: Option<Duration> = None;
    for step in 0..members.len() {
        let index = (first.wrapping_add(step)) % members.len();
        let member = &members[index];
        match deliver(exchange, member, depth + 1).await {
            Ok(reply) => return Ok((reply, index)),
            Err(fault) => {
                soonest = match (soonest, fault.retry_after) {
                    (Some(one), Some(other)) => Some(one.min(other)),
                    (one, other) => one.or(other),
                };
                let skipped = matches!(fault.number(), Some(codes::ENDPOINT_NOT_READY | codes::GROUP_NOT_READY));
                // A suspended member costs nothing to pass over, also without failover.
                let tries_next = skipped || failover && retries_on(exchange, member, &fault);
                if !tries_next {
                    return Err(fault);
                }
                if let Some(next) = next {
                    next.fetch_add(1, Ordering::Relaxed);
                }
                last = Some((fault, skipped));
            }
        }
    }
    match last {
        Some((fault, false)) => Err(fault),
        _ => Err(not_ready(group, codes::GROUP_NOT_READY, soonest)),
    }
}

/// A client that has a session goes to its member and to no other; any other client takes its turn.
async fn deliver_in_session(
    exchange: &mut Exchange,
    group: &Endpoint,
    members: &[Destination],
    failover: bool,
    next: &AtomicUsize,
    sessions: &Sessions,
    depth: usize,
) -> Result<Box<Message>, Fault> {
    if sessions.reads_body() {
        wait::buffer_body(exchange).await?;
    }
    let asked = sessions.asked(exchange);
    let bound = sessions.member(&asked);
    let first = bound.unwrap_or_else(|| next.fetch_add(1, Ordering::Relaxed));
    let turn = Turn { first, failover: failover && bound.is_none(), next: None };
    let (mut reply, member) = deliver_group(exchange, group, members, turn, depth).await?;
    if sessions.reads_body() {
        buffer_reply(exchange, &mut reply).await?;
    }
    sessions.answered(exchange, &mut reply, asked, member);
    Ok(reply)
}

/// The members of a recipient list, when the destination is one.
pub(crate) fn recipients(
    exchange: &mut Exchange,
    destination: &Destination,
) -> Result<Option<Vec<Destination>>, Fault> {
    let program = exchange.program().clone();
    let id = match destination {
        Destination::Endpoint(id) => Some(*id),
        Destination::Named(name) => program.endpoint_names.get(name).copied(),
        Destination::Implicit | Destination::Address(_) => None,
    };
    let Some(id) = id else { return Ok(None) };
    let EndpointKind::Recipients { members, computed } = &program.endpoint(id).kind else { return Ok(None) };
    let mut all = members.clone();
    if let Some(computed) = computed {
        all.extend(computed(exchange)?);
        exchange.check_readable()?;
    }
    Ok(Some(all))
}

fn retries_on(exchange: &Exchange, member: &Destination, fault: &Fault) -> bool {
    let (Some(code), Destination::Endpoint(id)) = (fault.number(), member) else { return true };
    let policy = &exchange.program().endpoint(*id).policy;
    if !policy.retry_enabled_codes.is_empty() {
        return policy.retry_enabled_codes.contains(&code);
    }
    !policy.retry_disabled_codes.contains(&code)
}

/// Sends to every member; the first good answer is the answer.
async fn deliver_all(exchange: &mut Exchange, members: &[Destination], depth: usize) -> Result<Box<Message>, Fault> {
    wait::buffer_body(exchange).await?;
    let mut answer: Option<Result<Box<Message>, Fault>> = None;
    for member in members {
        let outcome = deliver(exchange, member, depth + 1).await;
        match (&answer, &outcome) {
            (None, _) | (Some(Err(_)), Ok(_)) => answer = Some(outcome),
            _ => {}
        }
    }
    answer.unwrap_or_else(|| Err(Fault::coded(codes::GROUP_NOT_READY, Side::Us, "the recipient list is empty")))
}

fn not_ready(endpoint: &Endpoint, code: u32, retry_after: Option<Duration>) -> Fault {
    let name = endpoint.name.as_deref().unwrap_or("AnonymousEndpoint");
    // In the words of Micro Integrator: artifacts put them into their answers.
    let text = match &endpoint.kind {
        EndpointKind::Failover { .. } => format!("Failover endpoint : {name} - no ready child endpoints"),
        EndpointKind::LoadBalance { .. } => format!("Loadbalance endpoint : {name} - no ready child endpoints"),
        EndpointKind::Recipients { .. } => format!("Recipient List endpoint : {name} - no ready child endpoints"),
        _ => {
            let state = endpoint.state.phase().to_uppercase();
            format!("Currently , Address endpoint : [ Name : {name} ] [ State : {state} ]")
        }
    };
    let mut fault = Fault::coded(code, Side::Backend, text).retryable();
    fault.retry_after = retry_after;
    fault.at = Some(endpoint.at.clone());
    fault
}

/// To an address that was computed: an endpoint's, or the message's own `To`, which is the whole address.
async fn to_address(exchange: &mut Exchange, url: Arc<str>, append_postfix: bool) -> Result<Box<Message>, Fault> {
    let target = Target {
        url,
        method: None,
        format: Format::Same,
        append_postfix,
        headers: Vec::new(),
        tls: None,
        addressing: None,
    };
    let timeout = exchange.program().limits.endpoint_timeout;
    transmit(exchange, None, target, timeout).await
}

/// A `send` or `call` without an endpoint: to the message's own `To`.
async fn implicit(exchange: &mut Exchange) -> Result<Box<Message>, Fault> {
    let mut to = exchange.message.addressing.as_ref().and_then(|addressing| addressing.to.clone());
    if to.is_none() && exchange.direction == Direction::Request {
        wait::buffer_body(exchange).await?;
        to = exchange.address_in_header();
    }
    match to {
        Some(url) if url.contains("://") && exchange.direction == Direction::Request => {
            to_address(exchange, url, false).await
        }
        _ => Err(Fault::new(
            "the message has no address to be sent to: no endpoint is given and `To` is not an absolute URL",
        )),
    }
}

async fn deliver_leaf(
    exchange: &mut Exchange,
    endpoint: &Arc<Endpoint>,
    leaf: &dyn Leaf,
) -> Result<Box<Message>, Fault> {
    let permit = match exchange.passed {
        Some(_) => Ok(endpoint.state.admitted()),
        None => endpoint.state.admit(exchange.message.body.is_stream()),
    };
    let permit = permit.map_err(|wait| not_ready(endpoint, codes::ENDPOINT_NOT_READY, wait))?;
    if let Some(prepare) = &endpoint.policy.prepare {
        prepare(exchange)?;
    }
    let target = Target { addressing: endpoint.policy.addressing, ..leaf.target(exchange)? };
    let timeout = match &endpoint.policy.timeout {
        None => exchange.program().limits.endpoint_timeout,
        Some(TimeoutDuration::Fixed(timeout)) => *timeout,
        Some(TimeoutDuration::Computed(compute)) => compute(exchange)?,
    };
    let sent = match &endpoint.policy.token {
        None => transmit(exchange, Some(endpoint), target, timeout).await,
        Some(source) => Box::pin(transmit_with_token(exchange, endpoint, source, target, timeout)).await,
    };
    match sent {
        Ok(reply) => {
            permit.succeeded();
            Ok(reply)
        }
        Err(mut fault) => {
            // What the client or the flow did wrong says nothing about the endpoint.
            if fault.side == Side::Backend
                && let Some(code) = fault.number()
                && permit.failed(code, &endpoint.policy.suspension)
            {
                let text =
                    format!("endpoint `{}` is suspended after error {code}: {}", endpoint.label(), fault.message);
                exchange.log(crate::ports::Level::Warn, "Endpoint", &text);
            }
            if endpoint.policy.timeout_action == TimeoutAction::Discard
                && fault.number() == Some(codes::CONNECTION_TIMED_OUT)
            {
                // Micro Integrator forgets the fault handlers and leaves the client hanging; the handlers
                // stay forgotten here, the client gets the defined error.
                exchange.handlers.clear();
            }
            fault.at.get_or_insert_with(|| endpoint.at.clone());
            Err(fault)
        }
    }
}

/// Sends with a token; a backend that does not take it gets the request once more, with a new one.
async fn transmit_with_token(
    exchange: &mut Exchange,
    endpoint: &Endpoint,
    source: &TokenSource,
    target: Target,
    timeout: Duration,
) -> Result<Box<Message>, Fault> {
    // A body that streamed away could not be sent again.
    wait::buffer_body(exchange).await?;
    let with = |token: &str| {
        let mut target = target.clone();
        target.headers.push(("Authorization".into(), format!("Bearer {token}").into()));
        target
    };
    let token = source.token(exchange).await?;
    let reply = transmit(exchange, Some(endpoint), with(&token), timeout).await?;
    if reply.status != 401 {
        return Ok(reply);
    }
    let Some(token) = source.renewed(exchange, &token).await? else { return Ok(reply) };
    let reply = transmit(exchange, Some(endpoint), with(&token), timeout).await?;
    if reply.status == 401 {
        source.refused_again(exchange);
    }
    Ok(reply)
}

/// Sends the message to an address and waits for the reply.
async fn transmit(
    exchange: &mut Exchange,
    endpoint: Option<&Endpoint>,
    target: Target,
    timeout: Duration,
) -> Result<Box<Message>, Fault> {
    // Expressions of the endpoint were evaluated.
    exchange.check_readable()?;
    if exchange.message.must_be_read_for(outgoing::shape_of(target.format))
        || target.addressing.is_some()
        || outgoing::has_fields_in_query(exchange, &target)
    {
        wait::buffer_body(exchange).await?;
    }
    let options = options(exchange, &target, timeout);
    let outgoing = match slices::is_small() {
        true => outgoing::prepare(exchange, target, options)?,
        false => Box::pin(slices::run(exchange, |exchange| outgoing::prepare(exchange, target, options))).await?,
    };
    let mut reply = exchange_messages(exchange, endpoint, outgoing).await?;
    relocate(exchange, &mut reply);
    let strict = exchange.message.properties.is_true("FORCE_ERROR_ON_SOAP_FAULT")
        || exchange.message.axis2.is_true("FORCE_ERROR_ON_SOAP_FAULT");
    if strict {
        Box::pin(refuse_soap_fault(exchange, &mut reply)).await?;
    }
    Ok(reply)
}

fn options(exchange: &Exchange, target: &Target, timeout: Duration) -> SendOptions {
    let is_true = |name| exchange.message.axis2.is_true(name);
    SendOptions {
        response_timeout: timeout,
        time_left: exchange.deadline.saturating_duration_since(Instant::now()),
        connect_timeout: None,
        one_way: exchange.one_way,
        tls: target.tls.clone(),
        http: HttpOptions {
            content_length: is_true("DISABLE_CHUNKING"),
            http10: is_true("FORCE_HTTP_1.0"),
            close: is_true("NO_KEEPALIVE"),
            absolute_form: is_true("POST_TO_URI"),
            ..HttpOptions::default()
        },
    }
}

/// Gives the request to its sender and waits for the reply. The future does not hold the request: its size is part of each
/// request's future.
fn exchange_messages<'a>(
    exchange: &'a mut Exchange,
    endpoint: Option<&'a Endpoint>,
    outgoing: Outgoing,
) -> impl Future<Output = Result<Box<Message>, Fault>> + 'a {
    exchange.sent = true;
    let noted = exchange.journal.as_ref().map(|journal| {
        let call = (outgoing.method.clone(), outgoing.url.clone(), Instant::now());
        (journal.clone(), Box::new(call))
    });
    let sending: LocalFuture<'a, Result<Message, Fault>> = if let Some(outcome) = exchange.passed.take() {
        Box::pin(ready(*outcome))
    } else if !outgoing.url.starts_with("local:") {
        exchange.core.outbound.send(outgoing)
    } else if exchange.transactions.any() {
        Box::pin(local::call_within(exchange, outgoing))
    } else {
        Box::pin(local::call(&exchange.core, &exchange.client, outgoing))
    };
    async move {
        let outcome = sending.await.map(Box::new);
        if let Some((journal, call)) = noted {
            let (method, url, started) = *call;
            let status = outcome.as_ref().map(|reply| reply.status);
            journal.called(endpoint.map_or("", Endpoint::label), method.as_str(), &url, status, started.elapsed());
        }
        outcome
    }
}

/// Micro Integrator answers with a `Location` on itself, unless the answer creates something or redirects.
fn relocate(exchange: &Exchange, reply: &mut Message) {
    if matches!(reply.status, 201 | 301 | 302 | 303 | 307) {
        return;
    }
    let Some(location) = reply.headers.get("Location") else { return };
    let path = match location.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => location.trim_start_matches('/'),
    };
    let scheme = if exchange.client.line.secure { "https" } else { "http" };
    let own = format!("{scheme}://{}/{path}", exchange.client.local);
    reply.headers.set("Location", own);
}

/// Buffers the body of a reply.
async fn buffer_reply(exchange: &Exchange, reply: &mut Message) -> Result<(), Fault> {
    let buffered = wait::buffer(&mut reply.body, exchange.program().limits.body_bytes_max).await;
    buffered.map_err(|error| Fault::of_body(error, Side::Backend))
}

/// `FORCE_ERROR_ON_SOAP_FAULT`: a SOAP fault from the backend is a fault here.
async fn refuse_soap_fault(exchange: &Exchange, reply: &mut Message) -> Result<(), Fault> {
    if reply.status < 400 && !reply.media_type().is_xml() {
        return Ok(());
    }
    buffer_reply(exchange, reply).await?;
    if matches!(reply.body.form(), Form::Empty) {
        return Ok(());
    }
    let Ok(envelope) = reply.xml(&exchange.program().conversion) else { return Ok(()) };
    let is_fault = envelope.soap != SoapVersion::None
        && envelope.payload().is_some_and(|payload| envelope.document.local_name(payload) == "Fault");
    if is_fault {
        let payload = envelope.payload().map(|node| envelope.document.string_value(node).trim().to_owned());
        let text = payload.unwrap_or_else(|| "the backend answered with a SOAP fault".into());
        return Err(Fault::coded(codes::ENDPOINT_CUSTOM, Side::Backend, text));
    }
    Ok(())
}
