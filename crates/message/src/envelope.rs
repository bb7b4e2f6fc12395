//! The XML form of a body.

use std::sync::Arc;

use penstock_xml::{Document, NodeId};

/// Which SOAP the envelope is, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SoapVersion {
    /// SOAP 1.1.
    Soap11,
    /// SOAP 1.2.
    Soap12,
    /// Plain XML; the envelope around it was synthesized so that paths see one shape.
    None,
}

impl SoapVersion {
    /// The envelope namespace. A synthesized envelope is a SOAP 1.1 one.
    pub fn namespace(self) -> &'static str {
        match self {
            SoapVersion::Soap12 => "http://www.w3.org/2003/05/soap-envelope",
            _ => "http://schemas.xmlsoap.org/soap/envelope/",
        }
    }
}

/// A SOAP envelope as a tree. Paths of the artifacts are evaluated with its document as the context.
///
/// Invariant: `envelope` is the root element of `document`, `body` its child element `Body`.
#[derive(Debug, Clone)]
pub struct Envelope {
    /// The tree.
    pub document: Arc<Document>,
    /// The `Envelope` element.
    pub envelope: NodeId,
    /// The `Header` element, when there is one.
    pub header: Option<NodeId>,
    /// The `Body` element.
    pub body: NodeId,
    /// Which SOAP; `None` when plain XML goes out as its first child of `Body`.
    pub soap: SoapVersion,
}

impl Envelope {
    /// The envelope a document holds. `None` when its root is not a SOAP `Envelope` with a `Body`.
    pub fn find(document: Arc<Document>) -> Option<Envelope> {
        let envelope = document.root_element()?;
        if document.local_name(envelope) != "Envelope" {
            return None;
        }
        let soap = match document.namespace(envelope) {
            "http://www.w3.org/2003/05/soap-envelope" => SoapVersion::Soap12,
            "http://schemas.xmlsoap.org/soap/envelope/" => SoapVersion::Soap11,
            _ => return None,
        };
        let part = |name: &str| {
            document
                .children(envelope)
                .find(|child| document.local_name(*child) == name && document.namespace(*child) == soap.namespace())
        };
        let (header, body) = (part("Header"), part("Body")?);
        Some(Envelope { envelope, header, body, soap, document })
    }

    /// The first element inside `Body`: the payload.
    pub fn payload(&self) -> Option<NodeId> {
        use penstock_xml::NodeKind;
        self.document.children(self.body).find(|child| self.document.kind(*child) == NodeKind::Element)
    }
}
