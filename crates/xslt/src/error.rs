//! What goes wrong, where, and under which code.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A place in a stylesheet or in a source document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position {
    /// The base URI of the module, as it was resolved.
    pub uri: Arc<str>,
    /// Line, counted from one; zero when unknown.
    pub line: u32,
    /// Column in characters, counted from one; zero when unknown.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.uri, self.line, self.column)
    }
}

/// A static or dynamic error of a transformation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct XsltError {
    /// The code of the W3C recommendations (`XTSE0010`, `XPST0003`, …), or one of the `PSXT` codes for limits.
    pub code: Cow<'static, str>,
    /// What is wrong, for a person.
    pub message: String,
    /// Where in the stylesheet.
    pub at: Position,
    /// Where in the source document, when a node was being processed.
    pub source_at: Option<Position>,
}

impl XsltError {
    /// An error at a place in the stylesheet.
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<String>, at: Position) -> Self {
        XsltError { code: code.into(), message: message.into(), at, source_at: None }
    }
}

impl fmt::Display for XsltError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.at, self.code, self.message)?;
        match &self.source_at {
            Some(source) => write!(f, " (at {source})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for XsltError {}

/// Something odd that does not stop the stylesheet from running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What is odd, for a person.
    pub message: String,
    /// Where in the stylesheet.
    pub at: Position,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}

/// Codes of the limits this engine sets itself; the recommendations have none for them.
pub mod codes {
    /// Templates call each other deeper than the limit.
    pub const TOO_DEEP: &str = "PSXT0001";
    /// The result is larger than the limit.
    pub const OUTPUT_TOO_LARGE: &str = "PSXT0002";
    /// The transformation took more steps than the limit.
    pub const OUT_OF_FUEL: &str = "PSXT0003";
    /// The transformation took longer than the limit.
    pub const OUT_OF_TIME: &str = "PSXT0004";
}
