//! JMS messages in AMQP 1.0, as the JMS mapping of OASIS and ActiveMQ have them.

use fe2o3_amqp::types::messaging::{
    AmqpValue, ApplicationProperties, Body as AmqpBody, Data, Header, Message as AmqpMessage, MessageAnnotations,
    MessageId, Priority, Properties,
};
use fe2o3_amqp::types::primitives::{Binary, OrderedMap, SimpleValue, Value};
use penstock_engine::clock;
use penstock_message::{Body, Headers, Message, Method};
use penstock_xml::{Document, ParseOptions, escape_text};

use super::content::{Rule, content_type};
use crate::broker::body::{directive, is_field};

/// A message as this transport sends and receives it.
pub(super) type JmsMessage = AmqpMessage<AmqpBody<Value>>;

/// The annotation that has the JMS type of a message.
const TYPE_ANNOTATION: &str = "x-opt-jms-msg-type";
const MAP_MESSAGE: i8 = 2;
const BYTES_MESSAGE: i8 = 3;
const TEXT_MESSAGE: i8 = 5;

/// The annotations that have the types of addresses, and one of the types.
const REPLY_TO_ANNOTATION: &str = "x-opt-jms-reply-to";
const QUEUE: i8 = 0;

/// The annotation for messages that are delivered later, in milliseconds.
const DELAY_ANNOTATION: &str = "x-opt-delivery-delay";

/// The elements that stand for a map message.
const MAP_NAMESPACE: &str = "http://axis.apache.org/axis2/java/transports/jms/map-payload";
const MAP_ELEMENT: &str = "JMSMap";

/// Fields of HTTP that mean nothing for a message in a queue.
const HTTP_ONLY: [&str; 6] =
    ["Content-Type", "Content-Length", "Host", "Accept-Encoding", "Content-Encoding", "Transfer-Encoding"];

/// The kinds of messages that JMS has, as far as flows see them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum MessageType {
    #[default]
    Text,
    Bytes,
    Map,
}

/// What the rules for the content type look at.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) message_type: MessageType,
    pub(super) jms_type: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) properties: Vec<(String, String)>,
}

/// `MessagePropertyHyphens`: names of JMS properties have no hyphens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Hyphens {
    /// They stay.
    #[default]
    Keep,
    /// `_DASHED_` in their place.
    Replace,
    /// Such properties are left out.
    Delete,
}

impl Hyphens {
    pub(super) fn parse(text: Option<&str>) -> Result<Hyphens, String> {
        match text {
            None | Some("none") => Ok(Hyphens::Keep),
            Some("replace") => Ok(Hyphens::Replace),
            Some("delete") => Ok(Hyphens::Delete),
            Some(other) => Err(format!(
                "`transport.jms.MessagePropertyHyphens` is `{other}`, which is none of `none`, `replace` and `delete`"
            )),
        }
    }
}

/// How messages of an endpoint are made.
#[derive(Debug, Clone, Default)]
pub(super) struct Format {
    pub(super) hyphens: Hyphens,
    /// The property that names the content type.
    pub(super) content_type_property: Option<String>,
}

/// A persistent message with these bytes.
pub(super) fn stored(id: &str, priority: Option<u8>, bytes: &[u8]) -> JmsMessage {
    let mut message = new(body(bytes, MessageType::Text), true, priority);
    message.properties = Some(Properties { message_id: Some(MessageId::from(id.to_owned())), ..Properties::default() });
    message
}

