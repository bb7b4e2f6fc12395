//! Forms to bytes, by media type and shape. Unchanged bytes are forwarded.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use penstock_json::mapping;
use penstock_xml::{Document, NodeId, TreeBuilder, WriteOptions, escape_attribute, to_vec};

use super::build::{root_name, unmapped};
use super::{Conversion, Output, PAYLOAD_NAMESPACE, Shape, form, multipart, soap};
use crate::{BodyError, Envelope, Form, Headers, MediaType, Message, SoapVersion};

impl Message {
    /// The body in the form of its media type, ready to be sent. Untouched bytes and streams
    /// leave as they came. Reads the Content-Type and Content-Encoding headers, so they must still
    /// be there.
    ///
    /// Takes streams out of the message; other forms stay.
    pub fn output(&mut self, conversion: &Conversion, shape: Shape) -> Result<Output, BodyError> {
        let header = self.axis2.get("ContentType").map(|value| value.to_text().into_owned());
        let mut output = match self.body.form() {
            Form::Empty if !matches!(shape, Shape::Soap11 | Shape::Soap12) => {
                Output { trailers: self.trailers(), ..Output::plain(Form::Empty, None) }
            }
            Form::Stream { .. } | Form::Bytes(_) if self.leaves_untouched(shape) => self.untouched(),
            _ => self.converted(conversion, shape)?,
        };
        if header.is_some() && !matches!(output.form, Form::Empty) {
            output.content_type = header;
        }
        if shape == Shape::Reply && !matches!(output.form, Form::Empty) && self.was_read() {
            self.name_charset(&mut output);
        }
        Ok(output)
    }

    /// Whether a mediator made the body or looked into it.
    fn was_read(&self) -> bool {
        match self.body.form() {
            Form::Bytes(_) => {
                let body = &self.body;
                body.view_xml().is_some() || body.view_json().is_some() || body.forgiven().is_some()
            }
            Form::Xml(_) | Form::Json(_) | Form::Text(_) => true,
            Form::Empty | Form::Stream { .. } => false,
        }
    }

    /// Micro Integrator names the charset to clients of everything that does not just pass through.
    fn name_charset(&self, output: &mut Output) {
        let kind = output.content_type.as_deref().or_else(|| self.content_type());
        let kind = kind.filter(|kind| MediaType::parse(kind).has_charset() && MediaType::charset(kind).is_none());
        if let Some(kind) = kind {
            output.content_type = Some(in_utf8(kind));
        }
    }

    /// Whether the body must be read whole before [`Message::output`] can send it in that shape.
    pub fn must_be_read_for(&self, shape: Shape) -> bool {
        self.body.is_stream() && !self.leaves_untouched(shape)
    }

    /// Whether bytes are already what the shape and the media type ask for.
    fn leaves_untouched(&self, shape: Shape) -> bool {
        let source = || self.source_media();
        let root_is = |name: &str| root_name(&self.body.available()).map(|root| root == name);
        match shape {
            Shape::Soap11 => source() == MediaType::TextXml && root_is("Envelope").unwrap_or(true),
            Shape::Soap12 => source() == MediaType::SoapXml,
            Shape::Pox => match source() {
                MediaType::Xml => true,
                MediaType::TextXml => root_is("Envelope") == Some(false),
                _ => false,
            },
            // First of all: a message that passes through says nothing.
            Shape::Same | Shape::Reply => self.message_type().is_none_or(|kind| {
                let source = source();
                MediaType::parse(&kind) == source
                    && same_charset(&kind, self.source_charset())
                    // Plain XML under `text/xml` has to become an envelope for a client that speaks SOAP.
                    && (source != MediaType::TextXml
                        || !self.speaks_soap()
                        || root_is("Envelope").unwrap_or(true))
            }),
        }
    }

    fn message_type(&self) -> Option<String> {
        self.axis2.get("messageType").map(|kind| kind.to_text().trim().to_owned()).filter(|kind| !kind.is_empty())
    }

