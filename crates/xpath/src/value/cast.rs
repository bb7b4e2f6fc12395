//! Casts between atomic types.

use std::sync::Arc;

use super::derived::{in_range, restricted_string};
use super::{Atomic, AtomicType, DateTime, Decimal, Duration, QName, binary, number};
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
        T::Uri => match lexical(value) {
            Some(text) => Ok(Atomic::Uri(number::trim(text).into())),
            None => Err(impossible(value, wanted)),
        },
        T::Boolean => to_boolean(value),
        T::Numeric if value.is_numeric() => Ok(value.clone()),
        T::Double | T::Numeric => to_double(value, wanted).map(Atomic::Double),
        T::Float => to_float(value).map(Atomic::Float),
        T::Decimal => to_decimal(value).map(Atomic::Decimal),
        T::Integer => to_integer(value, wanted).map(Atomic::from),
        T::QName => to_qname(value),
        T::Notation => Err(impossible(value, wanted)),
        T::DateTime | T::Date | T::Time | T::GYear | T::GYearMonth | T::GMonth | T::GMonthDay | T::GDay => {
            to_date(value, wanted)
        }
        T::Duration | T::YearMonthDuration | T::DayTimeDuration => to_duration(value, wanted),
        T::HexBinary | T::Base64Binary => to_binary(value, wanted),
        _ if wanted.primitive() == T::Integer => to_derived_integer(value, wanted),
        _ => {
            let text = value.to_text(compat);
            let restricted = restricted_string(&text, wanted).ok_or_else(|| invalid(&text, wanted))?;
            Ok(Atomic::DerivedString(wanted, restricted.into()))
        }
    }
}

/// The text that a cast reads: that of strings and untyped values. Other types have casts of their own.
fn lexical(value: &Atomic) -> Option<&str> {
    match value {
        Atomic::String(text) | Atomic::Untyped(text) | Atomic::DerivedString(_, text) => Some(text),
        _ => None,
    }
}

fn to_derived_integer(value: &Atomic, wanted: AtomicType) -> Result<Atomic> {
    let number = to_integer(value, wanted)?;
    if !in_range(number, wanted) {
        return Err(invalid(&number.to_string(), wanted));
    }
    Ok(i64::try_from(number).map_or_else(|_| Atomic::from(number), |number| Atomic::DerivedInteger(wanted, number)))
}

