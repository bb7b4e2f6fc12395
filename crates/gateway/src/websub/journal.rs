//! Events as they are kept until they are delivered: a file that grows by what happens, and is written anew when most of
//! it is over.
//! What stands in it is in `entry.rs`. What is no whole entry at the end of the file was being written when the process
//! ended; it was not acknowledged.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::entry::{self, Entry, HEADER};
use super::event::Event;

/// The file is not written anew for less.
const OVER_BYTES_MIN: u64 = 16 << 20;

/// Where events are kept. Both return when what was written is on the disk, and log why when it is not.
pub trait EventFile: Send {
    /// Puts bytes behind those that are there.
    fn append(&mut self, bytes: &[u8]) -> Result<(), String>;
    /// Replaces the whole file by pieces.
    fn replace(&mut self, pieces: &mut dyn Iterator<Item = Vec<u8>>) -> Result<(), String>;
}

/// The file, and what of it is not over.
pub(crate) struct Journal {
    file: Box<dyn EventFile>,
    live: BTreeMap<u64, Live>,
    live_bytes: u64,
    file_bytes: u64,
    next_event: u64,
    /// Whether the file must be written anew before anything is put behind it.
    is_stale: bool,
}

/// A pending event.
struct Live {
    event: Arc<Event>,
    to: Vec<u64>,
    done: HashSet<u64>,
}

impl Journal {
    /// Reads what was kept; also says how many bytes at its end are no whole entry.
    pub(super) fn read(
        file: Box<dyn EventFile>,
        kept: &[u8],
        waiting: &Arc<AtomicUsize>,
    ) -> Result<(Journal, usize), String> {
        let (entries, torn) = entry::read(kept, waiting)?;
        let mut journal = Journal {
            file,
            live: BTreeMap::new(),
            live_bytes: 0,
            file_bytes: kept.len() as u64,
            next_event: 0,
            // An empty file has no header yet, and behind a torn entry nothing would be found.
            is_stale: true,
        };
        entries.into_iter().for_each(|entry| journal.note(entry));
        Ok((journal, torn))
    }

    /// The number of the next event.
    pub(super) fn next_event(&self) -> u64 {
        self.next_event
    }

    /// Events and who waits for them, in the order they were published.
    pub(super) fn waiting(&self) -> Vec<(Arc<Event>, u64)> {
        let of = |live: &Live| live.waiting().map(|id| (live.event.clone(), id)).collect::<Vec<_>>();
        self.live.values().flat_map(of).collect()
    }

    /// Writes down what happened; whether it is on the disk.
    pub(super) fn write(&mut self, entries: Vec<Entry>) -> bool {
        if entries.is_empty() && !(self.is_stale && self.file_bytes > 0) {
            return true;
        }
        let mut bytes = Vec::new();
        for entry in entries {
            entry::push(&mut bytes, &entry);
            self.note(entry);
        }
        let over = self.file_bytes.saturating_sub(self.live_bytes);
        if self.is_stale || over > OVER_BYTES_MIN.max(self.live_bytes) {
            return self.write_anew();
        }
        let written = self.file.append(&bytes).is_ok();
        self.file_bytes += bytes.len() as u64;
        // How much of it got there is not known.
        self.is_stale = !written;
        written
    }

    fn write_anew(&mut self) -> bool {
        let mut bytes = HEADER.len() as u64;
        let piece = |live: &Live| {
            let mut piece = Vec::new();
            entry::push_event(&mut piece, &live.event, &live.waiting().collect::<Vec<_>>());
            bytes += piece.len() as u64;
            piece
        };
        let mut pieces = std::iter::once(HEADER.to_vec()).chain(self.live.values().map(piece));
        let written = self.file.replace(&mut pieces).is_ok();
        drop(pieces);
        self.is_stale = !written;
        (self.file_bytes, self.live_bytes) = (bytes, bytes);
        written
    }

    fn note(&mut self, entry: Entry) {
        match entry {
            Entry::Event(event, to) => {
                self.next_event = self.next_event.max(event.number.saturating_add(1));
                let live = Live { event, to, done: HashSet::new() };
                self.live_bytes += live.bytes();
                self.live.insert(live.event.number, live);
            }
            Entry::Done(number, id) => {
                let Some(live) = self.live.get_mut(&number) else { return };
                live.done.insert(id);
                if live.done.len() >= live.to.len() {
                    self.live_bytes = self.live_bytes.saturating_sub(live.bytes());
                    self.live.remove(&number);
                }
            }
        }
    }
}

impl Live {
    fn waiting(&self) -> impl Iterator<Item = u64> {
        self.to.iter().copied().filter(|id| !self.done.contains(id))
    }

