//! `application/x-www-form-urlencoded`: fields as child elements of `mediate`, and back.

use std::borrow::Cow;

use penstock_json::mapping::{element_name, member_name};
use penstock_xml::{Document, NodeId, TreeBuilder};

/// The element around the fields.
pub(super) const ROOT: &str = "mediate";

/// Limit of fields: lookups by name are linear.
const FIELDS_MAX: usize = 10_000;

/// Adds the fields in `text` to the tree. Fields beyond the limit are an error.
pub(super) fn build(builder: &mut TreeBuilder, text: &str) -> Result<(), String> {
    builder.start_element("", ROOT, "");
    for (index, field) in text.trim().split('&').filter(|field| !field.is_empty()).enumerate() {
        if index == FIELDS_MAX {
            return Err(format!("the form has more than {FIELDS_MAX} fields"));
        }
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        builder.start_element("", &element_name(&decode(name)), "");
        builder.text(&decode(value));
        builder.end_element();
    }
    builder.end_element();
    Ok(())
}

/// The child elements of `payload` as fields.
pub(super) fn format(document: &Document, payload: NodeId) -> String {
    let mut out = String::new();
    for field in document.children(payload).filter(|child| document.is_element(*child)) {
        push_field(&mut out, &member_name(document.local_name(field)), &document.string_value(field));
    }
    out
}

pub(super) fn push_field(out: &mut String, name: &str, value: &str) {
    if !out.is_empty() {
        out.push('&');
    }
    encode(out, name);
    out.push('=');
    encode(out, value);
}

/// The URL Standard's serializer for forms: a blank is `+`.
fn encode(out: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
}

/// A name or value; what is not an escape stays as it is, what is not UTF-8 becomes a replacement character.
fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.as_bytes();
    while let [first, rest @ ..] = bytes {
        bytes = rest;
        let escaped = || {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u8::from_str_radix(digits, 16).ok())?
        };
        match (first, escaped()) {
            (b'%', Some(byte)) => {
                out.push(byte);
                bytes = &rest[2..];
            }
            (b'+', _) => out.push(b' '),
            (other, _) => out.push(*other),
        }
    }
    Cow::Owned(String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

#[cfg(test)]
mod tests {
    use penstock_xml::{WriteOptions, to_vec};

    use super::*;

    #[test]
    fn fields_become_elements_and_fields_again() {
        for (text, xml, again) in [
            ("", "<mediate/>", ""),
            ("a=1&b=two+words&c", "<mediate><a>1</a><b>two words</b><c/></mediate>", "a=1&b=two+words&c="),
            ("a=1&a=2", "<mediate><a>1</a><a>2</a></mediate>", "a=1&a=2"),
            ("e=%C3%A9%3D&f=%zz%4", "<mediate><e>é=</e><f>%zz%4</f></mediate>", "e=%C3%A9%3D&f=%25zz%254"),
            (
                "1+x=%FF",
                "<mediate><_JsonReader_PD_1_JsonReader_32_x>\u{fffd}</_JsonReader_PD_1_JsonReader_32_x></mediate>",
                "1+x=%EF%BF%BD",
            ),
        ] {
            let mut builder = TreeBuilder::new();
            build(&mut builder, text).unwrap();
            let document = builder.finish();
            let root = document.root_element().unwrap();
            assert_eq!(String::from_utf8(to_vec(&document, root, &WriteOptions::default())).unwrap(), xml);
            assert_eq!(format(&document, root), again);
        }
    }
}
