//! The bytes of a stored message: JSON that keeps headers, properties with their types, variables and the body, so that a
//! message taken from a store is the one that was put there.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use penstock_engine::{Exchange, Fault};
use penstock_message::{Addressing, Body, Conversion, Form, Headers, Message, Method, Properties, Shape, Value};
use serde_json::{Map, Value as Json, json};

/// Properties that belong to one connection or to the store itself.
const NOT_STORED: [&str; 2] = ["inbound.endpoint.name", "RESPONSE_WRITTEN"];

/// Writes the message of an exchange, with its number for a resequencing store. Its body has been buffered.
pub(crate) fn encode(exchange: &mut Exchange, sequence: Option<i64>) -> Result<Vec<u8>, Fault> {
    let program = exchange.program().clone();
    let mut stored = to_json(&exchange.message, &program.conversion)?;
    if let Some(number) = sequence {
        stored["sequence"] = number.into();
    }
    Ok(stored.to_string().into_bytes())
}

/// The number of a stored message.
pub(crate) fn sequence(bytes: &[u8]) -> Option<i64> {
    serde_json::from_slice::<Json>(bytes).ok()?["sequence"].as_i64()
}

/// A message whose body has been buffered.
fn to_json(message: &Message, conversion: &Conversion) -> Result<Json, Fault> {
    let mut copy = message.copy();
    let output = copy.output(conversion, Shape::Same)?;
    let bytes = match output.form {
        Form::Bytes(bytes) => bytes,
        Form::Text(text) => bytes::Bytes::copy_from_slice(text.as_bytes()),
        _ => bytes::Bytes::new(),
    };
    let mut headers = message.headers.clone();
    if let Some(content_type) = &output.content_type {
        headers.set("Content-Type", content_type);
    }
    if output.decoded {
        headers.remove("Content-Encoding");
    }
    let body = match std::str::from_utf8(&bytes) {
        Ok(text) => json!({ "text": text }),
        Err(_) => json!({ "base64": STANDARD.encode(&bytes) }),
    };
    let fields: Vec<Json> = headers
        .iter()
        .map(|(name, value)| json!([String::from_utf8_lossy(name), String::from_utf8_lossy(value)]))
        .collect();
    let addressing = message.addressing.as_deref().map(addressing_to_json);
    Ok(json!({
        "version": 1,
        "method": message.method.as_str(),
        "postfix": message.url_postfix.as_deref(),
        "status": message.status,
        "headers": fields,
        "body": body,
        "properties": properties_to_json(&message.properties),
        "axis2": properties_to_json(&message.axis2),
        "variables": properties_to_json(&message.variables),
        "addressing": addressing,
    }))
}

/// Reads what [`encode`] wrote.
pub(crate) fn decode(bytes: &[u8]) -> Result<Message, String> {
    let stored: Json = serde_json::from_slice(bytes).map_err(|error| format!("it is not JSON: {error}"))?;
    if stored["version"] != 1 {
        return Err(format!("its version is {}, and only 1 is known", stored["version"]));
    }
    let text = |value: &Json| value.as_str().map(std::sync::Arc::<str>::from);
    let mut headers = Headers::new();
    for field in stored["headers"].as_array().into_iter().flatten() {
        if let (Some(name), Some(value)) = (field[0].as_str(), field[1].as_str()) {
            headers.append(name, value);
        }
    }
    let body = match (stored["body"]["text"].as_str(), stored["body"]["base64"].as_str()) {
        (Some(text), _) => Body::bytes(text.to_owned()),
        (None, Some(encoded)) => {
            Body::bytes(STANDARD.decode(encoded).map_err(|error| format!("its body is not base64: {error}"))?)
        }
        (None, None) => return Err("it has no body".to_owned()),
    };
    Ok(Message {
        headers,
        body,
        properties: properties_from_json(&stored["properties"]),
        axis2: properties_from_json(&stored["axis2"]),
        variables: properties_from_json(&stored["variables"]),
        method: Method::parse(stored["method"].as_str().unwrap_or("POST")),
        url_postfix: text(&stored["postfix"]),
        status: stored["status"].as_u64().unwrap_or_default() as u16,
        addressing: addressing_from_json(&stored["addressing"]),
        ..Message::default()
    })
}

fn properties_to_json(properties: &Properties) -> Json {
    let mut map = Map::new();
    for (name, value) in properties.iter() {
        if NOT_STORED.contains(&name) {
            continue;
        }
        let typed = match value {
            Value::String(text) => json!({ "string": &**text }),
            Value::Boolean(flag) => json!({ "boolean": flag }),
            Value::Integer(number) => json!({ "integer": number }),
            // As text: JSON has no infinity.
            Value::Double(number) => json!({ "double": number.to_string() }),
            Value::Json(value) => json!({ "json": &**value }),
            Value::Xml(..) => json!({ "xml": value.to_text() }),
        };
        map.insert(name.to_string(), typed);
    }
    Json::Object(map)
}

