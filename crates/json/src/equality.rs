//! Equality of JSON values, whatever two numbers have to share.

use serde_json::{Number, Value};

/// Whether two values are the same: numbers as the caller compares them, members in any order.
pub(crate) fn equal_by(left: &Value, right: &Value, same: &impl Fn(&Number, &Number) -> bool) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => same(left, right),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal_by(left, right, same))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, value)| right.get(name).is_some_and(|other| equal_by(value, other, same)))
        }
        _ => left == right,
    }
}