fn to_binary(value: &Atomic, wanted: AtomicType) -> Result<Atomic> {
    let hex = wanted == AtomicType::HexBinary;
    let bytes = match (value, lexical(value)) {
        (_, Some(text)) => {
            let trimmed = number::trim(text);
            let parsed = if hex { binary::parse_hex(trimmed) } else { binary::parse_base64(trimmed) };
            parsed.ok_or_else(|| invalid(text, wanted))?
        }
        (Atomic::HexBinary(bytes) | Atomic::Base64Binary(bytes), _) => Arc::clone(bytes),
        _ => return Err(impossible(value, wanted)),
    };
    Ok(if hex { Atomic::HexBinary(bytes) } else { Atomic::Base64Binary(bytes) })
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

fn not_finite(value: f64) -> XPathError {
    XPathError::new("FOCA0002", format!("{} is no whole or decimal number", number::format_double(value, false)))
}

fn to_boolean(value: &Atomic) -> Result<Atomic> {
    if let Some(text) = lexical(value) {
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
    if let Some(text) = lexical(value) {
        return number::parse_double(number::trim(text)).ok_or_else(|| invalid(text, wanted));
    }
    if value.is_numeric() || matches!(value, Atomic::Boolean(_)) {
        return Ok(value.to_number(false));
    }
    Err(impossible(value, wanted))
}

/// Text and decimals are rounded once, so not by way of a double.
fn to_float(value: &Atomic) -> Result<f32> {
    let rounded = to_double(value, AtomicType::Float)?;
    let exact = match value {
        Atomic::Decimal(decimal) => decimal.to_string().parse().ok(),
        _ if rounded.is_finite() => lexical(value).and_then(|text| number::trim(text).parse().ok()),
        _ => None,
    };
    Ok(exact.unwrap_or(rounded as f32))
}

fn to_decimal(value: &Atomic) -> Result<Decimal> {
    if let Some(text) = lexical(value) {
        return Decimal::parse(number::trim(text)).ok_or_else(|| invalid(text, AtomicType::Decimal));
    }
    let too_large = || XPathError::new("FOCA0001", "value out of range of xs:decimal");
    match value {
        Atomic::Boolean(boolean) => Ok(Decimal::from(i64::from(*boolean))),
        Atomic::Decimal(decimal) => Ok(*decimal),
        Atomic::Double(number) if !number.is_finite() => Err(not_finite(*number)),
        Atomic::Float(number) if !number.is_finite() => Err(not_finite(f64::from(*number))),
        Atomic::Double(number) => Decimal::from_f64(*number).ok_or_else(too_large),
        Atomic::Float(number) => Decimal::from_f64(f64::from(*number)).ok_or_else(too_large),
        _ => match value.as_integer() {
            Some(integer) => Decimal::from_i128(integer).ok_or_else(too_large),
            None => Err(impossible(value, AtomicType::Decimal)),
        },
    }
}

fn to_integer(value: &Atomic, wanted: AtomicType) -> Result<i128> {
    if let Some(text) = lexical(value) {
        let trimmed = number::trim(text);
        let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(invalid(text, wanted));
        }
        return trimmed.parse().map_err(|_| out_of_range(wanted));
    }
    match value {
        Atomic::Boolean(boolean) => Ok(i128::from(*boolean)),
        Atomic::Decimal(decimal) => Ok(decimal.whole_part()),
        Atomic::Double(_) | Atomic::Float(_) => {
            let number = value.to_number(false).trunc();
            if !number.is_finite() {
                return Err(not_finite(number));
            }
            // The largest power of ten whose doubles convert without loss of size.
            if number.abs() < 1e38 { Ok(number as i128) } else { Err(out_of_range(wanted)) }
        }
        _ => value.as_integer().ok_or_else(|| impossible(value, wanted)),
    }
}

/// Without the namespaces of a context only names without a prefix can be made from text.
fn to_qname(value: &Atomic) -> Result<Atomic> {
    let Some(text) = lexical(value) else { return Err(impossible(value, AtomicType::QName)) };
    let local = number::trim(text);
    let prefixed = local
        .split_once(':')
        .is_some_and(|(prefix, local)| crate::lexer::is_nc_name(prefix) && crate::lexer::is_nc_name(local));
    if !crate::lexer::is_nc_name(local) && !prefixed {
        return Err(invalid(text, AtomicType::QName));
    }
    if prefixed {
        return Err(XPathError::new("FONS0004", format!("cannot resolve the name `{text}`")));
    }
    Ok(Atomic::QName(Arc::new(QName { prefix: None, namespace: None, local: local.into() })))
}

fn to_date(value: &Atomic, wanted: AtomicType) -> Result<Atomic> {
    use AtomicType as T;
    let wrap = |moment: DateTime| match wanted {
        T::DateTime => Atomic::DateTime(moment),
        T::Date => Atomic::Date(moment),
        T::Time => Atomic::Time(moment),
        _ => Atomic::Gregorian(wanted, moment),
    };
    if let Some(text) = lexical(value) {
        let trimmed = number::trim(text);
        let parsed = match wanted {
            T::DateTime => DateTime::parse_date_time(trimmed),
            T::Date => DateTime::parse_date(trimmed),
            T::Time => DateTime::parse_time(trimmed),
            _ => DateTime::parse_gregorian(trimmed, wanted),
        };
        return parsed.map(wrap).ok_or_else(|| invalid(text, wanted));
    }
    match (value, wanted) {
        (Atomic::DateTime(moment), T::Date) => Ok(Atomic::Date(moment.date())),
        (Atomic::DateTime(moment), T::Time) => Ok(Atomic::Time(moment.time())),
        (Atomic::Date(date), T::DateTime) => Ok(Atomic::DateTime(*date)),
        (
            Atomic::DateTime(moment) | Atomic::Date(moment),
            T::GYear | T::GYearMonth | T::GMonth | T::GMonthDay | T::GDay,
        ) => Ok(Atomic::Gregorian(wanted, moment.to_gregorian(wanted))),
        _ => Err(impossible(value, wanted)),
    }
}

fn to_duration(value: &Atomic, wanted: AtomicType) -> Result<Atomic> {
    let keep = |duration: Duration| match wanted {
        AtomicType::YearMonthDuration => Atomic::YearMonthDuration(Duration::from_months(duration.months)),
        AtomicType::DayTimeDuration => Atomic::DayTimeDuration(Duration { months: 0, ..duration }),
        _ => Atomic::Duration(duration),
    };
    if let Some(text) = lexical(value) {
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
            ("99999999999999999999", T::Integer, "99999999999999999999"),
            ("1e40", T::Integer, "FORG0001"),
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
            ("300", T::Byte, "FORG0001"),
            ("18446744073709551615", T::UnsignedLong, "18446744073709551615"),
            ("0", T::PositiveInteger, "FORG0001"),
            (" a  b ", T::Token, "a b"),
            ("a b", T::NcName, "FORG0001"),
            ("en-GB", T::Language, "en-GB"),
            ("2001-14:00", T::GYear, "2001-14:00"),
            ("--02-29", T::GMonthDay, "--02-29"),
            ("--02-30", T::GMonthDay, "FORG0001"),
            ("---31Z", T::GDay, "---31Z"),
            ("-0044-12", T::GYearMonth, "-0044-12"),
            ("0aFF", T::HexBinary, "0AFF"),
            ("0aF", T::HexBinary, "FORG0001"),
            ("Y W J j", T::Base64Binary, "YWJj"),
            ("YR==", T::Base64Binary, "FORG0001"),
        ] {
            check(text, wanted, expected);
        }
    }

    #[test]
    fn between_types() {
        use AtomicType as T;
        for (value, wanted, expected) in [
            (Atomic::Double(1.9), T::Integer, "1"),
            (Atomic::Double(f64::NAN), T::Integer, "FOCA0002"),
            (Atomic::Boolean(true), T::Double, "1"),
            (Atomic::Double(0.0), T::Boolean, "false"),
            (Atomic::Integer(3), T::Date, "XPTY0004"),
            (Atomic::Uri("1".into()), T::Integer, "XPTY0004"),
            (Atomic::HexBinary([0x61].into()), T::Base64Binary, "YQ=="),
            (Atomic::DerivedInteger(T::Byte, 5), T::Short, "5"),
        ] {
            let shown = match cast(&value, wanted, false) {
                Ok(value) => value.to_text(false).into_owned(),
                Err(error) => error.code().to_string(),
            };
            assert_eq!(shown, expected);
        }
    }
}
