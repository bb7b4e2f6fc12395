//! Requests out of the bytes of a connection: heads, and bodies of either framing.
use super::BODY_BYTES_MAX;

/// A request head longer than this is refused with 431.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A request that is complete in the buffer. Positions are positions in the buffer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) content_type: Option<(usize, usize)>,
    pub(super) keep_alive: bool,
    pub(super) head_method: bool,
    pub(super) body: Body,
    pub(super) consumed: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body {
    InPlace { start: usize, end: usize },
    Decoded(Vec<u8>),
}

/// How far the next request in the buffer has been looked at.
#[derive(Debug, Default)]
pub(super) struct Pending {
    /// Where the search for the end of the head goes on.
    searched: usize,
    head: Option<Head>,
    interim_sent: bool,
}

#[derive(Debug)]
struct Head {
    end: usize,
    content_type: Option<(usize, usize)>,
    keep_alive: bool,
    head_method: bool,
    expects_continue: bool,
    framing: Framing,
}

#[derive(Debug)]
enum Framing {
    Sized(usize),
    /// `at` is where the next chunk starts.
    Chunked {
        at: usize,
        body: Vec<u8>,
    },
}

impl Pending {
    /// The request, once all of it is there; the status line to refuse it with if it is malformed.
    pub(super) fn take(&mut self, buffer: &[u8]) -> Result<Option<Request>, &'static str> {
        if self.head.is_none() {
            let Some(at) = memchr::memmem::find(&buffer[self.searched..], b"\r\n\r\n") else {
                if buffer.len() > HEAD_BYTES_MAX {
                    return Err("431 Request Header Fields Too Large");
                }
                self.searched = buffer.len().saturating_sub(3);
                return Ok(None);
            };
            self.head = Some(parse_head(buffer, self.searched + at + 4)?);
        }
        let Some(head) = &mut self.head else { return Ok(None) };
        let (body, consumed) = match &mut head.framing {
            Framing::Sized(length) => {
                let end = head.end + *length;
                if buffer.len() < end {
                    return Ok(None);
                }
                (Body::InPlace { start: head.end, end }, end)
            }
            Framing::Chunked { at, body } => {
                if !decode_chunks(buffer, at, body)? {
                    return Ok(None);
                }
                (Body::Decoded(std::mem::take(body)), *at)
            }
        };
        let Head { content_type, keep_alive, head_method, .. } = *head;
        Ok(Some(Request { content_type, keep_alive, head_method, body, consumed }))
    }

    /// Whether the client waits for `100 Continue`; true once.
    pub(super) fn interim_due(&mut self) -> bool {
        let due = !self.interim_sent && self.head.as_ref().is_some_and(|head| head.expects_continue);
        self.interim_sent |= due;
        due
    }

    pub(super) fn bytes_missing(&self, buffered: usize) -> usize {
        match &self.head {
            Some(Head { end, framing: Framing::Sized(length), .. }) => (end + length).saturating_sub(buffered),
            _ => 0,
        }
    }
}

fn parse_head(buffer: &[u8], end: usize) -> Result<Head, &'static str> {
    const BAD: &str = "400 Bad Request";
    let line_end = memchr::memchr(b'\n', &buffer[..end]).ok_or(BAD)?;
    let first = buffer[..line_end].trim_ascii_end();
    let http11 = first.ends_with(b" HTTP/1.1");
    if !http11 && !first.ends_with(b" HTTP/1.0") {
        return Err(BAD);
    }
    let mut head = Head {
        end,
        content_type: None,
        keep_alive: http11,
        head_method: first.starts_with(b"HEAD "),
        expects_continue: false,
        framing: Framing::Sized(0),
    };
    let mut at = line_end + 1;
    while let Some(length) = memchr::memchr(b'\n', &buffer[at..end]) {
        let line = &buffer[at..at + length];
        let line_start = at;
        at += length + 1;
        let Some(colon) = memchr::memchr(b':', line) else { continue };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        // The length of a name rules most headers out before they are compared.
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let length = parse_length(value).ok_or(BAD)?;
                if length > BODY_BYTES_MAX {
                    return Err("413 Content Too Large");
                }
                if matches!(head.framing, Framing::Sized(_)) {
                    head.framing = Framing::Sized(length);
                }
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if !value.eq_ignore_ascii_case(b"chunked") {
                    return Err("501 Not Implemented");
                }
                head.framing = Framing::Chunked { at: end, body: Vec::new() };
            }
            12 if name.eq_ignore_ascii_case(b"content-type") => {
                let raw = &line[colon + 1..];
                let start = line_start + colon + 1 + (raw.len() - raw.trim_ascii_start().len());
                head.content_type = Some((start, start + value.len()));
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                let has =
                    |word: &[u8]| value.split(|b| *b == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(word));
                head.keep_alive = if http11 { !has(b"close") } else { has(b"keep-alive") };
            }
            6 if name.eq_ignore_ascii_case(b"expect") => {
                head.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
            }
            _ => {}
        }
    }
    Ok(head)
}

