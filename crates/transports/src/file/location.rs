//! Addresses of files: `file:///folder`, `vfs:file:///folder/*`, `/folder`, `sftp://user:password@host/folder?vfs.passive=true`.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::percent_decode_str;

/// The longest address.
const BYTES_MAX: usize = 8 * 1024;

/// Where files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    /// The file system.
    pub(super) system: SystemAddress,
    /// The path, without `/*` at its end.
    pub(super) path: String,
    /// `/*` at the end: files of sub-folders, too.
    pub(super) is_recursive: bool,
    /// Whether the path ended with a slash: a folder, even if it does not exist.
    pub(super) is_folder: bool,
    /// The query.
    pub(super) options: Vec<(String, String)>,
}

/// A file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SystemAddress {
    /// That of this machine.
    Local,
    /// One that a protocol reaches.
    Remote(Box<Remote>),
}

/// A server with files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remote {
    pub(super) protocol: Protocol,
    pub(super) user: String,
    pub(super) password: String,
    pub(super) host: String,
    pub(super) port: Option<u16>,
    /// Options of the connection: the query of the address, and parameters.
    pub(super) options: Vec<(String, String)>,
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Sftp,
    Ftp,
    Ftps,
}

impl Protocol {
    const ALL: [(&'static str, Protocol); 3] =
        [("sftp", Protocol::Sftp), ("ftp", Protocol::Ftp), ("ftps", Protocol::Ftps)];

    /// The scheme of its addresses.
    pub(super) fn scheme(self) -> &'static str {
        Protocol::ALL.iter().find(|(_, known)| *known == self).map_or("", |(scheme, _)| scheme)
    }

    /// Whether this build has it.
    pub(super) fn is_built(self) -> bool {
        match self {
            Protocol::Sftp => cfg!(feature = "sftp"),
            Protocol::Ftp | Protocol::Ftps => cfg!(feature = "ftp"),
        }
    }
}

impl SystemAddress {
    /// Whether files of one can be renamed into the other.
    pub(super) fn is_same(&self, other: &SystemAddress) -> bool {
        match (self, other) {
            (SystemAddress::Local, SystemAddress::Local) => true,
            (SystemAddress::Remote(one), SystemAddress::Remote(other)) => {
                (one.protocol, &one.user, &one.host, one.port) == (other.protocol, &other.user, &other.host, other.port)
            }
            _ => false,
        }
    }
}

impl Remote {
    /// An option of the connection; empty ones are none.
    #[cfg(any(feature = "ftp", feature = "sftp"))]
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        option(&self.options, name).filter(|value| !value.is_empty())
    }
}

fn option<'o>(options: &'o [(String, String)], name: &str) -> Option<&'o str> {
    options.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

impl Location {
    /// Reads an address; the error says what is wrong with it, without secrets.
    pub(super) fn parse(text: &str) -> Result<Location, String> {
        if text.len() > BYTES_MAX {
            return Err(format!("the address is longer than {BYTES_MAX} bytes"));
        }
        let text = text.trim();
        let text = text.strip_prefix("vfs:").unwrap_or(text);
        let (text, query) = text.split_once('?').map_or((text, ""), |(text, query)| (text, query));
        let options = query.split('&').filter_map(|option| {
            let (name, value) = option.split_once('=')?;
            Some((decoded(name), decoded(value)))
        });
        let options: Vec<(String, String)> = options.collect();
        let (scheme, rest) = text.split_once(':').unwrap_or(("", text));
        let known = Protocol::ALL.iter().find(|(known, _)| *known == scheme).map(|(_, protocol)| *protocol);
        let (system, path) = match (scheme, known) {
            ("file", _) => (SystemAddress::Local, format!("/{}", rest.trim_start_matches('/'))),
            (_, Some(protocol)) if protocol.is_built() => remote(protocol, rest, &options)?,
            (_, Some(_)) => return Err(format!("this build has no `{scheme}`")),
            (scheme, None) if !scheme.is_empty() && scheme.chars().all(|letter| letter.is_ascii_alphanumeric()) => {
                return Err(format!("files over `{scheme}` are not supported"));
            }
            _ => (SystemAddress::Local, text.to_owned()),
        };
        if path.is_empty() {
            return Err("the address has no path".to_owned());
        }
        let (path, is_recursive) = path.strip_suffix("/*").map_or((&*path, false), |path| (path, true));
        let is_folder = is_recursive || path.ends_with('/');
        let trimmed = path.trim_end_matches('/');
        let path = decoded(if trimmed.is_empty() { "/" } else { trimmed });
        if path.contains('\0') {
            return Err("the address has a null character".to_owned());
        }
        Ok(Location { system, path, is_recursive, is_folder, options })
    }

