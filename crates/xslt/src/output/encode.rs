//! Results in encodings other than UTF-8. The writer makes UTF-8 and references; this turns the text into bytes.

/// The encodings results are written in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Charset {
    Utf8,
    Utf16,
    Latin1,
    Ascii,
    /// Any other: characters beyond ASCII become references, which is valid in every encoding that extends ASCII.
    Other(Box<str>),
}

impl Charset {
    /// The encoding a stylesheet names.
    pub fn from_name(name: Option<&str>) -> Charset {
        let Some(name) = name.filter(|name| !name.is_empty()) else { return Charset::Utf8 };
        match &name.to_ascii_lowercase()[..] {
            "utf-8" | "utf8" => Charset::Utf8,
            "utf-16" | "utf16" | "utf-16be" | "utf-16le" => Charset::Utf16,
            "iso-8859-1" | "latin1" | "iso8859-1" => Charset::Latin1,
            "us-ascii" | "ascii" => Charset::Ascii,
            "shift_jis" | "shift-jis" | "sjis" | "euc-jp" | "big5" | "gbk" | "gb2312" | "gb18030" | "euc-kr"
            | "iso-2022-jp" => Charset::Other(name.into()),
            other if other.starts_with("iso-8859-") || other.starts_with("windows-") || other.starts_with("koi8") => {
                Charset::Other(name.into())
            }
            _ => Charset::Utf8,
        }
    }

    /// Whether an encoding of this name can be written.
    pub fn is_known(name: &str) -> bool {
        let lower = name.to_ascii_lowercase();
        matches!(&lower[..], "utf-8" | "utf8") || Charset::from_name(Some(name)) != Charset::Utf8
    }

    /// The name to declare.
    pub fn name(&self) -> &str {
        match self {
            Charset::Utf8 => "UTF-8",
            Charset::Utf16 => "UTF-16",
            Charset::Latin1 => "ISO-8859-1",
            Charset::Ascii => "US-ASCII",
            Charset::Other(name) => name,
        }
    }

    /// The last character that needs no reference.
    pub fn last_character(&self) -> char {
        match self {
            Charset::Utf8 | Charset::Utf16 => char::MAX,
            Charset::Latin1 => '\u{ff}',
            Charset::Ascii | Charset::Other(_) => '\u{7f}',
        }
    }
}

/// Turns the UTF-8 from `start` on into the encoding.
pub(crate) fn encode(out: &mut Vec<u8>, start: usize, charset: &Charset) {
    if matches!(charset, Charset::Utf8 | Charset::Ascii | Charset::Other(_)) {
        return;
    }
    let text = String::from_utf8_lossy(&out[start..]).into_owned();
    out.truncate(start);
    match charset {
        Charset::Utf16 => {
            out.extend_from_slice(&[0xfe, 0xff]);
            out.extend(text.encode_utf16().flat_map(u16::to_be_bytes));
        }
        // What does not fit (in names, comments) has no other form.
        _ => out.extend(text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?'))),
    }
}
