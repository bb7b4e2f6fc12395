//! An address in parts, for mediators that change parts of it.

use std::fmt;

/// A part of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fragment {
    /// `http`
    Protocol,
    /// `user:password`
    User,
    /// The host.
    Host,
    /// The port.
    Port,
    /// The path with its leading slash.
    Path,
    /// Without the `?`.
    Query,
    /// Without the `#`.
    Reference,
}

impl Fragment {
    /// The part an artifact names.
    pub fn parse(name: &str) -> Option<Fragment> {
        Some(match name {
            "protocol" => Fragment::Protocol,
            "user" => Fragment::User,
            "host" => Fragment::Host,
            "port" => Fragment::Port,
            "path" => Fragment::Path,
            "query" => Fragment::Query,
            "ref" => Fragment::Reference,
            _ => return None,
        })
    }
}

/// An address in parts; any of them may be missing (RFC 3986 §3).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uri {
    parts: [Option<String>; 7],
}

impl Uri {
    /// Splits an address. Never fails: what is no URI is a path.
    pub fn parse(text: &str) -> Uri {
        let mut uri = Uri::default();
        let (rest, reference) = text.split_once('#').map_or((text, None), |(rest, reference)| (rest, Some(reference)));
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        uri.set(Fragment::Reference, reference);
        uri.set(Fragment::Query, query);
        let Some((protocol, rest)) = rest.split_once("://") else {
            uri.set(Fragment::Path, Some(rest).filter(|path| !path.is_empty()));
            return uri;
        };
        uri.set(Fragment::Protocol, Some(protocol));
        let (authority, path) = match rest.find('/') {
            Some(slash) => (&rest[..slash], Some(&rest[slash..])),
            None => (rest, None),
        };
        uri.set(Fragment::Path, path);
        let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        uri.set(Fragment::User, user);
        match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                uri.set(Fragment::Host, Some(name));
                uri.set(Fragment::Port, Some(port));
            }
            _ => uri.set(Fragment::Host, Some(host).filter(|host| !host.is_empty())),
        }
        uri
    }

    /// A part.
    pub fn get(&self, fragment: Fragment) -> Option<&str> {
        self.parts[fragment as usize].as_deref()
    }

    /// Sets or removes a part.
    pub fn set(&mut self, fragment: Fragment, text: Option<&str>) {
        self.parts[fragment as usize] = text.map(str::to_owned);
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(protocol) = self.get(Fragment::Protocol) {
            write!(out, "{protocol}://")?;
        }
        if let Some(user) = self.get(Fragment::User) {
            write!(out, "{user}@")?;
        }
        out.write_str(self.get(Fragment::Host).unwrap_or_default())?;
        if let Some(port) = self.get(Fragment::Port) {
            write!(out, ":{port}")?;
        }
        out.write_str(self.get(Fragment::Path).unwrap_or_default())?;
        if let Some(query) = self.get(Fragment::Query) {
            write!(out, "?{query}")?;
        }
        match self.get(Fragment::Reference) {
            Some(reference) => write!(out, "#{reference}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_comes_together_as_it_was() {
        for text in ["http://u:p@h:80/a/b?x=1&y#r", "https://h", "/services/x?wsdl", "http://h/a", ""] {
            assert_eq!(Uri::parse(text).to_string(), text);
        }
        assert_eq!(Uri::parse("http://h:90/x").get(Fragment::Port), Some("90"));
    }
}
