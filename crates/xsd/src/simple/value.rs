//! Values, for facets that compare and for keys.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::time::{Duration, Instant};

/// A value of a simple type, over the text it was read from: most are looked at once.
#[derive(Debug, Clone)]
pub(crate) enum Value<'t> {
    Text(Cow<'t, str>),
    Boolean(bool),
    Decimal(Decimal<'t>),
    Double(f64),
    Duration(Duration),
    Instant(Instant),
    Binary(Vec<u8>),
    Name(String, String),
    List(Vec<Value<'t>>),
}

impl Value<'_> {
    /// The value on its own.
    pub(crate) fn into_owned(self) -> Value<'static> {
        match self {
            Value::Text(text) => Value::Text(text.into_owned().into()),
            Value::Boolean(flag) => Value::Boolean(flag),
            Value::Decimal(decimal) => Value::Decimal(decimal.into_owned()),
            Value::Double(number) => Value::Double(number),
            Value::Duration(duration) => Value::Duration(duration),
            Value::Instant(instant) => Value::Instant(instant),
            Value::Binary(bytes) => Value::Binary(bytes),
            Value::Name(namespace, local) => Value::Name(namespace, local),
            Value::List(items) => Value::List(items.into_iter().map(Value::into_owned).collect()),
        }
    }

    /// How two values of one type compare; `None` when they do not.
    pub(crate) fn compare(&self, other: &Value<'_>) -> Option<Ordering> {
        match (self, other) {
            (Value::Decimal(left), Value::Decimal(right)) => Some(left.cmp(right)),
            // Not a number equals itself and compares with nothing else (XML Schema part 2 §3.2.5).
            (Value::Double(left), Value::Double(right)) if left.is_nan() && right.is_nan() => Some(Ordering::Equal),
            (Value::Double(left), Value::Double(right)) => left.partial_cmp(right),
            (Value::Duration(left), Value::Duration(right)) => left.compare(right),
            (Value::Instant(left), Value::Instant(right)) => left.compare(right),
            _ => None,
        }
    }

    pub(crate) fn equals(&self, other: &Value<'_>) -> bool {
        match (self, other) {
            (Value::Text(left), Value::Text(right)) => left == right,
            (Value::Boolean(left), Value::Boolean(right)) => left == right,
            (Value::Binary(left), Value::Binary(right)) => left == right,
            (Value::Name(space, local), Value::Name(other_space, other_local)) => {
                space == other_space && local == other_local
            }
            (Value::List(left), Value::List(right)) => {
                left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.equals(right))
            }
            _ => self.compare(other) == Some(Ordering::Equal),
        }
    }

    /// A text that two values share exactly when they are equal, for tables of keys.
    pub(crate) fn key(&self) -> String {
        match self {
            Value::Text(text) => format!("t{text}"),
            Value::Boolean(flag) => format!("b{flag}"),
            Value::Decimal(decimal) => format!("d{}", decimal.canonical()),
            Value::Double(number) => format!("f{}", if *number == 0.0 { 0.0 } else { *number }),
            Value::Duration(duration) => format!("p{duration:?}"),
            // Moments with and without a time zone are never equal (XML Schema part 2 §3.2.7.4).
            Value::Instant(instant) => format!("i{}{}", instant.utc_nanos(), if instant.has_zone() { "z" } else { "" }),
            Value::Binary(bytes) => format!("x{bytes:?}"),
            Value::Name(namespace, local) => format!("n{{{namespace}}}{local}"),
            Value::List(items) => items.iter().map(|item| format!("{}\u{1}", item.key())).collect(),
        }
    }
}

/// A decimal of any length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decimal<'t> {
    negative: bool,
    /// Digits before the point, without leading zeros.
    whole: Cow<'t, str>,
    /// Digits after it, without trailing zeros.
    fraction: Cow<'t, str>,
}

impl<'t> Decimal<'t> {
    pub(crate) fn parse(text: &'t str) -> Option<Decimal<'t>> {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        let whole = whole.trim_start_matches('0');
        let fraction = fraction.trim_end_matches('0');
        let negative = text.starts_with('-') && !(whole.is_empty() && fraction.is_empty());
        Some(Decimal { negative, whole: whole.into(), fraction: fraction.into() })
    }

    fn into_owned(self) -> Decimal<'static> {
        let owned = |digits: Cow<'_, str>| Cow::Owned(digits.into_owned());
        Decimal { negative: self.negative, whole: owned(self.whole), fraction: owned(self.fraction) }
    }

    pub(crate) fn total_digits(&self) -> usize {
        // Zeros between the point and the first digit do not count, zero itself has one digit.
        let fraction = if self.whole.is_empty() { self.fraction.trim_start_matches('0') } else { &*self.fraction };
        (self.whole.len() + fraction.len()).max(1)
    }

    pub(crate) fn fraction_digits(&self) -> usize {
        self.fraction.len()
    }

    fn canonical(&self) -> String {
        format!("{}{}.{}", if self.negative { "-" } else { "" }, self.whole, self.fraction)
    }

    fn compare_size(&self, other: &Decimal<'_>) -> Ordering {
        // Without leading zeros the longer whole part is the larger one.
        let whole = self.whole.len().cmp(&other.whole.len()).then_with(|| self.whole.cmp(&other.whole));
        whole.then_with(|| self.fraction.cmp(&other.fraction))
    }
}

impl PartialOrd for Decimal<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.compare_size(other),
            (true, true) => other.compare_size(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_compare_by_value() {
        for (left, right, expected) in [
            ("1", "1.0", Ordering::Equal),
            ("-0", "0", Ordering::Equal),
            ("9", "10", Ordering::Less),
            ("-9", "-10", Ordering::Greater),
            ("0.12", "0.2", Ordering::Less),
            ("00012.5", "12.49", Ordering::Greater),
            ("-1", "1", Ordering::Less),
        ] {
            assert_eq!(Decimal::parse(left).unwrap().cmp(&Decimal::parse(right).unwrap()), expected, "{left} {right}");
        }
        assert_eq!(Decimal::parse("0.0012").unwrap().total_digits(), 2);
        assert_eq!(Decimal::parse("120.50").unwrap().total_digits(), 4);
    }
}
