//! The lines of a response: status, header fields, sizes.

pub(super) fn parse_status_line(head: &[u8]) -> Option<(bool, u16)> {
    let rest = head.strip_prefix(b"HTTP/1.")?;
    let http11 = match rest.first()? {
        b'1' => true,
        b'0' => false,
        _ => return None,
    };
    let [b' ', a, b, c, after, ..] = rest[1..] else { return None };
    let digits = [a, b, c];
    if !digits.iter().all(u8::is_ascii_digit) || !matches!(after, b' ' | b'\r') {
        return None;
    }
    let status = digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0'));
    (status >= 100).then_some((http11, status))
}

pub(super) fn header_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = head;
    std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', rest)?;
        let line = &rest[..end];
        rest = &rest[end + 1..];
        Some(line)
    })
}

pub(super) fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = line.split_at_checked(name.len())?;
    if !start.eq_ignore_ascii_case(name) {
        return None;
    }
    Some(rest.strip_prefix(b":")?.trim_ascii())
}

pub(super) fn has_word(value: &[u8], word: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(word))
}

pub(super) fn parse_decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

pub(super) fn parse_hexadecimal(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| *byte == b';').next()?.trim_ascii();
    let text = std::str::from_utf8(digits).ok()?;
    if text.is_empty() || text.starts_with('+') {
        return None;
    }
    u64::from_str_radix(text, 16).ok()
}
