//! From a text to an expression.

use penstock_projects::hint;

use regex::Regex;

use super::{DEPTH_MAX, Function, Node, Operator};

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Name(String),
    Int(i64),
    Double(f64),
    Text(String),
    Mark(&'static str),
}

/// Longer ones first.
const MARKS: [&str; 24] = [
    "||", "&&", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", "(", ")", "[", "]", ",", ".",
    "{", "}",
];

/// By how close they bind, loosest first.
const LEVELS: [&[(&str, Operator)]; 5] = [
    &[("||", Operator::Or)],
    &[("&&", Operator::And)],
    &[
        ("==", Operator::Equal),
        ("!=", Operator::Unequal),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("/", Operator::Divide), ("%", Operator::Remainder)],
];

/// The level of `in`.
const RELATIONS: usize = 2;

pub(super) fn parse(text: &str, known: &[&'static str]) -> Result<(Node, Vec<&'static str>), String> {
    let mut parser = Parser { text, tokens: tokens(text)?, next: 0, known, used: Vec::new(), depth: 0 };
    let node = parser.choice()?;
    if parser.next < parser.tokens.len() {
        return Err(parser.unexpected());
    }
    Ok((node, parser.used))
}

fn tokens(text: &str) -> Result<Vec<(usize, usize, Token)>, String> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (length, token) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if let Some((raw, quote)) = quoted(rest) {
            let (length, value) = unquoted(&rest[usize::from(raw)..], quote, raw)
                .map_err(|why| format!("{why} at character {}", character(text, at)))?;
            (length + usize::from(raw), Token::Text(value))
        } else if first.is_ascii_digit() {
            number(rest)?
        } else if first.is_ascii_alphabetic() || first == '_' {
            let length = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
            (length, Token::Name(rest[..length].to_owned()))
        } else if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) {
            (mark.len(), Token::Mark(mark))
        } else {
            return Err(format!("`{first}` is not expected at character {}", character(text, at)));
        };
        tokens.push((at, length, token));
        at += length;
    }
    Ok(tokens)
}

fn character(text: &str, at: usize) -> usize {
    text[..at].chars().count() + 1
}

/// Whether a text begins here, and with which quote; backslashes mean nothing in one with `r` before it.
fn quoted(rest: &str) -> Option<(bool, char)> {
    let raw = rest.starts_with(['r', 'R']);
    let quote = rest[usize::from(raw)..].chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    Some((raw, quote))
}

/// The length of a quoted text and what it says.
fn unquoted(text: &str, quote: char, raw: bool) -> Result<(usize, String), &'static str> {
    let mut value = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            _ if letter == quote => return Ok((at + 1, value)),
            '\\' if !raw => {
                let (_, escape) = letters.next().ok_or("a text is not ended")?;
                let digits = match escape {
                    'x' | 'X' => 2,
                    'u' => 4,
                    'U' => 8,
                    _ => 0,
                };
                if digits > 0 {
                    let code: String = letters.by_ref().take(digits).map(|(_, digit)| digit).collect();
                    let letter = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                    value.push(letter.filter(|_| code.len() == digits).ok_or("an escape names no character")?);
                    continue;
                }
                value.push(match escape {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    '\\' | '\'' | '"' | '`' | '?' => escape,
                    _ => return Err("an escape is not known"),
                });
            }
            '\n' => return Err("a text is not ended"),
            _ => value.push(letter),
        }
    }
    Err("a text is not ended")
}

