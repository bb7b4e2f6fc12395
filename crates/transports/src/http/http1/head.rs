//! Request and reply heads: bytes to ranges, and every reason to refuse.
//!
//! Strict where leniency lets two parties disagree about where a message ends (RFC 9112 §11.2): no bare LF, no
//! obs-fold, no white space before a colon, one Content-Length of digits only, never together with
//! Transfer-Encoding, `chunked` as the only transfer coding.

mod error;

use std::ops::Range;

pub use error::HeadError;

use super::fields::FieldBlock;
use super::scan::{is_authority, token_length, value_length};
use crate::http::HttpLimits;

/// A trailer section is parsed anew with every piece of it that arrives, so it must stay small, however it arrives.
const TRAILER_BYTES_MAX: usize = 8 * 1024;

/// Where a name and its value lie in a head.
pub type Field = (Range<u32>, Range<u32>);

/// What the fields say about framing and the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// `Content-Length`.
    pub content_length: Option<u64>,
    /// `Transfer-Encoding: chunked`.
    pub chunked: bool,
    /// `Connection: close`.
    pub close: bool,
    /// `Connection: keep-alive`.
    pub keep_alive: bool,
    /// `Connection` names fields that end at this hop.
    pub names_fields: bool,
    /// `Expect: 100-continue`.
    pub expect_continue: bool,
}

/// A parsed request head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHead {
    /// The method token.
    pub method: Range<usize>,
    /// Path and query; of an absolute target only that part, empty when it has none.
    pub target: Range<usize>,
    /// The authority of an absolute target, which replaces `Host`.
    pub authority: Option<Range<usize>>,
    /// HTTP/1.0 rather than 1.1.
    pub is_http10: bool,
    /// All fields in order.
    pub fields: Vec<Field>,
    /// What they say.
    pub facts: Facts,
    /// How many bytes the head takes, the empty line included.
    pub length: usize,
}

/// A parsed reply head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyHead {
    /// The status code, 100 to 999.
    pub status: u16,
    /// The reason phrase.
    pub reason: Range<usize>,
    /// HTTP/1.0 rather than 1.1.
    pub is_http10: bool,
    /// All fields in order.
    pub fields: Vec<Field>,
    /// What they say.
    pub facts: Facts,
    /// How many bytes the head takes, the empty line included.
    pub length: usize,
}

/// Parses a request head at the start of `bytes`; `None` when it is not complete.
pub fn parse_request(bytes: &[u8], limits: &HttpLimits) -> Result<Option<RequestHead>, HeadError> {
    parse_request_into(Vec::new(), bytes, limits)
}

/// The same with a vector for the fields.
pub(crate) fn parse_request_into(
    fields: Vec<Field>,
    bytes: &[u8],
    limits: &HttpLimits,
) -> Result<Option<RequestHead>, HeadError> {
    let Some((method, target, is_http10, at)) = request_line(bytes, limits)? else {
        return too_long_or_none(bytes, limits);
    };
    let mut block = FieldBlock::new(limits, fields);
    let Some(length) = block.parse(bytes, at)? else { return too_long_or_none(bytes, limits) };
    let facts = block.facts;
    if facts.chunked && is_http10 {
        return Err(HeadError::Ambiguous);
    }
    if block.hosts > 1 || (block.hosts == 0 && !is_http10) {
        return Err(HeadError::Host);
    }
    if block.unknown_expectation {
        return Err(HeadError::Expectation);
    }
    let (target, authority) = split_target(bytes, &method, target)?;
    Ok(Some(RequestHead { method, target, authority, is_http10, fields: block.fields, facts, length }))
}

/// Parses a reply head at the start of `bytes`; `None` when it is not complete.
pub fn parse_reply(bytes: &[u8], limits: &HttpLimits) -> Result<Option<ReplyHead>, HeadError> {
    parse_reply_into(Vec::new(), bytes, limits)
}

/// The same with a vector for the fields.
pub(crate) fn parse_reply_into(
    fields: Vec<Field>,
    bytes: &[u8],
    limits: &HttpLimits,
) -> Result<Option<ReplyHead>, HeadError> {
    let Some((status, reason, is_http10, at)) = status_line(bytes)? else {
        return too_long_or_none(bytes, limits);
    };
    let mut block = FieldBlock::new(limits, fields);
    let Some(length) = block.parse(bytes, at)? else { return too_long_or_none(bytes, limits) };
    if block.facts.chunked && is_http10 {
        return Err(HeadError::Ambiguous);
    }
    Ok(Some(ReplyHead { status, reason, is_http10, fields: block.fields, facts: block.facts, length }))
}

