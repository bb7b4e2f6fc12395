//! Bytes to text by the charset of a Content-Type.

use std::borrow::Cow;

use penstock_budget::step;

use crate::BodyError;

/// Code page 1252 where it differs from ISO-8859-1, from 0x80 on. Undefined bytes stay control characters.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘', '’',
    '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// The text in `bytes`. Without a known charset it must be UTF-8; a byte order
/// mark wins over everything.
pub(super) fn decode<'b>(bytes: &'b [u8], charset: Option<&str>) -> Result<Cow<'b, str>, BodyError> {
    match bytes {
        [0xEF, 0xBB, 0xBF, rest @ ..] => return utf8(rest),
        [0xFE, 0xFF, rest @ ..] => return utf16(rest, u16::from_be_bytes).map(Cow::Owned),
        [0xFF, 0xFE, rest @ ..] => return utf16(rest, u16::from_le_bytes).map(Cow::Owned),
        _ => {}
    }
    match charset.unwrap_or_default().to_ascii_lowercase().as_str() {
        "utf-16" | "utf16" | "utf-16be" => utf16(bytes, u16::from_be_bytes).map(Cow::Owned),
        "utf-16le" => utf16(bytes, u16::from_le_bytes).map(Cow::Owned),
        "iso-8859-1" | "iso8859-1" | "iso_8859-1" | "latin1" if !bytes.is_ascii() => {
            Ok(bytes.iter().inspect(|_| step()).map(|byte| char::from(*byte)).collect())
        }
        "windows-1252" | "cp1252" if !bytes.is_ascii() => Ok(bytes
            .iter()
            .inspect(|_| step())
            .map(|byte| match byte {
                0x80..=0x9F => WINDOWS_1252[usize::from(*byte - 0x80)],
                other => char::from(*other),
            })
            .collect()),
        _ => utf8(bytes),
    }
}

fn utf8(bytes: &[u8]) -> Result<Cow<'_, str>, BodyError> {
    penstock_budget::utf8(bytes)
        .map(Cow::Borrowed)
        .map_err(|valid| BodyError::Malformed(format!("byte {} of the body is not UTF-8", valid + 1)))
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, BodyError> {
    let (pairs, []) = bytes.as_chunks::<2>() else {
        return Err(BodyError::Malformed("a body in UTF-16 has an even number of bytes".into()));
    };
    char::decode_utf16(pairs.iter().inspect(|_| step()).map(|pair| unit(*pair)))
        .collect::<Result<String, _>>()
        .map_err(|_| BodyError::Malformed("the body is not UTF-16: half of a surrogate pair".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_by_its_charset() {
        for (bytes, charset, expected) in [
            (&b"a\xc3\xa9"[..], None, Some("aé")),
            (b"\xef\xbb\xbfa", Some("iso-8859-1"), Some("a")),
            (b"\xe9", Some("ISO-8859-1"), Some("é")),
            (b"\x80", Some("windows-1252"), Some("€")),
            (b"\xe9", None, None),
            (b"\xff\xfea\0", None, Some("a")),
            (b"\0a", Some("UTF-16"), Some("a")),
            (b"\0", Some("UTF-16"), None),
            (b"\xd8\x00\0a", Some("UTF-16"), None),
        ] {
            assert_eq!(decode(bytes, charset).ok().as_deref(), expected, "{bytes:?} as {charset:?}");
        }
    }
}
