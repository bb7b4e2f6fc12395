//! The one loop that runs mediators. Continuation of `call`, fault handlers, deadlines, limits and
//! branches live here and nowhere else.

use std::sync::Arc;

use penstock_message::{Form, Message, Shape, Value};

use crate::endpoint::{self, deliver};
use crate::exchange::Frame;
use crate::journal::{self, Before};
use crate::mediator::{Branch, Destination, Fork, FunctionScope, Needs, Resume, Sequence};
use crate::ports::{Level, LocalFuture};
use crate::route::{Entry, Proxy};
use crate::wait::{buffer, buffer_body, pull_more, within_deadline};
use crate::{Direction, Exchange, Fault, FaultCode, Flow, SequenceId, Side, codes, fork, incoming, slices};

/// How a message's way ended.
#[derive(Debug, Clone)]
pub(crate) enum End {
    /// It fell off the end of its path.
    Finished,
    /// A mediator ended it: `respond`, `drop`, a `send` whose out path ended.
    Stopped,
    /// An unhandled fault. Boxed, because each request carries the size of this type several times.
    Failed(Box<Fault>),
}

/// Runs the exchange from its top frame until nothing is left to do.
pub(crate) fn run(exchange: &mut Exchange) -> LocalFuture<'_, End> {
    Box::pin(drive(exchange))
}

async fn drive(exchange: &mut Exchange) -> End {
    let loaded = exchange.loaded.clone();
    let program = &*loaded.program;
    loop {
        let Some(frame) = exchange.frames.last_mut() else { return End::Finished };
        let sequence: &Sequence = program.sequence(frame.sequence);
        let Some(step) = sequence.steps.get(frame.next as usize) else {
            if exchange.frames.len() == exchange.floor + 1 && exchange.floor > 0 && !exchange.called {
                // A branch that never waited ends with its own sequence.
                leave(exchange);
                return End::Finished;
            }
            leave(exchange);
            continue;
        };
        frame.next += 1;
        exchange.steps += 1;
        if let Some(trace) = &exchange.trace {
            trace.begin(step.kind);
        }
        let before = Before::of(exchange);
        let outcome = if exchange.steps > program.limits.steps_max {
            Err(Fault::new(format!("more than {} mediators ran for one message", program.limits.steps_max)).public())
        } else if step.mediator.needs() == Needs::Whole
            && exchange.message.body.is_stream()
            && let Err(fault) = buffer_body(exchange).await
        {
            Err(fault)
        } else if step.mediator.needs() == Needs::Nothing && slices::is_small() {
            slices::run_at_once(exchange, |exchange| step.mediator.run(exchange))
        } else {
            slices::run(exchange, |exchange| step.mediator.run(exchange)).await
        };
        let asked = match (&before, &outcome) {
            (Some(_), Ok(flow)) => journal::describe(flow, program),
            _ => None,
        };
        let is_again = matches!(outcome, Ok(Flow::Pull | Flow::Buffer));
        let readable = exchange.check_readable();
        let outcome = match outcome.and_then(|flow| readable.map(|()| flow)) {
            Ok(Flow::Next) => Ok(None),
            Ok(flow) => act(exchange, flow).await,
            Err(fault) => Err(fault),
        };
        if let Some(before) = before.filter(|_| !is_again) {
            before.log(exchange, step, asked, &outcome);
        }
        if let Some(trace) = &exchange.trace {
            trace.end(outcome.as_ref().err());
        }
        match outcome {
            Ok(None) => {}
            Ok(Some(end)) => return end,
            Err(mut fault) => {
                if fault.at.is_none() && step.at.is_known() {
                    fault.at = Some(step.at.clone());
                }
                if let Err(fault) = handle(exchange, fault) {
                    return End::Failed(Box::new(fault));
                }
            }
        }
    }
}

