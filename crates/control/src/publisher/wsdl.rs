//! WSDL files: the addresses of their services, and the operations of SOAP bindings with the elements that requests have.

use std::collections::HashMap;

use penstock_xml::{Document, NodeId, ParseOptions};

use crate::problem::Problem;

const WSDL_1: &str = "http://schemas.xmlsoap.org/wsdl/";
const WSDL_2: &str = "http://www.w3.org/ns/wsdl";
const XSD: &str = "http://www.w3.org/2001/XMLSchema";

/// The bindings of SOAP 1.1 and 1.2 in WSDL 1.1.
const SOAP_BINDINGS: [&str; 2] = ["http://schemas.xmlsoap.org/wsdl/soap/", "http://schemas.xmlsoap.org/wsdl/soap12/"];

/// Elements inside elements of a request; schemas may refer to themselves.
const DEPTH_MAX: usize = 8;

/// Elements of one request: types that contain many others grow with each level.
const ELEMENTS_MAX: usize = 1_000;

/// What a WSDL file describes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wsdl {
    /// `1.1` or `2.0`.
    pub(super) version: &'static str,
    /// The name and the address of each port.
    pub(super) endpoints: Vec<(String, String)>,
    /// The operations of its SOAP bindings.
    pub(super) operations: Vec<SoapOperation>,
}

/// An operation over SOAP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SoapOperation {
    pub(super) name: String,
    pub(super) action: String,
    /// Whether requests have SOAP 1.2.
    pub(super) is_soap_12: bool,
    /// The element in the body of a request.
    pub(super) request: SoapElement,
}

/// An element of a request, and what is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SoapElement {
    pub(super) name: String,
    pub(super) namespace: String,
    /// The name of its simple type; empty when it has elements.
    pub(super) kind: String,
    pub(super) is_list: bool,
    pub(super) children: Vec<SoapElement>,
}

fn invalid(code: u32, message: &str, why: &str) -> Problem {
    let mut problem = Problem::rejected(code, message, why);
    problem.errors.push((code.to_string(), why.to_owned()));
    problem
}

/// Reads a file; schemas may be in other files of the same archive.
pub(super) fn read(content: &[u8], others: &[&[u8]]) -> Result<Wsdl, Problem> {
    let parse = |bytes: &[u8]| Document::parse(bytes.to_vec(), &ParseOptions::default());
    let document = parse(content).map_err(|error| {
        let why = format!("Provided WSDL content cannot be processed: {error}");
        invalid(900_676, "Invalid WSDL", &why)
    })?;
    let not_recognized = || invalid(900_682, "Invalid WSDL Content", "Provided content is not recognized as a WSDL");
    let root = document.root_element().ok_or_else(not_recognized)?;
    match (document.namespace(root), document.local_name(root)) {
        (WSDL_1, "definitions") => {
            let others: Vec<Document> = others.iter().filter_map(|other| parse(other).ok()).collect();
            let mut documents = vec![&document];
            documents.extend(&others);
            Ok(Reading::new(&documents).wsdl_1())
        }
        (WSDL_2, "description") => Ok(wsdl_2(&document, root)),
        _ => Err(not_recognized()),
    }
}

fn elements<'d>(document: &'d Document, parent: NodeId, local: &'d str) -> impl Iterator<Item = NodeId> + 'd {
    document.children(parent).filter(move |id| document.is_element(*id) && document.local_name(*id) == local)
}

fn attribute<'d>(document: &'d Document, element: NodeId, name: &str) -> &'d str {
    document.attribute(element, "", name).unwrap_or_default()
}

/// The part of a name behind its prefix.
fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

fn wsdl_2(document: &Document, root: NodeId) -> Wsdl {
    let services = elements(document, root, "service");
    let ports = services.flat_map(|service| elements(document, service, "endpoint"));
    let endpoint = |port| {
        let address = attribute(document, port, "address");
        (!address.is_empty()).then(|| (attribute(document, port, "name").to_owned(), address.to_owned()))
    };
    Wsdl { version: "2.0", endpoints: ports.filter_map(endpoint).collect(), operations: Vec::new() }
}

/// The files of a description, the first one with the service.
struct Reading<'d> {
    documents: &'d [&'d Document],
    /// Elements and types of schemas by what they are and their name.
    declared: HashMap<(&'d str, &'d str), (&'d Document, NodeId)>,
    elements: usize,
}

