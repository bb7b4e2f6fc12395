//! Child elements against a content model.
//!
//! A content model is one-unambiguous (XML Schema part 1 §3.8.6): the next child alone says which
//! particle it belongs to. So matching never backtracks, but where counts stand within counts (`counted`).

use std::collections::HashSet;

use penstock_xml::NodeId;

use super::Validator;
use crate::model::{Components, ElementId, Group, GroupKind, Particle, Process, Term, Wildcard};
use crate::names::Symbol;

/// What a child was matched by.
#[derive(Clone, Copy)]
pub(super) enum Matched<'v> {
    Declared(ElementId),
    Wildcard(&'v Wildcard),
}

#[derive(Clone, Copy)]
pub(super) struct Child<'d> {
    node: NodeId,
    pub(super) symbol: Option<Symbol>,
    pub(super) namespace: &'d str,
}

/// What the matching of one element's children fills, and of the next element's again.
#[derive(Default)]
pub(super) struct Buffers<'v> {
    children: Vec<Child<'v>>,
    matched: Vec<Matched<'v>>,
    /// Terms that could have matched the child the matcher stands at.
    expected: Vec<&'v Term>,
}

struct Matcher<'v, 'c> {
    children: &'c [Child<'v>],
    at: usize,
    matched: &'c mut Vec<Matched<'v>>,
    expected: &'c mut Vec<&'v Term>,
    /// Heads of substitution groups with members that cannot stand in for them.
    blocked: &'v HashSet<(ElementId, ElementId)>,
    /// Where the matcher stood when it expected them.
    expected_at: usize,
}

/// The content does not fit at the child the matcher stands at.
struct Mismatch;

impl<'v> Validator<'v> {
    pub(super) fn children(&mut self, node: NodeId, particle: &'v Particle, depth: usize) {
        let document = self.document;
        let mut buffers = self.spare.pop().unwrap_or_default();
        let Buffers { children, matched, expected } = &mut buffers;
        for child in document.children(node).filter(|child| document.is_element(*child)) {
            let symbol = self.symbol(child);
            children.push(Child { node: child, symbol, namespace: document.namespace(child) });
        }
        let mut matcher =
            Matcher { children, at: 0, matched, expected, blocked: &self.components.blocked, expected_at: 0 };
        let mut fits = matcher.particle(particle).is_ok();
        let (mut at, expected_at) = (matcher.at, matcher.expected_at);
        if (!fits || at < children.len())
            && let Some(found) = super::counted::matches(particle, children)
        {
            (fits, at) = (true, children.len());
            *matched = found;
        }
        for (child, matched) in children.iter().zip(&*matched) {
            match matched {
                Matched::Declared(id) => self.element(child.node, Some(*id), depth + 1),
                Matched::Wildcard(wildcard) => self.wild(child.node, wildcard.process, depth + 1),
            }
        }
        if !fits || at < children.len() {
            let expected = if expected_at == at { show(self.components, expected) } else { String::new() };
            self.mismatch(node, children.get(at), &expected);
        }
        children.clear();
        matched.clear();
        expected.clear();
        self.spare.push(buffers);
    }

    /// What is wrong with the children of an element: this one, or that there are no more.
    fn mismatch(&mut self, node: NodeId, child: Option<&Child<'v>>, expected: &str) {
        match child {
            Some(child) => {
                let name = self.document.name(child.node);
                let found = match name.namespace {
                    "" => name.local.to_owned(),
                    namespace => format!("{{\"{namespace}\":{}}}", name.local),
                };
                let message = if expected.is_empty() {
                    format!(
                        "cvc-complex-type.2.4.d: Invalid content was found starting with element '{found}'. No child element is expected at this point."
                    )
                } else {
                    format!(
                        "cvc-complex-type.2.4.a: Invalid content was found starting with element '{found}'. One of '{expected}' is expected."
                    )
                };
                self.report(child.node, message);
            }
            None => {
                let name = self.written(node);
                let message = format!(
                    "cvc-complex-type.2.4.b: The content of element '{name}' is not complete. One of '{expected}' is expected."
                );
                self.report(node, message);
            }
        }
    }

    /// An element that a wildcard let in.
    fn wild(&mut self, node: NodeId, process: Process, depth: usize) {
        if process == Process::Skip || self.is_full() {
            return;
        }
        let declared = self.global_element(node);
        let said = self.instance_type(node);
        if declared.is_some() || matches!(said, Some(Ok(_))) {
            return self.element(node, declared, depth);
        }
        // A lax wildcard checks what can be found, and this cannot.
        if let (Some(Err(message)), Process::Lax) = (said, process) {
            self.report(node, message);
            return;
        }
        if process == Process::Strict {
            let name = self.written(node);
            self.report(node, format!("cvc-complex-type.2.4.c: The matching wildcard is strict, but no declaration can be found for element '{name}'."));
            return;
        }
        if depth > super::DEPTH_MAX {
            self.report(node, format!("elements are nested deeper than {}", super::DEPTH_MAX));
            return;
        }
        for child in self.document.children(node).filter(|child| self.document.is_element(*child)).collect::<Vec<_>>() {
            self.wild(child, Process::Lax, depth + 1);
        }
    }
}

