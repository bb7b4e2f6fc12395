//! Values by the rules of XPath 1.0, and the scalar expression around the answers.

use std::borrow::Cow;

use super::plan::{Scalar, Test, Value};
use crate::ast::Comparison;
use crate::value::number;

impl Value {
    pub(super) fn text(&self) -> Cow<'_, str> {
        match self {
            Value::Text(text) => Cow::Borrowed(text),
            Value::Number(value) => number::format_double(*value, true),
            Value::Boolean(true) => Cow::Borrowed("true"),
            Value::Boolean(false) => Cow::Borrowed("false"),
        }
    }

    pub(super) fn number(&self) -> f64 {
        match self {
            Value::Text(text) => number::parse(text, true),
            Value::Number(value) => *value,
            Value::Boolean(value) => f64::from(u8::from(*value)),
        }
    }

    pub(super) fn boolean(&self) -> bool {
        match self {
            Value::Text(text) => !text.is_empty(),
            Value::Number(value) => *value != 0.0 && !value.is_nan(),
            Value::Boolean(value) => *value,
        }
    }
}

/// Compares a node's string value with a literal, or two scalars (XPath 1.0 §3.4).
pub(super) fn compare(comparison: Comparison, left: &Value, right: &Value) -> bool {
    let equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
    if equality {
        let equal = match (left, right) {
            (Value::Boolean(_), _) | (_, Value::Boolean(_)) => left.boolean() == right.boolean(),
            (Value::Number(_), _) | (_, Value::Number(_)) => left.number() == right.number(),
            _ => left.text() == right.text(),
        };
        return equal == (comparison == Comparison::Equal);
    }
    holds(comparison, left.number(), right.number())
}

pub(super) fn holds(comparison: Comparison, left: f64, right: f64) -> bool {
    match comparison {
        Comparison::Equal => left == right,
        Comparison::NotEqual => left != right,
        Comparison::Less => left < right,
        Comparison::LessOrEqual => left <= right,
        Comparison::Greater => left > right,
        Comparison::GreaterOrEqual => left >= right,
    }
}

/// What a scalar expression may ask about.
pub(super) trait Facts {
    /// The answer to a question of the plan.
    fn answer(&self, question: usize) -> Value;
    /// The value of an attribute of the element.
    fn attribute(&self, test: &Test) -> Option<String>;
    /// The element's local name, namespace and name as written.
    fn name(&self) -> (Cow<'_, str>, Cow<'_, str>, Cow<'_, str>);
}

impl Scalar {
    pub(super) fn value(&self, facts: &dyn Facts) -> Value {
        match self {
            Scalar::Constant(value) => value.clone(),
            Scalar::Answer(question) => facts.answer(*question),
            Scalar::Attribute(test) => Value::Text(facts.attribute(test).unwrap_or_default()),
            Scalar::HasAttribute(test) => Value::Boolean(facts.attribute(test).is_some()),
            Scalar::AnyAttribute(test, comparison, right) => {
                let left = facts.attribute(test).map(Value::Text);
                Value::Boolean(left.is_some_and(|left| compare(*comparison, &left, right)))
            }
            Scalar::LocalName => Value::Text(facts.name().0.into_owned()),
            Scalar::NamespaceUri => Value::Text(facts.name().1.into_owned()),
            Scalar::QualifiedName => Value::Text(facts.name().2.into_owned()),
            Scalar::Concat(parts) => {
                Value::Text(parts.iter().map(|part| part.value(facts).text().into_owned()).collect())
            }
            Scalar::Contains(text, part) => {
                Value::Boolean(text.value(facts).text().contains(&*part.value(facts).text()))
            }
            Scalar::StartsWith(text, part) => {
                Value::Boolean(text.value(facts).text().starts_with(&*part.value(facts).text()))
            }
            Scalar::NormalizeSpace(inner) => {
                let value = inner.value(facts);
                let text = value.text();
                let words: Vec<&str> = text.split([' ', '\t', '\r', '\n']).filter(|word| !word.is_empty()).collect();
                Value::Text(words.join(" "))
            }
            Scalar::StringLength(inner) => Value::Number(inner.value(facts).text().chars().count() as f64),
            Scalar::Not(inner) => Value::Boolean(!inner.value(facts).boolean()),
            Scalar::And(parts) => Value::Boolean(parts.iter().all(|part| part.value(facts).boolean())),
            Scalar::Or(parts) => Value::Boolean(parts.iter().any(|part| part.value(facts).boolean())),
            Scalar::Compare(comparison, left, right) => {
                Value::Boolean(compare(*comparison, &left.value(facts), &right.value(facts)))
            }
            Scalar::ToText(inner) => Value::Text(inner.value(facts).text().into_owned()),
            Scalar::ToNumber(inner) => Value::Number(inner.value(facts).number()),
            Scalar::ToBoolean(inner) => Value::Boolean(inner.value(facts).boolean()),
        }
    }
}
