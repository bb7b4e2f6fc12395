//! Replacing the payload of a message: what stands in the body, with the SOAP envelope around it
//! kept when there is one.

use std::sync::Arc;

use bytes::Bytes;
use penstock_message::tree::{Content, SOAP_PREFIX, envelope_around};
use penstock_message::{Envelope, Form, MediaType, Message, Scope, SoapVersion, Value};
use penstock_xml::{Document, NodeId, ParseOptions};

use crate::{Exchange, Fault};

/// Parses XML that a configuration or a message gave as text.
pub fn parse(text: impl Into<Bytes>) -> Result<(Arc<Document>, NodeId), Fault> {
    let document = Document::parse(text, &ParseOptions::default())
        .map_err(|error| Fault::new(format!("not well-formed XML: {error}")))?;
    let root = document.root_element().ok_or_else(|| Fault::new("not well-formed XML: there is no element"))?;
    Ok((Arc::new(document), root))
}

/// Says what the body is from now on, for the header and the formatter.
pub fn set_media_type(exchange: &mut Exchange, media_type: &str) {
    exchange.set_property(Scope::Axis2, "messageType", Value::string(media_type));
    exchange.message.axis2.remove("NO_ENTITY_BODY");
}

/// As [`set_media_type`], where the message is not called such a thing already. To be called before its body is replaced.
pub fn ensure_media_type(exchange: &mut Exchange, media_type: &str) {
    let (is, wanted) = (exchange.message.media_type(), MediaType::parse(media_type));
    if is == wanted || is.is_xml() && wanted.is_xml() {
        exchange.message.axis2.remove("NO_ENTITY_BODY");
    } else {
        set_media_type(exchange, media_type);
    }
}

/// What is known of the envelope around the payload without building a tree, when that is possible.
enum Around {
    /// There is none: plain XML, or something that is not XML.
    Nothing,
    /// A SOAP envelope without header blocks.
    Bare(SoapVersion),
    /// A SOAP envelope that was read.
    Read(Arc<Envelope>),
}

/// Checks the bytes only: an unread body needs no tree if it has no header to keep.
fn around(exchange: &mut Exchange) -> Result<Around, Fault> {
    let media_type = exchange.message.source_media();
    if let Form::Xml(envelope) = exchange.message.body.form() {
        return Ok(if envelope.soap == SoapVersion::None { Around::Nothing } else { Around::Read(envelope.clone()) });
    }
    if !matches!(media_type, MediaType::TextXml | MediaType::SoapXml) {
        return Ok(Around::Nothing);
    }
    if let Form::Bytes(bytes) = exchange.message.body.form() {
        let has = |word: &str| memchr::memmem::find(bytes, word.as_bytes()).is_some();
        // UTF-16 has a zero in nearly every letter and is left to the reader, as is anything encoded.
        let plain =
            !bytes.iter().take(64).any(|byte| *byte == 0) && !exchange.message.headers.contains("Content-Encoding");
        if plain && !has("Header") {
            return Ok(match (has(SoapVersion::Soap12.namespace()), has(SoapVersion::Soap11.namespace())) {
                (true, false) => Around::Bare(SoapVersion::Soap12),
                (false, true) => Around::Bare(SoapVersion::Soap11),
                (false, false) => Around::Nothing,
                (true, true) => read_around(exchange)?,
            });
        }
    }
    if exchange.message.body.is_empty() {
        let soap = if media_type == MediaType::SoapXml { SoapVersion::Soap12 } else { SoapVersion::Soap11 };
        return Ok(Around::Bare(soap));
    }
    read_around(exchange)
}

fn read_around(exchange: &mut Exchange) -> Result<Around, Fault> {
    let envelope = exchange.xml()?;
    Ok(if envelope.soap == SoapVersion::None { Around::Nothing } else { Around::Read(envelope) })
}