/// Executes the flow that a mediator returned. `Some` when the message's way ends here.
async fn act(exchange: &mut Exchange, flow: Flow) -> Result<Option<End>, Fault> {
    let mut flow = flow;
    loop {
        flow = match flow {
            Flow::Next => return Ok(None),
            Flow::Enter(sequence) => {
                enter(exchange, sequence)?;
                return Ok(None);
            }
            Flow::EnterTemplate(sequence, scope) => {
                enter_template(exchange, sequence, *scope)?;
                return Ok(None);
            }
            Flow::Pull => {
                pull_more(exchange).await?;
                again(exchange);
                return Ok(None);
            }
            Flow::Buffer => {
                buffer_body(exchange).await?;
                again(exchange);
                return Ok(None);
            }
            Flow::Send(destination, receive) => return send(exchange, destination, receive).await,
            Flow::Call(destination) => {
                let one_way = takes_one_way(exchange);
                let reply = transmit(exchange, &destination).await?;
                if !one_way {
                    // The direction stays what it was, as in Micro Integrator: `loopback` still turns the message around.
                    exchange.message.replace_by_reply(*reply);
                }
                exchange.called = true;
                return Ok(None);
            }
            Flow::CallWith(destination, then) => {
                let mut reply = transmit(exchange, &destination).await;
                exchange.called = true;
                // A mediator that reads a response parses it.
                if let Ok(message) = &mut reply
                    && let Err(error) = buffer(&mut message.body, exchange.loaded.program.limits.body_bytes_max).await
                {
                    reply = Err(Fault::of_body(error, Side::Backend));
                }
                Box::pin(resume(exchange, then, reply.map(|reply| *reply))).await?
            }
            Flow::Respond => return respond(exchange).await.map(Some),
            Flow::Loopback => {
                if exchange.is_response() {
                    return Ok(Some(End::Stopped));
                }
                exchange.direction = Direction::Response;
                to_out_path(exchange, None)?;
                if exchange.frames.is_empty() {
                    return respond(exchange).await.map(Some);
                }
                return Ok(None);
            }
            Flow::Stop => return Ok(Some(End::Stopped)),
            Flow::Wait(future) => {
                let then: Resume<()> = within_deadline(exchange, future).await?;
                Box::pin(resume(exchange, then, ())).await?
            }
            Flow::WaitBounded(future) => {
                let then = future.await;
                Box::pin(resume(exchange, then, ())).await?
            }
            // Boxed like everything that is rare: each request carries the size of this future.
            Flow::Fork(work) => match Box::pin(fork::run(exchange, *work)).await? {
                fork::After::Continue(flow) => flow,
                fork::After::End => return Ok(Some(End::Stopped)),
            },
        }
    }
}

/// Continues a mediator with what it waited for.
pub(crate) async fn resume<T>(exchange: &mut Exchange, then: Resume<T>, input: T) -> Result<Flow, Fault> {
    let outcome = slices::run(exchange, |exchange| then.run(exchange, input)).await;
    let readable = exchange.check_readable();
    outcome.and_then(|flow| readable.map(|()| flow))
}

/// Makes the current mediator run once more.
fn again(exchange: &mut Exchange) {
    if let Some(frame) = exchange.frames.last_mut() {
        frame.next -= 1;
    }
}

/// Pushes a sequence's frame, with its fault handler.
pub(crate) fn enter(exchange: &mut Exchange, sequence: SequenceId) -> Result<(), Fault> {
    let limit = exchange.loaded.program.limits.depth_max;
    if exchange.frames.len() >= limit {
        let text = format!("sequences are nested deeper than {limit}: they may enter each other in a circle");
        return Err(Fault::new(text).public());
    }
    let handlers = exchange.handlers.len() as u16;
    if let Some(handler) = exchange.loaded.program.sequence(sequence).on_error {
        exchange.handlers.push(handler);
    }
    exchange.frames.push(Frame { sequence, next: 0, handlers, template: false });
    Ok(())
}

fn enter_template(exchange: &mut Exchange, sequence: SequenceId, scope: FunctionScope) -> Result<(), Fault> {
    let handlers = exchange.handlers.len() as u16;
    if let Some(handler) = scope.on_error {
        exchange.handlers.push(handler);
    }
    enter(exchange, sequence)?;
    if let Some(frame) = exchange.frames.last_mut() {
        frame.template = true;
        frame.handlers = handlers;
    }
    exchange.functions.push(scope);
    Ok(())
}

/// Pops the top frame and takes back what it added.
fn leave(exchange: &mut Exchange) {
    if let Some(frame) = exchange.frames.pop() {
        exchange.handlers.truncate(frame.handlers as usize);
        if frame.template {
            exchange.functions.pop();
        }
    }
}

