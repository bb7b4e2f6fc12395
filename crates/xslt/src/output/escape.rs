//! Escaping of text and attribute values in XML.

/// Whether a byte may need attention in text. Comparisons, not a table: they are made for many bytes at once.
#[inline]
fn in_text(byte: u8) -> bool {
    byte == b'&' || byte == b'<' || byte == b'>' || byte == b'\r'
}

/// Whether a byte may need attention in an attribute value.
#[inline]
fn in_attribute(byte: u8) -> bool {
    in_text(byte) || byte == b'"' || byte == b'\t' || byte == b'\n'
}

/// Appends text.
#[inline]
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    escape(out, text.as_bytes(), in_text);
}

/// Appends an attribute value for double quotes.
#[inline]
pub(super) fn attribute(out: &mut Vec<u8>, text: &str) {
    escape(out, text.as_bytes(), in_attribute);
}

#[inline]
fn escape(out: &mut Vec<u8>, bytes: &[u8], special: impl Fn(u8) -> bool) {
    // Most text needs nothing; finding that out needs no branch per byte.
    let clean = bytes.iter().fold(false, |found, byte| found | special(*byte));
    if !clean {
        out.extend_from_slice(bytes);
        return;
    }
    escape_slowly(out, bytes, special);
}

#[cold]
fn escape_slowly(out: &mut Vec<u8>, bytes: &[u8], special: impl Fn(u8) -> bool) {
    let mut written = 0;
    for (index, byte) in bytes.iter().enumerate() {
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
}
