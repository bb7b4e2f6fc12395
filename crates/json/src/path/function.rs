//! The functions at the end of a path.

use serde_json::{Number, Value};

use super::ast::TailFunction;

impl TailFunction {
    /// The result; `None` for a type of value that the function does not accept.
    pub(super) fn apply(self, value: &Value) -> Option<Value> {
        match self {
            TailFunction::Length => match value {
                Value::Array(elements) => Some(elements.len().into()),
                Value::Object(members) => Some(members.len().into()),
                Value::String(text) => Some(text.chars().count().into()),
                _ => None,
            },
            TailFunction::Keys => {
                Some(Value::Array(value.as_object()?.keys().map(|name| Value::String(name.clone())).collect()))
            }
            TailFunction::First => value.as_array()?.first().cloned(),
            TailFunction::Last => value.as_array()?.last().cloned(),
            TailFunction::Index(index) => {
                let elements = value.as_array()?;
                let index = if index < 0 { index.checked_add_unsigned(elements.len() as u64)? } else { index };
                elements.get(usize::try_from(index).ok()?).cloned()
            }
            TailFunction::Min => fold(value, f64::min),
            TailFunction::Max => fold(value, f64::max),
            TailFunction::Sum => number(numbers(value)?.iter().sum()),
            TailFunction::Average => {
                let numbers = numbers(value)?;
                number(numbers.iter().sum::<f64>() / numbers.len() as f64)
            }
            TailFunction::StandardDeviation => {
                let numbers = numbers(value)?;
                let count = numbers.len() as f64;
                let mean = numbers.iter().sum::<f64>() / count;
                let squares = numbers.iter().map(|value| value * value).sum::<f64>();
                number((squares / count - mean * mean).max(0.0).sqrt())
            }
        }
    }
}

fn fold(value: &Value, combine: fn(f64, f64) -> f64) -> Option<Value> {
    numbers(value)?.into_iter().reduce(combine).and_then(number)
}

/// The numbers of a list; `None` when there are none.
fn numbers(value: &Value) -> Option<Vec<f64>> {
    let numbers: Vec<f64> = value.as_array()?.iter().filter_map(Value::as_f64).collect();
    (!numbers.is_empty()).then_some(numbers)
}

fn number(value: f64) -> Option<Value> {
    Number::from_f64(value).map(Value::Number)
}
