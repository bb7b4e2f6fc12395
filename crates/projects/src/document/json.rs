//! JSON with positions. YAML parsers read most of it, but not tabs and not the escapes of letters beyond the first plane.
//!
//! Most of a large definition describes bodies, which routing does not need: [`Reading::Skim`] checks the syntax of such
//! parts and builds nothing of them.

use std::collections::HashSet;
use std::sync::Arc;

use super::skim::DocumentPart;
use super::{DEPTH_MAX, Entry, Malformed, NODES_MAX, Node, Reading, Scalar, Value};

/// Mappings with more members find repeated names by a set.
const MEMBERS_COMPARED_MAX: usize = 16;

struct JsonReader<'t> {
    text: &'t str,
    /// The next byte.
    at: usize,
    /// Up to here lines and columns are counted.
    counted: usize,
    line: u32,
    column: u32,
    nodes: usize,
}

pub(super) fn parse(text: &str, reading: Reading) -> Result<Node, Malformed> {
    let mut reader = JsonReader { text, at: 0, counted: 0, line: 1, column: 1, nodes: 0 };
    let node = reader.node(0, DocumentPart::root(reading))?;
    reader.blanks();
    if reader.at < text.len() { Err(reader.wrong("unexpected text after the end of the document")) } else { Ok(node) }
}

impl<'t> JsonReader<'t> {
    fn wrong(&mut self, message: impl Into<String>) -> Malformed {
        let (line, column) = self.place();
        Malformed::new(line, column, message)
    }

    /// Line and column of the next letter.
    fn place(&mut self) -> (u32, u32) {
        for byte in &self.text.as_bytes()[self.counted..self.at] {
            match byte {
                b'\n' => (self.line, self.column) = (self.line + 1, 1),
                // A letter is counted by its first byte.
                0x80..0xc0 => {}
                _ => self.column += 1,
            }
        }
        self.counted = self.at;
        (self.line, self.column)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn is(&mut self, wanted: u8) -> bool {
        let there = self.peek() == Some(wanted);
        self.at += usize::from(there);
        there
    }

    fn node(&mut self, depth: usize, part: DocumentPart) -> Result<Node, Malformed> {
        self.blanks();
        let (line, column) = self.place();
        self.check_depth(depth)?;
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(self.wrong(format!("more than {NODES_MAX} values")));
        }
        let value = match self.peek() {
            Some(b'{') => Value::Map(self.object(depth, part)?),
            Some(b'[') => Value::List(self.array(depth, part)?),
            Some(b'"') => Value::Scalar(Scalar { text: self.text()?, quoted: true }),
            Some(_) => Value::Scalar(Scalar { text: self.word()?.into(), quoted: false }),
            None => return Err(self.wrong("the document ends in the middle")),
        };
        Ok(Node { line, column, value })
    }

    fn check_depth(&mut self, depth: usize) -> Result<(), Malformed> {
        if depth >= DEPTH_MAX { Err(self.wrong(format!("nested deeper than {DEPTH_MAX}"))) } else { Ok(()) }
    }

    fn object(&mut self, depth: usize, mut part: DocumentPart) -> Result<Vec<Entry>, Malformed> {
        let (mut entries, mut keys) = (Vec::<Entry>::new(), HashSet::new());
        self.members(|reader| {
            let (line, column) = reader.place();
            let key = reader.text()?;
            let is_known = if entries.len() < MEMBERS_COMPARED_MAX {
                entries.iter().any(|entry| entry.key == key)
            } else {
                if keys.is_empty() {
                    keys.extend(entries.iter().map(|entry| entry.key.clone()));
                }
                !keys.insert(key.clone())
            };
            if is_known {
                let first = entries.iter().find(|entry| entry.key == key).map_or(0, |entry| entry.line);
                let message = format!("`{key}` is given twice; the first is at line {first}");
                return Err(Malformed::new(line, column, message));
            }
            reader.colon(&key)?;
            let value = match part.member(&key) {
                Some(inside) => reader.node(depth + 1, inside)?,
                None => {
                    reader.skip(depth + 1)?;
                    Node { line, column, value: Value::Map(Vec::new()) }
                }
            };
            entries.push(Entry { key, line, column, value });
            Ok(())
        })?;
        entries.shrink_to_fit();
        Ok(entries)
    }

    fn colon(&mut self, key: &str) -> Result<(), Malformed> {
        self.blanks();
        if self.is(b':') { Ok(()) } else { Err(self.wrong(format!("`:` is expected after `{key}`"))) }
    }

