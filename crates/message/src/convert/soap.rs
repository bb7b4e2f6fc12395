//! Envelopes of one SOAP version as envelopes of the other.

use penstock_xml::{Document, NodeId, NodeKind, TreeBuilder};

use crate::{Envelope, SoapVersion};

/// Fault codes that differ: SOAP 1.1, SOAP 1.2 (SOAP 1.2 part 1, appendix A).
const CODES: [(&str, &str); 2] = [("Server", "Receiver"), ("Client", "Sender")];

/// The role of the next receiver.
const NEXT_11: &str = "http://schemas.xmlsoap.org/soap/actor/next";
const NEXT_12: &str = "http://www.w3.org/2003/05/soap-envelope/role/next";

const XML: &str = penstock_xml::XML_NAMESPACE;

/// The fault in the body.
pub(super) fn fault(envelope: &Envelope) -> Option<NodeId> {
    let payload = envelope.payload()?;
    let document = &envelope.document;
    let in_soap = [SoapVersion::Soap11, SoapVersion::Soap12].map(SoapVersion::namespace);
    (document.local_name(payload) == "Fault" && in_soap.contains(&document.namespace(payload))).then_some(payload)
}

/// What a person should read of a fault: its detail when that is text, else the reason.
pub(super) fn fault_reason(document: &Document, fault: NodeId) -> String {
    let parts = Parts::from_fault(document, fault);
    let own_text = |node: NodeId| {
        let texts = document.children(node).filter(|child| document.kind(*child) == NodeKind::Text);
        texts.map(|text| document.text(text)).collect::<String>().trim().to_owned()
    };
    let detail = parts.detail.map(own_text).filter(|detail| !detail.is_empty());
    detail.or_else(|| parts.reason.map(own_text)).unwrap_or_default()
}

/// The envelope in another version: names, header attributes and a fault are translated, all else is copied.
pub(super) fn convert(from: &Envelope, version: SoapVersion) -> Document {
    let document = &*from.document;
    let mut converter = Converter { document, builder: TreeBuilder::with_capacity(document.node_count() + 8), version };
    converter.start(from.envelope, "Envelope");
    if let Some(header) = from.header {
        converter.start(header, "Header");
        for block in document.children(header) {
            converter.header_block(block);
        }
        converter.builder.end_element();
    }
    converter.start(from.body, "Body");
    let fault = fault(from);
    for child in document.children(from.body) {
        if Some(child) == fault {
            converter.fault(child);
        } else {
            converter.copy(child);
        }
    }
    converter.builder.end_element();
    converter.builder.end_element();
    converter.builder.finish()
}

/// The parts of a fault of either version.
#[derive(Default)]
struct Parts {
    code: Option<NodeId>,
    subcode: Option<NodeId>,
    reason: Option<NodeId>,
    actor: Option<NodeId>,
    node: Option<NodeId>,
    detail: Option<NodeId>,
}

impl Parts {
    fn from_fault(document: &Document, fault: NodeId) -> Parts {
        let child = |parent: NodeId, name: &str| {
            document.children(parent).find(|child| document.is_element(*child) && document.local_name(*child) == name)
        };
        let mut parts = Parts::default();
        for part in document.children(fault).filter(|part| document.is_element(*part)) {
            match document.local_name(part) {
                "faultcode" => parts.code = Some(part),
                "Code" => {
                    parts.code = child(part, "Value");
                    parts.subcode = child(part, "Subcode").and_then(|subcode| child(subcode, "Value"));
                }
                "faultstring" => parts.reason = Some(part),
                "Reason" => parts.reason = child(part, "Text"),
                "faultactor" | "Role" => parts.actor = Some(part),
                "Node" => parts.node = Some(part),
                "detail" | "Detail" => parts.detail = Some(part),
                _ => {}
            }
        }
        parts
    }
}

struct Converter<'d> {
    document: &'d Document,
    builder: TreeBuilder,
    version: SoapVersion,
}

