//! Runs a template's tree.

use std::collections::HashMap;
use std::rc::Rc;

use super::ast::{AssignScope, Expr, Node, Operator};
use super::loops::Loop;
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

pub(super) struct Run<'d> {
    pub(super) model: &'d Model<'d>,
    pub(super) out: String,
    pub(super) globals: HashMap<Rc<str>, Data<'d>>,
    /// Variables of the macros that are running.
    pub(super) scopes: Vec<HashMap<Rc<str>, Data<'d>>>,
    pub(super) loops: Vec<Loop<'d>>,
    /// What `<#nested>` writes, and the names of the values it hands over.
    pub(super) bodies: Vec<(&'d [Node], &'d [String])>,
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

    pub(super) fn nodes(&mut self, nodes: &'d [Node]) -> Outcome<'d, ()> {
        nodes.iter().try_for_each(|node| self.node(node))
    }

    fn write(&mut self, text: &str, at: Place) -> Outcome<'d, ()> {
        if self.out.len() + text.len() > OUTPUT_BYTES_MAX {
            return fail(at, format!("the template writes more than {OUTPUT_BYTES_MAX} bytes"));
        }
        penstock_budget::make_room_for_text(&mut self.out, text.len());
        self.out.push_str(text);
        Ok(())
    }

    pub(super) fn count(&mut self, at: Place) -> Outcome<'d, ()> {
        penstock_budget::step();
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
            Node::If(branches) => self.branch(branches),
            Node::List(list) => self.list(list),
            Node::Items { name, value, body, at } => self.items(name, value.as_deref(), body, *at),
            Node::Sep(body) => match self.loops.last() {
                Some(around) if around.index + 1 < around.length => self.nodes(body),
                _ => Ok(()),
            },
            Node::Assign { scope, name, operator, value } => self.assign(*scope, name, *operator, value),
            Node::Capture { scope, name, body } => self.capture(*scope, name, body),
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
            Node::Attempt { body, recover } => self.attempt(body, recover),
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

    fn branch(&mut self, branches: &'d [(Option<Expr>, Vec<Node>)]) -> Outcome<'d, ()> {
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

    /// What is written inside becomes a variable.
    fn capture(&mut self, scope: AssignScope, name: &str, body: &'d [Node]) -> Outcome<'d, ()> {
        let before = std::mem::take(&mut self.out);
        let outcome = self.nodes(body);
        let captured = std::mem::replace(&mut self.out, before);
        outcome?;
        self.set(scope, name, Data::text(captured));
        Ok(())
    }

    /// What fails has written nothing.
    fn attempt(&mut self, body: &'d [Node], recover: &'d [Node]) -> Outcome<'d, ()> {
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

    /// Increments the nesting level; the caller decrements it in all cases.
    pub(super) fn deeper(&mut self, at: Place) -> Outcome<'d, ()> {
        if self.depth >= DEPTH_MAX {
            return fail(at, format!("loops and macros are nested deeper than {DEPTH_MAX}"));
        }
        self.depth += 1;
        Ok(())
    }

    pub(super) fn set(&mut self, scope: AssignScope, name: &str, value: Data<'d>) {
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
}

pub(super) fn missing(expr: &Expr) -> TemplateError {
    let message = format!("`{}` is missing; `!` sets a default, `??` tests for it", expr.describe());
    TemplateError::new(expr.at, message)
}
