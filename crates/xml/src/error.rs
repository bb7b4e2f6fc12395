//! What went wrong with a document, and where.

use std::fmt;

/// A place in a source text.
///
/// Lines and columns count from one; columns count characters. A node that was built rather than parsed has
/// no place: its line is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Position {
    /// The line, from one. Zero when the place is not known.
    pub line: u32,
    /// The character within the line, from one.
    pub column: u32,
    /// The byte within the text, from zero. For a text that was not UTF-8 it counts bytes of the decoded text.
    pub offset: usize,
}

impl Position {
    /// The place of what has none.
    pub const UNKNOWN: Position = Position { line: 0, column: 0, offset: 0 };

    /// The place of the byte `offset` in `text`. An offset past the end is the end.
    pub fn locate(text: &[u8], offset: usize) -> Position {
        let before = text.get(..offset).unwrap_or(text);
        // A carriage return counts as an end of line only when no line feed follows it, as XML 1.0 §2.11 reads them.
        let mut line = 1;
        // A byte order mark takes no column.
        let mut line_start = if before.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
        for (index, &byte) in before.iter().enumerate() {
            let ends_line = byte == b'\n' || (byte == b'\r' && text.get(index + 1) != Some(&b'\n'));
            if ends_line {
                line += 1;
                line_start = index + 1;
            }
        }
        let column = 1 + before[line_start..].iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
        Position { line, column: u32::try_from(column).unwrap_or(u32::MAX), offset: before.len() }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// The kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum XmlErrorKind {
    /// The text is not well-formed XML.
    Malformed,
    /// The text ends before the document does.
    UnexpectedEnd,
    /// The text breaks a rule of Namespaces in XML: an undeclared prefix, a reserved name.
    Namespace,
    /// The bytes are not text in the declared encoding, or the encoding is not one of those read here.
    Encoding,
    /// A reference to an entity that is not declared, is recursive, or is external and may not be read.
    Entity,
    /// A document type declaration where the caller allows none.
    DoctypeRefused,
    /// A limit of [`Limits`](crate::Limits) was reached.
    Limit,
    /// The tree would have more nodes than [`Limits::nodes_max`](crate::Limits::nodes_max).
    TooManyNodes {
        /// The limit.
        limit: usize,
    },
}

/// A document that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XmlError {
    /// What kind of failure it is.
    pub kind: XmlErrorKind,
    /// Where it was noticed.
    pub position: Position,
    /// What a person reads: lower case, no full stop.
    pub message: Box<str>,
}

impl fmt::Display for XmlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.position, self.message)
    }
}

impl std::error::Error for XmlError {}

impl From<Box<XmlError>> for XmlError {
    fn from(error: Box<XmlError>) -> XmlError {
        *error
    }
}
