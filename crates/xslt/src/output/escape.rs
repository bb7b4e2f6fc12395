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
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    escape(out, text.as_bytes(), &TEXT, in_text);
}

/// Appends an attribute value for double quotes.
#[inline]
pub(super) fn attribute(out: &mut Vec<u8>, text: &str) {
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
    if !found {
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
