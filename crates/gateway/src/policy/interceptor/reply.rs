//! Reads what an interceptor service answers: leniently in its types, strictly where it would reach the wire.

use base64::Engine;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde_json::{Map, Value};

use crate::text::{is_field_name, is_field_value};

/// More fields than any message carries.
const FIELDS_MAX: usize = 1000;

/// Padding may be there or not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// What is done to fields: remove, then replace, then add.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::policy) struct Changes {
    pub remove: Vec<String>,
    pub replace: Vec<(String, String)>,
    pub add: Vec<(String, String)>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.replace.is_empty() && self.add.is_empty()
    }
}

/// What a service wants done with a request or an answer. Everything may be absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::policy) struct Decision {
    pub direct_respond: bool,
    pub response_code: Option<u16>,
    pub dynamic_endpoint: Option<String>,
    pub headers: Changes,
    /// To what follows the body.
    pub trailers: Changes,
    pub path_to_rewrite: Option<String>,
    pub body: Option<Bytes>,
    /// JSON, as it was given.
    pub interceptor_context: Option<Bytes>,
}

impl Decision {
    /// Reads an answer. The error says what in it cannot be used, without repeating it. `compat` takes base64 as Choreo Connect
    ///  does: what is not of its alphabet is passed over.
    pub(super) fn parse(text: &[u8], compat: bool) -> Result<Decision, String> {
        if text.trim_ascii().is_empty() {
            return Err("the response is empty".into());
        }
        Decision::from_members(object(text)?, compat)
    }

    /// The same for services that write what they do not mean as well: an empty text, a status of 0, an empty map.
    pub(in crate::policy) fn parse_sparse(text: &[u8]) -> Result<Decision, String> {
        let mut members = object(text)?;
        members.retain(|_, value| match value {
            Value::String(text) => !text.is_empty(),
            Value::Number(number) => number.as_f64() != Some(0.0),
            Value::Object(members) => !members.is_empty(),
            _ => true,
        });
        Decision::from_members(members, false)
    }

    fn from_members(members: Map<String, Value>, compat: bool) -> Result<Decision, String> {
        let mut decision = Decision::default();
        for (name, value) in members {
            if value.is_null() {
                continue;
            }
            let member = || format!("`{name}` of the response");
            match &*name {
                "directRespond" => {
                    decision.direct_respond = flag(&value).ok_or_else(|| wants(member(), "a boolean"))?
                }
                "responseCode" => {
                    decision.response_code = Some(status(&value).ok_or_else(|| wants(member(), "a status"))?)
                }
                "dynamicEndpoint" => {
                    decision.dynamic_endpoint = endpoint_name(&value).map_err(|why| wants(member(), why))?
                }
                "headersToAdd" => decision.headers.add = fields(value).map_err(|why| wants(member(), why))?,
                "headersToReplace" => decision.headers.replace = fields(value).map_err(|why| wants(member(), why))?,
                "headersToRemove" => decision.headers.remove = names(value).map_err(|why| wants(member(), why))?,
                "trailersToAdd" => decision.trailers.add = fields(value).map_err(|why| wants(member(), why))?,
                "trailersToReplace" => decision.trailers.replace = fields(value).map_err(|why| wants(member(), why))?,
                "trailersToRemove" => decision.trailers.remove = names(value).map_err(|why| wants(member(), why))?,
                "pathToRewrite" => decision.path_to_rewrite = Some(path(value).map_err(|why| wants(member(), why))?),
                "body" => decision.body = Some(body(&value, compat).map_err(|why| wants(member(), why))?),
                "interceptorContext" => decision.interceptor_context = Some(value.to_string().into()),
                _ => {}
            }
        }
        Ok(decision)
    }
}

fn object(text: &[u8]) -> Result<Map<String, Value>, String> {
    match serde_json::from_slice(text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err("the response is not a JSON object".into()),
        Err(error) => Err(format!("the response is not JSON: {error}")),
    }
}

fn wants(member: String, what: &str) -> String {
    format!("{member} is not {what}")
}

fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A status that ends an exchange.
fn status(value: &Value) -> Option<u16> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok()?,
        Value::Number(number) => {
            number.as_u64().or_else(|| number.as_f64().filter(|n| n.fract() == 0.0).map(|n| n as u64))?
        }
        _ => return None,
    };
    u16::try_from(number).ok().filter(|status| (200..=599).contains(status))
}

fn endpoint_name(value: &Value) -> Result<Option<String>, &'static str> {
    let Value::Object(endpoint) = value else { return Err("an object") };
    match endpoint.get("endpointName") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => Ok(Some(name.clone()).filter(|name| !name.is_empty())),
        Some(_) => Err("an object with the text `endpointName`"),
    }
}

/// A map of header fields. Lua writes an empty map as an empty list, so services that speak to Choreo Connect do too.
fn fields(value: Value) -> Result<Vec<(String, String)>, &'static str> {
    let members: Map<String, Value> = match value {
        Value::Object(members) => members,
        Value::Array(list) if list.is_empty() => return Ok(Vec::new()),
        _ => return Err("a map of header fields"),
    };
    if members.len() > FIELDS_MAX {
        return Err("a map of a reasonable size");
    }
    let mut fields = Vec::with_capacity(members.len());
    for (name, value) in members {
        let value = match value {
            Value::String(text) => text,
            Value::Null => continue,
            Value::Object(_) | Value::Array(_) => return Err("a map of texts"),
            other => other.to_string(),
        };
        if !is_name(&name) || !is_field_value(&value) {
            return Err("a map of header fields: a name or value in it may not be sent");
        }
        fields.push((name, value));
    }
    Ok(fields)
}

