//! Bytes to forms: a body is parsed by its media type when it is first read.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use penstock_json::mapping::{self, Unwritten};
use penstock_json::text::TOO_MANY_VALUES;
use penstock_xml::{DoctypePolicy, Document, Encoding, ParseOptions, TreeBuilder, XmlErrorKind};
use serde_json::Value;

use super::{Conversion, PAYLOAD_NAMESPACE, charset, encoding, form, multipart};
use crate::{BodyError, Envelope, Form, MediaType, Message, Method, SoapVersion};

impl Message {
    /// The body as a SOAP envelope; plain XML and JSON are wrapped in a synthesized one. Parses on
    /// first use and keeps the view. The body must not be a stream any more.
    pub fn xml(&mut self, conversion: &Conversion) -> Result<Arc<Envelope>, BodyError> {
        if let Some(envelope) = self.body.view_xml() {
            return Ok(envelope.clone());
        }
        let envelope = Arc::new(match self.body.form() {
            Form::Empty => wrapped(TreeBuilder::new(), |_| Ok(()))?,
            Form::Bytes(_) => self.bytes_as_xml(conversion)?,
            Form::Json(value) => json_as_xml(value, conversion)?,
            Form::Text(text) => text_as_xml(text)?,
            Form::Stream { .. } => return Err(BodyError::Unsupported { from: "a stream", wanted: "XML" }),
            Form::Xml(envelope) => return Ok(envelope.clone()),
        });
        if envelope.soap != SoapVersion::None {
            // A reply's envelope says nothing of the client, but by then this is known.
            self.client_spoke_soap.get_or_insert(true);
        }
        self.body.cache_xml(envelope.clone());
        Ok(envelope)
    }

    /// The body as JSON; XML is mapped. A body that is empty is none. What is not quite JSON is taken for what is meant, as
    /// Micro Integrator does for every JSONPath; made XML of, or checked, it is malformed.
    pub fn json(&mut self, conversion: &Conversion) -> Result<Arc<Value>, BodyError> {
        if let Some(value) = self.body.forgiven() {
            return Ok(value.clone());
        }
        self.strict_json(conversion).or_else(|strict| {
            if matches!(strict, BodyError::TooManyNodes { .. }) {
                return Err(strict);
            }
            let value = Arc::new(self.forgiven_json(conversion).ok_or(strict)?);
            self.body.cache_forgiven(value.clone());
            Ok(value)
        })
    }

    /// As [`Message::json`], and strict: for validation of a body that others read.
    pub fn strict_json(&mut self, conversion: &Conversion) -> Result<Arc<Value>, BodyError> {
        if let Some(value) = self.body.view_json() {
            return Ok(value.clone());
        }
        let value = match self.body.form() {
            Form::Empty => return Err(BodyError::Unsupported { from: "empty", wanted: "JSON" }),
            Form::Stream { .. } => return Err(BodyError::Unsupported { from: "a stream", wanted: "JSON" }),
            Form::Bytes(_) if self.source_media() == MediaType::Json => self.bytes_as_json(conversion)?,
            Form::Text(text) if self.media_type() == MediaType::Json => parse_json(text, conversion)?,
            _ => {
                let envelope = self.xml(conversion)?;
                let payload = envelope.payload().ok_or(BodyError::Unsupported { from: "empty", wanted: "JSON" })?;
                mapping::to_json(&envelope.document, payload, &conversion.mapping).map_err(unmapped)?
            }
        };
        let value = Arc::new(value);
        self.body.cache_json(value.clone());
        Ok(value)
    }

    fn forgiven_json(&self, conversion: &Conversion) -> Option<Value> {
        match self.body.form() {
            Form::Bytes(_) if self.source_media() == MediaType::Json => {
                let bytes = self.decoded_bytes(conversion).ok()?;
                penstock_json::lenient::parse(&charset::decode(&bytes, self.source_charset()).ok()?)
            }
            Form::Text(text) if self.media_type() == MediaType::Json => penstock_json::lenient::parse(text),
            _ => None,
        }
    }

