//! Functions on numbers.

use crate::error::{Result, XPathError, type_error};
use crate::eval::Args;
use crate::value::{Atomic, Decimal, Sequence, number as numbers};

pub(super) fn number(args: &Args<'_, '_>) -> Result<f64> {
    if args.len() > 0 {
        return args.number(0);
    }
    Ok(numbers::parse(&args.string_or_context()?, args.compat()))
}

pub(super) fn floor_of_number(args: &Args<'_, '_>) -> Result<f64> {
    Ok(args.number(0)?.floor())
}

pub(super) fn ceiling_of_number(args: &Args<'_, '_>) -> Result<f64> {
    Ok(args.number(0)?.ceil())
}

pub(super) fn round_of_number(args: &Args<'_, '_>) -> Result<f64> {
    let value = args.number(0)?;
    if args.len() > 1 {
        return Ok(rounded(value, args.integer(1)?, false));
    }
    Ok(numbers::round(value))
}

pub(super) fn round_half_of_number(args: &Args<'_, '_>) -> Result<f64> {
    let digits = if args.len() > 1 { args.integer(1)? } else { 0 };
    Ok(rounded(args.number(0)?, digits, true))
}

pub(super) fn abs_of_number(args: &Args<'_, '_>) -> Result<f64> {
    Ok(args.number(0)?.abs())
}

/// Rounded to a number of digits, by way of the decimal it is written as, so that 2.675 is what it looks like.
fn rounded(value: f64, digits: i64, half_to_even: bool) -> f64 {
    let decimal = Decimal::from_f64(value).and_then(|decimal| decimal.round(digits, half_to_even));
    // The sign of a zero stays.
    decimal.map_or(value, |decimal| decimal.to_f64().copysign(value))
}

pub(super) fn floor(args: &Args<'_, '_>) -> Result<Sequence> {
    typed(args, f64::floor, |decimal| decimal.floor())
}

pub(super) fn ceiling(args: &Args<'_, '_>) -> Result<Sequence> {
    typed(args, f64::ceil, |decimal| decimal.ceiling())
}

pub(super) fn abs(args: &Args<'_, '_>) -> Result<Sequence> {
    typed(args, f64::abs, |decimal| decimal.abs())
}

pub(super) fn round(args: &Args<'_, '_>) -> Result<Sequence> {
    let digits = if args.len() > 1 { args.integer(1)? } else { 0 };
    let on_double = |value: f64| if digits == 0 { numbers::round(value) } else { rounded(value, digits, false) };
    typed(args, on_double, |decimal| decimal.round(digits, false))
}

pub(super) fn round_half_to_even(args: &Args<'_, '_>) -> Result<Sequence> {
    let digits = if args.len() > 1 { args.integer(1)? } else { 0 };
    typed(args, |value| rounded(value, digits, true), |decimal| decimal.round(digits, true))
}

/// A function that keeps the type of its argument.
fn typed(
    args: &Args<'_, '_>,
    on_double: impl Fn(f64) -> f64,
    on_decimal: impl Fn(Decimal) -> Option<Decimal>,
) -> Result<Sequence> {
    let overflow = || XPathError::new("FOAR0002", "number out of range");
    let Some(value) = args.atomic(0)? else { return Ok(Sequence::Empty) };
    Ok(Sequence::from(match value {
        Atomic::Integer(_) | Atomic::WideInteger(_) | Atomic::DerivedInteger(..) => {
            let decimal = value.as_integer().and_then(Decimal::from_i128);
            Atomic::from(decimal.and_then(on_decimal).map(Decimal::whole_part).ok_or_else(overflow)?)
        }
        Atomic::Decimal(decimal) => Atomic::Decimal(on_decimal(decimal).ok_or_else(overflow)?),
        Atomic::Float(float) => Atomic::Float(on_double(f64::from(float)) as f32),
        Atomic::Double(double) => Atomic::Double(on_double(double)),
        Atomic::Untyped(_) => match crate::value::cast::cast(&value, crate::value::AtomicType::Double, false)? {
            Atomic::Double(double) => Atomic::Double(on_double(double)),
            other => other,
        },
        other => return Err(type_error(format!("expected a number, found {}", other.atomic_type().name()))),
    }))
}

pub(super) fn pi(_: &Args<'_, '_>) -> Result<f64> {
    Ok(std::f64::consts::PI)
}

pub(super) fn sqrt(args: &Args<'_, '_>) -> Result<f64> {
    Ok(args.number(0)?.sqrt())
}

pub(super) fn pow(args: &Args<'_, '_>) -> Result<f64> {
    Ok(args.number(0)?.powf(args.number(1)?))
}

pub(super) fn exp(args: &Args<'_, '_>) -> Result<f64> {
    Ok(args.number(0)?.exp())
}

pub(super) fn log(args: &Args<'_, '_>) -> Result<f64> {
    Ok(args.number(0)?.ln())
}

pub(super) fn log10(args: &Args<'_, '_>) -> Result<f64> {
    Ok(args.number(0)?.log10())
}

pub(super) fn sin(args: &Args<'_, '_>) -> Result<f64> {
    Ok(args.number(0)?.sin())
}

pub(super) fn cos(args: &Args<'_, '_>) -> Result<f64> {
    Ok(args.number(0)?.cos())
}

pub(super) fn tan(args: &Args<'_, '_>) -> Result<f64> {
    Ok(args.number(0)?.tan())
}

pub(super) fn atan(args: &Args<'_, '_>) -> Result<f64> {
    Ok(args.number(0)?.atan())
}
