//! The chunked transfer coding, read piece by piece.

use std::fmt;

use super::head::{Field, HeadError, parse_trailers};
use crate::http::HttpLimits;

/// Hexadecimal digits of a chunk size. Sixteen would overflow the sum of sizes.
const SIZE_DIGITS_MAX: u8 = 15;

/// Bytes of chunk extensions in one chunk. They are unused in practice; more is an attack.
const EXTENSION_BYTES_MAX: u16 = 256;

/// Reads the framing between pieces of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkDecoder {
    state: State,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Size {
        digits: u8,
        size: u64,
    },
    /// Counts the bytes of extensions; `quoted` inside a quoted string.
    Extension {
        size: u64,
        count: u16,
    },
    SizeLf {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    Trailers,
    Done,
}

/// What comes next in the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChunkStep {
    /// After `skip` bytes of framing, up to `left` bytes of data.
    Data {
        /// Framing to pass over.
        skip: usize,
        /// Data left in this chunk, more than zero; not all of it need be there.
        left: u64,
    },
    /// After `skip` bytes, more must arrive.
    More {
        /// Framing to pass over.
        skip: usize,
    },
    /// The body has ended after `skip` bytes. The ranges of the trailer fields count from `trailers_at`.
    End {
        /// Framing to pass over, the trailer section included.
        skip: usize,
        /// Where the trailer section starts.
        trailers_at: usize,
        /// Its fields.
        trailers: Vec<Field>,
    },
}

/// Why a chunked body is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkError {
    /// The size is missing, too large or not hexadecimal.
    Size,
    /// Extensions are too long or hold a control character.
    Extension,
    /// CR LF is not where it must be.
    LineEnd,
    /// The trailer section is refused.
    Trailers(HeadError),
}

impl fmt::Display for ChunkError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChunkError::Size => write!(out, "a chunk size is malformed"),
            ChunkError::Extension => write!(out, "a chunk extension is malformed or too long"),
            ChunkError::LineEnd => write!(out, "a chunk does not end in CR LF"),
            ChunkError::Trailers(error) => write!(out, "the trailers are malformed: {error}"),
        }
    }
}

impl Default for ChunkDecoder {
    fn default() -> ChunkDecoder {
        ChunkDecoder { state: State::Size { digits: 0, size: 0 } }
    }
}

impl ChunkDecoder {
    /// How much data the chunk still has whose framing was read; 0 between chunks.
    pub fn data_left(&self) -> u64 {
        match &self.state {
            State::Data { left } => *left,
            _ => 0,
        }
    }

    /// Reads framing at the start of `bytes`. The caller removes what the step says to skip and tells with
    /// [`ChunkDecoder::consumed`] how much data it took.
    pub fn step(&mut self, bytes: &[u8], limits: &HttpLimits) -> Result<ChunkStep, ChunkError> {
        let mut at = 0;
        loop {
            match &self.state {
                State::Data { left } => return Ok(ChunkStep::Data { skip: at, left: *left }),
                State::Trailers => return self.trailers(bytes, at, limits),
                State::Done => return Ok(ChunkStep::End { skip: at, trailers_at: at, trailers: Vec::new() }),
                _ => {}
            }
            let Some(&byte) = bytes.get(at) else { return Ok(ChunkStep::More { skip: at }) };
            at += 1;
            self.framing_byte(byte)?;
        }
    }

    /// Notes that `count` bytes of data were taken; at most what the last step said is left.
    pub fn consumed(&mut self, count: u64) {
        if let State::Data { left } = &mut self.state {
            *left = left.saturating_sub(count);
            if *left == 0 {
                self.state = State::DataCr;
            }
        }
    }