fn names(value: Value) -> Result<Vec<String>, &'static str> {
    let list = match value {
        Value::Array(list) if list.len() <= FIELDS_MAX => list,
        Value::Object(members) if members.is_empty() => return Ok(Vec::new()),
        _ => return Err("a list of names"),
    };
    let text = |value| match value {
        Value::String(text) => Ok(text),
        _ => Err("a list of names"),
    };
    list.into_iter().map(text).collect()
}

/// A token (RFC 9110 §5.6.2), or a name that begins with a colon, which is passed over later.
fn is_name(name: &str) -> bool {
    is_field_name(name.strip_prefix(':').unwrap_or(name))
}

fn path(value: Value) -> Result<String, &'static str> {
    match value {
        Value::String(path) if !path.is_empty() && path.bytes().all(|byte| byte > 0x20 && byte != 0x7f) => {
            Ok(if path.starts_with('/') { path } else { format!("/{path}") })
        }
        _ => Err("a path"),
    }
}

fn body(value: &Value, compat: bool) -> Result<Bytes, &'static str> {
    const WHAT: &str = "base64";
    let Value::String(text) = value else { return Err(WHAT) };
    // What is well-formed to the letter is read many bytes at once; everything else as leniently as it may be.
    if let Ok(bytes) = base64_simd::STANDARD.decode_to_vec(text) {
        return Ok(bytes.into());
    }
    if let Ok(bytes) = BASE64.decode(text) {
        return Ok(bytes.into());
    }
    let of_alphabet = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut kept: Vec<u8> = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        if of_alphabet(&byte) {
            kept.push(byte);
        } else if !compat && !byte.is_ascii_whitespace() && byte != b'=' {
            return Err(WHAT);
        }
    }
    if !compat && text.trim_end().trim_end_matches('=').contains('=') {
        return Err(WHAT);
    }
    BASE64.decode(kept).map(Bytes::from).map_err(|_| WHAT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Decision, String> {
        Decision::parse(text.as_bytes(), false)
    }

    #[test]
    fn everything_may_be_absent_or_null() {
        for text in ["{}", r#"{"body":null,"headersToAdd":null,"directRespond":null}"#, r#"{"headersToAdd":[],"x":1}"#]
        {
            assert_eq!(parse(text), Ok(Decision::default()), "{text}");
        }
    }

    #[test]
    fn types_are_taken_leniently() {
        let decision = parse(
            r#"{"directRespond":"true","responseCode":"404","headersToAdd":{"a":1,"b":true,"c":"x"},
               "headersToRemove":["d"],"dynamicEndpoint":{"endpointName":"e"},"pathToRewrite":"f?g=1","body":"TkVX",
               "interceptorContext":{"n":1.50,"k":["v"]},"trailersToAdd":{"t":1},"trailersToReplace":{"u":"2"},
               "trailersToRemove":["w"]}"#,
        );
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = Decision {
            direct_respond: true,
            response_code: Some(404),
            dynamic_endpoint: Some("e".into()),
            headers: Changes {
                remove: vec!["d".into()],
                add: vec![pair("a", "1"), pair("b", "true"), pair("c", "x")],
                ..Changes::default()
            },
            trailers: Changes { remove: vec!["w".into()], replace: vec![pair("u", "2")], add: vec![pair("t", "1")] },
            path_to_rewrite: Some("/f?g=1".into()),
            body: Some(Bytes::from_static(b"NEW")),
            interceptor_context: Some(Bytes::from_static(br#"{"n":1.50,"k":["v"]}"#)),
        };
        assert_eq!(decision, Ok(expected));
    }

    #[test]
    fn what_may_not_reach_the_wire_is_refused() {
        for text in [
            "",
            "  ",
            "<x>",
            "[]",
            "1",
            r#"{"responseCode":99}"#,
            r#"{"responseCode":101}"#,
            r#"{"responseCode":"x"}"#,
            r#"{"headersToAdd":{"a":"b\r\nc: d"}}"#,
            r#"{"headersToAdd":{"a b":"c"}}"#,
            r#"{"headersToReplace":{"a":{}}}"#,
            r#"{"headersToRemove":"a"}"#,
            r#"{"trailersToAdd":{"a":"b\nc: d"}}"#,
            r#"{"trailersToReplace":{"a:b":"c"}}"#,
            r#"{"trailersToRemove":{"a":"b"}}"#,
            r#"{"pathToRewrite":"/a b"}"#,
            r#"{"pathToRewrite":7}"#,
            r#"{"body":7}"#,
            r#"{"body":"@@@nope"}"#,
            r#"{"body":"TkV=X"}"#,
            r#"{"body":"abcde"}"#,
            r#"{"dynamicEndpoint":"e"}"#,
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn base64_by_mode() {
        let decode = |text: &str, compat| {
            Decision::parse(format!(r#"{{"body":"{text}"}}"#).as_bytes(), compat).map(|decision| decision.body)
        };
        for (text, strict, compat) in [
            ("", Some(""), Some("")),
            ("TkVX", Some("NEW"), Some("NEW")),
            ("TkU=", Some("NE"), Some("NE")),
            ("TkU", Some("NE"), Some("NE")),
            ("Tk VX", Some("NEW"), Some("NEW")),
            ("@TkVX", None, Some("NEW")),
            ("abcde", None, None),
        ] {
            let expected = |text: Option<&str>| text.map(|text| Bytes::copy_from_slice(text.as_bytes()));
            assert_eq!(decode(text, false).ok().flatten(), expected(strict), "{text}");
            assert_eq!(decode(text, true).ok().flatten(), expected(compat), "{text}");
        }
    }
}
