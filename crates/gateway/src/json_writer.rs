//! Writes JSON objects into one buffer. No tree is built: a body of a megabyte is encoded where it is sent from.

/// An object that is being written.
pub(crate) struct JsonObject {
    out: Vec<u8>,
}

impl JsonObject {
    /// Begins an object of about that size.
    pub(crate) fn new(capacity_bytes: usize) -> JsonObject {
        let mut out = Vec::with_capacity(capacity_bytes);
        out.push(b'{');
        JsonObject { out }
    }

    /// Begins a member. Keys are ours, so nothing in them is escaped.
    fn key(&mut self, key: &str) {
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    /// A text.
    pub(crate) fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        self.out.push(b'"');
        escape(&mut self.out, value.as_bytes());
        self.out.push(b'"');
    }

    /// A text under a key that is not ours.
    pub(crate) fn text_of(&mut self, key: &str, value: &str) {
        self.field_name(key.as_bytes());
        self.out.push(b'"');
        escape(&mut self.out, value.as_bytes());
        self.out.push(b'"');
    }

    /// JSON as it is, under a key that is not ours.
    pub(crate) fn raw_of(&mut self, key: &str, value: &[u8]) {
        self.field_name(key.as_bytes());
        self.out.extend_from_slice(value);
    }

    /// Begins a member whose key may hold anything.
    fn field_name(&mut self, name: &[u8]) {
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        }
        self.out.push(b'"');
        escape(&mut self.out, name);
        self.out.extend_from_slice(b"\":");
    }

    /// A number.
    pub(crate) fn number(&mut self, key: &str, value: u16) {
        self.key(key);
        self.out.extend_from_slice(value.to_string().as_bytes());
    }

    /// Bytes, in base64.
    pub(crate) fn base64(&mut self, key: &str, value: &[u8]) {
        self.key(key);
        self.out.push(b'"');
        base64_simd::STANDARD.encode_append(value, &mut self.out);
        self.out.push(b'"');
    }

    /// JSON as it is.
    pub(crate) fn raw(&mut self, key: &str, value: &[u8]) {
        self.key(key);
        self.out.extend_from_slice(value);
    }

    /// Members that were written before.
    pub(crate) fn members(&mut self, members: &[u8]) {
        if members.is_empty() {
            return;
        }
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        }
        self.out.extend_from_slice(members);
    }

    /// The members that were written, without the braces.
    pub(crate) fn end_members(mut self) -> Box<[u8]> {
        self.out.remove(0);
        self.out.into()
    }

    /// An object inside.
    pub(crate) fn object(&mut self, key: &str, fill: impl FnOnce(&mut JsonObject)) {
        self.key(key);
        self.out.push(b'{');
        fill(self);
        self.out.push(b'}');
    }

    /// A header field: its name in lower case, the values joined.
    pub(crate) fn field<'v>(&mut self, name: &[u8], values: impl Iterator<Item = &'v [u8]>) {
        let start = self.out.len();
        self.field_name(name);
        self.out[start..].make_ascii_lowercase();
        self.out.push(b'"');
        for (index, value) in values.enumerate() {
            if index > 0 {
                self.out.extend_from_slice(b", ");
            }
            escape(&mut self.out, value);
        }
        self.out.push(b'"');
    }

    /// The object, ended.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.out.push(b'}');
        self.out
    }
}

/// Writes text as the inside of a JSON string. What is not UTF-8 is read as Latin-1, which header fields were once.
fn escape(out: &mut Vec<u8>, text: &[u8]) {
    // Nearly all texts are plain. Every byte is looked at, without a way out, so that many are compared at once.
    let looks_special = |byte: u8| byte.wrapping_sub(0x20) >= 0x60 || byte == b'"' || byte == b'\\';
    if !text.iter().fold(false, |any, byte| any | looks_special(*byte)) {
        out.extend_from_slice(text);
        return;
    }
    if !text.is_ascii() && std::str::from_utf8(text).is_err() {
        let text: String = text.iter().map(|byte| char::from(*byte)).collect();
        return escape(out, text.as_bytes());
    }
    let mut plain = 0;
    for (index, byte) in text.iter().enumerate() {
        if *byte >= 0x20 && *byte != b'"' && *byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&text[plain..index]);
        plain = index + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
    }
    out.extend_from_slice(&text[plain..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let mut object = JsonObject::new(16);
        object.text("quoted", "a\"b\\c\n\u{1}ü");
        object.number("code", 404);
        object.base64("body", b"{\"a\":1}");
        object.base64("empty", b"");
        object.raw("raw", b"[1,2]");
        object.object("fields", |object| {
            object.field(b"X-Tag", [b"one".as_slice(), b"two"].into_iter());
            object.field(b"Latin", [b"\xfc".as_slice()].into_iter());
        });
        object.members(b"\"more\":true");
        let value: serde_json::Value = serde_json::from_slice(&object.end()).expect("valid JSON");
        let expected = serde_json::json!({
            "quoted": "a\"b\\c\n\u{1}ü", "code": 404, "body": "eyJhIjoxfQ==", "empty": "", "raw": [1, 2],
            "fields": { "x-tag": "one, two", "latin": "ü" }, "more": true,
        });
        assert_eq!(value, expected);
    }
}
