//! Operators on items.

use super::EvaluationError;
use super::ast::Operator;
use super::decimal::Decimal;
use super::item::{Item, Number};

/// The value of `left operator right`.
pub(super) fn apply(left: &Item, operator: Operator, right: &Item) -> Result<Item, EvaluationError> {
    match operator {
        Operator::Equal => return Ok(Item::Boolean(equal(left, right))),
        Operator::NotEqual => return Ok(Item::Boolean(!equal(left, right))),
        _ => {}
    }
    let wrong = |what: &str| {
        EvaluationError::new(format!(
            "`{}` needs {what}, not `{}` and `{}`",
            operator.symbol(),
            left.text(),
            right.text()
        ))
    };
    if operator.is_logical() {
        let (Some(left), Some(right)) = (left.boolean(), right.boolean()) else { return Err(wrong("booleans")) };
        return Ok(Item::Boolean(if operator == Operator::And { left && right } else { left || right }));
    }
    let (Some(left_number), Some(right_number)) = (left.number(), right.number()) else {
        if operator == Operator::Add
            && let (Some(left), Some(right)) = (left.string(), right.string())
        {
            return Ok(Item::text_of(format!("{left}{right}")));
        }
        return Err(wrong("numbers"));
    };
    if operator.is_relational() {
        let ordering = left_number.as_f64().partial_cmp(&right_number.as_f64());
        return Ok(Item::Boolean(ordering.is_some_and(|ordering| match operator {
            Operator::Less => ordering.is_lt(),
            Operator::LessOrEqual => ordering.is_le(),
            Operator::Greater => ordering.is_gt(),
            _ => ordering.is_ge(),
        })));
    }
    match (left_number, right_number) {
        (Number::Double(_), _) | (_, Number::Double(_)) => doubles(left, operator, right),
        (Number::Integer(left), Number::Integer(right)) => integers(left, operator, right),
        (Number::Integer(left), Number::Long(right)) => longs(left.into(), operator, right),
        (Number::Long(left), Number::Integer(right)) => longs(left, operator, right.into()),
        (Number::Long(left), Number::Long(right)) => longs(left, operator, right),
    }
}

/// Text forms compare; null equals null only.
fn equal(left: &Item, right: &Item) -> bool {
    match (left.is_null(), right.is_null()) {
        (false, false) => left.text() == right.text(),
        (left, right) => left == right,
    }
}

fn by_zero() -> EvaluationError {
    EvaluationError::new("division by zero")
}

fn integers(left: i32, operator: Operator, right: i32) -> Result<Item, EvaluationError> {
    let (wide_left, wide_right) = (i64::from(left), i64::from(right));
    let exact = match operator {
        Operator::Add => wide_left + wide_right,
        Operator::Subtract => wide_left - wide_right,
        Operator::Multiply => wide_left * wide_right,
        _ if right == 0 => return Err(by_zero()),
        Operator::Modulo => wide_left % wide_right,
        _ if wide_left % wide_right == 0 => wide_left / wide_right,
        _ => return Ok(Item::Double(f64::from(left) / f64::from(right))),
    };
    Ok(i32::try_from(exact).map_or(Item::Long(exact), Item::Integer))
}

fn longs(left: i64, operator: Operator, right: i64) -> Result<Item, EvaluationError> {
    Ok(match operator {
        // As Java wraps.
        Operator::Add => Item::Long(left.wrapping_add(right)),
        Operator::Subtract => Item::Long(left.wrapping_sub(right)),
        Operator::Multiply => Item::Long(left.wrapping_mul(right)),
        _ if right == 0 => return Err(by_zero()),
        Operator::Modulo => Item::Long(left.wrapping_rem(right)),
        _ => Item::Double(left as f64 / right as f64),
    })
}

/// A double on either side: decimal arithmetic on the digits, and doubles when they are too many.
fn doubles(left: &Item, operator: Operator, right: &Item) -> Result<Item, EvaluationError> {
    let (Some(left_value), Some(right_value)) = (left.number(), right.number()) else { return Ok(Item::Null) };
    let (left_value, right_value) = (left_value.as_f64(), right_value.as_f64());
    if right_value == 0.0 && matches!(operator, Operator::Divide | Operator::Modulo) {
        return Err(by_zero());
    }
    // Division keeps the decimals of the dividend, and a whole number counts as having one.
    let digits = |item: &Item, value: f64| match operator {
        Operator::Add => Decimal::parse(&item.text()),
        _ => Decimal::parse(&penstock_message::double_to_text(value)),
    };
    let exact = || {
        let (left, right) = (digits(left, left_value)?, digits(right, right_value)?);
        match operator {
            Operator::Add => left.add(right),
            Operator::Subtract => left.subtract(right),
            Operator::Multiply => left.multiply(right),
            Operator::Divide => left.divide(right),
            _ => left.remainder(right),
        }
    };
    Ok(Item::Double(exact().map_or_else(
        || match operator {
            Operator::Add => left_value + right_value,
            Operator::Subtract => left_value - right_value,
            Operator::Multiply => left_value * right_value,
            Operator::Divide => left_value / right_value,
            _ => left_value % right_value,
        },
        Decimal::to_f64,
    )))
}
