//! The reply of a backend that does not replace the message: its body as a value, and the message as it was.

use penstock_engine::{Direction, Exchange, Fault};
use penstock_message::{Body, Form, Headers, MediaType, Properties, Value};

/// The parts of a message that a reply replaces.
pub struct Kept {
    headers: Headers,
    body: Body,
    axis2: Properties,
    direction: Direction,
}

impl Kept {
    /// Copies them from the message at hand, whose body is not a stream.
    pub fn from_exchange(exchange: &Exchange) -> Kept {
        let message = &exchange.message;
        Kept {
            headers: message.headers.clone(),
            body: message.body.share().unwrap_or_default(),
            axis2: message.axis2.clone(),
            direction: exchange.direction,
        }
    }

    /// Puts them back; the status stays that of the reply.
    pub fn restore(self, exchange: &mut Exchange) {
        let message = &mut exchange.message;
        message.headers = self.headers;
        message.body = self.body;
        message.axis2 = self.axis2;
        exchange.direction = self.direction;
    }
}

/// The body of the message as JSON, nodes or text, by its media type.
pub fn reply_value(exchange: &mut Exchange) -> Result<Value, Fault> {
    Ok(match exchange.message.source_media() {
        MediaType::Json if !exchange.message.body.is_empty() => Value::Json(exchange.json()?),
        kind if kind.is_xml() && !exchange.message.body.is_empty() => {
            let envelope = exchange.xml()?;
            let nodes = envelope.payload().into_iter().collect();
            Value::Xml(envelope.document.clone(), nodes)
        }
        _ => match exchange.message.body.form() {
            Form::Text(text) => Value::String(text.clone()),
            Form::Bytes(bytes) => Value::string(String::from_utf8_lossy(bytes)),
            _ => Value::string(""),
        },
    })
}
