//! Frames of HTTP/2 as the listener watches them: the same trailers are found malformed however the bytes arrive.

use penstock_transports::http::malformed_trailers;

/// Frame heads, and fields of header blocks.
pub const DICTIONARY: &[&str] = &[
    "\0\0\u{1}\u{1}\u{5}\0\0\0\u{1}",
    "\0\0\u{4}\u{9}\u{4}\0\0\0\u{1}",
    "\0\0\u{5}\0\u{8}\0\0\0\u{1}",
    "\u{4}\u{1}/",
    "@\u{1}x\u{1}y",
    "\0\u{2}:a\0",
    "?\u{e1}\u{1f}",
];

/// Checks one input, which follows the preface.
pub fn frames(data: &[u8]) {
    let bytes = [&[0; 24][..], data].concat();
    let whole = malformed_trailers(&bytes, bytes.len());
    for piece in [1, 2, 9, 100] {
        assert_eq!(malformed_trailers(&bytes, piece), whole, "in pieces of {piece}");
    }
}
