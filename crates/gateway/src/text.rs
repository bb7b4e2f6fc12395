//! Text of addresses and header fields: escapes, parameters, syntax.

use penstock_message::RESERVED;
pub(crate) use penstock_message::percent_decoded;
pub(crate) use penstock_projects::is_field_name;
use percent_encoding::utf8_percent_encode;

/// Adds a text with everything escaped that means something in a path or query (RFC 3986 §2.3).
pub(crate) fn percent_encode(out: &mut String, text: &str) {
    out.extend(utf8_percent_encode(text, RESERVED));
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
    fn parameters_leave_a_query() {
        for (target, name, expected) in
            [("/a", "x", "/a"), ("/a?x=1", "x", "/a"), ("/a?x=1&y=2&x=3", "x", "/a?y=2"), ("/a?xx=1&x", "x", "/a?xx=1")]
        {
            assert_eq!(without_parameter(target, name), expected, "{target}");
        }
    }
}
