//! Casts between atomic types.

use std::sync::Arc;

use super::{Atomic, AtomicType, DateTime, Decimal, Duration, QName, number};
use crate::error::{Result, XPathError, type_error};

/// `value cast as wanted`. `compat` writes doubles as XPath 1.0 does.
pub fn cast(value: &Atomic, wanted: AtomicType, compat: bool) -> Result<Atomic> {
    use AtomicType as T;
    if value.atomic_type() == wanted {
        return Ok(value.clone());
    }
    match wanted {
        T::AnyAtomic => Ok(value.clone()),
        T::String => Ok(Atomic::String(value.to_text(compat).into())),
        T::Untyped => Ok(Atomic::Untyped(value.to_text(compat).into())),
        T::Uri => match value.as_text() {
            Some(text) => Ok(Atomic::Uri(number::trim(text).into())),
            None => Err(impossible(value, wanted)),
        },
        T::Boolean => to_boolean(value),
        T::Numeric if value.is_numeric() => Ok(value.clone()),
        T::Double | T::Numeric => to_double(value, wanted).map(Atomic::Double),
        T::Float => to_double(value, wanted).map(|number| Atomic::Float(number as f32)),
        T::Decimal => to_decimal(value).map(Atomic::Decimal),
        T::Integer => to_integer(value).map(Atomic::Integer),
        T::QName => to_qname(value),
        T::DateTime | T::Date | T::Time => to_date(value, wanted),
        T::Duration | T::YearMonthDuration | T::DayTimeDuration => to_duration(value, wanted),
    }
}

fn impossible(value: &Atomic, wanted: AtomicType) -> XPathError {
    type_error(format!("cannot cast a value of type {} to {}", value.atomic_type().name(), wanted.name()))
}

fn invalid(text: &str, wanted: AtomicType) -> XPathError {
    XPathError::new("FORG0001", format!("`{text}` is not a valid {}", wanted.name()))
}

fn out_of_range(wanted: AtomicType) -> XPathError {
    XPathError::new("FOCA0003", format!("value out of range of {}", wanted.name()))
}

fn to_boolean(value: &Atomic) -> Result<Atomic> {
    if let Some(text) = value.as_text() {
        return match number::trim(text) {
            "true" | "1" => Ok(Atomic::Boolean(true)),
            "false" | "0" => Ok(Atomic::Boolean(false)),
            _ => Err(invalid(text, AtomicType::Boolean)),
        };
    }
    if value.is_numeric() {
        let number = value.to_number(false);
        return Ok(Atomic::Boolean(number != 0.0 && !number.is_nan()));
    }
    Err(impossible(value, AtomicType::Boolean))
}

fn to_double(value: &Atomic, wanted: AtomicType) -> Result<f64> {
    if let Some(text) = value.as_text() {
        return number::parse_double(number::trim(text)).ok_or_else(|| invalid(text, wanted));
    }
    if value.is_numeric() || matches!(value, Atomic::Boolean(_)) {
        return Ok(value.to_number(false));
    }
    Err(impossible(value, wanted))
}

fn to_decimal(value: &Atomic) -> Result<Decimal> {
    if let Some(text) = value.as_text() {
        return Decimal::parse(number::trim(text)).ok_or_else(|| invalid(text, AtomicType::Decimal));
    }
    match value {
        Atomic::Integer(integer) => Ok(Decimal::from(*integer)),
        Atomic::Boolean(boolean) => Ok(Decimal::from(i64::from(*boolean))),
        Atomic::Double(_) | Atomic::Float(_) => {
            Decimal::from_f64(value.to_number(false)).ok_or_else(|| out_of_range(AtomicType::Decimal))
        }
        _ => Err(impossible(value, AtomicType::Decimal)),
    }
}

fn to_integer(value: &Atomic) -> Result<i64> {
    if let Some(text) = value.as_text() {
        let trimmed = number::trim(text);
        let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(invalid(text, AtomicType::Integer));
        }
        return trimmed.parse().map_err(|_| out_of_range(AtomicType::Integer));
    }
    match value {
        Atomic::Boolean(boolean) => Ok(i64::from(*boolean)),
        Atomic::Decimal(decimal) => decimal.to_integer().ok_or_else(|| out_of_range(AtomicType::Integer)),
        Atomic::Double(_) | Atomic::Float(_) => {
            let number = value.to_number(false).trunc();
            // Comparisons with NaN are false, so it is refused too.
            if number.abs() < 9.2e18 { Ok(number as i64) } else { Err(out_of_range(AtomicType::Integer)) }
        }
        _ => Err(impossible(value, AtomicType::Integer)),
    }
}

