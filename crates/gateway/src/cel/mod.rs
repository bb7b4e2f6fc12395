//! CEL, the Common Expression Language: what of it the policies of the API Platform use.
//!
//! Texts, numbers, lists, fields of messages; `? :`, `||`, `&&`, comparisons, `in`, arithmetic, indices; `size`, `int`,
//! `double`, `string`, `has`, and of texts `startsWith`, `endsWith`, `contains`, `matches`. No macros over lists and no
//! times. An expression names its variables, whose names have dots; types are known when it runs.
//!
//! `parse.rs` reads, `eval.rs` computes. Nothing repeats, so an expression takes as long as it is.

mod eval;
mod parse;

use std::borrow::Cow;

use penstock_message::Headers;
use regex::Regex;

/// As long as the API Platform lets one be.
const BYTES_MAX: usize = 1024;

/// Parentheses and operators within each other.
const DEPTH_MAX: usize = 64;

/// An expression.
pub(crate) struct Expression {
    root: Node,
    variables: Vec<&'static str>,
}

/// What an expression gives, or is given.
#[derive(Debug, Clone)]
pub(crate) enum Value<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(Cow<'v, str>),
    Bytes(Cow<'v, [u8]>),
    List(Vec<Value<'v>>),
    /// A map of names in lower case to lists of texts.
    Fields(&'v Headers),
    /// A map with nothing in it.
    Nothing,
}

enum Node {
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(String),
    Null,
    Variable(&'static str),
    List(Vec<Node>),
    Index(Box<Node>, Box<Node>),
    Has(Box<Node>, Box<Node>),
    Not(Box<Node>),
    Negate(Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    Choice(Box<[Node; 3]>),
    Call(Function, Vec<Node>),
    /// `matches` with a pattern that is known.
    Matches(Box<Node>, Regex),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Size,
    Int,
    Double,
    Text,
    StartsWith,
    EndsWith,
    Contains,
}

impl Expression {
    /// Reads an expression with these variables.
    pub(crate) fn parse(text: &str, variables: &[&'static str]) -> Result<Expression, String> {
        if text.len() > BYTES_MAX {
            return Err(format!("an expression has at most {BYTES_MAX} bytes"));
        }
        let (root, variables) = parse::parse(text, variables)?;
        Ok(Expression { root, variables })
    }

    /// Whether a variable is in it.
    pub(crate) fn names(&self, variable: &str) -> bool {
        self.variables.contains(&variable)
    }

    /// What it gives.
    pub(crate) fn value<'v>(&'v self, variable: &dyn Fn(&str) -> Value<'v>) -> Result<Value<'v>, String> {
        eval::value(&self.root, variable)
    }
}

impl<'v> Value<'v> {
    /// A text.
    pub(crate) fn text(text: impl Into<Cow<'v, str>>) -> Value<'v> {
        Value::Text(text.into())
    }

    /// What it is, for messages.
    fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Int(_) | Value::Double(_) => "a number",
            Value::Text(_) => "a text",
            Value::Bytes(_) => "bytes",
            Value::List(_) => "a list",
            Value::Fields(_) | Value::Nothing => "a map",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers() -> Headers {
        let mut headers = Headers::new();
        for (name, value) in [("X-User", "ann"), ("X-Cost", "7"), ("X-Many", "a"), ("x-many", "b")] {
            headers.append(name, value);
        }
        headers
    }

    /// What an expression gives, written as it is.
    fn shown(text: &str) -> Result<String, String> {
        let headers = headers();
        let expression =
            Expression::parse(text, &["request.Headers", "request.Path", "request.Body", "response.Status"])?;
        let variable = |name: &str| match name {
            "request.Headers" => Value::Fields(&headers),
            "request.Path" => Value::text("/a/b"),
            "request.Body" => Value::Bytes(b"12345".as_slice().into()),
            _ => Value::Int(200),
        };
        expression.value(&variable).map(|value| format!("{value:?}"))
    }

    #[test]
    fn expressions_are_computed() {
        for (text, expected) in [
            ("request.Headers['x-user'][0]", "Text(\"ann\")"),
            ("request.Headers[\"x-user\"][0] + ':' + request.Path", "Text(\"ann:/a/b\")"),
            ("request.Headers['x-many'][1]", "Text(\"b\")"),
            ("size(request.Headers['x-many'])", "Int(2)"),
            ("'x-user' in request.Headers ? 'y' : 'n'", "Text(\"y\")"),
            ("'X-User' in request.Headers", "Bool(false)"),
            ("int(request.Headers['x-cost'][0]) * 2 + 1", "Int(15)"),
            ("double(request.Headers['x-cost'][0]) / 2.0", "Double(3.5)"),
            ("size(request.Body) / 2", "Int(2)"),
            ("string(request.Body)", "Text(\"12345\")"),
            ("size('äö')", "Int(2)"),
            ("response.Status >= 200 && response.Status < 300", "Bool(true)"),
            ("request.Path.startsWith('/a') && !request.Path.endsWith('/a')", "Bool(true)"),
            ("request.Path.matches('^/[a-z]/') || false", "Bool(true)"),
            ("request.Path.contains('x') == false", "Bool(true)"),
            ("1 + 2 * 3 - -4", "Int(11)"),
            ("(1 + 2) * 3 % 4", "Int(1)"),
            ("request.Path in ['/a', '/a/b']", "Bool(true)"),
            ("has(request.Headers.none) ? 1 : 2", "Int(2)"),
            ("'a\\'b\\n\\x41\\u00e4' + r'\\d'", "Text(\"a'b\\nAä\\\\d\")"),
            ("true ? false ? 1 : 2 : 3", "Int(2)"),
            // What is wrong on one side does not count when the other decides.
            ("request.Headers['none'][0] == 'a' && false", "Bool(false)"),
            ("request.Headers['none'][0] == 'a' || true", "Bool(true)"),
            ("1 == 1.0 && 'a' < 'b' && null == null && 1 != 'a'", "Bool(true)"),
        ] {
            assert_eq!(shown(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn mistakes_are_reported() {
        for (text, expected) in [
            ("", "an expression is expected at its end"),
            ("1 +", "an expression is expected at its end"),
            ("(1", "`)` is expected at its end"),
            ("1 2", "`2` is not expected at character 3"),
            ("request.Nothing", "unknown variable `request.Nothing`, did you mean `request.Path`?"),
            ("foo(1)", "unknown function `foo`"),
            ("'a'.split(',')", "unknown function `split`"),
            ("size(1, 2)", "`size` takes one value"),
            ("'a", "a text is not ended at character 1"),
            ("request.Path.matches('(')", "`(` is not a regular expression that can be used"),
            ("99999999999999999999", "`99999999999999999999` is not a number that can be used"),
            ("a $ b", "`$` is not expected at character 3"),
        ] {
            assert_eq!(shown(text).unwrap_err(), expected, "{text}");
        }
        for text in [
            "1 / 0",
            "request.Headers['none'][0]",
            "'a' + 1",
            "int('x')",
            "1 ? 2 : 3",
            "[1][1]",
            "!1",
            "9223372036854775807 + 1",
        ] {
            assert!(shown(text).is_err(), "{text}");
        }
        assert!(shown(&"(".repeat(400)).unwrap_err().contains("within each other"));
        assert!(shown(&"!".repeat(1000)).unwrap_err().contains("within each other"));
        assert!(shown(&format!("1{}", "+1".repeat(400))).is_ok());
    }
}
