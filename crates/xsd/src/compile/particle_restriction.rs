//! Particle Valid (Restriction): a content model matches nothing that the model of its base does not
//! (XML Schema part 1 §3.9.6).

use std::sync::Arc;

use super::Builder;
use super::restriction::is_subset;
use crate::model::{Derivations, ElementId, Group, GroupKind, Particle, Term, UNBOUNDED, ValueConstraint, Wildcard};

impl Builder<'_> {
    /// Whether a content model restricts another.
    pub(super) fn restricts(&self, own: &Particle, base: &Particle) -> bool {
        self.particle_restricts(&without_pointless(own), &without_pointless(base))
    }

    fn particle_restricts(&self, own: &Particle, base: &Particle) -> bool {
        match (&own.term, &base.term) {
            (Term::Element(one), Term::Element(other)) => {
                let named = other.iter().find(|(symbol, _)| *symbol == one[0].0);
                named.is_some_and(|(_, wanted)| within(own, base) && self.element_restricts(one[0].1, *wanted))
            }
            (Term::Element(choices), Term::Any(wildcard)) => {
                within(own, base) && wildcard.namespaces.allow(self.names.namespace(choices[0].0))
            }
            (Term::Any(one), Term::Any(other)) => within(own, base) && is_subset(one, other),
            (Term::Group(_), Term::Any(wildcard)) => self.all_allowed(own, wildcard) && total_within(own, base),
            (Term::Any(_), _) => false,
            (Term::Group(group), Term::Element(choices)) if choices.len() > 1 => {
                // A substitution group is a choice of its members.
                let member = |choice| Particle { min: 1, max: 1, term: Term::Element(Arc::from([choice])) };
                let members = Group::new(GroupKind::Choice, choices.iter().copied().map(member).collect());
                self.group_restricts(group, own, &members, base)
            }
            (Term::Group(_), Term::Element(_)) => false,
            (Term::Element(_), Term::Group(group)) => {
                // It counts as a group of the same kind around it.
                let once = Particle { min: 1, max: 1, term: base.term.clone() };
                let lax = group.kind == GroupKind::Choice;
                within(&once, base) && self.members_restrict(std::slice::from_ref(own), group, lax)
            }
            (Term::Group(one), Term::Group(other)) => self.group_restricts(one, own, other, base),
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
                let each = |particle: &Particle| {
                    other.particles.iter().any(|wanted| self.particle_restricts(particle, wanted))
                };
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
                if self.particle_restricts(particle, wanted) {
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
            match left.iter().position(|wanted| self.particle_restricts(particle, wanted)) {
                Some(found) => drop(left.remove(found)),
                None => return false,
            }
        }
        left.into_iter().all(Particle::nullable)
    }

    /// NameAndTypeOK, but for the name and the occurrence.
    fn element_restricts(&self, own: ElementId, base: ElementId) -> bool {
        let element = |id: ElementId| self.elements.get(id.0 as usize).and_then(Option::as_ref);
        let (Some(made), Some(wanted)) = (element(own), element(base)) else { return true };
        let fixed = wanted.value.as_ref().filter(|value| value.fixed).is_none_or(|fixed| {
            let same = |value: &ValueConstraint| value.fixed && self.same_value(wanted.kind, &value.text, &fixed.text);
            made.value.as_ref().is_some_and(same)
        });
        let blocks = |way: fn(&Derivations) -> bool| way(&made.block) || !way(&wanted.block);
        let keeps_block =
            blocks(|block| block.extension) && blocks(|block| block.restriction) && blocks(|block| block.substitution);
        let by_extension = Derivations { extension: true, ..Derivations::default() };
        let derived = self.derives(made.kind, wanted.kind)
            && (wanted.kind == self.any_type || !self.uses_derivation(made.kind, wanted.kind, by_extension));
        own == base || (fixed && (wanted.nillable || !made.nillable) && keeps_block && derived)
    }

    fn all_allowed(&self, particle: &Particle, wildcard: &Wildcard) -> bool {
        match &particle.term {
            Term::Element(choices) => wildcard.namespaces.allow(self.names.namespace(choices[0].0)),
            Term::Any(own) => is_subset(own, wildcard),
            Term::Group(group) => group.particles.iter().all(|particle| self.all_allowed(particle, wildcard)),
        }
    }
}

/// A model without groups that add nothing: empty ones, groups of one member, and groups of the kind of the group they
/// stand in, as long as each occurs once.
fn without_pointless(particle: &Particle) -> Particle {
    let Term::Group(group) = &particle.term else { return particle.clone() };
    let mut members = Vec::with_capacity(group.particles.len());
    for child in &group.particles {
        let child = without_pointless(child);
        match &child.term {
            Term::Group(inner) if inner.particles.is_empty() && (inner.kind != GroupKind::Choice || child.min == 0) => {
            }
            Term::Group(inner) if (child.min, child.max) == (1, 1) && inner.kind == group.kind => {
                members.extend(inner.particles.iter().cloned());
            }
            _ => members.push(child),
        }
    }
    match &members[..] {
        [only] if (particle.min, particle.max) == (1, 1) => only.clone(),
        _ => Particle { term: Term::Group(Arc::new(Group::new(group.kind, members))), ..*particle },
    }
}

fn within(own: &Particle, base: &Particle) -> bool {
    own.min >= base.min && (base.max == UNBOUNDED || (own.max != UNBOUNDED && own.max <= base.max))
}

pub(super) fn times(left: u32, right: u32) -> u32 {
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
