//! Atomic values as keys of hash tables.

use std::sync::Arc;

use super::{Atomic, AtomicType, Decimal};
use crate::collation::Collation;

/// Equal for values that `eq` finds equal, different for all others. Untyped values count as text, and NaN equals
/// itself, as `distinct-values()` and grouping want it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AtomicKey {
    /// Strings, URIs, untyped values.
    Text(Arc<str>),
    /// Numbers that a double holds exactly, or that have few enough digits to be one decimal each: its bits.
    Number(u64),
    /// Whole numbers beyond the precision of doubles.
    Integer(i128),
    /// Decimals with more digits than doubles have.
    Decimal(Decimal),
    /// `xs:boolean`
    Boolean(bool),
    /// A moment, by type.
    Moment(AtomicType, i128),
    /// Months and nanoseconds.
    Duration(i32, i128),
    /// Namespace and local part.
    QName(Option<Arc<str>>, Arc<str>),
    /// Bytes, by type; those of a string are its key in a collation.
    Binary(AtomicType, Arc<[u8]>),
}

/// Whole numbers below this are exact as doubles.
const EXACT_BELOW: f64 = 9_007_199_254_740_992.0;

/// Decimals with no more digits differ as doubles when they differ.
const EXACT_DIGITS: usize = 15;

impl AtomicKey {
    /// The key of a value, equal for texts that are equal in a collation.
    pub fn collated(value: &Atomic, collation: &Collation) -> AtomicKey {
        match value.as_text() {
            Some(text) if *collation != Collation::Codepoint => {
                AtomicKey::Binary(AtomicType::String, collation.key(text).into_owned().into())
            }
            _ => AtomicKey::new(value),
        }
    }

    /// The key of a value; a time zone that is missing is UTC.
    pub fn new(value: &Atomic) -> AtomicKey {
        match value {
            Atomic::String(text) | Atomic::Untyped(text) | Atomic::Uri(text) | Atomic::DerivedString(_, text) => {
                AtomicKey::Text(Arc::clone(text))
            }
            Atomic::Boolean(value) => AtomicKey::Boolean(*value),
            Atomic::Integer(_) | Atomic::WideInteger(_) | Atomic::DerivedInteger(..) => {
                let integer = value.as_integer().unwrap_or_default();
                if (integer as f64).abs() < EXACT_BELOW { number(integer as f64) } else { AtomicKey::Integer(integer) }
            }
            Atomic::Decimal(decimal) if decimal.is_integer() => AtomicKey::new(&Atomic::from(decimal.whole_part())),
            Atomic::Decimal(decimal) => {
                let digits = decimal.to_string().bytes().filter(u8::is_ascii_digit).count();
                if digits <= EXACT_DIGITS { number(decimal.to_f64()) } else { AtomicKey::Decimal(*decimal) }
            }
            Atomic::Float(value) => number(f64::from(*value)),
            Atomic::Double(value) => number(*value),
            Atomic::QName(name) => AtomicKey::QName(name.namespace.clone(), Arc::clone(&name.local)),
            Atomic::DateTime(moment) | Atomic::Date(moment) | Atomic::Time(moment) | Atomic::Gregorian(_, moment) => {
                AtomicKey::Moment(value.atomic_type(), moment.utc_nanos(0))
            }
            Atomic::Duration(length) | Atomic::YearMonthDuration(length) | Atomic::DayTimeDuration(length) => {
                AtomicKey::Duration(length.months, length.total_nanos())
            }
            Atomic::HexBinary(bytes) | Atomic::Base64Binary(bytes) => {
                AtomicKey::Binary(value.atomic_type(), Arc::clone(bytes))
            }
        }
    }
}

fn number(value: f64) -> AtomicKey {
    if value.is_nan() {
        return AtomicKey::Number(f64::NAN.to_bits());
    }
    // Beyond 10³⁸ no integer of another type can be equal.
    if value.abs() >= EXACT_BELOW && value.abs() < 1e38 {
        return AtomicKey::Integer(value as i128);
    }
    // Adding zero makes a negative zero positive.
    AtomicKey::Number((value + 0.0).to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_equal_as_values_are() {
        let decimal = |text| Atomic::Decimal(Decimal::parse(text).unwrap());
        for (left, right, equal) in [
            (Atomic::Integer(1), Atomic::Double(1.0), true),
            (Atomic::Integer(1), Atomic::from("1"), false),
            (Atomic::Double(0.0), Atomic::Double(-0.0), true),
            (Atomic::Double(f64::NAN), Atomic::Float(f32::NAN), true),
            (decimal("0.1"), Atomic::Double(0.1), true),
            (decimal("1.000000000000000001"), Atomic::Integer(1), false),
            (Atomic::Integer(i64::MAX), Atomic::Integer(i64::MAX - 1), false),
            (Atomic::Integer(1 << 60), Atomic::Double((1u64 << 60) as f64), true),
            (Atomic::Untyped("a".into()), Atomic::Uri("a".into()), true),
            (Atomic::HexBinary([1].into()), Atomic::Base64Binary([1].into()), false),
        ] {
            assert_eq!(AtomicKey::new(&left) == AtomicKey::new(&right), equal, "{left:?} {right:?}");
        }
    }
}
