//! Escaping of text and attribute values in XML.

/// Bytes that may need attention in text.
const TEXT: [bool; 256] = table(b"&<>\r");
/// Bytes that may need attention in attribute values.
const ATTRIBUTE: [bool; 256] = table(b"&<>\"\t\n\r");

const fn table(bytes: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
}

/// Appends text.
#[inline]
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    escape(out, text.as_bytes(), &TEXT);
}

/// Appends an attribute value for double quotes.
#[inline]
pub(super) fn attribute(out: &mut Vec<u8>, text: &str) {
    escape(out, text.as_bytes(), &ATTRIBUTE);
}

#[inline]
fn escape(out: &mut Vec<u8>, bytes: &[u8], special: &[bool; 256]) {
    // Most text needs nothing; finding that out needs no branch per byte.
    let clean = bytes.iter().fold(false, |found, byte| found | special[usize::from(*byte)]);
    if !clean {
        out.extend_from_slice(bytes);
        return;
    }
    escape_slowly(out, bytes, special);
}

#[cold]
fn escape_slowly(out: &mut Vec<u8>, bytes: &[u8], special: &[bool; 256]) {
    let mut written = 0;
    for (index, byte) in bytes.iter().enumerate() {
        if !special[usize::from(*byte)] {
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
