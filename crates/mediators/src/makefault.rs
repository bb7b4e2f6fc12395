//! `<makefault>`: makes the message a SOAP fault, or a plain XML one.

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Direction, Exchange, Fault, Flow, Mediator, Needs};
use penstock_message::{MediaType, SoapVersion};
use penstock_xml::{TreeBuilder, XML_NAMESPACE};

use crate::typed::{Type, ValueSource, inline_xml};
use penstock_engine::payload::{self, contents_of};
use penstock_message::tree::{Content, SOAP_PREFIX, insert};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "makefault", compile };

struct MakeFault {
    version: Version,
    response: bool,
    code: Option<Code>,
    reason: Option<ValueSource>,
    node: Option<String>,
    role: Option<String>,
    detail: Vec<Content>,
    detail_source: Option<ValueSource>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    Soap(SoapVersion),
    Pox,
    /// As the message at hand.
    Same,
}

/// A fault code: a qualified name, or computed.
enum Code {
    Known { local: String, namespace: String, prefix: String },
    Computed(ValueSource),
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let version = match el.attribute("version") {
        Some("soap11") => Version::Soap(SoapVersion::Soap11),
        Some("soap12") => Version::Soap(SoapVersion::Soap12),
        Some("pox") => Version::Pox,
        None => Version::Same,
        Some(other) => {
            cx.error(el.attribute_place("version"), format!("`{other}` is not a version: soap11, soap12, pox"));
            return None;
        }
    };
    let code = match el.child("code") {
        Some(code) => Some(code_of(&code, cx)?),
        None if version == Version::Pox => None,
        None => {
            cx.error(el.place(), "<makefault> needs a <code>");
            return None;
        }
    };
    let reason = match el.child("reason") {
        Some(reason) => {
            let source = ValueSource::compile(cx, &reason, Some(Type::String))?;
            reason.finish(cx);
            Some(source)
        }
        None => None,
    };
    let mut detail = Vec::new();
    let mut detail_source = None;
    if let Some(element) = el.child("detail") {
        if element.attribute("expression").is_some() || element.attribute("value").is_some() {
            detail_source = ValueSource::compile(cx, &element, None);
        } else {
            detail = element.children().flat_map(|child| contents_of(&inline_xml(&child))).collect();
            if detail.is_empty() && !element.text().is_empty() {
                detail = vec![Content::Text(element.text().into())];
            }
        }
    }
    Some(Box::new(MakeFault {
        version,
        response: el.flag("response", true),
        code,
        reason,
        node: el.child_text("node"),
        role: el.child_text("role"),
        detail,
        detail_source,
    }))
}