/// What an endpoint sends.
pub(super) fn outgoing(message: &Message, payload: &[u8], format: &Format) -> Result<JmsMessage, String> {
    let text = |name: &str| directive(message, name);
    let number = |name: &str| -> Result<Option<u32>, String> {
        let Some(text) = text(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| format!("the property `{name}` is not a number: `{text}`"))
    };
    let content_type = message.headers.get("Content-Type").unwrap_or_default();
    let body = match text("JMS_MESSAGE_TYPE").as_deref() {
        Some("JMS_BYTE_MESSAGE") => body(payload, MessageType::Bytes),
        Some("JMS_MAP_MESSAGE") => map_body(payload)?.ok_or_else(|| {
            format!("a map message needs the body <{MAP_ELEMENT}> of the namespace `{MAP_NAMESPACE}`")
        })?,
        Some("JMS_TEXT_MESSAGE") => body(payload, MessageType::Text),
        _ if content_type.starts_with("multipart/") || content_type.starts_with("application/octet-stream") => {
            body(payload, MessageType::Bytes)
        }
        _ => match map_body(payload)? {
            Some(map) => map,
            None => body(payload, MessageType::Text),
        },
    };
    let priority = number("JMS_PRIORITY")?.map(|priority| priority.min(9) as u8);
    let is_durable = !matches!(text("JMS_DELIVERY_MODE").as_deref(), Some("1" | "NON_PERSISTENT"));
    let mut made = new(body, is_durable, priority);
    if let Some(header) = &mut made.header {
        header.ttl = number("JMS_TIME_TO_LIVE")?.filter(|ttl| *ttl > 0);
    }
    if let Some(delay) = number("JMS_MESSAGE_DELAY")?.filter(|delay| *delay > 0) {
        annotate(&mut made, DELAY_ANNOTATION, Value::Long(i64::from(delay)));
    }
    made.properties = Some(Properties {
        message_id: Some(MessageId::from(format!("ID:{}", clock::uuid()))),
        subject: text("JMS_TYPE"),
        correlation_id: text("JMS_COORELATION_ID").map(MessageId::from),
        group_id: message.headers.get("JMSXGroupID").map(str::to_owned),
        group_sequence: message.headers.get("JMSXGroupSeq").and_then(|number| number.parse().ok()),
        ..Properties::default()
    });
    if let Some(address) = text("JMS_REPLY_TO") {
        set_reply_to(&mut made, address);
    }
    made.application_properties = Some(application_properties(&message.headers, content_type, format));
    Ok(made)
}

fn application_properties(headers: &Headers, content_type: &str, format: &Format) -> ApplicationProperties {
    let mut builder = ApplicationProperties::builder();
    for (name, value) in headers.iter() {
        let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        let is_http = HTTP_ONLY.iter().any(|known| known.eq_ignore_ascii_case(&name));
        if is_http || name.starts_with("JMS") || format.hyphens == Hyphens::Delete && name.contains('-') {
            continue;
        }
        let name = match format.hyphens {
            Hyphens::Replace => name.replace('-', "_DASHED_"),
            Hyphens::Keep | Hyphens::Delete => name.into_owned(),
        };
        builder = builder.insert(name, SimpleValue::String(value.into_owned()));
    }
    if let Some(property) = &format.content_type_property {
        builder = builder.insert(property.clone(), SimpleValue::String(content_type.to_owned()));
    }
    builder.build()
}

fn new(body: AmqpBody<Value>, is_durable: bool, priority: Option<u8>) -> JmsMessage {
    let kind = match &body {
        AmqpBody::Data(_) => BYTES_MESSAGE,
        AmqpBody::Value(AmqpValue(Value::Map(_))) => MAP_MESSAGE,
        _ => TEXT_MESSAGE,
    };
    let mut header = Header::builder().durable(is_durable).build();
    if let Some(priority) = priority {
        header.priority = Priority(priority);
    }
    let mut message = AmqpMessage {
        header: Some(header),
        delivery_annotations: None,
        message_annotations: None,
        properties: None,
        application_properties: None,
        body,
        footer: None,
    };
    annotate(&mut message, TYPE_ANNOTATION, Value::Byte(kind));
    message
}

fn annotate(message: &mut JmsMessage, name: &str, value: Value) {
    let annotations = message.message_annotations.get_or_insert_with(|| MessageAnnotations::builder().build());
    annotations.0.insert(name.into(), value);
}

