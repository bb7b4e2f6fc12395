//! Strings as Java counts and encodes them.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};

/// A string as units of UTF-16. Positions in ASCII are bytes, so nothing is copied for it.
pub(super) enum Units<'t> {
    Ascii(&'t str),
    Wide(Vec<u16>),
}

impl<'t> Units<'t> {
    pub fn new(text: &'t str) -> Units<'t> {
        if text.is_ascii() { Units::Ascii(text) } else { Units::Wide(text.encode_utf16().collect()) }
    }

    pub fn len(&self) -> usize {
        match self {
            Units::Ascii(text) => text.len(),
            Units::Wide(units) => units.len(),
        }
    }

    /// The part between two positions; half of a surrogate pair becomes a replacement character.
    pub fn slice(&self, start: usize, end: usize) -> Option<Cow<'t, str>> {
        match self {
            Units::Ascii(text) => text.get(start..end).map(Cow::Borrowed),
            Units::Wide(units) => units.get(start..end).map(|units| Cow::Owned(String::from_utf16_lossy(units))),
        }
    }

    /// Where `wanted` is, from a position on.
    pub fn find(&self, wanted: &Units<'_>, from: usize) -> Option<usize> {
        let from = from.min(self.len());
        match (self, wanted) {
            (Units::Ascii(text), Units::Ascii(wanted)) => text[from..].find(wanted).map(|at| from + at),
            (Units::Ascii(_), Units::Wide(_)) => None,
            (Units::Wide(units), _) => {
                let wanted = match wanted {
                    Units::Ascii(text) => text.encode_utf16().collect(),
                    Units::Wide(units) => units.clone(),
                };
                (from..=units.len()).find(|at| units[*at..].starts_with(&wanted))
            }
        }
    }
}

/// Charsets text can be turned into.
#[derive(Clone, Copy)]
pub(super) enum Charset {
    Utf8,
    Utf16,
    Utf16Be,
    Utf16Le,
    Latin1,
    Ascii,
}

impl Charset {
    pub fn parse(name: &str) -> Option<Charset> {
        Some(match name.to_ascii_uppercase().as_str() {
            "UTF-8" | "UTF8" => Charset::Utf8,
            "UTF-16" | "UTF16" => Charset::Utf16,
            "UTF-16BE" => Charset::Utf16Be,
            "UTF-16LE" => Charset::Utf16Le,
            "ISO-8859-1" | "ISO8859_1" | "LATIN1" => Charset::Latin1,
            "US-ASCII" | "ASCII" => Charset::Ascii,
            _ => return None,
        })
    }

    pub fn encode(self, text: &str) -> Cow<'_, [u8]> {
        let narrow = |limit: u32| {
            text.chars().map(|character| if (character as u32) < limit { character as u8 } else { b'?' }).collect()
        };
        let wide = |bytes: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(bytes);
        match self {
            Charset::Utf8 => Cow::Borrowed(text.as_bytes()),
            Charset::Utf16 => Cow::Owned([0xFE, 0xFF].into_iter().chain(wide(u16::to_be_bytes)).collect()),
            Charset::Utf16Be => Cow::Owned(wide(u16::to_be_bytes).collect()),
            Charset::Utf16Le => Cow::Owned(wide(u16::to_le_bytes).collect()),
            Charset::Latin1 => Cow::Owned(narrow(0x100)),
            Charset::Ascii => Cow::Owned(narrow(0x80)),
        }
    }
}

/// What `urlEncode` escapes: everything but letters, digits, `-`, `.` and `_`.
pub(super) const URL_ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// As Java decodes: `+` is a blank, and a broken escape is an error.
pub(super) fn url_decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                out.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
            }
            other => out.push(other),
        }
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}
