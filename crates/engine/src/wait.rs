//! Waiting: for a body, for what a mediator waits for, never longer than the exchange may last.

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Instant;

use penstock_message::{Body, BodyError};

use crate::ports::LocalFuture;
use crate::{Exchange, Fault};

/// Buffers the message's body within the program's limit. What fails is blamed on the client; the loop corrects it when
/// the body is another's ([`Exchange::blamed`]).
pub(crate) async fn buffer_body(exchange: &mut Exchange) -> Result<(), Fault> {
    let limit = exchange.loaded.program.limits.body_bytes_max;
    exchange.pull_body(usize::MAX, limit).await
}

impl Exchange {
    /// Waits until so many bytes of the message's body are here, or all of it, within the request's deadline.
    pub async fn pull_body(&mut self, wanted_bytes: usize, limit_bytes: usize) -> Result<(), Fault> {
        let body = &mut self.message.body;
        let pulled = poll_fn(|cx| body.poll_pull(cx, wanted_bytes, limit_bytes));
        Ok(bounded(self.deadline, pulled).await.unwrap_or(Err(BodyError::Timeout))?)
    }
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
    bounded(exchange.deadline, future).await.ok_or_else(Fault::deadline)
}

/// Waits until a deadline at most. A timer is only set for what is not ready at once.
async fn bounded<T>(deadline: Instant, future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    if let Poll::Ready(output) = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await {
        return Some(output);
    }
    // Boxed like all that is rare: each request carries the size of this future.
    Box::pin(tokio::time::timeout_at(deadline.into(), future)).await.ok()
}
