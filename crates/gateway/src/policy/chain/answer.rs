//! Answers that policies give themselves.

use bytes::Bytes;
use penstock_engine::{Exchange, Flow};
use penstock_message::{Body, Headers, Message};

use crate::error::grpc;

/// Ends the request with this answer.
pub(super) fn immediately(exchange: &mut Exchange, status: u16, headers: Headers, body: impl Into<Bytes>) -> Flow {
    let body = body.into();
    let body = if body.is_empty() { Body::default() } else { Body::bytes(body) };
    exchange.message = Message { headers, body, status, ..Message::default() };
    Flow::Respond
}

/// Ends the request with `{"error":…,"message":…}`, as most policies reject.
pub(super) fn refusal(exchange: &mut Exchange, status: u16, error: &str, message: &str) -> Flow {
    if grpc::is_grpc(&exchange.message.headers) && !exchange.is_response() {
        exchange.message = grpc::refusal(status, message);
        return Flow::Respond;
    }
    let body = serde_json::json!({"error": error, "message": message}).to_string();
    immediately(exchange, status, json(), body)
}

/// The fields of an answer in JSON.
pub(super) fn json() -> Headers {
    let mut headers = Headers::new();
    headers.append("content-type", "application/json");
    headers
}
