//! URI templates of API resources: `/orders/{id}/items?page={p}` and `/*`.
//!
//! This is the matching direction; expansion for http endpoints is RFC 6570 and lives with them. A template is
//! matched as Micro Integrator does it: from left to right over path and query as sent, each part taking what it can,
//! never going back.

use std::fmt;
use std::sync::Arc;

use penstock_message::percent_decoded;

/// A compiled `uri-template`.
#[derive(Debug, Clone)]
pub struct UriTemplate {
    text: Arc<str>,
    nodes: Vec<Node>,
    /// A template with a query of its own takes no other.
    has_query: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    /// Text; with a `*` at its end it takes the rest.
    Literal(Arc<str>),
    Expression {
        kind: Kind,
        variables: Vec<Variable>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `{x}`: up to the next reserved character.
    Simple,
    /// `{+x}`: up to the character the next part begins with.
    Reserved,
    /// `{#x}`
    Fragment,
    /// `{.x}`
    Label,
    /// `{/x}`
    Path,
}

#[derive(Debug, Clone, PartialEq)]
struct Variable {
    name: Arc<str>,
    /// `{x:3}`: exactly that many characters.
    length: Option<usize>,
}

/// Variables and their values.
pub type Variables = Vec<(Arc<str>, String)>;

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
        let whole = if text.len() > 1 { text.strip_suffix('/').unwrap_or(text) } else { text };
        let mut nodes = Vec::new();
        let mut rest = whole;
        while !rest.is_empty() {
            let offset = whole.len() - rest.len();
            let error = |message: String| UriTemplateError { message, offset };
            let start = rest.find('{').unwrap_or(rest.len());
            if start > 0 {
                nodes.push(Node::Literal(rest[..start].into()));
                rest = &rest[start..];
                continue;
            }
            let end = rest.find('}').ok_or_else(|| error(format!("`{{` is not closed in `{text}`")))?;
            nodes.push(expression(&rest[1..end]).map_err(|why| error(format!("{why} in `{text}`")))?);
            rest = &rest[end + 1..];
        }
        let has_query = nodes.iter().any(|node| matches!(node, Node::Literal(text) if text.contains('?')));
        Ok(UriTemplate { text: text.into(), nodes, has_query })
    }

    /// The template as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Variables by name, percent-decoded, when path and query after the context fit.
    pub fn matches(&self, path: &str) -> Option<Variables> {
        let mut variables = Vec::new();
        let taken = take_all(&self.nodes, path, &mut variables)?;
        let left = path.get(taken..).unwrap_or_default();
        let fits = left.is_empty() || !self.has_query && taken > 0 && left.starts_with('?');
        fits.then_some(variables)
    }
}

fn expression(body: &str) -> Result<Node, String> {
    let (kind, names) = match body.as_bytes().first() {
        Some(b'+') => (Kind::Reserved, &body[1..]),
        Some(b'#') => (Kind::Fragment, &body[1..]),
        Some(b'.') => (Kind::Label, &body[1..]),
        Some(b'/') => (Kind::Path, &body[1..]),
        Some(b';' | b'?' | b'&') => return Err(format!("the form `{{{body}}}` is not known")),
        _ => (Kind::Simple, body),
    };
    let mut variables = Vec::new();
    for name in names.split(',') {
        let (name, length) = match name.split_once(':') {
            None => (name, None),
            Some((name, length)) => match length.parse() {
                Ok(length @ 1..) => (name, Some(length)),
                _ => return Err(format!("`{length}` is not a length of `{name}`")),
            },
        };
        if name.is_empty() {
            return Err("a variable without a name".to_owned());
        }
        variables.push(Variable { name: name.into(), length });
    }
    Ok(Node::Expression { kind, variables })
}

