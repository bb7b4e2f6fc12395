//! The one error type of the crate: a code of the XPath specifications, a sentence, and where in the expression.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// Part of an expression's text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span of an error that does not know its place yet.
    const UNKNOWN: Span = Span { start: u32::MAX, end: u32::MAX };

    pub(crate) fn new(start: usize, end: usize) -> Span {
        // Expressions longer than `lexer::MAX_TEXT_BYTES` are refused, so the conversion cannot lose anything.
        Span { start: start as u32, end: end as u32 }
    }

    pub(crate) fn to(self, end: Span) -> Span {
        Span { start: self.start, end: end.end }
    }

    /// As a range for slicing the text.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Why an expression did not compile or could not be evaluated.
#[derive(Clone, PartialEq, Eq)]
pub struct XPathError {
    // Boxed: every evaluation function returns a `Result`, and the good case should fit in registers.
    inner: Box<Inner>,
}

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    code: Cow<'static, str>,
    message: String,
    span: Span,
}

impl XPathError {
    /// An error whose place the evaluator fills in on the way up; this is what a host's functions return.
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> XPathError {
        XPathError { inner: Box::new(Inner { code: code.into(), message: message.into(), span: Span::UNKNOWN }) }
    }

    /// The same error with its place, unless it has one already: the innermost place is the useful one.
    #[must_use]
    pub fn at(mut self, span: Span) -> XPathError {
        if self.inner.span == Span::UNKNOWN {
            self.inner.span = span;
        }
        self
    }

    /// The same error at another place: for text that stands inside a larger one, or replaces it (aliases).
    #[must_use]
    pub fn moved_to(mut self, span: Span) -> XPathError {
        self.inner.span = span;
        self
    }

    /// The code of the specifications, such as `XPST0003`, or the one given to `fn:error`.
    pub fn code(&self) -> &str {
        &self.inner.code
    }

    /// What is wrong, for a person.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// Where in the text of the expression, in bytes.
    pub fn span(&self) -> Range<usize> {
        if self.inner.span == Span::UNKNOWN { 0..0 } else { self.inner.span.range() }
    }
}

impl fmt::Display for XPathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.inner.message, self.inner.code)
    }
}

impl fmt::Debug for XPathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = self.span();
        write!(f, "{}..{}: {}: {}", span.start, span.end, self.inner.code, self.inner.message)
    }
}

impl std::error::Error for XPathError {}

/// The crate's result.
pub type Result<T> = std::result::Result<T, XPathError>;

/// A type error (`XPTY0004`).
pub(crate) fn type_error(message: impl Into<String>) -> XPathError {
    XPathError::new("XPTY0004", message)
}
