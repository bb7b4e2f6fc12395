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
    pub fn output(&mut self, _conversion: &Conversion) -> Result<Output, BodyError> {
        Ok(Output { form: Form::Bytes(Bytes::new()), content_type: None })
    }
}
