//! Text of addresses and header fields: escapes, parameters, syntax.

use std::borrow::Cow;

pub(crate) use penstock_projects::is_field_name;

/// Text of a path or query, or a value of a form, without its escapes (RFC 3986 §2.1); in a form `+` is a blank. What is
/// no escape stays as it is.
pub(crate) fn percent_decoded(text: &str, plus_is_blank: bool) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        let escaped = match (byte, after) {
            (b'%', [high, low, ..]) => digit(high).zip(digit(low)).map(|(high, low)| (high * 16 + low) as u8),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(if *byte == b'+' && plus_is_blank { b' ' } else { *byte }));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// Escapes everything that means something in a path or query (RFC 3986 §2.3).
pub(crate) fn percent_encode(out: &mut String, text: &str) {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.extend(['%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]),
        }
    }
}

/// Puts a part of the client's path, escaped as it was sent, into another target. There is no `/`, `?` or `#` in it; what
/// means nothing in a path would end a value of a query.
pub(crate) fn push_path_value(out: &mut String, value: &str, in_query: bool) {
    for letter in value.chars() {
        match letter {
            '&' if in_query => out.push_str("%26"),
            ';' if in_query => out.push_str("%3B"),
            '=' if in_query => out.push_str("%3D"),
            '+' if in_query => out.push_str("%2B"),
            other => out.push(other),
        }
    }
}

/// A path and query without the parameters of a name.
pub(crate) fn without_parameter(target: &str, name: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let mut kept = path.to_owned();
    let mut mark = '?';
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        if parameter.split('=').next() != Some(name) {
            kept.push(mark);
            kept.push_str(parameter);
            mark = '&';
        }
    }
    kept
}

/// Whether a text can be the value of a field: it does not end its line (RFC 9110 §5.5).
pub(crate) fn is_field_value(value: &str) -> bool {
    !value.bytes().any(|byte| (byte < 0x20 && byte != b'\t') || byte == 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_escapes_are_decoded() {
        for (text, expected) in [
            ("", ""),
            ("a b", "a b"),
            ("a%20b%2f%2F", "a b//"),
            ("a+b", "a b"),
            ("%c3%bc%ff", "ü\u{fffd}"),
            ("%zz%2%", "%zz%2%"),
            ("%+5%-1% 1", "% 5%-1% 1"),
        ] {
            assert_eq!(percent_decoded(text, true), expected, "{text}");
        }
        assert_eq!(percent_decoded("a+b%2B", false), "a+b+");
    }

    #[test]
    fn parameters_leave_a_query() {
        for (target, name, expected) in
            [("/a", "x", "/a"), ("/a?x=1", "x", "/a"), ("/a?x=1&y=2&x=3", "x", "/a?y=2"), ("/a?xx=1&x", "x", "/a?xx=1")]
        {
            assert_eq!(without_parameter(target, name), expected, "{target}");
        }
    }
}
