//! Addresses of targets: `http://host:port/path`.
use crate::error::Error;

/// A parsed `http` or `https` address. Invariant: `path` starts with `/` and holds the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Url {
    /// Whether the scheme is `https`.
    pub tls: bool,
    /// Host name or address, without the brackets of an IPv6 address.
    pub host: String,
    /// The port, the scheme's own if the text names none.
    pub port: u16,
    /// Path and query, at least `/`.
    pub path: String,
}

impl Url {
    /// Parses an address; the fragment, if any, is dropped.
    pub fn parse(text: &str) -> Result<Url, Error> {
        let wrong = |why: &str| Error::Input(format!("`{text}` is not an address like `http://host:port/path`: {why}"));
        let (tls, rest) = if let Some(rest) = text.strip_prefix("http://") {
            (false, rest)
        } else if let Some(rest) = text.strip_prefix("https://") {
            (true, rest)
        } else {
            return Err(wrong("it must start with `http://` or `https://`"));
        };
        let rest = rest.split('#').next().unwrap_or(rest);
        let split = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(split);
        if path.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(wrong("the path holds a space or a control character"));
        }
        let default_port = if tls { 443 } else { 80 };
        let (host, port_text) = split_authority(authority).ok_or_else(|| wrong("the host is missing or malformed"))?;
        let port = match port_text {
            None => default_port,
            Some(digits) => digits.parse().map_err(|_| wrong("the port is not a number from 0 to 65535"))?,
        };
        let path = match path.as_bytes().first() {
            None => "/".to_owned(),
            Some(b'?') => format!("/{path}"),
            Some(_) => path.to_owned(),
        };
        Ok(Url { tls, host: host.to_owned(), port, path })
    }

    /// `host:port` as the `Host` header carries it; the scheme's own port is left out.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let default_port = if self.tls { 443 } else { 80 };
        if self.port == default_port { host } else { format!("{host}:{}", self.port) }
    }

    /// The same server with another path.
    pub fn with_path(&self, path: &str) -> Url {
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Url { path, ..self.clone() }
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}{}", if self.tls { "https" } else { "http" }, self.authority(), self.path)
    }
}

fn split_authority(authority: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        return match after.strip_prefix(':') {
            Some(port) => Some((host, Some(port))),
            None if after.is_empty() => Some((host, None)),
            None => None,
        };
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let well_formed =
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    well_formed.then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_written_back() {
        for (text, expected) in [
            ("http://localhost:8290/services/DirectProxy", "http://localhost:8290/services/DirectProxy"),
            ("https://a.example", "https://a.example/"),
            ("https://a.example:443/x?y=1#z", "https://a.example/x?y=1"),
            ("http://[::1]:80?q", "http://[::1]/?q"),
        ] {
            assert_eq!(Url::parse(text).unwrap().to_string(), expected);
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in
            ["localhost:80", "http://", "http://h:99999", "http://h/a b", "http://[::1", "ftp://h", "http://a@b/"]
        {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }
}
