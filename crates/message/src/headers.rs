//! Transport headers in the order they arrived.
//!
//! A head that came from a socket stays one block of bytes; fields are ranges of it, so that a
//! message which is passed through costs one vector and no copies. What a mediator sets lies in a
//! second block that belongs to the message.

use std::ops::Range;

use bytes::Bytes;

/// The bytes of a head and where its fields lie, as a transport's parser found them.
#[derive(Debug, Clone, Default)]
pub struct HeaderBlock {
    /// The head as it was read.
    pub bytes: Bytes,
    /// Ranges of `bytes`: name and value without surrounding white space.
    pub fields: Vec<Field>,
}

/// Where a name and its value lie.
type Field = (Range<u32>, Range<u32>);

/// Set in the start and the end of a range of the message's own bytes. No head is that long.
const OWN: u32 = 1 << 31;

/// Room for a message's first own bytes: a handful of short fields.
const OWN_BYTES_FIRST: usize = 128;

/// Own bytes are put together anew when there are more of them than this and most belong to values that were replaced.
const OWN_BYTES_LOOSE: usize = 4096;

/// Header fields: names compare without case, several fields may share a name, order is kept.
#[derive(Debug, Clone, Default)]
pub struct Headers {
    block: Bytes,
    own: Vec<u8>,
    fields: Vec<Field>,
}

impl Headers {
    /// No headers.
    pub fn new() -> Headers {
        Headers::default()
    }

    /// The fields of a parsed head. Ranges outside the block read as empty.
    pub fn from_block(block: HeaderBlock) -> Headers {
        Headers { block: block.bytes, own: Vec::new(), fields: block.fields }
    }

    fn part(&self, range: &Range<u32>) -> &[u8] {
        let (bytes, mask): (&[u8], u32) = if range.start & OWN == 0 { (&self.block, 0) } else { (&self.own, OWN) };
        bytes.get((range.start ^ mask) as usize..(range.end ^ mask) as usize).unwrap_or_default()
    }

