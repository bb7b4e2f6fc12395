//! `+`, `-`, `*`, `div`, `idiv`, `mod`: on doubles in XPath 1.0, on types in 2.0.

use super::compare::to_single;
use super::{Evaluator, Focus};
use crate::ast::Arithmetic;
use crate::code::{Code, Op};
use crate::error::{Result, XPathError, type_error};
use crate::value::{Atomic, AtomicType, Decimal, Duration, Item, Sequence, number};

impl<'a> Evaluator<'a> {
    pub(super) fn arithmetic(
        &self,
        operator: Arithmetic,
        pair: &'a (Code, Code),
        focus: &Focus<'_>,
    ) -> Result<Sequence> {
        if self.compat() && !self.has_dates(&pair.0) && !self.has_dates(&pair.1) {
            let (left, right) = (self.number(&pair.0, focus)?, self.number(&pair.1, focus)?);
            return on_doubles(operator, left, right).map(Sequence::from);
        }
        let (Some(left), Some(right)) = (self.optional_atomic(&pair.0, focus)?, self.optional_atomic(&pair.1, focus)?)
        else {
            return Ok(Sequence::Empty);
        };
        on_atomics(operator, &left, &right).map(Sequence::from)
    }

    /// In 1.0 mode dates come only from constructor functions and the clock, which 1.0 does not have: calculating with
    /// them is allowed rather than turned into NaN. Looking must not cost anything, so only what is in sight counts.
    fn has_dates(&self, code: &'a Code) -> bool {
        let holds_date = |value: &Sequence| matches!(value, Sequence::One(Item::Atomic(atomic)) if is_temporal(atomic));
        match &code.op {
            Op::Constant(value) => holds_date(value),
            Op::Slot(slot) => self.slot(*slot).is_ok_and(holds_date),
            Op::Local(slot) => holds_date(&self.local(*slot)),
            Op::Cast(_, wanted, _) => is_temporal_type(*wanted),
            Op::Call(builtin, _, _) => builtin.is_temporal(),
            Op::Arithmetic(_, pair) => self.has_dates(&pair.0) || self.has_dates(&pair.1),
            _ => false,
        }
    }

    pub(super) fn sign(&self, negative: bool, operand: &'a Code, focus: &Focus<'_>) -> Result<Sequence> {
        if self.compat() {
            let value = self.number(operand, focus)?;
            return Ok(Sequence::from(if negative { -value } else { value }));
        }
        let Some(atomic) = self.optional_atomic(operand, focus)? else { return Ok(Sequence::Empty) };
        let value = numeric(&atomic)?;
        if !negative {
            return Ok(Sequence::from(value));
        }
        Ok(Sequence::from(match value {
            Atomic::Integer(_) | Atomic::WideInteger(_) => {
                on_integers(Arithmetic::Subtract, &Atomic::Integer(0), &value)?
            }
            Atomic::Decimal(decimal) => Atomic::Decimal(decimal.negate().ok_or_else(overflow)?),
            Atomic::Float(float) => Atomic::Float(-float),
            other => Atomic::Double(-other.to_number(false)),
        }))
    }
}

fn is_temporal(atomic: &Atomic) -> bool {
    is_temporal_type(atomic.atomic_type())
}

fn is_temporal_type(wanted: AtomicType) -> bool {
    use AtomicType as T;
    matches!(wanted, T::DateTime | T::Date | T::Time | T::YearMonthDuration | T::DayTimeDuration)
}

fn overflow() -> XPathError {
    XPathError::new("FOAR0002", "number out of range")
}

fn division_by_zero() -> XPathError {
    XPathError::new("FOAR0001", "division by zero")
}

/// Untyped operands are doubles.
fn numeric(atomic: &Atomic) -> Result<Atomic> {
    match atomic {
        Atomic::Untyped(text) => number::parse_double(number::trim(text))
            .map(Atomic::Double)
            .ok_or_else(|| XPathError::new("FORG0001", format!("`{text}` is not a number"))),
        Atomic::DerivedInteger(_, integer) => Ok(Atomic::Integer(*integer)),
        _ if atomic.is_numeric() => Ok(atomic.clone()),
        _ => Err(type_error(format!("cannot calculate with a value of type {}", atomic.atomic_type().name()))),
    }
}