impl<'d> Reading<'d> {
    fn new(documents: &'d [&'d Document]) -> Reading<'d> {
        let mut declared = HashMap::new();
        for document in documents.iter().copied() {
            let Some(root) = document.root_element() else { continue };
            let within = document.descendants(root).chain([root]);
            let schemas = within.filter(|id| {
                document.is_element(*id) && document.local_name(*id) == "schema" && document.namespace(*id) == XSD
            });
            for declaration in schemas.flat_map(|schema| document.children(schema)) {
                if document.is_element(declaration) {
                    let name = attribute(document, declaration, "name");
                    declared.entry((document.local_name(declaration), name)).or_insert((document, declaration));
                }
            }
        }
        Reading { documents, declared, elements: 0 }
    }

    fn wsdl_1(mut self) -> Wsdl {
        let mut wsdl = Wsdl { version: "1.1", ..Wsdl::default() };
        for document in self.documents {
            let Some(root) = document.root_element() else { continue };
            for service in elements(document, root, "service") {
                for port in elements(document, service, "port") {
                    let address = elements(document, port, "address").next();
                    let location = address.map(|address| attribute(document, address, "location")).unwrap_or_default();
                    if !location.is_empty() {
                        wsdl.endpoints.push((attribute(document, port, "name").to_owned(), location.to_owned()));
                    }
                }
            }
            for binding in elements(document, root, "binding") {
                self.binding(document, root, binding, &mut wsdl.operations);
            }
        }
        wsdl
    }

    /// The operations of a binding; one of SOAP 1.1 wins over the same of SOAP 1.2.
    fn binding(&mut self, document: &'d Document, root: NodeId, binding: NodeId, found: &mut Vec<SoapOperation>) {
        let soap = elements(document, binding, "binding").next().map(|soap| document.namespace(soap));
        let Some(version) = soap.and_then(|soap| SOAP_BINDINGS.iter().position(|known| *known == soap)) else { return };
        let wanted = local(attribute(document, binding, "type"));
        let ports = elements(document, root, "portType");
        let port = ports.into_iter().find(|port| attribute(document, *port, "name") == wanted);
        for operation in elements(document, binding, "operation") {
            let name = attribute(document, operation, "name");
            if name.is_empty() || found.iter().any(|known| known.name == name) {
                continue;
            }
            let of_soap = elements(document, operation, "operation").next();
            let action = of_soap.map(|soap| attribute(document, soap, "soapAction")).unwrap_or_default();
            let request = port.map(|port| self.request(document, root, port, name)).unwrap_or_default();
            found.push(SoapOperation {
                name: name.to_owned(),
                action: action.to_owned(),
                is_soap_12: version == 1,
                request,
            });
        }
    }

    /// The element that a request of an operation has: that of its message, or one named as the operation with the parts.
    fn request(&mut self, document: &'d Document, root: NodeId, port: NodeId, operation: &str) -> SoapElement {
        let declared = elements(document, port, "operation").find(|id| attribute(document, *id, "name") == operation);
        let input = declared.and_then(|declared| elements(document, declared, "input").next());
        let message = input.map(|input| local(attribute(document, input, "message"))).unwrap_or_default();
        let message = elements(document, root, "message").find(|id| attribute(document, *id, "name") == message);
        let parts: Vec<NodeId> = message.into_iter().flat_map(|message| elements(document, message, "part")).collect();
        let of_document = parts.first().map(|part| attribute(document, *part, "element")).unwrap_or_default();
        if let Some((schema, element)) = self.declared.get(&("element", local(of_document))).copied() {
            return self.element(schema, element, 0);
        }
        let children = parts.iter().map(|part| SoapElement {
            name: attribute(document, *part, "name").to_owned(),
            kind: local(attribute(document, *part, "type")).to_owned(),
            ..SoapElement::default()
        });
        SoapElement {
            name: operation.to_owned(),
            namespace: attribute(document, root, "targetNamespace").to_owned(),
            children: children.collect(),
            ..SoapElement::default()
        }
    }

    /// An element that a schema declares.
    fn element(&mut self, document: &'d Document, element: NodeId, depth: usize) -> SoapElement {
        self.elements += 1;
        let reference = local(attribute(document, element, "ref"));
        if let Some((other, target)) = self.declared.get(&("element", reference)).copied().filter(|_| depth < DEPTH_MAX)
        {
            let is_list = is_list(document, element);
            return SoapElement { is_list, ..self.element(other, target, depth + 1) };
        }
        let schema = document.ancestors(element).find(|id| document.local_name(*id) == "schema");
        let is_global = document.parent(element) == schema;
        let is_qualified = is_global
            || attribute(document, element, "form") == "qualified"
            || schema.is_some_and(|schema| attribute(document, schema, "elementFormDefault") == "qualified");
        let namespace = schema.map(|schema| attribute(document, schema, "targetNamespace")).unwrap_or_default();
        let mut found = SoapElement {
            name: attribute(document, element, "name").to_owned(),
            namespace: if is_qualified { namespace.to_owned() } else { String::new() },
            is_list: is_list(document, element),
            ..SoapElement::default()
        };
        let kind = local(attribute(document, element, "type"));
        let inline = elements(document, element, "complexType").next().map(|inline| (document, inline));
        match inline.or_else(|| self.declared.get(&("complexType", kind)).copied()) {
            Some((of, complex)) => self.content(of, complex, depth + 1, &mut found.children),
            None => kind.clone_into(&mut found.kind),
        }
        found
    }

    /// The elements in a complex type, those of the type that it extends first.
    fn content(&mut self, document: &'d Document, node: NodeId, depth: usize, found: &mut Vec<SoapElement>) {
        if depth > DEPTH_MAX {
            return;
        }
        for child in document.children(node).filter(|id| document.is_element(*id)) {
            if self.elements >= ELEMENTS_MAX {
                return;
            }
            match document.local_name(child) {
                "element" => found.push(self.element(document, child, depth)),
                "extension" => {
                    let base = local(attribute(document, child, "base"));
                    if let Some((other, base)) = self.declared.get(&("complexType", base)).copied() {
                        self.content(other, base, depth + 1, found);
                    }
                    self.content(document, child, depth, found);
                }
                "sequence" | "all" | "choice" | "complexContent" => self.content(document, child, depth, found),
                _ => {}
            }
        }
    }
}

