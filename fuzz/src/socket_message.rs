//! Messages of WebSocket where something decides by what they say: texts do not depend on how they arrive, and what is
//! read of a message of GraphQL is there in a way every reader of JSON finds.

use penstock_gateway::readers::graphql_message;
use penstock_transports::http::websocket::{FrameError, MESSAGE_BYTES_MAX, MessageReader, MessageStep};

/// What frames and messages begin with.
pub const DICTIONARY: &[&str] = &[
    "\u{1}",
    "\u{9}",
    "\0",
    "\u{7e}\0\u{7e}",
    "\u{7f}\0\0\0\0\0\u{1}\0\0",
    "{\"type\":\"subscribe\",\"id\":\"1\",\"payload\":{\"query\":\"{a}\"}}",
    "\"type\":\"start\",",
    "\"Type\":\"ping\",",
    "\"payload\":null,",
    "\"query\":\"\",",
    "\\u0074ype",
];

/// Takes the bytes for what one side sends, and for a message. The first byte says who sends.
pub fn message(data: &[u8]) {
    let Some((&how, bytes)) = data.split_first() else { return };
    let whole = texts(how, bytes, bytes.len().max(1));
    for size in [1, 2, 3, 7] {
        assert_eq!(texts(how, bytes, size), whole, "in pieces of {size}");
    }
    assert!(whole.0.iter().all(|text| text.len() <= MESSAGE_BYTES_MAX));
    whole.0.iter().for_each(|text| graphql(text));
    if let Ok(text) = std::str::from_utf8(bytes) {
        graphql(text);
    }
}

fn graphql(text: &str) {
    let Some((id, query)) = graphql_message(text) else { return };
    let Ok(json) = serde_json::from_str::<serde_json::Value>(text) else { return };
    assert!(json["type"].is_string(), "{text}");
    assert_eq!(json["id"].as_str(), id.as_deref(), "{text}");
    if let Some(query) = query {
        assert_eq!(json["payload"]["query"].as_str().unwrap_or_default(), query, "{text}");
    }
}

/// The texts when the bytes come in pieces, and the error at the end.
fn texts(how: u8, bytes: &[u8], size: usize) -> (Vec<String>, Option<FrameError>) {
    let mut reader = MessageReader::new(how & 1 != 0);
    let (mut waiting, mut out) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(size) {
        waiting.extend_from_slice(piece);
        loop {
            let taken = match reader.step(&waiting) {
                Ok(MessageStep::More) => break,
                Ok(MessageStep::Control(count) | MessageStep::Nothing(count)) => count,
                Ok(MessageStep::Text(count, text)) => {
                    out.push(text);
                    count
                }
                Err(error) => return (out, Some(error)),
            };
            assert!(taken > 0);
            waiting.drain(..taken);
        }
    }
    (out, None)
}
