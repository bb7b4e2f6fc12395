//! From the answer of a backend to the result of a tool.

use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::{Body, Form, Message, Shape};
use serde_json::{Map, Value, json};

use super::current;
use super::message::{self, Refusal};
use super::request::is_json;

/// Makes a result of the answer. The fields the answer has besides those about its body stay.
pub(super) struct MakeResult {
    /// Whether it is also given as data.
    pub structured: bool,
}

impl Mediator for MakeResult {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        if exchange.message.body.is_stream() {
            return Ok(Flow::Buffer);
        }
        let call = current::call(exchange)?;
        let bytes = match exchange.message.body.form() {
            Form::Empty => Default::default(),
            Form::Bytes(bytes) => bytes.clone(),
            // A policy read it, or made another of it.
            _ => {
                let program = exchange.program().clone();
                let output = exchange.message.output(&program.conversion, Shape::Reply)?;
                match output.form {
                    Form::Bytes(bytes) => bytes,
                    _ => Default::default(),
                }
            }
        };
        let answer = &exchange.message;
        let content_type = answer.headers.get("content-type").unwrap_or_default().to_owned();
        let encoded =
            answer.headers.get("content-encoding").is_some_and(|coding| !coding.eq_ignore_ascii_case("identity"));
        let mut made = match (encoded, std::str::from_utf8(&bytes)) {
            (false, Ok(text)) if is_text(&content_type) => {
                message::result(&call.id, &result(answer.status, &content_type, text, self.structured))
            }
            _ => {
                let data = format!("Unsupported content type in the response: {content_type}");
                Refusal::internal(data).of(&call.id).answer()
            }
        };
        let about_body = |name: &[u8]| {
            let starts = |prefix: &str| {
                name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
            };
            starts("content-")
                || ["etag", "last-modified", "accept-ranges", "transfer-encoding"]
                    .iter()
                    .any(|own| name.eq_ignore_ascii_case(own.as_bytes()))
        };
        let mut headers = std::mem::take(&mut exchange.message.headers);
        headers.retain(|name, _| !about_body(name));
        headers.set("content-type", "application/json");
        made.headers = headers;
        exchange.message = made;
        Ok(Flow::Next)
    }
}

fn is_text(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence.is_empty()
        || is_json(&essence)
        || essence.starts_with("text/")
        || essence.ends_with("/xml")
        || essence.ends_with("+xml")
        || matches!(essence.as_str(), "application/x-www-form-urlencoded" | "application/x-ndjson" | "application/yaml")
}

/// The result of an answer: its text, and whether it is one of failure.
pub(super) fn result(status: u16, content_type: &str, text: &str, structured: bool) -> String {
    let is_error = !(200..300).contains(&status);
    let mut result = Map::new();
    result.insert("isError".to_owned(), is_error.into());
    let shown = match text.is_empty() && is_error {
        true => format!("Error occurred during tool call. HTTP Status Code: {status}"),
        false => text.to_owned(),
    };
    result.insert("content".to_owned(), json!([{ "type": "text", "text": shown }]));
    if structured
        && !is_error
        && is_text(content_type)
        && let Ok(data @ Value::Object(_)) = serde_json::from_str(text)
    {
        result.insert("structuredContent".to_owned(), data);
    }
    Value::Object(result).to_string()
}

/// A result that says why a backend gave none.
pub(super) fn failure(id: &Value, why: &str) -> Message {
    let result = json!({ "isError": true, "content": [{ "type": "text", "text": why }] });
    let message = message::result(id, &result.to_string());
    Message { body: message.body, headers: message.headers, status: 200, ..Message::default() }
}

/// Answers with the message at hand, without a body.
pub(super) fn empty(status: u16) -> Message {
    Message { status, body: Body::empty(), ..Message::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_result() {
        for (status, content_type, text, structured, expected) in [
            (
                200,
                "application/json",
                "{\"a\":1}",
                false,
                r#"{"isError":false,"content":[{"type":"text","text":"{\"a\":1}"}]}"#,
            ),
            (
                201,
                "application/json",
                "{\"a\":1.10}",
                true,
                r#"{"isError":false,"content":[{"type":"text","text":"{\"a\":1.10}"}],"structuredContent":{"a":1.10}}"#,
            ),
            (200, "application/json", "[1]", true, r#"{"isError":false,"content":[{"type":"text","text":"[1]"}]}"#),
            (204, "", "", false, r#"{"isError":false,"content":[{"type":"text","text":""}]}"#),
            (404, "text/plain", "gone", true, r#"{"isError":true,"content":[{"type":"text","text":"gone"}]}"#),
            (
                503,
                "",
                "",
                false,
                r#"{"isError":true,"content":[{"type":"text","text":"Error occurred during tool call. HTTP Status Code: 503"}]}"#,
            ),
        ] {
            assert_eq!(result(status, content_type, text, structured), expected);
        }
    }

    #[test]
    fn only_text_is_returned() {
        for (content_type, expected) in [
            ("", true),
            ("application/json; charset=utf-8", true),
            ("application/problem+json", true),
            ("Text/Html", true),
            ("application/soap+xml", true),
            ("image/png", false),
            ("application/octet-stream", false),
        ] {
            assert_eq!(is_text(content_type), expected, "{content_type}");
        }
    }
}