    /// About what it takes in the file.
    fn bytes(&self) -> u64 {
        (Event::bytes(&self.event.fields, &self.event.body) + 8 * self.to.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::Ordering;

    use bytes::Bytes;

    use super::entry::rewritten;
    use super::*;

    /// A file in memory, which may be full.
    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<(Vec<u8>, bool)>>);

    impl Memory {
        fn bytes(&self) -> Vec<u8> {
            self.0.lock().expect("no test panics with it").0.clone()
        }

        fn full(&self, full: bool) {
            self.0.lock().expect("no test panics with it").1 = full;
        }
    }

    impl EventFile for Memory {
        fn append(&mut self, bytes: &[u8]) -> Result<(), String> {
            let mut file = self.0.lock().expect("no test panics with it");
            if file.1 {
                // Half of it got there.
                file.0.extend_from_slice(&bytes[..bytes.len() / 2]);
                return Err("full".to_owned());
            }
            file.0.extend_from_slice(bytes);
            Ok(())
        }

        fn replace(&mut self, pieces: &mut dyn Iterator<Item = Vec<u8>>) -> Result<(), String> {
            let all: Vec<u8> = pieces.flatten().collect();
            let mut file = self.0.lock().expect("no test panics with it");
            if file.1 {
                return Err("full".to_owned());
            }
            file.0 = all;
            Ok(())
        }
    }

    fn event(number: u64, body: &'static [u8], to: &[u64]) -> Entry {
        let fields = vec![("Content-Type", "text/plain".to_owned())];
        let body = Bytes::from_static(body);
        let waiting = Arc::new(AtomicUsize::new(Event::bytes(&fields, &body)));
        Entry::Event(Arc::new(Event::new(number, fields, body, &waiting)), to.to_vec())
    }

    fn open(memory: &Memory) -> (Journal, usize) {
        Journal::read(Box::new(memory.clone()), &memory.bytes(), &Arc::default()).expect("it can be read")
    }

    fn waiting(journal: &Journal) -> Vec<(u64, String, u64)> {
        let text = |event: &Event| String::from_utf8_lossy(&event.body).into_owned();
        journal.waiting().iter().map(|(event, id)| (event.number, text(event), *id)).collect()
    }

    #[test]
    fn pending_events_are_restored() {
        let memory = Memory::default();
        let (mut journal, _) = open(&memory);
        assert!(journal.write(Vec::new()) && memory.bytes().is_empty(), "nothing is written before there is something");
        assert!(journal.write(vec![event(7, b"one", &[1, 2]), event(8, b"two", &[2])]));
        assert!(journal.write(vec![Entry::Done(7, 1), Entry::Done(99, 1), event(9, b"", &[3]), Entry::Done(9, 3)]));
        let expected = [(7, "one".to_owned(), 2), (8, "two".to_owned(), 2)];
        assert_eq!(waiting(&journal), expected);
        let (again, torn) = open(&memory);
        assert_eq!((waiting(&again), torn, again.next_event()), (expected.to_vec(), 0, 10));
        // Entries before a truncated end are read.
        let whole = memory.bytes();
        for end in HEADER.len()..whole.len() {
            let read = Journal::read(Box::new(memory.clone()), &whole[..end], &Arc::default());
            assert!(read.expect("a beginning can be read").0.waiting().len() <= 3, "{end}");
        }
        assert!(Journal::read(Box::new(memory.clone()), b"something else", &Arc::default()).is_err());
        assert_eq!(rewritten(&whole), Some(whole));
    }

    #[test]
    fn what_is_over_goes_and_what_could_not_be_written_is_written_later() {
        let memory = Memory::default();
        let (mut journal, _) = open(&memory);
        static LARGE: [u8; 1 << 20] = [b'x'; 1 << 20];
        assert!(journal.write(vec![event(0, b"stays", &[1])]));
        for number in 1..100 {
            assert!(journal.write(vec![event(number, &LARGE, &[1]), Entry::Done(number, 1)]));
            assert!(memory.bytes().len() < 20 << 20);
        }
        assert_eq!(waiting(&journal), [(0, "stays".to_owned(), 1)]);
        memory.full(true);
        assert!(!journal.write(vec![event(100, b"torn", &[1])]));
        assert!(!journal.write(vec![event(101, b"lost", &[1])]));
        memory.full(false);
        assert!(journal.write(Vec::new()));
        let (again, torn) = open(&memory);
        assert_eq!((waiting(&again), torn), (waiting(&journal), 0));
        assert_eq!(waiting(&again).len(), 3);
    }

    #[test]
    fn bytes_that_wait_are_counted() {
        let memory = Memory::default();
        let (mut journal, _) = open(&memory);
        assert!(journal.write(vec![event(0, b"body", &[1, 2])]));
        let count = Arc::<AtomicUsize>::default();
        let (mut again, _) = Journal::read(Box::new(memory.clone()), &memory.bytes(), &count).expect("it can be read");
        assert!(count.load(Ordering::Relaxed) > 4);
        assert!(again.write(vec![Entry::Done(0, 1), Entry::Done(0, 2)]));
        assert_eq!(count.load(Ordering::Relaxed), 0);
    }
}
