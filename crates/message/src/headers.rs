//! Transport headers in the order they arrived.
//!
//! A head that came from a socket stays one block of bytes; fields are ranges of it, so that a
//! message which is passed through costs one vector and no copies. What a mediator sets lies in a
//! second block that belongs to the message.

mod view;

use std::ops::Range;

use bytes::Bytes;

use crate::{DIGITS_MAX, decimal};
pub use view::FieldsView;

/// The bytes of a head and where its fields lie, as a transport's parser found them. It has checked them: names are
/// tokens and values hold no control character but tab (RFC 9110 §5.5), so they can be sent on as they are.
#[derive(Debug, Clone, Default)]
pub struct HeaderBlock {
    /// The head as it was read.
    pub bytes: Bytes,
    /// Ranges of `bytes`: name and value without surrounding white space.
    pub fields: Vec<Field>,
}

/// A field, and the line it came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldLine<'a> {
    /// The name as it was sent.
    pub name: &'a [u8],
    /// The value as it was sent.
    pub value: &'a [u8],
    /// `name: value` with the end of its line, when a parser read and checked just that.
    pub line: Option<&'a [u8]>,
}

/// Where a name and its value lie.
type Field = (Range<u32>, Range<u32>);

/// Set in the start and the end of a range of the message's own bytes. No head is that long.
const OWN: u32 = 1 << 31;

/// Set besides in the end of a value whose field was written into the own bytes as a whole line.
const LINE: u32 = 1 << 30;

/// What is left of a position without those.
const PLACE: u32 = LINE - 1;

/// Room for a message's first own bytes: a handful of short fields.
const OWN_BYTES_FIRST: usize = 128;

