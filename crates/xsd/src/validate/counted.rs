//! Matching where counts leave a choice: in `(a{2,3}){0,3}` four elements are two and two, not three and one. The plain
//! matcher takes as many as it can, so a document that it refuses is looked at once more here, when the model has counts
//! within counts.

use std::collections::BTreeSet;

use super::children::{Child, Matched, accepts};
use crate::model::{Group, GroupKind, Particle, Term};

/// More children take too long, as the time grows with the third power of their number.
const CHILDREN_MAX: usize = 300;

/// What each child is matched by, if a model matches all of them.
pub(super) fn matches<'v>(model: &'v Particle, children: &[Child<'v>]) -> Option<Vec<Matched<'v>>> {
    if children.len() > CHILDREN_MAX || !counts_within_counts(model, false) {
        return None;
    }
    let ends = particle_ends(model, &BTreeSet::from([0]), children);
    if !ends.contains(&children.len()) {
        return None;
    }
    children.iter().map(|child| term_for(model, child)).collect()
}

/// Whether something that occurs a varying number of times stands in a group that occurs several times.
fn counts_within_counts(particle: &Particle, repeats: bool) -> bool {
    let varies = particle.min != particle.max && particle.max > 1;
    let inner = repeats || particle.max > 1;
    (repeats && varies)
        || matches!(&particle.term, Term::Group(group) if group.particles.iter().any(|one| counts_within_counts(one, inner)))
}

/// Where a particle can end that begins at one of these places.
fn particle_ends(particle: &Particle, starts: &BTreeSet<usize>, children: &[Child<'_>]) -> BTreeSet<usize> {
    let mut ends = if particle.min == 0 { starts.clone() } else { BTreeSet::new() };
    let mut reached = starts.clone();
    let mut count = 0;
    while count < particle.max {
        let next = term_ends(&particle.term, &reached, children);
        count += 1;
        // Once an occurrence may be empty, further ones reach nothing that is not reached already.
        let settled = next == reached;
        if count >= particle.min || settled {
            ends.extend(&next);
        }
        if settled || next.is_empty() {
            break;
        }
        reached = next;
    }
    ends
}

fn term_ends(term: &Term, starts: &BTreeSet<usize>, children: &[Child<'_>]) -> BTreeSet<usize> {
    match term {
        Term::Group(group) => group_ends(group, starts, children),
        Term::Element(_) | Term::Any(_) => {
            let fits = |start: &usize| children.get(*start).is_some_and(|child| accepts(term, child));
            starts.iter().filter(|start| fits(start)).map(|start| start + 1).collect()
        }
    }
}

fn group_ends(group: &Group, starts: &BTreeSet<usize>, children: &[Child<'_>]) -> BTreeSet<usize> {
    match group.kind {
        GroupKind::Sequence => {
            let step = |reached: BTreeSet<usize>, particle| particle_ends(particle, &reached, children);
            group.particles.iter().fold(starts.clone(), step)
        }
        GroupKind::Choice if group.particles.is_empty() => starts.clone(),
        GroupKind::Choice => {
            group.particles.iter().flat_map(|particle| particle_ends(particle, starts, children)).collect()
        }
        // It stands alone and its members occur once at most: the plain matcher was right.
        GroupKind::All => BTreeSet::new(),
    }
}

/// The term of a model that a child belongs to: elements of one name have one type, wherever they stand.
fn term_for<'v>(particle: &'v Particle, child: &Child<'v>) -> Option<Matched<'v>> {
    match &particle.term {
        Term::Element(choices) => {
            choices.iter().find(|(name, _)| Some(*name) == child.symbol).map(|(_, id)| Matched::Declared(*id))
        }
        Term::Any(wildcard) => wildcard.namespaces.allow(child.namespace).then_some(Matched::Wildcard(wildcard)),
        Term::Group(group) => {
            let mut found = None;
            for particle in &group.particles {
                match term_for(particle, child) {
                    Some(declared @ Matched::Declared(_)) => return Some(declared),
                    other => found = found.or(other),
                }
            }
            found
        }
    }
}
