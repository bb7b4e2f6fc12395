//! JSON text to values.
//!
//! Reads what `serde_json` reads, and control characters inside strings besides, which senders forget
//! to escape and Micro Integrator takes.

use std::fmt;

use penstock_budget as budget;
use serde_json::{Map, Number, Value};

/// Lists and objects nest this deep at most: the parser and all later passes recurse.
pub(crate) const DEPTH_MAX: usize = 128;

/// Why a text is not JSON, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError {
    /// What is wrong, lower case, without a full stop.
    pub message: &'static str,
    /// The line, from one.
    pub line: usize,
    /// The character within the line, from one.
    pub column: usize,
}

impl fmt::Display for TextError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for TextError {}

/// The value a text is. Of members with the same name the last counts.
pub fn parse(text: &str) -> Result<Value, TextError> {
    parse_within(text, usize::MAX)
}

/// The error for too many values.
pub const TOO_MANY_VALUES: &str = "the text has too many values";

/// As [`parse`]; a text of more values than `values_max` is an error, [`TOO_MANY_VALUES`].
pub fn parse_within(text: &str, values_max: usize) -> Result<Value, TextError> {
    let mut parser = Parser::new(text, values_max);
    let value = parser.whole();
    value.map_err(|message| {
        let end = (0..=parser.at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let before = &text[..end];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        TextError { message, line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 }
    })
}

/// A value as text, without white space.
pub fn write(value: &Value) -> String {
    let mut out = Writing(Vec::with_capacity(128));
    serde_json::to_writer(&mut out, value).expect("writing a value into memory cannot fail");
    String::from_utf8(out.0).expect("JSON is written as UTF-8")
}

/// Memory that is reserved as it grows.
struct Writing(Vec<u8>);

impl std::io::Write for Writing {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        budget::step();
        budget::make_room(&mut self.0, bytes.len());
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.write(bytes).map(|_| ())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

type Outcome<T> = Result<T, &'static str>;

/// Reads a text from its beginning to its end: into a value, or token by token.
pub(crate) struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    values_left: usize,
    /// Whether the next member or element is the first of its object or list. Token by token only.
    is_first: bool,
}

/// A scalar, or the beginning of something that holds values.
pub(crate) enum Token {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Object,
    Array,
}

/// Token by token: after [`Token::Object`] come members, each followed by its value, after [`Token::Array`] elements, until
/// there is none.
impl<'t> Parser<'t> {
    pub(crate) fn new(text: &'t str, values_max: usize) -> Parser<'t> {
        Parser { text, at: 0, depth: 0, values_left: values_max, is_first: false }
    }

    /// The byte the next token begins with.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.next_byte()
    }

    pub(crate) fn token(&mut self) -> Outcome<Token> {
        Ok(match self.next_byte() {
            Some(b'{') => self.open(Token::Object)?,
            Some(b'[') => self.open(Token::Array)?,
            _ => match self.value()? {
                Value::Null => Token::Null,
                Value::Bool(truth) => Token::Bool(truth),
                Value::Number(number) => Token::Number(number),
                Value::String(text) => Token::String(text),
                // Those were seen by their first bytes.
                Value::Array(_) | Value::Object(_) => return Err("a value is expected here"),
            },
        })
    }

    fn open(&mut self, token: Token) -> Outcome<Token> {
        self.count()?;
        self.enter()?;
        self.is_first = true;
        Ok(token)
    }

    /// The name of the next member, at the end of an object `None`.
    pub(crate) fn member(&mut self) -> Outcome<Option<String>> {
        if !self.follows(b'}')? {
            return Ok(None);
        }
        self.member_name().map(Some)
    }

    /// The next element, at the end of a list `None`.
    pub(crate) fn element(&mut self) -> Outcome<Option<Token>> {
        if !self.follows(b']')? {
            return Ok(None);
        }
        self.token().map(Some)
    }

    /// Whether something follows before the end of the object or list.
    fn follows(&mut self, end: u8) -> Outcome<bool> {
        let is_first = std::mem::take(&mut self.is_first);
        match self.next_byte() {
            Some(byte) if byte == end => {
                self.at += 1;
                self.depth -= 1;
                Ok(false)
            }
            Some(_) if is_first => Ok(true),
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            _ => Err("`,` or the end is expected here"),
        }
    }

    /// Nothing may follow.
    pub(crate) fn end(&mut self) -> Outcome<()> {
        match self.next_byte() {
            None => Ok(()),
            Some(_) => Err("unexpected text after the value"),
        }
    }
}

impl<'t> Parser<'t> {
    fn whole(&mut self) -> Outcome<Value> {
        let value = self.value()?;
        self.end()?;
        Ok(value)
    }

    /// The next byte that is not white space, which stays there.
    fn next_byte(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    #[inline]
    fn count(&mut self) -> Outcome<()> {
        budget::step();
        self.values_left = self.values_left.checked_sub(1).ok_or(TOO_MANY_VALUES)?;
        Ok(())
    }

    fn value(&mut self) -> Outcome<Value> {
        self.count()?;
        match self.next_byte() {
            Some(b'{') => self.nested(Parser::object),
            Some(b'[') => self.nested(Parser::array),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(_) => Err("a value is expected here"),
            None => Err("the text ends before the value"),
        }
    }

    fn nested(&mut self, parse: fn(&mut Self) -> Outcome<Value>) -> Outcome<Value> {
        self.enter()?;
        let value = parse(self)?;
        self.depth -= 1;
        Ok(value)
    }

    /// Goes over the bracket here.
    fn enter(&mut self) -> Outcome<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("lists and objects nest too deep");
        }
        self.at += 1;
        Ok(())
    }

    /// The name here and the colon behind it.
    fn member_name(&mut self) -> Outcome<String> {
        match self.next_byte() {
            Some(b'"') => {}
            None => return Err("the text ends inside an object"),
            Some(_) => return Err("a member name in double quotes is expected here"),
        }
        let name = self.string()?;
        match self.next_byte() {
            Some(b':') => self.at += 1,
            None => return Err("the text ends inside an object"),
            Some(_) => return Err("`:` is expected here"),
        }
        Ok(name)
    }

    fn object(&mut self) -> Outcome<Value> {
        let mut members = Map::new();
        if self.next_byte() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(members));
        }
        loop {
            let name = self.member_name()?;
            let value = self.value()?;
            members.insert(name, value);
            match self.next_byte() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Object(members));
                }
                None => return Err("the text ends inside an object"),
                Some(_) => return Err("`,` or `}` is expected here"),
            }
        }
    }

    fn array(&mut self) -> Outcome<Value> {
        let mut elements = Vec::new();
        if self.next_byte() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(elements));
        }
        loop {
            let element = self.value()?;
            budget::make_room(&mut elements, 1);
            elements.push(element);
            match self.next_byte() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(elements));
                }
                None => return Err("the text ends inside a list"),
                Some(_) => return Err("`,` or `]` is expected here"),
            }
        }
    }

    fn word(&mut self, word: &'static str, value: Value) -> Outcome<Value> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err("a value is expected here");
        }
        self.at += word.len();
        Ok(value)
    }

    fn number(&mut self) -> Outcome<Value> {
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
        let digits = &rest[..length.count()];
        let number: Number = digits.parse().map_err(|_| "this is not a number")?;
        self.at += digits.len();
        Ok(Value::Number(number))
    }

    /// The string that starts with the quote here.
    fn string(&mut self) -> Outcome<String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(length) = memchr::memchr2(b'"', b'\\', rest.as_bytes()) else {
                return Err("the string is never closed");
            };
            let piece = &rest[..length];
            budget::reserve(piece.len() + text.len());
            self.at += length + 1;
            if rest.as_bytes()[length] == b'"' {
                if text.is_empty() {
                    return Ok(piece.to_owned());
                }
                text.push_str(piece);
                return Ok(text);
            }
            text.push_str(piece);
            text.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Outcome<char> {
        let Some(byte) = self.text.as_bytes().get(self.at) else { return Err("the string is never closed") };
        let character = match byte {
            b'"' | b'\\' | b'/' => char::from(*byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode(),
            _ => return Err("this is not an escape"),
        };
        self.at += 1;
        Ok(character)
    }

    fn unicode(&mut self) -> Outcome<char> {
        let high = self.four_digits()?;
        let code = match high {
            0xD800..0xDC00 if self.text.as_bytes()[self.at..].starts_with(b"\\u") => {
                self.at += 1;
                match self.four_digits()? {
                    low @ 0xDC00..0xE000 => 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00),
                    _ => return Err("half of a surrogate pair"),
                }
            }
            other => other,
        };
        char::from_u32(code).ok_or("half of a surrogate pair")
    }

    /// The digits after the `u` that stands here.
    fn four_digits(&mut self) -> Outcome<u32> {
        let digits = self.text.get(self.at + 1..self.at + 5);
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += 5;
        code.ok_or("`\\u` needs four hexadecimal digits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_serde_json_reads() {
        for text in [
            "{}",
            "[]",
            " [ 1 , -0, 2.50e+10 ,\t{\"a\":[{}]}]\n",
            "\"\"",
            "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9é\"",
            "\"\\ud83d\\ude00\"",
            "true",
            "false",
            "null",
            "{\"a\":1,\"b\":2,\"a\":3}",
            "123456789012345678901234567890.10",
            "\"\\u0000\"",
        ] {
            let expected: Value = serde_json::from_str(text).unwrap();
            let actual = parse(text).unwrap();
            assert_eq!(actual.to_string(), expected.to_string(), "{text}");
        }
        for text in [
            "",
            " ",
            "{",
            "[1",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "[1 2]",
            "01",
            "1.",
            "-",
            "+1",
            "1e",
            "tru",
            "nul",
            "\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800\"",
            "\"\\ud800\\u0041\"",
            "1 2",
            "'a'",
            "[}",
            "\"\\",
            "1é",
            "\"\\u+123\"",
            "\"\\ud8é\"",
        ] {
            assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn mistakes_have_a_place_and_strings_may_hold_control_characters() {
        let error = parse("{\n  \"é\" 1}").unwrap_err();
        assert_eq!(error.to_string(), "2:7: `:` is expected here");
        assert_eq!(parse("\"a\u{1}\nb\"").unwrap(), "a\u{1}\nb");
        assert_eq!(parse(&"[".repeat(100_000)).unwrap_err().message, "lists and objects nest too deep");
        let deep = "[".repeat(DEPTH_MAX) + &"]".repeat(DEPTH_MAX);
        assert!(parse(&deep).is_ok());
    }
}
