//! `<complexType>`: its content and attributes, with what it derives from.

use std::sync::Arc;

use super::attribute::{Attributes, put};
use super::attribution::ambiguity;
use super::particle::with_merged_counts;
use super::restriction::Restriction;
use super::{Builder, Outcome};
use crate::load::{ComponentKind, Place};
use crate::model::{
    ComplexType, Content, Derivations, Group, GroupKind, Inexpressible, Particle, Term, Type, TypeId, Types, Wildcard,
};
use crate::names::Symbol;

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
            written: None,
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
        if let Content::Elements(model) = &mut made.content {
            let matched = with_merged_counts(model);
            made.written = Some(std::mem::replace(model, matched));
        }
        self.id_uses.push((place, made.attributes.iter().map(|one| one.kind).collect()));
        self.models.push((place, made.content.clone()));
        // Where a namespace was not found, wildcards replace the unknown components.
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
        let document = self.document(model);
        let name = document.name(model.node);
        let optional = document.attribute(model.node, "minOccurs").is_some_and(|text| text.trim() == "0");
        // §3.4.2: a group without members is no content, but for a choice that must be made.
        let is_empty =
            self.children(model).is_empty() && (matches!(name, "sequence" | "all") || (name == "choice" && optional));
        Ok(match self.particle(model)? {
            Some(particle) if !is_empty => Content::Elements(particle),
            _ => Content::Empty,
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
        self.check_final(place, symbol, made.by_extension)?;
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
            if made.by_extension {
                self.check_extension(place, parent, &content, made.mixed)?;
            }
            made.mixed |= made.by_extension && parent.mixed && base != self.any_type;
            made.content = if made.by_extension { joined(parent, content) } else { content };
        }
        if made.by_extension {
            let inherited = parent.as_ref().map(|parent| &parent.attributes[..]).unwrap_or_default();
            if let Some(twice) = own.uses.iter().find(|one| inherited.iter().any(|other| other.name == one.name)) {
                let name = self.names.show(twice.name);
                return self.fail(place, format!("the base has the attribute `{name}` already"));
            }
        } else if parent.is_some() {
            self.restrictions.push(Restriction {
                place,
                base,
                content: made.content.clone(),
                mixed: made.mixed,
                attributes: own.uses.clone(),
                prohibited: own.prohibited.clone(),
                wildcard: own.wildcard.clone(),
            });
        }
        match inherit(made, parent.as_ref(), own) {
            Ok(()) => Ok(()),
            Err(Inexpressible) => {
                self.fail(place, "no wildcard allows what this <anyAttribute> and that of the base allow")
            }
        }
    }

    /// Whether the base of a derivation excludes it by `final`.
    fn check_final(&mut self, place: Place, base: Symbol, by_extension: bool) -> Outcome<()> {
        let Some(base) = self.index.get(&(ComponentKind::Type, base)).copied() else { return Ok(()) };
        let excluded = self.excluded(base);
        if if by_extension { excluded.extension } else { excluded.restriction } {
            return self.fail(place, "the base excludes this derivation by `final`");
        }
        Ok(())
    }

    /// What can be added to a base (XML Schema part 1 §3.4.6, Derivation Valid (Extension)).
    fn check_extension(&mut self, place: Place, base: &ComplexType, own: &Content, mixed: bool) -> Outcome<()> {
        let all = |content: &Content| matches!(content, Content::Elements(Particle { term: Term::Group(group), .. }) if group.kind == GroupKind::All);
        let added = !matches!(own, Content::Empty);
        match &base.content {
            Content::Simple(_) if added => self.fail(place, "complex content cannot extend a type with simple content"),
            Content::Elements(_) if base.mixed != mixed && base.base.is_some() && (added || mixed) => {
                self.fail(place, "mixed content extends mixed content, and the other way round")
            }
            Content::Elements(_) if added && (all(own) || all(&base.content)) => {
                self.fail(place, "<all> is not part of a larger model")
            }
            _ => Ok(()),
        }
    }

    /// The type of the text of simple content.
    fn simple_content(
        &mut self,
        place: Place,
        base: TypeId,
        parent: Option<&ComplexType>,
        made: &ComplexType,
    ) -> Outcome<TypeId> {
        let emptiable = |content: &Content| match content {
            Content::Elements(model) => model.nullable(),
            _ => false,
        };
        if let Some(parent) = parent
            && !made.by_extension
            && !matches!(parent.content, Content::Simple(_))
            && !(parent.mixed && emptiable(&parent.content))
        {
            return self.fail(place, "only simple content, or mixed content that may be empty, is restricted to text");
        }
        let inherited = match parent.map(|parent| &parent.content) {
            None if !made.by_extension => return self.fail(place, "a simple type is extended here, not restricted"),
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
fn joined(base: &ComplexType, own: Content) -> Content {
    let model = |matched| base.written.as_ref().unwrap_or(matched);
    match (&base.content, own) {
        (Content::Elements(first), Content::Elements(second)) => {
            let first = model(first);
            let group = Group::new(GroupKind::Sequence, vec![first.clone(), second]);
            Content::Elements(Particle { min: 1, max: 1, term: Term::Group(Arc::new(group)) })
        }
        (Content::Elements(first), _) => Content::Elements(model(first).clone()),
        (Content::Simple(text), Content::Empty) => Content::Simple(*text),
        (_, own) => own,
    }
}

/// Adds the attributes of the base, as far as the derivation keeps them.
fn inherit(made: &mut ComplexType, parent: Option<&ComplexType>, own: Attributes) -> Result<(), Inexpressible> {
    let mut uses = parent.map(|parent| parent.attributes.clone()).unwrap_or_default();
    for one in own.uses {
        put(&mut uses, one);
    }
    if !made.by_extension {
        uses.retain(|one| !own.prohibited.contains(&one.name));
    }
    made.attributes = uses;
    let inherited = parent.and_then(|parent| parent.any_attribute.clone());
    made.any_attribute = match (own.wildcard, inherited) {
        (own, _) if !made.by_extension => own,
        (Some(own), Some(base)) => {
            Some(Wildcard { namespaces: own.namespaces.union(&base.namespaces)?, process: own.process })
        }
        (own, base) => own.or(base),
    };
    Ok(())
}
