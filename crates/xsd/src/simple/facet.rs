//! Facets, and the check of a text against a simple type.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use penstock_xpath::regex::Regex;

use super::{Builtin, Context, Value, WhiteSpace};
use crate::model::{SimpleType, Type, TypeId, Types, Variety};

/// A constraining facet. Values keep the text they were written as, for messages.
#[derive(Clone)]
pub(crate) enum Facet {
    Length(usize),
    MinLength(usize),
    MaxLength(usize),
    /// Patterns of one derivation: one of them must match. Compiled and as written.
    Pattern(Arc<[(Regex, String)]>),
    Enumeration(Arc<[(Value<'static>, String)]>),
    Bound(Ordered, Value<'static>, String),
    TotalDigits(usize),
    FractionDigits(usize),
}

/// The facets that compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ordered {
    MinInclusive,
    MinExclusive,
    MaxInclusive,
    MaxExclusive,
}

impl Ordered {
    fn name(self) -> &'static str {
        match self {
            Ordered::MinInclusive => "minInclusive",
            Ordered::MinExclusive => "minExclusive",
            Ordered::MaxInclusive => "maxInclusive",
            Ordered::MaxExclusive => "maxExclusive",
        }
    }

    fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Ordered::MinInclusive => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            Ordered::MinExclusive => order == Some(Ordering::Greater),
            Ordered::MaxInclusive => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Ordered::MaxExclusive => order == Some(Ordering::Less),
        }
    }
}

/// A text as a type sees it.
pub(crate) fn white_spaced(text: &str, white_space: WhiteSpace) -> Cow<'_, str> {
    let is_space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r');
    match white_space {
        WhiteSpace::Preserve => Cow::Borrowed(text),
        WhiteSpace::Replace if !text.contains(['\t', '\n', '\r']) => Cow::Borrowed(text),
        WhiteSpace::Replace => Cow::Owned(text.replace(['\t', '\n', '\r'], " ")),
        WhiteSpace::Collapse if is_collapsed(text) => Cow::Borrowed(text),
        WhiteSpace::Collapse => {
            let trimmed = text.trim_matches(is_space);
            if !trimmed.contains(['\t', '\n', '\r']) && !trimmed.contains("  ") {
                return Cow::Borrowed(trimmed);
            }
            Cow::Owned(trimmed.split(is_space).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "))
        }
    }
}

/// Whether there is nothing to collapse, which is so for most values: no white space but single blanks inside.
fn is_collapsed(text: &str) -> bool {
    let mut before = b' ';
    for byte in text.bytes() {
        if matches!(byte, b'\t' | b'\n' | b'\r') || (byte == b' ' && before == b' ') {
            return false;
        }
        before = byte;
    }
    before != b' ' || text.is_empty()
}

/// The value a text has in a simple type; the message of what is wrong when it has none.
pub(crate) fn check<'t>(
    types: &dyn Types,
    id: TypeId,
    text: &'t str,
    context: Context<'_>,
) -> Result<Value<'t>, String> {
    match types.get(id) {
        Type::Simple(simple) => match white_spaced(text, simple.white_space) {
            Cow::Borrowed(text) => check_simple(types, simple, text, context),
            Cow::Owned(text) => Ok(check_simple(types, simple, &text, context)?.into_owned()),
        },
        Type::Complex(_) => Ok(Value::Text(text.into())),
    }
}

fn check_simple<'t>(
    types: &dyn Types,
    simple: &SimpleType,
    text: &'t str,
    context: Context<'_>,
) -> Result<Value<'t>, String> {
    let value = match &simple.variety {
        Variety::Atomic(builtin) => match builtin.parse(text, context) {
            Some(value) => value,
            None => {
                let name = if simple.facets.is_empty() { &*simple.label } else { builtin.name() };
                return Err(format!("cvc-datatype-valid.1.2.1: '{text}' is not a valid value for '{name}'."));
            }
        },
        Variety::List(item) => {
            let items = text.split(' ').filter(|part| !part.is_empty());
            Value::List(items.map(|part| check(types, *item, part, context)).collect::<Result<_, _>>()?)
        }
        Variety::Union(members) => {
            let found = members.iter().find_map(|member| check(types, *member, text, context).ok());
            found.ok_or_else(|| {
                format!("cvc-datatype-valid.1.2.3: '{text}' is not a valid value of union type '{}'.", simple.label)
            })?
        }
    };
    simple.facets.iter().try_for_each(|facet| facet.check(simple, text, &value))?;
    Ok(value)
}

