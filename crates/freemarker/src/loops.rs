//! Loops and other scopes of names.

use std::rc::Rc;

use super::Place;
use super::ast::{Expr, List, Node};
use super::render::{Outcome, Run, Stop, fail, missing};
use super::value::Data;

/// What a loop goes over.
#[derive(Clone)]
pub(super) enum Rounds<'d> {
    /// The items of a list.
    Items(Data<'d>),
    /// The members of a hash.
    Members(Rc<Vec<(Rc<str>, Data<'d>)>>),
}

impl<'d> Rounds<'d> {
    fn new(data: &Data<'d>) -> Option<Rounds<'d>> {
        match data.members() {
            Some(members) => Some(Rounds::Members(Rc::new(members))),
            None => data.length().map(|_| Rounds::Items(data.clone())),
        }
    }

    fn length(&self) -> usize {
        match self {
            Rounds::Items(list) => list.length().unwrap_or_default(),
            Rounds::Members(members) => members.len(),
        }
    }

    /// What the two variables of a round are.
    fn round(&self, index: usize) -> (Data<'d>, Data<'d>) {
        match self {
            Rounds::Items(list) => (list.item(index), Data::Missing),
            Rounds::Members(members) => match members.get(index) {
                Some((name, value)) => (Data::Text(name.clone()), value.clone()),
                None => (Data::Missing, Data::Missing),
            },
        }
    }
}

/// A loop that is running.
pub(super) struct Loop<'d> {
    pub(super) name: Option<&'d str>,
    pub(super) value_name: Option<&'d str>,
    pub(super) item: Data<'d>,
    pub(super) value: Data<'d>,
    pub(super) index: usize,
    pub(super) length: usize,
    /// Of a loop without a variable: the rounds, which `<#items>` inside runs.
    pub(super) pending: Option<Rounds<'d>>,
    /// Macros that were running when it began: an inner macro does not see it.
    pub(super) scope: usize,
}

impl<'d> Loop<'d> {
    /// A name for one value.
    pub(super) fn of_one(name: &'d str, item: Data<'d>, scope: usize) -> Loop<'d> {
        let name = Some(name);
        Loop { name, value_name: None, item, value: Data::Missing, index: 0, length: 1, pending: None, scope }
    }
}

impl<'d> Run<'d> {
    /// What the caller of a macro put between its tags.
    pub(super) fn nested(&mut self, values: &'d [Expr]) -> Outcome<'d, ()> {
        let values = values.iter().map(|value| self.evaluate(value)).collect::<Result<Vec<_>, _>>()?;
        let Some((body, names)) = self.bodies.pop() else { return Ok(()) };
        // Inside, the caller's own variables count.
        let scope = self.scopes.pop();
        let open = self.loops.len();
        for (name, item) in names.iter().zip(values) {
            let scope = self.scopes.len();
            self.loops.push(Loop::of_one(name, item, scope));
        }
        let outcome = self.nodes(body);
        self.loops.truncate(open);
        self.scopes.extend(scope);
        self.bodies.push((body, names));
        outcome
    }

    pub(super) fn list(&mut self, list: &'d List) -> Outcome<'d, ()> {
        let of = self.evaluate(&list.of)?;
        let Some(rounds) = Rounds::new(&of) else {
            if matches!(of, Data::Missing) {
                return Err(Stop::Missing(missing(&list.of)));
            }
            return fail(list.of.at, format!("`{}` is {}, which cannot be listed", list.of.describe(), of.kind()));
        };
        if rounds.length() == 0 {
            return self.nodes(&list.otherwise);
        }
        match &list.name {
            Some((name, value)) => self.rounds(&rounds, name, value.as_deref(), &list.body, list.of.at),
            None => {
                self.loops.push(Loop {
                    name: None,
                    value_name: None,
                    item: Data::Missing,
                    value: Data::Missing,
                    index: 0,
                    length: 0,
                    pending: Some(rounds),
                    scope: self.scopes.len(),
                });
                let outcome = self.nodes(&list.body);
                self.loops.pop();
                outcome
            }
        }
    }

    pub(super) fn items(
        &mut self,
        name: &'d str,
        value: Option<&'d str>,
        body: &'d [Node],
        at: Place,
    ) -> Outcome<'d, ()> {
        let pending = self.loops.iter().rev().find_map(|around| around.pending.clone());
        let Some(rounds) = pending else { return fail(at, "<#items> stands in no <#list> without a variable") };
        self.rounds(&rounds, name, value, body, at)
    }

    fn rounds(
        &mut self,
        rounds: &Rounds<'d>,
        name: &'d str,
        value_name: Option<&'d str>,
        body: &'d [Node],
        at: Place,
    ) -> Outcome<'d, ()> {
        self.deeper(at)?;
        let length = rounds.length();
        let outcome = (0..length).try_for_each(|index| {
            self.count(at)?;
            let (item, value) = rounds.round(index);
            let scope = self.scopes.len();
            self.loops.push(Loop { name: Some(name), value_name, item, value, index, length, pending: None, scope });
            let outcome = self.nodes(body);
            self.loops.pop();
            match outcome {
                Err(Stop::Continue) => Ok(()),
                other => other,
            }
        });
        self.depth -= 1;
        match outcome {
            Err(Stop::Break) => Ok(()),
            other => other,
        }
    }
}
