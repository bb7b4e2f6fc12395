//! Strings, numbers and JSON values inside a path.

use serde_json::{Map, Number, Value};

use super::PathError;
use super::parser::Parser;

impl Parser<'_> {
    /// A string in single or double quotes.
    pub fn string(&mut self) -> Result<String, PathError> {
        let opened = self.at;
        let Some(quote @ ('\'' | '"')) = self.peek() else {
            return Err(self.error("a string in quotes is expected here"));
        };
        self.at += 1;
        let mut text = String::new();
        loop {
            let Some(character) = self.peek() else {
                return Err(PathError { message: "the string is never closed".into(), span: opened..opened + 1 });
            };
            if self.strict() && character < ' ' {
                return Err(self.error("a control character in a string must be escaped"));
            }
            self.at += character.len_utf8();
            match character {
                _ if character == quote => return Ok(text),
                '\\' => text.push(self.escape(quote)?),
                other => text.push(other),
            }
        }
    }

    fn escape(&mut self, quote: char) -> Result<char, PathError> {
        let start = self.at - 1;
        let Some(character) = self.peek() else {
            return Err(self.error("the escape is not finished"));
        };
        self.at += character.len_utf8();
        Ok(match character {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '/' | '\\' => character,
            'u' => return self.unicode_escape(start),
            other if other == quote || !self.strict() => other,
            other => {
                return Err(PathError { message: format!("`\\{other}` is not an escape"), span: start..self.at });
            }
        })
    }

    fn unicode_escape(&mut self, start: usize) -> Result<char, PathError> {
        let mut code = self.four_digits(start)?;
        if (0xD800..0xDC00).contains(&code) && self.eat("\\u") {
            let low = self.four_digits(start)?;
            if (0xDC00..0xE000).contains(&low) {
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            }
        }
        char::from_u32(code)
            .ok_or_else(|| PathError { message: "half of a surrogate pair".into(), span: start..self.at })
    }

    fn four_digits(&mut self, start: usize) -> Result<u32, PathError> {
        let digits = self.rest().get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(code) = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) else {
            return Err(PathError { message: "`\\u` needs four hexadecimal digits".into(), span: start..self.at });
        };
        self.at += 4;
        Ok(code)
    }

    /// A number, `true`, `false`, `null` or a string. `None` when none of them starts here.
    pub fn literal(&mut self) -> Result<Option<Value>, PathError> {
        match self.peek() {
            Some('\'' | '"') => return self.string().map(|text| Some(Value::String(text))),
            Some('-' | '0'..='9') => return self.number().map(Some),
            Some('[' | '{') if !self.strict() => return self.json().map(Some),
            _ => {}
        }
        for (word, value) in [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)] {
            let follows = self.rest().strip_prefix(word).map(|rest| rest.chars().next());
            if follows.is_some_and(|next| !next.is_some_and(|next| next.is_alphanumeric() || "_.([".contains(next))) {
                self.at += word.len();
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    fn number(&mut self) -> Result<Value, PathError> {
        let length = self
            .rest()
            .bytes()
            .scan(b' ', |before, byte| {
                let part = byte.is_ascii_digit()
                    || matches!(byte, b'.' | b'e' | b'E')
                    || (matches!(byte, b'-' | b'+') && matches!(before, b' ' | b'e' | b'E'));
                *before = byte;
                part.then_some(())
            })
            .count();
        let span = self.at..self.at + length;
        let digits = &self.text[span.clone()];
        let number = serde_json::from_str::<Number>(digits)
            .map_err(|_| PathError { message: format!("`{digits}` is not a number"), span: span.clone() })?;
        self.at = span.end;
        Ok(Value::Number(number))
    }

    /// A JSON array or object, in which strings may also stand in single quotes.
    fn json(&mut self) -> Result<Value, PathError> {
        self.enter()?;
        let value = if self.eat("[") {
            let mut elements = Vec::new();
            while self.more(elements.is_empty(), "]")? {
                elements.push(self.json_value()?);
            }
            Value::Array(elements)
        } else {
            self.at += 1;
            let mut members = Map::new();
            while self.more(members.is_empty(), "}")? {
                let name = self.string()?;
                self.space();
                if !self.eat(":") {
                    return Err(self.error("`:` is expected after the member name"));
                }
                let value = self.json_value()?;
                members.insert(name, value);
            }
            Value::Object(members)
        };
        self.leave();
        Ok(value)
    }

    /// Moves to the next element of a list, or behind its end.
    fn more(&mut self, first: bool, end: &str) -> Result<bool, PathError> {
        self.space();
        if self.eat(end) {
            return Ok(false);
        }
        if !first && !self.eat(",") {
            return Err(self.error_here(format!("`,` or `{end}` is expected here")));
        }
        self.space();
        Ok(true)
    }

    fn json_value(&mut self) -> Result<Value, PathError> {
        self.space();
        self.literal()?.ok_or_else(|| self.error("a JSON value is expected here"))
    }
}
