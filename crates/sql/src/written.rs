//! Values as Java writes what JDBC drivers make of them.

use penstock_message::double_to_text;

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// A single as Java's `Float.toString` writes it: the shortest digits of a single in the form of a double.
pub(crate) fn single(number: f32) -> String {
    number.to_string().parse().map_or_else(|_| number.to_string(), double_to_text)
}

/// How fractions of seconds are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fraction {
    /// `java.sql.Time` has none.
    AsItIs,
    /// `java.sql.Timestamp` has at least one digit.
    AtLeastOneDigit,
}

/// The fraction of a second with its point, without zeros at the end.
pub(crate) fn fraction(micros: u32, fraction: Fraction) -> String {
    let digits = format!("{micros:06}");
    match digits.trim_end_matches('0') {
        "" if fraction == Fraction::AtLeastOneDigit => ".0".to_owned(),
        "" => String::new(),
        digits => format!(".{digits}"),
    }
}
