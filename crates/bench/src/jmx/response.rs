//! A response as extractors and assertions see it.
use std::borrow::Cow;
use std::io::Read;

/// More of a body is not searched.
pub const SEARCHED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The last response of a request.
#[derive(Debug, Default)]
pub struct Response {
    pub status: u16,
    /// Status line and header fields.
    pub head: String,
    /// The body as text, decompressed.
    pub body: String,
    pub body_bytes: u64,
    /// Bytes of head and body on the connection.
    pub received_bytes: u64,
    /// Address of the request.
    pub url: String,
    /// Head of the request, without its first line.
    pub request_head: String,
    pub request_body: String,
    pub elapsed_ms: u64,
}

impl Response {
    /// The status line without the code.
    pub fn message(&self) -> &str {
        let line = self.head.lines().next().unwrap_or_default();
        line.splitn(3, ' ').nth(2).unwrap_or_default()
    }

    /// Values of a header field.
    pub fn fields<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = move |line: &'a str| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        };
        self.head.lines().skip(1).filter_map(named)
    }
}

/// The text of a body with this `Content-Encoding`.
pub fn decode(body: &[u8], encoding: Option<&str>) -> Result<String, String> {
    let bytes: Cow<'_, [u8]> = match encoding.map(str::to_ascii_lowercase).as_deref() {
        None | Some("" | "identity") => body.into(),
        Some("gzip" | "x-gzip") => decompress(flate2::read::GzDecoder::new(body))?.into(),
        Some("deflate") => decompress(flate2::read::ZlibDecoder::new(body))
            .or_else(|_| decompress(flate2::read::DeflateDecoder::new(body)))?
            .into(),
        Some(other) => return Err(format!("the response body is compressed with `{other}`, which is not supported")),
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn decompress(reader: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let limit = SEARCHED_BYTES_MAX as u64;
    let read = reader.take(limit).read_to_end(&mut bytes);
    read.map_err(|error| format!("the response body cannot be decompressed: {error}"))?;
    Ok(bytes)
}
