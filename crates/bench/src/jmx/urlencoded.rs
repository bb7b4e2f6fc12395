//! `application/x-www-form-urlencoded`, as Java's `URLEncoder` writes and `URLDecoder` reads it.

use percent_encoding::percent_decode_str;

/// Encodes a name or value.
pub fn encode(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Decodes a name or value; what is no escape stays as it is.
pub fn decode(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}