/// Parses the fields of a trailer section up to and with the empty line.
pub(super) fn parse_trailers(bytes: &[u8], limits: &HttpLimits) -> Result<Option<(Vec<Field>, usize)>, HeadError> {
    let mut block = FieldBlock::new(limits, Vec::new());
    match block.parse(bytes, 0)? {
        None if bytes.len() > TRAILER_BYTES_MAX => Err(HeadError::TooLong),
        None => Ok(None),
        Some(length) if length > TRAILER_BYTES_MAX => Err(HeadError::TooLong),
        Some(_) if block.hosts > 0 || block.facts.content_length.is_some() || block.facts.chunked => {
            Err(HeadError::FieldName)
        }
        Some(length) => Ok(Some((block.fields, length))),
    }
}

fn too_long_or_none<T>(bytes: &[u8], limits: &HttpLimits) -> Result<Option<T>, HeadError> {
    if bytes.len() >= limits.head_bytes_max { Err(HeadError::TooLong) } else { Ok(None) }
}

type RequestLine = (Range<usize>, Range<usize>, bool, usize);

fn request_line(bytes: &[u8], limits: &HttpLimits) -> Result<Option<RequestLine>, HeadError> {
    let method = token_length(bytes);
    match bytes.get(method) {
        None => return Ok(None),
        Some(b' ') if method > 0 => {}
        Some(_) => return Err(HeadError::StartLine),
    }
    let start = method + 1;
    let rest = bytes.get(start..).unwrap_or_default();
    let Some(length) = rest.iter().position(|&byte| byte <= b' ' || byte == 0x7f) else {
        return if rest.len() > limits.target_bytes_max { Err(HeadError::TargetTooLong) } else { Ok(None) };
    };
    if length > limits.target_bytes_max {
        return Err(HeadError::TargetTooLong);
    }
    if rest[length] != b' ' {
        return Err(HeadError::StartLine);
    }
    let Some((is_http10, at)) = version(bytes, start + length + 1)? else { return Ok(None) };
    match line_end(bytes, at)? {
        None => Ok(None),
        Some(next) => Ok(Some((0..method, start..start + length, is_http10, next))),
    }
}

type StatusLine = (u16, Range<usize>, bool, usize);

fn status_line(bytes: &[u8]) -> Result<Option<StatusLine>, HeadError> {
    let Some((is_http10, at)) = version(bytes, 0)? else { return Ok(None) };
    let Some(code) = bytes.get(at..at + 4) else { return Ok(None) };
    let [b' ', hundreds @ b'1'..=b'9', tens, ones] = *code else { return Err(HeadError::StartLine) };
    if !tens.is_ascii_digit() || !ones.is_ascii_digit() {
        return Err(HeadError::StartLine);
    }
    let status = u16::from(hundreds - b'0') * 100 + u16::from(tens - b'0') * 10 + u16::from(ones - b'0');
    let mut start = at + 4;
    match bytes.get(start) {
        None => return Ok(None),
        Some(b' ') => start += 1,
        // The space before an empty reason is often left out.
        Some(b'\r') => {}
        Some(_) => return Err(HeadError::StartLine),
    }
    let end = start + value_length(bytes.get(start..).unwrap_or_default());
    match line_end(bytes, end)? {
        None => Ok(None),
        Some(next) => Ok(Some((status, start..end, is_http10, next))),
    }
}

/// `HTTP/1.0` or `HTTP/1.1` at `at`: whether it is 1.0, and what follows.
fn version(bytes: &[u8], at: usize) -> Result<Option<(bool, usize)>, HeadError> {
    const PREFIX: &[u8] = b"HTTP/";
    let rest = bytes.get(at..).unwrap_or_default();
    let Some((text, _)) = rest.split_first_chunk::<8>() else {
        let length = rest.len().min(PREFIX.len());
        return if rest[..length] == PREFIX[..length] { Ok(None) } else { Err(HeadError::StartLine) };
    };
    match text {
        b"HTTP/1.1" => Ok(Some((false, at + 8))),
        b"HTTP/1.0" => Ok(Some((true, at + 8))),
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] if major.is_ascii_digit() && minor.is_ascii_digit() => {
            Err(HeadError::Version)
        }
        _ => Err(HeadError::StartLine),
    }
}

