//! Unique Particle Attribution (XML Schema part 1 §3.8.6): the name of the next element alone must say which particle of
//! a content model it belongs to. Matching relies on it.
//!
//! Each element and each wildcard of a model is a position. The positions that may come first, and those that may follow
//! each position, are collected on the way through the model; two positions that fit one name and may come at one place
//! make it ambiguous. Counts are not unrolled: what is repeated a fixed number of times either goes on or ends, so there
//! going on and ending are no alternatives; with any other count they are.

use std::collections::{HashMap, HashSet};

use crate::model::{Group, GroupKind, Namespaces, Particle, Term};
use crate::names::{Names, Symbol};

/// Names in all sets of positions. A model that needs more takes too long to check and is taken as it is: thousands of
/// optional elements in one sequence.
const ENTRIES_MAX: usize = 500_000;

/// What is ambiguous about a content model, for a message.
pub(super) fn ambiguity(names: &Names, model: &Particle) -> Option<String> {
    let mut check =
        Check { names, terms: Vec::new(), sets: Vec::new(), follow: Vec::new(), compared: HashSet::new(), entries: 0 };
    let Err(Stop::Ambiguous(one, other)) = check.particle(model) else { return None };
    let (one, other) = (check.show(one), check.show(other));
    Some(format!(
        "the content model is ambiguous: one element may belong to {one} or to {other}, and only what follows could tell"
    ))
}

enum Stop {
    Ambiguous(Position, Position),
    TooLarge,
}

type Position = u32;
type SetId = usize;

/// Positions of which one comes next. No name fits two of them.
#[derive(Default)]
struct Set {
    names: HashMap<Symbol, Position>,
    wildcards: Vec<Position>,
}

impl Set {
    fn positions(&self) -> Vec<Position> {
        let mut all: Vec<Position> = self.names.values().chain(&self.wildcards).copied().collect();
        // A position stands there once for each name of its substitution group.
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// A part of a model.
struct ModelPart {
    first: SetId,
    last: Vec<Position>,
    nullable: bool,
}

struct Follower {
    set: SetId,
    /// Once more the same, as often as its fixed count says. What is added later comes after that.
    repeats: bool,
}

struct Check<'m> {
    names: &'m Names,
    /// Of each position.
    terms: Vec<&'m Term>,
    sets: Vec<Set>,
    /// Of each position: what may come after it.
    follow: Vec<Vec<Follower>>,
    /// Pairs of sets that have nothing in common.
    compared: HashSet<(SetId, SetId)>,
    entries: usize,
}

impl<'m> Check<'m> {
    fn particle(&mut self, particle: &'m Particle) -> Result<ModelPart, Stop> {
        let mut part = match &particle.term {
            Term::Group(group) => self.group(group)?,
            term => {
                let position = self.terms.len() as Position;
                self.terms.push(term);
                self.follow.push(Vec::new());
                let mut set = Set::default();
                self.insert(&mut set, position)?;
                ModelPart { first: self.keep(set), last: vec![position], nullable: false }
            }
        };
        if particle.max > 1 {
            let repeats = particle.min == particle.max && !part.nullable;
            self.connect(&part.last, part.first, repeats)?;
        }
        part.nullable |= particle.min == 0;
        Ok(part)
    }

    fn group(&mut self, group: &'m Group) -> Result<ModelPart, Stop> {
        let parts = group.particles.iter().map(|particle| self.particle(particle)).collect::<Result<Vec<_>, _>>()?;
        if group.kind == GroupKind::Sequence {
            return self.sequence(parts);
        }
        let mut first = Set::default();
        for part in &parts {
            self.unite(&mut first, part.first)?;
        }
        let first = self.keep(first);
        let nullable = match group.kind {
            GroupKind::Choice => parts.is_empty() || parts.iter().any(|part| part.nullable),
            _ => parts.iter().all(|part| part.nullable),
        };
        let last: Vec<Position> = parts.into_iter().flat_map(|part| part.last).collect();
        if group.kind == GroupKind::All {
            self.connect(&last, first, false)?;
        }
        Ok(ModelPart { first, last, nullable })
    }

