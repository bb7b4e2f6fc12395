//! Configuration of compression.

use std::sync::Arc;

/// How responses are compressed.
#[derive(Debug, Clone)]
pub struct CompressionConfig {
    /// Whether they are.
    pub enabled: bool,
    /// Shorter responses are not compressed: they would grow.
    pub bytes_min: u64,
    /// The media types that are compressed.
    pub types: Vec<Arc<str>>,
}

impl Default for CompressionConfig {
    fn default() -> CompressionConfig {
        let types = [
            "application/javascript",
            "application/json",
            "application/xhtml+xml",
            "application/xml",
            "application/soap+xml",
            "image/svg+xml",
            "text/css",
            "text/html",
            "text/plain",
            "text/xml",
        ];
        CompressionConfig { enabled: true, bytes_min: 30, types: types.map(Into::into).to_vec() }
    }
}
