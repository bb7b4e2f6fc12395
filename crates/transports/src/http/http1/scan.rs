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

/// What a name of a host is made of: RFC 3986 §3.2.2 without escapes, which are checked by themselves.
const HOST_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let c = byte as u8;
        table[byte] = c.is_ascii_alphanumeric()
            || matches!(c, b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&'..=b'+' | b';' | b'=');
        byte += 1;
    }
    table
};

/// Whether a value can be the authority of a request: a host without user information, perhaps a port (RFC 3986 §3.2).
/// Empty, as `Host` may be for a target that has none.
pub(crate) fn is_authority(value: &[u8]) -> bool {
    let (host_is_good, port) = match value.strip_prefix(b"[") {
        Some(rest) => {
            let Some(end) = memchr::memchr(b']', rest) else { return false };
            let address = std::str::from_utf8(&rest[..end]).ok();
            (address.is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok()), &rest[end + 1..])
        }
        None => {
            let (host, port) = value.split_at(memchr::memchr(b':', value).unwrap_or(value.len()));
            ((!host.is_empty() || port.is_empty()) && is_host_name(host), port)
        }
    };
    host_is_good
        && match port {
            [] => true,
            [b':', digits @ ..] => is_port(digits),
            _ => false,
        }
}

fn is_host_name(mut host: &[u8]) -> bool {
    loop {
        let plain = host.iter().position(|&byte| !HOST_NAME[byte as usize]).unwrap_or(host.len());
        match &host[plain..] {
            [] => return true,
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => host = rest,
            _ => return false,
        }
    }
}

/// The grammar allows an empty port, which is the default one.
fn is_port(digits: &[u8]) -> bool {
    let number = digits.iter().try_fold(0_u32, |number, digit| {
        let number = number * 10 + u32::from(digit.is_ascii_digit().then(|| digit - b'0')?);
        (number <= u32::from(u16::MAX)).then_some(number)
    });
    number.is_some()
}

/// How many bytes of a token `bytes` starts with.
pub(super) fn token_length(bytes: &[u8]) -> usize {
    bytes.iter().position(|&byte| !TOKEN[byte as usize]).unwrap_or(bytes.len())
}

/// Whether these bytes can be a method.
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && token_length(bytes) == bytes.len()
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// Marks the high bit of bytes below `limit` (at most 0x80). A borrow can also mark bytes after the first that is.
fn below(word: u64, limit: u64) -> u64 {
    word.wrapping_sub(ONES * limit) & !word & HIGHS
}

/// Marks the high bit of bytes equal to `byte`, with the same flaw.
fn equal(word: u64, byte: u64) -> u64 {
    below(word ^ (ONES * byte), 1)
}