    fn framing_byte(&mut self, byte: u8) -> Result<(), ChunkError> {
        self.state = match (&self.state, byte) {
            (State::Size { digits, size }, _) if byte.is_ascii_hexdigit() => {
                if *digits == SIZE_DIGITS_MAX {
                    return Err(ChunkError::Size);
                }
                let digit = (byte as char).to_digit(16).ok_or(ChunkError::Size)?;
                State::Size { digits: digits + 1, size: size * 16 + u64::from(digit) }
            }
            (State::Size { digits: 1.., size }, b'\r') => State::SizeLf { size: *size },
            (State::Size { digits: 1.., size }, b';') => State::Extension { size: *size, count: 0 },
            (State::Size { .. }, _) => return Err(ChunkError::Size),
            (State::Extension { size, .. }, b'\r') => State::SizeLf { size: *size },
            (State::Extension { size, count }, _) => {
                if *count == EXTENSION_BYTES_MAX || (byte < b' ' && byte != b'\t') || byte == 0x7f {
                    return Err(ChunkError::Extension);
                }
                State::Extension { size: *size, count: count + 1 }
            }
            (State::SizeLf { size: 0 }, b'\n') => State::Trailers,
            (State::SizeLf { size }, b'\n') => State::Data { left: *size },
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Size { digits: 0, size: 0 },
            _ => return Err(ChunkError::LineEnd),
        };
        Ok(())
    }

    fn trailers(&mut self, bytes: &[u8], at: usize, limits: &HttpLimits) -> Result<ChunkStep, ChunkError> {
        let section = bytes.get(at..).unwrap_or_default();
        match parse_trailers(section, limits).map_err(ChunkError::Trailers)? {
            None => Ok(ChunkStep::More { skip: at }),
            Some((trailers, length)) => {
                self.state = State::Done;
                Ok(ChunkStep::End { skip: at + length, trailers_at: at, trailers })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data and trailer names of a body that arrives in pieces of `size` bytes.
    fn decode(body: &[u8], size: usize) -> Result<(Vec<u8>, Vec<String>, usize), ChunkError> {
        let limits = HttpLimits::default();
        let mut decoder = ChunkDecoder::default();
        let mut buffer: Vec<u8> = Vec::new();
        let mut data = Vec::new();
        let mut used = 0;
        for piece in body.chunks(size) {
            buffer.extend_from_slice(piece);
            loop {
                match decoder.step(&buffer, &limits)? {
                    ChunkStep::More { skip } => {
                        used += skip;
                        buffer.drain(..skip);
                        break;
                    }
                    ChunkStep::Data { skip, left } => {
                        used += skip;
                        buffer.drain(..skip);
                        let here = buffer.len().min(left as usize);
                        data.extend(buffer.drain(..here));
                        used += here;
                        decoder.consumed(here as u64);
                        if buffer.is_empty() {
                            break;
                        }
                    }
                    ChunkStep::End { skip, trailers_at, trailers } => {
                        let section = &buffer[trailers_at..skip];
                        let names = trailers
                            .iter()
                            .map(|(name, _)| {
                                String::from_utf8_lossy(&section[name.start as usize..name.end as usize]).into()
                            })
                            .collect();
                        return Ok((data, names, used + skip));
                    }
                }
            }
        }
        Ok((data, vec!["incomplete".into()], used))
    }

    #[test]
    fn a_body_reads_the_same_however_it_is_cut() {
        let check = |body: &str, expected: Result<(&str, &[&str], usize), ChunkError>| {
            let expected = expected.map(|(data, names, used)| {
                (data.as_bytes().to_vec(), names.iter().map(|name| (*name).to_owned()).collect(), used)
            });
            for size in 1..=body.len() {
                assert_eq!(decode(body.as_bytes(), size), expected, "{body:?} in pieces of {size}");
            }
        };
        check("0\r\n\r\n", Ok(("", &[], 5)));
        check("3\r\nabc\r\n0\r\n\r\nGET", Ok(("abc", &[], 13)));
        check(
            "0000A;n=\"v\"\r\n0123456789\r\n1\r\n!\r\n000\r\nA: b\r\nC: d\r\n\r\n",
            Ok(("0123456789!", &["A", "C"], 50)),
        );
        check("3\r\nab", Ok(("ab", &["incomplete"], 5)));
        check("3\r\nabcd\r\n", Err(ChunkError::LineEnd));
        check("3\rabc", Err(ChunkError::LineEnd));
        check("3\nabc", Err(ChunkError::Size));
        check("x", Err(ChunkError::Size));
        check("1;a\x01\r\n", Err(ChunkError::Extension));
        check("1234567890abcdef\r\n", Err(ChunkError::Size));
        check("0\r\nHost: a\r\n\r\n", Err(ChunkError::Trailers(HeadError::FieldName)));
        check("0\r\nA: b\n\r\n", Err(ChunkError::Trailers(HeadError::BareLineEnd)));
    }
}