/// Replaces the payload by serialized XML. Unread content is not parsed. A message
/// that is neither XML nor JSON becomes `application/xml`.
pub fn replace_by_bytes(exchange: &mut Exchange, xml: Vec<u8>) -> Result<(), Fault> {
    let around = around(exchange)?;
    becomes_xml(exchange);
    let (body, soap) = match around {
        Around::Nothing => (xml, SoapVersion::None),
        Around::Bare(soap) => (wrapped(&xml, soap, None), soap),
        Around::Read(envelope) => (wrapped(&xml, envelope.soap, Some(&envelope)), envelope.soap),
    };
    let media_type = exchange.message.media_type();
    let plain = match soap {
        SoapVersion::Soap11 => media_type == MediaType::TextXml,
        SoapVersion::Soap12 => media_type == MediaType::SoapXml,
        SoapVersion::None => matches!(media_type, MediaType::Xml | MediaType::TextXml),
    };
    // Bytes are read as their media type says; when that differs, they are read now.
    let form = if plain { Form::Bytes(body.into()) } else { Form::Xml(Arc::new(read_envelope(body, soap)?)) };
    exchange.message.body.set(form);
    Ok(())
}

fn read_envelope(body: Vec<u8>, soap: SoapVersion) -> Result<Envelope, Fault> {
    let (document, root) = parse(body)?;
    if soap != SoapVersion::None
        && let Some(envelope) = Envelope::find(document.clone())
    {
        return Ok(envelope);
    }
    Ok(envelope_around(&[Content::Node(document, root)], SoapVersion::None, None))
}

/// The body will be XML of ours: UTF-8 and not encoded. As in Micro Integrator, a message that is called JSON stays that: it is
/// mapped when it goes out, and artifacts that want otherwise set `messageType`.
fn becomes_xml(exchange: &mut Exchange) {
    exchange.message.headers.remove("Content-Encoding");
    match exchange.message.media_type() {
        kind if kind.is_xml() => to_utf8(exchange),
        MediaType::Json => exchange.message.remember_source(),
        _ => return set_media_type(exchange, "application/xml"),
    }
    exchange.message.axis2.remove("NO_ENTITY_BODY");
}

/// Our own output is UTF-8: a header that names another charset is corrected.
fn to_utf8(exchange: &mut Exchange) {
    let Some(content_type) = exchange.message.content_type() else { return };
    let Some(charset) = MediaType::charset(content_type).filter(|charset| !charset.eq_ignore_ascii_case("utf-8"))
    else {
        return;
    };
    let corrected = content_type.replace(charset, "UTF-8");
    exchange.message.headers.set("Content-Type", corrected);
}

fn wrapped(payload: &[u8], soap: SoapVersion, header: Option<&Envelope>) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 256);
    out.extend_from_slice(penstock_message::SOAP_DECLARATION);
    out.extend_from_slice(format!("<{SOAP_PREFIX}:Envelope xmlns:{SOAP_PREFIX}=\"{}\">", soap.namespace()).as_bytes());
    if let Some((envelope, header)) = header.and_then(|envelope| Some((envelope, envelope.header?))) {
        penstock_xml::write_to(&mut out, &envelope.document, header, &penstock_xml::WriteOptions::default());
    }
    out.extend_from_slice(format!("<{SOAP_PREFIX}:Body>").as_bytes());
    out.extend_from_slice(payload);
    out.extend_from_slice(format!("</{SOAP_PREFIX}:Body></{SOAP_PREFIX}:Envelope>").as_bytes());
    out
}

/// Replaces the payload by nodes. An envelope among them becomes the whole message.
pub fn replace_by_nodes(exchange: &mut Exchange, contents: &[Content]) -> Result<(), Fault> {
    let envelope = match whole_envelope(contents) {
        Some(envelope) => envelope,
        None => match around(exchange)? {
            Around::Nothing => envelope_around(contents, SoapVersion::None, None),
            Around::Bare(soap) => envelope_around(contents, soap, None),
            Around::Read(old) => envelope_around(contents, old.soap, Some(&old)),
        },
    };
    becomes_xml(exchange);
    exchange.message.body.set(Form::Xml(Arc::new(envelope)));
    Ok(())
}

/// Makes this text of an envelope the message. What was plain XML stays so: its envelope is only how it is seen.
pub fn replace_envelope(exchange: &mut Exchange, text: String) -> Result<(), Fault> {
    let soap = exchange.xml()?.soap;
    let (document, _) = parse(text)?;
    let mut envelope = Envelope::find(document).ok_or_else(|| Fault::new("the envelope has lost its Body"))?;
    if soap == SoapVersion::None {
        envelope.soap = SoapVersion::None;
    }
    becomes_xml(exchange);
    exchange.message.body.set(Form::Xml(Arc::new(envelope)));
    Ok(())
}