/// Without the namespaces of a context only names without a prefix can be made from text.
fn to_qname(value: &Atomic) -> Result<Atomic> {
    let Some(text) = value.as_text() else { return Err(impossible(value, AtomicType::QName)) };
    let local = number::trim(text);
    if !crate::lexer::is_nc_name(local) {
        return Err(XPathError::new("FONS0004", format!("cannot resolve the name `{text}`")));
    }
    Ok(Atomic::QName(Arc::new(QName { prefix: None, namespace: None, local: local.into() })))
}

fn to_date(value: &Atomic, wanted: AtomicType) -> Result<Atomic> {
    let wrap: fn(DateTime) -> Atomic = match wanted {
        AtomicType::DateTime => Atomic::DateTime,
        AtomicType::Date => Atomic::Date,
        _ => Atomic::Time,
    };
    if let Some(text) = value.as_text() {
        let trimmed = number::trim(text);
        let parsed = match wanted {
            AtomicType::DateTime => DateTime::parse_date_time(trimmed),
            AtomicType::Date => DateTime::parse_date(trimmed),
            _ => DateTime::parse_time(trimmed),
        };
        return parsed.map(wrap).ok_or_else(|| invalid(text, wanted));
    }
    match (value, wanted) {
        (Atomic::DateTime(moment), AtomicType::Date) => Ok(Atomic::Date(moment.date())),
        (Atomic::DateTime(moment), AtomicType::Time) => Ok(Atomic::Time(moment.time())),
        (Atomic::Date(date), AtomicType::DateTime) => Ok(Atomic::DateTime(*date)),
        _ => Err(impossible(value, wanted)),
    }
}

fn to_duration(value: &Atomic, wanted: AtomicType) -> Result<Atomic> {
    let keep = |duration: Duration| match wanted {
        AtomicType::YearMonthDuration => Atomic::YearMonthDuration(Duration::from_months(duration.months)),
        AtomicType::DayTimeDuration => Atomic::DayTimeDuration(Duration { months: 0, ..duration }),
        _ => Atomic::Duration(duration),
    };
    if let Some(text) = value.as_text() {
        let parsed = Duration::parse(number::trim(text)).ok_or_else(|| invalid(text, wanted))?;
        let fits = match wanted {
            AtomicType::YearMonthDuration => !text.contains(['D', 'T']),
            AtomicType::DayTimeDuration => {
                let date = text.split('T').next().unwrap_or(text);
                !date.contains(['Y', 'M'])
            }
            _ => true,
        };
        return if fits { Ok(keep(parsed)) } else { Err(invalid(text, wanted)) };
    }
    match value {
        Atomic::Duration(duration) | Atomic::YearMonthDuration(duration) | Atomic::DayTimeDuration(duration) => {
            Ok(keep(*duration))
        }
        _ => Err(impossible(value, wanted)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, wanted: AtomicType, expected: &str) {
        let shown = match cast(&Atomic::Untyped(text.into()), wanted, false) {
            Ok(value) => value.to_text(false).into_owned(),
            Err(error) => error.code().to_string(),
        };
        assert_eq!(shown, expected, "{text} as {}", wanted.name());
    }

    #[test]
    fn from_text() {
        use AtomicType as T;
        for (text, wanted, expected) in [
            (" 1 ", T::Boolean, "true"),
            ("yes", T::Boolean, "FORG0001"),
            (" +12 ", T::Integer, "12"),
            ("1.5", T::Integer, "FORG0001"),
            ("99999999999999999999", T::Integer, "FOCA0003"),
            ("1.50", T::Decimal, "1.5"),
            ("1e3", T::Double, "1000"),
            ("abc", T::Double, "FORG0001"),
            ("2026-11-21", T::Date, "2026-11-21"),
            ("2026-11-21", T::DateTime, "FORG0001"),
            ("P1Y", T::YearMonthDuration, "P1Y"),
            ("P1D", T::YearMonthDuration, "FORG0001"),
            ("P1M", T::DayTimeDuration, "FORG0001"),
            ("PT1M", T::DayTimeDuration, "PT1M"),
            ("a:b", T::QName, "FONS0004"),
        ] {
            check(text, wanted, expected);
        }
    }

    #[test]
    fn between_types() {
        use AtomicType as T;
        for (value, wanted, expected) in [
            (Atomic::Double(1.9), T::Integer, "1"),
            (Atomic::Double(f64::NAN), T::Integer, "FOCA0003"),
            (Atomic::Boolean(true), T::Double, "1"),
            (Atomic::Double(0.0), T::Boolean, "false"),
            (Atomic::Integer(3), T::Date, "XPTY0004"),
        ] {
            let shown = match cast(&value, wanted, false) {
                Ok(value) => value.to_text(false).into_owned(),
                Err(error) => error.code().to_string(),
            };
            assert_eq!(shown, expected);
        }
    }
}