    fn untouched(&mut self) -> Output {
        // `messageType` may have replaced a header that says more, a boundary for instance.
        let content_type = match self.body.source_type() {
            Some(source) if self.content_type() != Some(source) && !source.is_empty() => Some(source.to_owned()),
            _ => None,
        };
        let form = match self.body.form() {
            Form::Bytes(bytes) => Form::Bytes(bytes.clone()),
            _ => self.body.take(),
        };
        Output { trailers: self.trailers(), ..Output::plain(form, content_type) }
    }

    /// The fields that follow a body which goes out as it arrived. A replaced body has none.
    fn trailers(&self) -> Option<Box<Headers>> {
        self.body.trailers().cloned().map(Box::new)
    }

    fn converted(&mut self, conversion: &Conversion, shape: Shape) -> Result<Output, BodyError> {
        let kind = self.message_type();
        let (media, enveloped) = match (shape, &kind) {
            (Shape::Soap11, _) => (MediaType::TextXml, true),
            (Shape::Soap12, _) => (MediaType::SoapXml, true),
            (Shape::Pox, _) => (MediaType::Xml, true),
            (_, Some(kind)) => (MediaType::parse(kind), self.speaks_soap()),
            (_, None) => (self.content_type().map_or_else(|| self.own_media(), MediaType::parse), false),
        };
        if shape == Shape::Reply
            && !self.speaks_soap()
            && let Form::Xml(envelope) = self.body.form()
            && soap::fault(envelope).is_some()
        {
            let envelope = envelope.clone();
            return self.reply_fault(envelope, conversion);
        }
        let mut written = self.write(media, enveloped, conversion)?;
        if written.content_type.is_none() {
            written.content_type = match shape {
                Shape::Soap11 => Some(self.soap_type(MediaType::TextXml)),
                Shape::Soap12 => Some(self.soap_type(MediaType::SoapXml)),
                Shape::Pox => Some("application/xml; charset=UTF-8".to_owned()),
                Shape::Same | Shape::Reply => match (kind, self.content_type()) {
                    (Some(kind), _) => Some(in_utf8(&kind)),
                    (None, None) => Some(self.default_type(media)),
                    (None, Some(own)) => MediaType::charset(own).map(|_| in_utf8(own)),
                },
            };
        }
        written.decoded = self.headers.contains("Content-Encoding");
        Ok(written)
    }

    /// What a body is sent as when nothing says it.
    fn own_media(&self) -> MediaType {
        match self.body.form() {
            Form::Xml(envelope) => match envelope.soap {
                SoapVersion::Soap11 => MediaType::TextXml,
                SoapVersion::Soap12 => MediaType::SoapXml,
                SoapVersion::None => MediaType::Xml,
            },
            Form::Json(_) => MediaType::Json,
            Form::Text(_) => MediaType::Text,
            _ => MediaType::Binary,
        }
    }

    fn default_type(&self, media: MediaType) -> String {
        let essence = match media {
            MediaType::TextXml | MediaType::SoapXml => return self.soap_type(media),
            MediaType::Xml => "application/xml",
            MediaType::Json => "application/json",
            MediaType::Text => "text/plain",
            _ => return "application/octet-stream".to_owned(),
        };
        in_utf8(essence)
    }

    /// SOAP 1.2 says the action in the media type; SOAP 1.1 has a header for it.
    fn soap_type(&self, media: MediaType) -> String {
        match (media, self.action()) {
            (MediaType::SoapXml, Some(action)) if !action.contains(['"', '\r', '\n']) => {
                format!("application/soap+xml; charset=UTF-8; action=\"{action}\"")
            }
            (MediaType::SoapXml, _) => "application/soap+xml; charset=UTF-8".to_owned(),
            _ => "text/xml; charset=UTF-8".to_owned(),
        }
    }

