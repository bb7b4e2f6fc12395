//! Frame heads in what a client sends (RFC 9113 §4.1), and the header blocks of trailers.
//!
//! The `h2` crate reads the same bytes after us and ends the connection for frames that are malformed; here they only have
//! to be counted, so anything unexpected just stops the scan.

use std::rc::Rc;

use super::hpack::FieldKinds;
use super::watch::{FRAME_COST, FrameWatch, RESET_COST, SETTINGS_COST};

/// What precedes the first frame (RFC 9113 §3.4).
const PREFACE_BYTES: usize = 24;

const HEAD_BYTES: usize = 9;

/// What we allow a client to send in one frame, the default of the protocol. The `h2` crate refuses larger ones.
const FRAME_BYTES_MAX: usize = 16 * 1024;

/// A header block in all its frames. The `h2` crate ends a connection before.
const BLOCK_BYTES_MAX: usize = 512 * 1024;

mod kind {
    pub(super) const DATA: u8 = 0;
    pub(super) const HEADERS: u8 = 1;
    pub(super) const RESET: u8 = 3;
    pub(super) const SETTINGS: u8 = 4;
    pub(super) const CONTINUATION: u8 = 9;
}

mod flag {
    /// Of SETTINGS.
    pub(super) const ACK: u8 = 0x1;
    pub(super) const END_STREAM: u8 = 0x1;
    pub(super) const END_HEADERS: u8 = 0x4;
    pub(super) const PADDED: u8 = 0x8;
    pub(super) const PRIORITY: u8 = 0x20;
}

/// Watches the frames that a client sends.
pub(super) struct FrameScanner {
    watch: Rc<FrameWatch>,
    /// Bytes still to skip: the preface, or a payload that is of no interest.
    skip: usize,
    /// The head of the current frame, as far as it has arrived.
    head: [u8; HEAD_BYTES],
    head_length: usize,
    /// The rest of the payload that is collected.
    collect: usize,
    payload: Vec<u8>,
    /// A header block, all its frames joined.
    block: Vec<u8>,
    fields: FieldKinds,
    /// The highest stream that a HEADERS frame opened.
    last_stream: u32,
    stopped: bool,
}

/// The streams whose trailers are malformed in what a client sends, read in pieces of a size. For the fuzz target.
pub fn malformed_trailers(bytes: &[u8], piece: usize) -> Vec<u32> {
    let watch = Rc::new(FrameWatch::new());
    let mut scanner = FrameScanner::new(watch.clone());
    bytes.chunks(piece.max(1)).for_each(|piece| scanner.scan(piece));
    watch.malformed()
}

struct FrameHead {
    length: usize,
    kind: u8,
    flags: u8,
    stream: u32,
}

impl FrameHead {
    fn parse([a, b, c, kind, flags, stream @ ..]: [u8; HEAD_BYTES]) -> FrameHead {
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        // The highest bit is reserved.
        FrameHead { length, kind, flags, stream: u32::from_be_bytes(stream) & (u32::MAX >> 1) }
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Whether the payload is needed: header blocks, and DATA that may be nothing but padding.
    fn is_collected(&self) -> bool {
        matches!(self.kind, kind::HEADERS | kind::CONTINUATION)
            || (self.kind == kind::DATA && self.has(flag::PADDED) && self.length <= 256)
    }
}

impl FrameScanner {
    pub(super) fn new(watch: Rc<FrameWatch>) -> FrameScanner {
        FrameScanner {
            watch,
            skip: PREFACE_BYTES,
            head: [0; HEAD_BYTES],
            head_length: 0,
            collect: 0,
            payload: Vec::new(),
            block: Vec::new(),
            fields: FieldKinds::new(),
            last_stream: 0,
            stopped: false,
        }
    }

    /// Looks at the next bytes.
    pub(super) fn scan(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.stopped {
            if self.skip > 0 {
                let count = self.skip.min(bytes.len());
                self.skip -= count;
                bytes = &bytes[count..];
            } else if self.collect > 0 {
                let (part, rest) = bytes.split_at(self.collect.min(bytes.len()));
                self.payload.extend_from_slice(part);
                self.collect -= part.len();
                bytes = rest;
                if self.collect == 0 {
                    self.end_frame();
                }
            } else {
                let (part, rest) = bytes.split_at((HEAD_BYTES - self.head_length).min(bytes.len()));
                self.head[self.head_length..self.head_length + part.len()].copy_from_slice(part);
                self.head_length += part.len();
                bytes = rest;
                if self.head_length == HEAD_BYTES {
                    self.begin_frame();
                }
            }
        }
    }

    fn begin_frame(&mut self) {
        self.head_length = 0;
        let head = FrameHead::parse(self.head);
        if head.length > FRAME_BYTES_MAX {
            self.stopped = true;
            return;
        }
        match head.kind {
            // One that ends its stream is how a body of unknown length ends.
            kind::DATA if head.length == 0 && !head.has(flag::END_STREAM) => self.watch.spend(FRAME_COST),
            kind::DATA => {}
            kind::HEADERS => self.watch.spend_headers(),
            kind::RESET => self.watch.spend(RESET_COST),
            kind::SETTINGS if !head.has(flag::ACK) => self.watch.spend(SETTINGS_COST),
            _ => self.watch.spend(FRAME_COST),
        }
        if !head.is_collected() {
            self.skip = head.length;
        } else if head.length == 0 {
            self.payload.clear();
            self.end_frame();
        } else {
            self.payload.clear();
            self.collect = head.length;
        }
    }

