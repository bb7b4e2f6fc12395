//! Text that means a number or a literal.

use super::Options;

/// What text becomes.
pub(super) enum Primitive<'t> {
    /// Written as it is: a number with its digits, `true`, `false` or `null`.
    Literal(&'t str),
    /// A string.
    Text(std::borrow::Cow<'t, str>),
}

pub(super) fn parse<'t>(text: &'t str, options: &Options) -> Primitive<'t> {
    if !options.auto_primitive {
        return Primitive::Text(text.into());
    }
    if let Some((pattern, replacement)) = &options.primitive_replacement
        && pattern.find(text).is_some_and(|found| found.start() == 0)
    {
        return Primitive::Text(pattern.replace(text, replacement.as_str()));
    }
    let excluded = || options.primitive_exclusion.as_ref().is_some_and(|pattern| pattern.is_match(text));
    if matches!(text, "true" | "false" | "null") || (is_number(text) && !excluded()) {
        Primitive::Literal(text)
    } else {
        Primitive::Text(text.into())
    }
}

/// Whether a text is a number of JSON (RFC 8259 §6): no leading zeros, no sign but minus.
pub fn is_number(text: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let integer = digits(unsigned);
    if integer == 0 || (integer > 1 && unsigned.starts_with('0')) {
        return false;
    }
    let mut rest = &unsigned[integer..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let length = digits(fraction);
        if length == 0 {
            return false;
        }
        rest = &fraction[length..];
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let length = digits(exponent);
        return length > 0 && length == exponent.len();
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::is_number;

    #[test]
    fn numbers_are_what_json_calls_numbers() {
        for text in ["0", "-0", "25.0000", "1e5", "-1.5E-10", "123456789012345678901234567890"] {
            assert!(is_number(text), "{text}");
        }
        for text in ["", "-", "00123", "+1", "1.", ".5", "1e", "1e+", "0x1", "1 ", "NaN", "١"] {
            assert!(!is_number(text), "{text}");
        }
    }
}
