//! One request to a resource, and the forms of responses.

use bytes::Bytes;
use penstock_message::{Body, Headers, Message};
use serde_json::{Map, Value, json};

use super::Api;
use crate::rest::{Query, reply};

/// Items of one response. A client asks for the next ones with `offset`.
const ITEMS_MAX: usize = 10_000;

/// A request that may be made.
pub(super) struct Call<'a> {
    pub(super) api: &'a Api,
    /// Who makes it.
    pub(super) user: &'a str,
    pub(super) is_admin: bool,
    pub(super) query: &'a Query,
    /// The part of the path that a resource leaves open (`/users/{userId}`).
    pub(super) segment: &'a str,
    pub(super) headers: &'a Headers,
    pub(super) body: &'a Bytes,
    /// `https://host:port`, as the client wrote it.
    pub(super) authority: &'a str,
}

/// The response of a request that is refused.
pub(super) type Refusal = Box<Message>;

/// The response, or the refusal.
pub(super) type Outcome = Result<Message, Refusal>;

impl Call<'_> {
    /// The members of the JSON body.
    pub(super) fn payload(&self) -> Result<Map<String, Value>, Refusal> {
        if self.body.iter().all(u8::is_ascii_whitespace) {
            return Err(refusal(400, "JSON payload is missing"));
        }
        match serde_json::from_slice(self.body) {
            Ok(Value::Object(members)) => Ok(members),
            _ => Err(refusal(400, "Error when parsing JSON payload")),
        }
    }

    /// The text of a query parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        self.query.get(name)
    }

    /// Whether a name fits `searchKey`.
    pub(super) fn finds(&self, name: &str) -> bool {
        let wanted = self.parameter("searchKey").unwrap_or_default().trim().to_lowercase();
        name.to_lowercase().contains(&wanted)
    }
}

/// A text member of a payload; a number or `true` is taken as its text, as Micro Integrator does.
pub(super) fn text(payload: &Map<String, Value>, name: &str) -> Option<String> {
    match payload.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// A response of 200.
pub(super) fn ok(body: &Value) -> Outcome {
    Ok(reply(200, body))
}

/// `{"Message": "…"}`
pub(super) fn done(text: impl Into<String>) -> Outcome {
    ok(&json!({ "Message": text.into() }))
}

/// `{"Error": "…"}`
pub(super) fn refusal(status: u16, text: impl Into<String>) -> Refusal {
    Box::new(reply(status, &json!({ "Error": text.into() })))
}

/// A refusal as an outcome.
pub(super) fn refuse(status: u16, text: impl Into<String>) -> Outcome {
    Err(refusal(status, text))
}

/// What Micro Integrator answers for a name that it does not know: 404 without a body.
pub(super) fn unknown() -> Outcome {
    Err(Box::new(Message { status: 404, ..Message::default() }))
}

/// `{"count": n, "list": […]}`: all items, or those from `offset` on, at most `limit`.
pub(super) fn list(call: &Call<'_>, items: impl IntoIterator<Item = Value>) -> Outcome {
    let items: Vec<Value> = items.into_iter().collect();
    let count = items.len();
    let offset = call.query.number("offset").unwrap_or_default();
    let limit = call.query.number("limit").unwrap_or(ITEMS_MAX).min(ITEMS_MAX);
    let items: Vec<Value> = items.into_iter().skip(offset).take(limit).collect();
    ok(&json!({ "count": count, "list": items }))
}

/// A file.
pub(super) fn bytes(content_type: &str, body: Bytes) -> Outcome {
    let mut headers = Headers::new();
    headers.set("Content-Type", content_type);
    Ok(Message { headers, body: Body::bytes(body), status: 200, ..Message::default() })
}
