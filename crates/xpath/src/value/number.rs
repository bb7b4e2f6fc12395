//! Numbers to text and back, by the rules of XPath 1.0 and by those of XML Schema.

use std::borrow::Cow;

/// A double as text: never an exponent in XPath 1.0 (`compat`), the canonical form of `xs:double` otherwise.
pub fn format_double(value: f64, compat: bool) -> Cow<'static, str> {
    if value.is_nan() {
        return Cow::Borrowed("NaN");
    }
    if value.is_infinite() {
        return Cow::Borrowed(match (value > 0.0, compat) {
            (true, true) => "Infinity",
            (false, true) => "-Infinity",
            (true, false) => "INF",
            (false, false) => "-INF",
        });
    }
    if value == 0.0 {
        return Cow::Borrowed(if value.is_sign_negative() && !compat { "-0" } else { "0" });
    }
    let size = value.abs();
    if !compat && !(1e-6..1e6).contains(&size) {
        return Cow::Owned(scientific(format!("{value:E}")));
    }
    // The largest integers a double holds exactly; beyond them the general form is needed.
    if size < 9e15 && value.fract() == 0.0 {
        return Cow::Owned((value as i64).to_string());
    }
    Cow::Owned(value.to_string())
}

/// A float as text.
pub fn format_float(value: f32, compat: bool) -> String {
    if !value.is_finite() || value == 0.0 {
        return format_double(f64::from(value), compat).into_owned();
    }
    if !compat && !(1e-6..1e6).contains(&value.abs()) {
        return scientific(format!("{value:E}"));
    }
    value.to_string()
}

/// `1E7` → `1.0E7`, as the canonical form demands.
fn scientific(text: String) -> String {
    if text.contains('.') { text } else { text.replace('E', ".0E") }
}

/// White space of XML, which is all that numbers may be surrounded by.
#[inline]
pub fn trim(text: &str) -> &str {
    let is_inside = |byte: Option<&u8>| byte.is_none_or(|byte| *byte > b' ');
    if is_inside(text.as_bytes().first()) && is_inside(text.as_bytes().last()) {
        return text;
    }
    text.trim_matches([' ', '\t', '\r', '\n'])
}

/// Text to number: the grammar of XPath 1.0 (`compat`), or that of `xs:double`. NaN when it is none.
pub fn parse(text: &str, compat: bool) -> f64 {
    let text = trim(text);
    if let Some(value) = parse_small(text) {
        return value;
    }
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    if compat {
        return if is_decimal(unsigned) { text.parse().unwrap_or(f64::NAN) } else { f64::NAN };
    }
    parse_double(text).unwrap_or(f64::NAN)
}

/// Powers of ten that doubles hold exactly, as many as `parse_small` needs.
const POWERS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// A few digits with a point among them or not, which is what most numbers in documents are. Digits and power of ten
/// are exact, so their quotient is rounded once, as it must be.
fn parse_small(text: &str) -> Option<f64> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 15 {
        return None;
    }
    let mut value = 0u64;
    let mut point = None;
    for (index, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => value = value * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() && digits.len() > 1 => point = Some(index),
            _ => return None,
        }
    }
    let places = point.map_or(0, |point| digits.len() - 1 - point);
    let value = value as f64 / POWERS[places];
    Some(if negative { -value } else { value })
}

/// Digits, with a point somewhere or not.
fn is_decimal(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    (!whole.is_empty() || !fraction.is_empty())
        && whole.bytes().all(|b| b.is_ascii_digit())
        && fraction.bytes().all(|b| b.is_ascii_digit())
}

/// The lexical form of `xs:double`.
pub fn parse_double(text: &str) -> Option<f64> {
    match text {
        "INF" | "+INF" => return Some(f64::INFINITY),
        "-INF" => return Some(f64::NEG_INFINITY),
        "NaN" => return Some(f64::NAN),
        _ => {}
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let exponent_fits = exponent.is_none_or(|e| {
        let digits = e.strip_prefix(['+', '-']).unwrap_or(e);
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    });
    if is_decimal(mantissa) && exponent_fits { text.parse().ok() } else { None }
}

/// `round()`: halves go up, towards positive infinity, and the sign of zero stays.
pub fn round(value: f64) -> f64 {
    if !value.is_finite() || value.fract() == 0.0 {
        return value;
    }
    if (-0.5..0.0).contains(&value) {
        return -0.0;
    }
    // Not `(value + 0.5).floor()`, which is wrong just below one half.
    let floor = value.floor();
    if value - floor >= 0.5 { floor + 1.0 } else { floor }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_as_text() {
        for (value, one, two) in [
            (1.0, "1", "1"),
            (-1.5, "-1.5", "-1.5"),
            (1e6, "1000000", "1.0E6"),
            (123456789.0, "123456789", "1.23456789E8"),
            (1e20, "100000000000000000000", "1.0E20"),
            (1e-7, "0.0000001", "1.0E-7"),
            (0.1, "0.1", "0.1"),
            (-0.0, "0", "-0"),
            (f64::NAN, "NaN", "NaN"),
            (f64::INFINITY, "Infinity", "INF"),
            (f64::NEG_INFINITY, "-Infinity", "-INF"),
        ] {
            assert_eq!(format_double(value, true), one);
            assert_eq!(format_double(value, false), two);
        }
    }

    #[test]
    fn text_as_doubles() {
        for (text, one, two) in [
            (" 12 ", 12.0, 12.0),
            ("-1.50", -1.5, -1.5),
            ("-.5", -0.5, -0.5),
            ("5.", 5.0, 5.0),
            ("+1", f64::NAN, 1.0),
            ("1e3", f64::NAN, 1000.0),
            ("INF", f64::NAN, f64::INFINITY),
            ("", f64::NAN, f64::NAN),
            ("-", f64::NAN, f64::NAN),
            (".", f64::NAN, f64::NAN),
            ("--1", f64::NAN, f64::NAN),
            ("1 2", f64::NAN, f64::NAN),
            ("inf", f64::NAN, f64::NAN),
            ("12345678901234567890", 12345678901234567890.0, 12345678901234567890.0),
        ] {
            for (compat, expected) in [(true, one), (false, two)] {
                let value = parse(text, compat);
                assert!(value == expected || (value.is_nan() && expected.is_nan()), "{text} {compat} {value}");
            }
        }
    }

    #[test]
    fn rounding() {
        for (value, expected) in [(0.5, "1"), (-0.5, "-0"), (-1.5, "-1"), (2.5, "3"), (0.49999999999999994, "0")] {
            assert_eq!(format_double(round(value), false), expected, "{value}");
        }
    }
}
