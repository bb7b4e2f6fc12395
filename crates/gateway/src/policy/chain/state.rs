//! What the policies of a row keep from the request to the answer.

use std::any::Any;

use bytes::Bytes;
use penstock_message::Headers;

/// What one request's policies keep.
#[derive(Default)]
pub(crate) struct ChainState {
    /// By the place of the policy in its row.
    kept: Vec<(usize, Box<dyn Any>)>,
    /// `interceptorContext` of the service that was called last.
    pub(super) interceptor_context: Option<Bytes>,
    /// The fields as the client sent them, when a policy of the row reads them.
    pub(super) sent: Option<Headers>,
}

impl ChainState {
    /// Keeps something for the same policy's part in the answer.
    pub(super) fn keep<T: 'static>(&mut self, index: usize, value: T) {
        self.kept.push((index, Box::new(value)));
    }

    /// What was kept.
    pub(super) fn take<T: 'static>(&mut self, index: usize) -> Option<T> {
        let at = self.kept.iter().position(|(known, value)| *known == index && value.is::<T>())?;
        let (_, value) = self.kept.swap_remove(at);
        value.downcast().ok().map(|value| *value)
    }
}
