//! The values of an evaluation, with the types that Micro Integrator distinguishes.

use std::borrow::Cow;
use std::sync::Arc;

use penstock_json::path::Selector;
use penstock_message::{Value, double_to_text, write_fragment};
use penstock_xml::{Document, NodeId, NodeKind};
use serde_json::Value as Json;

#[derive(Debug, Clone)]
pub(super) enum Item {
    Null,
    Boolean(bool),
    Integer(i32),
    Long(i64),
    Double(f64),
    Text(Arc<str>),
    Json(Arc<Json>),
    Xml(Arc<Document>, Vec<NodeId>),
}

/// A number by kind, which decides what arithmetic does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Integer(i32),
    Long(i64),
    Double(f64),
}

impl Number {
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Integer(number) => f64::from(number),
            Number::Long(number) => number as f64,
            Number::Double(number) => number,
        }
    }

    /// The smallest kind that holds what the digits say.
    pub fn of_digits(digits: &str) -> Option<Number> {
        if let Ok(number) = digits.parse() {
            return Some(Number::Integer(number));
        }
        if let Ok(number) = digits.parse() {
            return Some(Number::Long(number));
        }
        digits.parse().ok().map(Number::Double)
    }
}

impl From<Number> for Item {
    fn from(number: Number) -> Item {
        match number {
            Number::Integer(number) => Item::Integer(number),
            Number::Long(number) => Item::Long(number),
            Number::Double(number) => Item::Double(number),
        }
    }
}

impl Item {
    pub fn text_of(text: impl Into<Arc<str>>) -> Item {
        Item::Text(text.into())
    }

    /// A literal; more digits than a long has make a double.
    pub fn of_digits(digits: &str) -> Item {
        Number::of_digits(digits).map_or_else(|| Item::text_of(digits), Item::from)
    }

    /// What a path found.
    pub fn of_json(value: Cow<'_, Json>) -> Item {
        match value.as_ref() {
            Json::Null => Item::Null,
            _ => Item::Json(Arc::new(value.into_owned())),
        }
    }

    pub fn of_value(value: Value) -> Item {
        match value {
            Value::String(text) => Item::Text(text),
            Value::Boolean(truth) => Item::Boolean(truth),
            Value::Integer(number) => i32::try_from(number).map_or(Item::Long(number), Item::Integer),
            Value::Double(number) => Item::Double(number),
            Value::Xml(document, nodes) => Item::Xml(document, nodes),
            Value::Json(value) if value.is_null() => Item::Null,
            Value::Json(value) => Item::Json(value),
        }
    }

    pub fn into_value(self) -> Option<Value> {
        Some(match self {
            Item::Null => return None,
            Item::Boolean(truth) => Value::Boolean(truth),
            Item::Integer(number) => Value::Integer(number.into()),
            Item::Long(number) => Value::Integer(number),
            Item::Double(number) => Value::Double(number),
            Item::Text(text) => Value::String(text),
            Item::Json(value) => match &*value {
                Json::String(text) => Value::string(text.as_str()),
                Json::Bool(truth) => Value::Boolean(*truth),
                _ => Value::Json(value),
            },
            Item::Xml(document, nodes) => Value::Xml(document, nodes),
        })
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Item::Null)
    }

    pub fn number(&self) -> Option<Number> {
        match self {
            Item::Integer(number) => Some(Number::Integer(*number)),
            Item::Long(number) => Some(Number::Long(*number)),
            Item::Double(number) => Some(Number::Double(*number)),
            Item::Json(value) => match &**value {
                Json::Number(number) => Number::of_digits(&number.to_string()),
                _ => None,
            },
            _ => None,
        }
    }

    pub fn is_number(&self) -> bool {
        self.number().is_some()
    }

    pub fn negated(&self) -> Item {
        match self.number() {
            Some(Number::Integer(number)) => number.checked_neg().map_or(Item::Long(-i64::from(number)), Item::Integer),
            Some(Number::Long(number)) => {
                // The digits of the smallest integer lack its sign, so they were read as a long.
                let negative = number.wrapping_neg();
                i32::try_from(negative).map_or(Item::Long(negative), Item::Integer)
            }
            Some(Number::Double(number)) => Item::Double(-number),
            None => Item::Null,
        }
    }

    pub fn boolean(&self) -> Option<bool> {
        match self {
            Item::Boolean(truth) => Some(*truth),
            Item::Json(value) => value.as_bool(),
            _ => None,
        }
    }

    /// The text of a string, which XPath results count as.
    pub fn string(&self) -> Option<Cow<'_, str>> {
        match self {
            Item::Text(text) => Some(Cow::Borrowed(text)),
            Item::Json(value) => value.as_str().map(Cow::Borrowed),
            Item::Xml(..) => Some(self.text()),
            _ => None,
        }
    }

    pub fn json(&self) -> Option<&Arc<Json>> {
        match self {
            Item::Json(value) => Some(value),
            _ => None,
        }
    }

    /// The value as text; numbers of a message with the digits they were written with.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Item::Null => Cow::Borrowed(""),
            Item::Boolean(truth) => Cow::Borrowed(if *truth { "true" } else { "false" }),
            Item::Integer(number) => Cow::Owned(number.to_string()),
            Item::Long(number) => Cow::Owned(number.to_string()),
            Item::Double(number) => Cow::Owned(double_to_text(*number)),
            Item::Text(text) => Cow::Borrowed(text),
            Item::Json(value) => match &**value {
                Json::String(text) => Cow::Borrowed(text),
                other => Cow::Owned(other.to_string()),
            },
            Item::Xml(document, nodes) => nodes.iter().map(|node| node_text(document, *node)).collect(),
        }
    }

    /// As JSON, to be put into a list.
    pub fn to_json(&self) -> Json {
        match self {
            Item::Null => Json::Null,
            Item::Boolean(truth) => Json::Bool(*truth),
            Item::Integer(number) => Json::from(*number),
            Item::Long(number) => Json::from(*number),
            Item::Double(number) => {
                // Java's digits, because the list may end as text.
                let digits = double_to_text(*number);
                serde_json::from_str(&digits).unwrap_or(Json::String(digits))
            }
            Item::Json(value) => (**value).clone(),
            other => Json::String(other.text().into_owned()),
        }
    }

    /// What it selects inside brackets.
    pub fn selector(&self) -> Option<Selector> {
        match self.number() {
            Some(Number::Integer(index)) => Some(Selector::Index(index.into())),
            Some(Number::Long(index)) => Some(Selector::Index(index)),
            Some(Number::Double(_)) => None,
            None => self.string().map(|name| Selector::Name(name.as_ref().into())),
        }
    }
}

/// Text of a node as Micro Integrator's XPath gives it: an element with no text of its own is written out.
fn node_text(document: &Document, node: NodeId) -> String {
    // A whole document stands for its outermost element.
    let node = if node == Document::ROOT { document.root_element().unwrap_or(node) } else { node };
    if !document.is_element(node) {
        return document.string_value(node).into_owned();
    }
    let own: String = document
        .children(node)
        .filter(|child| document.kind(*child) == NodeKind::Text)
        .map(|child| document.text(child))
        .collect();
    if !own.trim().is_empty() {
        return own;
    }
    let mut out = Vec::new();
    write_fragment(&mut out, document, node);
    String::from_utf8_lossy(&out).into_owned()
}
