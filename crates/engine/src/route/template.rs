//! URI templates of API resources: `/orders/{id}/items?page={p}` and `/*`.
//!
//! This is the matching direction; expansion for http endpoints is RFC 6570 and lives with them.

use std::fmt;
use std::sync::Arc;

/// A compiled `uri-template`.
#[derive(Debug, Clone)]
pub struct UriTemplate {
    text: Arc<str>,
    path: Vec<Piece>,
    query: Vec<(Arc<str>, Vec<Piece>)>,
    has_query: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(Arc<str>),
    /// One variable; `reserved` ones (`{+x}`) may span slashes.
    Variable {
        name: Arc<str>,
        reserved: bool,
    },
    /// `*`: whatever is left.
    Rest,
}

/// Why a template cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplateError {
    /// What is wrong.
    pub message: String,
    /// Byte offset in the template.
    pub offset: usize,
}

impl fmt::Display for UriTemplateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.message)
    }
}

impl UriTemplate {
    /// Compiles a template.
    pub fn parse(text: &str) -> Result<UriTemplate, UriTemplateError> {
        let (path, query) = match split_query(text) {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        let mut template =
            UriTemplate { text: text.into(), path: pieces(path, 0)?, query: Vec::new(), has_query: query.is_some() };
        let mut offset = path.len() + 1;
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value_pieces = if value == "*" { vec![Piece::Rest] } else { pieces(value, offset + name.len() + 1)? };
            template.query.push((name.into(), value_pieces));
            offset += pair.len() + 1;
        }
        Ok(template)
    }

    /// The template as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Variables by name, percent-decoded, when the path (after the context) and query fit. Every
    /// parameter the template names must be there.
    pub fn matches(&self, path: &str, query: Option<&str>) -> Option<Vec<(Arc<str>, String)>> {
        let mut variables = Vec::new();
        let path = path.trim_end_matches('/');
        let fits = fit(&self.path, path, true, &mut variables) || {
            variables.clear();
            // `/x/` in a template fits `/x`.
            matches!(self.path.as_slice(), [Piece::Text(text)] if text.trim_end_matches('/') == path)
        };
        if !fits {
            return None;
        }
        if self.has_query {
            let given: Vec<(&str, &str)> = query
                .unwrap_or_default()
                .split('&')
                .filter(|pair| !pair.is_empty())
                .filter_map(|pair| pair.split_once('='))
                .collect();
            for (name, value_pieces) in &self.query {
                let (_, value) = given.iter().find(|(key, _)| **key == **name)?;
                if !fit(value_pieces, value, false, &mut variables) {
                    return None;
                }
            }
        }
        Some(variables)
    }
}

/// The `?` that starts the query, not one inside braces.
fn split_query(text: &str) -> Option<usize> {
    let mut depth = 0;
    text.bytes().position(|byte| {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        byte == b'?' && depth == 0
    })
}

fn pieces(text: &str, base: usize) -> Result<Vec<Piece>, UriTemplateError> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let offset = base + text.len() - rest.len();
        match rest.find(['{', '*']) {
            Some(0) if rest.starts_with('*') => {
                found.push(Piece::Rest);
                rest = &rest[1..];
            }
            Some(0) => {
                let end = rest
                    .find('}')
                    .ok_or_else(|| UriTemplateError { message: format!("`{{` is not closed in `{text}`"), offset })?;
                let name = &rest[1..end];
                let (reserved, name) = match name.strip_prefix('+') {
                    Some(name) => (true, name),
                    None => (false, name.trim_start_matches(['/', '.', ';', '?', '&', '#'])),
                };
                if name.is_empty() {
                    return Err(UriTemplateError { message: format!("a variable without a name in `{text}`"), offset });
                }
                found.push(Piece::Variable { name: name.into(), reserved });
                rest = &rest[end + 1..];
            }
            at => {
                let (plain, tail) = rest.split_at(at.unwrap_or(rest.len()));
                found.push(Piece::Text(plain.into()));
                rest = tail;
            }
        }
    }
    Ok(found)
}

