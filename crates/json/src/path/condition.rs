//! Filter conditions evaluated on one child.

use std::borrow::Cow;

use serde_json::Value;

use super::Dialect;
use super::ast::{Call, Condition, Operand, Operator, Query};
use super::compare::{self, equal, equal_or_alike, less};
use super::pattern::Pattern;
use super::select::{follow, select};

/// What a condition can see.
#[derive(Clone, Copy)]
pub(super) struct Scope<'d> {
    pub root: &'d Value,
    pub current: &'d Value,
    pub parameters: &'d [Value],
    pub dialect: Dialect,
}

impl<'d> Scope<'d> {
    pub fn at(&self, current: &'d Value) -> Scope<'d> {
        Scope { current, ..*self }
    }
}

impl Condition {
    pub fn holds(&self, scope: &Scope<'_>) -> bool {
        match self {
            Condition::Or(parts) => parts.iter().any(|part| part.holds(scope)),
            Condition::And(parts) => parts.iter().all(|part| part.holds(scope)),
            Condition::Not(inner) => !inner.holds(scope),
            Condition::Exists(query) => query.exists(scope),
            Condition::Truth(Operand::Call(call)) => call.holds(scope),
            Condition::Truth(operand) => operand.value(scope).is_some_and(|value| match &*value {
                Value::Bool(truth) => *truth,
                _ => true,
            }),
            Condition::Compare(left, operator, right) => compares(left, *operator, right, scope),
        }
    }
}

fn compares(left: &Operand, operator: Operator, right: &Operand, scope: &Scope<'_>) -> bool {
    let left_value = left.value(scope);
    if operator == Operator::Matches {
        return left_value.is_some_and(|text| matches(&text, right, scope));
    }
    let right_value = right.value(scope);
    let same: fn(&Value, &Value) -> bool = if scope.dialect == Dialect::Rfc9535 { equal } else { equal_or_alike };
    let same = || match (&left_value, &right_value) {
        (Some(left), Some(right)) => same(left, right),
        (None, None) => true,
        _ => false,
    };
    let less = |left: &Option<Cow<'_, Value>>, right: &Option<Cow<'_, Value>>| match (left, right) {
        (Some(left), Some(right)) => less(left, right),
        _ => false,
    };
    match operator {
        Operator::Equal => same(),
        Operator::NotEqual => !same(),
        Operator::Less => less(&left_value, &right_value),
        Operator::Greater => less(&right_value, &left_value),
        Operator::LessOrEqual => less(&left_value, &right_value) || same(),
        Operator::GreaterOrEqual => less(&right_value, &left_value) || same(),
        other => match (left_value, right_value) {
            (Some(left), Some(right)) => compare::of_lists(other, &left, &right),
            _ => false,
        },
    }
}

fn matches(text: &Value, pattern: &Operand, scope: &Scope<'_>) -> bool {
    let text = match text {
        Value::String(text) => Cow::Borrowed(text.as_str()),
        Value::Number(number) => Cow::Owned(number.to_string()),
        _ => return false,
    };
    match pattern {
        Operand::Pattern(pattern) => pattern.matches(&text),
        other => other
            .value(scope)
            .and_then(|source| Pattern::literal(source.as_str()?, "").ok())
            .is_some_and(|pattern| pattern.matches(&text)),
    }
}

impl Operand {
    /// The one value; `None` is the standard's Nothing.
    fn value<'d>(&'d self, scope: &Scope<'d>) -> Option<Cow<'d, Value>> {
        match self {
            Operand::Literal(value) => Some(Cow::Borrowed(value)),
            Operand::Parameter(index) => scope.parameters.get(*index).map(Cow::Borrowed),
            Operand::Query(query) => query.value(scope),
            Operand::Call(call) => call.value(scope),
            Operand::Pattern(_) => None,
        }
    }
}

impl Query {
    fn start<'d>(&self, scope: &Scope<'d>) -> &'d Value {
        if self.from_root { scope.root } else { scope.current }
    }

    fn exists(&self, scope: &Scope<'_>) -> bool {
        if self.singular {
            return follow(&self.segments, self.start(scope)).is_some();
        }
        !self.nodes(scope).is_empty()
    }

    fn nodes<'d>(&self, scope: &Scope<'d>) -> Vec<&'d Value> {
        select(&self.segments, (self.start(scope), ()), scope).into_iter().map(|(value, ())| value).collect()
    }

    fn value<'d>(&self, scope: &Scope<'d>) -> Option<Cow<'d, Value>> {
        let found = if self.singular {
            follow(&self.segments, self.start(scope)).map(Cow::Borrowed)
        } else {
            // The standard allows no such operand; in the artifacts' dialect it is the list of what it finds.
            Some(Cow::Owned(Value::Array(self.nodes(scope).into_iter().cloned().collect())))
        };
        match self.function {
            None => found,
            Some(function) => function.apply(&*found?).map(Cow::Owned),
        }
    }
}

impl Call {
    fn value<'d>(&'d self, scope: &Scope<'d>) -> Option<Cow<'d, Value>> {
        match self {
            Call::Length(operand) => {
                let length = match &*operand.value(scope)? {
                    Value::String(text) => text.chars().count(),
                    Value::Array(elements) => elements.len(),
                    Value::Object(members) => members.len(),
                    _ => return None,
                };
                Some(Cow::Owned(length.into()))
            }
            Call::Count(query) => Some(Cow::Owned(query.nodes(scope).len().into())),
            Call::Value(query) => match query.nodes(scope).as_slice() {
                [only] => Some(Cow::Borrowed(*only)),
                _ => None,
            },
            Call::Match(..) | Call::Search(..) => None,
        }
    }

    fn holds(&self, scope: &Scope<'_>) -> bool {
        let (Call::Match(text, pattern) | Call::Search(text, pattern)) = self else { return false };
        let Some(text) = text.value(scope) else { return false };
        let Some(text) = text.as_str() else { return false };
        match pattern {
            Operand::Pattern(pattern) => pattern.matches(text),
            other => other
                .value(scope)
                .and_then(|source| Pattern::interoperable(source.as_str()?, matches!(self, Call::Match(..))).ok())
                .is_some_and(|pattern| pattern.matches(text)),
        }
    }
}
