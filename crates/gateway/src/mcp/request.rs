//! From the arguments of a tool to a request over HTTP.

use std::borrow::Cow;

use penstock_catalog::path::has_dot_segment;
use penstock_catalog::{ParameterPlace, ToolBody, ToolParameter, ToolRequest};
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_json::schema::JsonSchema;
use penstock_message::{Body, Method};
use serde_json::{Map, Value};

use super::current;
use super::message::Refusal;
use crate::text::percent_encode;

/// Fields of the client's request that are about its talk with this server, not with a backend.
const OWN_FIELDS: [&str; 6] =
    ["accept-encoding", "content-type", "content-encoding", "mcp-session-id", "mcp-protocol-version", "last-event-id"];

/// Makes the request of a tool.
pub(super) struct MakeRequest {
    request: ToolRequest,
    method: Method,
    path: Vec<PathPart>,
    checked: Option<JsonSchema>,
}

/// A part of a path template.
#[derive(Debug, PartialEq)]
enum PathPart {
    Text(String),
    /// The value of an argument.
    Argument(String),
}

/// What the arguments say.
#[derive(Debug, Default)]
struct Made {
    /// Path and query.
    target: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl MakeRequest {
    pub(super) fn new(request: &ToolRequest) -> Result<MakeRequest, String> {
        let checked = match &request.checked {
            None => None,
            Some(text) => {
                let schema = serde_json::from_str(text).map_err(|error| error.to_string())?;
                let compiled = JsonSchema::compile(&schema);
                Some(compiled.map_err(|errors| errors.first().map_or_else(String::new, ToString::to_string))?)
            }
        };
        let path = parts(&request.path);
        Ok(MakeRequest { method: Method::parse(&request.method), path, checked, request: request.clone() })
    }

    fn make(&self, arguments: &Map<String, Value>) -> Result<Made, Refusal> {
        if let Some(problem) = self.checked.as_ref().and_then(|schema| problem(schema, arguments)) {
            return Err(Refusal::params(problem));
        }
        let mut made = Made::default();
        for part in &self.path {
            match part {
                PathPart::Text(text) => made.target.push_str(text),
                PathPart::Argument(name) => {
                    let value = self.value(arguments, name, true)?.map(text_of).unwrap_or_default();
                    if value.is_empty() {
                        return Err(Refusal::params(format!("Required param {name} is not defined")));
                    }
                    percent_encode(&mut made.target, &value);
                }
            }
        }
        if has_dot_segment(&made.target) {
            return Err(Refusal::params("A param makes the path one of another operation"));
        }
        for ToolParameter { name, place, required } in &self.request.parameters {
            let Some(value) = self.value(arguments, name, *required && *place != ParameterPlace::Path)? else {
                continue;
            };
            match place {
                ParameterPlace::Path => {}
                ParameterPlace::Query => query(&mut made.target, name, value),
                ParameterPlace::Header => made.headers.push((name.to_string(), field(name, value)?)),
            }
        }
        if let Some(ToolBody { content_type, required }) = &self.request.body {
            made.body = match self.value(arguments, "requestBody", *required)? {
                None => None,
                Some(value) => Some(body(content_type, value)?),
            };
        }
        Ok(made)
    }

    /// An argument; null is none.
    fn value<'a>(
        &self,
        arguments: &'a Map<String, Value>,
        name: &str,
        required: bool,
    ) -> Result<Option<&'a Value>, Refusal> {
        match arguments.get(name) {
            Some(Value::Null) | None if required => {
                Err(Refusal::params(format!("Required param {name} is not defined")))
            }
            Some(Value::Null) | None => Ok(None),
            found => Ok(found),
        }
    }
}

impl Mediator for MakeRequest {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let call = current::call(exchange)?;
        let made = match self.make(&call.arguments.take()) {
            Ok(made) => made,
            Err(refusal) => {
                exchange.message = refusal.of(&call.id).answer();
                return Ok(Flow::Respond);
            }
        };
        let message = &mut exchange.message;
        message.method = self.method.clone();
        message.url_postfix = Some(made.target.into());
        let headers = &mut message.headers;
        headers.retain(|name, _| !OWN_FIELDS.iter().any(|own| name.eq_ignore_ascii_case(own.as_bytes())));
        headers.set("Accept", "application/json");
        for (name, value) in made.headers {
            headers.set(&name, value);
        }
        message.body = match (made.body, &self.request.body) {
            (Some(bytes), Some(ToolBody { content_type, .. })) => {
                headers.set("Content-Type", &**content_type);
                Body::bytes(bytes)
            }
            _ => Body::empty(),
        };
        Ok(Flow::Next)
    }
}

fn problem(schema: &JsonSchema, arguments: &Map<String, Value>) -> Option<String> {
    let violations = schema.validate(&Value::Object(arguments.clone()));
    violations.first().map(ToString::to_string)
}

/// Cuts a template at its parameters.
fn parts(template: &str) -> Vec<PathPart> {
    let mut parts = Vec::new();
    let mut rest = if template.starts_with('/') { template.to_owned() } else { format!("/{template}") };
    while let Some((before, name, after)) = rest.split_once('{').and_then(|(before, behind)| {
        let (name, after) = behind.split_once('}')?;
        Some((before.to_owned(), name.to_owned(), after.to_owned()))
    }) {
        parts.push(PathPart::Text(before));
        parts.push(PathPart::Argument(name));
        rest = after;
    }
    parts.push(PathPart::Text(rest));
    parts.retain(|part| *part != PathPart::Text(String::new()));
    parts
}

