//! Where a request carries its query: in a body of JSON, in a body that is the query, or in the address.
//!
//! A gateway and a backend that read a request differently would let unauthorized requests through. So what may be
//! understood in two ways is refused: a query said twice, also in letters of another case, one in the body and another
//! in the address, and bodies that have to be unpacked first.

use std::borrow::Cow;
use std::fmt;

use penstock_engine::Exchange;
use penstock_message::{Form, Message};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::text;

/// A query as it was sent.
#[derive(Debug)]
pub(super) struct Sent<'m> {
    pub query: Cow<'m, str>,
    pub operation: Option<Cow<'m, str>>,
    pub variables: Option<Map<String, Value>>,
}

/// The message of the error response.
type Problem = &'static str;

const NO_BODY: Problem = "Query cannot be empty";
const STRUCTURE: Problem = "Invalid GraphQL query body structure";
const MEDIA_TYPE: Problem =
    "Invalid content type. Make sure the content type is application/json or application/graphql";
const TWICE: Problem = "A query, an operation name or variables are given twice";
const ENCODED: Problem = "Bodies with a Content-Encoding are not read";

impl<'m> Sent<'m> {
    /// The query of a body.
    pub(super) fn by_post(exchange: &'m Exchange) -> Result<Sent<'m>, Problem> {
        let message = &exchange.message;
        if message.headers.contains("content-encoding") {
            return Err(ENCODED);
        }
        if names_query(exchange) {
            return Err(TWICE);
        }
        if message.headers.get_all("content-type").count() > 1 {
            return Err(MEDIA_TYPE);
        }
        let bytes = bytes(message)?;
        let content_type = message.content_type().unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        let sent = match media_type.to_ascii_lowercase().as_str() {
            "" | "application/json" => of_json(bytes)?,
            "application/graphql" => {
                let query = Cow::Borrowed(std::str::from_utf8(bytes).map_err(|_| STRUCTURE)?);
                Sent { query, operation: None, variables: None }
            }
            _ => return Err(MEDIA_TYPE),
        };
        sent.or_empty()
    }

    /// The query of an address.
    pub(super) fn by_get(exchange: &'m Exchange) -> Result<Sent<'m>, Problem> {
        if !exchange.message.body.is_empty() {
            return Err(TWICE);
        }
        let mut members: [Option<Cow<'m, str>>; 3] = Default::default();
        for (name, value) in parameters(exchange) {
            let Some(member) = Member::from_name(&name) else { continue };
            let value = text::percent_decoded(value, true);
            if name != member.name() || members[member as usize].replace(value).is_some() {
                return Err(TWICE);
            }
        }
        let [query, operation, variables] = members;
        let variables = variables.filter(|text| !text.is_empty());
        let variables = variables.map(|text| serde_json::from_str(&text).map_err(|_| STRUCTURE)).transpose()?;
        Sent { query: query.unwrap_or_default(), operation, variables: variables.and_then(object) }.or_empty()
    }

    fn or_empty(self) -> Result<Sent<'m>, Problem> {
        if self.query.trim().is_empty() { Err(NO_BODY) } else { Ok(self) }
    }
}

/// Whether the address has a query in it, or what belongs to one.
pub(super) fn names_query(exchange: &Exchange) -> bool {
    parameters(exchange).any(|(name, _)| Member::from_name(&name).is_some())
}

/// The parameters of the address as they stand there: policies before this one do not change them.
fn parameters(exchange: &Exchange) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
    let pairs = exchange.client.line.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (text::percent_decoded(name, true), value)
    })
}

fn bytes(message: &Message) -> Result<&[u8], Problem> {
    match message.body.form() {
        Form::Bytes(bytes) => Ok(bytes),
        Form::Empty => Err(NO_BODY),
        // A policy before this one read it.
        Form::Text(text) => Ok(text.as_bytes()),
        Form::Stream { .. } | Form::Xml(_) | Form::Json(_) => Err(STRUCTURE),
    }
}

