//! Incremental framing of HTTP/1.1 responses. It keeps the head and the first bytes of the
//! body so that a failing exchange can be shown, and counts the rest.
mod lines;

use lines::{has_word, header_lines, parse_decimal, parse_hexadecimal, parse_status_line, value_of};
use std::fmt;

/// A response head longer than this is a broken server, not a workload.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// A chunk-size line longer than this is a broken server: the size itself has at most 16 digits.
const CHUNK_LINE_BYTES_MAX: usize = 4 * 1024;
/// How much of a body is kept to show a failing exchange.
pub const SAMPLE_BYTES: usize = 512;

/// Why a response cannot be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// The first line is not `HTTP/1.x CODE …`.
    StatusLine,
    /// The head does not end within the limit.
    HeadTooLong,
    /// `Content-Length` is not one number.
    ContentLength,
    /// A chunk does not start with its size in hexadecimal.
    Chunk,
    /// More bytes came than the response announced.
    ExtraBytes,
    /// The connection ended inside the response.
    CutShort,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Malformed::StatusLine => "the response does not start with an HTTP/1.x status line",
            Malformed::HeadTooLong => "the response head is longer than 64 KiB",
            Malformed::ContentLength => "the response has a malformed Content-Length",
            Malformed::Chunk => "the response has a malformed chunk",
            Malformed::ExtraBytes => "the server sent more bytes than the response announced",
            Malformed::CutShort => "the connection was closed inside the response",
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Sized,
    ChunkSize,
    ChunkData,
    ChunkEnd,
    Trailer,
    UntilClose,
    Done,
}

/// Reads one response after another.
#[derive(Debug)]
pub struct ResponseReader {
    state: State,
    /// The head as received, up to and including the empty line.
    pub head: Vec<u8>,
    /// The status code; 0 before the head is complete.
    pub status: u16,
    /// Whether the server keeps the connection open.
    pub keep_alive: bool,
    /// Bytes of the body, without the framing of chunks.
    pub body_bytes: u64,
    /// Bytes of the response on the connection.
    pub received_bytes: u64,
    /// The beginning of the body.
    pub sample: Vec<u8>,
    sample_bytes_max: usize,
    remaining: u64,
    line: Vec<u8>,
    head_request: bool,
}

impl ResponseReader {
    /// `sample_bytes_max` says how much of each body to keep; `head_request` that responses carry no body.
    pub fn new(sample_bytes_max: usize, head_request: bool) -> Self {
        ResponseReader {
            state: State::Head,
            head: Vec::with_capacity(512),
            status: 0,
            keep_alive: true,
            body_bytes: 0,
            received_bytes: 0,
            sample: Vec::with_capacity(SAMPLE_BYTES),
            sample_bytes_max,
            remaining: 0,
            line: Vec::new(),
            head_request,
        }
    }

    /// Whether the next responses are those of `HEAD` requests, which carry no body.
    pub fn set_head_request(&mut self, head_request: bool) {
        self.head_request = head_request;
    }

    /// How much of the next bodies to keep.
    pub fn set_sample_bytes(&mut self, sample_bytes_max: usize) {
        self.sample_bytes_max = sample_bytes_max.max(SAMPLE_BYTES);
    }

    /// Gets ready for the next response on the same connection.
    pub fn reset(&mut self) {
        self.state = State::Head;
        self.head.clear();
        self.status = 0;
        self.keep_alive = true;
        self.body_bytes = 0;
        self.received_bytes = 0;
        self.sample.clear();
        self.remaining = 0;
        self.line.clear();
    }

