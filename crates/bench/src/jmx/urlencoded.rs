//! `application/x-www-form-urlencoded`, as Java's `URLEncoder` writes and `URLDecoder` reads it.

/// Encodes a name or value.
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'*' => encoded.push(char::from(byte)),
            b' ' => encoded.push('+'),
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

/// Decodes a name or value; what is no escape stays as it is.
pub fn decode(text: &str) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let escape = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escape = escape.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (byte, escape) {
            (b'%', Some(value)) => {
                decoded.push(value);
                at += 2;
            }
            (b'+', _) => decoded.push(b' '),
            (other, _) => decoded.push(*other),
        }
        at += 1;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
