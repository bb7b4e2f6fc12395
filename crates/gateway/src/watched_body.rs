//! Bodies that something watches while they pass: it counts, limits, or holds a permit until the end.

use std::any::Any;
use std::task::{Context, Poll};

use bytes::Bytes;
use penstock_message::{Body, BodyError, BodyStream, Form, Headers, SizeHint};

type Chunk = Poll<Option<Result<Bytes, BodyError>>>;

/// What watches a body. Dropped with the body, whether that came to its end or not.
pub(crate) trait BodyWatch: 'static {
    /// A chunk passes. An error ends the body in its place.
    fn passes(&mut self, _chunk: &Bytes) -> Result<(), BodyError> {
        Ok(())
    }

    /// Polls the body, for a watch that acts while nothing comes.
    fn poll_chunk(&mut self, body: &mut dyn BodyStream, cx: &mut Context<'_>) -> Chunk {
        match body.poll_chunk(cx) {
            Poll::Ready(Some(Ok(chunk))) => Poll::Ready(Some(self.passes(&chunk).map(|()| chunk))),
            other => other,
        }
    }

    /// The size that is stated for a body of this size.
    fn size_hint(&self, size: SizeHint) -> SizeHint {
        size
    }

    /// The trailers that replace these.
    fn trailers(&mut self, trailers: Option<Headers>) -> Option<Headers> {
        trailers
    }
}

/// Watches what of a body is still to come. `make` gets the bytes that have arrived; it is not called for a body that
/// is complete.
pub(crate) fn watch<W: BodyWatch>(body: &mut Body, make: impl FnOnce(&Bytes) -> W) {
    if !body.is_stream() {
        return;
    }
    if let Form::Stream { head, rest } = body.take() {
        let watch = make(&head);
        body.put(Form::Stream { head, rest: Box::new(Watched { rest, watch }) });
    }
}

struct Watched<W> {
    rest: Box<dyn BodyStream>,
    watch: W,
}

impl<W: BodyWatch> BodyStream for Watched<W> {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Chunk {
        self.watch.poll_chunk(&mut *self.rest, cx)
    }

    fn size_hint(&self) -> SizeHint {
        self.watch.size_hint(self.rest.size_hint())
    }

    fn trailers(&mut self) -> Option<Headers> {
        let trailers = self.rest.trailers();
        self.watch.trailers(trailers)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
