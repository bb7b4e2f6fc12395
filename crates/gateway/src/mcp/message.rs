//! Messages of JSON-RPC 2.0 as MCP uses them: read from foreign bytes, and answered.

use std::borrow::Cow;

use bytes::Bytes;
use penstock_message::{Body, Headers, Message};
use serde_json::{Map, Value, json};

/// Values of one message. A value takes many times its text, and messages are read before it is known who sent them.
const VALUES_MAX: usize = 100_000;

/// Digits of a number that names a request.
const ID_DIGITS_MAX: usize = 32;

/// What a client sent.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming {
    /// Something that is answered.
    Request { id: Value, method: String, params: Map<String, Value> },
    /// Something that is only taken note of.
    Notification { method: String, params: Map<String, Value> },
    /// The answer to a question of the server.
    Response(Value),
}

/// Why something is not done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    pub status: u16,
    pub id: Box<Value>,
    pub code: i32,
    pub message: Cow<'static, str>,
    pub data: Box<Value>,
}

impl Refusal {
    /// What was sent is no message of the protocol.
    fn invalid(data: &'static str) -> Refusal {
        Refusal { status: 400, code: -32600, message: "Invalid Request".into(), ..Refusal::params(data) }
    }

    /// It is one, and cannot be done as it stands.
    pub(super) fn params(data: impl Into<Value>) -> Refusal {
        let (message, data) = ("Invalid params".into(), Box::new(data.into()));
        Refusal { status: 200, id: Box::default(), code: -32602, message, data }
    }

    /// The protocol has no such method, or this server does not.
    pub(super) fn method(name: &str) -> Refusal {
        let data = format!("Method {name} not found");
        Refusal { code: -32601, message: "Method not found".into(), ..Refusal::params(data) }
    }

    /// It could be done and failed.
    pub(super) fn internal(data: impl Into<Value>) -> Refusal {
        Refusal { code: -32603, message: "Internal error".into(), ..Refusal::params(data) }
    }

    /// With another status.
    pub(super) fn with_status(self, status: u16) -> Refusal {
        Refusal { status, ..self }
    }

    /// For a request.
    pub(super) fn of(self, id: &Value) -> Refusal {
        Refusal { id: Box::new(id.clone()), ..self }
    }

    /// The answer.
    pub(super) fn answer(&self) -> Message {
        let error = json!({ "code": self.code, "message": self.message, "data": self.data });
        json_message(self.status, json!({ "jsonrpc": "2.0", "id": self.id, "error": error }).to_string())
    }
}

/// The answer to a request. `result` is JSON.
pub(super) fn result(id: &Value, result: &str) -> Message {
    json_message(200, format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}"))
}

fn json_message(status: u16, text: String) -> Message {
    let mut headers = Headers::new();
    headers.set("content-type", "application/json");
    Message { headers, status, body: Body::bytes(text), ..Message::default() }
}

/// Reads a message.
pub(crate) fn read(bytes: &[u8]) -> Result<Incoming, Refusal> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Refusal::invalid("No JSON-RPC payload found"));
    }
    if values(bytes) > VALUES_MAX {
        return Err(Refusal::invalid("More values than a message may have"));
    }
    let mut message = match serde_json::from_slice(bytes) {
        Ok(Value::Object(message)) => message,
        Ok(Value::Array(_)) => return Err(Refusal::invalid("Batches are not part of the protocol")),
        Ok(_) => return Err(Refusal::invalid("The payload is not an object")),
        Err(_) => return Err(Refusal { code: -32700, message: "Parse error".into(), ..Refusal::invalid("Not JSON") }),
    };
    match message.get("jsonrpc") {
        Some(Value::String(version)) if version == "2.0" => {}
        None | Some(Value::Null) => return Err(Refusal::invalid("Missing jsonrpc field")),
        Some(_) => return Err(Refusal::invalid("Invalid JSON-RPC version")),
    }
    let method = match message.remove("method") {
        Some(Value::String(method)) if !method.is_empty() => method,
        None if message.contains_key("result") || message.contains_key("error") => {
            return Ok(Incoming::Response(Value::Object(message)));
        }
        Some(Value::String(_) | Value::Null) | None => return Err(Refusal::invalid("Missing method field")),
        Some(_) => return Err(Refusal::invalid("Invalid method field")),
    };
    let is_notification = method.starts_with("notifications/");
    let id = message.remove("id");
    let names = |id: &Value| match id {
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => {
            let text = number.to_string();
            text.len() <= ID_DIGITS_MAX && text.bytes().enumerate().all(|(at, byte)| digit(at, byte))
        }
        _ => false,
    };
    match &id {
        _ if is_notification => {}
        None | Some(Value::Null) => return Err(Refusal::invalid("Missing id field")),
        Some(id) if names(id) => {}
        Some(_) => return Err(Refusal::invalid("Invalid id field")),
    }
    let id = id.unwrap_or_default();
    let params = match message.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(Refusal::params("params is not an object").with_status(400).of(&id)),
    };
    Ok(match is_notification {
        true => Incoming::Notification { method, params },
        false => Incoming::Request { id, method, params },
    })
}