/// Arithmetic of IEEE 754.
pub(super) fn on_doubles(operator: Arithmetic, left: f64, right: f64) -> Result<f64> {
    Ok(match operator {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide => left / right,
        // The remainder has the sign of the dividend, as in Java.
        Arithmetic::Modulo => left % right,
        Arithmetic::IntegerDivide => {
            if right == 0.0 {
                return Err(division_by_zero());
            }
            (left / right).trunc()
        }
    })
}

/// Arithmetic on two typed values.
pub(crate) fn on_atomics(operator: Arithmetic, left: &Atomic, right: &Atomic) -> Result<Atomic> {
    if is_temporal(left) || is_temporal(right) {
        return on_dates(operator, left, right);
    }
    let (left, right) = (numeric(left)?, numeric(right)?);
    if left.as_integer().is_some() && right.as_integer().is_some() {
        return on_integers(operator, &left, &right);
    }
    let exact = |value: &Atomic| matches!(value, Atomic::Decimal(_)) || value.as_integer().is_some();
    if exact(&left) && exact(&right) {
        return on_decimals(operator, to_decimal(&left)?, to_decimal(&right)?);
    }
    let single = !matches!(left, Atomic::Double(_)) && !matches!(right, Atomic::Double(_));
    // The sum, product and quotient of two floats are the same when rounded by way of a double.
    let operand = |value: &Atomic| if single { f64::from(to_single(value)) } else { value.to_number(false) };
    let (left, right) = (operand(&left), operand(&right));
    if operator == Arithmetic::IntegerDivide && (left.is_nan() || right.is_nan() || left.is_infinite()) {
        return Err(overflow());
    }
    let result = on_doubles(operator, left, right)?;
    if operator == Arithmetic::IntegerDivide {
        let result = if single { f64::from((left / right) as f32).trunc() } else { result };
        // The largest power of ten whose doubles convert without loss of size.
        return if result.abs() < 1e38 { Ok(Atomic::from(result as i128)) } else { Err(overflow()) };
    }
    Ok(if single { Atomic::Float(result as f32) } else { Atomic::Double(result) })
}

fn to_decimal(atomic: &Atomic) -> Result<Decimal> {
    match atomic {
        Atomic::Decimal(decimal) => Ok(*decimal),
        _ => match atomic.as_integer() {
            Some(integer) => Decimal::from_i128(integer).ok_or_else(overflow),
            None => Err(type_error("expected a decimal")),
        },
    }
}

fn on_integers(operator: Arithmetic, left: &Atomic, right: &Atomic) -> Result<Atomic> {
    let divides = matches!(operator, Arithmetic::IntegerDivide | Arithmetic::Modulo);
    if operator == Arithmetic::Divide {
        return on_decimals(operator, to_decimal(left)?, to_decimal(right)?);
    }
    let (Some(a), Some(b)) = (left.as_integer(), right.as_integer()) else { return Err(overflow()) };
    if divides && b == 0 {
        return Err(division_by_zero());
    }
    let result = match operator {
        Arithmetic::Add => a.checked_add(b),
        Arithmetic::Subtract => a.checked_sub(b),
        Arithmetic::Multiply => a.checked_mul(b),
        Arithmetic::IntegerDivide | Arithmetic::Divide => a.checked_div(b),
        // The one case `checked_rem` refuses is exact.
        Arithmetic::Modulo => Some(a.checked_rem(b).unwrap_or(0)),
    };
    result.map(Atomic::from).ok_or_else(overflow)
}

fn on_decimals(operator: Arithmetic, left: Decimal, right: Decimal) -> Result<Atomic> {
    let divides = matches!(operator, Arithmetic::Divide | Arithmetic::IntegerDivide | Arithmetic::Modulo);
    if divides && right.is_zero() {
        return Err(division_by_zero());
    }
    let result = match operator {
        Arithmetic::Add => left.plus(right),
        Arithmetic::Subtract => left.minus(right),
        Arithmetic::Multiply => left.multiply(right),
        Arithmetic::Divide => left.divide(right),
        Arithmetic::Modulo => left.remainder(right),
        Arithmetic::IntegerDivide => {
            return left.whole_quotient(right).map(Atomic::from).ok_or_else(overflow);
        }
    };
    result.map(Atomic::Decimal).ok_or_else(overflow)
}

