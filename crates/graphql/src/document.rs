//! Queries as they are written: operations and fragments.

use super::lexer::Token;
use super::syntax::{Argument, Directive, Name, Parser, TypeName, Value};
use super::{Malformed, QUERY_BYTES_MAX, QUERY_TOKENS_MAX};

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// Reads.
    Query,
    /// Changes.
    Mutation,
    /// Receives events.
    Subscription,
}

impl OperationKind {
    /// All of them.
    pub const ALL: [OperationKind; 3] = [OperationKind::Query, OperationKind::Mutation, OperationKind::Subscription];

    /// As queries and schemas write it.
    pub fn word(self) -> &'static str {
        match self {
            OperationKind::Query => "query",
            OperationKind::Mutation => "mutation",
            OperationKind::Subscription => "subscription",
        }
    }

    /// As descriptors write it: the verb of an operation.
    pub fn verb(self) -> &'static str {
        match self {
            OperationKind::Query => "QUERY",
            OperationKind::Mutation => "MUTATION",
            OperationKind::Subscription => "SUBSCRIPTION",
        }
    }
}

/// A query: operations of which one is run, and the fragments they use.
#[derive(Debug)]
pub(super) struct Document<'t> {
    pub operations: Vec<Operation<'t>>,
    pub fragments: Vec<Fragment<'t>>,
}

#[derive(Debug)]
pub(super) struct Operation<'t> {
    pub kind: OperationKind,
    pub name: Option<Name<'t>>,
    pub variables: Vec<Variable<'t>>,
    pub directives: Vec<Directive<'t>>,
    pub selections: Vec<Selection<'t>>,
}

#[derive(Debug)]
pub(super) struct Variable<'t> {
    pub name: Name<'t>,
    pub kind: TypeName<'t>,
    pub default: Option<Value<'t>>,
    pub directives: Vec<Directive<'t>>,
}

#[derive(Debug)]
pub(super) struct Fragment<'t> {
    pub name: Name<'t>,
    pub on: Name<'t>,
    pub directives: Vec<Directive<'t>>,
    pub selections: Vec<Selection<'t>>,
}

/// A selection set.
#[derive(Debug)]
pub(super) enum Selection<'t> {
    Field(Field<'t>),
    /// `...name`
    Spread(Name<'t>, Vec<Directive<'t>>),
    /// `... on Type { }`
    Inline(Option<Name<'t>>, Vec<Directive<'t>>, Vec<Selection<'t>>),
}

/// A field. Its alias does not matter here.
#[derive(Debug)]
pub(super) struct Field<'t> {
    pub name: Name<'t>,
    pub arguments: Vec<Argument<'t>>,
    pub directives: Vec<Directive<'t>>,
    pub selections: Vec<Selection<'t>>,
}

impl<'t> Document<'t> {
    pub(super) fn parse(text: &'t str) -> Result<Document<'t>, Malformed> {
        let mut parser = Parser::new(text, QUERY_BYTES_MAX, QUERY_TOKENS_MAX)?;
        let mut document = Document { operations: Vec::new(), fragments: Vec::new() };
        while parser.peek() != Token::End {
            if parser.takes_word("fragment")? {
                document.fragments.push(fragment(&mut parser)?);
            } else {
                document.operations.push(operation(&mut parser)?);
            }
        }
        Ok(document)
    }
}

fn operation<'t>(parser: &mut Parser<'t>) -> Result<Operation<'t>, Malformed> {
    let kind = OperationKind::ALL.into_iter().find(|kind| parser.is_at(kind.word()));
    let Some(kind) = kind else {
        if parser.peek() != Token::Mark(b'{') {
            return parser.unexpected("`query`, `mutation`, `subscription`, `fragment` or `{`");
        }
        let selections = selections(parser)?;
        let (variables, directives) = Default::default();
        return Ok(Operation { kind: OperationKind::Query, name: None, variables, directives, selections });
    };
    parser.advance()?;
    let name = if let Token::Name(_) = parser.peek() { Some(parser.name()?) } else { None };
    let variables = parser.between(*b"()", variable)?;
    Ok(Operation { kind, name, variables, directives: parser.directives()?, selections: selections(parser)? })
}

fn variable<'t>(parser: &mut Parser<'t>) -> Result<Variable<'t>, Malformed> {
    parser.expect(b'$')?;
    let name = parser.name()?;
    parser.expect(b':')?;
    let kind = parser.type_name()?;
    let default = if parser.takes(b'=')? { Some(parser.value()?) } else { None };
    Ok(Variable { name, kind, default, directives: parser.directives()? })
}

fn fragment<'t>(parser: &mut Parser<'t>) -> Result<Fragment<'t>, Malformed> {
    if parser.is_at("on") {
        return parser.unexpected("the name of a fragment");
    }
    let name = parser.name()?;
    if !parser.takes_word("on")? {
        return parser.unexpected("`on`");
    }
    Ok(Fragment { name, on: parser.name()?, directives: parser.directives()?, selections: selections(parser)? })
}

fn selections<'t>(parser: &mut Parser<'t>) -> Result<Vec<Selection<'t>>, Malformed> {
    if parser.peek() != Token::Mark(b'{') {
        return parser.unexpected("`{`");
    }
    parser.nested(|parser| parser.between(*b"{}", selection))
}

fn selection<'t>(parser: &mut Parser<'t>) -> Result<Selection<'t>, Malformed> {
    if parser.peek() == Token::Spread {
        parser.advance()?;
        if parser.takes_word("on")? {
            let on = parser.name()?;
            return Ok(Selection::Inline(Some(on), parser.directives()?, selections(parser)?));
        }
        if let Token::Name(_) = parser.peek() {
            return Ok(Selection::Spread(parser.name()?, parser.directives()?));
        }
        return Ok(Selection::Inline(None, parser.directives()?, selections(parser)?));
    }
    let mut name = parser.name()?;
    if parser.takes(b':')? {
        name = parser.name()?;
    }
    let (arguments, directives) = (parser.arguments()?, parser.directives()?);
    let selections = if parser.peek() == Token::Mark(b'{') { selections(parser)? } else { Vec::new() };
    Ok(Selection::Field(Field { name, arguments, directives, selections }))
}
