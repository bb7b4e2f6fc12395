//! What the REST APIs of the server have in common: bodies, queries, uploads, responses.

pub mod multipart;

use bytes::Bytes;
use penstock_message::{Body, Form, Headers, Message};
use percent_encoding::percent_decode_str;
use serde_json::Value;

/// The whole body; `None` when it is larger, or does not arrive.
pub async fn body(message: &mut Message, bytes_max: usize) -> Option<Bytes> {
    std::future::poll_fn(|cx| message.body.poll_pull(cx, usize::MAX, bytes_max)).await.ok()?;
    match message.body.take() {
        Form::Bytes(bytes) => Some(bytes),
        Form::Empty => Some(Bytes::new()),
        _ => None,
    }
}

/// A response with a JSON body.
pub fn reply(status: u16, body: &Value) -> Message {
    let mut headers = Headers::new();
    headers.set("Content-Type", "application/json");
    Message { headers, body: Body::bytes(body.to_string()), status, ..Message::default() }
}

/// The parameters of a query.
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what stands behind the `?`.
    pub fn read(query: &str) -> Query {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        Query(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(name, value)| (decoded(name), decoded(value)))
                .collect(),
        )
    }

    /// The number of a name.
    pub fn number(&self, name: &str) -> Option<usize> {
        self.get(name)?.parse().ok()
    }

    /// The value of a name, unless it is empty.
    pub fn get(&self, name: &str) -> Option<String> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
    }
}

/// A text with its percent escapes replaced, and `+` by a space.
pub fn decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}
