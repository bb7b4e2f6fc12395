//! The SOAP fault of a request that a security policy refuses.

use std::sync::Arc;

use penstock_engine::ports::Level;
use penstock_engine::{Exchange, Flow};
use penstock_message::{Envelope, Form, MediaType, SoapVersion};
use penstock_wssecurity::Refusal;
use penstock_xml::{Document, TreeBuilder, XML_NAMESPACE};

use penstock_engine::payload;
use penstock_message::tree::SOAP_PREFIX;

const WSSE: &str = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd";

/// Responds with the fault of WS-Security, in the client's version of SOAP. The log gets the detail.
pub(super) fn respond(exchange: &mut Exchange, soap: SoapVersion, refusal: &Refusal) -> Flow {
    let soap = if soap == SoapVersion::Soap12 { SoapVersion::Soap12 } else { SoapVersion::Soap11 };
    let code = format!("wsse:{}", refusal.code.name());
    let namespace = soap.namespace();
    let mut builder = TreeBuilder::new();
    builder.start_element(SOAP_PREFIX, "Envelope", namespace);
    builder.start_element(SOAP_PREFIX, "Body", namespace);
    builder.start_element(SOAP_PREFIX, "Fault", namespace);
    builder.declare_namespace("wsse", WSSE);
    let mut leaf = |prefix: &str, name: &str, namespace: &str, text: &str| {
        builder.start_element(prefix, name, namespace);
        builder.text(text);
        builder.end_element();
    };
    if soap == SoapVersion::Soap12 {
        builder.start_element(SOAP_PREFIX, "Code", namespace);
        builder.start_element(SOAP_PREFIX, "Value", namespace);
        builder.text(&format!("{SOAP_PREFIX}:Sender"));
        builder.end_element();
        builder.start_element(SOAP_PREFIX, "Subcode", namespace);
        builder.start_element(SOAP_PREFIX, "Value", namespace);
        builder.text(&code);
        builder.end_element();
        builder.end_element();
        builder.end_element();
        builder.start_element(SOAP_PREFIX, "Reason", namespace);
        builder.start_element(SOAP_PREFIX, "Text", namespace);
        builder.attribute("xml", "lang", XML_NAMESPACE, "en-US");
        builder.text(refusal.reason);
        builder.end_element();
        builder.end_element();
    } else {
        leaf("", "faultcode", "", &code);
        leaf("", "faultstring", "", refusal.reason);
    }
    builder.end_element();
    builder.end_element();
    builder.end_element();
    let document: Document = builder.finish();
    let media_type = if soap == SoapVersion::Soap12 { "application/soap+xml" } else { "text/xml" };
    if exchange.message.media_type() != MediaType::parse(media_type) {
        payload::set_media_type(exchange, media_type);
    }
    if let Some(envelope) = Envelope::find(Arc::new(document)) {
        exchange.message.body.set(Form::Xml(Arc::new(envelope)));
    }
    exchange.log(Level::Warn, "WS-Security", &refusal.to_string());
    Flow::Respond
}