/// The queue that a reply goes to.
pub(super) fn set_reply_to(message: &mut JmsMessage, address: String) {
    annotate(message, REPLY_TO_ANNOTATION, Value::Byte(QUEUE));
    message.properties.get_or_insert_default().reply_to = Some(address);
}

/// Text that is not UTF-8 is sent as bytes.
fn body(bytes: &[u8], kind: MessageType) -> AmqpBody<Value> {
    match std::str::from_utf8(bytes) {
        Ok(text) if kind == MessageType::Text => AmqpBody::Value(AmqpValue(Value::String(text.to_owned()))),
        _ => AmqpBody::Data(vec![Data(Binary::from(bytes.to_vec()))].into()),
    }
}

/// The body of a map message: the children of `<JMSMap>`, each a text. `None` when it is another element, or no XML.
fn map_body(bytes: &[u8]) -> Result<Option<AmqpBody<Value>>, String> {
    // Most messages are no maps, and are not parsed for it.
    if memchr::memmem::find(bytes, MAP_NAMESPACE.as_bytes()).is_none() {
        return Ok(None);
    }
    let Ok(document) = Document::parse(bytes.to_vec(), &ParseOptions::default()) else { return Ok(None) };
    let Some(root) = document.root_element() else { return Ok(None) };
    if document.local_name(root) != MAP_ELEMENT || document.namespace(root) != MAP_NAMESPACE {
        return Ok(None);
    }
    let mut map = OrderedMap::new();
    for child in document.children(root).filter(|child| document.is_element(*child)) {
        let value = Value::String(document.string_value(child).into_owned());
        map.insert(Value::String(document.local_name(child).to_owned()), value);
    }
    Ok(Some(AmqpBody::Value(AmqpValue(Value::Map(map)))))
}

/// The bytes of a message, and what kind it is.
pub(super) fn payload(body: AmqpBody<Value>) -> (Vec<u8>, MessageType) {
    match body {
        AmqpBody::Value(AmqpValue(Value::String(text))) => (text.into_bytes(), MessageType::Text),
        AmqpBody::Value(AmqpValue(Value::Binary(bytes))) => (bytes.into_vec(), MessageType::Bytes),
        AmqpBody::Value(AmqpValue(Value::Map(map))) => {
            let mut xml = format!("<{MAP_ELEMENT} xmlns=\"{MAP_NAMESPACE}\">").into_bytes();
            for (name, value) in map {
                let Value::String(name) = name else { continue };
                let name = element_name(&name);
                xml.extend(format!("<{name}>").into_bytes());
                escape_text(&mut xml, &value_text(&value));
                xml.extend(format!("</{name}>").into_bytes());
            }
            xml.extend(format!("</{MAP_ELEMENT}>").into_bytes());
            (xml, MessageType::Map)
        }
        AmqpBody::Value(AmqpValue(Value::Null)) | AmqpBody::Empty | AmqpBody::Sequence(_) => {
            (Vec::new(), MessageType::Text)
        }
        AmqpBody::Value(AmqpValue(value)) => (value_text(&value).into_bytes(), MessageType::Text),
        AmqpBody::Data(parts) => (parts.into_iter().flat_map(|data| data.0.into_vec()).collect(), MessageType::Bytes),
    }
}

/// A key of a map message as the name of an element: letters, digits, `_`, `-` and `.`.
fn element_name(key: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    let mut name: String = key.chars().map(|letter| if allowed(letter) { letter } else { '_' }).collect();
    if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        name.insert(0, '_');
    }
    name
}

/// A received message.
pub(super) struct Received {
    pub(super) message: Message,
    /// How often it was delivered before.
    pub(super) redeliveries: u32,
    pub(super) reply_to: Option<String>,
    /// What its reply has as the correlation identifier.
    pub(super) correlation: Option<String>,
}

