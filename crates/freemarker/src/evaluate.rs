//! The value of an expression.

use std::rc::Rc;

use super::ast::{Expr, ExprKind, Operator, RangeEnd};
use super::loops::Loop;
use super::render::{Outcome, Run, Stop, fail, missing};
use super::value::{Data, LambdaRef, MacroRef};
use super::{Place, builtins, number};

/// Items a range may stand for.
pub(super) const RANGE_MAX: f64 = 1_000_000.0;

impl<'d> Run<'d> {
    /// The loop that a variable belongs to.
    pub(super) fn loop_of(&self, name: &str) -> Option<(usize, usize)> {
        let found = self.loops.iter().rev().find(|around| around.name == Some(name) || around.value_name == Some(name));
        found.map(|around| (around.index, around.length))
    }

    pub(super) fn variable(&self, name: &str) -> Data<'d> {
        let visible = self.loops.iter().rev().take_while(|around| around.scope >= self.scopes.len());
        for around in visible {
            if around.name == Some(name) {
                return around.item.clone();
            }
            if around.value_name == Some(name) {
                return around.value.clone();
            }
            // The names of old: `item_index`, `item_has_next`.
            if let Some(of) = around.name
                && let Some(what) = name.strip_prefix(of)
            {
                match what {
                    "_index" => return Data::Number(around.index as f64),
                    "_has_next" => return Data::Boolean(around.index + 1 < around.length),
                    _ => {}
                }
            }
        }
        if let Some(found) = self.scopes.last().and_then(|locals| locals.get(name)) {
            return found.clone();
        }
        if let Some(found) = self.globals.get(name) {
            return found.clone();
        }
        let root = self.model.roots.iter().find(|(root, _)| *root == name);
        root.map_or(Data::Missing, |(_, value)| value.clone())
    }

    /// The value of an expression; missing when a name leads nowhere, an error when the way there does.
    pub(super) fn evaluate(&mut self, expr: &'d Expr) -> Outcome<'d, Data<'d>> {
        penstock_budget::step();
        Ok(match &*expr.kind {
            ExprKind::Text(text) => Data::text(text.as_str()),
            ExprKind::Joined(parts) => {
                let mut joined = String::new();
                for part in parts {
                    let value = self.evaluate(part)?;
                    let text = self.output(&value, part)?;
                    penstock_budget::make_room_for_text(&mut joined, text.len());
                    joined.push_str(&text);
                }
                Data::text(joined)
            }
            ExprKind::Number(number) => Data::Number(*number),
            ExprKind::Boolean(flag) => Data::Boolean(*flag),
            ExprKind::List(items) => {
                let items = items.iter().map(|item| self.evaluate(item)).collect::<Result<Vec<_>, _>>()?;
                Data::List(Rc::new(items))
            }
            ExprKind::Hash(members) => {
                let mut made = Vec::with_capacity(members.len());
                for (key, value) in members {
                    made.push((self.text_of(key)?, self.evaluate(value)?));
                }
                Data::Hash(Rc::new(made))
            }
            ExprKind::Name(name) => self.variable(name),
            ExprKind::Special(name) => match name.as_str() {
                "now" => Data::Now,
                "data_model" | "globals" | "vars" | "main" | "namespace" => {
                    let members = self.model.roots.iter().map(|(name, value)| (Rc::from(*name), value.clone()));
                    Data::Hash(Rc::new(members.collect()))
                }
                _ => return fail(expr.at, format!("there is no special variable `.{name}`")),
            },
            ExprKind::Member(of, name) => {
                let base = self.present(of)?;
                if !base.is_hash() {
                    let message = format!("`{}` is {}, which has no `{name}`", of.describe(), base.kind());
                    return fail(expr.at, message);
                }
                base.member(name)
            }
            ExprKind::Index(of, index) => self.index(of, index)?,
            ExprKind::Call(of, arguments) => self.call(of, arguments, expr.at)?,
            ExprKind::BuiltIn(of, name, arguments) => builtins::apply(self, expr, of, name, arguments.as_deref())?,
            ExprKind::Default(of, default) => match self.lenient(of)? {
                Data::Missing => match default {
                    Some(default) => self.evaluate(default)?,
                    None => Data::text(""),
                },
                found => found,
            },
            ExprKind::Exists(of) => Data::Boolean(!matches!(self.lenient(of)?, Data::Missing)),
            ExprKind::Paren(inner) => self.evaluate(inner)?,
            ExprKind::Not(inner) => Data::Boolean(!self.truth(inner)?),
            ExprKind::Negative(inner) => Data::Number(-self.number(inner)?),
            ExprKind::Binary(Operator::And, left, right) => Data::Boolean(self.truth(left)? && self.truth(right)?),
            ExprKind::Binary(Operator::Or, left, right) => Data::Boolean(self.truth(left)? || self.truth(right)?),
            ExprKind::Binary(operator, left, right) => {
                let (left_value, right_value) = (self.present(left)?, self.present(right)?);
                self.combine(*operator, &left_value, &right_value, expr)?
            }
            ExprKind::Range(from, to, end) => self.range(from, to.as_ref(), *end)?,
            ExprKind::Lambda(name, body) => Data::Lambda(LambdaRef(name, body)),
        })
    }

    /// As [`Run::evaluate`], but what leads nowhere inside brackets is just missing.
    pub(super) fn lenient(&mut self, expr: &'d Expr) -> Outcome<'d, Data<'d>> {
        match &*expr.kind {
            ExprKind::Paren(inner) => match self.evaluate(inner) {
                Err(Stop::Missing(_)) => Ok(Data::Missing),
                other => other,
            },
            _ => self.evaluate(expr),
        }
    }

    /// A value that must be there.
    pub(super) fn present(&mut self, expr: &'d Expr) -> Outcome<'d, Data<'d>> {
        match self.evaluate(expr)? {
            Data::Missing => Err(Stop::Missing(missing(expr))),
            found => Ok(found),
        }
    }

    fn index(&mut self, of: &'d Expr, index: &'d Expr) -> Outcome<'d, Data<'d>> {
        let base = self.present(of)?;
        if let ExprKind::Range(..) = &*index.kind {
            return self.slice(&base, index, of);
        }
        match self.present(index)? {
            Data::Text(name) => Ok(base.member(&name)),
            Data::Number(at) => match &base {
                Data::Text(text) => {
                    let letter = text.chars().nth(at.max(0.0) as usize);
                    Ok(letter.map_or(Data::Missing, |letter| Data::text(letter.to_string())))
                }
                list if list.length().is_some() => Ok(if at >= 0.0 { list.item(at as usize) } else { Data::Missing }),
                _ => fail(index.at, format!("`{}` is {}, which has no items", of.describe(), base.kind())),
            },
            other => fail(index.at, format!("{} is no index", other.kind())),
        }
    }

    fn slice(&mut self, base: &Data<'d>, range: &'d Expr, of: &'d Expr) -> Outcome<'d, Data<'d>> {
        let ExprKind::Range(from, to, end) = &*range.kind else { return Ok(Data::Missing) };
        let from = self.number(from)?.max(0.0) as usize;
        let to = match to {
            Some(to) => Some(self.number(to)?.max(0.0) as usize),
            None => None,
        };
        let stop = |length: usize| match (to, end) {
            (None, _) => length,
            (Some(to), RangeEnd::Inclusive) => to.saturating_add(1).min(length),
            (Some(to), RangeEnd::Exclusive) => to.min(length),
            (Some(to), RangeEnd::Length) => from.saturating_add(to).min(length),
        };
        if let Data::Text(text) = base {
            let length = text.chars().count();
            let part: String = text.chars().take(stop(length)).skip(from).collect();
            return Ok(Data::text(part));
        }
        match base.length() {
            Some(length) => Ok(Data::List(Rc::new((from..stop(length)).map(|index| base.item(index)).collect()))),
            None => fail(range.at, format!("`{}` is {}, which has no parts", of.describe(), base.kind())),
        }
    }

    fn range(&mut self, from: &'d Expr, to: Option<&'d Expr>, end: RangeEnd) -> Outcome<'d, Data<'d>> {
        let at = from.at;
        let from = self.number(from)?;
        let Some(to) = to else { return fail(at, "a range without an end can only be an index") };
        let to = self.number(to)?;
        let (low, high, backwards) = match end {
            RangeEnd::Inclusive if to < from => (to, from + 1.0, true),
            RangeEnd::Inclusive => (from, to + 1.0, false),
            RangeEnd::Exclusive if to < from => (to + 1.0, from + 1.0, true),
            RangeEnd::Exclusive => (from, to, false),
            RangeEnd::Length => (from, from + to, false),
        };
        if (high - low).is_nan() || high - low > RANGE_MAX {
            return fail(at, format!("the range has more than {RANGE_MAX} items"));
        }
        let mut items: Vec<Data<'d>> = (low as i64..high as i64).map(|number| Data::Number(number as f64)).collect();
        if backwards {
            items.reverse();
        }
        Ok(Data::List(Rc::new(items)))
    }

    fn call(&mut self, of: &'d Expr, arguments: &'d [Expr], at: Place) -> Outcome<'d, Data<'d>> {
        let called = self.present(of)?;
        let mut given = Vec::with_capacity(arguments.len());
        for argument in arguments {
            given.push(self.evaluate(argument)?);
        }
        self.apply(&called, given, at)
    }

    /// Calls a function with values.
    pub(super) fn apply(&mut self, called: &Data<'d>, given: Vec<Data<'d>>, at: Place) -> Outcome<'d, Data<'d>> {
        self.count(at)?;
        match called {
            Data::Macro(MacroRef(own)) => {
                let written = std::mem::take(&mut self.out);
                let given = given.into_iter().map(|value| (None, value)).collect();
                let outcome = self.run_macro(own, given, at);
                self.out = written;
                match outcome {
                    Err(Stop::Return(value)) => Ok(value),
                    Ok(()) => Ok(Data::Missing),
                    Err(other) => Err(other),
                }
            }
            Data::Lambda(LambdaRef(name, body)) => {
                self.deeper(at)?;
                let scope = self.scopes.len();
                let item = given.into_iter().next().unwrap_or(Data::Missing);
                self.loops.push(Loop::of_one(name, item, scope));
                let outcome = self.evaluate(body);
                self.loops.pop();
                self.depth -= 1;
                outcome
            }
            other => fail(at, format!("{} cannot be called", other.kind())),
        }
    }

    pub(super) fn truth(&mut self, expr: &'d Expr) -> Outcome<'d, bool> {
        match self.present(expr)? {
            Data::Boolean(flag) => Ok(flag),
            other => fail(expr.at, format!("`{}` is {}, not true or false", expr.describe(), other.kind())),
        }
    }

    pub(super) fn number(&mut self, expr: &'d Expr) -> Outcome<'d, f64> {
        match self.present(expr)? {
            Data::Number(number) => Ok(number),
            other => fail(
                expr.at,
                format!("`{}` is {}, not a number; `?number` makes it one", expr.describe(), other.kind()),
            ),
        }
    }

    /// The value of an expression as text.
    pub(super) fn text_of(&mut self, expr: &'d Expr) -> Outcome<'d, Rc<str>> {
        let value = self.present(expr)?;
        self.output(&value, expr)
    }

    /// A value as it is written.
    pub(super) fn output(&self, value: &Data<'d>, expr: &Expr) -> Outcome<'d, Rc<str>> {
        Ok(match value {
            Data::Missing => return Err(Stop::Missing(missing(expr))),
            Data::Text(text) => text.clone(),
            Data::Number(number) => number::for_people(*number).into(),
            Data::Boolean(flag) => if *flag { "true" } else { "false" }.into(),
            Data::Nodes(document, nodes) if nodes.len() == 1 => document.string_value(nodes[0]).into(),
            Data::Now => (self.model.now)(None).into(),
            other => {
                let message = format!("`{}` is {}, which is not a text", expr.describe(), other.kind());
                return fail(expr.at, message);
            }
        })
    }
}
