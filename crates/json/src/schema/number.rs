//! Numbers as they are written: schemas compare decimals, not their nearest binary fractions.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use crate::equality::equal_by;

/// An exact decimal: mantissa times ten to the exponent. Numbers too long for it are compared as doubles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Exact {
    mantissa: i128,
    exponent: i32,
}

impl Exact {
    fn from_number(number: &Number) -> Option<Exact> {
        let text = number.to_string();
        let (digits, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
            None => (text.as_str(), 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let mut mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
        let mut exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        if mantissa == 0 {
            return Some(Exact { mantissa: 0, exponent: 0 });
        }
        while mantissa % 10 == 0 {
            mantissa /= 10;
            exponent = exponent.checked_add(1)?;
        }
        Some(Exact { mantissa, exponent })
    }

    /// The mantissas of two numbers for one exponent.
    fn aligned(self, other: Exact) -> Option<(i128, i128)> {
        let low = self.exponent.min(other.exponent);
        let scaled = |one: Exact| {
            let steps = u32::try_from(one.exponent.checked_sub(low)?).ok()?;
            one.mantissa.checked_mul(10i128.checked_pow(steps)?)
        };
        Some((scaled(self)?, scaled(other)?))
    }
}

/// The nearest double: infinite for what no double reaches, which `as_f64` would not say.
fn double(number: &Number) -> f64 {
    number.as_f64().or_else(|| number.to_string().parse().ok()).unwrap_or(f64::NAN)
}

pub(super) fn compare(left: &Number, right: &Number) -> Option<Ordering> {
    let exact = Exact::from_number(left).zip(Exact::from_number(right)).and_then(|(left, right)| left.aligned(right));
    match exact {
        Some((left, right)) => Some(left.cmp(&right)),
        None => double(left).partial_cmp(&double(right)),
    }
}

pub(super) fn is_multiple(number: &Number, of: &Number) -> bool {
    let exact = Exact::from_number(number).zip(Exact::from_number(of)).and_then(|(left, right)| left.aligned(right));
    match exact {
        Some((_, 0)) => false,
        Some((left, right)) => left % right == 0,
        None => {
            let quotient = double(number) / double(of);
            quotient.is_finite() && quotient.fract() == 0.0
        }
    }
}

/// Whether there is nothing after the point.
pub(super) fn is_integer(number: &Number, as_written: bool) -> bool {
    if as_written {
        return !number.to_string().contains(['.', 'e', 'E']);
    }
    match Exact::from_number(number) {
        Some(exact) => exact.exponent >= 0,
        None => double(number).fract() == 0.0,
    }
}

/// Whether two values are the same: numbers by value, exactly, members in any order.
pub(super) fn equal(left: &Value, right: &Value) -> bool {
    equal_by(left, right, &|left, right| compare(left, right) == Some(Ordering::Equal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact() {
        let number = |text: &str| serde_json::from_str::<Number>(text).unwrap();
        assert_eq!(compare(&number("1.0"), &number("1")), Some(Ordering::Equal));
        assert_eq!(compare(&number("1e400"), &number("2")), Some(Ordering::Greater));
        assert_eq!(compare(&number("9007199254740993"), &number("9007199254740992")), Some(Ordering::Greater));
        for (left, right, expected) in
            [("0.3", "0.1", true), ("19.99", "0.01", true), ("7", "2", false), ("1e3", "10", true)]
        {
            assert_eq!(is_multiple(&number(left), &number(right)), expected, "{left} {right}");
        }
        assert!(is_integer(&number("1.0"), false) && !is_integer(&number("1.0"), true));
    }
}
