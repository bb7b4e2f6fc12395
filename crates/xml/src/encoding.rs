//! Encodings a document may arrive in. Everything is turned into UTF-8 before it is read.
//!
//! Small tables of our own: what XML in the field declares is UTF-8, UTF-16 or one of a few encodings with one byte per
//! character, and a crate with all of the web's encodings is a megabyte of tables for that.

mod tables;

use penstock_budget::step;

/// The encodings that are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// UTF-16, little endian.
    Utf16Le,
    /// UTF-16, big endian.
    Utf16Be,
    /// ISO-8859-1.
    Latin1,
    /// US-ASCII.
    Ascii,
    /// Windows code page 1252.
    Windows1252,
    /// Windows code page 1250, Central European.
    Windows1250,
    /// Windows code page 1251, Cyrillic.
    Windows1251,
    /// ISO-8859-2, Central European.
    Latin2,
    /// ISO-8859-5, Cyrillic.
    Cyrillic,
    /// ISO-8859-7, Greek.
    Greek,
    /// ISO-8859-9, Turkish.
    Latin5,
    /// ISO-8859-15, Western European with the euro sign.
    Latin9,
}

impl Encoding {
    /// The encoding with this name, in any case; `UTF-16` without a byte order is big endian until a mark says otherwise.
    pub fn from_name(name: &str) -> Option<Encoding> {
        const NAMES: [(&str, Encoding); 30] = [
            ("utf-8", Encoding::Utf8),
            ("utf8", Encoding::Utf8),
            ("utf-16", Encoding::Utf16Be),
            ("utf16", Encoding::Utf16Be),
            ("utf-16le", Encoding::Utf16Le),
            ("utf-16be", Encoding::Utf16Be),
            ("iso-10646-ucs-2", Encoding::Utf16Be),
            ("iso-8859-1", Encoding::Latin1),
            ("iso8859-1", Encoding::Latin1),
            ("iso_8859-1", Encoding::Latin1),
            ("latin1", Encoding::Latin1),
            ("l1", Encoding::Latin1),
            ("us-ascii", Encoding::Ascii),
            ("ascii", Encoding::Ascii),
            ("windows-1252", Encoding::Windows1252),
            ("cp1252", Encoding::Windows1252),
            ("windows-1250", Encoding::Windows1250),
            ("cp1250", Encoding::Windows1250),
            ("windows-1251", Encoding::Windows1251),
            ("cp1251", Encoding::Windows1251),
            ("iso-8859-2", Encoding::Latin2),
            ("latin2", Encoding::Latin2),
            ("iso-8859-5", Encoding::Cyrillic),
            ("cyrillic", Encoding::Cyrillic),
            ("iso-8859-7", Encoding::Greek),
            ("greek", Encoding::Greek),
            ("iso-8859-9", Encoding::Latin5),
            ("latin5", Encoding::Latin5),
            ("iso-8859-15", Encoding::Latin9),
            ("latin9", Encoding::Latin9),
        ];
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, encoding)| encoding)
    }

    /// The name to declare it with.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "UTF-8",
            Encoding::Utf16Le | Encoding::Utf16Be => "UTF-16",
            Encoding::Latin1 => "ISO-8859-1",
            Encoding::Ascii => "US-ASCII",
            Encoding::Windows1252 => "windows-1252",
            Encoding::Windows1250 => "windows-1250",
            Encoding::Windows1251 => "windows-1251",
            Encoding::Latin2 => "ISO-8859-2",
            Encoding::Cyrillic => "ISO-8859-5",
            Encoding::Greek => "ISO-8859-7",
            Encoding::Latin5 => "ISO-8859-9",
            Encoding::Latin9 => "ISO-8859-15",
        }
    }
}

use bytes::Bytes;

use crate::error::{Position, XmlError, XmlErrorKind};
use crate::text::Text;

/// What an XML declaration says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Declaration<'a> {
    pub(crate) encoding: Option<&'a str>,
    pub(crate) standalone: Option<bool>,
}