    /// The bytes of the body in a media type.
    fn write(&mut self, media: MediaType, enveloped: bool, conversion: &Conversion) -> Result<Output, BodyError> {
        match (self.body.form(), media) {
            (Form::Json(value), MediaType::Json | MediaType::Binary | MediaType::Text) => {
                return Ok(Output::bytes(penstock_json::text::write(value)));
            }
            (Form::Text(text), MediaType::Text | MediaType::Binary | MediaType::Json | MediaType::Form) => {
                return Ok(Output::bytes(text.to_string()));
            }
            (Form::Bytes(bytes), MediaType::Binary) if !self.source_media().is_xml() => {
                return Ok(Output::plain(Form::Bytes(bytes.clone()), None));
            }
            (Form::Bytes(_), MediaType::Text) if !self.source_media().is_xml() => {
                return self.text(conversion).map(|text| Output::bytes(text.to_string()));
            }
            (Form::Bytes(_), MediaType::Json) if self.source_media() == MediaType::Json => {
                return self.json(conversion).map(|value| Output::bytes(penstock_json::text::write(&value)));
            }
            _ => {}
        }
        let envelope = self.xml(conversion)?;
        write_xml(&envelope, media, enveloped, conversion)
    }

    /// A fault as `<Exception>`, or as JSON when that is what the client gets.
    fn reply_fault(&mut self, envelope: Arc<Envelope>, conversion: &Conversion) -> Result<Output, BodyError> {
        let kind = self.message_type().or_else(|| self.content_type().map(str::to_owned));
        let kind =
            kind.filter(|kind| matches!(MediaType::parse(kind), MediaType::Json | MediaType::Xml | MediaType::Text));
        let mut builder = TreeBuilder::new();
        builder.start_element("", "Exception", "");
        if let Some(fault) = soap::fault(&envelope) {
            builder.text(&soap::fault_reason(&envelope.document, fault));
        }
        let document = builder.finish();
        let exception = document.root_element().unwrap_or(Document::ROOT);
        let json = kind.as_deref().is_some_and(|kind| MediaType::parse(kind) == MediaType::Json);
        let mut out = Vec::new();
        if json {
            mapping::write_json(&mut out, &document, exception, &conversion.mapping).map_err(unmapped)?;
        } else {
            out = to_vec(&document, exception, &WriteOptions::default());
        }
        Ok(Output {
            content_type: Some(in_utf8(kind.as_deref().unwrap_or("application/xml"))),
            decoded: self.headers.contains("Content-Encoding"),
            soap_fault: true,
            ..Output::bytes(out)
        })
    }
}

impl Output {
    fn plain(form: Form, content_type: Option<String>) -> Output {
        Output { form, content_type, decoded: false, soap_fault: false, trailers: None }
    }

    fn bytes(bytes: impl Into<Vec<u8>>) -> Output {
        let bytes = bytes.into();
        Output::plain(if bytes.is_empty() { Form::Empty } else { Form::Bytes(bytes.into()) }, None)
    }
}

fn write_xml(
    envelope: &Envelope,
    media: MediaType,
    enveloped: bool,
    conversion: &Conversion,
) -> Result<Output, BodyError> {
    let soap_fault = soap::fault(envelope).is_some();
    let version = match media {
        MediaType::TextXml if enveloped || envelope.soap != SoapVersion::None => SoapVersion::Soap11,
        MediaType::SoapXml => SoapVersion::Soap12,
        _ => SoapVersion::None,
    };
    let mut output = if version != SoapVersion::None {
        Output::bytes(whole(envelope, version))
    } else {
        let document = &envelope.document;
        let Some(payload) = envelope.payload() else { return Ok(Output::plain(Form::Empty, None)) };
        match media {
            MediaType::Json => {
                let mut out = Vec::new();
                mapping::write_json(&mut out, document, payload, &conversion.mapping).map_err(unmapped)?;
                Output::bytes(out)
            }
            MediaType::Form => Output::bytes(form::format(document, payload)),
            MediaType::MultipartForm => {
                let (out, boundary) = multipart::format(document, payload);
                let content_type = Some(format!("multipart/form-data; boundary={boundary}"));
                Output { content_type, ..Output::bytes(out) }
            }
            MediaType::Text => Output::bytes(payload_text(envelope)),
            MediaType::Binary if stands_for(document, payload, "binary") => {
                let encoded: String = document.string_value(payload).split_ascii_whitespace().collect();
                let bytes = STANDARD.decode(encoded);
                Output::bytes(bytes.map_err(|_| BodyError::Malformed("the `binary` element is not base64".into()))?)
            }
            MediaType::Binary if stands_for(document, payload, "text") => Output::bytes(payload_text(envelope)),
            _ => {
                let mut out = Vec::new();
                write_fragment(&mut out, document, payload);
                Output::bytes(out)
            }
        }
    };
    output.soap_fault = soap_fault;
    Ok(output)
}

