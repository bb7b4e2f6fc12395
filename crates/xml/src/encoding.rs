//! Encodings a document may arrive in. Everything is turned into UTF-8 before it is read.

/// The encodings that are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// UTF-16, little endian.
    Utf16Le,
    /// UTF-16, big endian.
    Utf16Be,
    /// ISO-8859-1.
    Latin1,
    /// US-ASCII.
    Ascii,
    /// Windows code page 1252.
    Windows1252,
}

impl Encoding {
    /// The encoding with this name, in any case; `UTF-16` without a byte order is big endian until a mark says otherwise.
    pub fn from_name(name: &str) -> Option<Encoding> {
        const NAMES: [(&str, Encoding); 16] = [
            ("utf-8", Encoding::Utf8),
            ("utf8", Encoding::Utf8),
            ("utf-16", Encoding::Utf16Be),
            ("utf16", Encoding::Utf16Be),
            ("utf-16le", Encoding::Utf16Le),
            ("utf-16be", Encoding::Utf16Be),
            ("iso-10646-ucs-2", Encoding::Utf16Be),
            ("iso-8859-1", Encoding::Latin1),
            ("iso8859-1", Encoding::Latin1),
            ("iso_8859-1", Encoding::Latin1),
            ("latin1", Encoding::Latin1),
            ("l1", Encoding::Latin1),
            ("us-ascii", Encoding::Ascii),
            ("ascii", Encoding::Ascii),
            ("windows-1252", Encoding::Windows1252),
            ("cp1252", Encoding::Windows1252),
        ];
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, encoding)| encoding)
    }

    /// The name to declare it with.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Utf8 => "UTF-8",
            Encoding::Utf16Le | Encoding::Utf16Be => "UTF-16",
            Encoding::Latin1 => "ISO-8859-1",
            Encoding::Ascii => "US-ASCII",
            Encoding::Windows1252 => "windows-1252",
        }
    }
}
