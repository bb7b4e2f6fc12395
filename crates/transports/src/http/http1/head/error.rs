//! Why heads are refused, and with which status.

use std::fmt;

/// Why a head is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadError {
    /// The first line is not what it must be.
    StartLine,
    /// A version other than 1.0 and 1.1.
    Version,
    /// A target that is no path, absolute http(s) URL, or `*` of OPTIONS, or holds forbidden bytes.
    Target,
    /// The target exceeds its limit.
    TargetTooLong,
    /// The head exceeds its limit.
    TooLong,
    /// More fields than the limit.
    TooManyFields,
    /// A line ends in LF without CR, or CR without LF.
    BareLineEnd,
    /// A field line that starts with white space.
    Folded,
    /// A field without name or colon, or with white space before the colon.
    FieldName,
    /// A control character in a value.
    FieldValue,
    /// `Content-Length` is repeated, a list, or not a number.
    ContentLength,
    /// `Content-Length` and `Transfer-Encoding` together, or `Transfer-Encoding` in HTTP/1.0.
    Ambiguous,
    /// A transfer coding other than `chunked`.
    TransferEncoding,
    /// No `Host` in HTTP/1.1, more than one, or one with forbidden bytes.
    Host,
    /// An expectation other than `100-continue`.
    Expectation,
}

impl HeadError {
    /// The status with which a listener refuses.
    pub fn status(self) -> u16 {
        match self {
            HeadError::Version => 505,
            HeadError::TargetTooLong => 414,
            HeadError::TooLong | HeadError::TooManyFields => 431,
            HeadError::TransferEncoding => 501,
            HeadError::Expectation => 417,
            _ => 400,
        }
    }
}

impl fmt::Display for HeadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            HeadError::StartLine => "the first line is malformed",
            HeadError::Version => "the HTTP version is not supported",
            HeadError::Target => "the request target is malformed",
            HeadError::TargetTooLong => "the request target is too long",
            HeadError::TooLong => "the head is too large",
            HeadError::TooManyFields => "the head has too many fields",
            HeadError::BareLineEnd => "a line of the head does not end in CR LF",
            HeadError::Folded => "a field is folded over several lines",
            HeadError::FieldName => "a field name is malformed",
            HeadError::FieldValue => "a field value holds a control character",
            HeadError::ContentLength => "`Content-Length` is repeated or not a number",
            HeadError::Ambiguous => "`Transfer-Encoding` makes the length of the body ambiguous",
            HeadError::TransferEncoding => "the transfer coding is not supported",
            HeadError::Host => "`Host` is missing, repeated or malformed",
            HeadError::Expectation => "the expectation cannot be met",
        })
    }
}