/// Whether `marks` is zero for all of `bytes`, eight at a time; the last word overlaps the one before, and fewer than
/// eight bytes are filled up with a character that is never marked.
fn none_marked(bytes: &[u8], marks: impl Fn(u64) -> u64) -> bool {
    let Some(last) = bytes.last_chunk::<8>() else {
        let mut padded = [b'x'; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        return marks(u64::from_le_bytes(padded)) == 0;
    };
    let (words, _) = bytes.as_chunks::<8>();
    marks(u64::from_le_bytes(*last)) == 0 && words.iter().all(|word| marks(u64::from_le_bytes(*word)) == 0)
}

/// Whether a field name is `lower`, which is written in lower case. Setting the case bit also
/// maps four control characters to others; a name never holds those.
pub(super) fn is_name(name: &[u8], lower: &[u8]) -> bool {
    const CASE: u64 = ONES * 0x20;
    let same = |one: &[u8; 8], two: &[u8; 8]| u64::from_le_bytes(*one) | CASE == u64::from_le_bytes(*two);
    if name.len() != lower.len() {
        return false;
    }
    match (name.last_chunk(), lower.last_chunk()) {
        (Some(one), Some(two)) => {
            same(one, two) && name.as_chunks().0.iter().zip(lower.as_chunks().0).all(|(one, two)| same(one, two))
        }
        _ => name.eq_ignore_ascii_case(lower),
    }
}

/// Whether there is neither white space nor a control character.
pub(crate) fn is_visible(bytes: &[u8]) -> bool {
    none_marked(bytes, |word| below(word, 0x21) | equal(word, 0x7f))
}

/// Whether a name can stand before a colon without being taken for something else. Weaker than [`token_length`]: it
/// keeps names that a mediator made up from ending a line or a name early.
pub(super) fn is_harmless_name(name: &[u8]) -> bool {
    !name.is_empty() && none_marked(name, |word| below(word, 0x21) | equal(word, 0x7f) | equal(word, u64::from(b':')))
}

/// Whether there is no control character but tab: a value that cannot end its line. Tabs take the slow way.
pub(super) fn is_clean_value(value: &[u8]) -> bool {
    none_marked(value, |word| below(word, 0x20) | equal(word, 0x7f)) || value_length(value) == value.len()
}

/// How many bytes of field content `bytes` starts with: everything but control characters, tab allowed.
///
/// Whole blocks first, which the compiler tests sixteen bytes at a time; most of a long value, such as a token, is passed
/// over so. Then eight bytes at a time: a borrow can only mark bytes after the first one found, so the first mark is exact.
pub(super) fn value_length(bytes: &[u8]) -> usize {
    let (blocks, _) = bytes.as_chunks::<32>();
    let plain = |block: &&[u8; 32]| {
        block.iter().fold(0, |bad, &byte| bad | u8::from(byte < 0x20) | u8::from(byte == 0x7f)) == 0
    };
    let mut at = 32 * blocks.iter().take_while(plain).count();
    while let Some((word, _)) = bytes.get(at..).and_then(|rest| rest.split_first_chunk::<8>()) {
        let word = u64::from_le_bytes(*word);
        let marks = below(word, 0x20) | equal(word, 0x7f);
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
    fn an_authority_is_a_host_and_perhaps_a_port() {
        for good in
            ["", "h", "h:", "h:80", "h:65535", "a-b.c_d~:1", "127.0.0.1:1", "[::1]", "[::1]:8080", "a%2Db", "x;y=(1)"]
        {
            assert!(is_authority(good.as_bytes()), "{good}");
        }
        for bad in [
            ":80",
            ":",
            "h:65536",
            "h:-1",
            "h:80a",
            "h:1:2",
            "h:+1",
            "h: 1",
            "u@h",
            "a b",
            "a,b",
            "a/b",
            "a?b",
            "a#b",
            "a\\b",
            "[::1",
            "::1",
            "[]",
            "[h]",
            "[::1]x",
            "[::1]:x",
            "[v1.a]",
            "[fe80::1%25eth0]",
            "%zz",
            "%2",
            "h\u{e4}",
            "<h>",
            "h\0",
        ] {
            assert!(!is_authority(bad.as_bytes()), "{bad}");
        }
    }

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
        for length in 0..100 {
            for tab in 0..length {
                let mut bytes = vec![b'a'; length];
                bytes[tab] = b'\t';
                assert_eq!(value_length(&bytes), length, "a tab at {tab}");
                bytes.push(b'\r');
                assert_eq!(value_length(&bytes), length, "a tab at {tab}");
            }
        }
        let text = "tab\tand \u{e4}\u{ff} \u{80}~ stay in";
        assert_eq!(value_length(text.as_bytes()), text.len());
    }

    #[test]
    fn whole_words_and_the_rest_are_checked() {
        for length in 0..40 {
            for at in 0..length {
                let mut bytes = vec![b'a'; length];
                assert!(is_visible(&bytes) && is_harmless_name(&bytes) && is_clean_value(&bytes));
                bytes[at] = b':';
                assert!(is_visible(&bytes) && !is_harmless_name(&bytes) && is_clean_value(&bytes));
                bytes[at] = b' ';
                assert!(!is_visible(&bytes) && !is_harmless_name(&bytes) && is_clean_value(&bytes));
                bytes[at] = b'\t';
                assert!(!is_visible(&bytes) && !is_harmless_name(&bytes) && is_clean_value(&bytes));
                bytes[at] = b'\n';
                assert!(!is_visible(&bytes) && !is_harmless_name(&bytes) && !is_clean_value(&bytes));
                bytes[at] = 0xc3;
                assert!(is_visible(&bytes) && is_harmless_name(&bytes) && is_clean_value(&bytes));
            }
        }
        assert!(!is_harmless_name(b""));
    }

    #[test]
    fn names_compare_without_case() {
        for lower in
            [&b"te"[..], b"host", b"upgrade", b"x-header", b"connection", b"content-length", b"transfer-encoding"]
        {
            assert!(is_name(lower, lower) && is_name(&lower.to_ascii_uppercase(), lower));
            assert!(!is_name(b"", lower) && !is_name(&lower[1..], lower));
            for at in 0..lower.len() {
                let mut other = lower.to_vec();
                other[at] = b'!';
                assert!(!is_name(&other, lower));
            }
        }
    }

    #[test]
    fn a_head_may_end_only_where_an_empty_line_arrived() {
        assert!(may_end_head(b"GET / HTTP/1.1\r\n\r\n", 17));
        assert!(may_end_head(b"GET / HTTP/1.1\n\n", 15));
        assert!(!may_end_head(b"GET / HTTP/1.1\r\nA: b\r\n", 4));
    }
}
