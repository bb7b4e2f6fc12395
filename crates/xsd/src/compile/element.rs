//! Element declarations, and who may stand in for whom.

use std::sync::Arc;

use super::attribute::value_constraint;
use super::consistency::DeclaredValue;
use super::{Builder, Outcome};
use crate::load::{ComponentKind, Place};
use crate::model::{Derivations, ElementDeclaration, ElementId, TypeId};
use crate::names::Symbol;

impl ElementDeclaration {
    /// An element of which nothing is known but its name.
    fn unchecked(any_type: TypeId) -> ElementDeclaration {
        ElementDeclaration {
            kind: any_type,
            nillable: true,
            is_abstract: false,
            value: None,
            block: Derivations::default(),
            identity: Vec::new(),
        }
    }
}

impl Builder<'_> {
    /// Remembers which head an element may be substituted for.
    pub(super) fn note_substitution(&mut self, symbol: Symbol, place: Place) {
        if let Some(head) = self.document(place).attribute(place.node, "substitutionGroup")
            && let Ok(head) = self.symbol(place, head)
        {
            self.members.entry(head).or_default().push(symbol);
        }
    }

    /// The number of a global element; it is compiled later.
    pub(super) fn element_ref(&mut self, symbol: Symbol, at: Place) -> Outcome<ElementId> {
        if let Some(id) = self.element_ids.get(&symbol) {
            return Ok(*id);
        }
        if self.is_unknown(ComponentKind::Element, symbol) {
            self.elements.push(Some(ElementDeclaration::unchecked(self.any_type)));
            let id = ElementId(self.elements.len() as u32 - 1);
            self.element_ids.insert(symbol, id);
            return Ok(id);
        }
        let place = self.named(ComponentKind::Element, symbol, at)?;
        let id = self.reserve(place, true);
        self.element_ids.insert(symbol, id);
        Ok(id)
    }

    fn reserve(&mut self, place: Place, global: bool) -> ElementId {
        self.elements.push(None);
        let id = ElementId(self.elements.len() as u32 - 1);
        self.waiting_elements.push((id, place, global));
        id
    }

    /// What `<element>` in a content model matches.
    pub(super) fn element_particle(&mut self, place: Place) -> Outcome<Arc<[(Symbol, ElementId)]>> {
        let Some(name) = self.document(place).attribute(place.node, "ref") else {
            let symbol = self.local_name(place)?;
            let id = self.reserve(place, false);
            return Ok(Arc::from([(symbol, id)]));
        };
        let symbol = self.symbol(place, name)?;
        if self.is_unknown(ComponentKind::Element, symbol) {
            return Ok(Arc::from([(symbol, self.element_ref(symbol, place)?)]));
        }
        let head = self.named(ComponentKind::Element, symbol, place)?;
        let mut choices = vec![(symbol, self.element_ref(symbol, place)?)];
        let document = self.document(head);
        let block = document.attribute(head.node, "block").or(document.block_default.as_deref()).unwrap_or_default();
        if !Derivations::parse(block).substitution {
            let mut next = 0;
            while let Some((symbol, _)) = choices.get(next).copied() {
                next += 1;
                for member in self.members.get(&symbol).cloned().unwrap_or_default() {
                    if !choices.iter().any(|(known, _)| *known == member) {
                        choices.push((member, self.element_ref(member, place)?));
                    }
                }
            }
        }
        Ok(choices.into())
    }

    fn local_name(&mut self, place: Place) -> Outcome<Symbol> {
        let document = self.document(place);
        let Some(name) = document.attribute(place.node, "name") else {
            return self.fail(place, "<element> needs the attribute `name` or `ref`");
        };
        let qualified = match document.attribute(place.node, "form") {
            Some(form) => form == "qualified",
            None => document.elements_qualified,
        };
        Ok(self.names.intern(if qualified { &document.target } else { "" }, name.trim()))
    }

    pub(super) fn build_element(&mut self, id: ElementId, place: Place, global: bool) -> Outcome<()> {
        let document = self.document(place);
        let name = if global {
            let name = document.attribute(place.node, "name").unwrap_or_default();
            self.names.intern(&document.target, name.trim())
        } else {
            self.local_name(place)?
        };
        // A placeholder first: numbers stay valid after an error below.
        self.elements[id.0 as usize] = Some(ElementDeclaration::unchecked(self.any_type));
        let kind = self.element_type(place, name, 0)?;
        let flag = |name| document.attribute(place.node, name).is_some_and(|text| matches!(text.trim(), "true" | "1"));
        let block = document.attribute(place.node, "block").or(document.block_default.as_deref()).unwrap_or_default();
        let identity = self.identity_constraints(place)?;
        for allowed in self.children(place) {
            let inner = self.document(allowed).name(allowed.node);
            if !matches!(inner, "simpleType" | "complexType" | "unique" | "key" | "keyref") {
                return self.fail(allowed, format!("<{inner}> is not allowed in <element>"));
            }
        }
        self.element_types.push((place, kind));
        if let Some(value) = value_constraint(document, place) {
            self.values.push(DeclaredValue { place, kind, value });
        }
        self.elements[id.0 as usize] = Some(ElementDeclaration {
            kind,
            nillable: flag("nillable"),
            is_abstract: flag("abstract"),
            value: value_constraint(document, place),
            block: Derivations::parse(block),
            identity,
        });
        Ok(())
    }

    /// The type an element names, defines, or takes from the head of its substitution group.
    fn element_type(&mut self, place: Place, name: Symbol, depth: usize) -> Outcome<TypeId> {
        let document = self.document(place);
        if let Some(text) = document.attribute(place.node, "type") {
            let symbol = self.symbol(place, text)?;
            return self.type_ref(symbol, place);
        }
        if let Some(inline) = self.child(place, &["simpleType", "complexType"]) {
            let owner = self.names.local(name).clone();
            return self.anonymous(inline, &owner);
        }
        match document.attribute(place.node, "substitutionGroup") {
            Some(_) if depth >= super::DEPTH_MAX => self.fail(place, "substitution groups name each other in a circle"),
            Some(head) => {
                let symbol = self.symbol(place, head)?;
                if self.is_unknown(ComponentKind::Element, symbol) {
                    return Ok(self.any_type);
                }
                let head = self.named(ComponentKind::Element, symbol, place)?;
                self.element_type(head, symbol, depth + 1)
            }
            None => Ok(self.any_type),
        }
    }
}