/// The message of a delivery.
pub(super) fn received(from: JmsMessage, rules: &[Rule]) -> Received {
    let annotation = from.message_annotations.as_ref().and_then(|annotations| {
        let found = annotations.0.iter().find(|(name, _)| **name == TYPE_ANNOTATION.into());
        found.map(|(_, value)| value.clone())
    });
    let mut facts = Facts::default();
    let mut headers = Headers::new();
    let mut set = |name: &str, value: &str| {
        if is_field(name, value) {
            headers.set(name, value);
        }
    };
    for (name, value) in from.application_properties.into_iter().flat_map(|properties| properties.0) {
        // Artemis adds properties of its own.
        if name.starts_with("__HDR_") || name.starts_with("_AMQ") {
            continue;
        }
        let text = simple_text(&value);
        set(&name, &text);
        facts.properties.push((name, text));
    }
    let redeliveries = from.header.as_ref().map_or(0, |header| header.delivery_count);
    if let Some(header) = &from.header {
        set("JMS_PRIORITY", &header.priority.0.to_string());
        set("JMS_DELIVERY_MODE", if header.durable { "2" } else { "1" });
        set("JMS_REDELIVERED", if redeliveries > 0 { "true" } else { "false" });
    }
    let properties = from.properties.unwrap_or_default();
    let (id, correlation) =
        (properties.message_id.as_ref().map(id_text), properties.correlation_id.as_ref().map(id_text));
    let millis =
        |time: Option<fe2o3_amqp::types::primitives::Timestamp>| time.map(|time| time.milliseconds().to_string());
    for (name, value) in [
        ("JMS_MESSAGE_ID", id.clone()),
        ("JMS_COORELATION_ID", correlation.clone()),
        ("JMS_REPLY_TO", properties.reply_to.clone()),
        ("JMS_DESTINATION", properties.to),
        ("JMS_TYPE", properties.subject.clone()),
        ("JMS_EXPIRATION", millis(properties.absolute_expiry_time)),
        ("JMS_TIMESTAMP", millis(properties.creation_time)),
        ("JMSXGroupID", properties.group_id),
        ("JMSXGroupSeq", properties.group_sequence.map(|number| number.to_string())),
    ] {
        if let Some(value) = value {
            set(name, &value);
        }
    }
    let (bytes, kind) = payload(from.body);
    facts.jms_type = properties.subject;
    facts.content_type = properties.content_type.map(|symbol| symbol.0);
    facts.message_type = match (kind, annotation) {
        // Brokers send texts as bytes where the sender did.
        (MessageType::Bytes, Some(Value::Byte(TEXT_MESSAGE))) => MessageType::Text,
        (kind, _) => kind,
    };
    let found = content_type(rules, &facts);
    headers.set("Content-Type", if is_field("x", &found) { &found } else { "application/octet-stream" });
    Received {
        message: Message { headers, body: Body::bytes(bytes), method: Method::Post, ..Message::default() },
        redeliveries,
        reply_to: properties.reply_to,
        correlation: correlation.or(id),
    }
}

