//! What a derived type may be: a restriction matches nothing that its base does not (XML Schema part 1 §3.9.6, §3.4.6).
//! Checked when all components are compiled, because particles name elements and elements types.

use std::collections::HashMap;
use std::sync::Arc;

use super::Builder;
use crate::load::Place;
use crate::model::{
    AttributeUse, ComplexType, Content, ElementId, Group, GroupKind, Namespaces, Particle, Process, Term, Type, TypeId,
    Types, UNBOUNDED, Variety, Wildcard,
};
use crate::names::Symbol;

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
            (Content::Empty, Content::Empty | Content::Simple(_)) | (Content::Simple(_), _) => true,
            (Content::Empty, Content::Elements(model)) => model.nullable(),
            (Content::Elements(own), Content::Elements(model)) => self.restricts(own, model),
            (Content::Elements(own), Content::Empty) => own.nullable() && is_pointless(own),
            (_, Content::Simple(_)) => false,
        };
        if made.mixed && !base.mixed && matches!(made.content, Content::Elements(_)) {
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
        let same = own.value.as_ref().is_some_and(|value| value.fixed && value.text.trim() == fixed.text.trim());
        (!same).then(|| format!("the attribute `{name}` is fixed in `{}`", base.label))
    }

    /// What holds for every complex type: elements of one name have one type (§3.8.6, Element Declarations Consistent),
    /// and one attribute at most identifies.
    pub(super) fn check_models(&mut self) {
        for (place, content, attributes) in std::mem::take(&mut self.models) {
            if attributes.iter().filter(|kind| self.is_id(**kind)).count() > 1 {
                let _ = self.fail::<()>(place, "a type has one attribute of type ID at most");
            }
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

    /// Particle Valid (Restriction).
    fn restricts(&self, own: &Particle, base: &Particle) -> bool {
        let (own, base) = (simplified(own), simplified(base));
        match (&own.term, &base.term) {
            (Term::Element(one), Term::Element(other)) => {
                let named = other.iter().find(|(symbol, _)| *symbol == one[0].0);
                named.is_some_and(|(_, wanted)| within(&own, &base) && self.element_restricts(one[0].1, *wanted))
            }
            (Term::Element(choices), Term::Any(wildcard)) => {
                within(&own, &base) && wildcard.namespaces.allow(self.names.namespace(choices[0].0))
            }
            (Term::Any(one), Term::Any(other)) => within(&own, &base) && is_subset(one, other),
            (Term::Group(_), Term::Any(wildcard)) => self.all_allowed(&own, wildcard) && total_within(&own, &base),
            (Term::Any(_), _) => false,
            (Term::Group(group), Term::Element(choices)) if choices.len() > 1 => {
                // A substitution group is a choice of its members.
                let each =
                    |particle: &Particle| self.restricts(&Particle { min: 1, max: 1, ..particle.clone() }, &base);
                group.kind == GroupKind::Choice && within(&own, &base) && group.particles.iter().all(each)
            }
            (Term::Group(_), Term::Element(_)) => false,
            (Term::Element(_), Term::Group(group)) => {
                // It counts as a group of the same kind around it.
                let once = Particle { min: 1, max: 1, term: base.term.clone() };
                let lax = group.kind == GroupKind::Choice;
                within(&once, &base) && self.members_restrict(std::slice::from_ref(&own), group, lax)
            }
            (Term::Group(one), Term::Group(other)) => self.group_restricts(one, &own, other, &base),
        }
    }

    fn group_restricts(&self, one: &Group, own: &Particle, other: &Group, base: &Particle) -> bool {
        use GroupKind as K;
        match (one.kind, other.kind) {
            (K::Sequence, K::Sequence) | (K::All, K::All) => {
                within(own, base) && self.members_restrict(&one.particles, other, false)
            }
            (K::Choice, K::Choice) => within(own, base) && self.members_restrict(&one.particles, other, true),
            (K::Sequence, K::All) => within(own, base) && self.unordered_restrict(&one.particles, other),
            (K::Sequence, K::Choice) => {
                let count = one.particles.len() as u32;
                let sum = Particle { min: times(own.min, count), max: times(own.max, count), term: own.term.clone() };
                let each = |particle: &Particle| other.particles.iter().any(|wanted| self.restricts(particle, wanted));
                within(&sum, base) && one.particles.iter().all(each)
            }
            _ => false,
        }
    }

    /// Whether members map to members of the base in order; what is passed over may be missing, or is an alternative.
    fn members_restrict(&self, own: &[Particle], base: &Group, lax: bool) -> bool {
        let mut rest = base.particles.iter();
        for particle in own {
            loop {
                let Some(wanted) = rest.next() else { return false };
                if self.restricts(particle, wanted) {
                    break;
                }
                if !lax && !wanted.nullable() {
                    return false;
                }
            }
        }
        lax || rest.all(Particle::nullable)
    }

    fn unordered_restrict(&self, own: &[Particle], base: &Group) -> bool {
        let mut left: Vec<&Particle> = base.particles.iter().collect();
        for particle in own {
            match left.iter().position(|wanted| self.restricts(particle, wanted)) {
                Some(found) => drop(left.remove(found)),
                None => return false,
            }
        }
        left.into_iter().all(Particle::nullable)
    }

    fn element_restricts(&self, own: ElementId, base: ElementId) -> bool {
        let element = |id: ElementId| self.elements.get(id.0 as usize).and_then(Option::as_ref);
        let (Some(made), Some(wanted)) = (element(own), element(base)) else { return true };
        let fixed = wanted.value.as_ref().filter(|value| value.fixed).is_none_or(|fixed| {
            made.value.as_ref().is_some_and(|value| value.fixed && value.text.trim() == fixed.text.trim())
        });
        own == base || (fixed && (wanted.nillable || !made.nillable) && self.derives(made.kind, wanted.kind))
    }

    fn all_allowed(&self, particle: &Particle, wildcard: &Wildcard) -> bool {
        match &particle.term {
            Term::Element(choices) => wildcard.namespaces.allow(self.names.namespace(choices[0].0)),
            Term::Any(own) => is_subset(own, wildcard),
            Term::Group(group) => group.particles.iter().all(|particle| self.all_allowed(particle, wildcard)),
        }
    }
}

/// A group of one member that occurs once is that member.
fn simplified(particle: &Particle) -> Particle {
    let mut at = particle.clone();
    loop {
        let Term::Group(group) = &at.term else { return at };
        let [only] = &*group.particles else { return at };
        if (at.min, at.max) == (1, 1) {
            at = only.clone();
        } else if (only.min, only.max) == (1, 1) {
            at = Particle { min: at.min, max: at.max, term: only.term.clone() };
        } else {
            return at;
        }
    }
}

/// Whether a model matches nothing but the empty content.
fn is_pointless(particle: &Particle) -> bool {
    matches!(&particle.term, Term::Group(group) if group.particles.iter().all(is_pointless))
}

fn within(own: &Particle, base: &Particle) -> bool {
    own.min >= base.min && (base.max == UNBOUNDED || (own.max != UNBOUNDED && own.max <= base.max))
}

fn times(left: u32, right: u32) -> u32 {
    match (left, right) {
        (0, _) | (_, 0) => 0,
        (UNBOUNDED, _) | (_, UNBOUNDED) => UNBOUNDED,
        _ => left.saturating_mul(right).min(UNBOUNDED - 1),
    }
}

/// Effective Total Range: how many elements a particle matches.
fn total(particle: &Particle) -> (u32, u32) {
    let Term::Group(group) = &particle.term else { return (particle.min, particle.max) };
    let add = |left: u32, right: u32| {
        if left == UNBOUNDED || right == UNBOUNDED { UNBOUNDED } else { left.saturating_add(right).min(UNBOUNDED - 1) }
    };
    let parts = group.particles.iter().map(total);
    let (min, max) = if group.kind == GroupKind::Choice {
        parts.reduce(|(low, high), (min, max)| (low.min(min), high.max(max))).unwrap_or((0, 0))
    } else {
        parts.fold((0, 0), |(low, high), (min, max)| (add(low, min), add(high, max)))
    };
    (times(min, particle.min), times(max, particle.max))
}

fn total_within(own: &Particle, base: &Particle) -> bool {
    let (min, max) = total(own);
    within(&Particle { min, max, term: own.term.clone() }, base)
}

fn is_subset(own: &Wildcard, base: &Wildcard) -> bool {
    let strength = |process: Process| match process {
        Process::Skip => 0,
        Process::Lax => 1,
        Process::Strict => 2,
    };
    let inside = match (&own.namespaces, &base.namespaces) {
        (_, Namespaces::Any) => true,
        (Namespaces::Any, _) => false,
        (Namespaces::List(list), other) => list.iter().all(|namespace: &Arc<str>| other.allow(namespace)),
        (Namespaces::Other(one), Namespaces::Other(other)) => one == other,
        (Namespaces::Other(_), Namespaces::List(_)) => false,
    };
    inside && strength(own.process) >= strength(base.process)
}