fn properties_from_json(json: &Json) -> Properties {
    let mut properties = Properties::default();
    for (name, typed) in json.as_object().into_iter().flatten() {
        let Some((kind, value)) = typed.as_object().and_then(|one| one.iter().next()) else { continue };
        let text = || value.as_str().unwrap_or_default();
        let value = match kind.as_str() {
            "boolean" => Value::Boolean(value.as_bool().unwrap_or_default()),
            "integer" => Value::Integer(value.as_i64().unwrap_or_default()),
            "double" => Value::Double(text().parse().unwrap_or_default()),
            "json" => Value::Json(value.clone().into()),
            "xml" => xml_value(text()),
            _ => Value::string(text()),
        };
        properties.set(name.as_str(), value);
    }
    properties
}

/// The nodes of an XML text; a text that is no XML stays text.
fn xml_value(text: &str) -> Value {
    use penstock_xml::{Document, ParseOptions};
    match Document::parse(text.to_owned(), &ParseOptions::default()) {
        Ok(document) => match document.root_element() {
            Some(root) => Value::Xml(document.into(), vec![root]),
            None => Value::string(text),
        },
        Err(_) => Value::string(text),
    }
}

fn addressing_to_json(addressing: &Addressing) -> Json {
    json!({
        "to": addressing.to.as_deref(),
        "from": addressing.from.as_deref(),
        "reply_to": addressing.reply_to.as_deref(),
        "fault_to": addressing.fault_to.as_deref(),
        "action": addressing.action.as_deref(),
        "relates_to": addressing.relates_to.as_deref(),
        "message_id": addressing.message_id.as_deref(),
    })
}

fn addressing_from_json(json: &Json) -> Option<Box<Addressing>> {
    let text = |name: &str| json.get(name)?.as_str().map(std::sync::Arc::<str>::from);
    json.is_object().then(|| {
        Box::new(Addressing {
            to: text("to"),
            from: text("from"),
            reply_to: text("reply_to"),
            fault_to: text("fault_to"),
            action: text("action"),
            relates_to: text("relates_to"),
            message_id: text("message_id"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(message: &Message) -> Message {
        decode(to_json(message, &Conversion::default()).unwrap().to_string().as_bytes()).unwrap()
    }

    #[test]
    fn a_message_comes_back_as_it_was_stored() {
        let mut message = Message { body: Body::bytes("{\"a\":1.50}"), method: Method::Put, ..Message::default() };
        message.headers.set("Content-Type", "application/json");
        message.headers.append("X-Two", "1");
        message.headers.append("X-Two", "2");
        message.url_postfix = Some("/orders?x=1".into());
        message.addressing_mut().to = Some("http://h/a".into());
        for (name, value) in [
            ("text", Value::string("ü\n\"")),
            ("flag", Value::Boolean(true)),
            ("number", Value::Integer(i64::MIN)),
            ("double", Value::Double(f64::INFINITY)),
            ("json", Value::Json(json!({"a": [1, null]}).into())),
            ("xml", xml_value("<a xmlns=\"urn:x\"><b/></a>")),
        ] {
            message.properties.set(name, value.clone());
            message.variables.set(name, value);
        }
        let back = stored(&message);
        for properties in [&back.properties, &back.variables] {
            for (name, value) in message.properties.iter() {
                let other = properties.get(name).unwrap();
                assert_eq!(std::mem::discriminant(other), std::mem::discriminant(value), "{name}");
                assert_eq!(other.to_text(), value.to_text(), "{name}");
            }
        }
        assert_eq!(back.method, Method::Put);
        assert_eq!(back.url_postfix, message.url_postfix);
        assert_eq!(back.addressing.unwrap().to, Some("http://h/a".into()));
        assert_eq!(back.headers.get_all("X-Two").collect::<Vec<_>>(), [b"1", b"2"]);
        let Form::Bytes(bytes) = back.body.form() else { panic!("{:?}", back.body) };
        assert_eq!(bytes, "{\"a\":1.50}");
    }

    #[test]
    fn bytes_that_are_no_text_are_kept() {
        let mut message = Message { body: Body::bytes(vec![0, 159, 146, 150]), ..Message::default() };
        message.headers.set("Content-Type", "application/octet-stream");
        let back = stored(&message);
        let Form::Bytes(bytes) = back.body.form() else { panic!("{:?}", back.body) };
        assert_eq!(&bytes[..], [0, 159, 146, 150]);
    }

    #[test]
    fn foreign_bytes_are_an_error() {
        for bytes in [&b""[..], b"{}", b"\xac\xed\0\x05", b"{\"version\":2}", b"{\"version\":1}"] {
            assert!(decode(bytes).is_err(), "{bytes:?}");
        }
    }
}