/// The envelope, when that is what the contents are.
fn whole_envelope(contents: &[Content]) -> Option<Envelope> {
    let [Content::Node(document, node)] = contents else { return None };
    if document.local_name(*node) != "Envelope" {
        return None;
    }
    let mut builder = penstock_xml::TreeBuilder::new();
    builder.copy(document, *node);
    Envelope::find(Arc::new(builder.finish()))
}

/// Makes the body this text of JSON, as it stands.
pub fn set_json_text(exchange: &mut Exchange, json: String) {
    if exchange.message.media_type().is_xml() {
        // It goes out as XML, for which it has to be read.
        match serde_json::from_str(&json) {
            Ok(json) => return set_json(exchange, Arc::new(json)),
            Err(_) => set_media_type(exchange, "application/json"),
        }
    }
    becomes_json(exchange);
    exchange.message.body.set(if json.is_empty() { Form::Empty } else { Form::Bytes(json.into()) });
}

/// Makes the body JSON.
pub fn set_json(exchange: &mut Exchange, json: Arc<serde_json::Value>) {
    becomes_json(exchange);
    exchange.message.body.set(Form::Json(json));
}

/// As [`becomes_xml`], the other way round.
fn becomes_json(exchange: &mut Exchange) {
    exchange.message.headers.remove("Content-Encoding");
    match exchange.message.media_type() {
        MediaType::Json => {}
        kind if kind.is_xml() => exchange.message.remember_source(),
        _ => return set_media_type(exchange, "application/json"),
    }
    exchange.message.axis2.remove("NO_ENTITY_BODY");
}

/// Makes the body text.
pub fn set_text(exchange: &mut Exchange, text: String) {
    exchange.message.headers.remove("Content-Encoding");
    set_media_type(exchange, "text/plain");
    exchange.message.body.set(Form::Text(text.into()));
}

/// A second message with the same content, for a branch. Bodies that are still arriving are not shared.
pub fn copy_of(message: &Message) -> Message {
    message.copy()
}

/// The payload as a value: JSON when the message is JSON, else its element.
pub fn payload_of(exchange: &mut Exchange) -> Result<Option<Value>, Fault> {
    if exchange.message.body.is_empty() {
        return Ok(None);
    }
    let source = match exchange.message.body.form() {
        Form::Json(_) => MediaType::Json,
        Form::Text(text) => return Ok(Some(Value::String(text.clone()))),
        Form::Xml(_) => MediaType::Xml,
        _ => exchange.message.source_media(),
    };
    if source == MediaType::Json {
        return Ok(Some(Value::Json(exchange.json()?)));
    }
    let envelope = exchange.xml()?;
    Ok(envelope.payload().map(|payload| Value::Xml(envelope.document.clone(), vec![payload])))
}

/// A value as content of a tree; JSON and text that is XML become nodes.
pub fn contents_of(value: &Value) -> Vec<Content> {
    match value {
        Value::Xml(document, nodes) => nodes.iter().map(|node| Content::Node(document.clone(), *node)).collect(),
        Value::Json(json) => match json_elements(json) {
            Some((document, nodes)) => nodes.into_iter().map(|node| Content::Node(document.clone(), node)).collect(),
            None => vec![Content::Text(value.to_text().into())],
        },
        other => {
            let text = other.to_text();
            match text.trim_start().starts_with('<').then(|| parse(text.clone().into_owned().into_bytes())) {
                Some(Ok((document, root))) => vec![Content::Node(document, root)],
                _ => vec![Content::Text(text.into())],
            }
        }
    }
}

/// JSON as the elements the mapping makes of it.
pub fn json_elements(json: &serde_json::Value) -> Option<(Arc<Document>, Vec<NodeId>)> {
    if !json.is_object() && !json.is_array() {
        return None;
    }
    let mut builder = penstock_xml::TreeBuilder::new();
    penstock_json::mapping::to_xml(json, &mut builder, &penstock_json::mapping::Options::default()).ok()?;
    let document = builder.finish();
    let nodes = document.root_element().into_iter().collect();
    Some((Arc::new(document), nodes))
}
