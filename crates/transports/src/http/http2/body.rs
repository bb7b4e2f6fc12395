//! Bodies that arrive over HTTP/2, in the terms of a message: those of requests and those of answers.

use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use penstock_message::{BodyError, BodyStream, Headers, SizeHint};

use super::{has_outer_blank, headers_of};
use crate::http::per_core::{PerCore, Timer};

/// The status with which to refuse a request, once its body failed, and why it did.
pub(in crate::http) type Refusal = Rc<Cell<Option<(u16, BodyError)>>>;

/// The body of a stream.
pub(in crate::http) struct StreamBody {
    stream: RecvStream,
    /// What Content-Length says is still to come.
    left: Option<u64>,
    read: u64,
    limit: u64,
    trailers: Option<Headers>,
    core: Rc<PerCore>,
    timer: Rc<Timer>,
    timeout: Duration,
    refusal: Option<Refusal>,
    /// Whether trailers may be read, for what only the frames show.
    trailers_allowed: Option<Box<dyn Fn() -> bool>>,
    /// What lasts as long as it.
    _held: Option<Box<dyn Any>>,
}

impl StreamBody {
    /// A body of any size, and the time from one piece to the next.
    pub(in crate::http) fn new(
        stream: RecvStream,
        length: Option<u64>,
        core: &Rc<PerCore>,
        timeout: Duration,
    ) -> StreamBody {
        StreamBody {
            stream,
            left: length,
            read: 0,
            limit: u64::MAX,
            trailers: None,
            core: core.clone(),
            timer: core.timer(),
            timeout,
            refusal: None,
            trailers_allowed: None,
            _held: None,
        }
    }

    /// The same of a request: with a maximum of bytes, and the place for the reason of a failure.
    pub(in crate::http) fn of_request(self, limit: u64, refusal: &Refusal) -> StreamBody {
        StreamBody { limit, refusal: Some(refusal.clone()), ..self }
    }

    /// The same; trailers are malformed unless `allowed` returns true once they have arrived.
    pub(in crate::http) fn with_trailers_if(self, allowed: impl Fn() -> bool + 'static) -> StreamBody {
        StreamBody { trailers_allowed: Some(Box::new(allowed)), ..self }
    }

    /// The same, keeping something until it is over.
    pub(in crate::http) fn holding(self, held: impl Any) -> StreamBody {
        StreamBody { _held: Some(Box::new(held)), ..self }
    }

    fn fail(&self, status: u16, error: BodyError) -> Poll<Option<Result<Bytes, BodyError>>> {
        if let Some(refusal) = &self.refusal {
            refusal.set(Some((status, error.clone())));
        }
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
                if self.left.is_some_and(|left| left > 0) {
                    return self.fail(400, BodyError::Incomplete("its announced length was not reached".into()));
                }
                match ready!(self.stream.poll_trailers(cx)) {
                    Ok(Some(trailers)) => {
                        let allowed = self.trailers_allowed.as_ref().is_none_or(|allowed| allowed());
                        if !allowed || trailers.values().any(has_outer_blank) {
                            return self.fail(400, BodyError::Incomplete("its trailers are malformed".into()));
                        }
                        self.trailers = Some(headers_of(&trailers));
                    }
                    Ok(None) => {}
                    Err(error) => return self.fail(400, BodyError::Incomplete(error.to_string())),
                }
                if self.trailers.is_none() {
                    // A length would leave no room for what follows.
                    self.left = Some(0);
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
