//! JSON with positions. YAML parsers read most of it, but not tabs and not the escapes of letters beyond the first plane.

use std::collections::HashSet;
use std::sync::Arc;

use super::{DEPTH_MAX, Entry, Malformed, NODES_MAX, Node, Scalar, Value};

struct Reader<'t> {
    rest: std::iter::Peekable<std::str::Chars<'t>>,
    line: u32,
    column: u32,
    nodes: usize,
}

pub(super) fn parse(text: &str) -> Result<Node, Malformed> {
    let mut reader = Reader { rest: text.chars().peekable(), line: 1, column: 1, nodes: 0 };
    let node = reader.value(0)?;
    reader.blanks();
    if reader.rest.peek().is_some() {
        Err(reader.wrong("something stands after the end of the document"))
    } else {
        Ok(node)
    }
}

impl Reader<'_> {
    fn wrong(&self, message: impl Into<String>) -> Malformed {
        Malformed::new(self.line, self.column, message)
    }

    fn take(&mut self) -> Option<char> {
        let letter = self.rest.next()?;
        if letter == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(letter)
    }

    fn blanks(&mut self) {
        while self.rest.peek().is_some_and(|letter| matches!(letter, ' ' | '\t' | '\r' | '\n')) {
            self.take();
        }
    }

    fn is(&mut self, wanted: char) -> bool {
        let there = self.rest.peek() == Some(&wanted);
        if there {
            self.take();
        }
        there
    }

    fn value(&mut self, depth: usize) -> Result<Node, Malformed> {
        self.blanks();
        let (line, column) = (self.line, self.column);
        if depth >= DEPTH_MAX {
            return Err(self.wrong(format!("nested deeper than {DEPTH_MAX}")));
        }
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(self.wrong(format!("more than {NODES_MAX} values")));
        }
        let value = match self.rest.peek() {
            Some('{') => self.object(depth)?,
            Some('[') => self.array(depth)?,
            Some('"') => Value::Scalar(Scalar { text: self.text()?, quoted: true }),
            Some(_) => self.word()?,
            None => return Err(self.wrong("the document ends in the middle")),
        };
        Ok(Node { line, column, value })
    }

    fn object(&mut self, depth: usize) -> Result<Value, Malformed> {
        self.take();
        let (mut entries, mut keys) = (Vec::<Entry>::new(), HashSet::new());
        self.blanks();
        if self.is('}') {
            return Ok(Value::Map(entries));
        }
        loop {
            self.blanks();
            let (line, column) = (self.line, self.column);
            if self.rest.peek() != Some(&'"') {
                return Err(self.wrong("a member name in quotes is expected"));
            }
            let key = self.text()?;
            if !keys.insert(key.clone()) {
                let first = entries.iter().find(|entry| entry.key == key).map_or(0, |entry| entry.line);
                let message = format!("`{key}` is given twice; the first is at line {first}");
                return Err(Malformed::new(line, column, message));
            }
            self.blanks();
            if !self.is(':') {
                return Err(self.wrong(format!("`:` is expected after `{key}`")));
            }
            let value = self.value(depth + 1)?;
            entries.push(Entry { key, line, column, value });
            self.blanks();
            if self.is('}') {
                return Ok(Value::Map(entries));
            }
            if !self.is(',') {
                return Err(self.wrong("`,` or `}` is expected"));
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, Malformed> {
        self.take();
        let mut items = Vec::new();
        self.blanks();
        if self.is(']') {
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.blanks();
            if self.is(']') {
                return Ok(Value::List(items));
            }
            if !self.is(',') {
                return Err(self.wrong("`,` or `]` is expected"));
            }
        }
    }

    /// A number, flag or null.
    fn word(&mut self) -> Result<Value, Malformed> {
        let mut word = String::new();
        while let Some(letter) = self.rest.peek()
            && (letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.'))
        {
            word.extend(self.take());
        }
        let number = word.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        if !number && !matches!(&*word, "true" | "false" | "null") {
            return Err(self.wrong("a value is expected"));
        }
        Ok(Value::Scalar(Scalar { text: word.into(), quoted: false }))
    }

    fn text(&mut self) -> Result<Arc<str>, Malformed> {
        self.take();
        let mut text = String::new();
        loop {
            match self.take() {
                Some('"') => return Ok(text.into()),
                Some('\\') => text.push(self.escape()?),
                Some(letter) if letter < ' ' => return Err(self.wrong("a control character in a text")),
                Some(letter) => text.push(letter),
                None => return Err(self.wrong("a text is never closed")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Malformed> {
        Ok(match self.take() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some(letter @ ('"' | '\\' | '/')) => letter,
            Some('u') => {
                let first = self.hex()?;
                // RFC 8259 section 7: letters beyond the first plane are two escapes.
                let second = if (0xd800..0xdc00).contains(&first) && self.is('\\') && self.is('u') {
                    Some(self.hex()?)
                } else {
                    None
                };
                let pair = second.map_or(vec![first], |second| vec![first, second]);
                char::decode_utf16(pair).next().and_then(Result::ok).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => return Err(self.wrong("an unknown escape in a text")),
        })
    }

    fn hex(&mut self) -> Result<u16, Malformed> {
        let mut value = 0u16;
        for _ in 0..4 {
            let digit = self.take().and_then(|letter| letter.to_digit(16));
            let Some(digit) = digit else { return Err(self.wrong("`\\u` needs four hexadecimal digits")) };
            value = value << 4 | digit as u16;
        }
        Ok(value)
    }
}
