//! What both sides of HTTP/2 share.

use bytes::BytesMut;
use penstock_message::{HeaderBlock, Headers};

use super::http1::is_ours;

/// Header fields in one block.
pub(super) fn headers_of(map: &http::HeaderMap) -> Headers {
    let mut block = BytesMut::new();
    let mut fields = Vec::with_capacity(map.len());
    let mut push = |bytes: &[u8]| {
        let start = block.len() as u32;
        block.extend_from_slice(bytes);
        start..block.len() as u32
    };
    for (name, value) in map {
        fields.push((push(name.as_str().as_bytes()), push(value.as_bytes())));
    }
    Headers::from_block(HeaderBlock { bytes: block.freeze(), fields })
}

/// The fields that may cross. What cannot be a field in HTTP/2 is left out, as in HTTP/1.1.
pub(super) fn fields_of(headers: &Headers) -> impl Iterator<Item = (http::HeaderName, http::HeaderValue)> {
    headers.iter().filter(|(name, _)| !is_ours(name)).filter_map(|(name, value)| {
        Some((http::HeaderName::from_bytes(name).ok()?, http::HeaderValue::from_bytes(value).ok()?))
    })
}
