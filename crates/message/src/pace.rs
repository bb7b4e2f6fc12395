//! Whether the reader of a body waits for its sender: time that passes then is the sender's.

use std::any::Any;
use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::{Body, BodyError, BodyStream, Form, Headers, SizeHint};

/// Shared by a body that is still arriving and the code that measures its reader.
#[derive(Debug, Default)]
pub struct Pace {
    waiting: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Pace {
    /// Whether the reader waits for bytes now. Wakes the task when it no longer does.
    pub fn is_waiting(&self, cx: &Context<'_>) -> bool {
        let waiting = self.waiting.get();
        if waiting {
            *self.waker.borrow_mut() = Some(cx.waker().clone());
        }
        waiting
    }

    fn set_waiting(&self, waiting: bool) {
        if self.waiting.replace(waiting)
            && !waiting
            && let Some(waker) = self.waker.take()
        {
            waker.wake();
        }
    }
}

impl Body {
    /// Follows whether the reader of this body waits for its sender; `None` when all of it is here.
    pub fn paced(&mut self) -> Option<Rc<Pace>> {
        if !self.is_stream() {
            return None;
        }
        let Form::Stream { head, rest } = self.take() else { return None };
        let pace = Rc::<Pace>::default();
        self.put(Form::Stream { head, rest: Box::new(Paced { rest, pace: pace.clone() }) });
        Some(pace)
    }
}

/// A body whose pace is followed.
struct Paced {
    rest: Box<dyn BodyStream>,
    pace: Rc<Pace>,
}

impl BodyStream for Paced {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        let polled = self.rest.poll_chunk(cx);
        self.pace.set_waiting(polled.is_pending());
        polled
    }

    fn peek(&self) -> Option<Ref<'_, [u8]>> {
        self.rest.peek()
    }

    fn poll_peekable(&mut self, cx: &mut Context<'_>, wanted_bytes: usize) -> Poll<Result<bool, BodyError>> {
        let polled = self.rest.poll_peekable(cx, wanted_bytes);
        self.pace.set_waiting(polled.is_pending());
        polled
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

impl Drop for Paced {
    fn drop(&mut self) {
        self.pace.set_waiting(false);
    }
}