/// Reads what stands between `<?xml` and `?>`. A text declaration (of an external entity) need not have a version.
pub(crate) fn parse_declaration(body: &str, text_declaration: bool) -> Result<Declaration<'_>, &'static str> {
    let mut rest = body;
    let version = pseudo_attribute(&mut rest, "version")?;
    match version {
        Some(version) if !is_version(version) => return Err("this is not XML 1.0"),
        None if !text_declaration => return Err("the XML declaration has no version"),
        _ => {}
    }
    let encoding = pseudo_attribute(&mut rest, "encoding")?;
    let named = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
    };
    if encoding.is_some_and(|name| !named(name)) {
        return Err("the XML declaration names no encoding");
    }
    let standalone = match pseudo_attribute(&mut rest, "standalone")? {
        None => None,
        Some("yes") => Some(true),
        Some("no") => Some(false),
        Some(_) => return Err("`standalone` is either `yes` or `no`"),
    };
    if !rest.trim_matches([' ', '\t', '\r', '\n']).is_empty() {
        return Err("the XML declaration may only have a version, an encoding and `standalone`, in this order");
    }
    Ok(Declaration { encoding, standalone })
}

/// XML 1.0 (fifth edition) §2.8: a processor of 1.0 reads every 1.x as 1.0.
fn is_version(version: &str) -> bool {
    let minor = version.strip_prefix("1.").unwrap_or_default();
    !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit())
}

fn pseudo_attribute<'a>(rest: &mut &'a str, name: &str) -> Result<Option<&'a str>, &'static str> {
    const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];
    const WRONG: &str = "the XML declaration is not made of names and values in quotes";
    let trimmed = rest.trim_start_matches(SPACE);
    let Some(after_name) = trimmed.strip_prefix(name) else { return Ok(None) };
    if trimmed.len() == rest.len() {
        return Err("white space is missing in the XML declaration");
    }
    let after_equals = after_name.trim_start_matches(SPACE).strip_prefix('=').ok_or(WRONG)?.trim_start_matches(SPACE);
    let quote = after_equals.chars().next().filter(|&c| c == '"' || c == '\'').ok_or(WRONG)?;
    let (value, after) = after_equals[1..].split_once(quote).ok_or(WRONG)?;
    *rest = after;
    Ok(Some(value))
}

/// Turns a document into text. A byte order mark decides, then what the caller imposes, then the declaration.
pub(crate) fn decode(bytes: Bytes, imposed: Option<Encoding>) -> Result<Text, XmlError> {
    match detect(&bytes, imposed)? {
        Encoding::Utf8 => Text::new(bytes).map_err(|(offset, bytes)| wrong_bytes(&bytes, offset, "UTF-8")),
        Encoding::Utf16Le => decode_utf16(&bytes, u16::from_le_bytes),
        Encoding::Utf16Be => decode_utf16(&bytes, u16::from_be_bytes),
        Encoding::Latin1 => from_string(bytes.iter().inspect(|_| step()).map(|&byte| char::from(byte)).collect()),
        Encoding::Ascii => match bytes.iter().position(|&byte| byte >= 0x80) {
            Some(offset) => Err(wrong_bytes(&bytes, offset, "US-ASCII")),
            None => Text::new(bytes).map_err(|(offset, bytes)| wrong_bytes(&bytes, offset, "US-ASCII")),
        },
        Encoding::Windows1252 => decode_single(&bytes, tables::WINDOWS_1252),
        Encoding::Windows1250 => decode_single(&bytes, tables::WINDOWS_1250),
        Encoding::Windows1251 => decode_single(&bytes, tables::WINDOWS_1251),
        Encoding::Latin2 => decode_single(&bytes, tables::ISO_8859_2),
        Encoding::Cyrillic => decode_single(&bytes, tables::ISO_8859_5),
        Encoding::Greek => decode_single(&bytes, tables::ISO_8859_7),
        Encoding::Latin5 => decode_single(&bytes, tables::ISO_8859_9),
        Encoding::Latin9 => decode_single(&bytes, tables::ISO_8859_15),
    }
}

/// The characters of a text that is not XML, without a byte order mark: by the mark, else in the given encoding, else
/// as [`ParseOptions`](crate::ParseOptions) describes for XML.
///
/// # Errors
/// Bytes that the encoding does not have, and characters that XML does not have.
pub fn decode_text(bytes: &Bytes, encoding: Option<Encoding>) -> Result<String, XmlError> {
    let text = decode(bytes.clone(), encoding)?;
    let text = text.as_str().strip_prefix('\u{feff}').unwrap_or(text.as_str());
    match text.char_indices().find(|(_, c)| !crate::chars::is_char(*c)) {
        None => Ok(text.to_owned()),
        Some((offset, c)) => {
            let message = format!("U+{:04X} is not a character of XML", u32::from(c)).into();
            Err(XmlError { kind: XmlErrorKind::Encoding, position: Position::locate(text.as_bytes(), offset), message })
        }
    }
}

