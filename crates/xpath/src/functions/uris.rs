//! Functions on URIs.

use std::borrow::Cow;

use crate::error::{Result, XPathError};
use crate::eval::Args;
use crate::value::{Atomic, Sequence};

/// `%20` for every byte of the UTF-8 form that `keep` does not accept.
fn escape(text: &str, keep: impl Fn(u8) -> bool) -> Cow<'_, str> {
    if text.bytes().all(&keep) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        if keep(byte) {
            escaped.push(char::from(byte));
        } else {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            escaped.push('%');
            escaped.push(char::from(HEX[usize::from(byte >> 4)]));
            escaped.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    Cow::Owned(escaped)
}

fn escaped<'a>(args: &Args<'_, 'a>, keep: impl Fn(u8) -> bool) -> Result<Cow<'a, str>> {
    let text = args.string(0)?;
    super::strings::charge_text(args, text.len())?;
    Ok(match text {
        Cow::Borrowed(text) => escape(text, keep),
        Cow::Owned(text) => Cow::Owned(escape(&text, keep).into_owned()),
    })
}

pub(super) fn encode_for_uri<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    escaped(args, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~'))
}

pub(super) fn iri_to_uri<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    escaped(args, |byte| {
        byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'\\' | b'^' | b'`')
    })
}

pub(super) fn escape_html_uri<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    escaped(args, |byte| (b' '..=b'~').contains(&byte))
}

pub(super) fn resolve_uri(args: &Args<'_, '_>) -> Result<Sequence> {
    let Some(reference) = args.optional_string(0)? else { return Ok(Sequence::Empty) };
    let base = match args.codes.get(1) {
        Some(_) => {
            let base = args.string(1)?;
            if parts(&base).scheme.is_none() && parts(&reference).scheme.is_none() && !args.compat() {
                return Err(XPathError::new("FORG0002", format!("`{base}` is not an absolute URI")));
            }
            base
        }
        None => Cow::Borrowed(args.ev.program.base_uri.as_deref().unwrap_or("")),
    };
    Ok(Sequence::from(Atomic::Uri(resolve(&reference, &base).into())))
}

/// The parts of a URI reference (RFC 3986 §3).
struct Parts<'u> {
    scheme: Option<&'u str>,
    authority: Option<&'u str>,
    path: &'u str,
    /// Query and fragment with their marks.
    rest: &'u str,
}

fn parts(uri: &str) -> Parts<'_> {
    let (before, rest) = uri.split_at(uri.find(['?', '#']).unwrap_or(uri.len()));
    let (scheme, hierarchy) = match before.split_once(':') {
        Some((scheme, hierarchy)) if is_scheme(scheme) => (Some(scheme), hierarchy),
        _ => (None, before),
    };
    let (authority, path) = match hierarchy.strip_prefix("//") {
        Some(after) => {
            let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
            (Some(authority), path)
        }
        None => (None, hierarchy),
    };
    Parts { scheme, authority, path, rest }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// Resolves a reference against a base (RFC 3986 §5.2).
pub fn resolve(reference: &str, base: &str) -> String {
    let (wanted, from) = (parts(reference), parts(base));
    if wanted.scheme.is_some() || base.is_empty() {
        return reference.to_string();
    }
    let mut resolved = String::new();
    if let Some(scheme) = from.scheme {
        resolved.push_str(scheme);
        resolved.push(':');
    }
    if let Some(authority) = wanted.authority.or(from.authority) {
        resolved.push_str("//");
        resolved.push_str(authority);
    }
    if wanted.authority.is_some() || wanted.path.starts_with('/') {
        resolved.push_str(&without_dots(wanted.path));
        resolved.push_str(wanted.rest);
        return resolved;
    }
    if wanted.path.is_empty() {
        resolved.push_str(from.path);
        let query = from.rest.split('#').next().unwrap_or("");
        resolved.push_str(if wanted.rest.starts_with('?') { "" } else { query });
        resolved.push_str(wanted.rest);
        return resolved;
    }
    let folder = &from.path[..from.path.rfind('/').map_or(0, |at| at + 1)];
    let root = if folder.is_empty() && from.authority.is_some() { "/" } else { "" };
    resolved.push_str(&without_dots(&format!("{root}{folder}{}", wanted.path)));
    resolved.push_str(wanted.rest);
    resolved
}

/// Takes out `.` and `..` segments.
fn without_dots(path: &str) -> String {
    let absolute = path.starts_with('/');
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(usize::from(absolute)).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." if last => kept.push(""),
            "." => {}
            ".." => {
                let can_go_up = kept.last().is_some_and(|segment| *segment != "..");
                if can_go_up {
                    kept.pop();
                } else if !absolute {
                    kept.push("..");
                }
                if last {
                    kept.push("");
                }
            }
            _ => kept.push(segment),
        }
    }
    format!("{}{}", if absolute { "/" } else { "" }, kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references() {
        for (reference, base, expected) in [
            ("g", "http://a/b/c/d;p?q", "http://a/b/c/g"),
            ("./g/", "http://a/b/c/d;p?q", "http://a/b/c/g/"),
            ("/g", "http://a/b/c/d;p?q", "http://a/g"),
            ("//g", "http://a/b/c/d;p?q", "http://g"),
            ("?y", "http://a/b/c/d;p?q", "http://a/b/c/d;p?y"),
            ("#s", "http://a/b/c/d;p?q", "http://a/b/c/d;p?q#s"),
            ("..", "http://a/b/c/d;p?q", "http://a/b/"),
            ("../../../g", "http://a/b/c/d;p?q", "http://a/g"),
            ("x:y", "http://a/b", "x:y"),
            ("g", "", "g"),
            ("g", "http://a", "http://a/g"),
            ("b.xml", "a.xml", "b.xml"),
            ("../b.xml", "dir/a.xml", "b.xml"),
            ("b.xml", "file:/tmp/a.xml", "file:/tmp/b.xml"),
        ] {
            assert_eq!(resolve(reference, base), expected, "{reference} from {base}");
        }
    }
}