impl Converter<'_> {
    /// Opens an element of the envelope with the prefix, declarations and foreign attributes it had.
    fn start(&mut self, original: NodeId, name: &str) {
        let document = self.document;
        let old = document.namespace(original);
        self.builder.start_element(document.prefix(original), name, self.version.namespace());
        for declaration in document.namespace_declarations(original) {
            if document.text(declaration) != old {
                self.builder.declare_namespace(document.local_name(declaration), document.text(declaration));
            }
        }
        for attribute in document.attributes(original).filter(|attribute| document.namespace(*attribute) != old) {
            self.builder.copy(document, attribute);
        }
    }

    /// Copies what is not part of the envelope, without the envelope's own namespace, which the
    /// tree would hand down as one in scope.
    fn copy(&mut self, node: NodeId) {
        let document = self.document;
        if !document.is_element(node) {
            return self.builder.copy(document, node);
        }
        self.open_copy(node);
        document.attributes(node).for_each(|attribute| self.builder.copy(document, attribute));
        document.children(node).for_each(|child| self.copy(child));
        self.builder.end_element();
    }

    fn open_copy(&mut self, element: NodeId) {
        let document = self.document;
        let soap = [SoapVersion::Soap11, SoapVersion::Soap12].map(SoapVersion::namespace);
        let name = document.name(element);
        self.builder.start_element(name.prefix, name.local, name.namespace);
        for declaration in document.namespace_declarations(element) {
            if !soap.contains(&document.text(declaration)) {
                self.builder.declare_namespace(document.local_name(declaration), document.text(declaration));
            }
        }
    }

    fn header_block(&mut self, block: NodeId) {
        let document = self.document;
        if document.kind(block) != NodeKind::Element {
            return self.builder.copy(document, block);
        }
        let soap = [SoapVersion::Soap11, SoapVersion::Soap12].map(SoapVersion::namespace);
        self.open_copy(block);
        for attribute in document.attributes(block) {
            let name = document.name(attribute);
            if soap.contains(&name.namespace) {
                let (local, value) = self.header_attribute(name.local, document.text(attribute));
                self.builder.attribute(name.prefix, local, self.version.namespace(), value);
            } else {
                self.builder.copy(document, attribute);
            }
        }
        document.children(block).for_each(|child| self.copy(child));
        self.builder.end_element();
    }

    fn header_attribute<'t>(&self, name: &'t str, value: &'t str) -> (&'t str, &'t str) {
        let to_12 = self.version == SoapVersion::Soap12;
        match (name, value) {
            ("actor" | "role", NEXT_11 | NEXT_12) if to_12 => ("role", NEXT_12),
            ("actor" | "role", NEXT_11 | NEXT_12) => ("actor", NEXT_11),
            ("actor" | "role", _) => (if to_12 { "role" } else { "actor" }, value),
            ("mustUnderstand", "1" | "true") => (name, if to_12 { "true" } else { "1" }),
            ("mustUnderstand", _) => (name, if to_12 { "false" } else { "0" }),
            _ => (name, value),
        }
    }

    fn fault(&mut self, fault: NodeId) {
        let parts = Parts::from_fault(self.document, fault);
        let prefix = self.document.prefix(fault).to_owned();
        self.start(fault, "Fault");
        if self.version == SoapVersion::Soap12 {
            self.fault_12(&prefix, &parts)
        } else {
            self.fault_11(&prefix, &parts)
        }
        self.builder.end_element();
    }

    fn fault_11(&mut self, prefix: &str, parts: &Parts) {
        let code = self.code(prefix, parts.code);
        self.leaf("", "faultcode", "", &code.unwrap_or_else(|own| own));
        let reason = self.text_of(parts.reason);
        self.leaf("", "faultstring", "", &reason);
        if parts.actor.or(parts.node).is_some() {
            let actor = self.text_of(parts.actor.or(parts.node));
            self.leaf("", "faultactor", "", &actor);
        }
        if let Some(detail) = parts.detail {
            self.builder.start_element("", "detail", "");
            self.document.children(detail).for_each(|child| self.copy(child));
            self.builder.end_element();
        }
    }

    fn fault_12(&mut self, prefix: &str, parts: &Parts) {
        let namespace = self.version.namespace();
        self.builder.start_element(prefix, "Code", namespace);
        match self.code(prefix, parts.code) {
            Ok(code) => self.leaf(prefix, "Value", namespace, &code),
            Err(own) => {
                // SOAP 1.2 has five codes; any other is a subcode of the receiver's.
                self.leaf(prefix, "Value", namespace, &qualified(prefix, "Receiver"));
                self.builder.start_element(prefix, "Subcode", namespace);
                self.leaf(prefix, "Value", namespace, &own);
                self.builder.end_element();
            }
        }
        if parts.subcode.is_some() {
            let subcode = self.text_of(parts.subcode);
            self.builder.start_element(prefix, "Subcode", namespace);
            self.leaf(prefix, "Value", namespace, &subcode);
            self.builder.end_element();
        }
        self.builder.end_element();
        self.builder.start_element(prefix, "Reason", namespace);
        self.builder.start_element(prefix, "Text", namespace);
        self.builder.attribute("xml", "lang", XML, "en-US");
        let reason = self.text_of(parts.reason);
        self.builder.text(&reason);
        self.builder.end_element();
        self.builder.end_element();
        if parts.node.is_some() {
            let node = self.text_of(parts.node);
            self.leaf(prefix, "Node", namespace, &node);
        }
        if parts.actor.is_some() {
            let actor = self.text_of(parts.actor);
            self.leaf(prefix, "Role", namespace, &actor);
        }
        if let Some(detail) = parts.detail {
            self.builder.start_element(prefix, "Detail", namespace);
            self.document.children(detail).for_each(|child| self.copy(child));
            self.builder.end_element();
        }
    }

    /// The code in the target version; `Err` with a code of the application's own.
    fn code(&self, prefix: &str, code: Option<NodeId>) -> Result<String, String> {
        let text = self.text_of(code);
        let local = text.rsplit(':').next().unwrap_or_default();
        let to_12 = self.version == SoapVersion::Soap12;
        for (name_11, name_12) in CODES {
            if local == name_11 || local == name_12 {
                return Ok(qualified(prefix, if to_12 { name_12 } else { name_11 }));
            }
        }
        match local {
            "VersionMismatch" | "MustUnderstand" => Ok(qualified(prefix, local)),
            "" => Ok(qualified(prefix, if to_12 { "Receiver" } else { "Server" })),
            _ => Err(text),
        }
    }

    fn text_of(&self, node: Option<NodeId>) -> String {
        node.map(|node| self.document.string_value(node).trim().to_owned()).unwrap_or_default()
    }

    fn leaf(&mut self, prefix: &str, name: &str, namespace: &str, text: &str) {
        self.builder.start_element(prefix, name, namespace);
        self.builder.text(text);
        self.builder.end_element();
    }
}

fn qualified(prefix: &str, local: &str) -> String {
    if prefix.is_empty() { local.to_owned() } else { format!("{prefix}:{local}") }
}
