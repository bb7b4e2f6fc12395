//! Sequence types, as in `instance of` and in the `as` attributes of stylesheets.

use super::{Parser, syntax_error};
use crate::ast::{ItemType, Occurrence, SequenceType};
use crate::error::{Result, Span};
use crate::lexer::Token;
use crate::static_context::{SCHEMA_NAMESPACE, StaticContext};
use crate::value::AtomicType;

/// The type named in `cast as` and `castable as`.
pub(super) struct AtomicName {
    pub(super) atomic: AtomicType,
    /// Whether `?` follows: the empty sequence is allowed.
    pub(super) optional: bool,
}

impl SequenceType {
    /// Parses the text of an `as` attribute.
    pub fn parse(text: &str, context: &StaticContext<'_>) -> Result<SequenceType> {
        let mut parser = Parser::new(text, context)?;
        let parsed = parser.sequence_type()?;
        parser.expect_end()?;
        Ok(parsed)
    }
}

impl Parser<'_, '_> {
    pub(super) fn single_type(&mut self) -> Result<AtomicName> {
        let span = self.span();
        let atomic = self.atomic_type()?;
        if !atomic.is_constructible() {
            let message = format!("nothing can be cast to {}", atomic.name());
            return Err(crate::XPathError::new("XPST0080", message).at(span));
        }
        Ok(AtomicName { atomic, optional: self.eat("?") })
    }

    pub(super) fn sequence_type(&mut self) -> Result<SequenceType> {
        let call = matches!(self.peek(1), Token::Symbol("("));
        let item = match self.token() {
            Token::Name(None, "empty-sequence") if call => {
                self.advance();
                self.expect("(")?;
                self.expect(")")?;
                return Ok(SequenceType { item: None, occurrence: Occurrence::ZeroOrMore });
            }
            Token::Name(None, "item") if call => {
                self.advance();
                self.expect("(")?;
                self.expect(")")?;
                ItemType::Any
            }
            Token::Name(None, _) if call => ItemType::Node(self.kind_test()?),
            _ => ItemType::Atomic(self.atomic_type()?),
        };
        let occurrence = if self.eat("?") {
            Occurrence::ZeroOrOne
        } else if self.eat("*") {
            Occurrence::ZeroOrMore
        } else if self.eat("+") {
            Occurrence::OneOrMore
        } else {
            Occurrence::One
        };
        Ok(SequenceType { item: Some(item), occurrence })
    }

    /// Whether the prefix of a type's name means XML Schema; `xs` does without a declaration.
    pub(super) fn is_schema_prefix(&self, prefix: Option<&str>) -> bool {
        match prefix {
            // `xdt` is where drafts had the types that later moved to `xs`.
            Some(prefix) => match self.context.lookup_namespace(prefix) {
                Some(uri) => *uri == *SCHEMA_NAMESPACE || prefix == "xdt",
                None => matches!(prefix, "xs" | "xsd" | "xdt") && !self.context.requires_declared_prefixes(),
            },
            None => self.context.default_element_namespace.as_deref() == Some(SCHEMA_NAMESPACE),
        }
    }

    fn atomic_type(&mut self) -> Result<AtomicType> {
        let span: Span = self.span();
        let Token::Name(prefix, local) = self.token() else { return Err(self.unexpected("the name of a type")) };
        self.advance();
        let schema = self.is_schema_prefix(prefix);
        let found = if schema { AtomicType::from_local_name(local) } else { None };
        found.ok_or_else(|| {
            let name = prefix.map_or(local.to_string(), |prefix| format!("{prefix}:{local}"));
            let mut error = syntax_error(String::new(), span);
            if schema || prefix.is_none() {
                error = crate::XPathError::new("XPST0051", format!("unknown type `{name}`")).at(span);
            } else if let Some(prefix) = prefix {
                error = super::undeclared_prefix(prefix, span);
            }
            error
        })
    }
}
