//! URL templates of endpoints: RFC 6570 over `uri.var.*` and `query.param.*`, with the forms Micro Integrator
//!  added (`{$ctx:x}`, `${…}`, `legacy-encoding:`).

use penstock_engine::{Exchange, Fault, Place};
use penstock_message::{Scope, percent_decoded};

use crate::{Compiler, Element, Expression};

/// A compiled URL template.
pub struct UrlTemplate {
    pieces: Vec<Piece>,
    legacy: bool,
}

enum Piece {
    Text(String),
    /// RFC 6570 §3.2: an operator and variables.
    Variables {
        operator: Operator,
        names: Vec<String>,
    },
    /// Put in as it is.
    Expression(Expression),
    /// The same for an expression that is `uri.var.NAME` alone, inside the address: what the client's path
    /// gave is escaped, what the flow has set since is not.
    PathVariable(Expression, String),
    /// A property of the message, put in as it is; what is not there stays as it was written.
    Property(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Simple,
    Reserved,
    Fragment,
    Label,
    Path,
    Matrix,
    Query,
    Continuation,
}

impl UrlTemplate {
    /// Compiles the address of an address endpoint: `${name}` is the property of that name there.
    pub fn compile_address(cx: &mut Compiler<'_>, el: &Element<'_>, text: &str, at: Place) -> Option<UrlTemplate> {
        UrlTemplate::compile_with(cx, el, text, at, true)
    }

    /// Compiles a template. `None` after an error was reported.
    pub fn compile(cx: &mut Compiler<'_>, el: &Element<'_>, text: &str, at: Place) -> Option<UrlTemplate> {
        UrlTemplate::compile_with(cx, el, text, at, false)
    }

    fn compile_with(
        cx: &mut Compiler<'_>,
        el: &Element<'_>,
        text: &str,
        at: Place,
        is_address: bool,
    ) -> Option<UrlTemplate> {
        let (legacy, text) = match text.strip_prefix("legacy-encoding:") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            let is_expression = rest[..start].ends_with('$');
            let plain = if is_expression { &rest[..start - 1] } else { &rest[..start] };
            if !plain.is_empty() {
                pieces.push(Piece::Text(plain.to_owned()));
            }
            let Some(end) = crate::expression::closing_brace(&rest[start..]) else {
                cx.error(at, format!("`{{` is not closed in `{text}`"));
                return None;
            };
            let body = &rest[start + 1..start + end];
            rest = &rest[start + end + 1..];
            let first = pieces.is_empty();
            if is_expression && is_address && is_property(body) {
                pieces.push(Piece::Property(body.to_owned()));
                continue;
            }
            if is_expression && is_placeholder(body) {
                // A build tool would have put a value in; Micro Integrator sends the text and expands what looks like a variable.
                let message = format!(
                    "`${{{body}}}` is not an expression: nothing puts a value in; for a variable write `{{{body}}}`"
                );
                cx.warn(at.clone(), message);
                pieces.push(Piece::Text("$".to_owned()));
                pieces.push(variables(body, false));
                continue;
            }
            let expression = if is_expression {
                Expression::compile(cx, el, &format!("${{{body}}}"), at.clone())?
            } else if body.starts_with('$') || body.contains('(') {
                Expression::compile(cx, el, body, at.clone())?
            } else {
                pieces.push(variables(body, first));
                continue;
            };
            pieces.push(match path_variable(body) {
                Some(name) => Piece::PathVariable(expression, name.to_owned()),
                None => Piece::Expression(expression),
            });
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Some(UrlTemplate { pieces, legacy })
    }

