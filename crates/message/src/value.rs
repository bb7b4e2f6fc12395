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
            Value::Double(number) => Cow::Owned(format_double(*number)),
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

/// A double as Java's `Double.toString` writes it in the range people use: at least one decimal.
fn format_double(number: f64) -> String {
    if number.is_nan() {
        "NaN".into()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity".into() } else { "-Infinity".into() }
    } else {
        format!("{number:?}")
    }
}
