//! Equality of JSON values; numbers are equal by value.

use std::collections::HashSet;

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

/// Whether a value stands in a list twice: numbers by value, exactly, members in any order. The list may be a client's and
/// long, so that each value is not compared with all others.
pub fn has_duplicates(items: &[Value]) -> bool {
    let mut seen = HashSet::with_capacity(items.len());
    !items.iter().all(|item| {
        let mut text = String::new();
        push_canonical(&mut text, item);
        seen.insert(text)
    })
}

/// Writes a value so that equal ones are the same text, and others are not.
fn push_canonical(out: &mut String, value: &Value) {
    match value {
        Value::Number(number) => push_number(out, &number.to_string()),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                push_canonical(out, item);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (name, value) in members {
                // In quotes and escaped, as only JSON text is.
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                push_canonical(out, value);
                out.push(',');
            }
            out.push('}');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

/// A number as its digits without zeros around them, and the exponent of ten that belongs to them.
fn push_number(out: &mut String, text: &str) {
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = [whole, fraction].concat();
    let digits = digits.trim_start_matches('0');
    let significant = digits.trim_end_matches('0');
    // An exponent that no number reaches says nothing that its text does not.
    let Ok(exponent) = exponent.parse::<i64>() else { return out.push_str(text) };
    if significant.is_empty() {
        return out.push('0');
    }
    let exponent = i128::from(exponent) + (digits.len() - significant.len()) as i128 - fraction.len() as i128;
    out.push_str(&format!("{sign}{significant}e{exponent}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<Value> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn values_that_stand_twice_are_found() {
        for (text, expected) in [
            ("[]", false),
            ("[1, 1.0]", true),
            ("[-0, 0.00]", true),
            ("[1200, 1.2e3]", true),
            ("[0.0012, 12e-4]", true),
            ("[1, -1, 10, 0.1, true, \"1\", null, \"null\"]", false),
            ("[9007199254740993, 9007199254740992]", false),
            (r#"[{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}]"#, true),
            (r#"[{"a": "1,\"b\":2"}, {"a": "1", "b": 2}]"#, false),
            (r#"[["a", "b"], ["a,b"], [["a"], "b"]]"#, false),
            (r#"["ä", "\u00e4"]"#, true),
        ] {
            assert_eq!(has_duplicates(&list(text)), expected, "{text}");
        }
    }

    #[test]
    fn a_long_list_takes_no_longer_than_its_length() {
        let items: Vec<Value> = (0..200_000).map(Value::from).collect();
        let began = std::time::Instant::now();
        assert!(!has_duplicates(&items));
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    }
}