    /// The URL for a message.
    pub fn expand(&self, exchange: &mut Exchange) -> Result<String, Fault> {
        let mut url = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => url.push_str(text),
                Piece::Expression(expression) => url.push_str(&expression.text(exchange)?),
                Piece::PathVariable(expression, name) => {
                    let value = expression.text(exchange)?;
                    match exchange.is_path_variable(name, &value) {
                        true => encode(&mut url, &value, false),
                        false => url.push_str(&value),
                    }
                }
                Piece::Property(name) => match exchange.property(Scope::Default, name) {
                    Some(value) => {
                        let value = value.to_text().into_owned();
                        match name.strip_prefix("uri.var.").is_some_and(|name| exchange.is_path_variable(name, &value))
                        {
                            true => encode(&mut url, &value, false),
                            false => url.push_str(&value),
                        }
                    }
                    None => url.push_str(&format!("${{{name}}}")),
                },
                Piece::Variables { operator, names } => {
                    let values: Vec<(&str, Option<String>)> = names
                        .iter()
                        .map(|name| {
                            let value =
                                exchange.property(Scope::Default, name).map(|value| value.to_text().into_owned());
                            (name.as_str(), value)
                        })
                        .collect();
                    expand(&mut url, *operator, &values, self.legacy);
                }
            }
        }
        Ok(url)
    }
}

/// What expressions begin with.
const ROOTS: [&str; 9] = ["payload", "vars", "var", "headers", "configs", "params", "props", "properties", "null"];

/// The variable that an expression reads, when it does nothing else.
fn path_variable(body: &str) -> Option<&str> {
    const PREFIXES: [&str; 7] = [
        "$ctx:uri.var.",
        "get-property('uri.var.",
        "get-property(\"uri.var.",
        "params.pathParams.",
        "params.uriParams.",
        "props.synapse.uri.var.",
        "properties.synapse.uri.var.",
    ];
    let name = PREFIXES.iter().find_map(|prefix| body.trim().strip_prefix(prefix))?;
    let name = name.strip_suffix("')").or_else(|| name.strip_suffix("\")")).unwrap_or(name);
    let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '-');
    name.chars().all(is_name).then_some(name)
}

/// One word that no expression begins with: a placeholder of a build tool, or a variable with a dollar sign too much.
fn is_placeholder(body: &str) -> bool {
    let word = body.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    word && body.starts_with(|first: char| first.is_alphabetic()) && !ROOTS.contains(&body)
}

/// The name of a property, and no expression.
fn is_property(body: &str) -> bool {
    let first = body.split('.').next().unwrap_or_default();
    let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '-');
    body.chars().all(is_name) && first.starts_with(|first: char| first.is_alphabetic()) && !ROOTS.contains(&first)
}

fn variables(body: &str, first: bool) -> Piece {
    let operator = match body.as_bytes().first() {
        Some(b'+') => Operator::Reserved,
        Some(b'#') => Operator::Fragment,
        Some(b'.') => Operator::Label,
        Some(b'/') => Operator::Path,
        Some(b';') => Operator::Matrix,
        Some(b'?') => Operator::Query,
        Some(b'&') => Operator::Continuation,
        // The whole address in a variable keeps its slashes and colons.
        _ if first => Operator::Reserved,
        _ => Operator::Simple,
    };
    let names = body.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
    Piece::Variables {
        operator,
        names: names.split(',').map(|name| name.trim().trim_end_matches('*').to_owned()).collect(),
    }
}

fn expand(url: &mut String, operator: Operator, values: &[(&str, Option<String>)], legacy: bool) {
    let (start, separator, named) = match operator {
        Operator::Simple | Operator::Reserved => ("", ",", false),
        Operator::Fragment => ("#", ",", false),
        Operator::Label => (".", ".", false),
        Operator::Path => ("/", "/", false),
        Operator::Matrix => (";", ";", true),
        Operator::Query => ("?", "&", true),
        Operator::Continuation => ("&", "&", true),
    };
    let reserved = matches!(operator, Operator::Reserved | Operator::Fragment);
    let mut any = false;
    for (name, value) in values {
        let Some(value) = value else { continue };
        url.push_str(if any { separator } else { start });
        any = true;
        if named {
            // `query.param.page` is the parameter `page`.
            url.push_str(name.strip_prefix("query.param.").or_else(|| name.strip_prefix("uri.var.")).unwrap_or(name));
            if !value.is_empty() || operator != Operator::Matrix {
                url.push('=');
            }
        }
        let decoded;
        let value = if legacy {
            decoded = percent_decoded(value, true);
            &*decoded
        } else {
            value
        };
        encode(url, value, reserved);
    }
}

