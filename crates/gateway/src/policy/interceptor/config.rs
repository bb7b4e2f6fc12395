//! Configuration of interceptor services.

use std::time::Duration;

/// How interceptor services are treated when an API says nothing.
#[derive(Debug, Clone)]
pub struct InterceptorConfig {
    /// For a service's whole answer.
    pub timeout: Duration,
    /// Whether messages go on as they are when a service fails. Otherwise they are refused.
    pub passthrough_on_error: bool,
    /// The largest answer of a service.
    pub reply_bytes_max: usize,
}

impl Default for InterceptorConfig {
    fn default() -> InterceptorConfig {
        InterceptorConfig {
            // The timeout that the router of Choreo Connect gives a cluster.
            timeout: Duration::from_secs(20),
            passthrough_on_error: false,
            // A body of the largest size that is buffered by default, in base64, with room for headers.
            reply_bytes_max: 64 * 1024 * 1024,
        }
    }
}