impl Exchange {
    /// The fault with the side that sent the body at hand: the code that reads a body does not know whose it is. Decided
    /// once, because a mediator may replace the body after it failed to read it.
    pub fn blamed(&self, fault: Fault) -> Fault {
        if fault.is_blamed {
            return fault;
        }
        let mut fault = match self.message.body.form() {
            // A mediator made it.
            Form::Xml(_) | Form::Json(_) | Form::Text(_) => fault.sent_by(Side::Us),
            _ if self.message.is_reply => fault.sent_by(Side::Backend),
            _ => fault,
        };
        fault.is_blamed = true;
        fault
    }
}

/// Gives the fault to the innermost handler. `Err` when there is none left.
fn handle(exchange: &mut Exchange, fault: Fault) -> Result<(), Fault> {
    let fault = exchange.blamed(fault);
    let Some(handler) = exchange.handlers.pop() else { return Err(fault) };
    set_error_properties(exchange, &fault);
    exchange.frames.clear();
    exchange.functions.clear();
    exchange.floor = 0;
    exchange.fault = Some(fault);
    // The handlers that are left stay: an error in this one goes to the next.
    exchange.frames.push(Frame {
        sequence: handler,
        next: 0,
        handlers: exchange.handlers.len() as u16,
        template: false,
    });
    Ok(())
}

pub(crate) fn set_error_properties(exchange: &mut Exchange, fault: &Fault) {
    let first_line = fault.message.lines().next().unwrap_or_default();
    let is_unready =
        matches!(fault.number(), Some(codes::INDIRECT_MISSING | codes::GROUP_NOT_READY | codes::ENDPOINT_NOT_READY));
    let detail = match (&fault.detail, &fault.at) {
        (Some(detail), _) => detail.to_string(),
        // Micro Integrator says nothing else of an endpoint that is not there or not ready.
        _ if is_unready => fault.message.to_string(),
        (None, Some(at)) => format!("{} ({at})", fault.message),
        (None, None) => fault.message.to_string(),
    };
    let properties = &mut exchange.message.properties;
    // As in Micro Integrator, an error without a code of its own does not hide the one that led to it.
    let follows_another = fault.number() == Some(codes::DEFAULT) && properties.get("ERROR_CODE").is_some();
    if !follows_another {
        let words = fault.synapse_message();
        let (detail, exception) = match words {
            Some("Send timeout") => (String::new(), Value::string("")),
            _ => (detail, Value::string(fault.message.clone())),
        };
        properties.set("ERROR_CODE", fault.code.to_value());
        properties.set("ERROR_MESSAGE", Value::string(words.unwrap_or(first_line)));
        properties.set("ERROR_DETAIL", Value::string(detail));
        properties.set("ERROR_EXCEPTION", exception);
    }
    if fault.side == Side::Backend {
        exchange.message.axis2.set("SENDING_FAULT", Value::Boolean(true));
    }
    let level = if fault.quiet { Level::Debug } else { Level::Warn };
    if !exchange.core.log.enabled(level) {
        return;
    }
    let code = match &fault.code {
        FaultCode::Number(number) => number.to_string(),
        FaultCode::Word(word) => word.to_string(),
    };
    let at = fault.at.as_ref().map_or_else(String::new, |at| format!(" at {at}"));
    let text = format!("ERROR_CODE : {code}, ERROR_MESSAGE : {first_line}{at}");
    exchange.log(level, "FaultHandler", &text);
}

/// `OUT_ONLY` holds for one send.
fn takes_one_way(exchange: &mut Exchange) -> bool {
    exchange.one_way = exchange.message.properties.is_true("OUT_ONLY") || exchange.message.axis2.is_true("OUT_ONLY");
    exchange.one_way
}

async fn transmit(exchange: &mut Exchange, destination: &Destination) -> Result<Box<Message>, Fault> {
    if exchange.message.axis2.is_true("FORCE_SC_ACCEPTED") && !exchange.reply.is_answered() {
        // The client does not wait for a backend. Its connection is only free once its body is here.
        buffer_body(exchange).await?;
        exchange.reply.put(Box::new(incoming::empty(202)));
    }
    deliver(exchange, destination, 0).await
}

