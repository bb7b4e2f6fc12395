//! Expressions: the language inside `${…}` and tags.

use super::ast::{Expr, ExprKind, Operator, RangeEnd};
use super::tokens::{Token, tokens};
use super::{DEPTH_MAX, EVERYTHING, Place, TemplateError};

/// Reads the tokens of one tag or interpolation.
pub(super) struct ExpressionReader<'n> {
    tokens: Vec<(Token, Place)>,
    next: usize,
    end: Place,
    depth: usize,
    /// Names that were mentioned, for who wants to know what a template looks at.
    names: &'n mut Vec<String>,
}

type Outcome<T> = Result<T, TemplateError>;

impl<'n> ExpressionReader<'n> {
    pub(super) fn new(text: &str, at: Place, names: &'n mut Vec<String>) -> Outcome<ExpressionReader<'n>> {
        let (tokens, end) = tokens(text, at)?;
        Ok(ExpressionReader { tokens, next: 0, end, depth: 0, names })
    }

    pub(super) fn place(&self) -> Place {
        self.tokens.get(self.next).map_or(self.end, |(_, at)| *at)
    }

    pub(super) fn is_done(&self) -> bool {
        self.next >= self.tokens.len()
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(token, _)| token)
    }

    pub(super) fn eat(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(other)) if *other == sign);
        self.next += usize::from(found);
        found
    }

    fn looking_at(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(other)) if *other == sign)
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Name(name)) if name == word);
        self.next += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, sign: &str) -> Outcome<()> {
        if self.eat(sign) { Ok(()) } else { self.fail(format!("`{sign}` is missing here")) }
    }

    pub(super) fn fail<T>(&self, message: impl Into<String>) -> Outcome<T> {
        Err(TemplateError::new(self.place(), message))
    }

    pub(super) fn name(&mut self) -> Outcome<String> {
        match self.peek() {
            Some(Token::Name(name) | Token::Text(name, _)) => {
                let name = name.clone();
                self.next += 1;
                Ok(name)
            }
            _ => self.fail("a name is missing here"),
        }
    }

    /// The sign of an assignment: `=`, or the operator before it.
    pub(super) fn assignment(&mut self) -> Option<char> {
        let sign = match self.peek() {
            Some(Token::Sign(sign @ ("=" | "+=" | "-=" | "*=" | "/=" | "%="))) => sign.chars().next(),
            Some(Token::Sign("++")) => Some('p'),
            Some(Token::Sign("--")) => Some('m'),
            _ => None,
        };
        self.next += usize::from(sign.is_some());
        sign
    }

    /// Whether a name and `=` come next, as in the arguments of a macro.
    pub(super) fn at_named(&self) -> bool {
        matches!(self.peek(), Some(Token::Name(_)))
            && matches!(self.tokens.get(self.next + 1), Some((Token::Sign("="), _)))
    }

    pub(super) fn expression(&mut self) -> Outcome<Expr> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.fail(format!("expressions are nested deeper than {DEPTH_MAX}"));
        }
        let at = self.place();
        let is_lambda = matches!(self.tokens.get(self.next + 1), Some((Token::Sign("->"), _)));
        let found = if is_lambda {
            let name = self.name()?;
            self.expect("->")?;
            let body = self.expression()?;
            Ok(Expr::new(ExprKind::Lambda(name, body), at))
        } else {
            self.binary(0)
        };
        self.depth -= 1;
        found
    }

    /// Operators by how loosely they bind.
    fn operator(&self, level: usize) -> Option<Operator> {
        let found = match self.peek()? {
            Token::Sign(sign) => match *sign {
                "||" => (0, Operator::Or),
                "&&" => (1, Operator::And),
                "==" | "=" => (2, Operator::Equal),
                "!=" => (2, Operator::Unequal),
                "<" => (3, Operator::Less),
                "<=" => (3, Operator::LessOrEqual),
                ">" => (3, Operator::Greater),
                ">=" => (3, Operator::GreaterOrEqual),
                "+" => (5, Operator::Add),
                "-" => (5, Operator::Subtract),
                "*" => (6, Operator::Multiply),
                "/" => (6, Operator::Divide),
                "%" => (6, Operator::Remainder),
                _ => return None,
            },
            Token::Name(name) => match name.as_str() {
                "lt" => (3, Operator::Less),
                "lte" => (3, Operator::LessOrEqual),
                "gt" => (3, Operator::Greater),
                "gte" => (3, Operator::GreaterOrEqual),
                _ => return None,
            },
            _ => return None,
        };
        (found.0 == level).then_some(found.1)
    }

    fn binary(&mut self, level: usize) -> Outcome<Expr> {
        if level == 7 {
            return self.unary();
        }
        if level == 4 {
            return self.range();
        }
        let mut left = self.binary(level + 1)?;
        let mut height = 0;
        while let Some(operator) = self.operator(level) {
            height += 1;
            if height > 10 * DEPTH_MAX {
                return self.fail("the expression is too long");
            }
            let at = self.place();
            self.next += 1;
            let right = self.binary(level + 1)?;
            left = Expr::new(ExprKind::Binary(operator, left, right), at);
        }
        Ok(left)
    }

    fn range(&mut self) -> Outcome<Expr> {
        let from = self.binary(5)?;
        let at = self.place();
        let end = match self.peek() {
            Some(Token::Sign("..")) => RangeEnd::Inclusive,
            Some(Token::Sign("..<")) => RangeEnd::Exclusive,
            Some(Token::Sign("..*")) => RangeEnd::Length,
            _ => return Ok(from),
        };
        self.next += 1;
        let starts = !matches!(self.peek(), None | Some(Token::Sign("]" | ")" | "," | "}")));
        let starts = starts && !matches!(self.peek(), Some(Token::Name(name)) if name == "as");
        let to = if starts { Some(self.binary(5)?) } else { None };
        Ok(Expr::new(ExprKind::Range(from, to, end), at))
    }

    fn unary(&mut self) -> Outcome<Expr> {
        let at = self.place();
        let sign = match self.peek() {
            Some(Token::Sign(sign @ ("!" | "-" | "+"))) => *sign,
            _ => return self.postfix(),
        };
        self.next += 1;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.fail(format!("expressions are nested deeper than {DEPTH_MAX}"));
        }
        let inner = self.unary()?;
        self.depth -= 1;
        Ok(match sign {
            "!" => Expr::new(ExprKind::Not(inner), at),
            "-" => Expr::new(ExprKind::Negative(inner), at),
            _ => inner,
        })
    }

    fn postfix(&mut self) -> Outcome<Expr> {
        let mut of = self.primary()?;
        let mut height = 0;
        loop {
            height += 1;
            if height > 10 * DEPTH_MAX {
                return self.fail("the expression is too long");
            }
            let at = self.place();
            if self.eat(".") {
                let name = match self.peek() {
                    Some(Token::Sign("*" | "**")) => {
                        let all = if self.eat("**") { "**" } else { "*" };
                        self.eat("*");
                        all.to_owned()
                    }
                    _ => self.name()?,
                };
                of = Expr::new(ExprKind::Member(of, name), at);
            } else if self.eat("[") {
                let index = self.expression()?;
                self.expect("]")?;
                of = Expr::new(ExprKind::Index(of, index), at);
            } else if self.eat("(") {
                of = Expr::new(ExprKind::Call(of, self.list(")")?), at);
            } else if self.eat("?") {
                let name = self.name()?;
                let arguments = if self.eat("(") { Some(self.list(")")?) } else { None };
                of = Expr::new(ExprKind::BuiltIn(of, name, arguments), at);
            } else if self.eat("??") {
                of = Expr::new(ExprKind::Exists(of), at);
            } else if self.eat("!") {
                let default = if self.starts_default() { Some(self.postfix_of_default()?) } else { None };
                of = Expr::new(ExprKind::Default(of, default), at);
            } else {
                return Ok(of);
            }
        }
    }

    fn postfix_of_default(&mut self) -> Outcome<Expr> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.fail(format!("expressions are nested deeper than {DEPTH_MAX}"));
        }
        let found = self.postfix();
        self.depth -= 1;
        found
    }

    /// Whether what follows a `!` can begin its default.
    fn starts_default(&self) -> bool {
        match self.peek() {
            Some(Token::Name(name)) => {
                let next = self.tokens.get(self.next + 1).map(|(token, _)| token);
                !matches!(name.as_str(), "as" | "lt" | "lte" | "gt" | "gte" | "in") && next != Some(&Token::Sign("="))
            }
            Some(Token::Text(..) | Token::Number(_)) => true,
            Some(Token::Sign("(" | "[" | "{" | ".")) => true,
            _ => false,
        }
    }

    fn list(&mut self, end: &str) -> Outcome<Vec<Expr>> {
        let mut items = Vec::new();
        while !self.eat(end) {
            items.push(self.expression()?);
            if !self.eat(",") && !self.looking_at(end) {
                return self.fail(format!("`,` or `{end}` is missing here"));
            }
        }
        Ok(items)
    }

    fn primary(&mut self) -> Outcome<Expr> {
        let at = self.place();
        let Some(token) = self.peek().cloned() else { return self.fail("an expression is missing here") };
        self.next += 1;
        let kind = match token {
            Token::Name(name) => match name.as_str() {
                "true" => ExprKind::Boolean(true),
                "false" => ExprKind::Boolean(false),
                _ => {
                    if !self.names.contains(&name) {
                        self.names.push(name.clone());
                    }
                    ExprKind::Name(name)
                }
            },
            Token::Number(number) => ExprKind::Number(number),
            Token::Text(text, raw) if raw || !text.contains("${") => ExprKind::Text(text),
            Token::Text(text, _) => self.joined(&text, at)?,
            Token::Sign("(") => {
                let inner = self.expression()?;
                self.expect(")")?;
                ExprKind::Paren(inner)
            }
            Token::Sign("[") => ExprKind::List(self.list("]")?),
            Token::Sign("{") => self.hash()?,
            Token::Sign(".") => {
                let name = self.name()?;
                // The others hold the whole model.
                if name != "now" {
                    self.names.push(EVERYTHING.to_owned());
                }
                ExprKind::Special(name)
            }
            Token::Sign(sign) => {
                self.next -= 1;
                return self.fail(format!("`{sign}` is not expected here"));
            }
        };
        Ok(Expr::new(kind, at))
    }

    fn hash(&mut self) -> Outcome<ExprKind> {
        let mut members = Vec::new();
        while !self.eat("}") {
            let key = self.expression()?;
            self.expect(":")?;
            members.push((key, self.expression()?));
            if !self.eat(",") && !self.looking_at("}") {
                return self.fail("`,` or `}` is missing here");
            }
        }
        Ok(ExprKind::Hash(members))
    }

    /// A string with interpolations in it.
    fn joined(&mut self, text: &str, at: Place) -> Outcome<ExprKind> {
        let mut parts = Vec::new();
        for piece in super::scan::scan(text)? {
            parts.push(match piece {
                super::scan::Piece::Text(text) => Expr::new(ExprKind::Text(text), at),
                super::scan::Piece::Interpolation(inner, _) => {
                    self.depth += 1;
                    if self.depth > DEPTH_MAX {
                        return self.fail(format!("expressions are nested deeper than {DEPTH_MAX}"));
                    }
                    let mut reader = ExpressionReader::new(&inner, at, self.names)?;
                    reader.depth = self.depth;
                    let part = reader.expression()?;
                    self.depth -= 1;
                    part
                }
                _ => return self.fail("a string cannot hold tags"),
            });
        }
        Ok(ExprKind::Joined(parts))
    }
}
