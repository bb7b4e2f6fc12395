//! The time between two pieces of an answer, where an operation limits it (`resilience.idleTimeout`).

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use penstock_message::{Body, BodyError, BodyStream, Form, Headers, Message, SizeHint};
use tokio::time::{Instant, Sleep};

/// Ends an answer that pauses for longer.
pub(super) fn bound(time: Duration, reply: &mut Message) {
    if reply.body.is_stream()
        && let Form::Stream { head, rest } = reply.body.take()
    {
        let pause = Box::pin(tokio::time::sleep(time));
        reply.body = Body::from_form(Form::Stream { head, rest: Box::new(Bounded { rest, time, pause }) });
    }
}

struct Bounded {
    rest: Box<dyn BodyStream>,
    time: Duration,
    pause: Pin<Box<Sleep>>,
}

impl BodyStream for Bounded {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        match self.rest.poll_chunk(cx) {
            Poll::Ready(piece) => {
                self.pause.as_mut().reset(Instant::now() + self.time);
                Poll::Ready(piece)
            }
            Poll::Pending => self.pause.as_mut().poll(cx).map(|()| Some(Err(BodyError::Timeout))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.rest.size_hint()
    }

    fn trailers(&mut self) -> Option<Headers> {
        self.rest.trailers()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