    /// The payload of a frame is complete.
    fn end_frame(&mut self) {
        let head = FrameHead::parse(self.head);
        let payload = std::mem::take(&mut self.payload);
        match head.kind {
            kind::HEADERS => {
                self.block.clear();
                match fragment(&head, &payload) {
                    Some(fragment) => self.add_to_block(&head, fragment),
                    None => self.stopped = true,
                }
            }
            kind::CONTINUATION => self.add_to_block(&head, &payload),
            _ => {
                let padding = payload.first().map_or(0, |padding| usize::from(*padding));
                if padding + 1 >= payload.len() && !head.has(flag::END_STREAM) {
                    self.watch.spend(FRAME_COST);
                }
            }
        }
        self.payload = payload;
    }

    fn add_to_block(&mut self, head: &FrameHead, fragment: &[u8]) {
        if self.block.len() + fragment.len() > BLOCK_BYTES_MAX {
            self.stopped = true;
            return;
        }
        self.block.extend_from_slice(fragment);
        if !head.has(flag::END_HEADERS) {
            return;
        }
        // The first block of a stream is its request, the second its trailers.
        let is_trailers = head.stream <= self.last_stream;
        self.last_stream = self.last_stream.max(head.stream);
        match self.fields.read(&self.block) {
            None => self.stopped = true,
            Some(has_pseudo) if has_pseudo && is_trailers => self.watch.note_malformed(head.stream),
            Some(_) => {}
        }
    }
}

/// The part of a header block in a HEADERS frame: without padding and priority (RFC 9113 §6.2).
fn fragment<'p>(head: &FrameHead, payload: &'p [u8]) -> Option<&'p [u8]> {
    let (padding, rest) = match head.has(flag::PADDED) {
        true => payload.split_first().map(|(padding, rest)| (usize::from(*padding), rest))?,
        false => (0, payload),
    };
    let rest = rest.get(if head.has(flag::PRIORITY) { 5 } else { 0 }..)?;
    rest.get(..rest.len().checked_sub(padding)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        bytes.extend([kind, flags]);
        bytes.extend(stream.to_be_bytes());
        bytes.extend(payload);
        bytes
    }

    fn scanner() -> (Rc<FrameWatch>, FrameScanner) {
        let watch = Rc::new(FrameWatch::new());
        let mut scanner = FrameScanner::new(watch.clone());
        scanner.scan(&[b'P'; PREFACE_BYTES]);
        (watch, scanner)
    }

    /// How many of a frame a connection may send at once.
    fn allowed(frame: &[u8]) -> usize {
        let (watch, mut scanner) = scanner();
        (0..2000)
            .take_while(|_| {
                scanner.scan(frame);
                !watch.is_exceeded()
            })
            .count()
    }

    #[test]
    fn frames_that_move_nothing_are_counted() {
        // A slow machine may get a few back while it counts.
        let about = |count: usize, expected: usize| (expected..expected + 20).contains(&count);
        for (frame, expected) in [
            (frame(4, 0, 0, &[]), 100),
            (frame(4, 0, 0, &[0; 6]), 100),
            (frame(3, 0, 1, &[0; 4]), 500),
            (frame(6, 0, 0, &[0; 8]), 1000),
            (frame(2, 0, 1, &[0; 5]), 1000),
            (frame(8, 0, 0, &[0, 0, 0, 1]), 1000),
            (frame(0x7a, 0, 0, &[0; 100]), 1000),
            (frame(0, 0, 1, &[]), 1000),
            (frame(0, 8, 1, &[4, 0, 0, 0, 0]), 1000),
            (frame(1, 0, 1, &[]), 1000),
            (frame(9, 0, 1, &[]), 1000),
        ] {
            let count = allowed(&frame);
            assert!(about(count, expected), "{count} of {frame:?}");
        }
        for frame in [frame(0, 0, 1, &[0]), frame(0, 1, 1, &[]), frame(0, 8, 1, &[3, 0, 0, 0, 0])] {
            assert_eq!(allowed(&frame), 2000, "{frame:?}");
        }
    }

    /// A request, then trailers; `pieces` cuts what arrives.
    fn malformed(trailers: &[u8], piece: usize) -> bool {
        let (watch, mut scanner) = scanner();
        let mut bytes = frame(1, 4 | 8 | 0x20, 1, &[2, 0, 0, 0, 0, 0, 0x83, 0x44, 2, b'/', b'a', 0, 0]);
        bytes.extend(frame(0, 0, 1, b"body"));
        bytes.extend(trailers);
        bytes.chunks(piece).for_each(|piece| scanner.scan(piece));
        assert!(!scanner.stopped);
        watch.has_malformed_trailers(1)
    }

    #[test]
    fn pseudo_header_fields_in_trailers_are_found() {
        let plain = [&[0x40, 1, b'x', 1, b'y'][..], &[0xbe]].concat();
        for piece in [1, 2, 7, 1000] {
            // An entry of the static table, a name of it, a name in full, and what the request put into the table.
            for bad in [&[0x82][..], &[0x04, 1, b'/'], &[0x10, 2, b':', b'a', 0], &[0x00, 0x81, 0xb9, 0], &[0xbe]] {
                assert!(malformed(&frame(1, 5, 1, bad), piece), "{bad:?}");
                let split = [frame(1, 1, 1, &plain[..3]), frame(9, 0, 1, &plain[3..5]), frame(9, 4, 1, bad)].concat();
                assert_eq!(malformed(&split, piece), bad != [0xbe], "{bad:?} after a field");
            }
            assert!(!malformed(&frame(1, 5, 1, &plain), piece));
        }
    }
}
