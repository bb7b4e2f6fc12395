//! Particles: elements, wildcards and model groups with their occurrence.

use std::sync::Arc;

use super::particle_restriction::times;
use super::{Builder, Outcome, PARTICLES_MAX};
use crate::load::{ComponentKind, Place};
use crate::model::{Group, GroupKind, Namespaces, Particle, Process, Term, UNBOUNDED, Wildcard};
use crate::names::Symbol;

impl Builder<'_> {
    /// The particle an element of a content model stands for; nothing when it may not occur.
    pub(super) fn particle(&mut self, place: Place) -> Outcome<Option<Particle>> {
        let (min, max) = self.occurs(place)?;
        if max == 0 {
            return Ok(None);
        }
        self.particles += 1;
        if self.particles > PARTICLES_MAX {
            return self.fail(place, format!("the schema has more than {PARTICLES_MAX} particles"));
        }
        let term = match self.document(place).name(place.node) {
            "element" => Term::Element(self.element_particle(place)?),
            "any" => Term::Any(Arc::new(self.wildcard(place))),
            "group" => {
                let Some(name) = self.document(place).attribute(place.node, "ref") else {
                    return self.fail(place, "<group> needs the attribute `ref` here");
                };
                let symbol = self.symbol(place, name)?;
                if self.is_unknown(ComponentKind::Group, symbol) {
                    let any = Wildcard { namespaces: Namespaces::Any, process: Process::Lax };
                    return Ok(Some(Particle { min: 0, max: UNBOUNDED, term: Term::Any(Arc::new(any)) }));
                }
                let definition = self.named(ComponentKind::Group, symbol, place)?;
                let Some(inner) = self.nested(place, |builder| builder.group_definition(definition))? else {
                    return Ok(None);
                };
                let whole = self.document(place).document.parent(place.node).is_some_and(|parent| {
                    matches!(self.document(place).name(parent), "complexType" | "extension" | "restriction")
                });
                let all = matches!(&inner.term, Term::Group(group) if group.kind == GroupKind::All);
                if all && (!whole || max > 1) {
                    return self.fail(place, "<all> is not part of a larger model, and does not occur again");
                }
                return Ok(Some(repeated(inner, min, max)));
            }
            name @ ("sequence" | "choice" | "all") => {
                let kind = match name {
                    "sequence" => GroupKind::Sequence,
                    "choice" => GroupKind::Choice,
                    _ => GroupKind::All,
                };
                let group = self.nested(place, |builder| builder.model(place, kind))?;
                return Ok(Some(repeated(group, min, max)));
            }
            other => return self.fail(place, format!("<{other}> is not allowed in a content model")),
        };
        Ok(Some(Particle { min, max, term }))
    }

    fn model(&mut self, place: Place, kind: GroupKind) -> Outcome<Particle> {
        let mut particles = Vec::new();
        for child in self.children(place) {
            particles.extend(self.particle(child)?);
        }
        let group = Group::new(kind, particles);
        Ok(Particle { min: 1, max: 1, term: Term::Group(Arc::new(group)) })
    }

    /// What a named model group holds.
    pub(super) fn group_definition(&mut self, place: Place) -> Outcome<Option<Particle>> {
        if let Some(found) = self.groups.get(&place) {
            return Ok(found.clone());
        }
        if self.open.contains(&place) {
            return self.fail(place, "the group contains itself");
        }
        self.open.push(place);
        let inner = match self.child(place, &["sequence", "choice", "all"]) {
            Some(model) => self.particle(model),
            None => self.fail(place, "<group> needs a <sequence>, <choice> or <all>"),
        };
        self.open.pop();
        let inner = inner?;
        self.groups.insert(place, inner.clone());
        Ok(inner)
    }

    fn occurs(&mut self, place: Place) -> Outcome<(u32, u32)> {
        let document = self.document(place);
        let count = |name| document.attribute(place.node, name).map(str::trim);
        let parse = |text: Option<&str>| match text {
            None => Some(1),
            Some("unbounded") => Some(UNBOUNDED),
            Some(text) => text.parse::<u32>().ok().filter(|count| *count < UNBOUNDED),
        };
        match (parse(count("minOccurs")), parse(count("maxOccurs"))) {
            (Some(min), Some(max)) if min <= max && min != UNBOUNDED => Ok((min, max)),
            (Some(_), Some(_)) => self.fail(place, "`minOccurs` is larger than `maxOccurs`"),
            _ => self.fail(place, "`minOccurs` and `maxOccurs` are numbers, or `unbounded`"),
        }
    }
}

/// A group that a particle holds, with the occurrence of that particle around its own.
fn repeated(inner: Particle, min: u32, max: u32) -> Particle {
    match (inner.min, inner.max) {
        _ if (min, max) == (1, 1) => inner,
        (1, 1) => Particle { min, max, term: inner.term },
        _ => {
            let group = Group::new(GroupKind::Sequence, vec![inner]);
            Particle { min, max, term: Term::Group(Arc::new(group)) }
        }
    }
}

/// A model as it is matched: the count of a group of one member becomes that of the member, where the counts allow it:
/// `(a{0,3})*` is `a*`.
pub(super) fn with_merged_counts(particle: &Particle) -> Particle {
    let Term::Group(group) = &particle.term else { return particle.clone() };
    let members: Vec<Particle> = group.particles.iter().map(with_merged_counts).collect();
    let (min, max) = (particle.min, particle.max);
    if let [only] = &members[..]
        && group.kind != GroupKind::All
        && (min, max) != (1, 1)
        && (only.min <= 1 || min == max)
    {
        return Particle { min: times(only.min, min), max: times(only.max, max), term: only.term.clone() };
    }
    Particle { min, max, term: Term::Group(Arc::new(Group::new(group.kind, members))) }
}

impl Particle {
    /// Whether it matches nothing at all.
    pub(crate) fn nullable(&self) -> bool {
        self.min == 0 || matches!(&self.term, Term::Group(group) if group.nullable)
    }
}

impl Group {
    /// A group with what it can begin with.
    pub(super) fn new(kind: GroupKind, particles: Vec<Particle>) -> Group {
        let mut first: Vec<(Symbol, u32)> = Vec::new();
        let mut first_wild = Vec::new();
        for (index, particle) in particles.iter().enumerate() {
            let index = index as u32;
            match &particle.term {
                Term::Element(choices) => first.extend(choices.iter().map(|(symbol, _)| (*symbol, index))),
                Term::Any(_) => first_wild.push(index),
                Term::Group(group) => {
                    first.extend(group.first.iter().map(|(symbol, _)| (*symbol, index)));
                    if !group.first_wild.is_empty() {
                        first_wild.push(index);
                    }
                }
            }
            if kind == GroupKind::Sequence && !particle.nullable() {
                break;
            }
        }
        // The first particle of several that begin with a name is the one that is tried.
        first.sort();
        first.dedup_by_key(|(symbol, _)| *symbol);
        let nullable = match kind {
            GroupKind::Choice => particles.is_empty() || particles.iter().any(Particle::nullable),
            GroupKind::Sequence | GroupKind::All => particles.iter().all(Particle::nullable),
        };
        Group { kind, particles, first, first_wild, nullable }
    }
}
