//! A response that is made while it is sent: work that writes into a buffer and pauses while the buffer is full.

use std::any::Any;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use penstock_engine::ports::LocalFuture;
use penstock_message::{BodyError, BodyStream, SizeHint};

use crate::fault::DataServiceFault;

/// The work pauses when so many bytes wait to be sent.
const CHUNK_BYTES: usize = 64 << 10;

/// The bytes that wait to be sent, shared by the work that writes them and the body that sends them.
#[derive(Clone, Default)]
pub struct Buffer(Rc<RefCell<Vec<u8>>>);

impl Buffer {
    /// Writes.
    pub fn write(&self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.0.borrow_mut());
    }

    /// Whether so much waits that the work should pause.
    pub fn is_full(&self) -> bool {
        self.0.borrow().len() >= CHUNK_BYTES
    }

    /// Waits until what was written is taken. Who takes it polls the work again.
    pub async fn taken(&self) {
        poll_fn(|_| if self.0.borrow().is_empty() { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    fn take(&self) -> Bytes {
        std::mem::take(&mut *self.0.borrow_mut()).into()
    }
}

/// Work that writes a response.
pub struct Generation {
    work: LocalFuture<'static, Result<(), DataServiceFault>>,
    buffer: Buffer,
    /// Called with a fault that came after the response had begun.
    on_late_fault: Box<dyn Fn(&DataServiceFault)>,
    is_done: bool,
}

/// What is known of a response when its status must be.
pub enum Beginning {
    /// All of it.
    Complete(Bytes),
    /// Its first bytes are in the buffer.
    Streaming(Box<Generation>),
    /// It failed.
    Failed(DataServiceFault),
}

impl Generation {
    /// Starts the work and waits until all of the response is known, or as much as the buffer holds.
    pub async fn begin(
        buffer: Buffer,
        mut work: LocalFuture<'static, Result<(), DataServiceFault>>,
        on_late_fault: Box<dyn Fn(&DataServiceFault)>,
    ) -> Beginning {
        let outcome = poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending if buffer.is_full() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await;
        match outcome {
            Some(Ok(())) => Beginning::Complete(buffer.take()),
            Some(Err(fault)) => Beginning::Failed(fault),
            None => Beginning::Streaming(Box::new(Generation { work, buffer, on_late_fault, is_done: false })),
        }
    }
}

impl BodyStream for Generation {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        loop {
            if self.buffer.is_full() || self.is_done {
                let chunk = self.buffer.take();
                return Poll::Ready((!chunk.is_empty()).then_some(Ok(chunk)));
            }
            match self.work.as_mut().poll(cx) {
                Poll::Ready(Ok(())) => self.is_done = true,
                Poll::Ready(Err(fault)) => {
                    self.is_done = true;
                    self.buffer.take();
                    (self.on_late_fault)(&fault);
                    return Poll::Ready(Some(Err(BodyError::Incomplete(fault.message))));
                }
                Poll::Pending if self.buffer.is_full() => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::Unknown
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
