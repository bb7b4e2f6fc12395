//! `xs:hexBinary` and `xs:base64Binary`.

use std::fmt::Write;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

pub(super) fn parse_hex(text: &str) -> Option<Arc<[u8]>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

pub(super) fn format_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02X}");
        text
    })
}

/// The lexical form of XML Schema: white space may stand between the characters.
pub(super) fn parse_base64(text: &str) -> Option<Arc<[u8]>> {
    let compact: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).collect();
    STANDARD.decode(compact).ok().map(Into::into)
}

pub(super) fn format_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}