/// An identifier as text.
pub(super) fn id_text(id: &MessageId) -> String {
    match id {
        MessageId::String(text) => text.clone(),
        MessageId::Ulong(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

fn simple_text(value: &SimpleValue) -> String {
    match value {
        SimpleValue::String(text) => text.clone(),
        SimpleValue::Symbol(symbol) => symbol.0.clone(),
        SimpleValue::Bool(flag) => flag.to_string(),
        SimpleValue::Ubyte(number) => number.to_string(),
        SimpleValue::Ushort(number) => number.to_string(),
        SimpleValue::Uint(number) => number.to_string(),
        SimpleValue::Ulong(number) => number.to_string(),
        SimpleValue::Byte(number) => number.to_string(),
        SimpleValue::Short(number) => number.to_string(),
        SimpleValue::Int(number) => number.to_string(),
        SimpleValue::Long(number) => number.to_string(),
        SimpleValue::Float(number) => number.to_string(),
        SimpleValue::Double(number) => number.to_string(),
        SimpleValue::Char(letter) => letter.to_string(),
        _ => String::new(),
    }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(flag) => flag.to_string(),
        Value::Byte(number) => number.to_string(),
        Value::Short(number) => number.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Long(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Ulong(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Char(letter) => letter.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_message::{Form, Value as Property};

    fn default_rules() -> Vec<Rule> {
        vec![
            Rule::Property("contentType".into()),
            Rule::Bytes("application/octet-stream".into()),
            Rule::Text("text/plain".into()),
        ]
    }

    #[test]
    fn a_text_comes_back_as_it_was_sent() {
        let mut sent = Message::default();
        sent.headers.set("Content-Type", "application/xml");
        sent.headers.set("Producer", "MDM");
        sent.headers.set("JMSReserved", "x");
        sent.headers.set("JMSXGroupID", "g");
        sent.axis2.set("JMS_COORELATION_ID", Property::string("c1"));
        sent.axis2.set("JMS_TYPE", Property::string("order"));
        let format = Format { content_type_property: Some("contentType".into()), ..Format::default() };
        let made = outgoing(&sent, b"<a/>", &format).unwrap();
        assert!(made.header.as_ref().unwrap().durable);
        let Received { message, redeliveries, correlation, .. } = received(made, &default_rules());
        for (name, value) in [
            ("Producer", Some("MDM")),
            ("JMSReserved", None),
            ("JMSXGroupID", Some("g")),
            ("JMS_COORELATION_ID", Some("c1")),
            ("JMS_TYPE", Some("order")),
            ("Content-Type", Some("application/xml")),
        ] {
            assert_eq!(message.headers.get(name), value, "{name}");
        }
        assert_eq!((redeliveries, correlation.as_deref()), (0, Some("c1")));
        assert!(matches!(message.body.form(), Form::Bytes(bytes) if bytes == "<a/>"));
    }

    #[test]
    fn bytes_stay_bytes() {
        let made = stored("id", Some(3), &[0, 159]);
        assert!(made.body.is_data());
        let message = received(made, &default_rules()).message;
        assert_eq!(message.headers.get("Content-Type"), Some("application/octet-stream"));
        assert_eq!(message.headers.get("JMS_PRIORITY"), Some("3"));
    }

    #[test]
    fn a_map_is_an_element_with_a_child_for_each_key() {
        let xml = format!("<{MAP_ELEMENT} xmlns=\"{MAP_NAMESPACE}\"><a>1 &lt; 2</a><b/></{MAP_ELEMENT}>");
        let made = outgoing(&Message::default(), xml.as_bytes(), &Format::default()).unwrap();
        assert!(matches!(&made.body, AmqpBody::Value(AmqpValue(Value::Map(map))) if map.len() == 2));
        let message = received(made, &default_rules()).message;
        assert_eq!(message.headers.get("Content-Type"), Some("application/xml"));
        let expected = xml.replace("<b/>", "<b></b>");
        assert!(matches!(message.body.form(), Form::Bytes(bytes) if bytes == expected.as_bytes()));
        let mut sent = Message::default();
        sent.axis2.set("JMS_MESSAGE_TYPE", Property::string("JMS_MAP_MESSAGE"));
        assert!(outgoing(&sent, b"<a/>", &Format::default()).unwrap_err().contains("JMSMap"));
    }

    #[test]
    fn hyphens_are_kept_replaced_or_deleted() {
        let mut sent = Message::default();
        sent.headers.set("X-Order", "7");
        let name = |hyphens| {
            let made = outgoing(&sent, b"", &Format { hyphens, ..Format::default() }).unwrap();
            made.application_properties.unwrap().0.into_iter().map(|(name, _)| name).next()
        };
        assert_eq!(name(Hyphens::Keep).as_deref(), Some("X-Order"));
        assert_eq!(name(Hyphens::Replace).as_deref(), Some("X_DASHED_Order"));
        assert_eq!(name(Hyphens::Delete), None);
    }

    #[test]
    fn keys_of_maps_are_names_of_elements() {
        assert_eq!(element_name("a b<"), "a_b_");
        assert_eq!(element_name("1"), "_1");
        assert_eq!(element_name(""), "_");
    }
}
