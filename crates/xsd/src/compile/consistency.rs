//! What must fit together once all components are compiled: keys and what refers to them, members of substitution groups
//! and their heads, defaults and the types they belong to.

use std::collections::HashSet;

use super::{Builder, Outcome};
use crate::load::Place;
use crate::model::{Content, Derivations, ElementId, SimpleType, Type, TypeId, Types, ValueConstraint, Variety};
use crate::names::Symbol;
use crate::simple::{self, Builtin, Facet};

/// An identity constraint as declared.
pub(super) struct DeclaredIdentity {
    pub(super) place: Place,
    pub(super) name: Symbol,
    pub(super) fields: usize,
    /// The key that a `<keyref>` names.
    pub(super) refers_to: Option<Symbol>,
}

/// A default or fixed value with the type it must be of.
pub(super) struct DeclaredValue {
    pub(super) place: Place,
    pub(super) kind: TypeId,
    pub(super) value: ValueConstraint,
}

impl Builder<'_> {
    pub(super) fn check_identities(&mut self) {
        let declared = std::mem::take(&mut self.identities);
        for (index, one) in declared.iter().enumerate() {
            let place = one.place;
            if declared[..index].iter().any(|other| other.name == one.name && other.place != place) {
                let _ = self.fail::<()>(place, "an identity constraint of this name is declared already");
            }
            let Some(wanted) = one.refers_to else { continue };
            let key = declared.iter().find(|other| other.name == wanted && other.refers_to.is_none());
            let _ = match key {
                None => self.fail::<()>(place, format!("there is no key named `{}`", self.names.show(wanted))),
                Some(key) if key.fields != one.fields => {
                    self.fail(place, format!("the key has {} fields, not {}", key.fields, one.fields))
                }
                Some(_) => Ok(()),
            };
        }
    }

    /// Members of substitution groups have types derived from that of the head, in a way it does not exclude.
    pub(super) fn check_substitutions(&mut self) {
        let groups: Vec<(Symbol, Vec<Symbol>)> = self.members.iter().map(|(h, m)| (*h, m.clone())).collect();
        for (head, members) in groups {
            let (Some(head_id), Some(head_place)) = (self.element_ids.get(&head).copied(), self.element_place(head))
            else {
                continue;
            };
            let excluded = self.excluded(head_place);
            for member in members {
                let (Some(id), Some(place)) = (self.element_ids.get(&member).copied(), self.element_place(member))
                else {
                    continue;
                };
                let (Some(kind), Some(wanted)) = (self.element_kind(id), self.element_kind(head_id)) else { continue };
                if !self.derives(kind, wanted) {
                    let message = format!("the type is not derived from that of `{}`", self.names.show(head));
                    let _ = self.fail::<()>(place, message);
                } else if self.uses_derivation(kind, wanted, excluded) {
                    let message =
                        format!("`{}` excludes substitution by a type derived like this", self.names.show(head));
                    let _ = self.fail::<()>(place, message);
                }
            }
        }
    }

    fn element_place(&self, symbol: Symbol) -> Option<Place> {
        self.index.get(&(crate::load::ComponentKind::Element, symbol)).copied()
    }

    fn element_kind(&self, id: ElementId) -> Option<TypeId> {
        self.elements.get(id.0 as usize).and_then(Option::as_ref).map(|element| element.kind)
    }

    /// What `final` of a component, or of its document, excludes.
    pub(super) fn excluded(&self, place: Place) -> Derivations {
        let document = self.document(place);
        let own = document.attribute(place.node, "final");
        let text = own.or_else(|| document.attribute(document.root, "finalDefault")).unwrap_or_default();
        Derivations::parse(text)
    }

    /// Whether a type is derived from another in one of these ways.
    pub(super) fn uses_derivation(&self, made: TypeId, from: TypeId, ways: Derivations) -> bool {
        let mut at = made;
        while at != from {
            let kind = self.get(at);
            let by_extension = matches!(kind, Type::Complex(complex) if complex.by_extension);
            if (by_extension && ways.extension) || (!by_extension && ways.restriction) {
                return true;
            }
            match kind.base() {
                Some(base) => at = base,
                None => return false,
            }
        }
        false
    }

    pub(super) fn check_values(&mut self) {
        for declared in std::mem::take(&mut self.values) {
            let kind = match self.get(declared.kind) {
                Type::Simple(_) => declared.kind,
                Type::Complex(complex) => match &complex.content {
                    Content::Simple(text) => *text,
                    Content::Elements(model) if complex.mixed && model.nullable() => continue,
                    _ => {
                        let message = "only text, or mixed content that may be empty, can have a default";
                        let _ = self.fail::<()>(declared.place, message);
                        continue;
                    }
                },
            };
            if self.is_id(kind) {
                let _ = self.fail::<()>(declared.place, "a value of type ID has no default");
                continue;
            }
            let document = self.document(declared.place);
            let node = declared.place.node;
            let context = |prefix: &str| document.document.lookup_namespace(node, prefix).map(str::to_owned);
            let checked = simple::check(self, kind, &declared.value.text, &context).map(drop);
            if let Err(message) = checked {
                let _ = self.fail::<()>(declared.place, format!("the default is not of the type: {message}"));
            }
        }
    }

    /// Attributes have simple types, and notations are enumerated.
    pub(super) fn check_attribute_types(&mut self) {
        for (place, kind) in std::mem::take(&mut self.attribute_types) {
            let _ = match self.get(kind) {
                Type::Complex(_) if kind != self.any_type => self.fail::<()>(place, "an attribute has a simple type"),
                _ => self.check_notation(place, kind),
            };
        }
    }

    pub(super) fn check_element_types(&mut self) {
        for (place, kind) in std::mem::take(&mut self.element_types) {
            let _ = self.check_notation(place, kind);
        }
    }

    fn check_notation(&mut self, place: Place, kind: TypeId) -> Outcome<()> {
        match self.get(kind) {
            Type::Simple(SimpleType { variety: Variety::Atomic(Builtin::Notation), facets, .. })
                if !facets.iter().any(|facet| matches!(facet, Facet::Enumeration(_))) =>
            {
                self.fail(place, "a type that enumerates notations is needed")
            }
            _ => Ok(()),
        }
    }

    /// Heads and members of substitution groups where the way the type of the member is derived is blocked
    /// (XML Schema part 1 §3.3.6, Substitution Group OK).
    pub(super) fn blocked_substitutions(&self) -> HashSet<(ElementId, ElementId)> {
        let mut blocked = HashSet::new();
        for head in self.members.keys() {
            let Some(head_id) = self.element_ids.get(head).copied() else { continue };
            let Some(declared) = self.elements.get(head_id.0 as usize).and_then(Option::as_ref) else { continue };
            let mut pending = vec![*head];
            let mut seen = HashSet::new();
            while let Some(at) = pending.pop() {
                for member in self.members.get(&at).into_iter().flatten().filter(|member| seen.insert(**member)) {
                    pending.push(*member);
                    let Some(id) = self.element_ids.get(member).copied() else { continue };
                    let Some(kind) = self.element_kind(id) else { continue };
                    if self.uses_blocked_derivation(kind, declared.kind, declared.block) {
                        blocked.insert((head_id, id));
                    }
                }
            }
        }
        blocked
    }

    /// Whether a type is derived from another in a way that the element or a type on the way blocks.
    fn uses_blocked_derivation(&self, made: TypeId, from: TypeId, of_element: Derivations) -> bool {
        let mut ways = of_element;
        let mut at = made;
        while at != from {
            let Some(base) = self.get(at).base() else { break };
            at = base;
            if let Type::Complex(complex) = self.get(at) {
                ways.extension |= complex.block.extension;
                ways.restriction |= complex.block.restriction;
            }
        }
        self.uses_derivation(made, from, ways)
    }

    pub(super) fn is_id(&self, kind: TypeId) -> bool {
        matches!(self.get(kind), Type::Simple(simple) if matches!(simple.variety, Variety::Atomic(Builtin::Id)))
    }
}
