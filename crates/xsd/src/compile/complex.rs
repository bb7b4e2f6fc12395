//! `<complexType>`: its content and attributes, with what it derives from.

use std::sync::Arc;

use super::attribute::{Attributes, put};
use super::attribution::ambiguity;
use super::{Builder, Outcome};
use crate::load::Place;
use crate::model::{
    ComplexType, Content, Derivations, Group, GroupKind, Particle, Term, Type, TypeId, Types, Wildcard,
};

const MODELS: [&str; 4] = ["sequence", "choice", "all", "group"];

impl Builder<'_> {
    pub(super) fn build_complex(&mut self, place: Place, label: Arc<str>) -> Outcome<ComplexType> {
        let document = self.document(place);
        let flag = |name| document.attribute(place.node, name).is_some_and(|text| matches!(text.trim(), "true" | "1"));
        let block = document.attribute(place.node, "block").or(document.block_default.as_deref()).unwrap_or_default();
        let mut made = ComplexType {
            label,
            base: Some(self.any_type),
            by_extension: false,
            is_abstract: flag("abstract"),
            block: Derivations::parse(block),
            attributes: Vec::new(),
            any_attribute: None,
            content: Content::Empty,
            mixed: flag("mixed"),
        };
        match self.child(place, &["simpleContent", "complexContent"]) {
            Some(content) => {
                let Some(derivation) = self.child(content, &["extension", "restriction"]) else {
                    return self.fail(content, "an <extension> or <restriction> is missing here");
                };
                let document = self.document(content);
                if let Some(text) = document.attribute(content.node, "mixed") {
                    made.mixed = matches!(text.trim(), "true" | "1");
                }
                self.derive(derivation, document.name(content.node) == "simpleContent", &mut made)?;
            }
            None => {
                made.content = self.own_content(place)?;
                let own = self.attributes(place)?;
                (made.attributes, made.any_attribute) = (own.uses, own.wildcard);
            }
        }
        if made.mixed && matches!(made.content, Content::Empty) {
            let group = Group::new(GroupKind::Sequence, Vec::new());
            made.content = Content::Elements(Particle { min: 1, max: 1, term: Term::Group(Arc::new(group)) });
        }
        // Where a namespace was not found, wildcards stand for what nobody knows.
        if let Content::Elements(model) = &made.content
            && self.loaded.unknown.is_empty()
            && let Some(message) = ambiguity(&self.names, model)
        {
            return self.fail(place, message);
        }
        Ok(made)
    }

    /// The model group inside an element.
    fn own_content(&mut self, place: Place) -> Outcome<Content> {
        let Some(model) = self.child(place, &MODELS) else { return Ok(Content::Empty) };
        Ok(match self.particle(model)? {
            Some(particle) => Content::Elements(particle),
            None => Content::Empty,
        })
    }

    fn derive(&mut self, place: Place, simple: bool, made: &mut ComplexType) -> Outcome<()> {
        let Some(name) = self.document(place).attribute(place.node, "base") else {
            return self.fail(place, "the attribute `base` is missing");
        };
        let symbol = self.symbol(place, name)?;
        let base = self.type_ref(symbol, place)?;
        self.ensure(base, place)?;
        made.base = Some(base);
        made.by_extension = self.document(place).name(place.node) == "extension";
        let own = self.attributes(place)?;
        let parent = match self.get(base) {
            Type::Complex(parent) => Some(parent.clone()),
            Type::Simple(_) => None,
        };
        if simple {
            made.content = Content::Simple(self.simple_content(place, base, parent.as_ref(), made)?);
        } else {
            let Some(parent) = &parent else {
                return self.fail(place, "complex content cannot be derived from a simple type");
            };
            let content = self.own_content(place)?;
            made.mixed |= made.by_extension && parent.mixed && base != self.any_type;
            made.content = if made.by_extension { joined(&parent.content, content) } else { content };
        }
        inherit(made, parent.as_ref(), own);
        Ok(())
    }

    /// The type of the text of simple content.
    fn simple_content(
        &mut self,
        place: Place,
        base: TypeId,
        parent: Option<&ComplexType>,
        made: &ComplexType,
    ) -> Outcome<TypeId> {
        let inherited = match parent.map(|parent| &parent.content) {
            None => base,
            Some(Content::Simple(text)) => *text,
            // Mixed content that may be empty can be restricted to text.
            Some(_) if !made.by_extension => match self.child(place, &["simpleType"]) {
                Some(inline) => self.anonymous(inline, &made.label)?,
                None => return self.fail(place, "the base has no simple content; a <simpleType> must say what it is"),
            },
            Some(_) => return self.fail(place, "the base has no simple content"),
        };
        if made.by_extension {
            return Ok(inherited);
        }
        let narrowed = match self.child(place, &["simpleType"]) {
            Some(inline) if parent.is_some() => self.anonymous(inline, &made.label)?,
            _ => inherited,
        };
        let text = self.restricted(place, narrowed, made.label.clone())?;
        Ok(self.add_type(Type::Simple(text)))
    }
}

/// What the base has, then what the extension adds.
fn joined(base: &Content, own: Content) -> Content {
    match (base, own) {
        (Content::Elements(first), Content::Elements(second)) => {
            let group = Group::new(GroupKind::Sequence, vec![first.clone(), second]);
            Content::Elements(Particle { min: 1, max: 1, term: Term::Group(Arc::new(group)) })
        }
        (Content::Elements(first), _) => Content::Elements(first.clone()),
        (Content::Simple(text), Content::Empty) => Content::Simple(*text),
        (_, own) => own,
    }
}

/// Adds the attributes of the base, as far as the derivation keeps them.
fn inherit(made: &mut ComplexType, parent: Option<&ComplexType>, own: Attributes) {
    let mut uses = parent.map(|parent| parent.attributes.clone()).unwrap_or_default();
    for one in own.uses {
        put(&mut uses, one);
    }
    uses.retain(|one| !own.prohibited.contains(&one.name));
    made.attributes = uses;
    let inherited = parent.and_then(|parent| parent.any_attribute.clone());
    made.any_attribute = match (own.wildcard, inherited) {
        (own, _) if !made.by_extension => own,
        (Some(own), Some(base)) => {
            Some(Wildcard { namespaces: own.namespaces.union(&base.namespaces), process: own.process })
        }
        (own, base) => own.or(base),
    };
}
