//! `XMLSchemaValidator`: limits on the shape of an XML body. They stand in properties of the message.

use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use penstock_message::{Envelope, MediaType, Method, SoapVersion};

use super::settings::{Compiled, PolicyClasses, Settings, is_on, limit, threat};
use crate::error::{GatewayError, codes};

struct XmlThreat;

pub(super) fn compile(_settings: &Settings, _classes: &PolicyClasses) -> Compiled {
    Ok(Box::new(XmlThreat))
}

/// What a body may have at most.
#[derive(Debug)]
struct Limits {
    depth: usize,
    elements: usize,
    attributes: usize,
    attribute_chars: usize,
    children: usize,
}

impl Mediator for XmlThreat {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let is_xml = matches!(exchange.message.media_type(), MediaType::Xml | MediaType::TextXml);
        if exchange.message.method == Method::Get || !is_xml {
            return Err(threat("Neither request method nor content type is matched with the validator."));
        }
        if exchange.message.body.is_empty() {
            return Ok(Flow::Next);
        }
        if is_on(exchange, "xmlValidation", false) {
            validate(exchange)?;
        }
        let schema = exchange.message.property_text("xsdURL").filter(|url| !url.trim().is_empty());
        if is_on(exchange, "schemaValidation", false) && schema.is_some() {
            // Nothing is fetched for a message, and an unvalidated one is rejected.
            let why = "schemas are not fetched by address; use `<validate>` with a local entry";
            return Err(GatewayError::new(codes::MEDIATION).because(why).into());
        }
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

fn validate(exchange: &mut Exchange) -> Result<(), Fault> {
    let limits = Limits {
        depth: limit(exchange, "maxXMLDepth")?,
        elements: limit(exchange, "maxElementCount")?,
        attributes: limit(exchange, "maxAttributeCount")?,
        attribute_chars: limit(exchange, "maxAttributeLength")?,
        children: limit(exchange, "maxChildrenPerElement")?,
    };
    let fails = |why: &str| threat(format!("XML Validation Failed: due to {why}"));
    let program = exchange.program().clone();
    let text = exchange.message.text(&program.conversion).map_err(|error| fails(&error.to_string()))?;
    if !is_on(exchange, "dtdEnabled", false) && text.contains("<!DOCTYPE") {
        return Err(fails("a document type declaration"));
    }
    // Entities are expanded within the reader's limits, and none is fetched.
    let envelope = exchange.message.xml(&program.conversion).map_err(|error| fails(&error.to_string()))?;
    check(&envelope, &limits).map_err(fails)
}

fn check(envelope: &Envelope, limits: &Limits) -> Result<(), &'static str> {
    let document = &envelope.document;
    // Around plain XML the envelope is ours.
    let root = if envelope.soap == SoapVersion::None { envelope.payload() } else { Some(envelope.envelope) };
    let mut open: Vec<_> = root.map(|root| (root, 1)).into_iter().collect();
    let mut elements = 0;
    while let Some((node, depth)) = open.pop() {
        elements += 1;
        if elements > limits.elements {
            return Err("Maximum Element Count limit exceeded");
        }
        if depth > limits.depth {
            return Err("Maximum Element Depth limit exceeded");
        }
        if document.attributes(node).count() > limits.attributes {
            return Err("Maximum number of attributes of an element exceeded");
        }
        if document.attributes(node).any(|attribute| document.text(attribute).chars().count() > limits.attribute_chars)
        {
            return Err("Maximum attribute size limit exceeded");
        }
        let before = open.len();
        open.extend(
            document.children(node).filter(|child| document.is_element(*child)).map(|child| (child, depth + 1)),
        );
        if open.len() - before > limits.children {
            return Err("Maximum Number of Child Elements limit exceeded");
        }
    }
    Ok(())
}