fn number(rest: &str) -> Result<(usize, Token), String> {
    let digits = |from: usize| rest[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut length = digits(0);
    let mut is_whole = true;
    if rest[length..].starts_with('.') && digits(length + 1) > 0 {
        is_whole = false;
        length += 1 + digits(length + 1);
    }
    if rest[length..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[length + 1..].starts_with(['+', '-']));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            is_whole = false;
            length += 1 + sign + exponent;
        }
    }
    let text = &rest[..length];
    let wrong = || format!("`{text}` is not a number that can be used");
    let token = match is_whole {
        true => Token::Int(text.parse().map_err(|_| wrong())?),
        false => Token::Double(text.parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(wrong)?),
    };
    // A number without a sign is a number here.
    let unsigned = usize::from(is_whole && rest[length..].starts_with(['u', 'U']));
    Ok((length + unsigned, token))
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<(usize, usize, Token)>,
    next: usize,
    known: &'t [&'static str],
    used: Vec<&'static str>,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(.., token)| token)
    }

    fn take(&mut self, mark: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Mark(found)) if *found == mark);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, mark: &str) -> Result<(), String> {
        if self.take(mark) {
            return Ok(());
        }
        match self.tokens.get(self.next) {
            None => Err(format!("`{mark}` is expected at its end")),
            Some((at, ..)) => Err(format!("`{mark}` is expected at character {}", character(self.text, *at))),
        }
    }

    fn unexpected(&self) -> String {
        match self.tokens.get(self.next) {
            None => "an expression is expected at its end".to_owned(),
            Some((at, length, _)) => {
                let shown = &self.text[*at..at + length];
                format!("`{shown}` is not expected at character {}", character(self.text, *at))
            }
        }
    }

    /// Runs a part one level deeper.
    fn deeper<T>(&mut self, part: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        if self.depth == DEPTH_MAX {
            return Err(format!("more than {DEPTH_MAX} expressions within each other"));
        }
        self.depth += 1;
        let outcome = part(self);
        self.depth -= 1;
        outcome
    }

    fn choice(&mut self) -> Result<Node, String> {
        self.deeper(|parser| {
            let condition = parser.binary(0)?;
            if !parser.take("?") {
                return Ok(condition);
            }
            let yes = parser.choice()?;
            parser.expect(":")?;
            let no = parser.choice()?;
            Ok(Node::Choice(Box::new([condition, yes, no])))
        })
    }

    /// Operators of a level, from the left.
    fn binary(&mut self, level: usize) -> Result<Node, String> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        loop {
            let operator = match self.peek() {
                Some(Token::Mark(mark)) => {
                    operators.iter().find(|(known, _)| known == mark).map(|(_, operator)| *operator)
                }
                Some(Token::Name(name)) if level == RELATIONS && name == "in" => Some(Operator::In),
                _ => None,
            };
            let Some(operator) = operator else { return Ok(left) };
            self.next += 1;
            let right = self.binary(level + 1)?;
            left = Node::Binary(operator, Box::new(left), Box::new(right));
        }
    }

    fn unary(&mut self) -> Result<Node, String> {
        if self.take("!") {
            return Ok(Node::Not(Box::new(self.deeper(Parser::unary)?)));
        }
        if self.take("-") {
            return Ok(Node::Negate(Box::new(self.deeper(Parser::unary)?)));
        }
        let mut node = self.primary()?;
        loop {
            if self.take("[") {
                let index = self.choice()?;
                self.expect("]")?;
                node = Node::Index(Box::new(node), Box::new(index));
            } else if self.take(".") {
                let name = self.name()?;
                node = match self.take("(") {
                    true => self.call(&name, Some(node))?,
                    false => Node::Index(Box::new(node), Box::new(Node::Text(name))),
                };
            } else {
                return Ok(node);
            }
        }
    }

    fn name(&mut self) -> Result<String, String> {
        match self.peek().cloned() {
            Some(Token::Name(name)) => {
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn primary(&mut self) -> Result<Node, String> {
        if self.take("(") {
            let inner = self.choice()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.take("[") {
            return Ok(Node::List(self.list("]")?));
        }
        let Some(token) = self.peek().cloned() else { return Err(self.unexpected()) };
        let node = match token {
            Token::Int(number) => Node::Int(number),
            Token::Double(number) => Node::Double(number),
            Token::Text(text) => Node::Text(text),
            Token::Name(name) => return self.named(name),
            Token::Mark(_) => return Err(self.unexpected()),
        };
        self.next += 1;
        Ok(node)
    }

    /// Values to the closing mark.
    fn list(&mut self, end: &str) -> Result<Vec<Node>, String> {
        let mut values = Vec::new();
        if self.take(end) {
            return Ok(values);
        }
        loop {
            values.push(self.choice()?);
            if !self.take(",") {
                self.expect(end)?;
                return Ok(values);
            }
        }
    }

    /// A word, a function or a variable, whose name has a dot in it.
    fn named(&mut self, first: String) -> Result<Node, String> {
        self.next += 1;
        match &*first {
            "true" => return Ok(Node::Bool(true)),
            "false" => return Ok(Node::Bool(false)),
            "null" => return Ok(Node::Null),
            _ => {}
        }
        if self.take("(") {
            return self.call(&first, None);
        }
        let mut name = first;
        if self.take(".") {
            name = format!("{name}.{}", self.name()?);
        }
        let Some(variable) = self.known.iter().find(|known| **known == name) else {
            return Err(format!("unknown variable `{name}`{}", hint(&name, self.known.iter().copied())));
        };
        self.used.push(variable);
        Ok(Node::Variable(variable))
    }

    /// A function of the values in parentheses, or of what stands before it.
    fn call(&mut self, name: &str, of: Option<Node>) -> Result<Node, String> {
        let is_method = of.is_some();
        let values: Vec<Node> = of.into_iter().chain(self.list(")")?).collect();
        let (function, count) = match (name, is_method) {
            ("has", false) => return has(values),
            ("matches", _) => return matches(values),
            ("size", _) => (Function::Size, 1),
            ("int" | "uint", false) => (Function::Int, 1),
            ("double", false) => (Function::Double, 1),
            ("string", false) => (Function::Text, 1),
            ("startsWith", true) => (Function::StartsWith, 2),
            ("endsWith", true) => (Function::EndsWith, 2),
            ("contains", true) => (Function::Contains, 2),
            _ => return Err(format!("unknown function `{name}`")),
        };
        if values.len() != count {
            return Err(format!("`{name}` takes one value"));
        }
        Ok(Node::Call(function, values))
    }
}

fn has(mut values: Vec<Node>) -> Result<Node, String> {
    match (values.pop(), values.is_empty()) {
        (Some(Node::Index(map, key)), true) => Ok(Node::Has(map, key)),
        _ => Err("`has` takes a member of a map".to_owned()),
    }
}

fn matches(mut values: Vec<Node>) -> Result<Node, String> {
    let (Some(Node::Text(pattern)), Some(text), true) = (values.pop(), values.pop(), values.is_empty()) else {
        return Err("`matches` takes a pattern in quotes".to_owned());
    };
    let regex =
        Regex::new(&pattern).map_err(|_| format!("`{pattern}` is not a regular expression that can be used"))?;
    Ok(Node::Matches(Box::new(text), regex))
}
