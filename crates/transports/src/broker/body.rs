//! The body of a message that leaves over a broker, as bytes, and the properties that direct its transport.

use std::future::poll_fn;

use bytes::Bytes;
use penstock_engine::Fault;
use penstock_message::{Body, Conversion, Form, Headers, Message, Shape};

/// Brokers take messages whole; RabbitMQ's own limit is this.
const BYTES_MAX: usize = 128 << 20;

/// Waits for the whole body.
pub(crate) async fn whole(mut body: Body) -> Result<Bytes, Fault> {
    if body.is_stream() {
        poll_fn(|cx| body.poll_pull(cx, usize::MAX, BYTES_MAX)).await?;
    }
    match body.take() {
        Form::Bytes(bytes) => Ok(bytes),
        Form::Text(text) => Ok(Bytes::copy_from_slice(text.as_bytes())),
        Form::Empty => Ok(Bytes::new()),
        Form::Stream { head, .. } => Ok(head),
        Form::Xml(_) | Form::Json(_) => Err(Fault::new("the body was not written before it was sent")),
    }
}

/// The body of a buffered message in the form of its content type, and its headers.
pub(crate) fn written(message: &Message, conversion: &Conversion) -> Result<(Bytes, Headers), Fault> {
    let mut copy = message.copy();
    let output = copy.output(conversion, Shape::Same)?;
    let mut headers = message.headers.clone();
    if let Some(content_type) = &output.content_type {
        headers.set("Content-Type", content_type);
    }
    if output.decoded {
        headers.remove("Content-Encoding");
    }
    let bytes = match output.form {
        Form::Bytes(bytes) => bytes,
        Form::Text(text) => Bytes::copy_from_slice(text.as_bytes()),
        _ => Bytes::new(),
    };
    Ok((bytes, headers))
}

/// A property that directs the transport: in the axis2 scope, where Micro Integrator looks for it, or the default one.
pub(crate) fn directive(message: &Message, name: &str) -> Option<String> {
    let value = message.axis2.get(name).or_else(|| message.properties.get(name))?;
    Some(value.to_text().into_owned()).filter(|text| !text.is_empty())
}

/// Whether a name and a value can be a header field.
pub(crate) fn is_field(name: &str, value: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token) && !value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0))
}
