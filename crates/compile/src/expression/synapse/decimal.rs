//! Exact decimal arithmetic for the digits people write, so that 8.9567 - 8.9456 is 0.0111.

/// `mantissa / 10^scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    mantissa: i128,
    scale: u32,
}

/// More digits after the point than this come from exponents, where doubles are as good.
const SCALE_MAX: u32 = 30;

impl Decimal {
    /// The number the digits say; `None` when it does not fit.
    pub fn parse(digits: &str) -> Option<Decimal> {
        let (digits, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
        let exponent: i32 = exponent.parse().ok()?;
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
        let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
        if scale >= 0 {
            let scale = scale.unsigned_abs();
            return (scale <= SCALE_MAX).then_some(Decimal { mantissa, scale });
        }
        Some(Decimal { mantissa: mantissa.checked_mul(power_of_ten(scale.unsigned_abs())?)?, scale: 0 })
    }

    fn at_scale(self, scale: u32) -> Option<i128> {
        self.mantissa.checked_mul(power_of_ten(scale.checked_sub(self.scale)?)?)
    }

    fn aligned(self, other: Decimal, combine: fn(i128, i128) -> Option<i128>) -> Option<Decimal> {
        let scale = self.scale.max(other.scale);
        Some(Decimal { mantissa: combine(self.at_scale(scale)?, other.at_scale(scale)?)?, scale })
    }

    pub fn add(self, other: Decimal) -> Option<Decimal> {
        self.aligned(other, i128::checked_add)
    }

    pub fn subtract(self, other: Decimal) -> Option<Decimal> {
        self.aligned(other, i128::checked_sub)
    }

    pub fn remainder(self, other: Decimal) -> Option<Decimal> {
        self.aligned(other, i128::checked_rem)
    }

    pub fn multiply(self, other: Decimal) -> Option<Decimal> {
        let mantissa = self.mantissa.checked_mul(other.mantissa)?;
        Some(Decimal { mantissa, scale: self.scale + other.scale })
    }

    /// The quotient with as many decimals as the dividend has, half rounded away from zero: Micro Integrator
    ///  divides so.
    pub fn divide(self, other: Decimal) -> Option<Decimal> {
        let numerator = self.mantissa.checked_mul(power_of_ten(other.scale)?)?;
        Some(Decimal { mantissa: divide_half_up(numerator, other.mantissa)?, scale: self.scale })
    }

    /// Rounded to `scale` decimals, half away from zero.
    pub fn round(self, scale: u32) -> Option<Decimal> {
        if scale >= self.scale {
            return Some(self);
        }
        let mantissa = divide_half_up(self.mantissa, power_of_ten(self.scale - scale)?)?;
        Some(Decimal { mantissa, scale })
    }

    pub fn to_f64(self) -> f64 {
        // Through the digits: the parser rounds once and correctly.
        format!("{}e-{}", self.mantissa, self.scale).parse().unwrap_or(f64::NAN)
    }
}

fn power_of_ten(exponent: u32) -> Option<i128> {
    10_i128.checked_pow(exponent)
}

fn divide_half_up(numerator: i128, denominator: i128) -> Option<i128> {
    let quotient = numerator.checked_div(denominator)?;
    let remainder = numerator.checked_rem(denominator)?.unsigned_abs();
    let away = remainder >= denominator.unsigned_abs() - remainder && remainder > 0;
    let step = if (numerator < 0) == (denominator < 0) { 1 } else { -1 };
    Some(if away { quotient + step } else { quotient })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_stay_exact() {
        let decimal = |digits| Decimal::parse(digits).unwrap();
        for (result, expected) in [
            (decimal("8.9567").subtract(decimal("8.9456")), 0.0111),
            (decimal("0.1").add(decimal("0.2")), 0.3),
            (decimal("34.45").divide(decimal("3.44")), 10.01),
            (decimal("-1").divide(decimal("2")), -1.0),
            (decimal("34.56").remainder(decimal("3.45")), 0.06),
            (decimal("1.5E3").multiply(decimal("2")), 3000.0),
            (decimal("0.115").round(2), 0.12),
            (decimal("-0.115").round(2), -0.12),
        ] {
            assert_eq!(result.map(Decimal::to_f64), Some(expected));
        }
        assert_eq!(Decimal::parse("1e40"), None);
        assert_eq!(Decimal::parse("1e-40"), None);
        assert_eq!(decimal("1").divide(decimal("0")), None);
    }
}
