//! What the interceptor services of both flows share.

use bytes::Bytes;

/// What an exchange remembers between the two flows.
#[derive(Debug, Default)]
pub(crate) struct InterceptorCall {
    /// Members of handle-response that say what the request was.
    pub(super) request_members: Bytes,
    /// `interceptorContext` of the first service, for the second.
    pub(super) context: Option<Bytes>,
    /// Whether the second service is left out, as Choreo Connect does after a 204 of the first.
    pub(super) skips_response: bool,
}