/// What Micro Integrator writes before every envelope, and before no other XML.
pub const SOAP_DECLARATION: &[u8] = b"<?xml version='1.0' encoding='UTF-8'?>";

/// The envelope itself, in a version of SOAP.
fn whole(envelope: &Envelope, version: SoapVersion) -> Vec<u8> {
    let converted;
    let (document, node) = if envelope.soap.namespace() == version.namespace() {
        (&*envelope.document, envelope.envelope)
    } else {
        converted = soap::convert(envelope, version);
        (&converted, Document::ROOT)
    };
    let mut out = SOAP_DECLARATION.to_vec();
    penstock_xml::write_to(&mut out, document, node, &WriteOptions::default());
    out
}

/// The payload as text: without its element when that only stands for text.
pub(super) fn payload_text(envelope: &Envelope) -> String {
    let document = &envelope.document;
    let Some(payload) = envelope.payload() else {
        // Text right inside the body, which no builder makes but a mediator may.
        return document.string_value(envelope.body).into_owned();
    };
    if stands_for(document, payload, "text") {
        return document.string_value(payload).into_owned();
    }
    let mut out = Vec::new();
    write_fragment(&mut out, document, payload);
    String::from_utf8_lossy(&out).into_owned()
}

fn stands_for(document: &Document, element: NodeId, name: &str) -> bool {
    document.local_name(element) == name && document.namespace(element) == PAYLOAD_NAMESPACE
}

/// Writes a node the way it reads on its own: of the namespaces declared further up only those
/// whose prefix occurs, so that a payload does not drag its envelope's declarations along.
pub fn write_fragment(out: &mut Vec<u8>, document: &Document, node: NodeId) {
    let mut text = to_vec(document, node, &WriteOptions::default());
    if document.is_element(node) {
        for declaration in document.in_scope_namespaces(node) {
            let prefix = document.local_name(declaration);
            let inherited = document.parent(declaration) != Some(node);
            if !inherited || matches!(prefix, "" | "xml") {
                continue;
            }
            let used = mentions(&text, prefix);
            let mut written = format!(" xmlns:{prefix}=\"").into_bytes();
            escape_attribute(&mut written, document.text(declaration));
            written.push(b'"');
            if !used && let Some(at) = memchr::memmem::find(&text, &written) {
                text.drain(at..at + written.len());
            }
        }
    }
    if out.is_empty() {
        *out = text;
    } else {
        out.append(&mut text);
    }
}

/// Whether a prefix occurs, in a name or in content that may be one.
fn mentions(text: &[u8], prefix: &str) -> bool {
    let part_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | 0x80..);
    memchr::memmem::find_iter(text, format!("{prefix}:").as_bytes())
        .any(|at| !text[..at].last().is_some_and(part_of_name))
}

/// Whether a media type has a `charset` parameter.
fn same_charset(kind: &str, source: Option<&str>) -> bool {
    let normal = |charset: Option<&str>| charset.unwrap_or("utf-8").to_ascii_lowercase();
    let (wanted, source) = (normal(MediaType::charset(kind)), normal(source));
    wanted == source || (MediaType::charset(kind).is_none() && source == "us-ascii")
}

/// A media type that says UTF-8, which is all that is written.
fn in_utf8(content_type: &str) -> String {
    let mut parts: Vec<&str> = content_type
        .split(';')
        .map(str::trim)
        .filter(|part| !part.is_empty() && !part.to_ascii_lowercase().starts_with("charset"))
        .collect();
    if !MediaType::parse(content_type).has_charset() {
        return content_type.to_owned();
    }
    parts.insert(1.min(parts.len()), "charset=UTF-8");
    parts.join("; ")
}
