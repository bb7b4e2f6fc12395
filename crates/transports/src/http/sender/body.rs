//! The body of a backend's reply, as the flow gets it.

use std::any::Any;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use penstock_message::{BodyError, BodyStream, Headers, SizeHint};

use super::exchange::{Exchange, Upload};
use crate::http::http1::SharedWire;

/// The body of a reply. The rest of the request's body is sent while it is read: a backend may answer while it
/// still listens.
pub(crate) struct ReplyBody {
    /// Absent once the body has ended.
    pub(super) exchange: Option<Exchange>,
}

impl ReplyBody {
    /// The wire while the body lasts.
    pub(crate) fn wire(&self) -> Option<&SharedWire> {
        self.exchange.as_ref().map(|exchange| &exchange.wire)
    }

    fn poll_upload(&mut self, cx: &mut Context<'_>) {
        if let Some(exchange) = &mut self.exchange
            && !matches!(exchange.upload, Upload::Done)
            && let Poll::Ready(Err(error)) = exchange.poll_upload(cx)
        {
            // The client stopped sending; whether its request was complete enough is for the backend to say.
            exchange.upload = Upload::Broken { why: error.to_string(), is_late: false };
        }
    }

    /// See [`crate::http::http1::Wire::poll_data`]; gives the connection back at the end.
    pub(crate) fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, BodyError>> {
        self.poll_upload(cx);
        let Some(exchange) = &self.exchange else { return Poll::Ready(Ok(0)) };
        ready!(exchange.wire.borrow_mut().poll_data(cx)).into()
    }

    /// Lets go of a connection whose body has been read to its end.
    pub(crate) fn release_if_done(&mut self) {
        if self.exchange.as_ref().is_some_and(|exchange| exchange.wire.borrow().decoder.is_done())
            && let Some(exchange) = self.exchange.take()
        {
            exchange.release();
        }
    }
}

impl BodyStream for ReplyBody {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        self.poll_upload(cx);
        let Some(exchange) = &self.exchange else { return Poll::Ready(None) };
        let chunk = ready!(exchange.wire.borrow_mut().poll_chunk(cx));
        if exchange.wire.borrow().trailers.is_none() {
            self.release_if_done();
        }
        Poll::Ready(chunk)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.exchange {
            Some(exchange) => exchange.wire.borrow().decoder.size_hint(),
            None => SizeHint::Exact(0),
        }
    }

    fn trailers(&mut self) -> Option<Headers> {
        let trailers = self.exchange.as_ref().and_then(|exchange| exchange.wire.borrow_mut().trailers.take());
        self.release_if_done();
        trailers
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
