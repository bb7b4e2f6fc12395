//! The value of a property or variable.

use std::borrow::Cow;
use std::sync::Arc;

use penstock_xml::{Document, NodeId};

/// A property's or variable's value, with the types the artifacts can name
/// (`STRING BOOLEAN INTEGER LONG SHORT FLOAT DOUBLE OM JSON XML`).
#[derive(Debug, Clone)]
pub enum Value {
    /// Text.
    String(Arc<str>),
    /// `BOOLEAN`.
    Boolean(bool),
    /// `INTEGER`, `LONG` and `SHORT`: range is checked where the type is declared.
    Integer(i64),
    /// `FLOAT` and `DOUBLE`.
    Double(f64),
    /// Nodes of one document, in document order (`OM`, `XML`).
    Xml(Arc<Document>, Vec<NodeId>),
    /// `JSON`.
    Json(Arc<serde_json::Value>),
}

impl Value {
    /// A string value.
    pub fn string(text: impl Into<Arc<str>>) -> Value {
        Value::String(text.into())
    }

    /// The value as text, the way it is put into headers, logs and string comparisons: XML is
    /// serialized, a JSON string loses its quotes, whole doubles keep one decimal as Java writes them.
    pub fn to_text(&self) -> Cow<'_, str> {
        match self {
            Value::String(text) => Cow::Borrowed(text),
            Value::Boolean(flag) => Cow::Borrowed(if *flag { "true" } else { "false" }),
            Value::Integer(number) => Cow::Owned(number.to_string()),
            Value::Double(number) => Cow::Owned(double_to_text(*number)),
            Value::Xml(document, nodes) => {
                let mut out = Vec::new();
                for node in nodes {
                    crate::write_fragment(&mut out, document, *node);
                }
                Cow::Owned(String::from_utf8_lossy(&out).into_owned())
            }
            Value::Json(json) => match &**json {
                serde_json::Value::String(text) => Cow::Borrowed(text),
                other => Cow::Owned(other.to_string()),
            },
        }
    }

    /// Whether the value means yes: `true` in any case as text, or the boolean.
    pub fn is_true(&self) -> bool {
        match self {
            Value::Boolean(flag) => *flag,
            other => other.to_text().trim().eq_ignore_ascii_case("true"),
        }
    }
}

/// A double as Java's `Double.toString` writes it: at least one decimal, and an exponent outside of
/// 0.001 to 10,000,000.
pub fn double_to_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    let size = number.abs();
    if number == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{number:?}");
    }
    let text = format!("{number:E}");
    match text.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_written_as_java_writes_them() {
        for (number, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (5.0, "5.0"),
            (0.001, "0.001"),
            (0.0001, "1.0E-4"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (-1.25e-9, "-1.25E-9"),
            (2e9, "2.0E9"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(double_to_text(number), expected);
        }
    }
}
