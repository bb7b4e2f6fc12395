//! The time between two chunks of a response, where an operation limits it (`resilience.idleTimeout`).

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use penstock_message::{BodyError, BodyStream, Message};
use tokio::time::{Instant, Sleep};

use crate::watched_body::{BodyWatch, watch};

/// Ends a response that pauses for longer.
pub(super) fn bound(time: Duration, reply: &mut Message) {
    watch(&mut reply.body, |_| IdleTimeout { time, pause: Box::pin(tokio::time::sleep(time)) });
}

struct IdleTimeout {
    time: Duration,
    pause: Pin<Box<Sleep>>,
}

impl BodyWatch for IdleTimeout {
    fn poll_chunk(
        &mut self,
        body: &mut dyn BodyStream,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BodyError>>> {
        match body.poll_chunk(cx) {
            Poll::Ready(chunk) => {
                self.pause.as_mut().reset(Instant::now() + self.time);
                Poll::Ready(chunk)
            }
            Poll::Pending => self.pause.as_mut().poll(cx).map(|()| Some(Err(BodyError::Timeout))),
        }
    }
}
