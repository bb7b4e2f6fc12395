//! `unique`, `key` and `keyref`.

use std::collections::HashSet;

use penstock_xml::{Document, NodeId};

use super::Validator;
use crate::model::{ElementDeclaration, Identity, IdentityKind, Path};
use crate::names::Symbol;
use crate::simple::check;

/// The values of a key or unique constraint found below one element.
pub(super) struct KeyTable {
    name: Symbol,
    element: NodeId,
    values: HashSet<Vec<String>>,
}

/// A field that was found: its node, what equal values share, and its text.
struct Field {
    node: NodeId,
    key: String,
    text: String,
}

impl<'v> Validator<'v> {
    /// Checks the constraints of an element whose content was checked.
    pub(super) fn identity(&mut self, element: NodeId, declaration: &'v ElementDeclaration) {
        let (references, keys): (Vec<&Identity>, Vec<&Identity>) =
            declaration.identity.iter().partition(|identity| matches!(identity.kind, IdentityKind::KeyRef(_)));
        for key in keys {
            self.key(element, key);
        }
        for reference in references {
            self.key_reference(element, reference);
        }
    }

    fn key(&mut self, element: NodeId, identity: &Identity) {
        let mut values = HashSet::new();
        for node in select(self.document, element, &identity.selector) {
            let Some(fields) = self.fields(node, identity) else { continue };
            let described = || (self.components.names.local(identity.name), self.written(element));
            if fields.iter().any(Option::is_none) {
                if identity.kind == IdentityKind::Key {
                    let (name, of) = described();
                    self.report(
                        node,
                        format!(
                            "cvc-identity-constraint.4.2.1.a: Element \"{of}\" has no value for the key \"{name}\"."
                        ),
                    );
                }
                continue;
            }
            let fields: Vec<Field> = fields.into_iter().flatten().collect();
            if identity.kind == IdentityKind::Key && fields.iter().any(|field| self.nillable.contains(&field.node)) {
                let (name, of) = described();
                self.report(node, format!("cvc-identity-constraint.4.2.3: Element \"{of}\" has the key \"{name}\" which matches an element that has nillable set to true."));
                continue;
            }
            let (key, texts): (Vec<String>, Vec<String>) =
                fields.into_iter().map(|field| (field.key, field.text)).unzip();
            if !values.insert(key) {
                let (name, of) = described();
                let shown = texts.join(",");
                let (code, noun) = match identity.kind {
                    IdentityKind::Unique => ("cvc-identity-constraint.4.1", "unique"),
                    _ => ("cvc-identity-constraint.4.2.2", "key"),
                };
                let message = format!(
                    "{code}: Duplicate {noun} value [{shown}] declared for identity constraint \"{name}\" of element \"{of}\"."
                );
                self.report(node, message);
            }
        }
        self.keys.push(KeyTable { name: identity.name, element, values });
    }

    fn key_reference(&mut self, element: NodeId, identity: &Identity) {
        let IdentityKind::KeyRef(key) = identity.kind else { return };
        let below = self.document.subtree(element);
        for node in select(self.document, element, &identity.selector) {
            let Some(fields) = self.fields(node, identity) else { continue };
            let Some(fields) = fields.into_iter().collect::<Option<Vec<_>>>() else { continue };
            let (wanted, texts): (Vec<String>, Vec<String>) =
                fields.into_iter().map(|field| (field.key, field.text)).unzip();
            let found = self.keys.iter().any(|table| {
                table.name == key && below.contains(&table.element.index()) && table.values.contains(&wanted)
            });
            if !found {
                let (name, of) = (self.components.names.local(identity.name), self.written(element));
                let shown = texts.join(",");
                self.report(node, format!("cvc-identity-constraint.4.3: Key '{name}' with value '{shown}' not found for identity constraint of element '{of}'."));
            }
        }
    }

    /// The fields of a node; `None` for a field that is not there. Nothing at all after a field that is there twice
    /// or has no simple value.
    fn fields(&mut self, node: NodeId, identity: &Identity) -> Option<Vec<Option<Field>>> {
        let mut all = Vec::with_capacity(identity.fields.len());
        for field in &identity.fields {
            let found = select(self.document, node, field);
            match found[..] {
                [] => all.push(None),
                [one] if self.structured.contains(&one) => {
                    let name = self.components.names.local(identity.name).clone();
                    self.report(node, format!("cvc-identity-constraint.3: A field of identity constraint \"{name}\" matches an element that does not have a simple type."));
                    return None;
                }
                [one] => all.push(Some(self.field(one))),
                _ => {
                    let name = self.components.names.local(identity.name).clone();
                    self.report(node, format!("cvc-identity-constraint.3: A field of identity constraint \"{name}\" matches more than one value within the scope of its selector; fields must match unique values."));
                    return None;
                }
            }
        }
        Some(all)
    }

    fn field(&self, node: NodeId) -> Field {
        let text = self.document.string_value(node);
        let context = |prefix: &str| self.document.lookup_namespace(node, prefix).map(str::to_owned);
        let value = self.types.get(&node).and_then(|id| check(self.components, *id, &text, &context).ok());
        let key = value.map_or_else(|| format!("?{text}"), |value| value.key());
        Field { node, key, text: text.into_owned() }
    }
}

/// The nodes that any of the paths leads to.
fn select(document: &Document, from: NodeId, paths: &[Path]) -> Vec<NodeId> {
    let mut found = Vec::new();
    for path in paths {
        let mut at = vec![from];
        if path.descendant {
            at.extend(document.descendants(from).filter(|node| document.is_element(*node)));
        }
        for step in &path.steps {
            let mut next = Vec::new();
            for node in at {
                let fits = |child: &NodeId| {
                    document.is_element(*child) && step.matches(document.namespace(*child), document.local_name(*child))
                };
                next.extend(document.children(node).filter(fits));
            }
            at = next;
        }
        if let Some(attribute) = &path.attribute {
            let of = |node: NodeId| {
                document
                    .attributes(node)
                    .filter(|one| attribute.matches(document.namespace(*one), document.local_name(*one)))
            };
            at = at.into_iter().flat_map(of).collect();
        }
        found.extend(at);
    }
    found.sort();
    found.dedup();
    found
}