/// CR LF at `at`: where the next line starts.
pub(super) fn line_end(bytes: &[u8], at: usize) -> Result<Option<usize>, HeadError> {
    match bytes.get(at..).unwrap_or_default() {
        [] | [b'\r'] => Ok(None),
        [b'\r', b'\n', ..] => Ok(Some(at + 2)),
        [b'\r' | b'\n', ..] => Err(HeadError::BareLineEnd),
        _ => Err(HeadError::FieldValue),
    }
}

/// Splits an absolute target into authority and path, and refuses what is neither.
fn split_target(
    bytes: &[u8],
    method: &Range<usize>,
    target: Range<usize>,
) -> Result<(Range<usize>, Option<Range<usize>>), HeadError> {
    let text = bytes.get(target.clone()).ok_or(HeadError::Target)?;
    // CONNECT (RFC 9112 §3.2.3) is not supported.
    if text.contains(&b'#') || bytes.get(method.clone()) == Some(b"CONNECT") {
        return Err(HeadError::Target);
    }
    // Most targets are ASCII, which is found out faster than UTF-8.
    if text.is_ascii() && text.starts_with(b"/") {
        return Ok((target, None));
    }
    let text = std::str::from_utf8(text).map_err(|_| HeadError::Target)?;
    if text.starts_with('/') || (text == "*" && bytes.get(method.clone()) == Some(b"OPTIONS")) {
        return Ok((target, None));
    }
    let scheme = ["http://", "https://"]
        .into_iter()
        .find(|scheme| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
        .ok_or(HeadError::Target)?;
    let start = target.start + scheme.len();
    let rest = &text[scheme.len()..];
    let length = rest.find(['/', '?']).unwrap_or(rest.len());
    let authority = start..start + length;
    if length == 0 || !is_authority(&bytes[authority.clone()]) || rest[length..].starts_with('?') {
        return Err(HeadError::Target);
    }
    Ok((authority.end..target.end, Some(authority)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: HttpLimits = HttpLimits {
        head_bytes_max: 4096,
        fields_max: 10,
        target_bytes_max: 100,
        body_bytes_max: 0,
        collected_bytes_max: 0,
        drain_bytes_max: 0,
    };

    #[test]
    fn a_request_is_ranges_of_its_bytes() {
        let bytes = b"POST /a?b HTTP/1.1\r\nHost: h:1 \r\nX-Empty:\r\nContent-Length:\t12\r\nExpect: 100-Continue\r\nConnection: x, Close\r\n\r\nrest";
        let head = parse_request(bytes, &LIMITS).expect("well formed").expect("complete");
        let text =
            |range: &Range<u32>| std::str::from_utf8(&bytes[range.start as usize..range.end as usize]).expect("ascii");
        let fields: Vec<_> = head.fields.iter().map(|(name, value)| (text(name), text(value))).collect();
        assert_eq!((&bytes[head.method], &bytes[head.target]), (&b"POST"[..], &b"/a?b"[..]));
        assert_eq!(
            fields,
            [
                ("Host", "h:1"),
                ("X-Empty", ""),
                ("Content-Length", "12"),
                ("Expect", "100-Continue"),
                ("Connection", "x, Close")
            ]
        );
        let facts = Facts {
            content_length: Some(12),
            close: true,
            names_fields: true,
            expect_continue: true,
            ..Facts::default()
        };
        assert_eq!((head.facts, head.length), (facts, bytes.len() - 4));
    }

    /// A head that is cut anywhere is incomplete or already refused for what will not change.
    #[test]
    fn a_cut_head_is_never_taken_for_a_whole_one() {
        for (whole, is_good) in [
            ("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n", true),
            ("GET / HTTP/1.1\r\nHost: h\r\nA: b\n\r\n", false),
            ("GET / HTTP/1.1\r\nHost: h\r\n b\r\n\r\n", false),
            ("GET / HTTP/9.1\r\nHost: h\r\n\r\n", false),
            ("GET / HTTP/1.1\r\n\r\n", false),
        ] {
            let end = parse_request(whole.as_bytes(), &LIMITS);
            assert_eq!(matches!(end, Ok(Some(_))), is_good, "{whole:?}");
            for cut in 0..whole.len() {
                match parse_request(&whole.as_bytes()[..cut], &LIMITS) {
                    Ok(None) => {}
                    Err(error) => assert_eq!(Err(error), end.clone().map(|_| ()), "{whole:?} cut at {cut}"),
                    Ok(Some(_)) => panic!("{whole:?} cut at {cut} is complete"),
                }
            }
        }
    }
}
