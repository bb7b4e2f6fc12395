//! The parts of a backend's address.

use penstock_engine::{Fault, Side, codes};

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
        let (secure, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some((scheme, _)) => return Err(broken(&format!("has the scheme `{scheme}`, which HTTP cannot reach"))),
            None => return Err(broken("is not absolute")),
        };
        if text.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(broken("holds white space or a control character"));
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = path.split_once('#').map_or(path, |(path, _)| path);
        let authority = authority.rsplit_once('@').map_or(authority, |(_, authority)| authority);
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or_else(|| broken("has an unclosed `[`"))?;
                (host, port.strip_prefix(':'))
            }
            None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
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
