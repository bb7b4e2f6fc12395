//! The forms of expressions that streaming knows: constants, positions, name tests.

use super::compile::{Result, no, no_at};
use super::plan::{Test, Value};
use super::scalar::compare;
use crate::ast::{Axis, AxisStep, Comparison, Expr, ExprKind, KindTest, Name, NodeTest};
use crate::value::Atomic;

/// `[3]`, `[position() = 3]`, `[position() < 3]` and the like.
pub(super) fn position(expr: &Expr) -> Option<(Comparison, f64)> {
    if let Some(Value::Number(number)) = constant(expr) {
        return Some((Comparison::Equal, number));
    }
    let ExprKind::GeneralComparison(comparison, left, right) = &expr.kind else { return None };
    let is_position = |expr: &Expr| matches!(&expr.kind, ExprKind::Call(name, arguments) if &*name.local == "position" && arguments.is_empty());
    match (constant(left), constant(right)) {
        (None, Some(Value::Number(number))) if is_position(left) => Some((*comparison, number)),
        (Some(Value::Number(number)), None) if is_position(right) => Some((mirrored(*comparison), number)),
        _ => None,
    }
}

pub(super) fn mirrored(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        same => same,
    }
}

pub(super) fn selects_nodes(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Path(_) | ExprKind::Union(_) | ExprKind::Filter(..) | ExprKind::ContextItem)
}

pub(super) fn constant(expr: &Expr) -> Option<Value> {
    match &expr.kind {
        ExprKind::Literal(atomic) => literal(atomic, expr).ok(),
        ExprKind::Sign(negative, inner) => match constant(inner)? {
            Value::Number(number) => Some(Value::Number(if *negative { -number } else { number })),
            _ => None,
        },
        ExprKind::Call(name, arguments) if arguments.is_empty() => match &*name.local {
            "true" => Some(Value::Boolean(true)),
            "false" => Some(Value::Boolean(false)),
            _ => None,
        },
        ExprKind::GeneralComparison(comparison, left, right) => {
            Some(Value::Boolean(compare(*comparison, &constant(left)?, &constant(right)?)))
        }
        _ => None,
    }
}

pub(super) fn literal(atomic: &Atomic, expr: &Expr) -> Result<Value> {
    match atomic {
        Atomic::Boolean(value) => Ok(Value::Boolean(*value)),
        _ if atomic.is_numeric() => Ok(Value::Number(atomic.to_number(true))),
        _ => match atomic.as_text() {
            Some(text) => Ok(Value::Text(text.to_string())),
            None => no("this literal is neither a string nor a number", expr),
        },
    }
}

pub(super) fn name_test(step: &AxisStep) -> Result<Test> {
    let full = |name: &Name| Test::Name { local: name.local.clone(), namespace: name.namespace.clone() };
    let is_element = step.axis != Axis::Attribute;
    match &step.test {
        NodeTest::Name(name) => Ok(full(name)),
        NodeTest::AnyName => Ok(Test::Any),
        NodeTest::Namespace(name) => match &name.namespace {
            Some(namespace) => Ok(Test::Namespace(namespace.clone())),
            None => no_at("the prefix of this test is not declared", &step.span),
        },
        NodeTest::Local(local) => Ok(Test::Local(local.clone())),
        NodeTest::UndeclaredPrefix(name) => Ok(Test::Local(name.local.clone())),
        NodeTest::Kind(KindTest::Element(None)) if is_element => Ok(Test::Any),
        NodeTest::Kind(KindTest::Element(Some(name))) if is_element => Ok(full(name)),
        NodeTest::Kind(KindTest::Attribute(None)) if !is_element => Ok(Test::Any),
        NodeTest::Kind(KindTest::Attribute(Some(name))) if !is_element => Ok(full(name)),
        NodeTest::Kind(_) => no_at("only elements, attributes and `text()` are streamed", &step.span),
    }
}
