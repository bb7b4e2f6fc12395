//! The commonest expressions of all: one property, as `$trp:name` or `get-property('scope', 'name')`.
//! They are read directly, without the machinery of XPath.

use std::sync::Arc;

use penstock_engine::Exchange;
use penstock_message::{Scope, Value};

use super::xpath::{FROM_PAYLOAD, nodes_text};

/// A property by scope and name.
pub(super) struct PropertyExpression {
    scope: Scope,
    name: Arc<str>,
}

impl PropertyExpression {
    /// The property an expression names, when it is nothing else.
    pub(super) fn parse(text: &str) -> Option<PropertyExpression> {
        let (scope, name) = variable(text.trim()).or_else(|| call(text.trim()))?;
        // These are computed from the payload, which has to be there first.
        let computed = FROM_PAYLOAD.iter().any(|special| special.trim_matches('\'') == name);
        (!computed).then(|| PropertyExpression { scope, name: name.into() })
    }

    /// The header field, when it is one.
    pub(super) fn header(&self) -> Option<&str> {
        (self.scope == Scope::Transport).then_some(&*self.name)
    }

    pub(super) fn value(&self, exchange: &mut Exchange) -> Option<Value> {
        exchange.property(self.scope, &self.name)
    }

    pub(super) fn text(&self, exchange: &mut Exchange) -> Option<String> {
        Some(match self.value(exchange) {
            Some(Value::Xml(document, nodes)) => nodes_text(&document, &nodes),
            Some(other) => other.to_text().into_owned(),
            None if self.never_absent() => String::new(),
            None => return None,
        })
    }

    /// Whether it is not there.
    pub(super) fn is_absent(&self, exchange: &mut Exchange) -> bool {
        !self.never_absent() && self.value(exchange).is_none()
    }

    /// What Micro Integrator answers with empty text when there is none.
    fn never_absent(&self) -> bool {
        match self.scope {
            Scope::Default => {
                matches!(&*self.name, "To" | "From" | "Action" | "FaultTo" | "ReplyTo" | "RelatesTo" | "MessageID")
            }
            Scope::System | Scope::Environment | Scope::Registry => true,
            _ => false,
        }
    }

    /// XPath's effective boolean value of a property.
    pub(super) fn truth(&self, exchange: &mut Exchange) -> bool {
        match self.value(exchange) {
            None => false,
            Some(Value::Boolean(flag)) => flag,
            Some(Value::Integer(number)) => number != 0,
            Some(Value::Double(number)) => number != 0.0 && !number.is_nan(),
            Some(Value::Xml(_, nodes)) => !nodes.is_empty(),
            Some(other) => !other.to_text().is_empty(),
        }
    }
}

/// `$ctx:name` and its kin.
fn variable(text: &str) -> Option<(Scope, &str)> {
    let (prefix, name) = text.strip_prefix('$')?.split_once(':')?;
    let scope = super::scope_of(prefix)?;
    let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
    let starts = name.starts_with(|first: char| first.is_alphabetic() || first == '_');
    (starts && name.chars().all(is_name)).then_some((scope, name))
}

/// `get-property('name')` and `get-property('scope', 'name')` with literals.
fn call(text: &str) -> Option<(Scope, &str)> {
    let arguments = text.strip_prefix("get-property(")?.strip_suffix(')')?.trim();
    let (first, rest) = literal(arguments)?;
    match rest.strip_prefix(',') {
        None if rest.is_empty() => Some((Scope::Default, first)),
        None => None,
        Some(second) => {
            let (name, rest) = literal(second.trim())?;
            // A first argument that is no scope is the name of a date and the second its format.
            rest.is_empty().then(|| Scope::parse(first))?.map(|scope| (scope, name))
        }
    }
}

/// The string literal a text begins with, and what follows it.
fn literal(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"'))?;
    let (inner, rest) = text[1..].split_once(quote)?;
    Some((inner, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_single_property_is_one() {
        for (text, expected) in [
            ("$trp:Content-Type", Some((Scope::Transport, "Content-Type"))),
            (" get-property('ERROR_CODE') ", Some((Scope::Default, "ERROR_CODE"))),
            ("get-property( \"axis2\" , 'HTTP_METHOD')", Some((Scope::Axis2, "HTTP_METHOD"))),
            ("get-property('SYSTEM_DATE', 'yyyy')", None),
            ("get-property('a') = 'b'", None),
            ("$ctx:a/b", None),
            ("$body", None),
            ("get-property('OperationName')", None),
        ] {
            let found = PropertyExpression::parse(text);
            let found = found.as_ref().map(|property| (property.scope, &*property.name));
            assert_eq!(found, expected, "{text}");
        }
    }
}