/// RFC 6570 §3.2.1: unreserved characters stay; reserved ones and escapes stay too when allowed.
///
/// A segment `.` or `..` in a value is escaped, because a backend would take it for a step to another path.
pub(super) fn encode(url: &mut String, value: &str, reserved: bool) {
    let mut rest = value.as_bytes();
    loop {
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len());
        let is_dots = matches!(&rest[..end], b"." | b"..");
        for (index, byte) in rest[..end].iter().enumerate() {
            let is_escape = || rest.get(index + 1..index + 3).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
            let keep = byte.is_ascii_alphanumeric()
                || b"-._~".contains(byte) && !is_dots
                || reserved && (b":[]@!$&'()*+,;=".contains(byte) || *byte == b'%' && is_escape());
            push(url, *byte, keep);
        }
        let Some((separator, after)) = rest[end..].split_first() else { return };
        push(url, *separator, reserved);
        rest = after;
    }
}

fn push(url: &mut String, byte: u8, keep: bool) {
    if keep {
        url.push(char::from(byte));
    } else {
        url.push_str(&format!("%{byte:02X}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, first: bool, value: &str, expected: &str) {
        let Piece::Variables { operator, names } = variables(body, first) else { panic!("variables") };
        let mut url = String::new();
        let values: Vec<(&str, Option<String>)> =
            names.iter().map(|name| (name.as_str(), Some(value.to_owned()))).collect();
        expand(&mut url, operator, &values, false);
        assert_eq!(url, expected, "{body}");
    }

    #[test]
    fn operators_of_rfc_6570() {
        check("uri.var.x", false, "a b+c:d", "a%20b%2Bc%3Ad");
        check("+uri.var.x", false, "a/b:c%20d e", "a/b:c%20d%20e");
        check("uri.var.url", true, "http://h:1/p", "http://h:1/p");
        check("?query.param.page", false, "2", "?page=2");
        check("&query.param.page,query.param.size", false, "2", "&page=2&size=2");
        check("/uri.var.a,uri.var.b", false, "x", "/x/x");
        check("#uri.var.a", false, "x y", "#x%20y");
    }

    #[test]
    fn expressions_that_read_a_path_variable_are_known() {
        for (body, expected) in [
            ("$ctx:uri.var.id", Some("id")),
            ("get-property('uri.var.id')", Some("id")),
            ("get-property(\"uri.var.a-b\")", Some("a-b")),
            ("params.pathParams.id", Some("id")),
            ("props.synapse.uri.var.id", Some("id")),
            ("params.pathParams.id + 'x'", None),
            ("get-property('id')", None),
        ] {
            assert_eq!(path_variable(body), expected, "{body}");
        }
    }

    #[test]
    fn a_value_does_not_change_the_path_around_it() {
        check("uri.var.x", false, "..", "%2E%2E");
        check("uri.var.x", false, ".", "%2E");
        check("uri.var.x", false, "a.b..c", "a.b..c");
        check("uri.var.x", false, "../x?y#z", "%2E%2E%2Fx%3Fy%23z");
        check("uri.var.x", false, "a\r\nHost: b", "a%0D%0AHost%3A%20b");
        check("+uri.var.x", false, "a/../b/./..", "a/%2E%2E/b/%2E/%2E%2E");
        check("+uri.var.x", false, "a\r\n", "a%0D%0A");
        check("/uri.var.x", false, "..", "/%2E%2E");
        check("uri.var.url", true, "http://h/a?b=../c", "http://h/a?b=../c");
        check("uri.var.url", true, "http://h/../c", "http://h/%2E%2E/c");
    }
}
