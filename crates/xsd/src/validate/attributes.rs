//! The attributes of an element.

use penstock_xml::NodeId;

use super::Validator;
use crate::XSI;
use crate::model::{AttributeUse, ComplexType, Process};

impl<'v> Validator<'v> {
    /// An element of a simple type has none but those of schema instances.
    pub(super) fn no_attributes(&mut self, node: NodeId) {
        let document = self.document;
        for attribute in document.attributes(node) {
            if !self.is_instance_attribute(attribute) {
                let name = self.written(node);
                self.report(
                    attribute,
                    format!("cvc-type.3.1.1: Element '{name}' is a simple type, so it cannot have attributes, excepting those whose namespace name is identical to 'http://www.w3.org/2001/XMLSchema-instance' and whose [local name] is one of 'type', 'nil', 'schemaLocation' or 'noNamespaceSchemaLocation'. However, the attribute, '{}' was found.", self.written(attribute)),
                );
            }
        }
    }

    /// One of the four attributes that every element may have.
    fn is_instance_attribute(&self, attribute: NodeId) -> bool {
        const NAMES: &[&str] = &["type", "nil", "schemaLocation", "noNamespaceSchemaLocation"];
        self.document.namespace(attribute) == XSI && NAMES.contains(&self.document.local_name(attribute))
    }

    pub(super) fn attributes(&mut self, node: NodeId, complex: &'v ComplexType) {
        let document = self.document;
        for attribute in document.attributes(node) {
            if self.is_instance_attribute(attribute) {
                continue;
            }
            let symbol = self.symbol(attribute);
            match complex.attributes.iter().find(|declared| Some(declared.name) == symbol) {
                Some(declared) => self.attribute(node, attribute, declared),
                None => self.other_attribute(node, attribute, complex),
            }
        }
        for required in complex.attributes.iter().filter(|declared| declared.required) {
            if !document.attributes(node).any(|attribute| self.symbol(attribute) == Some(required.name)) {
                let (name, local) = (self.written(node), self.components.names.local(required.name));
                self.report(node, format!("cvc-complex-type.4: Attribute '{local}' must appear on element '{name}'."));
            }
        }
    }

    /// An attribute that only a wildcard may allow.
    fn other_attribute(&mut self, node: NodeId, attribute: NodeId, complex: &'v ComplexType) {
        let namespace = self.document.namespace(attribute);
        let wildcard = complex.any_attribute.as_ref().filter(|wildcard| wildcard.namespaces.allow(namespace));
        let process = match wildcard {
            Some(wildcard) => wildcard.process,
            None => return self.not_allowed(node, attribute),
        };
        if process == Process::Skip {
            return;
        }
        let declared = self.symbol(attribute).and_then(|symbol| self.components.global_attributes.get(&symbol));
        match declared {
            Some(declared) => self.attribute(node, attribute, declared),
            None if process == Process::Strict => self.not_allowed(node, attribute),
            None => {}
        }
    }

    fn not_allowed(&mut self, node: NodeId, attribute: NodeId) {
        let (name, of) = (self.written(attribute), self.written(node));
        self.report(
            attribute,
            format!("cvc-complex-type.3.2.2: Attribute '{name}' is not allowed to appear in element '{of}'."),
        );
    }

    fn attribute(&mut self, node: NodeId, attribute: NodeId, declared: &'v AttributeUse) {
        let text = self.document.text(attribute);
        match self.value(attribute, node, declared.kind, text) {
            Err(message) => {
                self.report(attribute, message);
                let label = self.components.type_of(declared.kind).label();
                let (name, of) = (self.written(attribute), self.written(node));
                self.report(attribute, format!("cvc-attribute.3: The value '{text}' of attribute '{name}' on element '{of}' is not valid with respect to its type, '{label}'."));
            }
            Ok(value) => {
                if let Some(constraint) = declared.value.as_ref().filter(|constraint| constraint.fixed)
                    && !self.is_fixed(node, declared.kind, &constraint.text, &value)
                {
                    let (name, of) = (self.written(attribute), self.written(node));
                    self.report(attribute, format!("cvc-attribute.4: The value '{text}' of attribute '{name}' on element '{of}' is not valid with respect to its fixed '{{value constraint}}'. The attribute must have a value of '{}'.", constraint.text));
                }
            }
        }
    }
}