    fn is(&self, name: &Range<u32>, wanted: &[u8]) -> bool {
        (name.end - name.start) as usize == wanted.len() && self.part(name).eq_ignore_ascii_case(wanted)
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|(field, _)| self.is(field, name.as_bytes()))
    }

    /// The first value of `name`, when it is UTF-8.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.get_bytes(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// The first value of `name` as it was sent.
    pub fn get_bytes(&self, name: &str) -> Option<&[u8]> {
        self.fields.iter().find(|(field, _)| self.is(field, name.as_bytes())).map(|(_, value)| self.part(value))
    }

    /// Every value of `name` in order.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
        self.iter().filter(move |(field, _)| field.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// Whether a field of that name is there.
    pub fn contains(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    /// All fields, names as they were sent.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter().map(|(name, value)| (self.part(name), self.part(value)))
    }

    /// Replaces every field of that name by one, at the place of the first.
    pub fn set(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.put(name.as_bytes(), value.as_ref());
    }

    fn put(&mut self, name: &[u8], value: &[u8]) {
        let Some(first) = self.fields.iter().position(|(field, _)| self.is(field, name)) else {
            let field = (self.keep(name), self.keep(value));
            return self.fields.push(field);
        };
        self.fields[first].1 = self.keep(value);
        let mut index = 0;
        self.retain(|field, _| {
            index += 1;
            index - 1 <= first || !field.eq_ignore_ascii_case(name)
        });
        if self.own.len() > OWN_BYTES_LOOSE {
            self.tighten();
        }
    }

    /// Puts the fields of others in the place of those of the same name.
    pub fn set_all(&mut self, others: &Headers) {
        for (name, value) in others.iter() {
            self.put(name, value);
        }
    }

    /// Adds a field after the others, also when one of that name is there.
    pub fn append(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let field = (self.keep(name.as_bytes()), self.keep(value.as_ref()));
        self.fields.push(field);
    }

    /// Puts bytes behind the message's own.
    fn keep(&mut self, bytes: &[u8]) -> Range<u32> {
        let start = self.own.len();
        if self.own.capacity() == 0 {
            // Whoever sets one field sets several.
            self.own.reserve(OWN_BYTES_FIRST.max(bytes.len()));
        }
        self.own.extend_from_slice(bytes);
        match u32::try_from(self.own.len()) {
            Ok(end) if end < OWN => start as u32 | OWN..end | OWN,
            // Two gigabytes of fields go nowhere.
            _ => {
                self.own.truncate(start);
                0..0
            }
        }
    }

    /// Drops own bytes that no field refers to, when they are most.
    fn tighten(&mut self) {
        let ranges = || self.fields.iter().flat_map(|(name, value)| [name, value]).filter(|part| part.start & OWN != 0);
        let used: usize = ranges().map(|part| (part.end - part.start) as usize).sum();
        if used * 2 > self.own.len() {
            return;
        }
        let old = std::mem::take(&mut self.own);
        let mut fields = std::mem::take(&mut self.fields);
        for part in fields.iter_mut().flat_map(|(name, value)| [name, value]).filter(|part| part.start & OWN != 0) {
            *part = self.keep(old.get((part.start ^ OWN) as usize..(part.end ^ OWN) as usize).unwrap_or_default());
        }
        self.fields = fields;
    }

    /// Removes every field of that name; says whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        let Some(first) = self.position(name) else { return false };
        self.fields.remove(first);
        self.retain(|field, _| !field.eq_ignore_ascii_case(name.as_bytes()));
        true
    }

    /// Keeps the fields for which `keep(name, value)` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.retain(|(name, value)| keep(self.part(name), self.part(value)));
        self.fields = fields;
    }

    /// A copy of the fields for which `keep(name, value)` holds.
    pub fn filtered(&self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) -> Headers {
        // Room for a field that the caller adds.
        let mut fields = Vec::with_capacity(self.fields.len() + 1);
        fields.extend(self.fields.iter().filter(|(name, value)| keep(self.part(name), self.part(value))).cloned());
        Headers { block: self.block.clone(), own: self.own.clone(), fields }
    }

    /// Removes all fields.
    pub fn clear(&mut self) {
        self.fields.clear();
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Headers {
        let bytes = Bytes::from_static(b"Host: a\r\nX-Tag: one\r\nx-tag: two\r\n");
        Headers::from_block(HeaderBlock { bytes, fields: vec![(0..4, 6..7), (9..14, 16..19), (21..26, 28..31)] })
    }

    #[test]
    fn names_compare_without_case_and_keep_their_order() {
        let headers = block();
        assert_eq!(headers.get("HOST"), Some("a"));
        assert_eq!(headers.get_all("X-TAG").collect::<Vec<_>>(), [b"one", b"two"]);
    }

    #[test]
    fn set_replaces_all_at_the_place_of_the_first() {
        let mut headers = block();
        headers.set("x-tag", "three");
        headers.append("Y", "1");
        let all: Vec<_> = headers.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        assert_eq!(
            all,
            [(b"Host".to_vec(), b"a".to_vec()), (b"X-Tag".to_vec(), b"three".to_vec()), (b"Y".to_vec(), b"1".to_vec())]
        );
        assert!(headers.remove("host") && !headers.remove("host"));
    }

    #[test]
    fn values_that_were_replaced_do_not_pile_up() {
        let mut headers = block();
        headers.set("Kept", "first");
        for number in 0..10_000 {
            headers.set("X-Tag", format!("value {number}"));
        }
        assert!(headers.own.len() <= 2 * OWN_BYTES_LOOSE);
        let all: Vec<_> = headers.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        let expected: [(&[u8], &[u8]); 3] = [(b"Host", b"a"), (b"X-Tag", b"value 9999"), (b"Kept", b"first")];
        assert_eq!(all, expected.map(|(name, value)| (name.to_vec(), value.to_vec())));
    }
}
