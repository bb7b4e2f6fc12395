//! `JsonSchemaValidator`: limits on the shape of a JSON body. They stand in properties of the message.

use std::fmt;

use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::payload;
use super::settings::{Compiled, PolicyClasses, Settings, limit, threat};

/// The name under which the library gives a number with all its digits.
const NUMBER: &str = "$serde_json::private::Number";

struct JsonThreat;

pub(super) fn compile(_settings: &Settings, _classes: &PolicyClasses) -> Compiled {
    Ok(Box::new(JsonThreat))
}

/// What a body may have at most.
struct Limits {
    properties: usize,
    string_chars: usize,
    elements: usize,
    key_chars: usize,
    depth: usize,
}

impl Mediator for JsonThreat {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let limits = Limits {
            properties: limit(exchange, "maxPropertyCount")?,
            string_chars: limit(exchange, "maxStringLength")?,
            elements: limit(exchange, "maxArrayElementCount")?,
            key_chars: limit(exchange, "maxKeyLength")?,
            depth: limit(exchange, "maxJsonDepth")?,
        };
        let Some(text) = payload::text(exchange)? else { return Ok(Flow::Next) };
        check(&text, &limits)
            .map_err(|why| threat(format!("Request is failed due to JSON schema validation failure: {why}")))?;
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

/// Reads a text without building anything of it: names that are repeated count as often as they stand there.
fn check(text: &str, limits: &Limits) -> Result<(), String> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let mut properties = 0;
    let seen = LimitedReader { limits, depth: 0, properties: &mut properties }.deserialize(&mut reader);
    let ended = seen.and_then(|()| reader.end());
    ended.map_err(|error| match error.classify() {
        // The place in the body says nothing about a limit.
        serde_json::error::Category::Data => error.to_string().split(" at line ").next().unwrap_or_default().to_owned(),
        _ => "Error occurred while parsing the JSON payload".to_owned(),
    })
}

/// Whether a text keeps limits that are all the same number.
pub(crate) fn keeps_limits(text: &str, limit: usize) -> bool {
    let limits = Limits { properties: limit, string_chars: limit, elements: limit, key_chars: limit, depth: limit };
    check(text, &limits).is_ok()
}

struct LimitedReader<'l> {
    limits: &'l Limits,
    depth: usize,
    properties: &'l mut usize,
}

impl LimitedReader<'_> {
    fn inside(&mut self) -> LimitedReader<'_> {
        LimitedReader { limits: self.limits, depth: self.depth, properties: self.properties }
    }
}

impl<'de> DeserializeSeed<'de> for LimitedReader<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for LimitedReader<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match text.chars().count() > self.limits.string_chars {
            true => Err(E::custom("Max String Length Reached")),
            false => Ok(()),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let mut elements = 0;
        while list.next_element_seed(self.inside())?.is_some() {
            elements += 1;
            if elements > self.limits.elements {
                return Err(A::Error::custom("Max Array Length Reached"));
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut object: A) -> Result<(), A::Error> {
        self.depth += 1;
        let too_deep = self.depth > self.limits.depth;
        let mut name = object.next_key::<String>()?;
        if name.as_deref() == Some(NUMBER) {
            let text = object.next_value::<String>()?;
            // That name has no more effect than a string.
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
            return if is_number { Ok(()) } else { self.visit_str(&text) };
        }
        if too_deep {
            return Err(A::Error::custom("Depth Limit Reached"));
        }
        while let Some(known) = name {
            *self.properties += 1;
            if known.chars().count() > self.limits.key_chars {
                return Err(A::Error::custom("Max Key Length Reached"));
            }
            if *self.properties > self.limits.properties {
                return Err(A::Error::custom("Max Property Count Reached"));
            }
            object.next_value_seed(self.inside())?;
            name = object.next_key()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_limits() {
        let limits = Limits { properties: 3, string_chars: 4, elements: 2, key_chars: 3, depth: 2 };
        for (text, expected) in [
            (r#"{"a":{"b":"four","c":1.5e300}}"#, Ok(())),
            ("[1,2]", Ok(())),
            (r#"{"a":{"b":{}}}"#, Err("Depth Limit Reached")),
            (r#"[{"a":[{"b":[{}]}]}]"#, Err("Depth Limit Reached")),
            (r#"{"long":1}"#, Err("Max Key Length Reached")),
            (r#"{"a":1,"a":1,"a":1,"a":1}"#, Err("Max Property Count Reached")),
            (r#"["short","äöüß"]"#, Err("Max String Length Reached")),
            (r#"["äöüß"]"#, Ok(())),
            ("[1,2,3]", Err("Max Array Length Reached")),
            (r#"{"a""#, Err("Error occurred while parsing the JSON payload")),
            ("{} {}", Err("Error occurred while parsing the JSON payload")),
        ] {
            assert_eq!(check(text, &limits), expected.map_err(str::to_owned), "{text}");
        }
    }
}
