//! The tokens of GraphQL (specification, section 2.1). Nothing is copied: a token is a piece of the text.

use super::Malformed;

/// A token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'t> {
    Name(&'t str),
    /// `!`, `$`, `&`, `(`, `)`, `:`, `=`, `@`, `[`, `]`, `{`, `|`, `}`.
    Mark(u8),
    /// `...`
    Spread,
    Int(&'t str),
    Float,
    Text,
    End,
}

impl Token<'_> {
    /// For messages.
    pub(super) fn shown(&self) -> String {
        match self {
            Token::Name(name) => format!("`{}`", short(name)),
            Token::Mark(mark) => format!("`{}`", char::from(*mark)),
            Token::Spread => "`...`".to_owned(),
            Token::Int(digits) => format!("`{}`", short(digits)),
            Token::Float => "a number".to_owned(),
            Token::Text => "a text".to_owned(),
            Token::End => "the end".to_owned(),
        }
    }
}

/// What a message repeats of a name: clients write names of any length.
pub(super) fn short(name: &str) -> &str {
    const SHOWN_MAX: usize = 64;
    name.char_indices().nth(SHOWN_MAX).map_or(name, |(at, _)| &name[..at])
}

/// Reads tokens one after the other.
#[derive(Debug, Clone)]
pub(super) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Lexer<'t> {
        Lexer { text, at: 0 }
    }

    /// The next token, and where it begins.
    pub(super) fn next(&mut self) -> Result<(Token<'t>, usize), Malformed> {
        self.skip_ignored();
        let start = self.at;
        let bytes = self.text.as_bytes();
        let Some(&first) = bytes.get(start) else { return Ok((Token::End, start)) };
        let token = match first {
            b'!' | b'$' | b'&' | b'(' | b')' | b':' | b'=' | b'@' | b'[' | b']' | b'{' | b'|' | b'}' => {
                self.at += 1;
                Token::Mark(first)
            }
            b'.' if bytes[start..].starts_with(b"...") => {
                self.at += 3;
                Token::Spread
            }
            b'"' if bytes[start..].starts_with(b"\"\"\"") => self.block_text()?,
            b'"' => self.text()?,
            b'-' | b'0'..=b'9' => self.number()?,
            _ if is_name_start(first) => {
                self.skip_while(is_name);
                Token::Name(&self.text[start..self.at])
            }
            _ => {
                let letter = self.text[start..].chars().next().unwrap_or_default();
                return Err(Malformed::new(start, format!("unexpected {letter:?}")));
            }
        };
        Ok((token, start))
    }

    /// Blanks, commas, comments and the mark of the byte order mean nothing.
    fn skip_ignored(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b',' => self.at += 1,
                b'#' => self.skip_while(|byte| byte != b'\n' && byte != b'\r'),
                0xEF if bytes[self.at..].starts_with("\u{feff}".as_bytes()) => self.at += 3,
                _ => return,
            }
        }
    }

    fn skip_while(&mut self, fits: impl Fn(u8) -> bool) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().position(|byte| !fits(*byte)).unwrap_or(rest.len());
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn number(&mut self) -> Result<Token<'t>, Malformed> {
        let start = self.at;
        let wrong = |at: usize| Malformed::new(at, "a number is written like `-12.5e3`, without zeros in front");
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let digits = self.digits().ok_or_else(|| wrong(start))?;
        if digits.len() > 1 && digits.starts_with('0') {
            return Err(wrong(start));
        }
        let mut is_float = false;
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits().ok_or_else(|| wrong(start))?;
            is_float = true;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits().ok_or_else(|| wrong(start))?;
            is_float = true;
        }
        // `1x` and `1.2.3` are no two tokens.
        if self.peek().is_some_and(|byte| is_name(byte) || byte == b'.') {
            return Err(wrong(start));
        }
        Ok(if is_float { Token::Float } else { Token::Int(&self.text[start..self.at]) })
    }

    fn digits(&mut self) -> Option<&'t str> {
        let start = self.at;
        self.skip_while(|byte| byte.is_ascii_digit());
        Some(&self.text[start..self.at]).filter(|digits| !digits.is_empty())
    }

    fn text(&mut self) -> Result<Token<'t>, Malformed> {
        let start = self.at;
        self.at += 1;
        loop {
            self.skip_while(|byte| !matches!(byte, b'"' | b'\\' | b'\n' | b'\r'));
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Token::Text);
                }
                Some(b'\\') => self.escape()?,
                _ => return Err(Malformed::new(start, "a text is not closed in its line")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Malformed> {
        let start = self.at;
        let wrong = || Malformed::new(start, "no such escape in a text");
        self.at += 1;
        let letter = self.peek();
        self.at += 1;
        match letter {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(()),
            Some(b'u') if self.peek() == Some(b'{') => {
                let rest = &self.text.as_bytes()[self.at + 1..];
                let count = rest.iter().take(7).take_while(|byte| byte.is_ascii_hexdigit()).count();
                if count == 0 || rest.get(count) != Some(&b'}') {
                    return Err(wrong());
                }
                self.at += count + 2;
                Ok(())
            }
            Some(b'u') => {
                let digits = self.text.as_bytes().get(self.at..self.at + 4);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return Err(wrong());
                }
                self.at += 4;
                Ok(())
            }
            _ => Err(wrong()),
        }
    }

    fn block_text(&mut self) -> Result<Token<'t>, Malformed> {
        let start = self.at;
        self.at += 3;
        let bytes = self.text.as_bytes();
        while self.at < bytes.len() {
            match &bytes[self.at..] {
                rest if rest.starts_with(b"\\\"\"\"") => self.at += 4,
                rest if rest.starts_with(b"\"\"\"") => {
                    self.at += 3;
                    return Ok(Token::Text);
                }
                _ => self.at += 1,
            }
        }
        Err(Malformed::new(start, "a text of several lines is not closed"))
    }
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let mut lexer = Lexer::new(text);
        let mut shown = Vec::new();
        loop {
            match lexer.next() {
                Ok((Token::End, _)) => break,
                Ok((token, _)) => shown.push(token.shown().replace('`', "")),
                Err(error) => {
                    shown.push(format!("{}: {}", error.offset, error.message.replace('`', "")));
                    break;
                }
            }
        }
        assert_eq!(shown.join(" "), expected, "{text:?}");
    }

    #[test]
    fn texts_are_cut_into_tokens() {
        check("\u{feff}{ a(b:$c),# x\n...on D}", "{ a ( b : $ c ) ... on D }");
        check("-0 12 1.5 2e-3 1.0E+9", "-0 12 a number a number a number");
        check(r#""a\"\u00e9\u{1F600}é" """x "y" \""" z""" "" b"#, "a text a text a text b");
        check("é", "0: unexpected 'é'");
        check(".. a", "0: unexpected '.'");
    }

    #[test]
    fn invalid_tokens_are_reported() {
        for text in ["01", "-", "1.", "1e", "1x", "1.2.3", "1.a"] {
            check(text, "0: a number is written like -12.5e3, without zeros in front");
        }
        check("\"a\nb\"", "0: a text is not closed in its line");
        check(r#""\x""#, "1: no such escape in a text");
        check(r#""\u12"#, "1: no such escape in a text");
        check(r#""\u{110000000}""#, "1: no such escape in a text");
        check("\"\"\"a\"\"", "0: a text of several lines is not closed");
        check("\"\\", "1: no such escape in a text");
    }
}
