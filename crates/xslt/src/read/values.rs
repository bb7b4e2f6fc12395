//! The values that attributes of XSLT elements may have, as far as a list can say it.

/// What an attribute takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttributeValue {
    /// `yes` or `no`; XSLT 3.0 writes `true` and `false`, too.
    YesNo,
    /// `yes`, `no` or `omit`.
    YesNoOmit,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// One of these words, or a name with a prefix, which another processor may know.
    OneOfOrQName(&'static [&'static str]),
    /// A number that is written in digits.
    Digits,
}

use AttributeValue::{Digits, OneOf, OneOfOrQName, YesNo, YesNoOmit};

/// Element (`*` for all), attribute, value, and whether the attribute is a value template.
static VALUES: &[(&str, &str, AttributeValue, bool)] = &[
    ("*", "default-validation", OneOf(&["preserve", "strip"]), false),
    ("*", "validation", OneOf(&["strict", "lax", "preserve", "strip"]), false),
    ("stylesheet", "input-type-annotations", OneOf(&["preserve", "strip", "unspecified"]), false),
    ("transform", "input-type-annotations", OneOf(&["preserve", "strip", "unspecified"]), false),
    ("copy", "copy-namespaces", YesNo, false),
    ("copy", "inherit-namespaces", YesNo, false),
    ("copy-of", "copy-namespaces", YesNo, false),
    ("element", "inherit-namespaces", YesNo, false),
    ("function", "override", YesNo, false),
    ("message", "terminate", YesNo, true),
    ("number", "grouping-size", Digits, true),
    ("number", "letter-value", OneOf(&["alphabetic", "traditional"]), true),
    ("number", "level", OneOf(&["single", "multiple", "any"]), false),
    ("output", "byte-order-mark", YesNo, false),
    ("output", "escape-uri-attributes", YesNo, false),
    ("output", "include-content-type", YesNo, false),
    ("output", "indent", YesNo, false),
    ("output", "omit-xml-declaration", YesNo, false),
    ("output", "standalone", YesNoOmit, false),
    ("output", "undeclare-prefixes", YesNo, false),
    ("param", "required", YesNo, false),
    ("param", "tunnel", YesNo, false),
    ("result-document", "byte-order-mark", YesNo, true),
    ("result-document", "escape-uri-attributes", YesNo, true),
    ("result-document", "include-content-type", YesNo, true),
    ("result-document", "indent", YesNo, true),
    ("result-document", "omit-xml-declaration", YesNo, true),
    ("result-document", "standalone", YesNoOmit, true),
    ("result-document", "undeclare-prefixes", YesNo, true),
    ("sort", "case-order", OneOf(&["upper-first", "lower-first"]), true),
    ("sort", "data-type", OneOfOrQName(&["text", "number"]), true),
    ("sort", "order", OneOf(&["ascending", "descending"]), true),
    ("sort", "stable", YesNo, true),
    ("text", "disable-output-escaping", YesNo, false),
    ("value-of", "disable-output-escaping", YesNo, false),
    ("with-param", "tunnel", YesNo, false),
];

impl AttributeValue {
    /// What an attribute of an element takes, and whether it is a value template; `None` when any text will do.
    pub fn find(element: &str, attribute: &str) -> Option<(AttributeValue, bool)> {
        let fits = |entry: &&(&str, &str, AttributeValue, bool)| {
            entry.1 == attribute && (entry.0 == element || entry.0 == "*")
        };
        VALUES.iter().find(fits).map(|(_, _, value, template)| (*value, *template))
    }

    /// Whether the attribute may have this value.
    pub fn accepts(self, text: &str) -> bool {
        let text = text.trim();
        match self {
            YesNo => yes_or_no(text).is_some(),
            YesNoOmit => text == "omit" || yes_or_no(text).is_some(),
            OneOf(words) => words.contains(&text),
            OneOfOrQName(words) => words.contains(&text) || text.contains(':'),
            Digits => text.is_empty() || text.bytes().all(|byte| byte.is_ascii_digit()),
        }
    }

    /// The values, for messages.
    pub fn describe(self) -> String {
        match self {
            YesNo => "`yes` or `no`".to_owned(),
            YesNoOmit => "`yes`, `no` or `omit`".to_owned(),
            OneOf(words) | OneOfOrQName(words) => format!("`{}`", words.join("`, `")),
            Digits => "a number".to_owned(),
        }
    }
}

/// The value of a yes/no attribute.
pub(crate) fn yes_or_no(text: &str) -> Option<bool> {
    match text.trim() {
        "yes" | "true" | "1" => Some(true),
        "no" | "false" | "0" => Some(false),
        _ => None,
    }
}
