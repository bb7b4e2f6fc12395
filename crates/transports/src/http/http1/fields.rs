//! Field lines: what each may look like, and what those that matter here say.

use super::head::{Facts, Field, HeadError, line_end};
use super::outgoing::{Framing, is_ours};
use super::scan::{is_authority, is_name, token_length, value_length};
use crate::http::HttpLimits;

/// Room for the fields of nearly every head.
const FIELDS_ROOM: usize = 16;

/// Positions in a head are stored in 32 bits.
const BYTES_CEILING: usize = 1 << 30;

/// What a trailer section is not for (RFC 9110 §6.5.1): framing, routing, credentials, and what says how to read or to
/// take a message. They must not be accepted from trailers by code that merges trailers into the head.
const OF_THE_HEAD: [&str; 33] = [
    "authorization",
    "cache-control",
    "content-encoding",
    "content-range",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "retry-after",
    "set-cookie",
    "vary",
    "www-authenticate",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-http-method-override",
    "x-jwt-assertion",
    "x-original-url",
    "x-real-ip",
    "x-request-id",
    "x-rewrite-url",
];

/// Whether a field may follow a body.
pub(crate) fn may_follow(name: &[u8]) -> bool {
    !is_ours(name) && !OF_THE_HEAD.iter().any(|field| name.eq_ignore_ascii_case(field.as_bytes()))
}

/// Whether a field announces what follows a body, and something can follow a body of that framing.
pub(crate) fn announces_trailers(name: &[u8], framing: Framing) -> bool {
    framing == Framing::Chunked && is_name(name, b"trailer")
}

/// The fields of one head, as far as they were parsed.
pub(super) struct FieldBlock<'a> {
    bytes_max: usize,
    limits: &'a HttpLimits,
    pub(super) fields: Vec<Field>,
    pub(super) facts: Facts,
    /// How many `Host` fields there are.
    pub(super) hosts: usize,
    encodings: usize,
    /// Whether `Expect` has an unknown value.
    pub(super) unknown_expectation: bool,
}

impl FieldBlock<'_> {
    /// No fields yet; `fields` is an empty vector, perhaps with room.
    pub(super) fn new(limits: &HttpLimits, mut fields: Vec<Field>) -> FieldBlock<'_> {
        // Enough for nearly every client, so the vector does not grow while it is filled.
        fields.reserve(FIELDS_ROOM);
        let bytes_max = limits.head_bytes_max.min(BYTES_CEILING);
        FieldBlock {
            bytes_max,
            limits,
            fields,
            facts: Facts::default(),
            hosts: 0,
            encodings: 0,
            unknown_expectation: false,
        }
    }

    /// Parses field lines from `at` to the empty line and returns where the body starts.
    pub(super) fn parse(&mut self, bytes: &[u8], mut at: usize) -> Result<Option<usize>, HeadError> {
        loop {
            let line = bytes.get(at..).unwrap_or_default();
            let name_length = token_length(line);
            match line.get(name_length) {
                None => return Ok(None),
                Some(b':') if name_length > 0 => {}
                Some(b'\r') if name_length == 0 => {
                    return match line_end(bytes, at)? {
                        Some(end) if end > self.bytes_max => Err(HeadError::TooLong),
                        end => Ok(end),
                    };
                }
                Some(b'\n') if name_length == 0 => return Err(HeadError::BareLineEnd),
                Some(b' ' | b'\t') if name_length == 0 => return Err(HeadError::Folded),
                Some(_) => return Err(HeadError::FieldName),
            }
            let mut start = name_length + 1;
            while matches!(line.get(start), Some(b' ' | b'\t')) {
                start += 1;
            }
            let content = line.get(start..).unwrap_or_default();
            let length = value_length(content);
            let Some(next) = line_end(bytes, at + start + length)? else { return Ok(None) };
            let value = content[..length].trim_ascii_end();
            if self.fields.len() == self.limits.fields_max {
                return Err(HeadError::TooManyFields);
            }
            if next > self.bytes_max {
                return Err(HeadError::TooLong);
            }
            self.note(&line[..name_length], value)?;
            // Not truncated: `next` is not more than `bytes_max`.
            let offset = |inside: usize| (at + inside) as u32;
            self.fields.push((offset(0)..offset(name_length), offset(start)..offset(start + value.len())));
            at = next;
        }
    }

    /// Checks the fields for framing and connection, distinguished by length first.
    fn note(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadError> {
        match name.len() {
            4 if is_name(name, b"host") => {
                self.hosts += 1;
                if !is_authority(value) {
                    return Err(HeadError::Host);
                }
            }
            6 if is_name(name, b"expect") => {
                let known = value.eq_ignore_ascii_case(b"100-continue");
                self.facts.expect_continue |= known;
                self.unknown_expectation |= !known;
            }
            10 if is_name(name, b"connection") => self.note_connection(value),
            14 if is_name(name, b"content-length") => {
                if self.facts.content_length.is_some() {
                    return Err(HeadError::ContentLength);
                }
                self.facts.content_length = Some(parse_length(value)?);
            }
            17 if is_name(name, b"transfer-encoding") => {
                self.encodings += 1;
                if self.encodings > 1 || value.is_empty() {
                    return Err(HeadError::Ambiguous);
                }
                if !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(HeadError::TransferEncoding);
                }
                self.facts.chunked = true;
            }
            _ => return Ok(()),
        }
        if self.encodings > 0 && self.facts.content_length.is_some() {
            return Err(HeadError::Ambiguous);
        }
        Ok(())
    }

    fn note_connection(&mut self, value: &[u8]) {
        for option in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            if option.eq_ignore_ascii_case(b"close") {
                self.facts.close = true;
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                self.facts.keep_alive = true;
            } else if !option.is_empty() {
                self.facts.names_fields = true;
            }
        }
    }
}

/// Digits only: no sign, no list, no white space inside; 18 digits always fit.
fn parse_length(value: &[u8]) -> Result<u64, HeadError> {
    if value.is_empty() || value.len() > 18 || !value.iter().all(u8::is_ascii_digit) {
        return Err(HeadError::ContentLength);
    }
    Ok(value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}