impl Facet {
    /// The element it is written as.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Facet::Length(_) => "length",
            Facet::MinLength(_) => "minLength",
            Facet::MaxLength(_) => "maxLength",
            Facet::Pattern(_) => "pattern",
            Facet::Enumeration(_) => "enumeration",
            Facet::Bound(ordered, ..) => ordered.name(),
            Facet::TotalDigits(_) => "totalDigits",
            Facet::FractionDigits(_) => "fractionDigits",
        }
    }

    fn check(&self, simple: &SimpleType, text: &str, value: &Value<'_>) -> Result<(), String> {
        let label = &simple.label;
        let lengths = |name: &str, wanted: usize, holds: fn(&usize, &usize) -> bool| {
            let Some(length) = length_of(simple, text, value) else { return Ok(()) };
            if holds(&length, &wanted) {
                return Ok(());
            }
            Err(format!(
                "cvc-{name}-valid: Value '{text}' with length = '{length}' is not facet-valid with respect to {name} '{wanted}' for type '{label}'."
            ))
        };
        match self {
            Facet::Length(wanted) => lengths("length", *wanted, usize::eq),
            Facet::MinLength(wanted) => lengths("minLength", *wanted, usize::ge),
            Facet::MaxLength(wanted) => lengths("maxLength", *wanted, usize::le),
            Facet::Pattern(patterns) => {
                // Patterns of schemas have no back-references, so matching cannot fail.
                if patterns.iter().any(|(regex, _)| regex.is_match(text).unwrap_or(false)) {
                    return Ok(());
                }
                let all: Vec<&str> = patterns.iter().map(|(_, written)| &**written).collect();
                Err(format!(
                    "cvc-pattern-valid: Value '{text}' is not facet-valid with respect to pattern '{}' for type '{label}'.",
                    all.join("|")
                ))
            }
            Facet::Enumeration(values) => {
                if values.iter().any(|(allowed, _)| allowed.equals(value)) {
                    return Ok(());
                }
                let all: Vec<&str> = values.iter().map(|(_, written)| &**written).collect();
                Err(format!(
                    "cvc-enumeration-valid: Value '{text}' is not facet-valid with respect to enumeration '[{}]'. It must be a value from the enumeration.",
                    all.join(", ")
                ))
            }
            Facet::Bound(ordered, bound, written) => {
                if ordered.holds(value.compare(bound)) {
                    return Ok(());
                }
                let name = ordered.name();
                Err(format!(
                    "cvc-{name}-valid: Value '{text}' is not facet-valid with respect to {name} '{written}' for type '{label}'."
                ))
            }
            Facet::TotalDigits(allowed) => digits("total", "totalDigits", text, value, *allowed),
            Facet::FractionDigits(allowed) => digits("fraction", "fractionDigits", text, value, *allowed),
        }
    }
}

fn digits(kind: &str, name: &str, text: &str, value: &Value<'_>, allowed: usize) -> Result<(), String> {
    let Value::Decimal(decimal) = value else { return Ok(()) };
    let count = if kind == "total" { decimal.total_digits() } else { decimal.fraction_digits() };
    if count <= allowed {
        return Ok(());
    }
    Err(format!(
        "cvc-{name}-valid: Value '{text}' has {count} {kind} digits, but the number of {kind} digits has been limited to {allowed}."
    ))
}

/// What length facets count; `None` where they mean nothing.
fn length_of(simple: &SimpleType, text: &str, value: &Value<'_>) -> Option<usize> {
    match (&simple.variety, value) {
        (_, Value::List(items)) => Some(items.len()),
        (_, Value::Binary(bytes)) => Some(bytes.len()),
        (Variety::Atomic(Builtin::QName | Builtin::Notation), _) => None,
        _ => Some(text.chars().count()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_collapsed() {
        for (text, expected) in [
            ("", ""),
            (" ", ""),
            ("a", "a"),
            ("a b", "a b"),
            (" a", "a"),
            ("a ", "a"),
            ("a  b", "a b"),
            ("a\tb", "a b"),
            ("\r\na \n b\t", "a b"),
            ("\u{a0}\u{e4} ", "\u{a0}\u{e4}"),
        ] {
            assert_eq!(white_spaced(text, WhiteSpace::Collapse), expected, "{text:?}");
            assert_eq!(white_spaced(text, WhiteSpace::Preserve), text);
        }
        assert_eq!(white_spaced("a\t b\r\n", WhiteSpace::Replace), "a  b  ");
    }
}