    /// An option of the query.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        option(&self.options, name)
    }

    /// Whether an option is `true`.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.option(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }
}

/// Without the password.
impl fmt::Display for Location {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", self.system, self.path)
    }
}

/// Without the password.
impl fmt::Display for SystemAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SystemAddress::Local => write!(out, "file://"),
            SystemAddress::Remote(remote) => {
                let Remote { protocol, user, host, port, .. } = &**remote;
                write!(out, "{}://", protocol.scheme())?;
                if !user.is_empty() {
                    write!(out, "{user}:***@")?;
                }
                write!(out, "{host}")?;
                port.map_or(Ok(()), |port| write!(out, ":{port}"))
            }
        }
    }
}

fn remote(protocol: Protocol, rest: &str, options: &[(String, String)]) -> Result<(SystemAddress, String), String> {
    let scheme = protocol.scheme();
    let rest = rest.strip_prefix("//").ok_or_else(|| format!("`{scheme}:` needs `//` and a host"))?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    // A password may contain `@`: the last one ends it.
    let (account, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = account.split_once(':').unwrap_or((account, ""));
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) => (host, Some(port.parse().map_err(|_| format!("`{port}` is not a port"))?)),
        None => (host, None),
    };
    if host.is_empty() {
        return Err(format!("`{scheme}://` needs a host"));
    }
    let remote = Remote {
        protocol,
        user: decoded(user),
        password: decoded(password),
        host: host.to_owned(),
        port,
        options: options.to_vec(),
    };
    Ok((SystemAddress::Remote(Box::new(remote)), format!("/{path}")))
}

/// Without percent escapes. A text that is not UTF-8 then stays as it is.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(all(feature = "ftp", feature = "sftp"))]
    fn addresses_are_read_in_all_their_forms() {
        for (text, shown, recursive, folder) in [
            ("file:///in", "file:///in", false, false),
            ("file://in", "file:///in", false, false),
            ("vfs:file:///in/", "file:///in", false, true),
            ("/in/a%20b.txt", "file:///in/a b.txt", false, false),
            ("file:///in/*", "file:///in", true, true),
            ("sftp://u:p%40@h:22/in?transport.vfs.A=b", "sftp://u:***@h:22/in", false, false),
            ("vfs:ftp://u:p@ss@h/", "ftp://u:***@h/", false, true),
            ("/100%", "file:///100%", false, false),
        ] {
            let location = Location::parse(text).unwrap();
            assert_eq!((location.to_string().as_str(), location.is_recursive), (shown, recursive), "{text}");
            assert_eq!(location.is_folder, folder, "{text}");
        }
        let Ok(Location { system: SystemAddress::Remote(remote), .. }) =
            Location::parse("ftp://u:p@ss@h/?vfs.passive=true")
        else {
            panic!("not remote")
        };
        assert_eq!((remote.password.as_str(), remote.option("vfs.passive")), ("p@ss", Some("true")));
        let location = Location::parse("file:///o?transport.vfs.Append=true&x=a%26b").unwrap();
        assert!(location.flag("transport.vfs.Append"));
        assert_eq!(location.option("x"), Some("a&b"));
        for text in ["", "smb://h/x", "sftp:/x", "sftp:///x", "ftp://h:x/", "/a%00b"] {
            assert!(Location::parse(text).is_err(), "{text}");
        }
    }
}
