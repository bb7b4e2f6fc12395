//! Requests as bytes made once and written many times; only a per-request token is filled in each time.
use super::url::Url;
use crate::error::Error;
use bytes::Bytes;

/// The placeholder that is replaced in header values, path and body by the next token.
pub const TOKEN: &str = "${token}";

/// What to send, before it is turned into bytes.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method, such as `POST`.
    pub method: String,
    /// Where to send it.
    pub url: Url,
    /// Header names and values in order; `Host` and `Content-Length` are added.
    pub headers: Vec<(String, String)>,
    /// The body; empty for none.
    pub body: Bytes,
    /// Whether the connection stays open for the next request.
    pub keep_alive: bool,
}

/// A request as HTTP/1.1 bytes, with the places where a token goes.
#[derive(Debug, Clone)]
pub struct Template {
    /// The whole request when it holds no token; else the text before the first one.
    prefix: Bytes,
    /// What follows each token.
    rest: Vec<Bytes>,
}

impl Request {
    /// The bytes that go over the wire. Refuses what would break the framing.
    pub fn template(&self) -> Result<Template, Error> {
        if memchr::memmem::find(&self.body, TOKEN.as_bytes()).is_some() {
            // The Content-Length would change from token to token; no published scenario does that.
            return Err(Error::Input(format!("`{TOKEN}` may stand in the path and in headers, not in the body")));
        }
        let text = self.head()?;
        let head_holds_token = text.contains(TOKEN);
        let mut pieces = text.split(TOKEN).map(|piece| piece.as_bytes().to_vec()).collect::<Vec<_>>();
        if let Some(last) = pieces.last_mut() {
            last.extend_from_slice(&self.body);
        }
        let mut pieces = pieces.into_iter().map(Bytes::from);
        let prefix = pieces.next().unwrap_or_default();
        let rest: Vec<Bytes> = pieces.collect();
        debug_assert_eq!(head_holds_token, !rest.is_empty());
        Ok(Template { prefix, rest })
    }

    /// Request line and header fields with the empty line behind them.
    pub fn head(&self) -> Result<String, Error> {
        if self.method.is_empty() || !self.method.bytes().all(is_token_byte) {
            return Err(Error::Input(format!("`{}` is not an HTTP method", self.method)));
        }
        let mut text = format!("{} {} HTTP/1.1\r\nHost: {}\r\n", self.method, self.url.path, self.url.authority());
        for (name, value) in &self.headers {
            check_header(name, value)?;
            if name.eq_ignore_ascii_case("host") {
                let end_of_line = text.find("\r\n").map_or(0, |at| at + 2);
                text.truncate(end_of_line);
                text.push_str(&format!("Host: {value}\r\n"));
            } else if !name.eq_ignore_ascii_case("content-length") {
                text.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        let body_expected = matches!(self.method.as_str(), "POST" | "PUT" | "PATCH");
        if !self.body.is_empty() || body_expected {
            text.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        if !self.keep_alive {
            text.push_str("Connection: close\r\n");
        }
        text.push_str("\r\n");
        Ok(text)
    }
}

impl Template {
    /// Whether each request needs a token.
    pub fn wants_token(&self) -> bool {
        !self.rest.is_empty()
    }

    /// The bytes of one request. Without tokens this only counts a reference.
    pub fn fill(&self, token: &str) -> Bytes {
        if self.rest.is_empty() {
            return self.prefix.clone();
        }
        let size = self.prefix.len() + self.rest.iter().map(|piece| piece.len() + token.len()).sum::<usize>();
        let mut bytes = Vec::with_capacity(size);
        bytes.extend_from_slice(&self.prefix);
        for piece in &self.rest {
            bytes.extend_from_slice(token.as_bytes());
            bytes.extend_from_slice(piece);
        }
        bytes.into()
    }
}

/// Refuses names and values that would end the line or the header section.
pub fn check_header(name: &str, value: &str) -> Result<(), Error> {
    if name.is_empty() || !name.bytes().all(is_token_byte) {
        return Err(Error::Input(format!("`{name}` is not a header name")));
    }
    if value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        return Err(Error::Input(format!("the value of header `{name}` holds a line break")));
    }
    Ok(())
}

// RFC 9110 §5.6.2: the characters of a token.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(&str, &str)], body: &str) -> Request {
        Request {
            method: "POST".into(),
            url: Url::parse("http://localhost:8290/x").unwrap(),
            headers: headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
            body: Bytes::copy_from_slice(body.as_bytes()),
            keep_alive: true,
        }
    }

    #[test]
    fn a_request_is_written_once() {
        let template = request(&[("Content-Type", "text/xml"), ("content-length", "9")], "<a/>").template().unwrap();
        let expected =
            "POST /x HTTP/1.1\r\nHost: localhost:8290\r\nContent-Type: text/xml\r\nContent-Length: 4\r\n\r\n<a/>";
        assert_eq!(template.fill(""), expected.as_bytes());
        assert!(!template.wants_token());
    }

    #[test]
    fn a_token_is_filled_in_and_a_host_replaced() {
        let template = request(&[("Host", "h"), ("Authorization", "Bearer ${token}")], "").template().unwrap();
        let expected = "POST /x HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer abc\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(template.fill("abc"), expected.as_bytes());
    }

    #[test]
    fn what_breaks_the_framing_is_refused() {
        assert!(request(&[("A", "b\r\nC: d")], "").template().is_err());
        assert!(request(&[("A b", "c")], "").template().is_err());
        assert!(request(&[], "${token}").template().is_err());
    }
}
