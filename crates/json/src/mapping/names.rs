//! Member names as element names and back.

use std::borrow::Cow;
use std::fmt::Write;

const ESCAPE: &str = "_JsonReader_";
const DIGIT: &str = "_JsonReader_PD_";
const DOLLAR: &str = "_JsonReader_PS_";
/// The member whose name is empty. No character has the code 0 in XML, so nothing else is written so.
const EMPTY: &str = "_JsonReader_0_";

/// A member name as the name of an element or attribute. A leading digit and `$` have escapes of
/// their own; any other character that no name may contain is written with its code point.
pub(super) fn to_element(name: &str, escape_colon: bool) -> Cow<'_, str> {
    let valid = |character: char| is_name_character(character) || (character == ':' && !escape_colon);
    let Some(first) = name.chars().next() else { return Cow::Borrowed(EMPTY) };
    if (is_name_start(first) || (first == ':' && !escape_colon)) && name.chars().all(valid) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len() + DIGIT.len());
    for (index, character) in name.char_indices() {
        match character {
            '0'..='9' if index == 0 => out.extend([DIGIT, character.encode_utf8(&mut [0; 4])]),
            '$' if index == 0 => out.push_str(DOLLAR),
            _ if valid(character) && (index > 0 || is_name_start(character)) => out.push(character),
            _ => {
                let _ = write!(out, "{ESCAPE}{}_", character as u32);
            }
        }
    }
    Cow::Owned(out)
}

/// The member name that [`to_element`] made an element name of.
pub(super) fn to_member(name: &str) -> Cow<'_, str> {
    if !name.contains(ESCAPE) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    if let Some(after) = rest.strip_prefix(DIGIT) {
        rest = after;
    } else if let Some(after) = rest.strip_prefix(DOLLAR) {
        out.push('$');
        rest = after;
    }
    while let Some((before, escaped)) = rest.split_once(ESCAPE) {
        out.push_str(before);
        let decoded =
            escaped.split_once('_').and_then(|(code, after)| Some((char::from_u32(code.parse().ok()?)?, after)));
        match decoded {
            Some((character, after)) => {
                out.extend((character != '\0').then_some(character));
                rest = after;
            }
            None => {
                out.push_str(ESCAPE);
                rest = escaped;
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// XML 1.0 §2.3 without the colon.
fn is_name_start(character: char) -> bool {
    matches!(character,
        'A'..='Z' | '_' | 'a'..='z' | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
        | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}' | '\u{2070}'..='\u{218F}'
        | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}'
        | '\u{10000}'..='\u{EFFFF}')
}

fn is_name_character(character: char) -> bool {
    is_name_start(character)
        || matches!(character,
            '-' | '.' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for (member, element) in [
            ("plain", "plain"),
            ("größe", "größe"),
            ("12x12", "_JsonReader_PD_12x12"),
            ("$ref", "_JsonReader_PS_ref"),
            ("stock quote", "stock_JsonReader_32_quote"),
            ("a/b$", "a_JsonReader_47_b_JsonReader_36_"),
            ("-x", "_JsonReader_45_x"),
            ("a:b", "a:b"),
            ("", "_JsonReader_0_"),
        ] {
            assert_eq!(to_element(member, false), element);
            assert_eq!(to_member(element), member);
        }
        assert_eq!(to_element("a:b", true), "a_JsonReader_58_b");
        assert_eq!(to_member("a_JsonReader_x_b"), "a_JsonReader_x_b");
        assert_eq!(to_member("a_JsonReader_99999999_b"), "a_JsonReader_99999999_b");
    }
}
