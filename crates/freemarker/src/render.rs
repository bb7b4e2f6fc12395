//! Runs a template's tree.

use std::collections::HashMap;
use std::rc::Rc;

use super::ast::{AssignScope, Expr, List, Macro, Node, Operator};
use super::value::{Data, MacroRef, Model};
use super::{DEPTH_MAX, OUTPUT_BYTES_MAX, Place, STEPS_MAX, TemplateError, builtins};

/// Why a block stopped before its end.
pub(super) enum Stop<'d> {
    Break,
    Continue,
    Return(Data<'d>),
    /// Something is not there, which `!` and `??` can live with.
    Missing(TemplateError),
    Failed(TemplateError),
}

pub(super) type Outcome<'d, T> = Result<T, Stop<'d>>;

pub(super) fn fail<'d, T>(at: Place, message: impl Into<String>) -> Outcome<'d, T> {
    Err(Stop::Failed(TemplateError::new(at, message)))
}

pub(super) fn render<'d>(body: &'d [Node], model: &'d Model<'d>) -> Result<String, TemplateError> {
    let mut run = Run {
        model,
        out: String::new(),
        globals: HashMap::new(),
        scopes: Vec::new(),
        loops: Vec::new(),
        bodies: Vec::new(),
        depth: 0,
        steps: 0,
    };
    run.hoist(body);
    match run.nodes(body) {
        Ok(()) | Err(Stop::Return(_) | Stop::Break | Stop::Continue) => Ok(run.out),
        Err(Stop::Missing(error) | Stop::Failed(error)) => Err(error),
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
    /// Macros that were running when it began: an inner macro does not see it.
    pub(super) scope: usize,
}

pub(super) struct Run<'d> {
    pub(super) model: &'d Model<'d>,
    pub(super) out: String,
    pub(super) globals: HashMap<Rc<str>, Data<'d>>,
    /// Variables of the macros that are running.
    pub(super) scopes: Vec<HashMap<Rc<str>, Data<'d>>>,
    pub(super) loops: Vec<Loop<'d>>,
    /// What `<#nested>` writes, and the names of the values it hands over.
    bodies: Vec<(&'d [Node], &'d [String])>,
    pub(super) depth: usize,
    steps: u64,
}

impl<'d> Run<'d> {
    /// Macros are known before the place where they stand.
    fn hoist(&mut self, nodes: &'d [Node]) {
        for node in nodes {
            if let Node::Macro(own) = node {
                self.globals.insert(own.name.as_str().into(), Data::Macro(MacroRef(own)));
            }
        }
    }

    fn nodes(&mut self, nodes: &'d [Node]) -> Outcome<'d, ()> {
        nodes.iter().try_for_each(|node| self.node(node))
    }

    fn write(&mut self, text: &str, at: Place) -> Outcome<'d, ()> {
        if self.out.len() + text.len() > OUTPUT_BYTES_MAX {
            return fail(at, format!("the template writes more than {OUTPUT_BYTES_MAX} bytes"));
        }
        self.out.push_str(text);
        Ok(())
    }