fn wrong_bytes(bytes: &[u8], offset: usize, encoding: &str) -> XmlError {
    let message = format!("these bytes are not {encoding}").into();
    XmlError { kind: XmlErrorKind::Encoding, position: Position::locate(bytes, offset), message }
}

fn from_string(text: String) -> Result<Text, XmlError> {
    Text::new(Bytes::from(text)).map_err(|(offset, bytes)| wrong_bytes(&bytes, offset, "UTF-8"))
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<Text, XmlError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(wrong_bytes(bytes, bytes.len() - 1, "UTF-16"));
    }
    let mut text = String::with_capacity(bytes.len());
    let mut offset = 0;
    for decoded in char::decode_utf16(pairs.iter().map(|&pair| unit(pair))) {
        step();
        let Ok(c) = decoded else { return Err(wrong_bytes(bytes, offset, "UTF-16")) };
        offset += c.len_utf16() * 2;
        text.push(c);
    }
    from_string(text)
}

fn detect(bytes: &[u8], imposed: Option<Encoding>) -> Result<Encoding, XmlError> {
    // RFC 7303 §3.2: a byte order mark is more reliable than a charset parameter.
    match bytes {
        [0xEF, 0xBB, 0xBF, ..] => return Ok(Encoding::Utf8),
        [0xFF, 0xFE, ..] => return Ok(Encoding::Utf16Le),
        [0xFE, 0xFF, ..] => return Ok(Encoding::Utf16Be),
        _ => {}
    }
    if let Some(imposed) = imposed {
        return Ok(imposed);
    }
    // XML 1.0 appendix F.1: without a mark, the first characters can only be `<` and what may follow it.
    match bytes {
        [b'<', 0, _, 0, ..] => return Ok(Encoding::Utf16Le),
        [0, b'<', 0, _, ..] => return Ok(Encoding::Utf16Be),
        [b'<', b'?', b'x', b'm', b'l', ..] => {}
        _ => return Ok(Encoding::Utf8),
    }
    let end = memchr::memmem::find(bytes, b"?>").unwrap_or(bytes.len());
    let head = std::str::from_utf8(&bytes[5..end.max(5)]).unwrap_or_default();
    let Ok(Declaration { encoding: Some(name), .. }) = parse_declaration(head, true) else { return Ok(Encoding::Utf8) };
    match Encoding::from_name(name) {
        // Written with single bytes, it cannot be what it claims. Programs that put a string's encoding into the
        // declaration and then write UTF-8 are common; what they mean is plain.
        Some(Encoding::Utf16Be | Encoding::Utf16Le) => Ok(Encoding::Utf8),
        Some(encoding) => Ok(encoding),
        None => {
            let message = format!("the encoding `{name}` is not supported").into();
            Err(XmlError { kind: XmlErrorKind::Encoding, position: Position::locate(bytes, 0), message })
        }
    }
}

fn decode_single(bytes: &[u8], upper: tables::UpperHalf) -> Result<Text, XmlError> {
    let upper: Vec<char> = upper.chars().collect();
    let decode = |&byte: &u8| match byte.checked_sub(0x80) {
        None => char::from(byte),
        Some(index) => upper.get(usize::from(index)).copied().unwrap_or(char::REPLACEMENT_CHARACTER),
    };
    from_string(bytes.iter().inspect(|_| step()).map(decode).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_whole() {
        for table in [
            tables::WINDOWS_1250,
            tables::WINDOWS_1251,
            tables::WINDOWS_1252,
            tables::ISO_8859_2,
            tables::ISO_8859_5,
            tables::ISO_8859_7,
            tables::ISO_8859_9,
            tables::ISO_8859_15,
        ] {
            assert_eq!(table.chars().count(), 128, "{table}");
        }
        assert_eq!(tables::ISO_8859_15.chars().nth(0x24), Some('€'));
        assert_eq!(tables::WINDOWS_1251.chars().last(), Some('я'));
    }
}