/// How much of the text the nodes take.
fn take_all(nodes: &[Node], text: &str, variables: &mut Variables) -> Option<usize> {
    let (node, rest) = nodes.split_first()?;
    let taken = node.take(text, rest.first(), variables)?;
    let left = &text[taken..];
    match rest.first() {
        // A slash at the end does not count.
        None if left == "/" => Some(text.len()),
        None => Some(taken),
        Some(_) if !left.is_empty() => Some(taken + take_all(rest, left, variables)?),
        Some(Node::Literal(literal)) if matches!(&**literal, "*" | "/*") => Some(taken),
        // The last parameter may have no value: `?a=1&b=`.
        Some(Node::Expression { .. }) if text.contains('=') => Some(taken + take_all(rest, left, variables)?),
        Some(_) => None,
    }
}

impl Node {
    /// How much of the text this node takes.
    fn take(&self, text: &str, next: Option<&Node>, variables: &mut Variables) -> Option<usize> {
        let (kind, names) = match self {
            Node::Literal(literal) => {
                return match literal.strip_suffix('*') {
                    Some(start) => text.starts_with(start).then_some(text.len()),
                    None => text.starts_with(&**literal).then_some(literal.len()),
                };
            }
            Node::Expression { kind, variables } => (*kind, variables),
        };
        let text = match kind.prefix() {
            None => text,
            Some(prefix) => match text.strip_prefix(prefix) {
                Some(after) => return kind.take(after, names, next, variables).map(|taken| taken + 1),
                None => return Some(0),
            },
        };
        kind.take(text, names, next, variables)
    }

    /// What ends the expression before this node.
    fn first_char(&self) -> Option<char> {
        match self {
            Node::Literal(text) => text.chars().next(),
            Node::Expression { kind, .. } => kind.prefix(),
        }
    }
}

impl Kind {
    fn prefix(self) -> Option<char> {
        match self {
            Kind::Simple | Kind::Reserved => None,
            Kind::Fragment => Some('#'),
            Kind::Label => Some('.'),
            Kind::Path => Some('/'),
        }
    }

    fn separator(self) -> char {
        match self {
            Kind::Simple | Kind::Reserved | Kind::Fragment => ',',
            Kind::Label => '.',
            Kind::Path => '/',
        }
    }

    fn ends_at(self, letter: char) -> bool {
        // RFC 3986 §2.2: gen-delims and sub-delims.
        !matches!(self, Kind::Reserved | Kind::Fragment) && ":/?#[]@!$&'()*+,;=".contains(letter)
    }

    fn take(self, text: &str, names: &[Variable], next: Option<&Node>, variables: &mut Variables) -> Option<usize> {
        if text.is_empty() {
            return Some(0);
        }
        let stop = next.and_then(Node::first_char);
        let end = text.char_indices().find(|(_, letter)| {
            (self.ends_at(*letter) || stop == Some(*letter)) && (*letter != self.separator() || names.len() == 1)
        });
        let end = end.map_or(text.len(), |(at, _)| at);
        self.set(&text[..end], names, variables).then_some(end)
    }

