//! Transport headers in the order they arrived.
//!
//! A head that came from a socket stays one block of bytes; entries are ranges of it, so that a
//! message which is passed through costs one vector and no copies. Entries that a mediator sets
//! own their bytes.

use std::ops::Range;

use bytes::Bytes;

/// The bytes of a head and where its fields lie, as a transport's parser found them.
#[derive(Debug, Clone, Default)]
pub struct HeaderBlock {
    /// The head as it was read.
    pub bytes: Bytes,
    /// Ranges of `bytes`: name and value without surrounding white space.
    pub fields: Vec<(Range<u32>, Range<u32>)>,
}

/// Header fields: names compare without case, several fields may share a name, order is kept.
#[derive(Debug, Clone, Default)]
pub struct Headers {
    block: Bytes,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    name: Part,
    value: Part,
}

#[derive(Debug, Clone)]
enum Part {
    Block(u32, u32),
    Own(Box<[u8]>),
}

impl Part {
    fn of<'a>(&'a self, block: &'a Bytes) -> &'a [u8] {
        match self {
            Part::Block(start, end) => block.get(*start as usize..*end as usize).unwrap_or_default(),
            Part::Own(bytes) => bytes,
        }
    }
}

impl Headers {
    /// No headers.
    pub fn new() -> Headers {
        Headers::default()
    }

    /// The fields of a parsed head. Ranges outside the block read as empty.
    pub fn from_block(block: HeaderBlock) -> Headers {
        let entries = block
            .fields
            .into_iter()
            .map(|(name, value)| Entry {
                name: Part::Block(name.start, name.end),
                value: Part::Block(value.start, value.end),
            })
            .collect();
        Headers { block: block.bytes, entries }
    }

    /// The first value of `name`, when it is UTF-8.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.get_bytes(name).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// The first value of `name` as it was sent.
    pub fn get_bytes(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(field, _)| field.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// Every value of `name` in order.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
        self.iter().filter(move |(field, _)| field.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// Whether a field of that name is there.
    pub fn contains(&self, name: &str) -> bool {
        self.get_bytes(name).is_some()
    }

    /// All fields, names as they were sent.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|entry| (entry.name.of(&self.block), entry.value.of(&self.block)))
    }

    /// Replaces every field of that name by one, at the place of the first.
    pub fn set(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let value = Part::Own(value.as_ref().into());
        match self.entries.iter().position(|entry| entry.name.of(&self.block).eq_ignore_ascii_case(name.as_bytes())) {
            None => self.entries.push(Entry { name: Part::Own(name.as_bytes().into()), value }),
            Some(first) => {
                self.entries[first].value = value;
                let mut index = 0;
                self.retain(|field, _| {
                    index += 1;
                    index - 1 <= first || !field.eq_ignore_ascii_case(name.as_bytes())
                });
            }
        }
    }

    /// Adds a field after the others, also when one of that name is there.
    pub fn append(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.entries.push(Entry { name: Part::Own(name.as_bytes().into()), value: Part::Own(value.as_ref().into()) });
    }

    /// Removes every field of that name; says whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.entries.len();
        self.retain(|field, _| !field.eq_ignore_ascii_case(name.as_bytes()));
        self.entries.len() != before
    }

    /// Keeps the fields for which `keep(name, value)` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8], &[u8]) -> bool) {
        let block = &self.block;
        self.entries.retain(|entry| keep(entry.name.of(block), entry.value.of(block)));
    }

    /// Removes all fields.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
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
}
