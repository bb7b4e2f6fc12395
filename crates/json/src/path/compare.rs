//! Values compared.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::ast::Operator;
use crate::equality::equal_by;

/// Equality of JSON values: numbers by value, not by the digits they were written with.
pub(super) fn equal(left: &Value, right: &Value) -> bool {
    equal_by(left, right, &|left, right| compare_numbers(left, right) == Some(Ordering::Equal))
}

/// As [`equal`], and a string equals the number it spells: what the artifacts were written against.
pub(super) fn equal_or_alike(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(number), Value::String(text)) | (Value::String(text), Value::Number(number)) => {
            text.parse::<Number>().is_ok_and(|other| compare_numbers(number, &other) == Some(Ordering::Equal))
        }
        _ => equal(left, right),
    }
}

/// Order of numbers and of strings; other values have none.
pub(super) fn less(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right) == Some(Ordering::Less),
        // Code points order as UTF-8 bytes do (RFC 9535 §2.3.5.2.2).
        (Value::String(left), Value::String(right)) => left < right,
        _ => false,
    }
}

fn compare_numbers(left: &Number, right: &Number) -> Option<Ordering> {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

/// The operators on lists, sizes and types of the artifacts' dialect.
pub(super) fn of_lists(operator: Operator, left: &Value, right: &Value) -> bool {
    let contains = |list: &[Value], wanted: &Value| list.iter().any(|value| equal_or_alike(value, wanted));
    match (operator, left, right) {
        (Operator::In, wanted, Value::Array(list)) => contains(list, wanted),
        (Operator::NotIn, wanted, Value::Array(list)) => !contains(list, wanted),
        (Operator::SubsetOf, Value::Array(part), Value::Array(list)) => part.iter().all(|value| contains(list, value)),
        (Operator::AnyOf, Value::Array(part), Value::Array(list)) => part.iter().any(|value| contains(list, value)),
        (Operator::NoneOf, Value::Array(part), Value::Array(list)) => !part.iter().any(|value| contains(list, value)),
        (Operator::AllOf, Value::Array(list), Value::Array(part)) => part.iter().all(|value| contains(list, value)),
        (Operator::Contains, Value::Array(list), wanted) => contains(list, wanted),
        (Operator::Contains, Value::String(text), Value::String(part)) => text.contains(part.as_str()),
        (Operator::Size, value, size) => {
            let (Some(actual), Some(wanted)) = (size_of(value), size_of_operand(size)) else { return false };
            actual as u64 == wanted
        }
        (Operator::Empty, value, Value::Bool(wanted)) => size_of(value).is_some_and(|size| (size == 0) == *wanted),
        (Operator::Type, value, Value::String(wanted)) => wanted.eq_ignore_ascii_case(type_name(value)),
        _ => false,
    }
}

fn size_of(value: &Value) -> Option<usize> {
    match value {
        Value::Array(elements) => Some(elements.len()),
        Value::Object(members) => Some(members.len()),
        Value::String(text) => Some(text.chars().count()),
        _ => None,
    }
}

/// A size is a number, or a list of that size.
fn size_of_operand(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_array().map(|elements| elements.len() as u64))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
