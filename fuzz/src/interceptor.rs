//! Answers of interceptor services: what is taken may stand in a message.

use penstock_gateway::readers::interceptor_reply;
use penstock_message::Headers;

/// Pieces of answers.
pub const DICTIONARY: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"body\":",
    "\"directRespond\":true",
    "\"responseCode\":",
    "\"headersToAdd\":",
    "\"headersToReplace\":",
    "\"headersToRemove\":",
    "\"trailersToAdd\":",
    "\"trailersToReplace\":",
    "\"trailersToRemove\":",
    "\"pathToRewrite\":",
    "\"dynamicEndpoint\":",
    "\"endpointName\":",
    "\"interceptorContext\":",
    "\\r\\n",
    "\\u0000",
    "null",
    "x-wso2-a",
    "X-Envoy-b",
    ":path",
    "TkVX",
    "@@@nope",
    "====",
    "404",
    "99999",
    "-1",
    "1e3",
    "\u{fc}",
];

/// Reads an answer in both modes and looks at what would be sent.
pub fn reply(data: &[u8]) {
    for compat in [false, true] {
        let mut headers = Headers::new();
        for (name, value) in [("host", "h"), ("x-wso2-key", "kept"), ("foo", "bar")] {
            headers.append(name, value);
        }
        let Ok(message) = interceptor_reply(data, headers, compat) else { continue };
        assert!(message.status == 0 || (200..=599).contains(&message.status), "{}", message.status);
        let trailers = message.body.trailers();
        for (name, value) in message.headers.iter().chain(trailers.into_iter().flat_map(Headers::iter)) {
            assert!(!name.is_empty() && name.iter().all(|byte| byte.is_ascii_graphic()), "{name:?}");
            assert!(value.iter().all(|byte| *byte >= 0x20 && *byte != 0x7f || *byte == b'\t'), "{value:?}");
        }
        if message.headers.contains("host") {
            // It did not answer itself, so what is reserved is as it was.
            assert_eq!(message.headers.get("x-wso2-key"), Some("kept"));
            assert!(trailers.is_none_or(|trailers| !trailers.contains("x-wso2-a")));
        }
        if let Some(path) = &message.url_postfix {
            assert!(path.starts_with('/') && path.bytes().all(|byte| byte > 0x20 && byte != 0x7f), "{path:?}");
        }
    }
}
