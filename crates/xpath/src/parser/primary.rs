//! Literals, variables, calls, parentheses and the keyword expressions.

use std::sync::Arc;

use super::{MAX_NESTING, Parser, syntax_error};
use crate::ast::{Expr, ExprKind, Name, Quantifier};
use crate::error::{Result, Span, XPathError};
use crate::lexer::Token;
use crate::static_context::{FUNCTION_NAMESPACE, SCHEMA_NAMESPACE, Version};
use crate::value::{Atomic, Decimal, number};

/// Aliases inside aliases; one that names itself would never end.
const MAX_ALIAS_DEPTH: u32 = 4;

/// Namespaces of prefixes that functions may have without a declaration.
const FUNCTION_PREFIXES: &[(&str, &str)] =
    &[("fn", FUNCTION_NAMESPACE), ("xs", SCHEMA_NAMESPACE), ("math", "http://www.w3.org/2005/xpath-functions/math")];

impl<'t> Parser<'t, '_> {
    /// A primary expression with its predicates.
    pub(super) fn filter_expr(&mut self) -> Result<Expr> {
        let start = self.span();
        let base = self.primary()?;
        if !self.is("[") {
            return Ok(base);
        }
        let predicates = self.predicates()?;
        self.node(ExprKind::Filter(Box::new(base), predicates), self.span_from(start))
    }

    fn primary(&mut self) -> Result<Expr> {
        let span = self.span();
        let literal = match self.token() {
            Token::String(text, quote) => Atomic::from(unescape(text, quote)),
            Token::Integer(text) => self.integer(text, span)?,
            Token::Decimal(text) => self.decimal(text, span)?,
            Token::Double(text) => Atomic::Double(number::parse_double(text).unwrap_or(f64::NAN)),
            Token::Symbol("$") => return self.variable(),
            Token::Symbol(".") => {
                self.advance();
                return self.node(ExprKind::ContextItem, span);
            }
            Token::Symbol("(") => return self.parenthesized(),
            Token::Name(prefix, local) if self.peek(1) == Token::Symbol("(") => return self.call(prefix, local),
            _ => return Err(self.unexpected("an expression")),
        };
        self.advance();
        // XPath 1.0 reads `10div 2`; 2.0 wants something between a number and a name.
        let name_follows =
            matches!(self.token(), Token::Name(..) | Token::PrefixStar(_)) && self.span().start == span.end;
        if name_follows && literal.is_numeric() && self.context.version == Version::Two {
            return Err(syntax_error("a space is missing between a number and a name", self.span()));
        }
        self.node(ExprKind::Literal(literal), span)
    }

    fn integer(&self, text: &str, span: Span) -> Result<Atomic> {
        if self.context.version == Version::One {
            return Ok(Atomic::Double(number::parse(text, true)));
        }
        let overflow = |_| XPathError::new("FOAR0002", "integer out of range").at(span);
        text.parse::<i128>().map(Atomic::from).map_err(overflow)
    }

    fn decimal(&self, text: &str, span: Span) -> Result<Atomic> {
        if self.context.version == Version::One {
            return Ok(Atomic::Double(number::parse(text, true)));
        }
        let overflow = || XPathError::new("FOAR0002", "decimal out of range").at(span);
        Decimal::parse(text).map(Atomic::Decimal).ok_or_else(overflow)
    }

    fn parenthesized(&mut self) -> Result<Expr> {
        let start = self.span();
        self.expect("(")?;
        if self.eat(")") {
            return self.node(ExprKind::Sequence(Vec::new()), self.span_from(start));
        }
        let mut inner = self.nested(Self::expr)?;
        self.expect(")")?;
        inner.span = self.span_from(start);
        Ok(inner)
    }

    /// `$name`; an alias is replaced by its path here, so that everything after sees the path.
    fn variable(&mut self) -> Result<Expr> {
        let start = self.span();
        let name = self.variable_name()?;
        let span = self.span_from(start);
        let lexical = name.lexical();
        let Some(alias) = self.context.aliases.iter().find(|alias| alias.variable == lexical) else {
            return self.node(ExprKind::Variable(name), span);
        };
        if self.alias_depth >= MAX_ALIAS_DEPTH {
            return Err(syntax_error(format!("alias `${lexical}` stands for itself"), span));
        }
        let mut parser = Parser::new(&alias.path, self.context).map_err(|error| error.moved_to(span))?;
        parser.alias_depth = self.alias_depth + 1;
        let parsed = parser.expr().and_then(|expr| parser.expect_end().map(|()| expr));
        let mut expr = parsed.map_err(|error| error.moved_to(span))?;
        expr.set_span(span);
        Ok(expr)
    }

    fn variable_name(&mut self) -> Result<Name> {
        let start = self.span();
        self.expect("$")?;
        let Token::Name(prefix, local) = self.token() else { return Err(self.unexpected("the name of a variable")) };
        self.advance();
        let span = self.span_from(start);
        // Prefixes of variables may be scopes (`$ctx:id`) rather than namespaces; the compiler reads the name.
        let namespace = prefix.and_then(|prefix| self.context.lookup_namespace(prefix));
        if let (Some(prefix), None) = (prefix, &namespace)
            && !self.context.undeclared_prefixes
            && matches!(self.context.variables, crate::VariablePolicy::Resolver)
            && self.context.resolver.is_none()
        {
            return Err(super::undeclared_prefix(prefix, span));
        }
        Ok(Name { prefix: prefix.map(Into::into), local: local.into(), namespace })
    }

    fn call(&mut self, prefix: Option<&'t str>, local: &'t str) -> Result<Expr> {
        let start = self.span();
        let name = self.function_name(prefix, local)?;
        self.advance();
        self.expect("(")?;
        let mut arguments = Vec::new();
        if !self.is(")") {
            loop {
                arguments.push(self.expr_single()?);
                if !self.eat(",") {
                    break;
                }
            }
        }
        self.expect(")")?;
        self.node(ExprKind::Call(name, arguments), self.span_from(start))
    }

    /// Functions without a prefix are standard ones; `fn:`, `xs:` and `math:` need no declaration.
    fn function_name(&self, prefix: Option<&str>, local: &str) -> Result<Name> {
        let namespace: Option<Arc<str>> = match prefix {
            None => Some(FUNCTION_NAMESPACE.into()),
            Some(prefix) => self.context.lookup_namespace(prefix).or_else(|| {
                let known = FUNCTION_PREFIXES.iter().find(|(known, _)| *known == prefix);
                known.filter(|_| !self.context.requires_declared_prefixes()).map(|(_, uri)| (*uri).into())
            }),
        };
        if let (Some(prefix), None) = (prefix, &namespace)
            && !self.context.undeclared_prefixes
        {
            return Err(super::undeclared_prefix(prefix, self.span()));
        }
        Ok(Name { prefix: prefix.map(Into::into), local: local.into(), namespace })
    }

    /// `if (a) then b else c`
    pub(super) fn conditional(&mut self) -> Result<Expr> {
        let start = self.span();
        self.advance();
        self.expect("(")?;
        let condition = self.nested(Self::expr)?;
        self.expect(")")?;
        self.expect_word("then")?;
        let then = self.expr_single()?;
        self.expect_word("else")?;
        let otherwise = self.expr_single()?;
        let kind = ExprKind::If(Box::new(condition), Box::new(then), Box::new(otherwise));
        self.node(kind, self.span_from(start))
    }

    /// `for`, `let`, `some` and `every`; several variables become one inside the other.
    pub(super) fn binding(&mut self) -> Result<Expr> {
        let start = self.span();
        let Token::Name(None, keyword) = self.token() else { return Err(self.unexpected("`for`")) };
        self.advance();
        let mut bindings = Vec::new();
        loop {
            let name = self.variable_name()?;
            if self.eat_word("as") {
                self.sequence_type()?;
            }
            if keyword == "let" {
                self.expect(":=")?;
            } else {
                self.expect_word("in")?;
            }
            bindings.push((name, self.expr_single()?));
            if bindings.len() > MAX_NESTING as usize {
                return Err(syntax_error("too many variables", self.span_from(start)));
            }
            if !self.eat(",") {
                break;
            }
        }
        self.expect_word(if matches!(keyword, "for" | "let") { "return" } else { "satisfies" })?;
        let mut body = self.expr_single()?;
        let span = self.span_from(start);
        for (name, value) in bindings.into_iter().rev() {
            let (value, inner) = (Box::new(value), Box::new(body));
            let kind = match keyword {
                "for" => ExprKind::For(name, value, inner),
                "let" => ExprKind::Let(name, value, inner),
                "some" => ExprKind::Quantified(Quantifier::Some, name, value, inner),
                _ => ExprKind::Quantified(Quantifier::Every, name, value, inner),
            };
            body = self.node(kind, span)?;
        }
        Ok(body)
    }
}

/// Doubled quotes stand for one.
fn unescape(text: &str, quote: char) -> String {
    if text.contains(quote) {
        let doubled: String = [quote, quote].iter().collect();
        text.replace(&doubled, &quote.to_string())
    } else {
        text.to_string()
    }
}