/// Fits pieces onto text. Variables take as little as they can and never a slash, unless reserved.
fn fit(pieces: &[Piece], text: &str, is_path: bool, variables: &mut Vec<(Arc<str>, String)>) -> bool {
    match pieces.split_first() {
        None => text.is_empty(),
        Some((Piece::Text(plain), [])) if is_path => plain.trim_end_matches('/') == text.trim_end_matches('/'),
        Some((Piece::Text(plain), rest)) => match text.strip_prefix(&**plain) {
            Some(after) => fit(rest, after, is_path, variables),
            // `/x/*` fits `/x`.
            None => matches!(rest, [Piece::Rest]) && plain.strip_suffix('/') == Some(text),
        },
        Some((Piece::Rest, rest)) => (0..=text.len())
            .rev()
            .filter(|at| text.is_char_boundary(*at))
            .any(|at| fit(rest, &text[at..], is_path, variables)),
        Some((Piece::Variable { name, reserved }, rest)) => {
            let mark = variables.len();
            let limit = if *reserved || !is_path { text.len() } else { text.find('/').unwrap_or(text.len()) };
            let ends: Box<dyn Iterator<Item = usize>> = match rest.first() {
                None => Box::new(std::iter::once(limit)),
                Some(_) => Box::new((0..=limit).filter(|at| text.is_char_boundary(*at))),
            };
            for end in ends {
                if end == 0 && is_path {
                    continue;
                }
                variables.truncate(mark);
                variables.push((name.clone(), decode(&text[..end])));
                if fit(rest, &text[end..], is_path, variables) {
                    return true;
                }
            }
            variables.truncate(mark);
            false
        }
    }
}

/// Percent-decoding; what is not a valid escape stays as it is, and so does `+`.
pub(crate) fn decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |offset: usize| bytes.get(at + offset).and_then(|byte| (*byte as char).to_digit(16));
        match (bytes[at], hex(1), hex(2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, _, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(template: &str, path: &str, query: Option<&str>, expected: Option<&[(&str, &str)]>) {
        let found = UriTemplate::parse(template).unwrap().matches(path, query);
        let found: Option<Vec<(&str, &str)>> =
            found.as_ref().map(|all| all.iter().map(|(name, value)| (&**name, value.as_str())).collect());
        assert_eq!(found.as_deref(), expected, "{template} on {path}?{query:?}");
    }

    #[test]
    fn matching() {
        check("/orders/{id}", "/orders/7", None, Some(&[("id", "7")]));
        check("/orders/{id}", "/orders/7/", None, Some(&[("id", "7")]));
        check("/orders/{id}", "/orders", None, None);
        check("/orders/{id}", "/orders/7/8", None, None);
        check("/a/{x}/b/{y}", "/a/1%202/b/3", None, Some(&[("x", "1 2"), ("y", "3")]));
        check("/*", "/any/thing", None, Some(&[]));
        check("/x/*", "/x", None, Some(&[]));
        check("/{+all}", "/a/b", None, Some(&[("all", "a/b")]));
        check("/q?a={a}&b={b}", "/q", Some("b=2&a=1"), Some(&[("a", "1"), ("b", "2")]));
        check("/q?a={a}", "/q", Some("b=2"), None);
        check("/q?a={a}", "/q", Some("a="), Some(&[("a", "")]));
        check("/q?a={a}", "/q", Some("a"), None);
        check("/q", "/q", Some("a=1"), Some(&[]));
        check("/{x}.{y}", "/a.b", None, Some(&[("x", "a"), ("y", "b")]));
        check("/", "", None, Some(&[]));
    }

    #[test]
    fn an_open_brace_is_told_with_its_place() {
        assert_eq!(UriTemplate::parse("/a/{b").unwrap_err().offset, 3);
    }
}