    /// Reads the members of a mapping, each from its name to the end of its value.
    fn members(&mut self, mut member: impl FnMut(&mut Self) -> Result<(), Malformed>) -> Result<(), Malformed> {
        self.at += 1;
        self.blanks();
        if self.is(b'}') {
            return Ok(());
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err(self.wrong("a member name in quotes is expected"));
            }
            member(self)?;
            self.blanks();
            if self.is(b'}') {
                return Ok(());
            }
            if !self.is(b',') {
                return Err(self.wrong("`,` or `}` is expected"));
            }
        }
    }

    fn array(&mut self, depth: usize, part: DocumentPart) -> Result<Vec<Node>, Malformed> {
        let mut items = Vec::new();
        self.items(|reader| {
            items.push(reader.node(depth + 1, part.item())?);
            Ok(())
        })?;
        Ok(items)
    }

    fn items(&mut self, mut item: impl FnMut(&mut Self) -> Result<(), Malformed>) -> Result<(), Malformed> {
        self.at += 1;
        self.blanks();
        if self.is(b']') {
            return Ok(());
        }
        loop {
            item(self)?;
            self.blanks();
            if self.is(b']') {
                return Ok(());
            }
            if !self.is(b',') {
                return Err(self.wrong("`,` or `]` is expected"));
            }
        }
    }

    /// Checks a value and builds nothing.
    fn skip(&mut self, depth: usize) -> Result<(), Malformed> {
        self.blanks();
        self.check_depth(depth)?;
        match self.peek() {
            Some(b'{') => self.members(|reader| {
                reader.quoted()?;
                reader.colon("a name")?;
                reader.skip(depth + 1)
            }),
            Some(b'[') => self.items(|reader| reader.skip(depth + 1)),
            Some(b'"') => self.quoted().map(drop),
            Some(_) => self.word().map(drop),
            None => Err(self.wrong("the document ends in the middle")),
        }
    }

    /// A number, flag or null.
    fn word(&mut self) -> Result<&'t str, Malformed> {
        let rest = &self.text[self.at..];
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let word = &rest[..rest.bytes().position(|byte| !is_part(byte)).unwrap_or(rest.len())];
        self.at += word.len();
        let number = word.starts_with(|first: char| first == '-' || first.is_ascii_digit());
        if !number && !matches!(word, "true" | "false" | "null") {
            return Err(self.wrong("a value is expected"));
        }
        Ok(word)
    }

    /// What stands between quotes as it is written, and whether it has escapes.
    fn quoted(&mut self) -> Result<(&'t str, bool), Malformed> {
        self.at += 1;
        let (start, mut has_escapes) = (self.at, false);
        loop {
            match self.peek() {
                Some(b'"') => {
                    let inside = &self.text[start..self.at];
                    self.at += 1;
                    return Ok((inside, has_escapes));
                }
                Some(b'\\') => {
                    has_escapes = true;
                    self.at += 1;
                    match self.peek() {
                        Some(b'n' | b't' | b'r' | b'b' | b'f' | b'"' | b'\\' | b'/') => self.at += 1,
                        Some(b'u') => {
                            self.at += 1;
                            self.hex()?;
                        }
                        _ => return Err(self.wrong("an unknown escape in a text")),
                    }
                }
                Some(byte) if byte < b' ' => return Err(self.wrong("a control character in a text")),
                Some(_) => self.at += 1,
                None => return Err(self.wrong("a text is never closed")),
            }
        }
    }

    fn hex(&mut self) -> Result<(), Malformed> {
        for _ in 0..4 {
            if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                return Err(self.wrong("`\\u` needs four hexadecimal digits"));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn text(&mut self) -> Result<Arc<str>, Malformed> {
        let (inside, has_escapes) = self.quoted()?;
        Ok(if has_escapes { unescaped(inside).into() } else { inside.into() })
    }
}

/// A text whose escapes are known to be well-formed, without them.
fn unescaped(inside: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(inside.len()), inside);
    while let Some((before, behind)) = rest.split_once('\\') {
        text.push_str(before);
        let mut letters = behind.chars();
        match letters.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some('u') => {
                let mut units = vec![code_unit(letters.as_str())];
                letters = letters.as_str().get(4..).unwrap_or_default().chars();
                // RFC 8259 section 7: letters beyond the first plane are two escapes.
                if (0xd800..0xdc00).contains(&units[0])
                    && let Some(second) = letters.as_str().strip_prefix("\\u")
                {
                    units.push(code_unit(second));
                    letters = second.get(4..).unwrap_or_default().chars();
                }
                let letter = char::decode_utf16(units).next().and_then(Result::ok);
                text.push(letter.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(letter) => text.push(letter),
            None => {}
        }
        rest = letters.as_str();
    }
    text.push_str(rest);
    text
}

fn code_unit(digits: &str) -> u16 {
    digits.get(..4).and_then(|digits| u16::from_str_radix(digits, 16).ok()).unwrap_or_default()
}
