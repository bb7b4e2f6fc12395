//! What stands in the file of events: its length (4 bytes, the least first), the first 8 bytes of its SHA-256, and the
//! entry: `E` for an event with those it goes to, `D` for one of them that has it or will not get it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use ring::digest;

use super::event::{self, Event, Fields};

/// What the file begins with.
pub(super) const HEADER: &[u8] = b"penstock events 1\n";

/// Before each entry.
const FRAME: usize = 12;

/// What became of an event.
#[derive(Debug)]
pub(super) enum Entry {
    /// It goes to these.
    Event(Arc<Event>, Vec<u64>),
    /// One of them has it, or will not get it: the event's number, the subscriber's.
    Done(u64, u64),
}

pub(super) fn push(bytes: &mut Vec<u8>, entry: &Entry) {
    match entry {
        Entry::Event(event, to) => push_event(bytes, event, to),
        Entry::Done(number, id) => framed(bytes, |bytes| {
            bytes.push(b'D');
            bytes.extend_from_slice(&number.to_le_bytes());
            bytes.extend_from_slice(&id.to_le_bytes());
        }),
    }
}

pub(super) fn push_event(bytes: &mut Vec<u8>, event: &Event, to: &[u64]) {
    framed(bytes, |bytes| {
        bytes.push(b'E');
        bytes.extend_from_slice(&event.number.to_le_bytes());
        bytes.extend_from_slice(&(to.len() as u32).to_le_bytes());
        to.iter().for_each(|id| bytes.extend_from_slice(&id.to_le_bytes()));
        bytes.push(event.fields.len() as u8);
        for text in event.fields.iter().flat_map(|(name, value)| [name, value.as_str()]) {
            bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes.extend_from_slice(&event.body);
    });
}

fn framed(bytes: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = bytes.len();
    bytes.extend_from_slice(&[0; FRAME]);
    write(bytes);
    let length = (bytes.len() - start - FRAME) as u32;
    let sum = sum(&bytes[start + FRAME..]);
    bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
    bytes[start + 4..start + FRAME].copy_from_slice(&sum);
}

fn sum(entry: &[u8]) -> [u8; 8] {
    let mut sum = [0; 8];
    sum.copy_from_slice(&digest::digest(&digest::SHA256, entry).as_ref()[..8]);
    sum
}

/// All whole entries, and how many bytes follow them.
pub(super) fn read(kept: &[u8], waiting: &Arc<AtomicUsize>) -> Result<(Vec<Entry>, usize), String> {
    let Some(mut rest) = kept.strip_prefix(HEADER) else {
        // The header is the first that is written, at once with all behind it.
        return if kept.is_empty() { Ok((Vec::new(), 0)) } else { Err("it is not a file of events".to_owned()) };
    };
    let mut entries = Vec::new();
    while let Some((frame, behind)) = rest.split_first_chunk::<FRAME>() {
        let [a, b, c, d, expected @ ..] = frame;
        let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
        let Some((entry, behind)) = behind.split_at_checked(length) else { break };
        if sum(entry) != *expected {
            break;
        }
        // What was written whole and cannot be read is of another version.
        entries.push(one(entry, waiting).ok_or("an entry in it is of another version")?);
        rest = behind;
    }
    Ok((entries, rest.len()))
}

fn one(entry: &[u8], waiting: &Arc<AtomicUsize>) -> Option<Entry> {
    let mut reader = EntryReader(entry);
    match reader.take(1)? {
        b"D" => Some(Entry::Done(reader.number()?, reader.number()?)).filter(|_| reader.0.is_empty()),
        b"E" => {
            let number = reader.number()?;
            let count = reader.length()?;
            let to: Vec<u64> = (0..count).map(|_| reader.number()).collect::<Option<_>>()?;
            let mut fields = Fields::new();
            for _ in 0..reader.take(1)?[0] {
                let (name, value) = (reader.text()?, reader.text()?);
                fields.push((event::field(name)?, value.to_owned()));
            }
            let body = Bytes::copy_from_slice(reader.0);
            waiting.fetch_add(Event::bytes(&fields, &body), Ordering::Relaxed);
            Some(Entry::Event(Arc::new(Event::new(number, fields, body, waiting)), to))
        }
        _ => None,
    }
}

struct EntryReader<'b>(&'b [u8]);

impl<'b> EntryReader<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn length(&mut self) -> Option<usize> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?) as usize)
    }

    fn text(&mut self) -> Option<&'b str> {
        let length = self.length()?;
        std::str::from_utf8(self.take(length)?).ok()
    }
}

/// Reads what was kept, and writes it again as far as it can be read.
pub(crate) fn rewritten(kept: &[u8]) -> Option<Vec<u8>> {
    let (entries, _) = read(kept, &Arc::default()).ok()?;
    let mut bytes = if kept.is_empty() { Vec::new() } else { HEADER.to_vec() };
    entries.iter().for_each(|entry| push(&mut bytes, entry));
    Some(bytes)
}