/// `send`: in the request path to a backend, whose answer goes through the out path; in the
/// response path, or when `RESPONSE` is set, to the client.
async fn send(
    exchange: &mut Exchange,
    destination: Destination,
    receive: Option<SequenceId>,
) -> Result<Option<End>, Fault> {
    let message = &exchange.message;
    let is_addressed = message.addressing.as_ref().is_some_and(|addressing| addressing.to.is_some());
    // The response of a `call` has no `To`, so it is for the client.
    let answers = exchange.is_response() || message.is_reply && !is_addressed;
    if answers && matches!(destination, Destination::Implicit) {
        return respond(exchange).await.map(Some);
    }
    if receive.is_none()
        && let Some(members) = endpoint::recipients(exchange, &destination)?
    {
        return Box::pin(send_to_each(exchange, members)).await;
    }
    let one_way = takes_one_way(exchange);
    let reply = transmit(exchange, &destination).await?;
    if one_way {
        return Ok(Some(End::Stopped));
    }
    exchange.message.replace_by_reply(*reply);
    exchange.direction = Direction::Response;
    exchange.called = true;
    to_out_path(exchange, receive)?;
    if exchange.frames.is_empty() {
        return respond(exchange).await.map(Some);
    }
    Ok(None)
}

/// A recipient list: every member gets a copy, and every answer goes through the out path, where it may be aggregated.
async fn send_to_each(exchange: &mut Exchange, members: Vec<Destination>) -> Result<Option<End>, Fault> {
    if members.is_empty() {
        return Err(Fault::coded(codes::GROUP_NOT_READY, Side::Us, "the recipient list is empty"));
    }
    buffer_body(exchange).await?;
    let branch = |member| Branch { message: exchange.message.copy(), sequence: None, endpoint: Some(member) };
    let branches = members.into_iter().map(branch).collect();
    let work = Fork { branches, parallel: true, join: None, continue_parent: false, id: None };
    fork::run(exchange, work).await?;
    Ok(Some(End::Stopped))
}

/// Leaves everything that runs and starts the out path: `receive`, or the service's out sequence.
/// No frame is there afterwards when the answer goes straight to the client.
fn to_out_path(exchange: &mut Exchange, receive: Option<SequenceId>) -> Result<(), Fault> {
    exchange.frames.clear();
    exchange.functions.clear();
    exchange.floor = 0;
    exchange.handlers.clear();
    let loaded = exchange.loaded.clone();
    exchange.handlers.extend(exchange.entry.base_handlers(&loaded.program));
    exchange.out_path = receive.or_else(|| exchange.entry.out_sequence(&loaded.program));
    match exchange.out_path {
        Some(sequence) => enter(exchange, sequence),
        None => Ok(()),
    }
}

/// Answers the client with the message at hand.
pub(crate) async fn respond(exchange: &mut Exchange) -> Result<End, Fault> {
    if exchange.reply.is_answered() {
        exchange.log(Level::Warn, "Respond", "Trying to send a response to an already responded client request");
        return Ok(End::Stopped);
    }
    if exchange.message.must_be_read_for(Shape::Reply) {
        buffer_body(exchange).await?;
    }
    if let Entry::Proxy(proxy) = &exchange.entry
        && proxy.seal.is_some()
    {
        Box::pin(secure(exchange, proxy.clone())).await?;
    }
    let reply = match slices::is_small() {
        true => incoming::prepare(exchange)?,
        false => slices::run(exchange, incoming::prepare).await?,
    };
    exchange.reply.put(reply);
    Ok(End::Stopped)
}

/// Secures the response of a proxy service if its policy requires it.
async fn secure(exchange: &mut Exchange, proxy: Arc<Proxy>) -> Result<(), Fault> {
    buffer_body(exchange).await?;
    let Some(seal) = &proxy.seal else { return Ok(()) };
    if let Flow::Wait(secured) = slices::run(exchange, |exchange| seal.run(exchange)).await? {
        let then = within_deadline(exchange, secured).await?;
        resume(exchange, then, ()).await?;
    }
    Ok(())
}

/// Sends the message as `send` does and runs what follows.
pub(crate) async fn send_and_run(exchange: &mut Exchange, destination: Destination) -> End {
    let sent = send(exchange, destination, None).await;
    match sent {
        Ok(Some(end)) => end,
        Ok(None) => run(exchange).await,
        Err(fault) => match handle(exchange, fault) {
            Ok(()) => run(exchange).await,
            Err(fault) => End::Failed(Box::new(fault)),
        },
    }
}