    /// Takes what arrived; `true` when the response is complete.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<bool, Malformed> {
        self.received_bytes += bytes.len() as u64;
        loop {
            match self.state {
                State::Head => match self.take_head(bytes)? {
                    None => return Ok(false),
                    Some(rest) => bytes = rest,
                },
                State::Sized | State::ChunkData => {
                    let taken =
                        usize::try_from(self.remaining).map_or(bytes.len(), |remaining| remaining.min(bytes.len()));
                    let (data, rest) = bytes.split_at(taken);
                    self.keep_body(data);
                    self.remaining -= taken as u64;
                    bytes = rest;
                    if self.remaining > 0 {
                        return Ok(false);
                    }
                    self.state = if self.state == State::Sized { State::Done } else { State::ChunkEnd };
                }
                State::UntilClose => {
                    self.keep_body(bytes);
                    return Ok(false);
                }
                State::ChunkSize | State::ChunkEnd | State::Trailer => match self.take_line(bytes)? {
                    None => return Ok(false),
                    Some(rest) => bytes = rest,
                },
                State::Done => return if bytes.is_empty() { Ok(true) } else { Err(Malformed::ExtraBytes) },
            }
        }
    }

    /// The server closed the connection: `Ok` if the response ends so.
    pub fn close(&mut self) -> Result<(), Malformed> {
        if self.state == State::UntilClose {
            self.state = State::Done;
            return Ok(());
        }
        Err(Malformed::CutShort)
    }

    fn keep_body(&mut self, data: &[u8]) {
        self.body_bytes += data.len() as u64;
        let room = self.sample_bytes_max.saturating_sub(self.sample.len()).min(data.len());
        self.sample.extend_from_slice(&data[..room]);
    }

    /// Collects the head. Usually it arrives whole, so the search starts where the last one stopped.
    fn take_head<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, Malformed> {
        let search_from = self.head.len().saturating_sub(3);
        let kept = self.head.len();
        // Only as much as a head may have is copied; a body behind it stays where it is.
        let room = (HEAD_BYTES_MAX + 4).saturating_sub(kept).min(bytes.len());
        let end = if kept == 0 {
            memchr::memmem::find(&bytes[..room], b"\r\n\r\n").map(|at| at + 4)
        } else {
            self.head.extend_from_slice(&bytes[..room]);
            let found = memchr::memmem::find(&self.head[search_from..], b"\r\n\r\n").map(|at| search_from + at + 4);
            self.head.truncate(found.unwrap_or(self.head.len()));
            found.map(|end| end - kept)
        };
        let Some(end) = end else {
            if kept == 0 {
                self.head.extend_from_slice(&bytes[..room]);
            }
            return if self.head.len() > HEAD_BYTES_MAX { Err(Malformed::HeadTooLong) } else { Ok(None) };
        };
        if kept == 0 {
            self.head.extend_from_slice(&bytes[..end]);
        }
        self.parse_head()?;
        Ok(Some(&bytes[end..]))
    }

    fn parse_head(&mut self) -> Result<(), Malformed> {
        let head = &self.head;
        let (http11, status) = parse_status_line(head).ok_or(Malformed::StatusLine)?;
        let mut length = None;
        let mut chunked = false;
        let mut keep_alive = http11;
        for line in header_lines(head) {
            // Of all headers only these three frame the response; the first byte rules out most others.
            match line.first() {
                Some(b'c' | b'C') => {
                    if let Some(value) = value_of(line, b"content-length") {
                        let number = parse_decimal(value).ok_or(Malformed::ContentLength)?;
                        if length.is_some_and(|earlier| earlier != number) {
                            return Err(Malformed::ContentLength);
                        }
                        length = Some(number);
                    } else if let Some(value) = value_of(line, b"connection") {
                        keep_alive = if http11 { !has_word(value, b"close") } else { has_word(value, b"keep-alive") };
                    }
                }
                Some(b't' | b'T') => {
                    if let Some(value) = value_of(line, b"transfer-encoding") {
                        chunked = has_word(value, b"chunked");
                    }
                }
                _ => {}
            }
        }
        if status < 200 {
            // An interim response; the real one follows.
            self.head.clear();
            return Ok(());
        }
        self.status = status;
        self.keep_alive = keep_alive;
        self.state = if self.head_request || status == 204 || status == 304 {
            State::Done
        } else if chunked {
            State::ChunkSize
        } else if let Some(length) = length {
            self.remaining = length;
            State::Sized
        } else {
            self.keep_alive = false;
            State::UntilClose
        };
        Ok(())
    }

    /// Takes one line of the chunk framing and acts on it.
    fn take_line<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<&'a [u8]>, Malformed> {
        let Some(at) = memchr::memchr(b'\n', bytes) else {
            self.line.extend_from_slice(bytes);
            return if self.line.len() > CHUNK_LINE_BYTES_MAX { Err(Malformed::Chunk) } else { Ok(None) };
        };
        self.line.extend_from_slice(&bytes[..at]);
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        self.state = match self.state {
            State::ChunkSize => {
                self.remaining = parse_hexadecimal(line).ok_or(Malformed::Chunk)?;
                if self.remaining == 0 { State::Trailer } else { State::ChunkData }
            }
            State::ChunkEnd if line.is_empty() => State::ChunkSize,
            State::Trailer if line.is_empty() => State::Done,
            State::Trailer => State::Trailer,
            _ => return Err(Malformed::Chunk),
        };
        self.line.clear();
        Ok(Some(&bytes[at + 1..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the text in every possible pair of pieces and byte by byte: framing must not depend on it.
    fn check(text: &str, expected: Result<(u16, &str, bool), Malformed>) {
        let bytes = text.as_bytes();
        let mut splits = (0..=bytes.len()).map(|at| vec![&bytes[..at], &bytes[at..]]).collect::<Vec<_>>();
        splits.push(bytes.chunks(1).collect());
        for pieces in splits {
            let mut reader = ResponseReader::new(SAMPLE_BYTES, false);
            let mut outcome = Ok(false);
            for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
                outcome = reader.feed(piece);
                if outcome.is_err() {
                    break;
                }
            }
            let outcome = match outcome {
                Ok(true) => Ok(()),
                Ok(false) => reader.close(),
                Err(error) => Err(error),
            };
            let seen =
                outcome.map(|()| (reader.status, String::from_utf8(reader.sample.clone()).unwrap(), reader.keep_alive));
            assert_eq!(seen, expected.map(|(status, body, keep)| (status, body.to_owned(), keep)), "{text:?}");
        }
    }

    #[test]
    fn bodies_end_as_the_head_says() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", Ok((200, "abc", true)));
        check("HTTP/1.1 200 OK\r\ncontent-length:0\r\nConnection: close\r\n\r\n", Ok((200, "", false)));
        check("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na", Ok((200, "a", false)));
        check("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\na", Ok((200, "a", true)));
        check("HTTP/1.1 204 No Content\r\n\r\n", Ok((204, "", true)));
        check("HTTP/1.1 200\r\n\r\nuntil close", Ok((200, "until close", false)));
        check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\nx", Ok((201, "x", true)));
    }

    #[test]
    fn chunks_are_put_together() {
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
            Ok((200, "abc0123456789", true)),
        );
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTrailer: 1\r\n\r\n", Ok((200, "", true)));
    }

    #[test]
    fn what_is_malformed_is_said() {
        check("HTP/1.1 200 OK\r\n\r\n", Err(Malformed::StatusLine));
        check("HTTP/1.1 2x0 OK\r\n\r\n", Err(Malformed::StatusLine));
        check("HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n", Err(Malformed::ContentLength));
        check("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", Err(Malformed::ContentLength));
        check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", Err(Malformed::CutShort));
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", Err(Malformed::Chunk));
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", Err(Malformed::Chunk));
        let mut reader = ResponseReader::new(0, false);
        assert_eq!(reader.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab"), Err(Malformed::ExtraBytes));
        let endless = vec![b'a'; HEAD_BYTES_MAX + 1];
        assert_eq!(ResponseReader::new(0, false).feed(&endless), Err(Malformed::HeadTooLong));
    }

    #[test]
    fn no_bytes_of_a_server_can_break_the_reader() {
        let seeds = [
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 204\r\nConnection: close\r\n\r\n",
        ];
        crate::mutations::each(&seeds, |bytes, split| {
            let mut reader = ResponseReader::new(SAMPLE_BYTES, false);
            let (first, second) = bytes.split_at(split);
            let _ = reader.feed(first).and_then(|_| reader.feed(second)).and_then(|_| reader.close());
            assert!(reader.sample.len() <= SAMPLE_BYTES && reader.body_bytes <= reader.received_bytes);
        });
    }
}
