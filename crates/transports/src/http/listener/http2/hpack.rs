//! Which fields of a header block are pseudo-header fields, by HPACK (RFC 7541) and no more of it than that needs.
//!
//! The `h2` crate drops pseudo-header fields of trailers silently and does not expose them. So names
//! are followed here: literal ones by their first byte, indexed ones through the dynamic table, whose
//! entries are known by size and kind only. Values are not decoded; of those that enter the table, only their length.

use std::collections::VecDeque;

/// The default of `SETTINGS_HEADER_TABLE_SIZE`, which the listener does not change.
const TABLE_BYTES_MAX: usize = 4096;

/// RFC 7541 §4.1.
const ENTRY_OVERHEAD: usize = 32;

/// RFC 7541, appendix A: the names, from index 1.
const STATIC_NAMES: [&str; 61] = [
    ":authority",
    ":method",
    ":method",
    ":path",
    ":path",
    ":scheme",
    ":scheme",
    ":status",
    ":status",
    ":status",
    ":status",
    ":status",
    ":status",
    ":status",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "accept",
    "access-control-allow-origin",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "link",
    "location",
    "max-forwards",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "refresh",
    "retry-after",
    "server",
    "set-cookie",
    "strict-transport-security",
    "transfer-encoding",
    "user-agent",
    "vary",
    "via",
    "www-authenticate",
];

/// RFC 7541, appendix B is a canonical code: for each length in bits its first code and how many there are.
const HUFFMAN: [(u32, u32); 31] = {
    let mut table = [(0, 0); 31];
    let lengths: [(usize, u32, u32); 21] = [
        (5, 0x0, 10),
        (6, 0x14, 26),
        (7, 0x5c, 32),
        (8, 0xf8, 6),
        (10, 0x3f8, 5),
        (11, 0x7fa, 3),
        (12, 0xffa, 2),
        (13, 0x1ff8, 6),
        (14, 0x3ffc, 2),
        (15, 0x7ffc, 3),
        (19, 0x7fff0, 3),
        (20, 0xfffe6, 8),
        (21, 0x1fffdc, 13),
        (22, 0x3fffd2, 26),
        (23, 0x7fffd8, 29),
        (24, 0xffffea, 12),
        (25, 0x1ffffec, 4),
        (26, 0x3ffffe0, 15),
        (27, 0x7ffffde, 19),
        (28, 0xfffffe2, 29),
        // Without the one that ends a string, which must not occur (§5.2).
        (30, 0x3ffffffc, 3),
    ];
    let mut at = 0;
    while at < lengths.len() {
        let (length, first, count) = lengths[at];
        table[length] = (first, count);
        at += 1;
    }
    table
};

/// Follows the header blocks of one side of a connection.
pub(super) struct FieldKinds {
    /// The dynamic table, newest first.
    entries: VecDeque<Entry>,
    size: usize,
    size_max: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    name_length: usize,
    size: usize,
    is_pseudo: bool,
}

/// The name of a field.
#[derive(Clone, Copy)]
struct Name {
    length: usize,
    is_pseudo: bool,
}

impl FieldKinds {
    pub(super) fn new() -> FieldKinds {
        FieldKinds { entries: VecDeque::new(), size: 0, size_max: TABLE_BYTES_MAX }
    }

    /// Reads a block; whether one of its fields is a pseudo-header field. `None` when it is malformed.
    pub(super) fn read(&mut self, block: &[u8]) -> Option<bool> {
        let mut rest = block;
        let mut has_pseudo = false;
        while let Some(&first) = rest.first() {
            match first {
                // §6.1: name and value of an entry.
                0x80.. => has_pseudo |= self.name(integer(&mut rest, 7)?)?.is_pseudo,
                // §6.2.1: a literal that enters the table.
                0x40..0x80 => {
                    let name = self.literal_name(&mut rest, 6)?;
                    let value_length = string(&mut rest)?.decoded_length()?;
                    has_pseudo |= name.is_pseudo;
                    self.insert(name, value_length);
                }
                // §6.3: another size of the table.
                0x20..0x40 => {
                    let size_max = integer(&mut rest, 5)?;
                    self.size_max = (size_max <= TABLE_BYTES_MAX).then_some(size_max)?;
                    self.evict();
                }
                // §6.2.2, §6.2.3: a literal that does not enter the table.
                _ => {
                    has_pseudo |= self.literal_name(&mut rest, 4)?.is_pseudo;
                    string(&mut rest)?;
                }
            }
        }
        Some(has_pseudo)
    }

    fn name(&self, index: usize) -> Option<Name> {
        let index = index.checked_sub(1)?;
        match STATIC_NAMES.get(index) {
            Some(name) => Some(Name { length: name.len(), is_pseudo: name.starts_with(':') }),
            None => {
                let entry = self.entries.get(index - STATIC_NAMES.len())?;
                Some(Name { length: entry.name_length, is_pseudo: entry.is_pseudo })
            }
        }
    }

