//! WS-Addressing: the header blocks that an endpoint with `<enableAddressing/>` puts into a request.

use std::sync::Arc;

use penstock_message::{Envelope, Form, Message, SoapVersion};
use penstock_xml::TreeBuilder;

use crate::endpoint::{Format, Target};
use crate::{Exchange, Fault};

/// Which WS-Addressing: the recommendation, or the submission before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AddressingVersion {
    /// `final`
    #[default]
    Final,
    /// `submission`
    Submission,
}

impl AddressingVersion {
    fn namespace(self) -> &'static str {
        match self {
            AddressingVersion::Final => "http://www.w3.org/2005/08/addressing",
            AddressingVersion::Submission => "http://schemas.xmlsoap.org/ws/2004/08/addressing",
        }
    }

    fn anonymous(self) -> &'static str {
        match self {
            AddressingVersion::Final => "http://www.w3.org/2005/08/addressing/anonymous",
            AddressingVersion::Submission => "http://schemas.xmlsoap.org/ws/2004/08/addressing/role/anonymous",
        }
    }
}

/// The prefixes of what is made here.
const SOAP: &str = "soapenv";
const WSA: &str = "wsa";

/// The message with the header blocks; `None` when it has no envelope to put them into. The exchange's own message stays
/// as it is, so that a second attempt does not get a second set of blocks.
pub(crate) fn addressed(exchange: &mut Exchange, url: &str, target: &Target) -> Result<Option<Message>, Fault> {
    let Some(version) = target.addressing else { return Ok(None) };
    let envelope = exchange.xml()?;
    let soap = match (target.format, envelope.soap) {
        (Format::Pox | Format::Get, _) => return Ok(None),
        (Format::Soap11 | Format::Soap12, SoapVersion::None) => SoapVersion::Soap11,
        (_, SoapVersion::None) => return Ok(None),
        (_, soap) => soap,
    };
    let id = exchange.message_id();
    let action = exchange.message.action().map(str::to_owned);
    let addressing = exchange.message.addressing.as_deref().cloned().unwrap_or_default();
    let action = addressing.action.or(action.map(Arc::from)).filter(|action| !action.is_empty());
    let reply_to = addressing.reply_to.unwrap_or_else(|| version.anonymous().into());
    let endpoint = |builder: &mut TreeBuilder, name: &str, address: &str| {
        builder.start_element(WSA, name, version.namespace());
        block(builder, "Address", version, address);
        builder.end_element();
    };
    let mut builder = TreeBuilder::new();
    builder.start_element(SOAP, "Envelope", soap.namespace());
    builder.start_element(SOAP, "Header", soap.namespace());
    copy_other_blocks(&mut builder, &envelope);
    block(&mut builder, "To", version, url);
    endpoint(&mut builder, "ReplyTo", &reply_to);
    if let Some(from) = &addressing.from {
        endpoint(&mut builder, "From", from);
    }
    if let Some(fault_to) = &addressing.fault_to {
        endpoint(&mut builder, "FaultTo", fault_to);
    }
    block(&mut builder, "MessageID", version, &id);
    if let Some(action) = &action {
        block(&mut builder, "Action", version, action);
    }
    if let Some(relates_to) = &addressing.relates_to {
        block(&mut builder, "RelatesTo", version, relates_to);
    }
    builder.end_element();
    builder.copy(&envelope.document, envelope.body);
    builder.end_element();
    let Some(envelope) = Envelope::find(Arc::new(builder.finish())) else { return Ok(None) };
    let mut message = exchange.message.copy();
    message.body.set(Form::Xml(Arc::new(envelope)));
    Ok(Some(message))
}

fn block(builder: &mut TreeBuilder, name: &str, version: AddressingVersion, text: &str) {
    builder.start_element(WSA, name, version.namespace());
    builder.text(text);
    builder.end_element();
}

/// Header blocks of WS-Addressing that came with the message are about its way here.
fn copy_other_blocks(builder: &mut TreeBuilder, envelope: &Envelope) {
    let Some(header) = envelope.header else { return };
    let document = &envelope.document;
    for block in document.children(header).filter(|child| document.is_element(*child)) {
        let namespace = document.namespace(block);
        let is_addressing = [AddressingVersion::Final, AddressingVersion::Submission]
            .iter()
            .any(|known| known.namespace() == namespace);
        if !is_addressing {
            builder.copy(document, block);
        }
    }
}
