//! Messages on a connection to a GraphQL API, as both protocols have them: `graphql-transport-ws`, and the older one of
//! `subscriptions-transport-ws` that calls itself `graphql-ws`. An object with `type`, perhaps `id` and `payload`.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::json;

use super::request::Members;

/// The protocol that both sides agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// `graphql-ws`, the default.
    Older,
    /// `graphql-transport-ws`.
    Newer,
}

/// The meaning of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A subscription: `subscribe`, `start`.
    Start,
    /// Wants no more of it: `complete` of either side, `stop`; and an `error`, which ends it.
    End,
    /// Data of a subscription: `next`, `data`.
    Data,
    /// Is about the connection.
    Connection,
    /// Is none of either protocol.
    Unknown,
}

impl Purpose {
    fn from_name(name: &str) -> Purpose {
        match name {
            "subscribe" | "start" => Purpose::Start,
            "complete" | "stop" | "error" => Purpose::End,
            "next" | "data" => Purpose::Data,
            "connection_init" | "connection_terminate" | "ping" | "pong" => Purpose::Connection,
            _ => Purpose::Unknown,
        }
    }
}

/// A message: its sender and its request.
#[derive(Debug)]
pub(super) struct Envelope {
    pub purpose: Purpose,
    pub id: Option<String>,
    /// The members of its payload, when that is an object.
    pub payload: Option<Members>,
}

impl Envelope {
    /// Reads a message; `None` when it is none, or one that may be read in two ways.
    pub(super) fn read(text: &str) -> Option<Envelope> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let read = reader.deserialize_map(EnvelopeVisitor).ok()?;
        reader.end().ok()?;
        read
    }
}

/// Id and query of a message.
pub(crate) fn asked(text: &str) -> Option<(Option<String>, Option<String>)> {
    let Envelope { id, payload, .. } = Envelope::read(text)?;
    Some((id, payload.and_then(|payload| Some(payload.sent().ok()?.query.into_owned()))))
}

/// The message with the reason of a rejection.
pub(super) fn error(protocol: Protocol, id: &str, code: u16, message: &str) -> String {
    let payload = match protocol {
        Protocol::Older => json!({ "message": message, "code": code }),
        // A list of errors as GraphQL has them; clients end the connection over anything else.
        Protocol::Newer => json!([{ "message": message, "extensions": { "code": code } }]),
    };
    json!({ "id": id, "type": "error", "payload": payload }).to_string()
}

/// A member by its name; some readers compare names without case.
fn member(name: &str) -> Option<&'static str> {
    ["type", "id", "payload"].into_iter().find(|known| known.eq_ignore_ascii_case(name))
}

struct EnvelopeVisitor;

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = Option<Envelope>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with `type`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Envelope>, A::Error> {
        let (mut kind, mut id, mut payload) = (None, None, None);
        let mut is_clear = true;
        while let Some(name) = map.next_key::<String>()? {
            let known = member(&name);
            let is_there = match known {
                Some("type") => kind.replace(map.next_value::<String>()?).is_some(),
                Some("id") => id.replace(map.next_value::<Option<String>>()?).is_some(),
                Some(_) => payload.replace(map.next_value_seed(Payload)?).is_some(),
                None => {
                    map.next_value::<IgnoredAny>()?;
                    false
                }
            };
            is_clear &= !is_there && known.is_none_or(|known| known == name);
        }
        let (Some(kind), true) = (kind, is_clear) else { return Ok(None) };
        let (id, payload) = (id.flatten(), payload.flatten());
        Ok(Some(Envelope { purpose: Purpose::from_name(&kind), id, payload }))
    }
}

/// Reads a payload of any form.
struct Payload;

impl<'de> DeserializeSeed<'de> for Payload {
    type Value = Option<Members>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<Members>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Payload {
    type Value = Option<Members>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a payload")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Option<Members>, A::Error> {
        Members::default().visit_map(map).map(Some)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Option<Members>, A::Error> {
        while sequence.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Option<Members>, E> {
        Ok(None)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Option<Members>, E> {
        Ok(None)
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Option<Members>, E> {
        Ok(None)
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Option<Members>, E> {
        Ok(None)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Option<Members>, E> {
        Ok(None)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Option<Members>, E> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(Purpose, Option<&str>, Option<&str>)>) {
        let got = Envelope::read(text).map(|envelope| {
            let query =
                envelope.payload.map(|payload| payload.sent().map_or("?".into(), |sent| sent.query.into_owned()));
            (envelope.purpose, envelope.id, query)
        });
        let got = got.as_ref().map(|(purpose, id, query)| (*purpose, id.as_deref(), query.as_deref()));
        assert_eq!(got, expected, "{text}");
    }

    #[test]
    fn messages_are_read_in_one_way_only() {
        check(r#"{"type":"connection_init"}"#, Some((Purpose::Connection, None, None)));
        check(r#"{"type":"connection_init","payload":{"query":7}}"#, Some((Purpose::Connection, None, Some("?"))));
        let start = r#"{"id":"1","payload":{"query":"{a}","extensions":{}},"type":"start","more":[1]}"#;
        check(start, Some((Purpose::Start, Some("1"), Some("{a}"))));
        check(r#"{"type":"subscribe","id":"1","payload":[{"query":"{a}"}]}"#, Some((Purpose::Start, Some("1"), None)));
        check(r#"{"type":"next","id":"1","payload":{"data":{"a":1}}}"#, Some((Purpose::Data, Some("1"), Some(""))));
        check(r#"{"type":"error","id":"1","payload":[]}"#, Some((Purpose::End, Some("1"), None)));
        check(r#"{"type":"subscription_start","id":"1"}"#, Some((Purpose::Unknown, Some("1"), None)));
        for payload in ["null", "true", "-1", "1", "\"t\""] {
            check(&format!(r#"{{"type":"ping","payload":{payload}}}"#), Some((Purpose::Connection, None, None)));
        }
        for text in [
            "",
            "[]",
            "{}",
            "{\"type\":1}",
            r#"{"type":"ping"} {}"#,
            r#"{"type":"ping","type":"start"}"#,
            r#"{"type":"ping","Type":"start"}"#,
            r#"{"Type":"ping"}"#,
            r#"{"type":"ping","t\u0079pe":"start"}"#,
            r#"{"type":"start","id":1}"#,
            r#"{"type":"start","payload":{},"payload":{}}"#,
        ] {
            check(text, None);
        }
        check(r#"{"type":"start","payload":{"query":"{a}","query":"{b}"}}"#, Some((Purpose::Start, None, Some("?"))));
    }
}
