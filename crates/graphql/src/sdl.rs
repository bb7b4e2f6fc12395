//! Schemas as they are written: definitions of types, extensions, directives and the types of the three operations.

use super::document::OperationKind;
use super::lexer::Token;
use super::syntax::{Name, Parser, TypeName};
use super::{Malformed, SCHEMA_BYTES_MAX, SCHEMA_TOKENS_MAX};

/// A schema as it is written.
#[derive(Debug, Default)]
pub(super) struct Source<'t> {
    /// Of `schema { }`.
    pub roots: Vec<(OperationKind, Name<'t>)>,
    pub types: Vec<TypeSource<'t>>,
    pub directives: Vec<DirectiveSource<'t>>,
}

/// A type, or an extension of one.
#[derive(Debug)]
pub(super) struct TypeSource<'t> {
    pub name: Name<'t>,
    pub extends: bool,
    pub kind: KindSource<'t>,
}

#[derive(Debug)]
pub(super) enum KindSource<'t> {
    Scalar,
    Object { interfaces: Vec<Name<'t>>, fields: Vec<FieldSource<'t>> },
    Interface { interfaces: Vec<Name<'t>>, fields: Vec<FieldSource<'t>> },
    Union(Vec<Name<'t>>),
    Enum(Vec<Name<'t>>),
    Input(Vec<InputSource<'t>>),
}

#[derive(Debug)]
pub(super) struct FieldSource<'t> {
    pub name: Name<'t>,
    pub arguments: Vec<InputSource<'t>>,
    pub kind: TypeName<'t>,
}

/// An argument, or a field of an input type.
#[derive(Debug)]
pub(super) struct InputSource<'t> {
    pub name: Name<'t>,
    pub kind: TypeName<'t>,
    pub has_default: bool,
}

#[derive(Debug)]
pub(super) struct DirectiveSource<'t> {
    pub name: Name<'t>,
    pub arguments: Vec<InputSource<'t>>,
}

impl<'t> Source<'t> {
    pub(super) fn parse(text: &'t str) -> Result<Source<'t>, Malformed> {
        let mut parser = Parser::new(text, SCHEMA_BYTES_MAX, SCHEMA_TOKENS_MAX)?;
        let mut source = Source::default();
        while parser.peek() != Token::End {
            source.definition(&mut parser)?;
        }
        Ok(source)
    }

    fn definition(&mut self, parser: &mut Parser<'t>) -> Result<(), Malformed> {
        description(parser)?;
        let extends = parser.takes_word("extend")?;
        let Token::Name(word) = parser.peek() else { return parser.unexpected("a definition") };
        match word {
            "schema" => return self.schema(parser),
            "directive" if !extends => return self.directive(parser),
            _ => {}
        }
        if !matches!(word, "scalar" | "type" | "interface" | "union" | "enum" | "input") {
            return parser
                .unexpected("`type`, `interface`, `union`, `enum`, `input`, `scalar`, `schema` or `directive`");
        }
        parser.advance()?;
        let name = parser.name()?;
        let kind = match word {
            "type" | "interface" => {
                let interfaces = interfaces(parser)?;
                parser.directives()?;
                let fields = parser.between(*b"{}", field)?;
                match word {
                    "type" => KindSource::Object { interfaces, fields },
                    _ => KindSource::Interface { interfaces, fields },
                }
            }
            "union" => {
                parser.directives()?;
                KindSource::Union(if parser.takes(b'=')? { names(parser, b'|')? } else { Vec::new() })
            }
            "enum" => {
                parser.directives()?;
                KindSource::Enum(parser.between(*b"{}", |parser| {
                    description(parser)?;
                    let name = parser.name()?;
                    parser.directives()?;
                    Ok(name)
                })?)
            }
            "input" => {
                parser.directives()?;
                KindSource::Input(parser.between(*b"{}", input)?)
            }
            _ => {
                parser.directives()?;
                KindSource::Scalar
            }
        };
        self.types.push(TypeSource { name, extends, kind });
        Ok(())
    }

    fn schema(&mut self, parser: &mut Parser<'t>) -> Result<(), Malformed> {
        parser.advance()?;
        parser.directives()?;
        let roots = parser.between(*b"{}", |parser| {
            let Some(kind) = OperationKind::ALL.into_iter().find(|kind| parser.is_at(kind.word())) else {
                return parser.unexpected("`query`, `mutation` or `subscription`");
            };
            parser.advance()?;
            parser.expect(b':')?;
            Ok((kind, parser.name()?))
        })?;
        self.roots.extend(roots);
        Ok(())
    }

    fn directive(&mut self, parser: &mut Parser<'t>) -> Result<(), Malformed> {
        parser.advance()?;
        parser.expect(b'@')?;
        let name = parser.name()?;
        let arguments = parser.between(*b"()", input)?;
        parser.takes_word("repeatable")?;
        if !parser.takes_word("on")? {
            return parser.unexpected("`on`");
        }
        names(parser, b'|')?;
        self.directives.push(DirectiveSource { name, arguments });
        Ok(())
    }
}

/// A text in front of a definition.
fn description(parser: &mut Parser<'_>) -> Result<(), Malformed> {
    if parser.peek() == Token::Text { parser.advance() } else { Ok(()) }
}

/// Names with a mark between them, and perhaps in front.
fn names<'t>(parser: &mut Parser<'t>, mark: u8) -> Result<Vec<Name<'t>>, Malformed> {
    parser.takes(mark)?;
    let mut found = vec![parser.name()?];
    while parser.takes(mark)? {
        found.push(parser.name()?);
    }
    Ok(found)
}

/// `implements A & B`; old schemas write blanks or commas between them.
fn interfaces<'t>(parser: &mut Parser<'t>) -> Result<Vec<Name<'t>>, Malformed> {
    let mut found = Vec::new();
    if parser.takes_word("implements")? {
        parser.takes(b'&')?;
        found.push(parser.name()?);
        while parser.takes(b'&')? || matches!(parser.peek(), Token::Name(_)) && !parser.is_definition() {
            found.push(parser.name()?);
        }
    }
    Ok(found)
}

impl Parser<'_> {
    /// Whether the next definition begins: a type may have no fields.
    fn is_definition(&self) -> bool {
        const WORDS: [&str; 9] =
            ["type", "interface", "union", "enum", "input", "scalar", "schema", "directive", "extend"];
        WORDS.iter().any(|word| self.is_at(word))
    }
}

fn field<'t>(parser: &mut Parser<'t>) -> Result<FieldSource<'t>, Malformed> {
    description(parser)?;
    let name = parser.name()?;
    let arguments = parser.between(*b"()", input)?;
    parser.expect(b':')?;
    let kind = parser.type_name()?;
    parser.directives()?;
    Ok(FieldSource { name, arguments, kind })
}

fn input<'t>(parser: &mut Parser<'t>) -> Result<InputSource<'t>, Malformed> {
    description(parser)?;
    let name = parser.name()?;
    parser.expect(b':')?;
    let kind = parser.type_name()?;
    let has_default = parser.takes(b'=')?;
    if has_default {
        parser.value()?;
    }
    parser.directives()?;
    Ok(InputSource { name, kind, has_default })
}
