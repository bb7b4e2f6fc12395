//! Builders and formatters: between the bytes of a body and its forms.

use std::sync::Arc;

use bytes::Bytes;

use crate::{BodyError, Envelope, Form, Message};

/// How bodies are converted: limits and the flags of the configuration.
#[derive(Debug, Clone, Default)]
pub struct Conversion {}

/// What goes out: the bytes (or the untouched stream) and the Content-Type to say with them.
#[derive(Debug)]
pub struct Output {
    /// `Empty`, `Bytes` or `Stream`.
    pub form: Form,
    /// The Content-Type; `None` when the message's own header stays as it is.
    pub content_type: Option<String>,
    /// Whether a Content-Encoding was taken off the body.
    pub decoded: bool,
    /// Whether the body is a SOAP fault; it goes to a client with status 500.
    pub soap_fault: bool,
}

/// In which shape a body goes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shape {
    /// As its media type says (`messageType`, else Content-Type).
    #[default]
    Same,
    /// A SOAP 1.1 envelope.
    Soap11,
    /// A SOAP 1.2 envelope.
    Soap12,
    /// The payload without an envelope, as `application/xml`.
    Pox,
    /// To a client: as its media type says; a SOAP fault goes to a client that did not speak SOAP
    /// as plain XML.
    Reply,
}

impl Message {
    /// The body as a SOAP envelope; plain XML and JSON are wrapped in a synthesized one. Parses on
    /// first use and keeps the view. The body must not be a stream any more.
    pub fn xml(&mut self, _conversion: &Conversion) -> Result<Arc<Envelope>, BodyError> {
        Err(BodyError::Unsupported { from: "bytes", wanted: "XML" })
    }

    /// The body as JSON; XML is mapped.
    pub fn json(&mut self, _conversion: &Conversion) -> Result<Arc<serde_json::Value>, BodyError> {
        Err(BodyError::Unsupported { from: "bytes", wanted: "JSON" })
    }

    /// The body in the form its media type asks for, ready to be sent. Untouched bytes and streams
    /// leave as they came.
    ///
    /// Takes streams out of the message; other forms stay.
    pub fn output(&mut self, _conversion: &Conversion, _shape: Shape) -> Result<Output, BodyError> {
        Ok(Output { form: Form::Bytes(Bytes::new()), content_type: None, decoded: false, soap_fault: false })
    }
}
