//! Loops, and whatever else gives names to values for a while.

use std::rc::Rc;

use super::Place;
use super::ast::{Expr, List, Node};
use super::render::{Outcome, Run, Stop, fail, missing};
use super::value::Data;

/// A loop that is running.
pub(super) struct Loop<'d> {
    pub(super) name: Option<&'d str>,
    pub(super) value_name: Option<&'d str>,
    pub(super) item: Data<'d>,
    pub(super) value: Data<'d>,
    pub(super) index: usize,
    pub(super) length: usize,
    /// Macros that were running when it began: an inner macro does not see it.
    pub(super) scope: usize,
}

impl<'d> Loop<'d> {
    /// A name for one value.
    pub(super) fn of_one(name: &'d str, item: Data<'d>, scope: usize) -> Loop<'d> {
        Loop { name: Some(name), value_name: None, item, value: Data::Missing, index: 0, length: 1, scope }
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
        let pairs: Vec<(Data<'d>, Data<'d>)> = match (of.members(), of.items(), &list.name) {
            (Some(members), _, Some((_, Some(_)))) | (Some(members), _, None) => {
                members.into_iter().map(|(name, value)| (Data::Text(name), value)).collect()
            }
            (_, Some(items), _) => items.into_iter().map(|item| (item, Data::Missing)).collect(),
            (Some(members), ..) => members.into_iter().map(|(name, _)| (Data::Text(name), Data::Missing)).collect(),
            (None, None, _) if matches!(of, Data::Missing) => {
                return Err(Stop::Missing(missing(&list.of)));
            }
            _ => return fail(list.of.at, format!("`{}` is {}, which cannot be listed", list.of.describe(), of.kind())),
        };
        if pairs.is_empty() {
            return self.nodes(&list.otherwise);
        }
        match &list.name {
            Some((name, value)) => self.rounds(pairs, Some(name), value.as_deref(), &list.body, list.of.at),
            None => {
                // The rounds are run by `<#items>` inside.
                let items = pairs.into_iter().map(|(name, value)| Data::List(Rc::new(vec![name, value]))).collect();
                self.loops.push(Loop {
                    name: None,
                    value_name: None,
                    item: Data::List(Rc::new(items)),
                    value: Data::Missing,
                    index: 0,
                    length: 0,
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
        let pending =
            self.loops.iter().rev().find(|around| around.name.is_none()).and_then(|around| around.item.items());
        let Some(pairs) = pending else { return fail(at, "<#items> stands in no <#list> without a variable") };
        let pairs = pairs.into_iter().filter_map(|pair| {
            let pair = pair.items()?;
            Some((pair.first()?.clone(), pair.get(1)?.clone()))
        });
        self.rounds(pairs.collect(), Some(name), value, body, at)
    }

    fn rounds(
        &mut self,
        pairs: Vec<(Data<'d>, Data<'d>)>,
        name: Option<&'d str>,
        value_name: Option<&'d str>,
        body: &'d [Node],
        at: Place,
    ) -> Outcome<'d, ()> {
        self.deeper(at)?;
        let length = pairs.len();
        for (index, (item, value)) in pairs.into_iter().enumerate() {
            self.count(at)?;
            let scope = self.scopes.len();
            self.loops.push(Loop { name, value_name, item, value, index, length, scope });
            let outcome = self.nodes(body);
            self.loops.pop();
            match outcome {
                Err(Stop::Break) => break,
                Ok(()) | Err(Stop::Continue) => {}
                Err(other) => return Err(other),
            }
        }
        self.depth -= 1;
        Ok(())
    }
}
