//! Messages of flows as messages of AMQP 0-9-1, and the other way round.

use lapin::BasicProperties;
use lapin::message::Delivery;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use penstock_engine::clock;
use penstock_message::{Body, Headers, Message, Method};

use super::topology::name;
use crate::broker::body::{directive, is_field};

/// Messages survive a restart of the broker.
pub(super) const PERSISTENT: u8 = 2;

/// The content type of a message whose sender names none.
pub(super) const DEFAULT_CONTENT_TYPE: &str = "text/plain";

/// The header in which Micro Integrator sends the action of SOAP.
const SOAP_ACTION: &str = "SOAP_ACTION";

/// Fields of HTTP that say nothing about a message in a queue.
const HTTP_ONLY: [&str; 7] = [
    "Content-Type",
    "Content-Encoding",
    "Content-Length",
    "Host",
    "Accept-Encoding",
    "SOAPAction",
    "Transfer-Encoding",
];

/// The properties and headers of a message that leaves.
pub(super) fn properties(message: &Message) -> Result<BasicProperties, String> {
    let text = |property: &str| directive(message, property).map(|text| name(&text)).transpose();
    let id = ShortString::from(clock::uuid());
    let correlation = text("rabbitmq.message.correlation.id")?.unwrap_or_else(|| id.clone());
    let content_type = match text("rabbitmq.message.content.type")? {
        Some(given) => given,
        None => name(message.headers.get("Content-Type").unwrap_or(DEFAULT_CONTENT_TYPE))?,
    };
    let mut properties = BasicProperties::default()
        .with_delivery_mode(PERSISTENT)
        .with_message_id(id)
        .with_correlation_id(correlation)
        .with_content_type(content_type)
        .with_timestamp((clock::epoch_ms() / 1000) as u64)
        .with_headers(headers(&message.headers)?);
    let encoding = match text("rabbitmq.message.content.encoding")? {
        Some(given) => Some(given),
        None => message.headers.get("Content-Encoding").map(name).transpose()?,
    };
    if let Some(encoding) = encoding {
        properties = properties.with_content_encoding(encoding);
    }
    if let Some(expiration) = text("rabbitmq.message.expiration")? {
        properties = properties.with_expiration(expiration);
    }
    if let Some(user) = text("rabbitmq.message.user.id")? {
        properties = properties.with_user_id(user);
    }
    if let Some(app) = text("rabbitmq.message.app.id")? {
        properties = properties.with_app_id(app);
    }
    if let Some(cluster) = text("rabbitmq.message.cluster.id")? {
        properties = properties.with_cluster_id(cluster);
    }
    if let Some(kind) = text("rabbitmq.message.type")? {
        properties = properties.with_type(kind);
    }
    if let Some(priority) = directive(message, "rabbitmq.message.priority") {
        let wrong = || format!("the property `rabbitmq.message.priority` is not a number from 0 to 255: `{priority}`");
        properties = properties.with_priority(priority.parse().map_err(|_| wrong())?);
    }
    Ok(properties)
}

fn headers(fields: &Headers) -> Result<FieldTable, String> {
    let mut table = FieldTable::default();
    let mut insert = |key: &str, value: &[u8]| -> Result<(), String> {
        table.insert(name(key)?, AMQPValue::LongString(value.into()));
        Ok(())
    };
    if let Some(action) = fields.get("SOAPAction") {
        insert(SOAP_ACTION, action.trim_matches('"').as_bytes())?;
    }
    for (key, value) in fields.iter() {
        let key = String::from_utf8_lossy(key);
        if !HTTP_ONLY.iter().any(|known| known.eq_ignore_ascii_case(&key)) {
            insert(&key, value)?;
        }
    }
    Ok(table)
}

/// The message of a delivery. `content_type`: of the parameters, which override the sender's.
pub(super) fn message(delivery: &mut Delivery, content_type: Option<&str>) -> Message {
    let properties = &delivery.properties;
    let mut headers = Headers::new();
    for (key, value) in properties.headers().iter().flat_map(|table| table.inner()) {
        // A name or value that no transport could carry on is left behind.
        if let Some(text) = text(value).filter(|text| is_field(key.as_str(), text)) {
            headers.append(key.as_str(), text);
        }
    }
    if let Some(action) = headers.get(SOAP_ACTION).map(|action| format!("\"{action}\"")) {
        headers.set("SOAPAction", action);
    }
    for (key, value) in [
        ("rabbitmq.message.correlation.id", properties.correlation_id()),
        ("rabbitmq.message.id", properties.message_id()),
        ("RABBITMQ_REPLY_TO", properties.reply_to()),
        ("Content-Encoding", properties.content_encoding()),
    ] {
        if let Some(value) = value.as_ref().map(ShortString::as_str).filter(|value| is_field(key, value)) {
            headers.set(key, value);
        }
    }
    // A character encoding is what Micro Integrator writes there; only those of HTTP decode a body.
    let decodes =
        |coding: &str| ["gzip", "x-gzip", "deflate", "identity"].contains(&coding.to_ascii_lowercase().as_str());
    if !headers.get("Content-Encoding").is_some_and(decodes) {
        headers.remove("Content-Encoding");
    }
    let sent = properties.content_type().as_ref().map(ShortString::as_str).filter(|text| is_field("x", text));
    headers.set("Content-Type", content_type.or(sent).unwrap_or(DEFAULT_CONTENT_TYPE));
    Message {
        headers,
        body: Body::bytes(std::mem::take(&mut delivery.data)),
        method: Method::Post,
        ..Message::default()
    }
}

