//! The schemas inside the WSDL: one for each namespace, with the elements of requests and results.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::{RequestParameter, type_of_parameter};
use crate::model::{DEFAULT_NAMESPACE, DataService, Output, OutputValue};

/// Content that is not described.
pub(super) const ANYTHING: &str = "<xs:complexType><xs:sequence><xs:any minOccurs=\"0\" maxOccurs=\"unbounded\" \
    processContents=\"lax\"/></xs:sequence></xs:complexType>";

/// Elements by namespace.
pub(super) struct Schemas<'s> {
    service: &'s DataService,
    /// The text of each element by its name.
    namespaces: BTreeMap<Arc<str>, BTreeMap<String, String>>,
    /// Queries whose results are declared. A query may call itself.
    declared: HashSet<usize>,
    /// Prefixes by namespace, in the order of their first use.
    prefixes: Vec<Arc<str>>,
}

impl<'s> Schemas<'s> {
    pub(super) fn new(service: &'s DataService) -> Schemas<'s> {
        let mut schemas =
            Schemas { service, namespaces: BTreeMap::new(), declared: HashSet::new(), prefixes: Vec::new() };
        // The prefix of the service is the first.
        schemas.prefix(&service.namespace);
        schemas
    }

    /// The prefix of a namespace.
    fn prefix(&mut self, namespace: &Arc<str>) -> String {
        let index = self.prefixes.iter().position(|known| known == namespace).unwrap_or_else(|| {
            self.prefixes.push(namespace.clone());
            self.prefixes.len() - 1
        });
        format!("ns{index}")
    }

    /// Declares an element and returns its qualified name. An element that two results fill differently may contain anything.
    fn declare(&mut self, namespace: &Arc<str>, name: &str, content: &str) -> String {
        let element = |content: &str| format!("<xs:element name=\"{name}\">{content}</xs:element>");
        let elements = self.namespaces.entry(namespace.clone()).or_default();
        let text = element(content);
        match elements.get_mut(name) {
            Some(known) if *known != text => *known = element(ANYTHING),
            Some(_) => {}
            None => drop(elements.insert(name.to_owned(), text)),
        }
        format!("{}:{name}", self.prefix(namespace))
    }

    /// The element of a request.
    pub(super) fn request(&mut self, name: &str, parameters: &[RequestParameter]) -> String {
        let members = parameters.iter().filter(|parameter| penstock_xml::is_ncname(&parameter.name)).map(|parameter| {
            let from = if parameter.is_required { "" } else { " minOccurs=\"0\"" };
            let to = if parameter.is_array { " maxOccurs=\"unbounded\"" } else { "" };
            let kind = type_of_parameter(parameter.kind);
            format!("<xs:element{from}{to} name=\"{}\" nillable=\"true\" type=\"xs:{kind}\"/>", parameter.name)
        });
        let members: String = members.collect();
        let namespace = self.service.namespace.clone();
        self.declare(&namespace, name, &complex(&members, ""))
    }

    /// The element of a request that contains requests of these names, any number of times.
    pub(super) fn container(&mut self, name: &str, items: &[&str]) -> String {
        let namespace = self.service.namespace.clone();
        let prefix = self.prefix(&namespace);
        let references: String = items.iter().map(|item| format!("<xs:element ref=\"{prefix}:{item}\"/>")).collect();
        let choice = format!("<xs:choice minOccurs=\"0\" maxOccurs=\"unbounded\">{references}</xs:choice>");
        self.declare(&namespace, name, &format!("<xs:complexType>{choice}</xs:complexType>"))
    }

    /// The element of the result of a query; `None` when it has none, or one without a name.
    pub(super) fn result(&mut self, query: usize) -> Option<String> {
        let service = self.service;
        let mapping = service.queries[query].result.as_ref()?;
        let name = Some(&mapping.element).filter(|name| penstock_xml::is_ncname(name))?;
        let namespace = mapping.namespace.as_ref().unwrap_or(&service.namespace);
        if !self.declared.insert(query) {
            return Some(format!("{}:{name}", self.prefix(namespace)));
        }
        let content = self.content(&mapping.outputs);
        let content = match mapping.row.as_ref().filter(|row| penstock_xml::is_ncname(row)) {
            Some(row) => complex(
                &format!("<xs:element maxOccurs=\"unbounded\" minOccurs=\"0\" name=\"{row}\">{content}</xs:element>"),
                "",
            ),
            None => content,
        };
        Some(self.declare(namespace, name, &content))
    }

    /// An element of Micro Integrator itself: `REQUEST_STATUS`, `DataServiceFault`.
    pub(super) fn own(&mut self, name: &str, content: &str) -> String {
        self.declare(&DEFAULT_NAMESPACE.into(), name, content)
    }

    /// The content of a row.
    fn content(&mut self, outputs: &[Output]) -> String {
        let (mut elements, mut attributes) = (String::new(), String::new());
        for output in outputs {
            let from = if output.is_optional || !output.roles.is_empty() { " minOccurs=\"0\"" } else { "" };
            let (name, kind) = (&output.name, &output.schema_type);
            match &output.value {
                OutputValue::Call(call) => {
                    if let Some(element) = self.result(call.query) {
                        let from = if call.roles.is_empty() { "" } else { " minOccurs=\"0\"" };
                        elements.push_str(&format!("<xs:element{from} ref=\"{element}\"/>"));
                    }
                }
                _ if output.is_attribute => {
                    attributes.push_str(&format!("<xs:attribute name=\"{name}\" type=\"xs:{kind}\"/>"));
                }
                // An element of another namespace is declared by no schema of the service.
                _ if output.namespace.is_some() => {
                    elements.push_str("<xs:any namespace=\"##other\" processContents=\"skip\"/>");
                }
                OutputValue::Complex(inner) => {
                    let content = self.content(inner);
                    elements.push_str(&format!("<xs:element{from} name=\"{name}\">{content}</xs:element>"));
                }
                _ => elements
                    .push_str(&format!("<xs:element{from} name=\"{name}\" nillable=\"true\" type=\"xs:{kind}\"/>")),
            }
        }
        complex(&elements, &attributes)
    }

    /// The declarations of the prefixes, as attributes.
    pub(super) fn prefixes(&self) -> String {
        let declare = |(index, namespace): (usize, &Arc<str>)| format!(" xmlns:ns{index}=\"{}\"", attribute(namespace));
        self.prefixes.iter().enumerate().map(declare).collect()
    }

    /// All schemas. Each imports the others: elements refer to those of any.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        for (namespace, elements) in &self.namespaces {
            out.push_str(&format!(
                "<xs:schema elementFormDefault=\"qualified\" attributeFormDefault=\"unqualified\" targetNamespace=\"{}\">",
                attribute(namespace)
            ));
            for other in self.namespaces.keys().filter(|other| *other != namespace) {
                out.push_str(&format!("<xs:import namespace=\"{}\"/>", attribute(other)));
            }
            elements.values().for_each(|element| out.push_str(element));
            out.push_str("</xs:schema>");
        }
        out
    }
}

fn complex(elements: &str, attributes: &str) -> String {
    format!("<xs:complexType><xs:sequence>{elements}</xs:sequence>{attributes}</xs:complexType>")
}

/// A text in an attribute.
pub(super) fn attribute(text: &str) -> String {
    crate::fault::escaped(text).replace('"', "&quot;")
}