fn parse_length(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

/// Decodes the chunks that are complete; `true` after the last one and its trailer.
fn decode_chunks(buffer: &[u8], at: &mut usize, body: &mut Vec<u8>) -> Result<bool, &'static str> {
    const BAD: &str = "400 Bad Request";
    loop {
        let Some(length) = memchr::memchr(b'\n', &buffer[*at..]) else {
            // Sixteen digits and an extension fit easily.
            return if buffer.len() - *at > 4096 { Err(BAD) } else { Ok(false) };
        };
        let line = &buffer[*at..*at + length];
        let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let text = std::str::from_utf8(digits).map_err(|_| BAD)?;
        let size = usize::from_str_radix(text, 16).map_err(|_| BAD)?;
        let data = *at + length + 1;
        if size == 0 {
            // The trailer ends with an empty line, which may be the only one.
            let rest = &buffer[data..];
            let end = match rest {
                [b'\r', b'\n', ..] => Some(2),
                _ => memchr::memmem::find(rest, b"\r\n\r\n").map(|at| at + 4),
            };
            return match end {
                Some(end) => {
                    *at = data + end;
                    Ok(true)
                }
                None if rest.len() > HEAD_BYTES_MAX => Err(BAD),
                None => Ok(false),
            };
        }
        if size > BODY_BYTES_MAX || body.len() + size > BODY_BYTES_MAX {
            return Err("413 Content Too Large");
        }
        let Some(after) = buffer.get(data + size..data + size + 2) else { return Ok(false) };
        if after != b"\r\n" {
            return Err(BAD);
        }
        body.extend_from_slice(&buffer[data..data + size]);
        *at = data + size + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the text byte by byte and answers (body, content type, keep-alive, bytes left over).
    fn check(text: &str, expected: Result<(&str, &str, bool, usize), &'static str>) {
        let bytes = text.as_bytes();
        let mut pending = Pending::default();
        let mut outcome = Ok(None);
        for end in 1..=bytes.len() {
            outcome = pending.take(&bytes[..end]);
            if !matches!(outcome, Ok(None)) {
                break;
            }
        }
        let seen = outcome.map(|request| {
            let request = request.expect("the request is complete");
            let body = match request.body {
                Body::InPlace { start, end } => bytes[start..end].to_vec(),
                Body::Decoded(body) => body,
            };
            let content_type = request.content_type.map_or("", |(start, end)| &text[start..end]);
            (String::from_utf8(body).unwrap(), content_type, request.keep_alive, bytes.len() - request.consumed)
        });
        assert_eq!(seen, expected.map(|(body, kind, keep, left)| (body.to_owned(), kind, keep, left)), "{text:?}");
    }

    #[test]
    fn requests_are_taken_whole() {
        check("GET / HTTP/1.1\r\n\r\n", Ok(("", "", true, 0)));
        check("POST / HTTP/1.1\r\ncontent-length: 3\r\nContent-Type:  a/b \r\n\r\nabcGET", Ok(("abc", "a/b", true, 3)));
        check("POST / HTTP/1.1\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n", Ok(("", "", false, 0)));
        check("POST / HTTP/1.0\r\nContent-Length: 1\r\n\r\na", Ok(("a", "", false, 0)));
        check(
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n",
            Ok(("abcde", "", true, 0)),
        );
        check("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n\r\n", Ok(("", "", true, 0)));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        check("POST / HTTP/3\r\n\r\n", Err("400 Bad Request"));
        check("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", Err("400 Bad Request"));
        check("POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", Err("413 Content Too Large"));
        check("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", Err("501 Not Implemented"));
        check("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxx\r\n", Err("400 Bad Request"));
        check("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", Err("400 Bad Request"));
        check(
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
            Err("413 Content Too Large"),
        );
    }

    #[test]
    fn no_bytes_of_a_client_can_break_the_reader() {
        let seeds = [
            "POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Type: a/b\r\n\r\nabc",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\nA: b\r\n\r\n",
            "GET / HTTP/1.0\r\nConnection: keep-alive\r\nExpect: 100-continue\r\n\r\n",
        ];
        crate::mutations::each(&seeds, |bytes, split| {
            let mut pending = Pending::default();
            let request = match pending.take(&bytes[..split]) {
                Ok(None) => pending.take(bytes),
                done => done,
            };
            if let Ok(Some(request)) = request {
                assert!(request.consumed <= bytes.len());
            }
        });
    }
}