fn object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map),
        // Some clients send them as a text, and some backends take that.
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(map)) => Some(map),
            _ => None,
        },
        _ => None,
    }
}

/// What a query is sent with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Query,
    Operation,
    Variables,
}

impl Member {
    const ALL: [Member; 3] = [Member::Query, Member::Operation, Member::Variables];

    fn name(self) -> &'static str {
        match self {
            Member::Query => "query",
            Member::Operation => "operationName",
            Member::Variables => "variables",
        }
    }

    /// What a backend may take a name for: some compare without case.
    fn from_name(name: &str) -> Option<Member> {
        Member::ALL.into_iter().find(|member| member.name().eq_ignore_ascii_case(name))
    }
}

fn of_json(bytes: &[u8]) -> Result<Sent<'static>, Problem> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let found = reader.deserialize_map(Members::default()).map_err(|_| STRUCTURE)?;
    reader.end().map_err(|_| STRUCTURE)?;
    found.sent()
}

/// The members of an object that make a query.
#[derive(Debug, Default)]
pub(super) struct Members {
    members: [Option<Value>; 3],
    /// Whether one is there twice, or in letters of another case.
    twice: bool,
}

impl Members {
    /// The query they make.
    pub(super) fn sent(self) -> Result<Sent<'static>, Problem> {
        if self.twice {
            return Err(TWICE);
        }
        let [query, operation, variables] = self.members;
        let text = |value: Option<Value>| match value {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(Cow::Owned(text))),
            Some(_) => Err(STRUCTURE),
        };
        let query = text(query)?.unwrap_or_default();
        Ok(Sent { query, operation: text(operation)?, variables: variables.and_then(object) })
    }
}

impl<'de> Visitor<'de> for Members {
    type Value = Members;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with `query`")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Members, A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            match Member::from_name(&name) {
                None => drop(map.next_value::<de::IgnoredAny>()?),
                Some(member) => {
                    let before = self.members[member as usize].replace(map.next_value()?);
                    self.twice |= before.is_some() || name != member.name();
                }
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expected: Result<(&str, Option<&str>, usize), Problem>) {
        let got = of_json(body.as_bytes());
        let got = got.as_ref().map(|sent| {
            (&*sent.query, sent.operation.as_deref(), sent.variables.as_ref().map_or(0, |variables| variables.len()))
        });
        assert_eq!(got.map_err(|problem| *problem), expected, "{body}");
    }

    #[test]
    fn bodies_are_read_in_one_way_only() {
        check(r#"{"query":"{a}"}"#, Ok(("{a}", None, 0)));
        check(r#"{"variables":{"n":1},"operationName":"Q","query":"{\u0061}","id":[{}]}"#, Ok(("{a}", Some("Q"), 1)));
        check(r#"{"query":null,"operationName":null,"variables":null}"#, Ok(("", None, 0)));
        check(r#"{"query":"{a}","variables":"{\"n\":1}"}"#, Ok(("{a}", None, 1)));
        check(r#"{"query":"{a}","query":"{b}"}"#, Err(TWICE));
        check(r#"{"query":"{a}","QUERY":"{b}"}"#, Err(TWICE));
        check(r#"{"query":"{a}","qu\u0065ry":"{b}"}"#, Err(TWICE));
        check(r#"{"Query":"{a}"}"#, Err(TWICE));
        check(r#"{"query":"{a}","operationName":"A","operationname":"B"}"#, Err(TWICE));
        for body in ["", "[]", r#"[{"query":"{a}"}]"#, r#"{"query":1}"#, r#"{"query":"{a}"} {}"#, r#"{"query":"{a}""#] {
            check(body, Err(STRUCTURE));
        }
        check(&format!(r#"{{"query":"{{a}}","variables":{}1{}}}"#, "[".repeat(500), "]".repeat(500)), Err(STRUCTURE));
    }
}