impl<'v> Matcher<'v, '_> {
    fn particle(&mut self, particle: &'v Particle) -> Result<(), Mismatch> {
        let mut count = 0;
        while count < particle.max {
            if !self.begins(&particle.term) {
                self.expect(&particle.term);
                break;
            }
            let before = self.at;
            self.term(&particle.term)?;
            count += 1;
            if self.at == before {
                break;
            }
        }
        if count < particle.min && !particle.nullable() { Err(Mismatch) } else { Ok(()) }
    }

    /// Whether the next child can begin what the term matches.
    fn begins(&self, term: &'v Term) -> bool {
        let Some(child) = self.children.get(self.at) else { return false };
        accepts(term, child)
    }

    fn expect(&mut self, term: &'v Term) {
        if self.expected_at != self.at {
            self.expected_at = self.at;
            self.expected.clear();
        }
        self.expected.push(term);
    }

    fn term(&mut self, term: &'v Term) -> Result<(), Mismatch> {
        match term {
            Term::Element(choices) => {
                let symbol = self.children.get(self.at).and_then(|child| child.symbol);
                let Some((_, id)) = choices.iter().find(|(name, _)| Some(*name) == symbol) else {
                    return Err(Mismatch);
                };
                if !self.blocked.is_empty() && self.blocked.contains(&(choices[0].1, *id)) {
                    self.expect(term);
                    return Err(Mismatch);
                }
                self.matched.push(Matched::Declared(*id));
                self.at += 1;
                Ok(())
            }
            Term::Any(wildcard) => {
                self.matched.push(Matched::Wildcard(wildcard));
                self.at += 1;
                Ok(())
            }
            Term::Group(group) => self.group(group),
        }
    }

    fn group(&mut self, group: &'v Group) -> Result<(), Mismatch> {
        match group.kind {
            GroupKind::Sequence => group.particles.iter().try_for_each(|particle| self.particle(particle)),
            GroupKind::Choice => match self.children.get(self.at).and_then(|child| chosen(group, child)) {
                Some(index) => self.particle(&group.particles[index]),
                None if group.nullable => Ok(()),
                None => Err(Mismatch),
            },
            GroupKind::All => self.all(group),
        }
    }

    fn all(&mut self, group: &'v Group) -> Result<(), Mismatch> {
        let mut seen = vec![false; group.particles.len()];
        while let Some(child) = self.children.get(self.at) {
            match chosen(group, child) {
                Some(index) if !seen[index] => {
                    seen[index] = true;
                    self.particle(&group.particles[index])?;
                }
                _ => break,
            }
        }
        let mut complete = true;
        for (particle, seen) in group.particles.iter().zip(seen) {
            if !seen {
                self.expect(&particle.term);
                complete &= particle.nullable();
            }
        }
        if complete { Ok(()) } else { Err(Mismatch) }
    }
}

/// The particle of a group that a child belongs to.
fn chosen(group: &Group, child: &Child<'_>) -> Option<usize> {
    if let Some(symbol) = child.symbol
        && let Ok(found) = group.first.binary_search_by_key(&symbol, |(symbol, _)| *symbol)
    {
        return Some(group.first[found].1 as usize);
    }
    let wild = group.first_wild.iter().map(|index| *index as usize);
    wild.into_iter().find(|index| accepts(&group.particles[*index].term, child))
}

pub(super) fn accepts(term: &Term, child: &Child<'_>) -> bool {
    match term {
        Term::Element(choices) => choices.iter().any(|(name, _)| Some(*name) == child.symbol),
        Term::Any(wildcard) => wildcard.namespaces.allow(child.namespace),
        Term::Group(group) => chosen(group, child).is_some(),
    }
}

/// The names that terms can begin with, as messages list them.
fn show(components: &Components, terms: &[&Term]) -> String {
    let mut names: Vec<String> = Vec::new();
    for term in terms {
        collect(components, term, &mut names);
    }
    let mut unique: Vec<String> = Vec::new();
    for name in names {
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    if unique.is_empty() { String::new() } else { format!("{{{}}}", unique.join(", ")) }
}

fn collect(components: &Components, term: &Term, names: &mut Vec<String>) {
    match term {
        Term::Element(choices) => names.extend(choices.iter().map(|(symbol, _)| components.names.show(*symbol))),
        Term::Any(wildcard) => names.push(match &wildcard.namespaces {
            crate::model::Namespaces::Any => "WC[##any]".to_owned(),
            crate::model::Namespaces::Other(not) => format!("WC[##other:\"{not}\"]"),
            crate::model::Namespaces::List(list) => {
                format!("WC[{}]", list.iter().map(|one| format!("\"{one}\"")).collect::<Vec<_>>().join(", "))
            }
        }),
        Term::Group(group) => {
            for particle in &group.particles {
                collect(components, &particle.term, names);
                if group.kind == GroupKind::Sequence && !particle.nullable() {
                    break;
                }
            }
        }
    }
}