fn on_dates(operator: Arithmetic, left: &Atomic, right: &Atomic) -> Result<Atomic> {
    use Arithmetic as Op;
    use Atomic as A;
    let out_of_range = || XPathError::new("FODT0001", "date or duration out of range");
    let moved = |date: crate::value::DateTime, by: Duration, back: bool| {
        let by = if back { by.negate() } else { Some(by) };
        by.and_then(|by| date.plus(by)).ok_or_else(out_of_range)
    };
    let back = operator == Op::Subtract;
    match (operator, left, right) {
        (Op::Add | Op::Subtract, A::DateTime(d), A::YearMonthDuration(by) | A::DayTimeDuration(by)) => {
            moved(*d, *by, back).map(A::DateTime)
        }
        (Op::Add | Op::Subtract, A::Date(d), A::YearMonthDuration(by) | A::DayTimeDuration(by)) => {
            moved(*d, *by, back).map(|d| A::Date(d.date()))
        }
        (Op::Add | Op::Subtract, A::Time(t), A::DayTimeDuration(by)) => moved(*t, *by, back).map(|t| A::Time(t.time())),
        (Op::Add, A::YearMonthDuration(_) | A::DayTimeDuration(_), A::DateTime(_) | A::Date(_) | A::Time(_)) => {
            on_dates(operator, right, left)
        }
        (Op::Subtract, A::DateTime(a), A::DateTime(b))
        | (Op::Subtract, A::Date(a), A::Date(b))
        | (Op::Subtract, A::Time(a), A::Time(b)) => {
            Duration::from_nanos(a.utc_nanos(0) - b.utc_nanos(0)).map(A::DayTimeDuration).ok_or_else(out_of_range)
        }
        (Op::Add | Op::Subtract, A::YearMonthDuration(a), A::YearMonthDuration(b)) => {
            let b = if back { b.negate() } else { Some(*b) };
            b.and_then(|b| a.plus(b)).map(A::YearMonthDuration).ok_or_else(out_of_range)
        }
        (Op::Add | Op::Subtract, A::DayTimeDuration(a), A::DayTimeDuration(b)) => {
            let b = if back { b.negate() } else { Some(*b) };
            b.and_then(|b| a.plus(b)).map(A::DayTimeDuration).ok_or_else(out_of_range)
        }
        (Op::Divide, A::YearMonthDuration(a), A::YearMonthDuration(b)) => {
            on_decimals(operator, Decimal::from(i64::from(a.months)), Decimal::from(i64::from(b.months)))
        }
        (Op::Divide, A::DayTimeDuration(a), A::DayTimeDuration(b)) => {
            if b.total_nanos() == 0 {
                return Err(division_by_zero());
            }
            let (a, b) = (Decimal::from_i128(a.total_nanos()), Decimal::from_i128(b.total_nanos()));
            a.zip(b).and_then(|(a, b)| a.divide(b)).map(A::Decimal).ok_or_else(overflow)
        }
        (Op::Multiply | Op::Divide, A::YearMonthDuration(a) | A::DayTimeDuration(a), factor)
            if numeric(factor).is_ok() =>
        {
            let factor = numeric(factor)?.to_number(false);
            if factor.is_nan() {
                return Err(XPathError::new("FOCA0005", "a duration times or divided by NaN"));
            }
            let scaled = if operator == Op::Divide { a.divide(factor) } else { a.scale(factor) };
            let scaled = scaled.ok_or_else(|| XPathError::new("FODT0002", "duration out of range"))?;
            Ok(if matches!(left, A::YearMonthDuration(_)) {
                A::YearMonthDuration(scaled)
            } else {
                A::DayTimeDuration(scaled)
            })
        }
        (Op::Multiply, factor, A::YearMonthDuration(_) | A::DayTimeDuration(_)) if numeric(factor).is_ok() => {
            on_dates(operator, right, left)
        }
        _ => {
            let (left, right) = (left.atomic_type().name(), right.atomic_type().name());
            Err(type_error(format!("cannot calculate with values of types {left} and {right}")))
        }
    }
}
