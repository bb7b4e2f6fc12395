//! `count`, `sum`, `avg`, `min`, `max`.

use std::cmp::Ordering;

use crate::ast::Arithmetic;
use crate::error::{Result, XPathError};
use crate::eval::{Args, Flow, collated, on_atomics};
use crate::static_context::ResultKind;
use crate::value::{Atomic, AtomicType, Sequence, cast, number};

pub(super) fn count(args: &Args<'_, '_>) -> Result<i64> {
    args.ev.count(args.code(0)?, args.focus).map(|count| count as i64)
}

pub(super) fn sum_of_numbers(args: &Args<'_, '_>) -> Result<f64> {
    let code = args.code(0)?;
    let mut total = 0.0;
    if code.result == ResultKind::Nodes {
        args.ev.each_node(code, args.focus, &mut |node| {
            total += number::parse(&args.ev.session.string_value(node), true);
            Ok(Flow::Continue)
        })?;
        return Ok(total);
    }
    for value in args.atomized(0)? {
        total += value.to_number(true);
    }
    Ok(total)
}

pub(super) fn sum(args: &Args<'_, '_>) -> Result<Sequence> {
    match total(args.atomized(0)?)? {
        Some(total) => Ok(Sequence::from(total)),
        None if args.len() > 1 => args.sequence(1),
        None => Ok(Sequence::from(0i64)),
    }
}

fn total(values: Vec<Atomic>) -> Result<Option<Atomic>> {
    let mut total: Option<Atomic> = None;
    for value in values {
        let value = untyped_as_double(value)?;
        total = Some(match total {
            None if value.is_numeric() || is_duration(&value) => value,
            None => return Err(not_alike(format!("cannot add values of type {}", value.atomic_type().name()))),
            Some(sum) => on_atomics(Arithmetic::Add, &sum, &value).map_err(as_argument_error)?,
        });
    }
    Ok(total)
}

fn is_duration(value: &Atomic) -> bool {
    matches!(value, Atomic::YearMonthDuration(_) | Atomic::DayTimeDuration(_))
}

fn untyped_as_double(value: Atomic) -> Result<Atomic> {
    match value {
        Atomic::Untyped(_) => cast::cast(&value, AtomicType::Double, false),
        other => Ok(other),
    }
}

pub(super) fn avg(args: &Args<'_, '_>) -> Result<Sequence> {
    let values = args.atomized(0)?;
    let count = values.len() as i64;
    match total(values)? {
        None => Ok(Sequence::Empty),
        Some(total) => on_atomics(Arithmetic::Divide, &total, &Atomic::Integer(count)).map(Sequence::from),
    }
}

pub(super) fn min(args: &Args<'_, '_>) -> Result<Sequence> {
    extreme(args, Ordering::Less)
}

pub(super) fn max(args: &Args<'_, '_>) -> Result<Sequence> {
    extreme(args, Ordering::Greater)
}

fn extreme(args: &Args<'_, '_>, wanted: Ordering) -> Result<Sequence> {
    let collation = super::strings::collation(args, 1)?;
    let mut best: Option<Atomic> = None;
    let mut widest = AtomicType::Integer;
    let mut not_a_number = None;
    for value in args.atomized(0)? {
        // Where an untyped value is no number, 1.0 has NaN for it.
        let value = match &value {
            Atomic::Untyped(text) if args.compat() => Atomic::Double(number::parse(text, true)),
            Atomic::Uri(text) => Atomic::String(text.clone()),
            _ => untyped_as_double(value)?,
        };
        let has_order = !matches!(
            value,
            Atomic::QName(_)
                | Atomic::Duration(_)
                | Atomic::Gregorian(..)
                | Atomic::HexBinary(_)
                | Atomic::Base64Binary(_)
        );
        if !has_order {
            return Err(not_alike(format!("values of type {} have no order", value.atomic_type().name())));
        }
        if value.is_numeric() {
            widest = wider(widest, value.atomic_type());
            if value.to_number(false).is_nan() {
                not_a_number = Some(value);
                continue;
            }
        }
        best = match best {
            None => Some(value),
            Some(known) => {
                let better = collated(&value, &known, &collation).map_err(as_argument_error)? == Some(wanted);
                Some(if better { value } else { known })
            }
        };
    }
    match not_a_number.or(best) {
        None => Ok(Sequence::Empty),
        // The result has the type that all numbers can be promoted to.
        Some(value) if value.is_numeric() && matches!(widest, AtomicType::Float | AtomicType::Double) => {
            cast::cast(&value, widest, false).map(Sequence::from)
        }
        Some(value) => Ok(Sequence::from(value)),
    }
}

fn wider(known: AtomicType, found: AtomicType) -> AtomicType {
    match (known, found) {
        (AtomicType::Double, _) | (_, AtomicType::Double) => AtomicType::Double,
        (AtomicType::Float, _) | (_, AtomicType::Float) => AtomicType::Float,
        _ => known,
    }
}

fn not_alike(message: String) -> XPathError {
    XPathError::new("FORG0006", message)
}

/// Values of types that do not go together are an error of the argument, not of a comparison.
fn as_argument_error(error: XPathError) -> XPathError {
    if error.code() == "XPTY0004" { not_alike(error.message().to_string()) } else { error }
}