/// And for as many.
const FIELDS_FIRST: usize = 4;

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
        let bytes: &[u8] = if range.start & OWN == 0 { &self.block } else { &self.own };
        bytes.get((range.start & PLACE) as usize..(range.end & PLACE) as usize).unwrap_or_default()
    }

    fn is(&self, name: &Range<u32>, wanted: &[u8]) -> bool {
        if (name.end - name.start) as usize != wanted.len() {
            return false;
        }
        let part = self.part(name);
        // Most clients write a name as it is asked for here, and that comparison is the faster one.
        part == wanted || part.eq_ignore_ascii_case(wanted)
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

    /// All fields, with the lines of those that can be sent on as they came.
    pub fn lines(&self) -> impl Iterator<Item = FieldLine<'_>> {
        self.fields.iter().map(|(name, value)| FieldLine {
            name: self.part(name),
            value: self.part(value),
            line: self.line(name, value),
        })
    }

    fn line(&self, name: &Range<u32>, value: &Range<u32>) -> Option<&[u8]> {
        if name.start & OWN != 0 {
            let end = (value.end & LINE != 0).then_some((value.end & PLACE) as usize + 2)?;
            return self.own.get((name.start & PLACE) as usize..end);
        }
        // The value may be one of the own bytes, where no block reaches.
        let line = self.block.get(name.start as usize..value.end as usize + 2)?;
        let colon = (name.end - name.start) as usize;
        let as_it_came =
            value.start == name.end + 2 && line.get(colon..colon + 2)? == b": " && line.last_chunk()? == b"\r\n";
        as_it_came.then_some(line)
    }

    /// Replaces every field of that name by one, at the place of the first.
    pub fn set(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.put(name.as_bytes(), value.as_ref());
    }

    fn put(&mut self, name: &[u8], value: &[u8]) {
        let first = self.fields.iter().position(|(field, _)| self.is(field, name));
        match first {
            None => self.add(name, value),
            Some(first) => {
                let value = self.keep(value);
                self.replace(first, value);
                self.tighten();
            }
        }
    }

    /// Gives a field, the first of its name, another value and removes the others of that name.
    fn replace(&mut self, first: usize, value: Range<u32>) {
        // The line that a value came in begins with the name it came with, which is not this one.
        self.fields[first].1 = value.start..value.end & !LINE;
        let mut index = first + 1;
        while let Some((name, _)) = self.fields.get(index) {
            if self.is(name, self.part(&self.fields[first].0)) {
                self.fields.remove(index);
            } else {
                index += 1;
            }
        }
    }

    /// Puts the fields of others in the place of those of the same name.
    pub fn set_all(&mut self, others: Headers) {
        if !self.own.is_empty() || !others.block.is_empty() {
            return others.iter().for_each(|(name, value)| self.put(name, value));
        }
        self.own = others.own;
        // Few names are present already, and few others have the same length.
        let bit = |name: &Range<u32>| 1_u64 << ((name.end - name.start) % u64::BITS);
        let mut lengths = self.fields.iter().fold(0, |all, (name, _)| all | bit(name));
        for (name, value) in others.fields {
            if lengths & bit(&name) == 0 {
                lengths |= bit(&name);
                self.fields.push((name, value));
                continue;
            }
            let wanted = self.part(&name);
            match self.fields.iter().position(|(field, _)| self.is(field, wanted)) {
                None => self.fields.push((name, value)),
                Some(first) => self.replace(first, value),
            }
        }
        self.tighten();
    }

    /// Adds a field after the others, also when one of that name is there.
    pub fn append(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.add(name.as_bytes(), value.as_ref());
    }

    /// Adds a field whose value is a number after the others. The name must be a token.
    pub fn append_number(&mut self, name: &'static str, number: u64) {
        let digits = &mut [0; DIGITS_MAX];
        let digits = decimal(number, digits);
        let start = self.own.len();
        self.make_room(name.len() + digits.len() + 4);
        self.own.extend_from_slice(name.as_bytes());
        self.own.extend_from_slice(b": ");
        self.own.extend_from_slice(digits);
        self.own.extend_from_slice(b"\r\n");
        let end = start + name.len() + 2 + digits.len();
        if end >= PLACE as usize {
            return self.own.truncate(start);
        }
        let at = |place: usize| place as u32 | OWN;
        self.fields.push((at(start)..at(start + name.len()), at(start + name.len() + 2)..at(end) | LINE));
    }

    fn add(&mut self, name: &[u8], value: &[u8]) {
        let field = (self.keep(name), self.keep(value));
        self.fields.push(field);
    }

    /// Puts bytes behind the message's own.
    fn keep(&mut self, bytes: &[u8]) -> Range<u32> {
        let start = self.own.len();
        self.make_room(bytes.len());
        self.own.extend_from_slice(bytes);
        match u32::try_from(self.own.len()) {
            Ok(end) if end < PLACE => start as u32 | OWN..end | OWN,
            // A gigabyte of fields goes nowhere.
            _ => {
                self.own.truncate(start);
                0..0
            }
        }
    }

    fn make_room(&mut self, bytes: usize) {
        if self.own.capacity() == 0 {
            // Fields are set several at a time.
            self.own.reserve(OWN_BYTES_FIRST.max(bytes));
            self.fields.reserve(FIELDS_FIRST);
        }
    }

    /// Drops own bytes that no field refers to, when there are many and they are most.
    fn tighten(&mut self) {
        if self.own.len() <= OWN_BYTES_LOOSE {
            return;
        }
        let ranges = || self.fields.iter().flat_map(|(name, value)| [name, value]).filter(|part| part.start & OWN != 0);
        let used: usize = ranges().map(|part| ((part.end & PLACE) - (part.start & PLACE)) as usize).sum();
        if used * 2 > self.own.len() {
            return;
        }
        let old = std::mem::take(&mut self.own);
        let mut fields = std::mem::take(&mut self.fields);
        for part in fields.iter_mut().flat_map(|(name, value)| [name, value]).filter(|part| part.start & OWN != 0) {
            let place = (part.start & PLACE) as usize..(part.end & PLACE) as usize;
            *part = self.keep(old.get(place).unwrap_or_default());
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
mod tests;
