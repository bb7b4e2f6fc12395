//! Heads and chunked bodies of HTTP/1.1: what is accepted lies within the bytes and reads the same however it arrives.

use std::ops::Range;

use penstock_transports::http::HttpLimits;
use penstock_transports::http::http1::{ChunkDecoder, ChunkError, ChunkStep, Field, parse_reply, parse_request};

/// What matters to these parsers.
pub const DICTIONARY: &[&str] = &[
    "\r\n",
    "\n",
    "\r",
    "\0",
    " ",
    "\t",
    ":",
    ";",
    "\r\n\r\n",
    "GET ",
    "POST ",
    " HTTP/1.1",
    " HTTP/1.0",
    "HTTP/1.1 200 OK",
    "Host: h",
    "Content-Length: 3",
    "Transfer-Encoding: chunked",
    "Connection: close, x",
    "Expect: 100-continue",
    "http://h/",
    "0\r\n",
    "\r\n0\r\nX: a\r\n\r\n",
    "ffffffffffffffff",
];

/// Checks the properties for one input: a head, a reply head and a chunked body at once.
pub fn http1(data: &[u8]) {
    let limits = HttpLimits { head_bytes_max: 4096, fields_max: 50, ..HttpLimits::default() };
    if let Ok(Some(head)) = parse_request(data, &limits) {
        check_fields(data, head.length, &head.fields);
        assert!(head.method.end <= head.target.start && head.target.end <= head.length);
        assert!(data[..head.length].ends_with(b"\r\n\r\n"));
        assert!(!(head.facts.chunked && head.facts.content_length.is_some()));
        // A head is complete exactly when its last byte has arrived.
        for cut in [head.length / 2, head.length - 1] {
            assert!(matches!(parse_request(&data[..cut], &limits), Ok(None)), "complete when cut at {cut}");
        }
        assert_eq!(parse_request(&data[..head.length], &limits), Ok(Some(head)));
    }
    if let Ok(Some(head)) = parse_reply(data, &limits) {
        check_fields(data, head.length, &head.fields);
        assert!((100..=999).contains(&head.status) && head.reason.end <= head.length);
        assert_eq!(parse_reply(&data[..head.length], &limits), Ok(Some(head)));
    }
    let whole = decode(data, data.len().max(1), &limits);
    for size in [1, 2, 7] {
        assert_eq!(decode(data, size, &limits), whole, "in pieces of {size}");
    }
}

/// The bytes of a trailer section, and where its fields lie.
type Section = (Vec<u8>, Vec<Field>);

fn check_fields(data: &[u8], length: usize, fields: &[Field]) {
    let bytes = |range: &Range<u32>| &data[range.start as usize..range.end as usize];
    for (name, value) in fields {
        assert!(name.end < value.start + 1 && value.end as usize <= length);
        assert!(!bytes(name).is_empty() && !bytes(name).iter().any(|byte| b" \t\r\n:".contains(byte)));
        assert!(!bytes(value).iter().any(|byte| b"\r\n\0".contains(byte)));
    }
}

/// Data of a body that arrives in pieces, how many bytes it took, and if it ended, the section it ended with.
fn decode(body: &[u8], size: usize, limits: &HttpLimits) -> Result<(Vec<u8>, usize, Option<Section>), ChunkError> {
    let mut decoder = ChunkDecoder::default();
    let (mut buffer, mut data, mut used) = (Vec::new(), Vec::new(), 0);
    for piece in body.chunks(size) {
        buffer.extend_from_slice(piece);
        loop {
            match decoder.step(&buffer, limits)? {
                ChunkStep::More { skip } => {
                    used += skip;
                    buffer.drain(..skip);
                    break;
                }
                ChunkStep::Data { skip, left } => {
                    buffer.drain(..skip);
                    let here = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
                    data.extend(buffer.drain(..here));
                    decoder.consumed(here as u64);
                    used += skip + here;
                    if buffer.is_empty() {
                        break;
                    }
                }
                ChunkStep::End { skip, trailers_at, trailers } => {
                    let section = &buffer[trailers_at..skip];
                    check_fields(section, section.len(), &trailers);
                    assert!(section.ends_with(b"\r\n") && trailers.len() <= limits.fields_max);
                    return Ok((data, used + skip, Some((section.to_vec(), trailers))));
                }
            }
        }
    }
    Ok((data, used, None))
}