    /// The body as text: what was sent for bytes, the payload for XML (the text alone when the
    /// payload stands for text), JSON as it is written.
    pub fn text(&mut self, conversion: &Conversion) -> Result<Arc<str>, BodyError> {
        match self.body.form() {
            Form::Empty => Ok("".into()),
            Form::Text(text) => Ok(text.clone()),
            Form::Json(value) => Ok(penstock_json::text::write(value).into()),
            Form::Xml(envelope) => Ok(super::format::payload_text(envelope).into()),
            Form::Bytes(_) => {
                let bytes = self.decoded_bytes(conversion)?;
                charset::decode(&bytes, self.source_charset()).map(|text| text.as_ref().into())
            }
            Form::Stream { .. } => Err(BodyError::Unsupported { from: "a stream", wanted: "text" }),
        }
    }

    /// Reads bytes as their media type and encoding say, and keeps the view where there is one. What a mediator made is as
    /// it says already.
    pub fn read_as_sent(&mut self, conversion: &Conversion) -> Result<(), BodyError> {
        if !matches!(self.body.form(), Form::Bytes(_)) {
            return Ok(());
        }
        match self.source_media() {
            MediaType::Json => self.json(conversion).map(drop),
            MediaType::Text => self.text(conversion).map(drop),
            MediaType::Binary => self.decoded_bytes(conversion).map(drop),
            MediaType::Multipart => self.read_root_part(conversion),
            _ => self.xml(conversion).map(drop),
        }
    }

    /// Only the root part of a multipart body is read, and only when it is XML.
    fn read_root_part(&mut self, conversion: &Conversion) -> Result<(), BodyError> {
        let bytes = self.decoded_bytes(conversion)?;
        let root = multipart::root_part(&bytes, self.source_type().unwrap_or_default())?;
        match MediaType::parse(root.content_type.as_deref().unwrap_or_default()) {
            media if media.is_xml() => self.xml(conversion).map(drop),
            MediaType::Json => parse_json(&charset::decode(&root.content, None)?, conversion).map(drop),
            _ => Ok(()),
        }
    }

    /// The child elements of the payload as the fields of a query.
    pub fn query_fields(&mut self, conversion: &Conversion) -> Result<String, BodyError> {
        let envelope = self.xml(conversion)?;
        let fields = envelope.payload().map(|payload| form::format(&envelope.document, payload)).unwrap_or_default();
        // A form writes a blank as `+`, and a plus sign as an escape.
        Ok(fields.replace('+', "%20"))
    }

    /// Sets what the body is to be sent as (`messageType`). The Content-Type follows, as it does in
    /// Micro Integrator; what the bytes that are here were sent as is remembered.
    pub fn set_message_type(&mut self, content_type: &str) {
        self.remember_source();
        self.axis2.set("messageType", crate::Value::string(content_type));
        self.headers.set("Content-Type", content_type);
    }

    /// Keeps what the body's bytes were sent as. To be called before the Content-Type header changes.
    pub fn remember_source(&mut self) {
        self.client_spoke_soap = Some(self.speaks_soap());
        if matches!(self.body.form(), Form::Bytes(_) | Form::Stream { .. }) && self.body.source_type().is_none() {
            let content_type: Option<Arc<str>> = self.content_type().map(Into::into);
            self.body.set_source_type(content_type.unwrap_or_else(|| "".into()));
        }
    }

    /// Whether the client of this exchange speaks SOAP: an action (SOAP 1.1), the media type of SOAP
    /// 1.2, or an envelope. Without any of them the client is a REST client, also with XML.
    pub fn speaks_soap(&self) -> bool {
        self.client_spoke_soap.unwrap_or_else(|| {
            // An envelope that was read has been noticed then; one that a mediator made says nothing.
            self.headers.contains("SOAPAction")
                || match self.source_media() {
                    MediaType::SoapXml => true,
                    MediaType::TextXml => root_name(&self.body.available()) == Some("Envelope"),
                    _ => false,
                }
        })
    }

    /// The Content-Type the bytes came with.
    pub(super) fn source_type(&self) -> Option<&str> {
        self.body.source_type().or_else(|| self.content_type()).filter(|content_type| !content_type.is_empty())
    }

    pub(super) fn source_charset(&self) -> Option<&str> {
        self.source_type().and_then(MediaType::charset)
    }

