//! Looking at a body where it lies, so that it can be routed by what it says and still be moved from buffer to socket.

use std::cell::Ref;
use std::task::{Context, Poll, ready};

use penstock_message::BodyError;

use super::incoming::Decoder;
use super::wire::{SharedWire, Wire};
use crate::http::per_core::READ_BUFFER_BYTES;

/// Maximum of a body in the read buffer while it is inspected. More would need a larger buffer.
const HELD_BYTES_MAX: usize = READ_BUFFER_BYTES / 2;

impl Wire {
    /// The bytes of the body that have arrived.
    pub(super) fn peek(wire: &SharedWire) -> Ref<'_, [u8]> {
        Ref::map(wire.borrow(), |wire| &wire.buffer[..wire.lying_here()])
    }

    /// How many bytes of the body lie at the start of the read buffer.
    fn lying_here(&self) -> usize {
        let left = match &self.decoder {
            Decoder::Done | Decoder::Failed => 0,
            Decoder::Length(left) => *left,
            Decoder::Chunked(chunks) => chunks.data_left(),
            Decoder::UntilClose => u64::MAX,
        };
        usize::try_from(left).map_or(self.buffer.len(), |left| left.min(self.buffer.len()))
    }

    /// See [`penstock_message::BodyStream::poll_peekable`].
    pub(super) fn poll_peekable(&mut self, cx: &mut Context<'_>, wanted: usize) -> Poll<Result<bool, BodyError>> {
        loop {
            // Passes over what frames the next piece.
            let here = self.decode()?.unwrap_or(0);
            let ends_here = match &self.decoder {
                Decoder::Done => true,
                Decoder::Length(left) => *left <= here as u64,
                _ => false,
            };
            if ends_here || (here >= wanted && here > 0) {
                return Poll::Ready(Ok(true));
            }
            let piece_ends_here =
                matches!(&self.decoder, Decoder::Chunked(chunks) if here > 0 && chunks.data_left() <= here as u64);
            if piece_ends_here || self.buffer.len() >= HELD_BYTES_MAX || !ready!(self.poll_read_on(cx))? {
                return Poll::Ready(Ok(false));
            }
        }
    }
}