fn is_list(document: &Document, element: NodeId) -> bool {
    !matches!(attribute(document, element, "maxOccurs"), "" | "0" | "1")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) const QUOTES: &str = r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" targetNamespace="urn:q"
 xmlns:q="urn:q" xmlns:s="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:x="http://www.w3.org/2001/XMLSchema">
<types><x:schema targetNamespace="urn:q" elementFormDefault="qualified">
 <x:element name="getQuote"><x:complexType><x:sequence>
  <x:element name="symbol" type="x:string"/><x:element name="option" type="q:Option" maxOccurs="unbounded"/>
 </x:sequence></x:complexType></x:element>
 <x:complexType name="Option"><x:sequence><x:element name="depth" type="x:int"/><x:element name="next" type="q:Option"/>
 </x:sequence></x:complexType>
</x:schema></types>
<message name="in"><part name="parameters" element="q:getQuote"/></message>
<portType name="P"><operation name="getQuote"><input message="q:in"/></operation></portType>
<binding name="B" type="q:P"><s:binding transport="http://schemas.xmlsoap.org/soap/http"/>
 <operation name="getQuote"><s:operation soapAction="urn:getQuote"/></operation></binding>
<service name="S"><port name="QuotePort" binding="q:B"><s:address location="http://backend/quotes"/></port></service>
</definitions>"#;

    #[test]
    fn operations_have_the_elements_of_their_requests() {
        let wsdl = read(QUOTES.as_bytes(), &[]).unwrap();
        assert_eq!(wsdl.version, "1.1");
        assert_eq!(wsdl.endpoints, [("QuotePort".to_owned(), "http://backend/quotes".to_owned())]);
        let operation = &wsdl.operations[0];
        assert_eq!((operation.name.as_str(), operation.action.as_str()), ("getQuote", "urn:getQuote"));
        let names: Vec<&str> = operation.request.children.iter().map(|child| child.name.as_str()).collect();
        assert_eq!((operation.request.namespace.as_str(), names), ("urn:q", vec!["symbol", "option"]));
        // A type that contains itself ends at the limit.
        assert!(operation.request.children[1].is_list && !operation.request.children[1].children.is_empty());
    }

    #[test]
    fn what_is_no_wsdl_is_rejected() {
        for (text, expected) in [("<x/>", 900_682), ("not XML", 900_676), ("", 900_676)] {
            assert_eq!(read(text.as_bytes(), &[]).unwrap_err().code, expected, "{text}");
        }
        let version_2 = r#"<description xmlns="http://www.w3.org/ns/wsdl"><service name="S">
            <endpoint name="E" address="http://backend"/></service></description>"#;
        let wsdl = read(version_2.as_bytes(), &[]).unwrap();
        assert_eq!((wsdl.version, wsdl.endpoints.len()), ("2.0", 1));
    }
}
