//! Finding the next byte that matters, sixteen at a time.
//!
//! Names and values in messages are short. Looking at sixteen bytes at once finds their end without a loop, hence
//! without the mispredicted branch that leaving a loop costs; that branch was a third of the time of a parse.

/// The bytes looked at in one step.
const STEP: usize = 16;

/// Finds the first byte for which the two tests, one for many bytes and one for a single one, are true.
#[inline(always)]
fn find(bytes: &[u8], mut at: usize, many: impl Fn(Block) -> u32, one: impl Fn(u8) -> bool) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<STEP>()) {
        let found = many(Block::load(chunk));
        if found != 0 {
            return at + found.trailing_zeros() as usize;
        }
        at += STEP;
    }
    while at < bytes.len() && !one(bytes[at]) {
        at += 1;
    }
    at
}

/// The next `<` or `&` at or after `at`; the length when there is none.
#[inline]
pub(crate) fn find_text_end(bytes: &[u8], at: usize) -> usize {
    find(bytes, at, |block| block.equal(b'<') | block.equal(b'&'), |byte| matches!(byte, b'<' | b'&'))
}

/// Whether a byte ends a name in a tag: white space or another control character, `>`, `/`, `=`.
#[inline]
pub(crate) fn ends_name(byte: u8) -> bool {
    matches!(byte, b'>' | b'/' | b'=' | 0..=0x20)
}

/// The next byte that ends a name in a tag.
#[inline]
pub(crate) fn find_name_end(bytes: &[u8], at: usize) -> usize {
    let many = |block: Block| block.equal(b'>') | block.equal(b'/') | block.equal(b'=') | block.below(0x21);
    find(bytes, at, many, ends_name)
}

/// The next byte of an attribute value that matters: the quote, `<`, `&`, or white space other than a blank.
#[inline]
pub(crate) fn find_value_end(bytes: &[u8], at: usize, quote: u8) -> usize {
    let many = |block: Block| block.equal(quote) | block.equal(b'<') | block.equal(b'&') | block.below(0x20);
    find(bytes, at, many, |byte| byte == quote || matches!(byte, b'<' | b'&' | 0..0x20))
}

/// The next byte of text that must be escaped when written as XML text.
#[inline]
pub(crate) fn find_text_escape(bytes: &[u8], at: usize) -> usize {
    let many = |block: Block| block.equal(b'<') | block.equal(b'&') | block.equal(b'>') | block.equal(b'\r');
    find(bytes, at, many, |byte| matches!(byte, b'<' | b'&' | b'>' | b'\r'))
}

/// The next byte that must be escaped in an attribute value in double quotes.
#[inline]
pub(crate) fn find_attribute_escape(bytes: &[u8], at: usize) -> usize {
    let many = |block: Block| block.equal(b'<') | block.equal(b'&') | block.equal(b'"') | block.below(0x20);
    find(bytes, at, many, |byte| matches!(byte, b'<' | b'&' | b'"' | 0..0x20))
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the compiler does not turn sixteen comparisons into one on its own")]
mod block {
    use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_max_epu8, _mm_movemask_epi8, _mm_set1_epi8};

    /// Sixteen bytes in a register.
    #[derive(Clone, Copy)]
    pub(super) struct Block(__m128i);

    // SAFETY, of every block below: the instructions are SSE2, which is part of the x86-64 baseline, and the only
    // one that reads memory is given a reference to the sixteen bytes it reads; it needs no alignment.
    impl Block {
        #[inline(always)]
        pub(super) fn load(bytes: &[u8; 16]) -> Block {
            // SAFETY: see above.
            Block(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
        }

        /// A bit for each byte that equals `byte`.
        #[inline(always)]
        pub(super) fn equal(self, byte: u8) -> u32 {
            // SAFETY: see above.
            unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(self.0, _mm_set1_epi8(byte.cast_signed()))) }.cast_unsigned()
        }

        /// A bit for each byte below `bound`.
        #[inline(always)]
        pub(super) fn below(self, bound: u8) -> u32 {
            // SAFETY: see above.
            let not_below = unsafe {
                let bound = _mm_set1_epi8(bound.cast_signed());
                _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(self.0, bound), self.0))
            };
            !not_below.cast_unsigned() & 0xFFFF
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod block {
    /// Sixteen bytes, for the compiler to vectorise as it can.
    #[derive(Clone, Copy)]
    pub(super) struct Block([u8; 16]);

    impl Block {
        #[inline(always)]
        pub(super) fn load(bytes: &[u8; 16]) -> Block {
            Block(*bytes)
        }

        #[inline(always)]
        fn mask(self, test: impl Fn(u8) -> bool) -> u32 {
            self.0.iter().enumerate().fold(0, |mask, (index, &byte)| mask | u32::from(test(byte)) << index)
        }

        #[inline(always)]
        pub(super) fn equal(self, byte: u8) -> u32 {
            self.mask(|found| found == byte)
        }

        #[inline(always)]
        pub(super) fn below(self, bound: u8) -> u32 {
            self.mask(|found| found < bound)
        }
    }
}

use block::Block;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_that_matters_is_found_wherever_it_stands() {
        for length in 0..40 {
            let mut text = vec![b'x'; 40];
            assert_eq!(find_text_end(&text, length), 40);
            text[length] = b'&';
            assert_eq!(find_text_end(&text, 0), length);
            text[length] = b'\n';
            assert_eq!(find_name_end(&text, 0), length);
            assert_eq!(find_value_end(&text, 0, b'"'), length);
            assert_eq!(find_text_end(&text, 0), 40);
            text[length] = 0xE4;
            assert_eq!(find_name_end(&text, 0), 40);
            text[length] = b' ';
            assert_eq!(find_name_end(&text, 0), length);
            assert_eq!(find_value_end(&text, 0, b'"'), 40);
        }
    }
}