    pub(super) fn count(&mut self, at: Place) -> Outcome<'d, ()> {
        self.steps += 1;
        if self.steps > STEPS_MAX { fail(at, "the template never comes to an end") } else { Ok(()) }
    }

    fn node(&mut self, node: &'d Node) -> Outcome<'d, ()> {
        match node {
            Node::Text(text) => self.write(text, Place::default()),
            Node::Output(expr) => {
                self.count(expr.at)?;
                let value = self.evaluate(expr)?;
                let text = self.output(&value, expr)?;
                self.write(&text, expr.at)
            }
            Node::If(branches) => {
                for (condition, body) in branches {
                    let holds = match condition {
                        Some(condition) => self.truth(condition)?,
                        None => true,
                    };
                    if holds {
                        return self.nodes(body);
                    }
                }
                Ok(())
            }
            Node::List(list) => self.list(list),
            Node::Items { name, value, body, at } => self.items(name, value.as_deref(), body, *at),
            Node::Sep(body) => match self.loops.last() {
                Some(around) if around.index + 1 < around.length => self.nodes(body),
                _ => Ok(()),
            },
            Node::Assign { scope, name, operator, value } => self.assign(*scope, name, *operator, value),
            Node::Capture { scope, name, body } => {
                let before = std::mem::take(&mut self.out);
                let outcome = self.nodes(body);
                let captured = std::mem::replace(&mut self.out, before);
                outcome?;
                self.set(*scope, name, Data::text(captured));
                Ok(())
            }
            Node::Macro(own) => {
                self.globals.insert(own.name.as_str().into(), Data::Macro(MacroRef(own)));
                Ok(())
            }
            Node::Call { name, arguments, variables, body, at } => {
                self.bodies.push((body, variables));
                let outcome = self.call_macro(name, arguments, *at);
                self.bodies.pop();
                outcome
            }
            Node::Nested(values) => self.nested(values),
            Node::Return(value) => {
                let value = match value {
                    Some(value) => self.evaluate(value)?,
                    None => Data::Missing,
                };
                Err(Stop::Return(value))
            }
            Node::Switch { on, cases } => self.switch(on, cases),
            Node::Attempt { body, recover } => {
                let written = self.out.len();
                let (loops, scopes) = (self.loops.len(), self.scopes.len());
                match self.nodes(body) {
                    Err(Stop::Failed(_) | Stop::Missing(_)) => {
                        self.out.truncate(written);
                        self.loops.truncate(loops);
                        self.scopes.truncate(scopes);
                        self.nodes(recover)
                    }
                    other => other,
                }
            }
            Node::Break => Err(Stop::Break),
            Node::Continue => Err(Stop::Continue),
            Node::Stop(why, at) => {
                let why = match why {
                    Some(why) => self.text_of(why)?.to_string(),
                    None => String::new(),
                };
                fail(*at, format!("the template stopped: {why}"))
            }
        }
    }

    /// What the caller of a macro put between its tags.
    fn nested(&mut self, values: &'d [Expr]) -> Outcome<'d, ()> {
        let values = values.iter().map(|value| self.evaluate(value)).collect::<Result<Vec<_>, _>>()?;
        let Some((body, names)) = self.bodies.pop() else { return Ok(()) };
        // Inside, the caller's own variables count.
        let scope = self.scopes.pop();
        let open = self.loops.len();
        for (name, item) in names.iter().zip(values) {
            let scope = self.scopes.len();
            self.loops.push(Loop {
                name: Some(name),
                value_name: None,
                item,
                value: Data::Missing,
                index: 0,
                length: 1,
                scope,
            });
        }
        let outcome = self.nodes(body);
        self.loops.truncate(open);
        self.scopes.extend(scope);
        self.bodies.push((body, names));
        outcome
    }

    fn switch(&mut self, on: &'d Expr, cases: &'d [(Option<Expr>, Vec<Node>)]) -> Outcome<'d, ()> {
        let on = self.evaluate(on)?;
        let mut found = None;
        for (index, (case, _)) in cases.iter().enumerate() {
            if let Some(case) = case
                && builtins::equal(&on, &self.evaluate(case)?)
            {
                found = Some(index);
                break;
            }
        }
        let Some(start) = found.or_else(|| cases.iter().position(|(case, _)| case.is_none())) else { return Ok(()) };
        for (_, body) in &cases[start..] {
            match self.nodes(body) {
                Err(Stop::Break) => return Ok(()),
                other => other?,
            }
        }
        Ok(())
    }

    fn list(&mut self, list: &'d List) -> Outcome<'d, ()> {
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

    fn items(&mut self, name: &'d str, value: Option<&'d str>, body: &'d [Node], at: Place) -> Outcome<'d, ()> {
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

    pub(super) fn deeper(&mut self, at: Place) -> Outcome<'d, ()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return fail(at, format!("loops and macros are nested deeper than {DEPTH_MAX}"));
        }
        Ok(())
    }

    fn set(&mut self, scope: AssignScope, name: &str, value: Data<'d>) {
        match (scope, self.scopes.last_mut()) {
            (AssignScope::Local, Some(locals)) => drop(locals.insert(name.into(), value)),
            _ => drop(self.globals.insert(name.into(), value)),
        }
    }

    fn assign(&mut self, scope: AssignScope, name: &str, operator: char, value: &'d Expr) -> Outcome<'d, ()> {
        let right = self.evaluate(value)?;
        if matches!(right, Data::Missing) {
            return Err(Stop::Missing(missing(value)));
        }
        let operation = match operator {
            '+' => Operator::Add,
            '-' => Operator::Subtract,
            '*' => Operator::Multiply,
            '/' => Operator::Divide,
            '%' => Operator::Remainder,
            _ => {
                self.set(scope, name, right);
                return Ok(());
            }
        };
        let left = self.variable(name);
        let made = self.combine(operation, &left, &right, value)?;
        self.set(scope, name, made);
        Ok(())
    }

    fn call_macro(&mut self, name: &'d Expr, arguments: &'d [(Option<String>, Expr)], at: Place) -> Outcome<'d, ()> {
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

pub(super) fn missing(expr: &Expr) -> TemplateError {
    let message = format!("`{}` is missing; `!` gives a default, `??` asks for it", expr.describe());
    TemplateError::new(expr.at, message)
}
