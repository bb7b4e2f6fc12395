//! Tokens to syntax tree: precedence climbing for operators (`operators`), recursive descent for the rest.

mod operators;
mod path;
mod primary;
mod types;

use std::sync::Arc;

use crate::ast::{Expr, ExprKind, Name};
use crate::error::{Result, Span, XPathError};
use crate::lexer::{Lexeme, Token, tokenize};
use crate::static_context::StaticContext;

/// Brackets inside brackets. Deeper nesting is a mistake, and each level costs stack.
pub const MAX_NESTING: u32 = 64;

/// Levels of the tree, counting chains of operators and steps of paths too: evaluation recurses that deep.
pub const MAX_HEIGHT: u32 = 400;

/// Parses a whole expression.
pub(crate) fn parse(text: &str, context: &StaticContext<'_>) -> Result<Expr> {
    let mut parser = Parser::new(text, context)?;
    let expr = parser.expr()?;
    parser.expect_end()?;
    Ok(expr)
}

/// Parses a pattern: the same grammar, but `document-node()` alone is a test on the node itself (XSLT 2.0 §5.5.3).
pub(crate) fn parse_pattern(text: &str, context: &StaticContext<'_>) -> Result<Expr> {
    let mut parser = Parser::new(text, context)?;
    parser.pattern = true;
    let expr = parser.expr()?;
    parser.expect_end()?;
    Ok(expr)
}

pub(crate) struct Parser<'t, 'c> {
    pub(crate) text: &'t str,
    pub(crate) context: &'c StaticContext<'c>,
    lexemes: Vec<Lexeme<'t>>,
    at: usize,
    nesting: u32,
    /// Aliases being replaced, to stop one that names itself.
    alias_depth: u32,
    pattern: bool,
}

impl<'t, 'c> Parser<'t, 'c> {
    pub(crate) fn new(text: &'t str, context: &'c StaticContext<'c>) -> Result<Parser<'t, 'c>> {
        Ok(Parser { text, context, lexemes: tokenize(text)?, at: 0, nesting: 0, alias_depth: 0, pattern: false })
    }

    pub(crate) fn token(&self) -> Token<'t> {
        self.lexemes[self.at].token
    }

    /// The token `ahead` places further on; the end repeats.
    pub(crate) fn peek(&self, ahead: usize) -> Token<'t> {
        self.lexemes[(self.at + ahead).min(self.lexemes.len() - 1)].token
    }

    pub(crate) fn span(&self) -> Span {
        self.lexemes[self.at].span
    }

    /// From `start` to the last token consumed.
    pub(crate) fn span_from(&self, start: Span) -> Span {
        if self.at == 0 { start } else { start.to(self.lexemes[self.at - 1].span) }
    }

    pub(crate) fn advance(&mut self) {
        if self.at + 1 < self.lexemes.len() {
            self.at += 1;
        }
    }

    pub(crate) fn is(&self, symbol: &str) -> bool {
        matches!(self.token(), Token::Symbol(found) if found == symbol)
    }

    pub(crate) fn eat(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        if found {
            self.advance();
        }
        found
    }

    pub(crate) fn expect(&mut self, symbol: &str) -> Result<()> {
        if self.eat(symbol) { Ok(()) } else { Err(self.unexpected(&format!("`{symbol}`"))) }
    }

    pub(crate) fn is_word(&self, word: &str) -> bool {
        self.token() == Token::Name(None, word)
    }

    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.advance();
        }
        found
    }

    pub(crate) fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.unexpected(&format!("`{word}`"))) }
    }

    pub(crate) fn expect_end(&self) -> Result<()> {
        if self.token() == Token::End { Ok(()) } else { Err(self.unexpected("an operator or the end")) }
    }

    pub(crate) fn unexpected(&self, wanted: &str) -> XPathError {
        let span = self.span();
        let found = match self.text.get(span.range()) {
            Some(text) if !text.is_empty() => format!("found `{text}`"),
            _ => "the expression ends here".to_string(),
        };
        syntax_error(format!("expected {wanted}, {found}"), span)
    }

    /// Builds a node, refusing trees that are too high to walk.
    pub(crate) fn node(&self, kind: ExprKind, span: Span) -> Result<Expr> {
        let expr = Expr::new(kind, span);
        if expr.height() > MAX_HEIGHT {
            return Err(syntax_error(format!("expression with more than {MAX_HEIGHT} levels"), span));
        }
        Ok(expr)
    }

    /// Runs a rule one level of brackets deeper.
    pub(crate) fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.nesting >= MAX_NESTING {
            let message = format!("expression nested more than {MAX_NESTING} levels deep");
            return Err(syntax_error(message, self.span()));
        }
        self.nesting += 1;
        let result = rule(self);
        self.nesting -= 1;
        result
    }

    /// `Expr ::= ExprSingle ("," ExprSingle)*`
    pub(crate) fn expr(&mut self) -> Result<Expr> {
        let start = self.span();
        let first = self.expr_single()?;
        if !self.is(",") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.eat(",") {
            items.push(self.expr_single()?);
        }
        self.node(ExprKind::Sequence(items), self.span_from(start))
    }

    /// `ExprSingle`: one of the keyword expressions, or operators.
    pub(crate) fn expr_single(&mut self) -> Result<Expr> {
        self.nested(|parser| match (parser.token(), parser.peek(1)) {
            (Token::Name(None, "for" | "let" | "some" | "every"), Token::Symbol("$")) => parser.binding(),
            (Token::Name(None, "if"), Token::Symbol("(")) => parser.conditional(),
            _ => parser.operators(operators::LOOSEST),
        })
    }

    /// Resolves a name as written; `default` is the namespace of a name without a prefix.
    pub(crate) fn resolve(
        &self,
        prefix: Option<&str>,
        local: &str,
        default: Option<&Arc<str>>,
        span: Span,
    ) -> Result<Name> {
        let namespace = match prefix {
            None => default.cloned(),
            Some(prefix) => match self.context.lookup_namespace(prefix) {
                Some(uri) => Some(uri),
                None if self.context.undeclared_prefixes => None,
                None => return Err(undeclared_prefix(prefix, span)),
            },
        };
        Ok(Name { prefix: prefix.map(Into::into), local: local.into(), namespace })
    }
}

pub(crate) fn syntax_error(message: impl Into<String>, span: Span) -> XPathError {
    XPathError::new("XPST0003", message).at(span)
}

pub(crate) fn undeclared_prefix(prefix: &str, span: Span) -> XPathError {
    XPathError::new("XPST0081", format!("namespace prefix `{prefix}` is not declared")).at(span)
}