fn digit(at: usize, byte: u8) -> bool {
    byte.is_ascii_digit() || (at == 0 && byte == b'-')
}

/// The most values a text of JSON can hold: every one but the first follows a comma, a colon or an opening bracket.
fn values(bytes: &[u8]) -> usize {
    let (mut count, mut inside, mut escaped) = (1, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b',' | b'[' | b':' if !inside => count += 1,
            _ => {}
        }
    }
    count
}

impl Incoming {
    /// The message for a server behind this one: what it says, and nothing that two readers may read differently.
    pub(super) fn forwarded(self) -> Bytes {
        let mut out = Map::new();
        out.insert("jsonrpc".to_owned(), "2.0".into());
        let (method, params) = match self {
            Incoming::Response(Value::Object(message)) => {
                let known = |name: &String| matches!(name.as_str(), "id" | "result" | "error");
                out.extend(message.into_iter().filter(|(name, _)| known(name)));
                return Value::Object(out).to_string().into();
            }
            Incoming::Response(_) => return Bytes::new(),
            Incoming::Request { id, method, params } => {
                out.insert("id".to_owned(), id);
                (method, params)
            }
            Incoming::Notification { method, params } => (method, params),
        };
        out.insert("method".to_owned(), method.into());
        if !params.is_empty() {
            out.insert("params".to_owned(), params.into());
        }
        Value::Object(out).to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_of_the_protocol_are_read() {
        let deep =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{{\"a\":{}", "[".repeat(5000));
        let wide = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{{\"a\":[{}0]}}}}",
            "0,".repeat(VALUES_MAX)
        );
        for (text, code, data) in [
            ("", -32600, "No JSON-RPC payload found"),
            (" \n", -32600, "No JSON-RPC payload found"),
            ("{", -32700, "Not JSON"),
            ("{\"a\":1}x", -32700, "Not JSON"),
            (&deep, -32700, "Not JSON"),
            (&wide, -32600, "More values than a message may have"),
            ("[]", -32600, "Batches are not part of the protocol"),
            ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600, "Batches are not part of the protocol"),
            ("1", -32600, "The payload is not an object"),
            ("{}", -32600, "Missing jsonrpc field"),
            ("{\"jsonrpc\":2.0}", -32600, "Invalid JSON-RPC version"),
            ("{\"jsonrpc\":\"1.0\"}", -32600, "Invalid JSON-RPC version"),
            ("{\"jsonrpc\":\"2.0\"}", -32600, "Missing method field"),
            ("{\"jsonrpc\":\"2.0\",\"method\":\"\"}", -32600, "Missing method field"),
            ("{\"jsonrpc\":\"2.0\",\"method\":7,\"id\":1}", -32600, "Invalid method field"),
            ("{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}", -32600, "Missing id field"),
            ("{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":null}", -32600, "Missing id field"),
            ("{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":true}", -32600, "Invalid id field"),
            ("{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":[1]}", -32600, "Invalid id field"),
            ("{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":1.5}", -32600, "Invalid id field"),
            ("{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":1e9}", -32600, "Invalid id field"),
            ("{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":1,\"params\":[]}", -32602, "params is not an object"),
        ] {
            let refusal = read(text.as_bytes()).expect_err(text);
            let shown = text.get(..80).unwrap_or(text);
            assert_eq!((refusal.code, refusal.data.as_str(), refusal.status), (code, Some(data), 400), "{shown}");
        }
    }

    #[test]
    fn a_name_of_a_request_comes_back_as_it_was_sent() {
        for id in ["1", "\"a\"", "-7", "123456789012345678901234567890", "\"\\u00e4\""] {
            let text = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":{id}}}");
            let Ok(Incoming::Request { id: read, .. }) = read(text.as_bytes()) else { panic!("{text}") };
            let expected: Value = serde_json::from_str(id).expect(id);
            assert_eq!(read, expected);
        }
    }

    #[test]
    fn what_goes_on_says_everything_once() {
        let text = r#"{"jsonrpc":"2.0","Method":"x","method":"tools/call","id":1,"extra":2,"params":{"name":"b","n\u0061me":"a"}}"#;
        let message = read(text.as_bytes()).expect("a request");
        let expected = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#;
        assert_eq!(message.forwarded(), expected);
        let response = read(br#"{"jsonrpc":"2.0","id":1,"result":{},"x":1}"#).expect("an answer");
        assert_eq!(response.forwarded(), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    }
}
