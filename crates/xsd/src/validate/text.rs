//! What elements and attributes hold as text: values of simple types, identifiers and references to them.

use std::borrow::Cow;

use penstock_xml::{NodeId, NodeKind};

use super::Validator;
use crate::model::{ElementDeclaration, Type, TypeId, Types, Variety};
use crate::simple::{Builtin, Value, check, white_spaced};

impl<'v> Validator<'v> {
    pub(super) fn has_text(&self, node: NodeId) -> bool {
        self.document.children(node).any(|child| {
            self.document.kind(child) == NodeKind::Text
                && self.document.text(child).contains(|letter: char| !matches!(letter, ' ' | '\t' | '\n' | '\r'))
        })
    }

    /// Checks an element that holds text only.
    pub(super) fn text(&mut self, node: NodeId, id: TypeId, declaration: Option<&'v ElementDeclaration>, code: &str) {
        if self.document.children(node).any(|child| self.document.is_element(child)) {
            let name = self.written(node);
            let message = if code == "cvc-type.3.1.2" {
                format!(
                    "{code}: Element '{name}' is a simple type, so it must have no element information item [children]."
                )
            } else {
                format!("{code}: Element '{name}' must have no element [children], and the value must be valid.")
            };
            self.report(node, message);
            return;
        }
        let text = self.document.string_value(node);
        let constraint = declaration.and_then(|declaration| declaration.value.as_ref());
        let text: Cow<'_, str> = match constraint {
            Some(constraint) if text.is_empty() => Cow::Borrowed(&constraint.text),
            _ => text,
        };
        let value = match self.value(node, node, id, &text) {
            Ok(value) => value,
            Err(message) => {
                self.report(node, message);
                let (name, shown) = (self.written(node), self.collapsed(id, &text).into_owned());
                if code == "cvc-type.3.1.2" {
                    self.report(node, format!("cvc-type.3.1.3: The value '{shown}' of element '{name}' is not valid."));
                } else {
                    self.report(node, format!("cvc-complex-type.2.2: Element '{name}' must have no element [children], and the value must be valid."));
                }
                return;
            }
        };
        if let Some(constraint) = constraint.filter(|constraint| constraint.fixed)
            && !self.is_fixed(node, id, &constraint.text, &value)
        {
            let name = self.written(node);
            self.report(
                node,
                format!("cvc-elt.5.2.2.2.2: The value '{text}' of element '{name}' does not match the fixed {{value constraint}} value '{}'.", constraint.text),
            );
        }
    }

    pub(super) fn is_fixed(&self, element: NodeId, id: TypeId, fixed: &str, value: &Value<'_>) -> bool {
        let context = |prefix: &str| self.document.lookup_namespace(element, prefix).map(str::to_owned);
        check(self.components, id, fixed, &context).is_ok_and(|wanted| wanted.equals(value))
    }

    pub(super) fn collapsed<'t>(&self, id: TypeId, text: &'t str) -> Cow<'t, str> {
        match self.components.get(id) {
            Type::Simple(simple) => white_spaced(text, simple.white_space),
            Type::Complex(_) => Cow::Borrowed(text),
        }
    }

    /// The value of a text; identifiers and references are remembered on the way.
    pub(super) fn value<'t>(
        &mut self,
        node: NodeId,
        element: NodeId,
        id: TypeId,
        text: &'t str,
    ) -> Result<Value<'t>, String> {
        let context = |prefix: &str| self.document.lookup_namespace(element, prefix).map(str::to_owned);
        let value = check(self.components, id, text, &context)?;
        if self.components.has_identity {
            self.types.insert(node, id);
        }
        self.remember(node, id, &value)?;
        Ok(value)
    }

    fn remember(&mut self, node: NodeId, id: TypeId, value: &Value<'_>) -> Result<(), String> {
        let Type::Simple(simple) = self.components.type_of(id) else { return Ok(()) };
        match (&simple.variety, value) {
            (Variety::Atomic(Builtin::Id), Value::Text(text)) if !self.ids.insert(text.to_string()) => {
                return Err(format!("cvc-id.2: There are multiple occurrences of ID value '{text}'."));
            }
            (Variety::Atomic(Builtin::IdRef), Value::Text(text)) => self.references.push((text.to_string(), node)),
            (Variety::List(item), Value::List(values)) => {
                for value in values {
                    self.remember(node, *item, value)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn references(&mut self) {
        for (text, node) in std::mem::take(&mut self.references) {
            if !self.ids.contains(&text) {
                self.report(node, format!("cvc-id.1: There is no ID/IDREF binding for IDREF '{text}'."));
            }
        }
    }
}
