//! `xs:decimal` with eighteen digits after the point, which is the least a conforming processor must have.

use std::cmp::Ordering;
use std::fmt;

/// Digits after the point.
const SCALE_DIGITS: usize = 18;
const SCALE: i128 = 1_000_000_000_000_000_000;

/// A decimal number: a count of 10⁻¹⁸.
///
/// Stored as two words so that an [`super::Atomic`] stays small: `i128` would align it to sixteen bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal {
    high: i64,
    low: u64,
}

impl Decimal {
    fn from_units(units: i128) -> Decimal {
        Decimal { high: (units >> 64) as i64, low: units as u64 }
    }

    fn units(self) -> i128 {
        (i128::from(self.high) << 64) | i128::from(self.low)
    }

    /// From text such as `-12.50`; `None` when it is not a decimal or does not fit.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (negative, unsigned) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut units = 0i128;
        for byte in whole.bytes().chain(fraction.bytes().take(SCALE_DIGITS)) {
            if !byte.is_ascii_digit() {
                return None;
            }
            units = units.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
        }
        if !fraction.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        for _ in fraction.len().min(SCALE_DIGITS)..SCALE_DIGITS {
            units = units.checked_mul(10)?;
        }
        Some(Decimal::from_units(if negative { -units } else { units }))
    }

    /// The nearest decimal; `None` when it is not finite or does not fit.
    pub fn from_f64(value: f64) -> Option<Decimal> {
        if value.is_finite() { Decimal::parse(&value.to_string()) } else { None }
    }

    /// The nearest double.
    pub fn to_f64(self) -> f64 {
        let units = self.units();
        if units % SCALE == 0 { (units / SCALE) as f64 } else { self.to_string().parse().unwrap_or(f64::NAN) }
    }

    /// The whole part, cut towards zero, if it fits an integer.
    pub fn to_integer(self) -> Option<i64> {
        i64::try_from(self.units() / SCALE).ok()
    }

    /// The whole part, cut towards zero.
    pub fn whole_part(self) -> i128 {
        self.units() / SCALE
    }

    /// A whole number, if it fits.
    pub fn from_i128(value: i128) -> Option<Decimal> {
        value.checked_mul(SCALE).map(Decimal::from_units)
    }

    /// Whether there is nothing after the point.
    pub fn is_integer(self) -> bool {
        self.units() % SCALE == 0
    }

    /// Whether this is zero.
    pub fn is_zero(self) -> bool {
        self.units() == 0
    }

    /// The number with the opposite sign.
    pub fn negate(self) -> Option<Decimal> {
        self.units().checked_neg().map(Decimal::from_units)
    }

    /// The size without the sign.
    pub fn abs(self) -> Option<Decimal> {
        self.units().checked_abs().map(Decimal::from_units)
    }

    /// Sum, if it fits.
    pub fn plus(self, other: Decimal) -> Option<Decimal> {
        self.units().checked_add(other.units()).map(Decimal::from_units)
    }

    /// Difference, if it fits.
    pub fn minus(self, other: Decimal) -> Option<Decimal> {
        self.units().checked_sub(other.units()).map(Decimal::from_units)
    }

    /// Product, if it fits.
    pub fn multiply(self, other: Decimal) -> Option<Decimal> {
        let (a, b) = (self.units(), other.units());
        let (a_whole, a_rest) = (a / SCALE, a % SCALE);
        let (b_whole, b_rest) = (b / SCALE, b % SCALE);
        let whole = a_whole.checked_mul(b_whole)?.checked_mul(SCALE)?;
        let mixed = a_whole.checked_mul(b_rest)?.checked_add(b_whole.checked_mul(a_rest)?)?;
        whole.checked_add(mixed)?.checked_add(a_rest * b_rest / SCALE).map(Decimal::from_units)
    }

    /// Quotient, if it fits and the divisor is not zero.
    pub fn divide(self, other: Decimal) -> Option<Decimal> {
        let (a, b) = (self.units(), other.units());
        let mut quotient = a.checked_div(b)?;
        let mut rest = a.checked_rem(b)?;
        for _ in 0..SCALE_DIGITS {
            rest = rest.checked_mul(10)?;
            quotient = quotient.checked_mul(10)?.checked_add(rest / b)?;
            rest %= b;
        }
        // The last digit is rounded, halves away from zero.
        if rest.unsigned_abs() >= b.unsigned_abs().div_ceil(2) {
            quotient = quotient.checked_add(if (a < 0) == (b < 0) { 1 } else { -1 })?;
        }
        Some(Decimal::from_units(quotient))
    }

    /// Quotient cut towards zero, if the divisor is not zero.
    pub fn whole_quotient(self, other: Decimal) -> Option<i128> {
        self.units().checked_div(other.units())
    }

    /// Remainder with the sign of the dividend.
    pub fn remainder(self, other: Decimal) -> Option<Decimal> {
        self.units().checked_rem(other.units()).map(Decimal::from_units)
    }

    /// The largest whole number not above this one.
    pub fn floor(self) -> Option<Decimal> {
        self.units().div_euclid(SCALE).checked_mul(SCALE).map(Decimal::from_units)
    }

    /// The smallest whole number not below this one.
    pub fn ceiling(self) -> Option<Decimal> {
        let floor = self.floor()?;
        if floor == self { Some(self) } else { floor.units().checked_add(SCALE).map(Decimal::from_units) }
    }

    /// Rounded to `digits` places; halves go up, or to the even neighbour.
    pub fn round(self, digits: i64, half_to_even: bool) -> Option<Decimal> {
        if digits >= SCALE_DIGITS as i64 {
            return Some(self);
        }
        let exponent = u32::try_from(SCALE_DIGITS as i64 - digits.max(-20)).ok()?;
        let step = 10i128.checked_pow(exponent)?;
        let units = self.units();
        let (down, rest) = (units.div_euclid(step), units.rem_euclid(step));
        let twice = rest.checked_mul(2)?;
        let up = twice > step || (twice == step && (!half_to_even || down % 2 != 0));
        (down + i128::from(up)).checked_mul(step).map(Decimal::from_units)
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Decimal {
        Decimal::from_units(i128::from(value) * SCALE)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        self.units().cmp(&other.units())
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = self.units();
        let sign = if units < 0 { "-" } else { "" };
        let (whole, rest) = (units.unsigned_abs() / SCALE as u128, units.unsigned_abs() % SCALE as u128);
        if rest == 0 {
            return write!(f, "{sign}{whole}");
        }
        let digits = format!("{rest:018}");
        write!(f, "{sign}{whole}.{}", digits.trim_end_matches('0'))
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn arithmetic() {
        for (result, expected) in [
            (d("1.10").plus(d("2.2")), "3.3"),
            (d("-0.5").minus(d("1")), "-1.5"),
            (d("1.5").multiply(d("-2.5")), "-3.75"),
            (d("123456789.5").multiply(d("987654321.25")), "121932631637326626.875"),
            (d("10").divide(d("4")), "2.5"),
            (d("-1").divide(d("3")), "-0.333333333333333333"),
            (d("-7.5").remainder(d("2")), "-1.5"),
            (d("-1.5").floor(), "-2"),
            (d("-1.5").ceiling(), "-1"),
            (d("2.5").round(0, false), "3"),
            (d("2.5").round(0, true), "2"),
            (d("-2.5").round(0, false), "-2"),
            (d("1234.567").round(2, false), "1234.57"),
            (d("1250").round(-2, true), "1200"),
        ] {
            assert_eq!(result.unwrap().to_string(), expected);
        }
        assert_eq!(d("1").divide(d("0")), None);
        assert_eq!(d("100000000000000000000").multiply(d("100000000000000000000")), None);
        assert_eq!(d("0.1").to_f64(), 0.1);
        assert!(d("-1") < d("0.5"));
    }

    #[test]
    fn not_decimals() {
        for text in ["", ".", "-", "1e3", "a", "1.2.3", "99999999999999999999999999"] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
    }
}
