//! Tokens to syntax tree.

mod names;

use std::sync::Arc;

use super::ast::{Node, Operator};
use super::item::Item;
use super::lexer::{Lexer, Token};
use super::readings::{fails_always, from_the_left, from_the_right, micro_integrator_reading, owned, usual_reading};
use super::{Lint, SyntaxError};

/// Brackets and operators nest this deep at most: the parser recurses, and so does the evaluation.
const DEPTH_MAX: usize = 64;

/// Compiles a whole text.
pub(super) fn parse(text: &str) -> Result<(Node, Vec<Lint>), SyntaxError> {
    let mut parser = Parser::new(text, 0);
    let node = parser.expression()?;
    match parser.lexer.peek()? {
        Token::End => Ok((node, parser.lints)),
        _ => Err(parser.unexpected()),
    }
}

pub(super) struct Parser<'t> {
    pub lexer: Lexer<'t>,
    pub depth: usize,
    lints: Vec<Lint>,
}

impl<'t> Parser<'t> {
    pub fn new(text: &'t str, depth: usize) -> Parser<'t> {
        Parser { lexer: Lexer::new(text), depth, lints: Vec::new() }
    }

    pub fn expression(&mut self) -> Result<Node, SyntaxError> {
        self.enter()?;
        let condition = self.operators()?;
        let node = if self.eat("?")? {
            let yes = self.expression()?;
            self.expect(":")?;
            let no = self.expression()?;
            Node::Conditional(Box::new(condition), Box::new(yes), Box::new(no))
        } else {
            condition
        };
        self.depth -= 1;
        Ok(node)
    }

    /// Comparisons and logic: a flat list first, because two readings are made of it.
    fn operators(&mut self) -> Result<Node, SyntaxError> {
        self.lexer.skip_space();
        let start = self.lexer.at;
        let mut operands = vec![Arc::new(self.sum()?)];
        let mut operators = Vec::new();
        while let Some(operator) = self.operator()? {
            operators.push(operator);
            operands.push(Arc::new(self.sum()?));
        }
        let span = start..self.lexer.at;
        let logical = operators.iter().filter(|operator| operator.is_logical()).count();
        if logical == 0 {
            return Ok(owned(from_the_left(operands, &operators)));
        }
        if logical == operators.len() {
            if operators.windows(2).any(|pair| pair == [Operator::And, Operator::Or]) {
                self.lint("`and` and `or` bind alike and group from the right here; brackets would show it", span);
            }
            return Ok(owned(from_the_right(operands, &operators)));
        }
        self.lint(
            "Micro Integrator evaluates `and` and `or` before comparisons; put the comparisons in parentheses",
            span,
        );
        let usual = usual_reading(operands.clone(), &operators);
        let original = micro_integrator_reading(operands, &operators);
        Ok(if fails_always(&original) { owned(usual) } else { Node::Ambiguous { original, usual } })
    }

    fn operator(&mut self) -> Result<Option<Operator>, SyntaxError> {
        let operator = match self.lexer.peek()? {
            Token::Symbol("==") => Operator::Equal,
            Token::Symbol("!=") => Operator::NotEqual,
            Token::Symbol("<") => Operator::Less,
            Token::Symbol("<=") => Operator::LessOrEqual,
            Token::Symbol(">") => Operator::Greater,
            Token::Symbol(">=") => Operator::GreaterOrEqual,
            Token::Symbol("&&") | Token::Name("and") => Operator::And,
            Token::Symbol("||") | Token::Name("or") => Operator::Or,
            _ => return Ok(None),
        };
        self.lexer.next()?;
        Ok(Some(operator))
    }

    pub fn sum(&mut self) -> Result<Node, SyntaxError> {
        let mut left = self.product()?;
        loop {
            let operator = match self.lexer.peek()? {
                Token::Symbol("+") => Operator::Add,
                Token::Symbol("-") => Operator::Subtract,
                _ => return Ok(left),
            };
            self.lexer.next()?;
            let at = self.lexer.at;
            if operator == Operator::Subtract && self.lexer.rest().starts_with(|next: char| next.is_ascii_digit()) {
                self.lint(
                    "Micro Integrator reads `-` before a digit as the sign of the number; put a blank between them",
                    at - 1..at,
                );
            }
            let right = self.product()?;
            left = Node::Binary(Arc::new(left), operator, Arc::new(right));
        }
    }

    fn product(&mut self) -> Result<Node, SyntaxError> {
        let mut left = self.unary()?;
        loop {
            let operator = match self.lexer.peek()? {
                Token::Symbol("*") => Operator::Multiply,
                Token::Symbol("/") => Operator::Divide,
                Token::Symbol("%") => Operator::Modulo,
                _ => return Ok(left),
            };
            self.lexer.next()?;
            let right = self.unary()?;
            left = Node::Binary(Arc::new(left), operator, Arc::new(right));
        }
    }

    fn unary(&mut self) -> Result<Node, SyntaxError> {
        self.enter()?;
        let node = if self.eat("-")? {
            match self.unary()? {
                Node::Literal(item) if item.is_number() => Node::Literal(item.negated()),
                other => Node::Negate(Box::new(other)),
            }
        } else if self.eat("!")? {
            Node::Not(Box::new(self.unary()?))
        } else {
            self.primary()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn primary(&mut self) -> Result<Node, SyntaxError> {
        match self.lexer.peek()? {
            Token::Number(digits) => {
                self.lexer.next()?;
                Ok(Node::Literal(Item::of_digits(digits)))
            }
            Token::Text(text) => {
                self.lexer.next()?;
                Ok(Node::Literal(Item::Text(text.into())))
            }
            Token::Symbol("(") => {
                self.lexer.next()?;
                let node = self.expression()?;
                self.expect(")")?;
                Ok(node)
            }
            Token::Symbol("[") => {
                self.lexer.next()?;
                Ok(Node::Array(self.list("]")?))
            }
            Token::Symbol("$") => {
                self.lexer.next()?;
                Ok(Node::Payload(self.path()?))
            }
            Token::Name(name) => {
                let literal = match name {
                    "true" => Item::Boolean(true),
                    "false" => Item::Boolean(false),
                    "null" => Item::Null,
                    _ => return self.access(),
                };
                self.lexer.next()?;
                Ok(Node::Literal(literal))
            }
            _ => Err(self.unexpected()),
        }
    }

    pub fn list(&mut self, end: &'static str) -> Result<Vec<Node>, SyntaxError> {
        let mut nodes = Vec::new();
        if self.eat(end)? {
            return Ok(nodes);
        }
        loop {
            nodes.push(self.expression()?);
            if !self.eat(",")? {
                self.expect(end)?;
                return Ok(nodes);
            }
        }
    }

    fn enter(&mut self) -> Result<(), SyntaxError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let at = self.lexer.at;
            return Err(SyntaxError { message: "the expression nests too deep".into(), span: at..at });
        }
        Ok(())
    }

    pub fn eat(&mut self, symbol: &'static str) -> Result<bool, SyntaxError> {
        let found = self.lexer.peek()? == Token::Symbol(symbol);
        if found {
            self.lexer.next()?;
        }
        Ok(found)
    }

    pub fn expect(&mut self, symbol: &'static str) -> Result<(), SyntaxError> {
        if self.eat(symbol)? {
            return Ok(());
        }
        let mut error = self.unexpected();
        error.message =
            format!("`{symbol}` is expected here, not {}", error.message.trim_end_matches(" is not expected here"));
        Err(error)
    }

    pub fn unexpected(&self) -> SyntaxError {
        let mut ahead = self.lexer.clone();
        ahead.skip_space();
        let start = ahead.at;
        match ahead.next() {
            Err(error) => error,
            Ok(Token::End) => SyntaxError { message: "the end is not expected here".into(), span: start..start },
            Ok(_) => SyntaxError {
                message: format!("`{}` is not expected here", &ahead.text[start..ahead.at]),
                span: start..ahead.at,
            },
        }
    }

    pub fn lint(&mut self, message: &str, span: std::ops::Range<usize>) {
        let lint = Lint { message: message.to_owned(), span };
        // The same piece is parsed again for a second reading.
        if !self.lints.contains(&lint) {
            self.lints.push(lint);
        }
    }
}
