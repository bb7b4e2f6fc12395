//! Forms with files: a body is rejected, or its parts are pieces of it that contain no delimiter.

use bytes::Bytes;
use penstock_control::multipart;

/// Pieces of forms.
pub const DICTIONARY: &[&str] = &[
    "--b1",
    "--b1--",
    "\r\n--b1\r\n",
    "\r\n\r\n",
    "Content-Disposition: form-data; name=\"file\"; filename=\"a.zip\"",
    "Content-Type: application/zip",
    "name=",
    "\"",
    ";",
];

/// Parses a form with the boundary `b1`.
pub fn form(data: &[u8]) {
    let body = Bytes::copy_from_slice(data);
    let Ok(parts) = multipart::parse("multipart/form-data; boundary=b1", &body) else { return };
    let total: usize = parts.iter().map(|part| part.content.len()).sum();
    assert!(total <= body.len(), "parts are larger than the body");
    for part in parts {
        let found = part.content.windows(6).any(|window| window == b"\r\n--b1");
        assert!(!found, "the content of a part has a delimiter");
    }
}
