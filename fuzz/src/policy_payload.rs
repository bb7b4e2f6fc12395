//! Payloads that operation policies look into, answers of functions, revoked tokens and the file they are kept in.

use penstock_gateway::readers::{policy_payload, revoked_file};
use penstock_gateway::security::RevokedToken;

/// Pieces of all.
pub const DICTIONARY: &[&str] = &[
    "{\"status_code\":",
    "\"headers\":{",
    "\"cookies\":[",
    "\"body\":\"",
    "\"is_base64_encoded\":true",
    "$serde_json::private::Number",
    "[[[[",
    "{\"a\":",
    "\\u0000",
    "\r\n",
    "{\"version\":1,\"revoked\":{",
    "eyJqdGkiOiJhIn0",
    ".",
    "}}",
];

/// Reads all of them.
pub fn payload(data: &[u8]) {
    let (some, answer) = policy_payload(data, 4);
    let (all, _) = policy_payload(data, usize::MAX);
    assert!(!some || all, "what keeps narrow limits keeps wide ones");
    if let Some(answer) = answer {
        assert!((200..=599).contains(&answer.status), "{}", answer.status);
        for (name, value) in answer.headers.iter() {
            assert!(name.iter().all(|byte| byte.is_ascii_graphic() && *byte != b':'), "{name:?}");
            assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)), "{value:?}");
        }
    }
    if let Some(written) = revoked_file(data) {
        assert_eq!(revoked_file(&written).as_deref(), Some(&*written), "{}", String::from_utf8_lossy(&written));
    }
    if let Some(token) = std::str::from_utf8(data).ok().and_then(RevokedToken::of) {
        assert!(!token.id.is_empty());
    }
}
