//! Text to tokens, one at a time: filters are read by the JSONPath parser in between.

use super::SyntaxError;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'t> {
    Name(&'t str),
    Number(&'t str),
    Text(String),
    Symbol(&'static str),
    End,
}

/// Longest first.
const SYMBOLS: [&str; 28] = [
    "==", "!=", "<=", ">=", "&&", "||", "..", "$", "@", "(", ")", "[", "]", "{", "}", ".", ",", ":", "?", "!", "<",
    ">", "+", "-", "*", "/", "%", "=",
];

/// Function names with a hyphen; everywhere else it is a minus.
const HYPHENATED: [&str; 2] = ["wso2-vault", "hashicorp-vault"];

#[derive(Clone)]
pub(super) struct Lexer<'t> {
    pub text: &'t str,
    pub at: usize,
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Lexer<'t> {
        Lexer { text, at: 0 }
    }

    pub fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// The next token, which stays there.
    pub fn peek(&self) -> Result<Token<'t>, SyntaxError> {
        self.clone().next()
    }

    pub fn next(&mut self) -> Result<Token<'t>, SyntaxError> {
        self.skip_space();
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Token::End) };
        if let Some(name) = HYPHENATED.into_iter().find(|name| rest.starts_with(name)) {
            self.at += name.len();
            return Ok(Token::Name(name));
        }
        let length = |part: fn(char) -> bool| rest.find(|character| !part(character)).unwrap_or(rest.len());
        if first.is_ascii_digit() {
            let mut end = length(|character| character.is_ascii_digit());
            if let Some(fraction) = rest[end..].strip_prefix('.') {
                let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
                end += if digits > 0 { digits + 1 } else { 0 };
            }
            self.at += end;
            return Ok(Token::Number(&rest[..end]));
        }
        if first.is_alphabetic() || first == '_' {
            let end = length(|character| character.is_alphanumeric() || character == '_');
            self.at += end;
            return Ok(Token::Name(&rest[..end]));
        }
        if first == '"' || first == '\'' {
            return self.string(first).map(Token::Text);
        }
        match SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
            Some(symbol) => {
                self.at += symbol.len();
                Ok(Token::Symbol(symbol))
            }
            None => Err(SyntaxError {
                message: format!("`{first}` is not expected here"),
                span: self.at..self.at + first.len_utf8(),
            }),
        }
    }

    fn string(&mut self, quote: char) -> Result<String, SyntaxError> {
        let opened = self.at;
        let mut text = String::new();
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((index, character)) = characters.next() {
            match character {
                _ if character == quote => {
                    self.at += index + 1;
                    return Ok(text);
                }
                '\\' => {
                    let Some((_, escaped)) = characters.next() else { break };
                    match escaped {
                        'b' => text.push('\u{8}'),
                        'f' => text.push('\u{c}'),
                        'n' => text.push('\n'),
                        'r' => text.push('\r'),
                        't' => text.push('\t'),
                        'u' => {
                            let digits: String = characters.by_ref().take(4).map(|(_, digit)| digit).collect();
                            let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                            text.push(code.ok_or_else(|| SyntaxError {
                                message: format!("`\\u{digits}` is not a character"),
                                span: opened + index..opened + index + 2,
                            })?);
                        }
                        other => text.push(other),
                    }
                }
                other => text.push(other),
            }
        }
        Err(SyntaxError { message: "the string is never closed".into(), span: opened..opened + 1 })
    }
}
