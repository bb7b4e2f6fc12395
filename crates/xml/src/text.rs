//! Text that was checked once to be UTF-8, and references into it.

use bytes::Bytes;

use crate::chars::Contents;

/// Shared bytes that are known to be UTF-8.
///
/// Invariant: `bytes` is valid UTF-8. `Bytes` is immutable and its content does not move, so checking it in
/// [`Text::new`] is enough.
#[derive(Clone, Default)]
pub(crate) struct Text {
    bytes: Bytes,
    contents: Contents,
}

impl Text {
    /// Checks the bytes; on failure the number of leading bytes that are text comes back, with the bytes.
    pub(crate) fn new(bytes: Bytes) -> Result<Text, (usize, Bytes)> {
        let contents = Contents::scan(&bytes);
        if contents.non_ascii
            && let Err(valid) = penstock_budget::utf8(&bytes)
        {
            return Err((valid, bytes));
        }
        Ok(Text { bytes, contents })
    }

    #[inline]
    #[expect(unsafe_code, reason = "checking 100 KB again at every access would cost more than parsing it")]
    pub(crate) fn as_str(&self) -> &str {
        // SAFETY: the type's invariant; `bytes` is private and `new`, which checks, is the only way in.
        unsafe { std::str::from_utf8_unchecked(&self.bytes) }
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(crate) fn contents(&self) -> Contents {
        self.contents
    }
}

/// A piece of text: an index range of either the source or the strings a document owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StrRef {
    /// The first byte; with [`OWNED`] set it counts in the owned strings.
    pub(crate) start: u32,
    /// The number of bytes.
    pub(crate) len: u32,
}

/// Marks a start as one in the owned strings. Hence neither store may exceed 2 GiB.
pub(crate) const OWNED: u32 = 1 << 31;

impl StrRef {
    pub(crate) const EMPTY: StrRef = StrRef { start: 0, len: 0 };
}

/// The two stores of a document's text: the source it was parsed from, and what had to be made.
#[derive(Clone, Default)]
pub(crate) struct Strings {
    pub(crate) source: Text,
    pub(crate) owned: String,
}

impl Strings {
    #[inline]
    pub(crate) fn get(&self, piece: StrRef) -> &str {
        let store = if piece.start & OWNED == 0 { self.source.as_str() } else { &self.owned };
        let start = (piece.start & !OWNED) as usize;
        &store[start..start + piece.len as usize]
    }

    /// Stores a text. What would exceed the store's 2 GiB is left out.
    pub(crate) fn push(&mut self, text: &str) -> StrRef {
        if text.is_empty() || !self.has_room(text) {
            return StrRef::EMPTY;
        }
        let start = self.owned.len() as u32 | OWNED;
        penstock_budget::make_room_for_text(&mut self.owned, text.len());
        self.owned.push_str(text);
        StrRef { start, len: text.len() as u32 }
    }

    /// Whether a text can still be stored.
    #[inline]
    pub(crate) fn has_room(&self, text: &str) -> bool {
        self.owned.len() + text.len() < OWNED as usize
    }
}
