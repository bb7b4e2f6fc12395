//! Bodies that are still arriving.

use std::any::Any;
use std::cell::Ref;
use std::ops::Deref;
use std::task::{Context, Poll};

use bytes::Bytes;

use crate::{BodyError, Headers};

/// How long a stream will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeHint {
    /// Exactly so many bytes (Content-Length).
    Exact(u64),
    /// Unknown before the end (chunked, until close).
    Unknown,
}

/// Bytes that are still arriving. Lives on the core whose socket it reads.
pub trait BodyStream {
    /// The next bytes; `None` at the end. An error ends the stream.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>>;

    /// The bytes that have arrived and were not given yet, where they lie. They stay: the next chunk begins with them.
    /// `None` when the stream cannot show them.
    fn peek(&self) -> Option<Ref<'_, [u8]>> {
        None
    }

    /// Waits until [`BodyStream::peek`] shows so many bytes, or all that will come. `false` when there is no room for
    /// them where they arrive: they must be taken to see more.
    fn poll_peekable(&mut self, _cx: &mut Context<'_>, _wanted_bytes: usize) -> Poll<Result<bool, BodyError>> {
        Poll::Ready(Ok(false))
    }

    /// How many bytes are still to come.
    fn size_hint(&self) -> SizeHint;

    /// Trailer fields, known once the stream has ended.
    fn trailers(&mut self) -> Option<Headers> {
        None
    }

    /// For transports that ask whether a stream is one of their own before they take it apart.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// For transports that recognise their own streams and move bytes without this interface.
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// The body that an answer to HEAD does not have.
pub struct AbsentBody {
    /// The size that its Content-Length states, in bytes. An answer that states none must not seem to say that there is
    /// nothing (RFC 9110 §8.6).
    pub length: Option<u64>,
}

impl BodyStream for AbsentBody {
    fn poll_chunk(&mut self, _cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        self.length = Some(0);
        Poll::Ready(None)
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or(SizeHint::Unknown, SizeHint::Exact)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A stream of which nothing is to come but the fields at its end.
pub(crate) struct Ended {
    trailers: Option<Headers>,
}

impl Ended {
    pub(crate) fn with(trailers: Headers) -> Ended {
        Ended { trailers: Some(trailers) }
    }
}

impl BodyStream for Ended {
    fn poll_chunk(&mut self, _cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        Poll::Ready(None)
    }

    /// A length would leave no room for what follows (RFC 9112 §7.1.2).
    fn size_hint(&self) -> SizeHint {
        SizeHint::Unknown
    }

    fn trailers(&mut self) -> Option<Headers> {
        self.trailers.take()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// The bytes of a body that are here without waiting.
#[derive(Debug)]
pub enum Available<'b> {
    /// They belong to the body.
    Own(&'b [u8]),
    /// They lie where the stream reads them.
    Lent(Ref<'b, [u8]>),
}

impl Deref for Available<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Available::Own(bytes) => bytes,
            Available::Lent(bytes) => bytes,
        }
    }
}