    /// How the bytes are to be read.
    pub fn source_media(&self) -> MediaType {
        match self.source_type() {
            Some(content_type) => MediaType::parse(content_type),
            None if matches!(self.method, Method::Get | Method::Delete) => MediaType::Form,
            None => MediaType::Binary,
        }
    }

    /// The bytes of the body without their `Content-Encoding` (RFC 9110 §8.4); none of a body in another form.
    pub fn decoded_bytes(&self, conversion: &Conversion) -> Result<Bytes, BodyError> {
        let Form::Bytes(bytes) = self.body.form() else { return Ok(Bytes::new()) };
        match self.headers.get("Content-Encoding") {
            Some(encodings) => encoding::decode(bytes, encodings, conversion.decoded_bytes_max),
            None => Ok(bytes.clone()),
        }
    }

    fn bytes_as_json(&self, conversion: &Conversion) -> Result<Value, BodyError> {
        let bytes = self.decoded_bytes(conversion)?;
        parse_json(&charset::decode(&bytes, self.source_charset())?, conversion)
    }

    fn bytes_as_xml(&self, conversion: &Conversion) -> Result<Envelope, BodyError> {
        let bytes = self.decoded_bytes(conversion)?;
        let content_type = self.source_type().unwrap_or_default();
        let media = match self.source_media() {
            MediaType::Binary => sniffed(&bytes, content_type),
            media => media,
        };
        match media {
            MediaType::TextXml | MediaType::SoapXml => parse_xml(bytes, content_type, true, conversion),
            MediaType::Xml => parse_xml(bytes, content_type, false, conversion),
            MediaType::Json => {
                if let Some(value) = self.body.view_json() {
                    return json_as_xml(value, conversion);
                }
                json_text_as_xml(&charset::decode(&bytes, self.source_charset())?, conversion)
            }
            MediaType::Form => {
                let text = charset::decode(&bytes, self.source_charset())?;
                wrapped(TreeBuilder::new(), |builder| form::build(builder, &text).map_err(BodyError::Malformed))
            }
            MediaType::MultipartForm => {
                wrapped(TreeBuilder::new(), |builder| multipart::build(builder, &bytes, content_type))
            }
            MediaType::Multipart => {
                let part = multipart::root_part(&bytes, content_type)?;
                parse_xml(part.content, part.content_type.as_deref().unwrap_or_default(), true, conversion)
            }
            MediaType::Text => text_as_xml(&charset::decode(&bytes, self.source_charset())?),
            MediaType::Binary => wrapped(TreeBuilder::new(), |builder| {
                builder.start_element("", "binary", PAYLOAD_NAMESPACE);
                builder.text(&STANDARD.encode(&bytes));
                builder.end_element();
                Ok(())
            }),
        }
    }
}

/// What bytes are whose Content-Type says nothing: XML when they begin like it, as Micro Integrator tries.
fn sniffed(bytes: &[u8], content_type: &str) -> MediaType {
    let opaque = content_type.starts_with("application/octet-stream");
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'<') if !opaque => MediaType::TextXml,
        Some(b'{' | b'[') if content_type.is_empty() => MediaType::Json,
        _ => MediaType::Binary,
    }
}

fn json_as_xml(value: &Value, conversion: &Conversion) -> Result<Envelope, BodyError> {
    wrapped(TreeBuilder::new(), |builder| mapping::to_xml(value, builder, &conversion.mapping).map_err(unmapped))
}

/// As [`json_as_xml`], from the text.
fn json_text_as_xml(text: &str, conversion: &Conversion) -> Result<Envelope, BodyError> {
    let limit = conversion.json_values_max;
    let mut unwritten = None;
    let envelope = wrapped(TreeBuilder::new(), |builder| {
        unwritten = mapping::text_to_xml(text, limit, builder, &conversion.mapping).err();
        Ok(())
    })?;
    match unwritten {
        None => Ok(envelope),
        Some(Unwritten::NeedsValue) => json_as_xml(&parse_json(text, conversion)?, conversion),
        Some(Unwritten::TooManyValues) => Err(BodyError::TooManyNodes { limit }),
        Some(Unwritten::Mapping(error)) => Err(unmapped(error)),
    }
}

