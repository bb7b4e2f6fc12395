//! Addresses of files: `file:///folder`, `vfs:file:///folder/*`, `/folder`, `sftp://user:password@host/folder?vfs.passive=true`.

use std::fmt;

/// The longest address.
const BYTES_MAX: usize = 8 * 1024;

/// Where files are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum SystemAddress {
    /// That of this machine.
    Local,
    /// One that a protocol reaches.
    Remote {
        /// `sftp`, `ftp`, `ftps`.
        scheme: String,
        /// The account.
        user: String,
        /// Its password.
        password: String,
        /// The host.
        host: String,
        /// The port.
        port: Option<u16>,
    },
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
        let (system, path) = match text.split_once(':') {
            Some(("file", rest)) => (SystemAddress::Local, format!("/{}", rest.trim_start_matches('/'))),
            Some((scheme @ ("sftp" | "ftp" | "ftps"), rest)) => remote(scheme, rest)?,
            Some((scheme, _)) if scheme.chars().all(|letter| letter.is_ascii_alphanumeric()) => {
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
        Ok(Location { system, path, is_recursive, is_folder, options: options.collect() })
    }

    /// An option of the query.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
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
            SystemAddress::Remote { scheme, user, host, port, .. } => {
                write!(out, "{scheme}://")?;
                if !user.is_empty() {
                    write!(out, "{user}:***@")?;
                }
                write!(out, "{host}")?;
                port.map_or(Ok(()), |port| write!(out, ":{port}"))
            }
        }
    }
}

fn remote(scheme: &str, rest: &str) -> Result<(SystemAddress, String), String> {
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
    let address = SystemAddress::Remote {
        scheme: scheme.to_owned(),
        user: decoded(user),
        password: decoded(password),
        host: host.to_owned(),
        port,
    };
    Ok((address, format!("/{path}")))
}

/// With `%XX` replaced. A text that is not UTF-8 then stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
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
        let Ok(Location { system: SystemAddress::Remote { password, .. }, .. }) = Location::parse("ftp://u:p@ss@h/")
        else {
            panic!("not remote")
        };
        assert_eq!(password, "p@ss");
        let location = Location::parse("file:///o?transport.vfs.Append=true&x=a%26b").unwrap();
        assert!(location.flag("transport.vfs.Append"));
        assert_eq!(location.option("x"), Some("a&b"));
        for text in ["", "smb://h/x", "sftp:/x", "sftp:///x", "ftp://h:x/", "/a%00b"] {
            assert!(Location::parse(text).is_err(), "{text}");
        }
    }
}
