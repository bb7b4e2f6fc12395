//! Calls of macros and functions.

use std::collections::HashMap;
use std::rc::Rc;

use super::Place;
use super::ast::{AssignScope, Expr, Macro};
use super::render::{Outcome, Run, Stop, fail};
use super::value::{Data, MacroRef};

impl<'d> Run<'d> {
    pub(super) fn call_macro(
        &mut self,
        name: &'d Expr,
        arguments: &'d [(Option<String>, Expr)],
        at: Place,
    ) -> Outcome<'d, ()> {
        let Data::Macro(MacroRef(called)) = self.evaluate(name)? else {
            return fail(at, format!("there is no macro `{}`", name.describe()));
        };
        let mut given = Vec::with_capacity(arguments.len());
        for (key, value) in arguments {
            given.push((key.as_deref(), self.evaluate(value)?));
        }
        match self.run_macro(called, given, at) {
            Err(Stop::Return(_)) => Ok(()),
            other => other,
        }
    }

    pub(super) fn run_macro(
        &mut self,
        called: &'d Macro,
        given: Vec<(Option<&str>, Data<'d>)>,
        at: Place,
    ) -> Outcome<'d, ()> {
        self.deeper(at)?;
        let mut locals: HashMap<Rc<str>, Data<'d>> = HashMap::new();
        let mut rest = Vec::new();
        for (index, (key, value)) in given.into_iter().enumerate() {
            match (key, called.parameters.get(index)) {
                (Some(key), _) => drop(locals.insert(key.into(), value)),
                (None, Some((name, _))) => drop(locals.insert(name.as_str().into(), value)),
                (None, None) => rest.push(value),
            }
        }
        if let Some(name) = &called.rest {
            locals.insert(name.as_str().into(), Data::List(Rc::new(rest)));
        }
        self.scopes.push(locals);
        let outcome = self.defaults(called, at).and_then(|()| self.nodes(&called.body));
        self.scopes.pop();
        self.depth -= 1;
        outcome
    }

    fn defaults(&mut self, called: &'d Macro, at: Place) -> Outcome<'d, ()> {
        for (name, default) in &called.parameters {
            if self.scopes.last().is_some_and(|locals| locals.contains_key(name.as_str())) {
                continue;
            }
            let Some(default) = default else {
                return fail(at, format!("`{}` needs the parameter `{name}`", called.name));
            };
            let value = self.evaluate(default)?;
            self.set(AssignScope::Local, name, value);
        }
        Ok(())
    }
}