fn text_as_xml(text: &str) -> Result<Envelope, BodyError> {
    wrapped(TreeBuilder::new(), |builder| {
        builder.start_element("", "text", PAYLOAD_NAMESPACE);
        builder.text(text);
        builder.end_element();
        Ok(())
    })
}

/// A synthesized envelope around what `fill` adds.
fn wrapped(
    mut builder: TreeBuilder,
    fill: impl FnOnce(&mut TreeBuilder) -> Result<(), BodyError>,
) -> Result<Envelope, BodyError> {
    let namespace = SoapVersion::None.namespace();
    builder.start_element("soapenv", "Envelope", namespace);
    builder.start_element("soapenv", "Body", namespace);
    fill(&mut builder)?;
    let envelope = Envelope::find(Arc::new(builder.finish()));
    let envelope = envelope.ok_or_else(|| BodyError::Malformed("the envelope is not one".into()))?;
    Ok(Envelope { soap: SoapVersion::None, ..envelope })
}

/// `soap` says whether an envelope in the bytes is the message's own; otherwise it is payload.
fn parse_xml(bytes: Bytes, content_type: &str, soap: bool, conversion: &Conversion) -> Result<Envelope, BodyError> {
    let options = ParseOptions {
        limits: conversion.xml_limits,
        encoding: MediaType::charset(content_type).and_then(Encoding::from_name),
        // SOAP 1.1 §3 and SOAP 1.2 part 1 §5 forbid it; an envelope that has one is up to something.
        doctype: if soap { DoctypePolicy::Refuse } else { DoctypePolicy::Read },
        ..ParseOptions::default()
    };
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return wrapped(TreeBuilder::new(), |_| Ok(()));
    }
    if soap && root_name(&bytes).is_none_or(|name| name == "Envelope") {
        let document = Arc::new(Document::parse(bytes, &options).map_err(malformed)?);
        if let Some(envelope) = Envelope::find(document.clone()) {
            return Ok(envelope);
        }
        return wrapped(TreeBuilder::with_capacity(document.node_count() + 4), |builder| {
            builder.copy_children(&document, Document::ROOT);
            Ok(())
        });
    }
    let nodes = bytes.len() / 12;
    wrapped(TreeBuilder::with_capacity(nodes), |builder| builder.append_parsed(bytes, &options).map_err(malformed))
}

/// The local name of the outermost element, when it can be seen without parsing.
pub(super) fn root_name(bytes: &[u8]) -> Option<&str> {
    let mut rest = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    loop {
        rest = rest.trim_ascii_start();
        let skip_to = |end: &[u8]| memchr::memmem::find(rest, end).map(|at| &rest[at + end.len()..]);
        rest = match rest {
            [b'<', b'?', ..] => skip_to(b"?>")?,
            [b'<', b'!', b'-', b'-', ..] => skip_to(b"-->")?,
            [b'<', b'!', ..] => return None,
            [b'<', name @ ..] => {
                let end = name.iter().position(|byte| matches!(byte, b'>' | b'/') || byte.is_ascii_whitespace())?;
                let name = std::str::from_utf8(&name[..end]).ok()?;
                return Some(name.rsplit(':').next().unwrap_or(name));
            }
            _ => return None,
        };
    }
}

fn parse_json(text: &str, conversion: &Conversion) -> Result<Value, BodyError> {
    let limit = conversion.json_values_max;
    penstock_json::text::parse_within(text, limit).map_err(|error| match error.message {
        TOO_MANY_VALUES => BodyError::TooManyNodes { limit },
        _ => BodyError::Malformed(format!("{}:{}: the body is not JSON: {}", error.line, error.column, error.message)),
    })
}

fn malformed(error: penstock_xml::XmlError) -> BodyError {
    match error.kind {
        XmlErrorKind::TooManyNodes { limit } => BodyError::TooManyNodes { limit },
        _ => BodyError::Malformed(format!("{}: the body is not XML: {}", error.position, error.message)),
    }
}

pub(super) fn unmapped(error: mapping::MappingError) -> BodyError {
    BodyError::Malformed(format!("the body cannot be mapped between JSON and XML: {error}"))
}
