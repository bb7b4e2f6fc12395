//! The tokens of expressions.

use super::{Place, TemplateError};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Name(String),
    Text(String, bool),
    Number(f64),
    Sign(&'static str),
}

/// Longer signs first.
const SIGNS: [(&str, &str); 45] = [
    ("&amp;&amp;", "&&"),
    ("&gt;=", ">="),
    ("&lt;=", "<="),
    ("..<", "..<"),
    ("..!", "..<"),
    ("..*", "..*"),
    ("&gt;", ">"),
    ("&lt;", "<"),
    ("??", "??"),
    ("==", "=="),
    ("!=", "!="),
    ("<=", "<="),
    (">=", ">="),
    ("&&", "&&"),
    ("||", "||"),
    ("->", "->"),
    ("+=", "+="),
    ("-=", "-="),
    ("*=", "*="),
    ("/=", "/="),
    ("%=", "%="),
    ("++", "++"),
    ("--", "--"),
    ("**", "**"),
    ("..", ".."),
    ("<", "<"),
    (">", ">"),
    ("=", "="),
    ("!", "!"),
    ("?", "?"),
    (".", "."),
    (",", ","),
    (":", ":"),
    (";", ";"),
    ("(", "("),
    (")", ")"),
    ("[", "["),
    ("]", "]"),
    ("{", "{"),
    ("}", "}"),
    ("+", "+"),
    ("-", "-"),
    ("*", "*"),
    ("/", "/"),
    ("%", "%"),
];

pub(super) fn tokens(text: &str, start: Place) -> Result<(Vec<(Token, Place)>, Place), TemplateError> {
    let mut tokens = Vec::new();
    let mut at = start;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            ' ' | '\t' | '\r' | '\n' => (None, 1),
            '"' | '\'' => {
                let (text, length) =
                    string(rest, false).ok_or_else(|| TemplateError::new(at, "the string is never closed"))?;
                (Some(Token::Text(text, false)), length)
            }
            'r' if rest[1..].starts_with(['"', '\'']) => {
                let (text, length) =
                    string(&rest[1..], true).ok_or_else(|| TemplateError::new(at, "the string is never closed"))?;
                (Some(Token::Text(text, true)), length + 1)
            }
            '0'..='9' => {
                let whole = rest.bytes().take_while(u8::is_ascii_digit).count();
                let after = &rest[whole..];
                let fraction = match after.strip_prefix('.') {
                    Some(digits) if digits.starts_with(|digit: char| digit.is_ascii_digit()) => {
                        1 + digits.bytes().take_while(u8::is_ascii_digit).count()
                    }
                    _ => 0,
                };
                let number = rest[..whole + fraction].parse().unwrap_or(f64::NAN);
                (Some(Token::Number(number)), whole + fraction)
            }
            letter if letter.is_alphabetic() || matches!(letter, '_' | '@' | '$') => {
                let name = name(rest);
                (Some(Token::Name(name.replace('\\', ""))), name.len())
            }
            _ => match SIGNS.iter().find(|(written, _)| rest.starts_with(written)) {
                Some((written, sign)) => (Some(Token::Sign(sign)), written.len()),
                None => return Err(TemplateError::new(at, format!("`{first}` is not expected here"))),
            },
        };
        tokens.extend(token.map(|token| (token, at)));
        for letter in rest[..length].chars() {
            at = if letter == '\n' {
                Place { line: at.line + 1, column: 1 }
            } else {
                Place { column: at.column + 1, ..at }
            };
        }
        rest = &rest[length..];
    }
    Ok((tokens, at))
}

/// A name; `\-`, `\.` and `\:` stand for letters of it.
fn name(text: &str) -> &str {
    let mut end = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((index, letter)) = letters.next() {
        let escaped = letter == '\\' && matches!(letters.peek(), Some((_, '-' | '.' | ':' | '#')));
        if escaped {
            letters.next();
            end = index + 2;
        } else if letter.is_alphanumeric() || matches!(letter, '_' | '@' | '$') {
            end = index + letter.len_utf8();
        } else {
            break;
        }
    }
    &text[..end]
}

/// The text of a string literal and how long the literal is.
fn string(text: &str, raw: bool) -> Option<(String, usize)> {
    let quote = text.chars().next()?;
    let mut out = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((index, letter)) = letters.next() {
        match letter {
            '\\' if !raw => match letters.next()?.1 {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                'b' => out.push('\u{8}'),
                'f' => out.push('\u{c}'),
                'l' => out.push('<'),
                'g' => out.push('>'),
                'a' => out.push('&'),
                'x' => {
                    let digits: String =
                        text[index + 2..].chars().take(4).take_while(char::is_ascii_hexdigit).collect();
                    out.extend(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32));
                    for _ in 0..digits.len() {
                        letters.next();
                    }
                }
                other => out.push(other),
            },
            letter if letter == quote => return Some((out, index + letter.len_utf8())),
            letter => out.push(letter),
        }
    }
    None
}
