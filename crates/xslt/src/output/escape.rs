//! Escaping of text and attribute values in XML.

/// Whether a byte may need attention in text.
#[inline]
const fn in_text(byte: u8) -> bool {
    byte == b'&' || byte == b'<' || byte == b'>' || byte == b'\r'
}

/// Whether a byte may need attention in an attribute value.
#[inline]
const fn in_attribute(byte: u8) -> bool {
    in_text(byte) || byte == b'"' || byte == b'\t' || byte == b'\n'
}

/// The same as tables: for short text a load per byte is cheaper than getting ready to compare many bytes at once.
const TEXT: [bool; 256] = table(false);
const ATTRIBUTE: [bool; 256] = table(true);

const fn table(attribute: bool) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = if attribute { in_attribute(byte as u8) } else { in_text(byte as u8) };
        byte += 1;
    }
    table
}

/// From this length on comparing many bytes at once pays.
const SHORT_BYTES: usize = 24;

/// Appends text.
#[inline]
pub(crate) fn text(out: &mut Vec<u8>, text: &str) {
    escape(out, text.as_bytes(), &TEXT, in_text);
}

/// Appends an attribute value for double quotes.
#[inline]
pub(crate) fn attribute(out: &mut Vec<u8>, text: &str) {
    escape(out, text.as_bytes(), &ATTRIBUTE, in_attribute);
}

#[inline]
fn escape(out: &mut Vec<u8>, bytes: &[u8], table: &[bool; 256], special: impl Fn(u8) -> bool) {
    // Most text needs nothing.
    let found = if bytes.len() < SHORT_BYTES {
        bytes.iter().any(|byte| table[usize::from(*byte)])
    } else {
        bytes.iter().fold(false, |found, byte| found | special(*byte))
    };
    if !found && (bytes.is_ascii() || !may_have_line_ends(bytes)) {
        out.extend_from_slice(bytes);
        return;
    }
    escape_slowly(out, bytes, special);
}

#[cold]
fn escape_slowly(out: &mut Vec<u8>, bytes: &[u8], special: impl Fn(u8) -> bool) {
    let mut written = 0;
    for (index, byte) in bytes.iter().enumerate() {
        if let Some((reference, length)) = beyond_ascii(&bytes[index..]) {
            out.extend_from_slice(&bytes[written..index]);
            out.extend_from_slice(reference.as_bytes());
            written = index + length;
            continue;
        }
        if !special(*byte) {
            continue;
        }
        let reference: &[u8] = match byte {
            b'&' => b"&amp;",
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            b'"' => b"&quot;",
            b'\t' => b"&#9;",
            b'\n' => b"&#10;",
            _ => b"&#13;",
        };
        out.extend_from_slice(&bytes[written..index]);
        out.extend_from_slice(reference);
        written = index + 1;
    }
    out.extend_from_slice(&bytes[written..]);
}

/// Whether two adjacent bytes may belong to U+0080 to U+009F or to U+2028. One pass without branches, as most text beyond
/// ASCII has none of them.
fn may_have_line_ends(bytes: &[u8]) -> bool {
    let pairs = bytes.iter().zip(&bytes[1..]);
    pairs.fold(false, |found, (one, two)| found | (*one == 0xc2 && *two < 0xa0) | (*one == 0x80 && *two == 0xa8))
}

/// The reference for the character that bytes begin with, and how many bytes it has: a parser of XML 1.1 takes NEL and
/// LINE SEPARATOR for line ends (XSLT and XQuery Serialization §5).
fn beyond_ascii(bytes: &[u8]) -> Option<(String, usize)> {
    match bytes {
        [0xc2, control @ 0x80..=0x9f, ..] => Some((format!("&#{control};"), 2)),
        [0xe2, 0x80, 0xa8, ..] => Some(("&#8232;".to_owned(), 3)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references() {
        let mut out = Vec::new();
        text(&mut out, "a<b&c>\"d\n");
        attribute(&mut out, "<\"\n>");
        assert_eq!(String::from_utf8(out).unwrap(), "a&lt;b&amp;c&gt;\"d\n&lt;&quot;&#10;&gt;");
    }

    #[test]
    fn line_ends_of_xml_1_1() {
        for padding in ["", "more text than is looked at byte by byte "] {
            let mut out = Vec::new();
            text(&mut out, &format!("{padding}\u{85}é\u{a0}\u{9f}–\u{2028}\u{2029}"));
            attribute(&mut out, &format!("{padding}\u{2028}"));
            let expected = format!("{padding}&#133;é\u{a0}&#159;–&#8232;\u{2029}{padding}&#8232;");
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
