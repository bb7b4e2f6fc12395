//! JSON text as forgiving readers take it.
//!
//! The library behind Micro Integrator's JSONPath takes more than JSON: names and strings without quotes or in single ones,
//! comments, `=` for `:` and `;` for `,`, and nothing at all for a null in a list. Formats of artifacts rely on it
//! (`{"city": $1}` with a string). Text that is JSON is read by [`crate::text`], which is faster and says what is wrong.

use serde_json::{Map, Number, Value};

use crate::text::DEPTH_MAX;

/// The value a text is, for a forgiving reader.
pub fn parse(text: &str) -> Option<Value> {
    let mut reader = LenientReader { text, at: 0, depth: 0 };
    let value = reader.value(false)?;
    reader.peek().is_none().then_some(value)
}

struct LenientReader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> LenientReader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Skips through the end of what a comment ends with, or everything.
    fn skip_past(&mut self, end: &str) {
        let rest = self.rest();
        self.at += rest.find(end).map_or(rest.len(), |at| at + end.len());
    }

    /// The next byte that is neither white space nor comment, which stays there.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.rest().as_bytes() {
                [b' ' | b'\n' | b'\r' | b'\t', ..] => self.at += 1,
                [b'/', b'*', ..] => self.skip_past("*/"),
                [b'#', ..] | [b'/', b'/', ..] => self.skip_past("\n"),
                other => return other.first().copied(),
            }
        }
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn value(&mut self, in_list: bool) -> Option<Value> {
        match self.peek()? {
            b'{' => self.nested(LenientReader::object),
            b'[' => self.nested(LenientReader::list),
            quote @ (b'"' | b'\'') => self.string(quote).map(Value::String),
            b',' | b';' | b']' if in_list => Some(Value::Null),
            _ => {
                let word = self.word()?;
                Some(match word {
                    _ if word.eq_ignore_ascii_case("true") => Value::Bool(true),
                    _ if word.eq_ignore_ascii_case("false") => Value::Bool(false),
                    _ if word.eq_ignore_ascii_case("null") => Value::Null,
                    word => match word.parse::<Number>() {
                        Ok(number) => Value::Number(number),
                        Err(_) => Value::String(word.to_owned()),
                    },
                })
            }
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Option<Value>) -> Option<Value> {
        self.depth += 1;
        self.at += 1;
        let value = if self.depth > DEPTH_MAX { None } else { read(self) };
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Option<Value> {
        let mut members = Map::new();
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(Value::Object(members));
        }
        loop {
            let name = match self.peek()? {
                quote @ (b'"' | b'\'') => self.string(quote)?,
                _ => self.word()?.to_owned(),
            };
            match self.take()? {
                b':' => {}
                b'=' if self.rest().starts_with('>') => self.at += 1,
                b'=' => {}
                _ => return None,
            }
            let value = self.value(false)?;
            members.insert(name, value);
            match self.take()? {
                b',' | b';' => {}
                b'}' => return Some(Value::Object(members)),
                _ => return None,
            }
        }
    }

    fn list(&mut self) -> Option<Value> {
        let mut elements = Vec::new();
        if self.peek()? == b']' {
            self.at += 1;
            return Some(Value::Array(elements));
        }
        loop {
            elements.push(self.value(true)?);
            match self.take()? {
                b',' | b';' => {}
                b']' => return Some(Value::Array(elements)),
                _ => return None,
            }
        }
    }

    /// What stands without quotes, up to a blank or a sign that means something.
    fn word(&mut self) -> Option<&'t str> {
        let ends = |letter: char| "/\\;#={}[]:, \t\u{c}\r\n".contains(letter);
        let rest = self.rest();
        let word = &rest[..rest.find(ends).unwrap_or(rest.len())];
        self.at += word.len();
        (!word.is_empty()).then_some(word)
    }

    /// The string that starts with the quote here.
    fn string(&mut self, quote: u8) -> Option<String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let length = memchr::memchr2(quote, b'\\', rest.as_bytes())?;
            text.push_str(&rest[..length]);
            self.at += length + 1;
            if rest.as_bytes()[length] == quote {
                return Some(text);
            }
            match self.rest().chars().next()? {
                'u' => text.push(self.unicode()?),
                letter => {
                    text.push(match letter {
                        'b' => '\u{8}',
                        'f' => '\u{c}',
                        'n' => '\n',
                        'r' => '\r',
                        't' => '\t',
                        '"' | '\'' | '\\' | '/' | '\n' => letter,
                        _ => return None,
                    });
                    self.at += 1;
                }
            }
        }
    }

    /// The letter of the `u` and four digits that stand here, with the other half when it is half of a pair.
    fn unicode(&mut self) -> Option<char> {
        let digits = |at: usize| u32::from_str_radix(self.text.get(at + 1..at + 5)?, 16).ok();
        let high = digits(self.at)?;
        let (code, length) = match high {
            0xD800..0xDC00 => {
                let low = digits(self.at + 6).filter(|low| (0xDC00..0xE000).contains(low))?;
                (0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00), 11)
            }
            code => (code, 5),
        };
        self.at += length;
        char::from_u32(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_forgiving_readers_take() {
        for (text, expected) in [
            (
                r#"{"a": Oslo, b: 'x "y"', 'c' = 1.50; d => TRUE}"#,
                Some(r#"{"a":"Oslo","b":"x \"y\"","c":1.50,"d":true}"#),
            ),
            ("[1,,2,]", Some("[1,null,2,null]")),
            ("[]", Some("[]")),
            ("{a: 007, b: 1-2}", Some(r#"{"a":"007","b":"1-2"}"#)),
            ("/* x */ {a: 1} // y\n# z", Some(r#"{"a":1}"#)),
            (r#"["\u00e9\ud83d\ude00\'"]"#, Some("[\"é😀'\"]")),
            ("word", Some("\"word\"")),
            ("two words", None),
            ("{a: two words}", None),
            (r#"{"a": }"#, None),
            (r#"{"a": 1,}"#, None),
            (r#"{"a": "b}"#, None),
            (r#"{"a": 1"#, None),
            (r#"["\ud83dx"]"#, None),
            ("[1] 2", None),
            ("", None),
        ] {
            assert_eq!(parse(text).map(|value| value.to_string()).as_deref(), expected, "{text}");
        }
        assert_eq!(parse(&"[".repeat(100_000)), None);
    }
}
