//! Bodies of HTTP/2 requests in the terms of a message.

use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use penstock_message::{BodyError, BodyStream, Headers, SizeHint};

use crate::http::http2::headers_of;
use crate::http::listener::Shared;
use crate::http::per_core::{PerCore, Timer};

/// The body of a stream.
pub(super) struct StreamBody {
    stream: RecvStream,
    /// What Content-Length says is still to come.
    left: Option<u64>,
    read: u64,
    limit: u64,
    trailers: Option<Headers>,
    core: Rc<PerCore>,
    timer: Rc<Timer>,
    timeout: Duration,
    /// The status with which to refuse the request, once its body failed.
    failure: Rc<Cell<Option<u16>>>,
}

impl StreamBody {
    pub(super) fn new(
        stream: RecvStream,
        length: Option<u64>,
        shared: &Shared,
        failure: &Rc<Cell<Option<u16>>>,
    ) -> StreamBody {
        StreamBody {
            stream,
            left: length,
            read: 0,
            limit: shared.limits.body_bytes_max,
            trailers: None,
            core: shared.core.clone(),
            timer: shared.core.timer(),
            timeout: shared.config.timeouts.body,
            failure: failure.clone(),
        }
    }

    fn fail(&self, status: u16, error: BodyError) -> Poll<Option<Result<Bytes, BodyError>>> {
        self.failure.set(Some(status));
        Poll::Ready(Some(Err(error)))
    }
}

impl BodyStream for StreamBody {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        match self.stream.poll_data(cx) {
            Poll::Pending => {
                if !self.timer.is_armed() {
                    self.timer.arm(&self.core, self.timeout);
                }
                if self.timer.poll_fired(cx) {
                    return self.fail(408, BodyError::Timeout);
                }
                Poll::Pending
            }
            Poll::Ready(Some(Ok(chunk))) => {
                self.timer.disarm();
                let size = chunk.len() as u64;
                self.read += size;
                self.left = self.left.map(|left| left.saturating_sub(size));
                if self.read > self.limit {
                    let limit_bytes = usize::try_from(self.limit).unwrap_or(usize::MAX);
                    return self.fail(413, BodyError::TooLarge { limit_bytes });
                }
                let _ = self.stream.flow_control().release_capacity(chunk.len());
                Poll::Ready(Some(Ok(chunk)))
            }
            Poll::Ready(Some(Err(error))) => self.fail(400, BodyError::Incomplete(error.to_string())),
            Poll::Ready(None) => {
                self.left = Some(0);
                match ready!(self.stream.poll_trailers(cx)) {
                    Ok(trailers) => self.trailers = trailers.as_ref().map(headers_of),
                    Err(error) => return self.fail(400, BodyError::Incomplete(error.to_string())),
                }
                Poll::Ready(None)
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or(SizeHint::Unknown, SizeHint::Exact)
    }

    fn trailers(&mut self) -> Option<Headers> {
        self.trailers.take()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