    /// From the end to the beginning: each part is followed by what the rest begins with.
    fn sequence(&mut self, parts: Vec<ModelPart>) -> Result<ModelPart, Stop> {
        let mut rest = ModelPart { first: self.keep(Set::default()), last: Vec::new(), nullable: true };
        for part in parts.into_iter().rev() {
            self.connect(&part.last, rest.first, false)?;
            if rest.nullable {
                rest.last.extend(part.last);
            }
            rest.first = if part.nullable {
                let mut first = Set::default();
                self.unite(&mut first, part.first)?;
                self.unite(&mut first, rest.first)?;
                self.keep(first)
            } else {
                part.first
            };
            rest.nullable &= part.nullable;
        }
        Ok(rest)
    }

    fn keep(&mut self, set: Set) -> SetId {
        self.sets.push(set);
        self.sets.len() - 1
    }

    fn connect(&mut self, positions: &[Position], next: SetId, repeats: bool) -> Result<(), Stop> {
        for &position in positions {
            for index in 0..self.follow[position as usize].len() {
                let known = &self.follow[position as usize][index];
                if !known.repeats {
                    self.compare(known.set, next)?;
                }
            }
            self.follow[position as usize].push(Follower { set: next, repeats });
        }
        Ok(())
    }

    /// Fails when a name fits different positions of two sets.
    fn compare(&mut self, one: SetId, other: SetId) -> Result<(), Stop> {
        let pair = (one.min(other), one.max(other));
        if one == other || self.compared.contains(&pair) {
            return Ok(());
        }
        let (one, other) = (&self.sets[pair.0], &self.sets[pair.1]);
        let (few, many) = if one.names.len() < other.names.len() { (one, other) } else { (other, one) };
        few.positions().into_iter().try_for_each(|position| self.fits_none_of(position, many))?;
        self.compared.insert(pair);
        Ok(())
    }

    fn unite(&mut self, set: &mut Set, with: SetId) -> Result<(), Stop> {
        self.sets[with].positions().into_iter().try_for_each(|position| self.insert(set, position))
    }

    /// Adds a position to a set.
    fn insert(&mut self, set: &mut Set, position: Position) -> Result<(), Stop> {
        self.fits_none_of(position, set)?;
        match self.terms[position as usize] {
            Term::Element(choices) => {
                self.entries += choices.len();
                set.names.extend(choices.iter().map(|(symbol, _)| (*symbol, position)));
            }
            _ => {
                self.entries += 1;
                set.wildcards.push(position);
            }
        }
        if self.entries > ENTRIES_MAX { Err(Stop::TooLarge) } else { Ok(()) }
    }

    /// Fails when a name fits both the position and another one of the set.
    fn fits_none_of(&self, position: Position, set: &Set) -> Result<(), Stop> {
        let lets_in = |wildcard: Position, symbol: Symbol| {
            self.namespaces(wildcard).is_some_and(|namespaces| namespaces.allow(self.names.namespace(symbol)))
        };
        let mut wildcards = set.wildcards.iter().copied();
        let clash = match self.terms[position as usize] {
            Term::Element(choices) => choices.iter().find_map(|(symbol, _)| {
                let named = set.names.get(symbol).copied().filter(|other| *other != position);
                named.or_else(|| set.wildcards.iter().copied().find(|other| lets_in(*other, *symbol)))
            }),
            _ => {
                let named = set.names.iter().find(|(symbol, _)| lets_in(position, **symbol)).map(|(_, other)| *other);
                named.or_else(|| wildcards.find(|other| *other != position && self.overlap(*other, position)))
            }
        };
        match clash {
            Some(other) => Err(Stop::Ambiguous(other.min(position), other.max(position))),
            None => Ok(()),
        }
    }

    fn namespaces(&self, position: Position) -> Option<&'m Namespaces> {
        match self.terms[position as usize] {
            Term::Any(wildcard) => Some(&wildcard.namespaces),
            _ => None,
        }
    }

    fn overlap(&self, one: Position, other: Position) -> bool {
        match (self.namespaces(one), self.namespaces(other)) {
            (Some(Namespaces::List(list)), Some(other)) | (Some(other), Some(Namespaces::List(list))) => {
                list.iter().any(|namespace| other.allow(namespace))
            }
            // Neither leaves out more than one namespace.
            _ => true,
        }
    }

    fn show(&self, position: Position) -> String {
        match self.terms[position as usize] {
            Term::Element(choices) => {
                let name = choices.first().map_or("", |(symbol, _)| self.names.local(*symbol));
                format!("the particle `{name}`")
            }
            _ => "a wildcard".to_owned(),
        }
    }
}
