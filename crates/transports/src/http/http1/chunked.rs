//! The chunked transfer coding, read piece by piece.

use std::fmt;

use super::head::{Field, HeadError, parse_trailers};
use crate::http::HttpLimits;

/// Hexadecimal digits of a chunk size. Sixteen would overflow the sum of sizes.
const SIZE_DIGITS_MAX: u8 = 15;

/// Bytes of chunk extensions in one chunk. Nobody uses them; more is an attack on whoever reads them.
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
