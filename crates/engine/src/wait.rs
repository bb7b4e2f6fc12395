//! Waiting: for a body, for what a mediator waits for, never longer than the exchange may last.

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Instant;

use penstock_message::{Body, BodyError};

use crate::ports::LocalFuture;
use crate::{Exchange, Fault, Side, codes};

/// Buffers the message's body within the program's limit.
pub(crate) async fn buffer_body(exchange: &mut Exchange) -> Result<(), Fault> {
    let limit = exchange.loaded.program.limits.body_bytes_max;
    let side = if exchange.message.is_reply { Side::Backend } else { Side::Client };
    let whole = buffer(&mut exchange.message.body, limit);
    let outcome = bounded(exchange.deadline, whole).await.unwrap_or(Err(BodyError::Timeout));
    outcome.map_err(|error| Fault { side, ..Fault::from(error) })
}

/// Buffers a body.
pub(crate) async fn buffer(body: &mut Body, limit: usize) -> Result<(), BodyError> {
    poll_fn(|cx| body.poll_pull(cx, usize::MAX, limit)).await
}

/// Waits for more of the body.
pub(crate) async fn pull_more(exchange: &mut Exchange) -> Result<(), Fault> {
    let limit = exchange.loaded.program.limits.body_bytes_max;
    let body = &mut exchange.message.body;
    let more = poll_fn(|cx| body.poll_more(cx, limit));
    Ok(bounded(exchange.deadline, more).await.unwrap_or(Err(BodyError::Timeout))?)
}

/// Waits for something outside, no longer than the exchange may last.
pub(crate) async fn within_deadline<T>(exchange: &Exchange, future: LocalFuture<'static, T>) -> Result<T, Fault> {
    let late = || Fault::coded(codes::CONNECTION_TIMED_OUT, Side::Us, "the deadline of the request has passed");
    bounded(exchange.deadline, future).await.ok_or_else(late)
}

/// Waits until a deadline at the most. A timer is only set for what is not ready at once.
async fn bounded<T>(deadline: Instant, future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    if let Poll::Ready(output) = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await {
        return Some(output);
    }
    tokio::time::timeout_at(deadline.into(), future).await.ok()
}
