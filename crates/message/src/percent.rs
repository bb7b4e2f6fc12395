//! Percent-encoding of addresses (RFC 3986 §2.1) and forms (URL Standard §5).

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str};

/// What is escaped in a text that may contain anything: all but the unreserved characters of RFC 3986 §2.3.
pub const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Text of a path or query, or a value of a form, without its escapes; in a form `+` is a space. What is no escape stays as it
/// is, what is not UTF-8 becomes a replacement character.
pub fn percent_decoded(text: &str, plus_is_space: bool) -> Cow<'_, str> {
    if plus_is_space && text.contains('+') {
        let text = text.replace('+', " ");
        return Cow::Owned(percent_decode_str(&text).decode_utf8_lossy().into_owned());
    }
    percent_decode_str(text).decode_utf8_lossy()
}

/// Adds a field to a form.
pub fn push_field(form: &mut String, name: &str, value: &str) {
    if !form.is_empty() {
        form.push('&');
    }
    form.extend(form_urlencoded::byte_serialize(name.as_bytes()));
    form.push('=');
    form.extend(form_urlencoded::byte_serialize(value.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_escapes_are_decoded() {
        for (text, address, form) in [
            ("a%20b", "a b", "a b"),
            ("a+b%2B", "a+b+", "a b+"),
            ("100%", "100%", "100%"),
            ("%zz%4", "%zz%4", "%zz%4"),
            ("%+1", "%+1", "% 1"),
            ("%FF%c3%a9", "\u{fffd}é", "\u{fffd}é"),
        ] {
            assert_eq!((&*percent_decoded(text, false), &*percent_decoded(text, true)), (address, form), "{text}");
        }
    }

    #[test]
    fn fields_of_a_form() {
        let mut form = String::new();
        push_field(&mut form, "scope", "a b/c");
        push_field(&mut form, "p", "ä&=-._*~");
        assert_eq!(form, "scope=a+b%2Fc&p=%C3%A4%26%3D-._*%7E");
    }
}