    /// Gives the variables their values; `false` when one does not fit, or has another value already.
    fn set(self, text: &str, names: &[Variable], variables: &mut Variables) -> bool {
        let whole = matches!(self, Kind::Reserved | Kind::Fragment) && names.len() == 1;
        let mut values: Vec<&str> = if whole { vec![text] } else { text.split(self.separator()).collect() };
        // As Java splits: no empty values at the end.
        while values.len() > 1 && values.last().is_some_and(|value| value.is_empty()) {
            values.pop();
        }
        if values.len() > names.len() {
            return false;
        }
        names.iter().enumerate().all(|(index, Variable { name, length })| {
            let value = values.get(index).map_or_else(String::new, |value| percent_decoded(value, false).into_owned());
            let known = variables.iter().find(|(known, _)| known == name).map(|(_, value)| value);
            if known.is_some_and(|known| *known != value)
                || length.is_some_and(|length| value.chars().count() != length)
            {
                return false;
            }
            if known.is_none() {
                variables.push((name.clone(), value));
            }
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(template: &str, path: &str, expected: Option<&[(&str, &str)]>) {
        let found = UriTemplate::parse(template).unwrap().matches(path);
        let found: Option<Vec<(&str, &str)>> =
            found.as_ref().map(|all| all.iter().map(|(name, value)| (&**name, value.as_str())).collect());
        assert_eq!(found.as_deref(), expected, "{template} on {path}");
    }

    #[test]
    fn paths() {
        check("/orders/{id}", "/orders/7", Some(&[("id", "7")]));
        check("/orders/{id}", "/orders/7/", Some(&[("id", "7")]));
        check("/orders/{id}", "/orders", None);
        check("/orders/{id}", "/orders/7/8", None);
        check("/orders/", "/orders", Some(&[]));
        check("/orders", "/orders/", Some(&[]));
        check("/orders", "/orders/?a=1", None);
        check("/orders", "/ordersx", None);
        check("/a/{x}/b/{y}", "/a/1%202/b/3", Some(&[("x", "1 2"), ("y", "3")]));
        check("/{x}.{y}", "/a.b", Some(&[("x", "a"), ("y", "b")]));
        check("/{x}", "/a+b", None);
        check("/{x}", "/a%40b", Some(&[("x", "a@b")]));
        check("/{+all}", "/a+b/c@d", Some(&[("all", "a+b/c@d")]));
        check("/{x}/{x}", "/1/1", Some(&[("x", "1")]));
        check("/{x}/{x}", "/1/2", None);
        check("/{a,b}", "/1,2", Some(&[("a", "1"), ("b", "2")]));
        check("/{a,b}", "/1", Some(&[("a", "1"), ("b", "")]));
        check("/{a}", "/1,2", None);
        check("/{x:3}", "/abc", Some(&[("x", "abc")]));
        check("/{x:3}", "/ab", None);
        check("/x{/a,b}", "/x/1/2", Some(&[("a", "1"), ("b", "2")]));
        check("/x{.a}", "/x.json", Some(&[("a", "json")]));
        check("/", "/", Some(&[]));
    }

    #[test]
    fn a_star_takes_the_rest() {
        check("/*", "/any/thing?a=1", Some(&[]));
        check("*", "/any", Some(&[]));
        check("/x/*", "/x/", Some(&[]));
        check("/x/*", "/x", None);
        check("/x*", "/xy?a=1", Some(&[]));
        check("/{id}/*", "/7", Some(&[("id", "7")]));
        check("/{id}/*", "/7/8/9", Some(&[("id", "7")]));
        check("/{id}/item/{n}?*", "/7/item/1?a=b", Some(&[("id", "7"), ("n", "1")]));
        check("/{id}/item/{n}?*", "/7/item/1", None);
    }

    #[test]
    fn queries() {
        check("/q", "/q?a=1", Some(&[]));
        check("/q", "/q?a=http://h/", Some(&[]));
        check("/q/{x}", "/q/7?a=1", Some(&[("x", "7")]));
        check("/q?a={a}&b={b}", "/q?a=1&b=2", Some(&[("a", "1"), ("b", "2")]));
        check("/q?a={a}&b={b}", "/q?b=2&a=1", None);
        check("/q?a={a}&b={b}", "/q?a=1&b=2&c=3", None);
        check("/q?a={a}&b={b}", "/q?a=&b=2", Some(&[("a", ""), ("b", "2")]));
        // The last value is not empty: there is none.
        check("/q?a={a}&b={b}", "/q?a=1&b=", Some(&[("a", "1")]));
        check("/q?a={a}&b={b}", "/q?a=1&b", None);
        check("/q?a={a}", "/q?b=2", None);
        check("/q?a={a}", "/q", None);
        check("/q?a={+a}", "/q?a=1+2:3", Some(&[("a", "1+2:3")]));
        check("/{+all}", "/a?b=1", Some(&[("all", "a?b=1")]));
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        assert_eq!(UriTemplate::parse("/a/{b").unwrap_err().offset, 3);
        assert_eq!(UriTemplate::parse("/a{?b}").unwrap_err().offset, 2);
        assert!(UriTemplate::parse("/{}").is_err());
        assert!(UriTemplate::parse("/{a:0}").is_err());
    }
}