/// A value where only text can stand.
fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => text.into(),
        other => other.to_string().into(),
    }
}

fn query(target: &mut String, name: &str, value: &Value) {
    let mut add = |value: &Value| {
        target.push(if target.contains('?') { '&' } else { '?' });
        percent_encode(target, name);
        target.push('=');
        percent_encode(target, &text_of(value));
    };
    // OpenAPI: `form` with `explode`, the default for lists.
    match value {
        Value::Array(values) => values.iter().for_each(add),
        value => add(value),
    }
}

/// The value of a header field, which must not end it.
fn field(name: &str, value: &Value) -> Result<String, Refusal> {
    let text = text_of(value);
    match text.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
        true => Err(Refusal::params(format!("The param {name} has characters that no header field has"))),
        false => Ok(text.into_owned()),
    }
}

fn body(content_type: &str, value: &Value) -> Result<Vec<u8>, Refusal> {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match (essence.as_str(), value) {
        ("application/x-www-form-urlencoded", Value::Object(members)) => {
            let mut form = String::new();
            members.iter().for_each(|(name, value)| query(&mut form, name, value));
            Ok(form.trim_start_matches('?').into())
        }
        ("application/x-www-form-urlencoded", _) => Err(Refusal::params("requestBody is not an object")),
        (json, value) if is_json(json) => Ok(value.to_string().into()),
        (_, Value::String(text)) => Ok(text.as_bytes().to_vec()),
        _ => Err(Refusal::params(format!("requestBody is not a text, which {essence} needs"))),
    }
}

/// Whether a media type is JSON.
pub(super) fn is_json(essence: &str) -> bool {
    essence == "application/json" || essence.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool() -> MakeRequest {
        let parameter = |name: &str, place, required| ToolParameter { name: name.into(), place, required };
        let request = ToolRequest {
            method: "POST".into(),
            path: "/pets/{id}/{kind}.json".into(),
            parameters: vec![
                parameter("id", ParameterPlace::Path, true),
                parameter("kind", ParameterPlace::Path, true),
                parameter("tag", ParameterPlace::Query, false),
                parameter("page size", ParameterPlace::Query, false),
                parameter("X-Trace", ParameterPlace::Header, true),
            ],
            body: Some(ToolBody { content_type: "application/json".into(), required: false }),
            ..ToolRequest::default()
        };
        MakeRequest::new(&request).expect("a tool")
    }

    fn made(arguments: Value) -> Result<Made, String> {
        let Value::Object(arguments) = arguments else { panic!("{arguments}") };
        tool().make(&arguments).map_err(|refusal| refusal.data.as_str().unwrap_or_default().to_owned())
    }

    #[test]
    fn arguments_go_where_they_belong() {
        let arguments = json!({
            "id": 7, "kind": "a/b?c", "tag": ["x y", "ü"], "page size": 10, "X-Trace": true,
            "requestBody": { "n": 1.50, "s": "t" }, "unknown": 1,
        });
        let made = made(arguments).expect("a request");
        assert_eq!(made.target, "/pets/7/a%2Fb%3Fc.json?tag=x%20y&tag=%C3%BC&page%20size=10");
        assert_eq!(made.headers, [("X-Trace".to_owned(), "true".to_owned())]);
        assert_eq!(made.body.as_deref(), Some(br#"{"n":1.5,"s":"t"}"#.as_slice()));
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        for (arguments, problem) in [
            (json!({}), "Required param id is not defined"),
            (json!({ "id": null, "kind": "a", "X-Trace": "t" }), "Required param id is not defined"),
            (json!({ "id": "", "kind": "a", "X-Trace": "t" }), "Required param id is not defined"),
            (json!({ "id": "1", "kind": "a" }), "Required param X-Trace is not defined"),
            (json!({ "id": "..", "kind": "a", "X-Trace": "t" }), "A param makes the path one of another operation"),
            (json!({ "id": "../x", "kind": "a", "X-Trace": "t" }), "A param makes the path one of another operation"),
            (
                json!({ "id": "1", "kind": "a", "X-Trace": "t\r\nHost: evil" }),
                "The param X-Trace has characters that no header field has",
            ),
        ] {
            assert_eq!(made(arguments.clone()).expect_err("refused"), problem, "{arguments}");
        }
    }

    #[test]
    fn bodies_are_written_as_their_type_asks() {
        for (content_type, value, expected) in [
            ("application/json; charset=utf-8", json!([1]), Some("[1]")),
            ("application/merge-patch+json", json!(null), Some("null")),
            ("text/plain", json!("a b"), Some("a b")),
            ("text/plain", json!({}), None),
            ("application/x-www-form-urlencoded", json!({ "a": "b c", "d": [1, 2] }), Some("a=b%20c&d=1&d=2")),
            ("application/x-www-form-urlencoded", json!("a"), None),
        ] {
            let written = body(content_type, &value).ok();
            assert_eq!(written.as_deref(), expected.map(str::as_bytes), "{content_type} {value}");
        }
    }
}
