//! Requests and responses of the control plane, without a server: the caller reads the body and writes the response.

use std::net::IpAddr;

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;

/// A request, whole.
#[derive(Debug, Clone)]
pub struct Request {
    /// `GET`.
    pub method: String,
    /// The path, not decoded.
    pub path: String,
    /// The query, not decoded.
    pub query: String,
    /// Header fields with their names as they came.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
    /// The address of the client.
    pub client: IpAddr,
}

impl Request {
    /// The value of a header field.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// A cookie.
    pub(crate) fn cookie(&self, name: &str) -> Option<&str> {
        let pairs = self.header("cookie")?.split(';');
        pairs.filter_map(|pair| pair.trim().split_once('=')).find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

/// A response.
#[derive(Debug, Clone)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// Header fields.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Bytes,
}

impl Response {
    /// A JSON body.
    pub(crate) fn json(status: u16, body: &Value) -> Response {
        Response::of_type(status, "application/json", body.to_string())
    }

    /// A body of a media type.
    pub(crate) fn of_type(status: u16, media_type: &str, body: impl Into<Bytes>) -> Response {
        Response { status, headers: vec![("Content-Type", media_type.to_owned())], body: body.into() }
    }

    /// Without a body.
    pub(crate) fn empty(status: u16) -> Response {
        Response { status, headers: Vec::new(), body: Bytes::new() }
    }

    /// With another header field.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Response {
        self.headers.push((name, value.into()));
        self
    }
}

/// Names and values of a query or a form.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// From the text of a query or of `application/x-www-form-urlencoded`.
    pub(crate) fn parse(text: &str) -> Parameters {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Parameters(pairs.map(|(name, value)| (decode(name, true), decode(value, true))).collect())
    }

    /// From the members of a JSON object.
    pub(crate) fn from_json(value: &Value) -> Parameters {
        let members = value.as_object().into_iter().flatten();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Parameters(members.map(|(name, value)| (name.clone(), text(value))).collect())
    }

    /// The first value of a name, unless it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Whether a value is `true`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// A number.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.get(name)?.parse().ok()
    }
}

/// Text with `%xx` decoded; `+` is a space in queries and forms.
pub(crate) fn decode(text: &str, plus_is_space: bool) -> String {
    let text = if plus_is_space { text.replace('+', " ") } else { text.to_owned() };
    percent_decode_str(&text).decode_utf8_lossy().into_owned()
}

/// All but the unreserved characters of RFC 3986 §2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Text for a place in a query.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let query = Parameters::parse("query=name:a%20b+c&empty=&flag=TRUE&limit=7&bad=%zz");
        assert_eq!(query.get("query"), Some("name:a b c"));
        assert_eq!(query.get("empty"), None);
        assert!(query.flag("flag") && !query.flag("query"));
        assert_eq!((query.number("limit"), query.number("query")), (Some(7), None));
        assert_eq!(query.get("bad"), Some("%zz"));
        assert_eq!(encode("a b/ü"), "a%20b%2F%C3%BC");
    }
}
