//! A file of a server that is read while its message travels.

use std::any::Any;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use penstock_message::{BodyError, BodyStream, SizeHint};
use tokio::io::{AsyncRead, ReadBuf};

use super::system::CHUNK_BYTES;

/// The rest of a file.
pub(super) struct Download<R, C> {
    pub(super) reader: R,
    /// Bytes that were not read yet.
    pub(super) left: u64,
    /// Lives as long as the reader.
    pub(super) _connection: C,
}

impl<R: AsyncRead + Unpin + 'static, C: Unpin + 'static> BodyStream for Download<R, C> {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let mut bytes = vec![0; self.left.min(CHUNK_BYTES as u64) as usize];
        let mut buffer = ReadBuf::new(&mut bytes);
        let read = ready!(Pin::new(&mut self.reader).poll_read(cx, &mut buffer));
        let length = buffer.filled().len();
        let why = match read {
            Ok(()) if length > 0 => {
                self.left -= length as u64;
                bytes.truncate(length);
                return Poll::Ready(Some(Ok(bytes.into())));
            }
            Ok(()) => "the transfer ended early".to_owned(),
            Err(error) => error.to_string(),
        };
        self.left = 0;
        Poll::Ready(Some(Err(BodyError::Incomplete(format!("the file cannot be read: {why}")))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::Exact(self.left)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
