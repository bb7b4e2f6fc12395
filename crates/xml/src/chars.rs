//! Characters: which are allowed and which make names.

/// What a stretch of text contains, found in one pass so that the scanners need not look again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// A byte of a character outside ASCII.
    pub(crate) non_ascii: bool,
    /// A control character that XML forbids (XML 1.0 §2.2).
    pub(crate) control: bool,
    /// A carriage return, which XML turns into a line feed (§2.11).
    pub(crate) carriage_return: bool,
    /// A closing bracket, which might be part of a forbidden `]]>` (§2.4).
    pub(crate) bracket: bool,
}

impl Contents {
    /// What two stretches contain together.
    pub(crate) fn and(self, other: Contents) -> Contents {
        Contents {
            non_ascii: self.non_ascii | other.non_ascii,
            control: self.control | other.control,
            carriage_return: self.carriage_return | other.carriage_return,
            bracket: self.bracket | other.bracket,
        }
    }

    pub(crate) fn scan(bytes: &[u8]) -> Contents {
        let mut found = Contents::default();
        for piece in bytes.chunks(BYTES_AT_ONCE) {
            let mut blocks = piece.chunks_exact(BLOCK);
            for block in &mut blocks {
                found.add(block);
            }
            found.add(blocks.remainder());
            penstock_budget::steps(piece.len() / BLOCK);
        }
        found
    }

    #[inline]
    fn add(&mut self, block: &[u8]) {
        let (mut high, mut low, mut bracket) = (0_u8, 0xFF_u8, 0_u8);
        for &byte in block {
            high |= byte;
            low = low.min(byte);
            bracket |= u8::from(byte == b']');
        }
        self.non_ascii |= high & 0x80 != 0;
        self.bracket |= bracket != 0;
        if low < 0x20 {
            self.add_low(block);
        }
    }

    /// A closer look at a block with control characters: documents without line ends have none.
    fn add_low(&mut self, block: &[u8]) {
        let (mut control, mut carriage_return) = (0_u8, 0_u8);
        for &byte in block {
            control |= u8::from(byte < 0x20) & u8::from(byte != 9) & u8::from(byte != 10) & u8::from(byte != 13);
            carriage_return |= u8::from(byte == b'\r');
        }
        self.control |= control != 0;
        self.carriage_return |= carriage_return != 0;
    }
}

/// Small enough to stay in registers, large enough for the compiler to vectorise.
const BLOCK: usize = 128;

/// Bytes that are looked at between two pauses: some tens of microseconds.
const BYTES_AT_ONCE: usize = 512 * BLOCK;

/// The offset of the first character that XML 1.0 §2.2 forbids.
pub(crate) fn forbidden_char(text: &str) -> Option<usize> {
    text.char_indices().find(|&(_, c)| !is_char(c)).map(|(offset, _)| offset)
}

/// Whether XML 1.0 allows the character at all.
pub(crate) fn is_char(c: char) -> bool {
    !matches!(c, '\u{0}'..='\u{8}' | '\u{B}' | '\u{C}' | '\u{E}'..='\u{1F}' | '\u{FFFE}' | '\u{FFFF}')
}

/// Set for every byte that a name may contain.
pub(crate) const NAME: u8 = 1;
/// Set for every byte that a name may begin with.
pub(crate) const NAME_START: u8 = 2;
/// Set for bytes of characters outside ASCII; a closer look says whether they may be part of a name.
pub(crate) const NON_ASCII: u8 = 4;
/// Set for white space.
pub(crate) const SPACE: u8 = 8;

/// What each byte may be part of.
pub(crate) static CLASS: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let byte = index as u8;
        table[index] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => NAME | NAME_START,
            b'0'..=b'9' | b'-' | b'.' => NAME,
            b':' => NAME | NAME_START,
            0x80.. => NAME | NAME_START | NON_ASCII,
            b' ' | b'\t' | b'\r' | b'\n' => SPACE,
            _ => 0,
        };
        index += 1;
    }
    table
}

#[inline]
pub(crate) fn is_space(byte: u8) -> bool {
    CLASS[byte as usize] & SPACE != 0
}

pub(crate) fn is_blank(text: &str) -> bool {
    text.bytes().all(is_space)
}

/// XML 1.0 (fifth edition) §2.3, production 4.
pub(crate) fn is_name_start(c: char) -> bool {
    matches!(c,
        ':' | '_' | 'A'..='Z' | 'a'..='z'
        | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}' | '\u{370}'..='\u{37D}'
        | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}' | '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}'
        | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}')
}

/// Production 4a.
pub(crate) fn is_name_char(c: char) -> bool {
    is_name_start(c) || matches!(c, '-' | '.' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

/// Whether the whole text is a name of XML 1.0.
pub fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(is_name_start) && chars.all(is_name_char)
}

/// Whether the whole text is a name without a colon, as Namespaces in XML calls an NCName.
pub fn is_ncname(text: &str) -> bool {
    is_name(text) && !text.contains(':')
}