    fn literal_name(&self, rest: &mut &[u8], prefix: u32) -> Option<Name> {
        match integer(rest, prefix)? {
            0 => {
                let name = string(rest)?;
                Some(Name { length: name.decoded_length()?, is_pseudo: name.begins_with_colon() })
            }
            index => self.name(index),
        }
    }

    fn insert(&mut self, name: Name, value_length: usize) {
        let size = name.length + value_length + ENTRY_OVERHEAD;
        self.entries.push_front(Entry { name_length: name.length, size, is_pseudo: name.is_pseudo });
        self.size += size;
        // §4.4: an entry that is larger than the table empties it.
        self.evict();
    }

    fn evict(&mut self) {
        while self.size > self.size_max
            && let Some(oldest) = self.entries.pop_back()
        {
            self.size -= oldest.size;
        }
    }
}

/// §5.1: an integer with a prefix of so many bits.
fn integer(rest: &mut &[u8], prefix: u32) -> Option<usize> {
    let (first, mut left) = rest.split_first()?;
    let ceiling = (1_usize << prefix) - 1;
    let mut value = usize::from(*first) & ceiling;
    if value == ceiling {
        // Four more bytes are enough for any value in a frame.
        for shift in [0, 7, 14, 21, 28] {
            let (next, after) = left.split_first()?;
            left = after;
            value = value.checked_add((usize::from(*next) & 0x7f) << shift)?;
            if next & 0x80 == 0 {
                *rest = left;
                return Some(value);
            }
        }
        return None;
    }
    *rest = left;
    Some(value)
}

/// §5.2: a string as it was sent.
struct Literal<'b> {
    bytes: &'b [u8],
    huffman: bool,
}

fn string<'b>(rest: &mut &'b [u8]) -> Option<Literal<'b>> {
    let huffman = *rest.first()? & 0x80 != 0;
    let length = integer(rest, 7)?;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(Literal { bytes, huffman })
}

impl Literal<'_> {
    fn begins_with_colon(&self) -> bool {
        /// The code of `:` has seven bits.
        const COLON: u8 = 0x5c;
        self.bytes.first().is_some_and(|&first| if self.huffman { first >> 1 == COLON } else { first == b':' })
    }

    fn decoded_length(&self) -> Option<usize> {
        if !self.huffman {
            return Some(self.bytes.len());
        }
        let (mut count, mut code, mut length) = (0, 0_u32, 0);
        for byte in self.bytes {
            for shift in (0..8).rev() {
                code = code << 1 | u32::from(byte >> shift) & 1;
                length += 1;
                let (first, codes) = *HUFFMAN.get(length)?;
                if code >= first && code - first < codes {
                    (count, code, length) = (count + 1, 0, 0);
                }
            }
        }
        // What is left is padding.
        Some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
        digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
    }

    /// The examples of RFC 7541, appendices C.4 and C.6: the size of the table after each block.
    #[test]
    fn the_table_has_the_size_of_the_examples() {
        let requests: &[(&str, usize)] = &[
            ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", 57),
            ("8286 84be 5886 a8eb 1064 9cbf", 110),
            ("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", 164),
        ];
        let responses: &[(&str, usize)] = &[
            (
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 \
                 63c7 8f0b 97c8 e9ae 82ae 43d3",
                222,
            ),
            ("4883 640e ffc1 c0bf", 222),
            (
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 \
                 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
                215,
            ),
        ];
        for (blocks, size_max) in [(requests, TABLE_BYTES_MAX), (responses, 256)] {
            let mut fields = FieldKinds::new();
            fields.size_max = size_max;
            for (block, size) in blocks {
                assert_eq!(fields.read(&bytes(block)), Some(true), "{block}");
                assert_eq!(fields.size, *size, "{block}");
            }
        }
    }

    #[test]
    fn malformed_blocks_are_distinguished() {
        for block in ["80", "c0", "40", "40 01", "00 7f ff ff ff ff ff", "3f e2 1f", "00 05 61", "40 84 ff ff ff ff 00"]
        {
            assert_eq!(FieldKinds::new().read(&bytes(block)), None, "{block}");
        }
        assert_eq!(FieldKinds::new().read(&[]), Some(false));
    }

    #[test]
    fn an_entry_larger_than_the_table_empties_it() {
        let mut fields = FieldKinds::new();
        assert_eq!(fields.read(&bytes("40 01 61 01 62")), Some(false));
        let mut large = bytes("40 01 61 7f 80 20");
        large.extend(vec![b'x'; 127 + 4096]);
        assert_eq!(fields.read(&large), Some(false));
        assert_eq!((fields.size, fields.entries.len()), (0, 0));
        assert_eq!(fields.read(&bytes("be")), None);
    }
}
