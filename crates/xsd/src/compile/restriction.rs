//! What a complex type that restricts another may be: content, attributes and wildcards (XML Schema part 1 §3.4.6).
//! Checked when all components are compiled, because particles name elements and elements types.

use std::collections::HashMap;

use super::Builder;
use crate::load::Place;
use crate::model::{
    AttributeUse, ComplexType, Content, Namespaces, Particle, Process, Term, Type, TypeId, Types, ValueConstraint,
    Variety, Wildcard,
};
use crate::names::Symbol;
use crate::simple;

/// A complex type that restricts another, as written.
pub(super) struct Restriction {
    pub(super) place: Place,
    pub(super) base: TypeId,
    pub(super) content: Content,
    pub(super) mixed: bool,
    pub(super) attributes: Vec<AttributeUse>,
    pub(super) prohibited: Vec<Symbol>,
    pub(super) wildcard: Option<Wildcard>,
}

impl Builder<'_> {
    pub(super) fn check_restrictions(&mut self) {
        for restriction in std::mem::take(&mut self.restrictions) {
            // Of what a namespace that was not found declares, nothing is known.
            if !self.loaded.unknown.is_empty() || restriction.base == self.any_type {
                continue;
            }
            let Type::Complex(base) = self.get(restriction.base) else { continue };
            if let Some(message) = self.contradiction(&restriction, &base.clone()) {
                // The mistake is in the list of errors.
                let _ = self.fail::<()>(restriction.place, message);
            }
        }
    }

    fn contradiction(&self, made: &Restriction, base: &ComplexType) -> Option<String> {
        let label = &base.label;
        let fits = match (&made.content, &base.content) {
            (Content::Simple(own), Content::Simple(wanted)) => self.derives(*own, *wanted),
            (Content::Empty, Content::Empty | Content::Simple(_)) | (Content::Simple(_), _) => true,
            (Content::Empty, Content::Elements(model)) => model.nullable(),
            (Content::Elements(own), Content::Elements(model)) => {
                self.restricts(own, base.written.as_ref().unwrap_or(model))
            }
            (Content::Elements(own), Content::Empty) => own.nullable() && is_pointless(own),
            (_, Content::Simple(_)) => false,
        };
        if made.mixed && !base.mixed && !matches!(made.content, Content::Simple(_)) {
            return Some(format!("the content is mixed and that of `{label}` is not"));
        }
        if !fits {
            return Some(format!("the content is not a restriction of that of `{label}`"));
        }
        made.attributes.iter().find_map(|own| self.attribute_contradiction(own, base)).or_else(|| {
            let required = |name: &&Symbol| base.attributes.iter().any(|one| one.name == **name && one.required);
            let kept = made.prohibited.iter().find(required);
            let kept = kept.map(|name| format!("`{}` is required by `{label}`", self.names.local(*name)));
            kept.or_else(|| {
                let own = made.wildcard.as_ref()?;
                let wider = base.any_attribute.as_ref().is_none_or(|base| !is_subset(own, base));
                wider.then(|| format!("<anyAttribute> allows more than that of `{label}`"))
            })
        })
    }

    fn attribute_contradiction(&self, own: &AttributeUse, base: &ComplexType) -> Option<String> {
        let name = self.names.local(own.name);
        let Some(inherited) = base.attributes.iter().find(|one| one.name == own.name) else {
            let namespace = self.names.namespace(own.name);
            let allowed = base.any_attribute.as_ref().is_some_and(|any| any.namespaces.allow(namespace));
            return (!allowed).then(|| format!("`{}` has no attribute `{name}`", base.label));
        };
        if inherited.required && !own.required {
            return Some(format!("the attribute `{name}` is required by `{}`", base.label));
        }
        if !self.derives(own.kind, inherited.kind) {
            return Some(format!("the type of the attribute `{name}` is not derived from that in `{}`", base.label));
        }
        let fixed = inherited.value.as_ref().filter(|value| value.fixed)?;
        let same = |value: &ValueConstraint| value.fixed && self.same_value(inherited.kind, &value.text, &fixed.text);
        (!own.value.as_ref().is_some_and(same)).then(|| format!("the attribute `{name}` is fixed in `{}`", base.label))
    }

    /// What holds for every complex type: elements of one name have one type (§3.8.6, Element Declarations Consistent),
    /// and one attribute at most identifies.
    pub(super) fn check_models(&mut self) {
        for (place, attributes) in std::mem::take(&mut self.id_uses) {
            if attributes.iter().filter(|kind| self.is_id(**kind)).count() > 1 {
                let _ = self.fail::<()>(place, "a type or group has one attribute of type ID at most");
            }
        }
        for (place, content) in std::mem::take(&mut self.models) {
            let mut kinds = HashMap::new();
            if let Content::Elements(model) = &content
                && let Some(symbol) = self.inconsistent(model, &mut kinds)
            {
                let message = format!("elements named `{}` have different types", self.names.show(symbol));
                let _ = self.fail::<()>(place, message);
            }
        }
    }

    fn inconsistent(&self, particle: &Particle, kinds: &mut HashMap<Symbol, TypeId>) -> Option<Symbol> {
        match &particle.term {
            Term::Element(choices) => {
                let (symbol, id) = choices[0];
                let kind = self.elements.get(id.0 as usize)?.as_ref()?.kind;
                (*kinds.entry(symbol).or_insert(kind) != kind).then_some(symbol)
            }
            Term::Any(_) => None,
            Term::Group(group) => group.particles.iter().find_map(|particle| self.inconsistent(particle, kinds)),
        }
    }

    /// Whether a type is another one or derived from it.
    pub(super) fn derives(&self, made: TypeId, from: TypeId) -> bool {
        if from == self.any_type {
            return true;
        }
        let mut at = Some(made);
        while let Some(id) = at {
            if id == from {
                return true;
            }
            at = self.get(id).base();
        }
        match self.get(from) {
            Type::Simple(simple) => match &simple.variety {
                Variety::Union(members) => members.iter().any(|member| self.derives(made, *member)),
                _ => &*simple.label == "anySimpleType" && matches!(self.get(made), Type::Simple(_)),
            },
            Type::Complex(_) => false,
        }
    }

    /// Whether two texts are one value of a simple type, or of the text of a complex one.
    pub(super) fn same_value(&self, kind: TypeId, one: &str, other: &str) -> bool {
        let kind = match self.get(kind) {
            Type::Complex(ComplexType { content: Content::Simple(text), .. }) => *text,
            Type::Simple(_) | Type::Complex(_) => kind,
        };
        // Prefixes of names are compared as written: their declarations are those of two documents.
        let context = |prefix: &str| Some(prefix.to_owned());
        match (simple::check(self, kind, one, &context), simple::check(self, kind, other, &context)) {
            (Ok(one), Ok(other)) => one.equals(&other),
            _ => one.trim() == other.trim(),
        }
    }
}

/// Whether a model matches nothing but the empty content.
fn is_pointless(particle: &Particle) -> bool {
    matches!(&particle.term, Term::Group(group) if group.particles.iter().all(is_pointless))
}

/// Wildcard Subset, with a `processContents` that is no weaker.
pub(super) fn is_subset(own: &Wildcard, base: &Wildcard) -> bool {
    let strength = |process: Process| match process {
        Process::Skip => 0,
        Process::Lax => 1,
        Process::Strict => 2,
    };
    let inside = match (&own.namespaces, &base.namespaces) {
        (_, Namespaces::Any) => true,
        (Namespaces::Any, _) => false,
        (Namespaces::List(list), other) => list.iter().all(|namespace| other.allow(namespace)),
        (Namespaces::Other(one), Namespaces::Other(other)) => one == other,
        (Namespaces::Other(_), Namespaces::List(_)) => false,
    };
    inside && strength(own.process) >= strength(base.process)
}
