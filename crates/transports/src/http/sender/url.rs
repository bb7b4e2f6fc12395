//! The parts of a backend's address.

use std::ops::Range;

use penstock_engine::{Fault, Side, codes};

use crate::http::http1::is_visible;

/// An absolute `http` or `https` URL, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Url<'a> {
    pub(crate) secure: bool,
    /// Without brackets.
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    /// Host and port as written, without user information: the value of `Host`.
    pub(crate) authority: &'a str,
    /// Path and query; may be empty or start with `?`.
    pub(crate) path: &'a str,
}

impl<'a> Url<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Url<'a>, Fault> {
        let broken =
            |why: &str| Fault::coded(codes::CONNECTION_FAILED, Side::Us, format!("the address `{text}` {why}"));
        let bytes = text.as_bytes();
        let (secure, start) = match bytes {
            [b'h' | b'H', b't' | b'T', b't' | b'T', b'p' | b'P', b':', b'/', b'/', ..] => (false, 7),
            [b'h' | b'H', b't' | b'T', b't' | b'T', b'p' | b'P', b's' | b'S', b':', b'/', b'/', ..] => (true, 8),
            _ => return Err(broken(&foreign_scheme(text))),
        };
        if !is_visible(bytes) {
            return Err(broken("holds white space or a control character"));
        }
        // Every cut is at an ASCII character, so none of them falls into another.
        let end = memchr::memchr3(b'/', b'?', b'#', &bytes[start..]).map_or(text.len(), |at| start + at);
        let (authority, path) = (&text[start..end], &text[end..]);
        let path = memchr::memchr(b'#', path.as_bytes()).map_or(path, |at| &path[..at]);
        let authority = memchr::memrchr(b'@', authority.as_bytes()).map_or(authority, |at| &authority[at + 1..]);
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or_else(|| broken("has an unclosed `[`"))?;
                (host, port.strip_prefix(':'))
            }
            None => match memchr::memchr(b':', authority.as_bytes()) {
                Some(at) => (&authority[..at], Some(&authority[at + 1..])),
                None => (authority, None),
            },
        };
        if host.is_empty() {
            return Err(broken("has no host"));
        }
        let port = match port {
            None | Some("") => {
                if secure {
                    443
                } else {
                    80
                }
            }
            Some(port) => port.parse().map_err(|_| broken("has a malformed port"))?,
        };
        Ok(Url { secure, host, port, authority, path })
    }

    /// What identifies the backend in the pool.
    pub(crate) fn key(&self) -> (bool, u16, &'a str) {
        (self.secure, self.port, self.host)
    }
}

/// The parts of an address that is used again and again, by their places in its text.
pub(crate) struct PreparedUrl {
    secure: bool,
    host: Range<usize>,
    port: u16,
    authority: Range<usize>,
    path: Range<usize>,
}

impl PreparedUrl {
    /// The parts of an address, when it is one of HTTP.
    pub(crate) fn parse(text: &str) -> Option<PreparedUrl> {
        let url = Url::parse(text).ok()?;
        let place = |part: &str| {
            let start = part.as_ptr().addr() - text.as_ptr().addr();
            start..start + part.len()
        };
        let (host, authority, path) = (place(url.host), place(url.authority), place(url.path));
        Some(PreparedUrl { secure: url.secure, host, port: url.port, authority, path })
    }

    /// The same as [`Url::parse`] of the text that was parsed.
    pub(crate) fn url<'a>(&self, text: &'a str) -> Url<'a> {
        let part = |place: &Range<usize>| text.get(place.clone()).unwrap_or_default();
        let (host, authority, path) = (part(&self.host), part(&self.authority), part(&self.path));
        Url { secure: self.secure, host, port: self.port, authority, path }
    }
}

fn foreign_scheme(text: &str) -> String {
    match text.split_once("://") {
        Some((scheme, _)) => format!("has the scheme `{scheme}`, which HTTP cannot reach"),
        None => "is not absolute".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_come_apart() {
        let check = |text: &str, secure: bool, host: &str, port: u16, authority: &str, path: &str| {
            let url = Url::parse(text).expect(text);
            assert_eq!(
                (url.secure, url.host, url.port, url.authority, url.path),
                (secure, host, port, authority, path)
            );
            assert_eq!(PreparedUrl::parse(text).expect(text).url(text), url);
        };
        check("http://a", false, "a", 80, "a", "");
        check("HTTPS://a.b:8443/x?y#z", true, "a.b", 8443, "a.b:8443", "/x?y");
        check("http://[::1]:9000/x", false, "::1", 9000, "[::1]:9000", "/x");
        check("http://user:word@h?q", false, "h", 80, "h", "?q");
        for bad in [
            "/x",
            "ftp://a",
            "http://",
            "http://a:b/",
            "http://a:99999/",
            "http://[::1",
            "http://a/ b",
            "http://a/\r\nX: y",
        ] {
            assert!(Url::parse(bad).is_err(), "{bad}");
        }
    }
}