fn code_of(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Code> {
    if el.attribute("expression").is_some() {
        return Some(Code::Computed(ValueSource::compile(cx, el, Some(Type::String))?));
    }
    let value = el.required(cx, "value")?;
    let (prefix, local) = value.split_once(':').unwrap_or(("", value));
    let namespace = el.namespace_of(prefix).filter(|_| !prefix.is_empty()).unwrap_or_default();
    Some(Code::Known { local: local.into(), namespace: namespace.into(), prefix: prefix.into() })
}

impl MakeFault {
    fn soap(&self, exchange: &mut Exchange) -> SoapVersion {
        match self.version {
            Version::Soap(version) => version,
            Version::Pox => SoapVersion::None,
            Version::Same => match exchange.xml() {
                Ok(envelope) => envelope.soap,
                Err(_) if exchange.message.media_type() == MediaType::SoapXml => SoapVersion::Soap12,
                Err(_) => SoapVersion::Soap11,
            },
        }
    }

    fn document(&self, exchange: &mut Exchange, soap: SoapVersion) -> Result<penstock_xml::Document, Fault> {
        let reason =
            self.reason.as_ref().map(|reason| reason.text(exchange)).transpose()?.flatten().unwrap_or_default();
        let detail = match &self.detail_source {
            Some(source) => source.value(exchange)?.map(|value| contents_of(&value)).unwrap_or_default(),
            None => self.detail.clone(),
        };
        let mut builder = TreeBuilder::new();
        let namespace = soap.namespace();
        if soap == SoapVersion::None {
            builder.start_element("", "Exception", "");
            // The text is that of the detail or, without one, the reason; elements of a detail have no place here.
            let is_text = self.detail_source.is_some() || matches!(detail[..], [Content::Text(_)]);
            builder.text(if is_text { penstock_message::tree::text_of(&detail) } else { reason }.as_str());
            builder.end_element();
            return Ok(builder.finish());
        }
        builder.start_element(SOAP_PREFIX, "Envelope", namespace);
        builder.start_element(SOAP_PREFIX, "Body", namespace);
        builder.start_element(SOAP_PREFIX, "Fault", namespace);
        if soap == SoapVersion::Soap11 {
            builder.start_element("", "faultcode", "");
            self.put_code(exchange, &mut builder, soap)?;
            builder.end_element();
            leaf(&mut builder, "", "faultstring", "", &reason);
            if let Some(role) = self.role.as_ref().or(self.node.as_ref()) {
                leaf(&mut builder, "", "faultactor", "", role);
            }
            if !detail.is_empty() {
                builder.start_element("", "detail", "");
                insert(&mut builder, &detail);
                builder.end_element();
            }
        } else {
            builder.start_element(SOAP_PREFIX, "Code", namespace);
            builder.start_element(SOAP_PREFIX, "Value", namespace);
            self.put_code(exchange, &mut builder, soap)?;
            builder.end_element();
            builder.end_element();
            builder.start_element(SOAP_PREFIX, "Reason", namespace);
            builder.start_element(SOAP_PREFIX, "Text", namespace);
            builder.attribute("xml", "lang", XML_NAMESPACE, "en");
            builder.text(&reason);
            builder.end_element();
            builder.end_element();
            if let Some(node) = &self.node {
                leaf(&mut builder, SOAP_PREFIX, "Node", namespace, node);
            }
            if let Some(role) = &self.role {
                leaf(&mut builder, SOAP_PREFIX, "Role", namespace, role);
            }
            if !detail.is_empty() {
                builder.start_element(SOAP_PREFIX, "Detail", namespace);
                insert(&mut builder, &detail);
                builder.end_element();
            }
        }
        Ok(builder.finish())
    }

    /// Writes the code into the open element, with the declaration of its prefix.
    fn put_code(&self, exchange: &mut Exchange, builder: &mut TreeBuilder, soap: SoapVersion) -> Result<(), Fault> {
        match &self.code {
            None => builder
                .text(&format!("{SOAP_PREFIX}:{}", if soap == SoapVersion::Soap12 { "Receiver" } else { "Server" })),
            Some(Code::Computed(source)) => builder.text(&source.text(exchange)?.unwrap_or_default()),
            Some(Code::Known { local, prefix, .. }) if prefix.is_empty() => builder.text(local),
            Some(Code::Known { local, namespace, prefix }) => {
                if prefix != SOAP_PREFIX || namespace != soap.namespace() {
                    builder.declare_namespace(prefix, namespace);
                }
                builder.text(&format!("{prefix}:{local}"));
            }
        }
        Ok(())
    }
}

fn leaf(builder: &mut TreeBuilder, prefix: &str, local: &str, namespace: &str, text: &str) {
    builder.start_element(prefix, local, namespace);
    builder.text(text);
    builder.end_element();
}

impl Mediator for MakeFault {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let soap = self.soap(exchange);
        let document = std::sync::Arc::new(self.document(exchange, soap)?);
        let root = document.root_element().expect("a fault was just built");
        let media_type = match soap {
            SoapVersion::Soap11 => "text/xml",
            SoapVersion::Soap12 => "application/soap+xml",
            SoapVersion::None => "application/xml",
        };
        if exchange.message.media_type() != MediaType::parse(media_type) {
            payload::set_media_type(exchange, media_type);
        }
        payload::replace_by_nodes(exchange, &[Content::Node(document, root)])?;
        if self.response {
            exchange.direction = Direction::Response;
            exchange.message.properties.set("RESPONSE", penstock_message::Value::string("true"));
        }
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}
