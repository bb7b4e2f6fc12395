//! Why a path is not one.

use std::fmt;
use std::ops::Range;

/// A mistake in a path, with the bytes of the text it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathError {
    /// What is wrong, lower case, without a full stop.
    pub message: String,
    /// Which bytes of the path are meant; empty when something is missing there.
    pub span: Range<usize>,
}

impl fmt::Display for PathError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} (at character {} of the path)", self.message, self.span.start + 1)
    }
}

impl std::error::Error for PathError {}