/// Whether the parameters or the sender say what a message is.
pub(super) fn has_content_type(delivery: &Delivery, content_type: Option<&str>) -> bool {
    content_type.is_some() || delivery.properties.content_type().is_some()
}

/// A value as the text that Micro Integrator makes of it; tables and lists have none that a header could carry.
fn text(value: &AMQPValue) -> Option<String> {
    Some(match value {
        AMQPValue::Boolean(value) => value.to_string(),
        AMQPValue::ShortShortInt(value) => value.to_string(),
        AMQPValue::ShortShortUInt(value) => value.to_string(),
        AMQPValue::ShortInt(value) => value.to_string(),
        AMQPValue::ShortUInt(value) => value.to_string(),
        AMQPValue::LongInt(value) => value.to_string(),
        AMQPValue::LongUInt(value) => value.to_string(),
        AMQPValue::LongLongInt(value) => value.to_string(),
        AMQPValue::Float(value) => value.to_string(),
        AMQPValue::Double(value) => value.to_string(),
        AMQPValue::Timestamp(value) => value.to_string(),
        AMQPValue::ShortString(value) => value.as_str().to_owned(),
        AMQPValue::LongString(value) => String::from_utf8_lossy(value.as_bytes()).into_owned(),
        _ => return None,
    })
}

/// How often a message was dead-lettered, after the broker's header `x-death`.
pub(super) fn dead_lettered(delivery: &Delivery, queue: &str) -> u64 {
    let table = delivery.properties.headers().as_ref();
    let Some(AMQPValue::FieldArray(deaths)) = table.and_then(|table| table.inner().get("x-death")) else { return 0 };
    let counts = deaths.as_slice().iter().filter_map(|death| {
        let AMQPValue::FieldTable(death) = death else { return None };
        let of_queue = death.inner().get("queue").and_then(text).is_none_or(|name| name == queue);
        let count = death.inner().get("count").and_then(text).and_then(|text| text.parse::<u64>().ok());
        count.filter(|_| of_queue)
    });
    counts.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_message::{Form, Value};

    fn delivery(properties: BasicProperties, data: &[u8]) -> Delivery {
        let mut delivery = Delivery::mock(1, "".into(), "q".into(), false, data.to_vec());
        delivery.properties = properties;
        delivery
    }

    #[test]
    fn a_message_comes_back_as_it_was_sent() {
        let mut sent = Message { body: Body::bytes("<a/>"), ..Message::default() };
        sent.headers.set("Content-Type", "application/xml");
        sent.headers.set("SOAPAction", "\"urn:x\"");
        sent.headers.set("X-Order", "7");
        sent.axis2.set("rabbitmq.message.correlation.id", Value::string("c1"));
        sent.properties.set("rabbitmq.message.priority", Value::Integer(3));
        let properties = properties(&sent).unwrap();
        assert_eq!(*properties.delivery_mode(), Some(PERSISTENT));
        assert_eq!(*properties.priority(), Some(3));
        let received = message(&mut delivery(properties, b"<a/>"), None);
        for (name, value) in [
            ("Content-Type", "application/xml"),
            ("SOAPAction", "\"urn:x\""),
            ("X-Order", "7"),
            ("rabbitmq.message.correlation.id", "c1"),
        ] {
            assert_eq!(received.headers.get(name), Some(value), "{name}");
        }
        assert!(matches!(received.body.form(), Form::Bytes(bytes) if bytes == "<a/>"));
    }

    #[test]
    fn the_parameter_counts_before_the_content_type_of_the_message() {
        let properties = || BasicProperties::default().with_content_type("text/xml".into());
        let content_type = |properties, parameter| {
            let received = message(&mut delivery(properties, b"x"), parameter);
            received.headers.get("Content-Type").map(str::to_owned)
        };
        assert_eq!(content_type(properties(), Some("application/json")).as_deref(), Some("application/json"));
        assert_eq!(content_type(properties(), None).as_deref(), Some("text/xml"));
        assert_eq!(content_type(BasicProperties::default(), None).as_deref(), Some("text/plain"));
    }

    #[test]
    fn headers_that_would_break_others_are_left_behind() {
        let mut table = FieldTable::default();
        table.insert("ok".into(), AMQPValue::LongInt(-1));
        table.insert("bad name".into(), AMQPValue::LongString("x".into()));
        table.insert("split".into(), AMQPValue::LongString("a\r\nb: c".into()));
        table.insert("table".into(), AMQPValue::FieldTable(FieldTable::default()));
        let received = message(&mut delivery(BasicProperties::default().with_headers(table), b""), None);
        let names: Vec<_> =
            received.headers.iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect();
        assert_eq!(names, ["ok", "Content-Type"]);
        assert_eq!(received.headers.get("ok"), Some("-1"));
    }

    #[test]
    fn deaths_count_for_their_queue() {
        let death = |queue: &str, count: i64| {
            let mut table = FieldTable::default();
            table.insert("queue".into(), AMQPValue::LongString(queue.into()));
            table.insert("count".into(), AMQPValue::LongLongInt(count));
            AMQPValue::FieldTable(table)
        };
        let mut table = FieldTable::default();
        table.insert("x-death".into(), AMQPValue::FieldArray(vec![death("retry", 9), death("q", 2)].into()));
        let delivery = delivery(BasicProperties::default().with_headers(table), b"");
        assert_eq!(dead_lettered(&delivery, "q"), 2);
        assert_eq!(dead_lettered(&delivery, "other"), 0);
    }
}
