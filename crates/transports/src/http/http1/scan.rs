//! Byte classes and the two loops that look at every byte of a head.

/// RFC 9110 §5.6.2: what a method or a field name is made of.
const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let c = byte as u8;
        table[byte] = c.is_ascii_alphanumeric()
            || matches!(c, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~');
        byte += 1;
    }
    table
};

/// How many bytes of a token `bytes` starts with.
pub(super) fn token_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|&byte| !TOKEN[byte as usize]).unwrap_or(bytes.len())
}

/// How many bytes of field content `bytes` starts with: everything but control characters, tab allowed.
///
/// Eight bytes at a time: a borrow can only mark bytes after the first one found, so the first mark is exact.
pub(super) fn value_length(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let mut at = 0;
    while let Some((word, _)) = bytes.get(at..).and_then(|rest| rest.split_first_chunk::<8>()) {
        let word = u64::from_le_bytes(*word);
        let below_space = word.wrapping_sub(ONES * 0x20) & !word;
        let delete = word ^ (ONES * 0x7f);
        let is_delete = delete.wrapping_sub(ONES) & !delete;
        let marks = (below_space | is_delete) & HIGHS;
        if marks == 0 {
            at += 8;
            continue;
        }
        at += (marks.trailing_zeros() / 8) as usize;
        if bytes.get(at) != Some(&b'\t') {
            return at;
        }
        at += 1;
    }
    while let Some(&byte) = bytes.get(at) {
        if (byte < 0x20 && byte != b'\t') || byte == 0x7f {
            break;
        }
        at += 1;
    }
    at
}

/// Whether a head that was incomplete before may be complete now that bytes from `from` on have arrived: only then
/// is it worth parsing again, so a sender of single bytes costs linear time.
pub(crate) fn may_end_head(bytes: &[u8], from: usize) -> bool {
    let from = from.saturating_sub(3);
    let Some(new) = bytes.get(from..) else { return false };
    memchr::memchr_iter(b'\n', new).any(|at| matches!(new.get(at + 1..), Some([b'\n', ..] | [b'\r', b'\n', ..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_ends_at_the_first_control_character() {
        for length in 0..40 {
            for bad in [0u8, 1, b'\n', b'\r', 0x1f, 0x7f] {
                let mut bytes = vec![b'a'; length];
                bytes.push(bad);
                bytes.extend_from_slice(b"\xc3\xa4 more\r\n");
                assert_eq!(value_length(&bytes), length, "{bad} after {length}");
            }
        }
        let text = "tab\tand \u{e4}\u{ff} \u{80}~ stay in";
        assert_eq!(value_length(text.as_bytes()), text.len());
    }

    #[test]
    fn a_head_may_end_only_where_an_empty_line_arrived() {
        assert!(may_end_head(b"GET / HTTP/1.1\r\n\r\n", 17));
        assert!(may_end_head(b"GET / HTTP/1.1\n\n", 15));
        assert!(!may_end_head(b"GET / HTTP/1.1\r\nA: b\r\n", 4));
    }
}
