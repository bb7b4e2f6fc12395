//! What begins with a name: values of the exchange, and calls of functions.

use super::super::ast::Node;
use super::super::lexer::Token;
use super::super::library::Function;
use super::super::{NamedScope, SyntaxError};
use super::Parser;

impl Parser<'_> {
    /// A name that stands for a value, or a function call.
    pub(super) fn access(&mut self) -> Result<Node, SyntaxError> {
        self.lexer.skip_space();
        let start = self.lexer.at;
        let Token::Name(name) = self.lexer.next()? else { return Err(self.unexpected()) };
        let span = start..self.lexer.at;
        let source = match name {
            "payload" => return Ok(Node::Payload(self.path()?)),
            "var" | "vars" => NamedScope::Variable,
            "headers" => NamedScope::Header,
            "config" | "configs" => NamedScope::Config,
            "params" => self.one_of(&[
                ("queryParams", NamedScope::QueryParameter),
                ("pathParams", NamedScope::PathParameter),
                ("uriParams", NamedScope::PathParameter),
                ("functionParams", NamedScope::FunctionParameter),
            ])?,
            "props" | "properties" | "attributes" | "attr" => self.one_of(&[
                ("axis2", NamedScope::Axis2Property),
                ("synapse", NamedScope::Property),
                ("queryParams", NamedScope::QueryParameter),
                ("uriParams", NamedScope::PathParameter),
            ])?,
            _ => return self.call(name, span),
        };
        let name = self.first_name()?;
        Ok(Node::Named { source, name, path: self.path()? })
    }

    /// `.kind` out of a few.
    fn one_of(&mut self, kinds: &[(&str, NamedScope)]) -> Result<NamedScope, SyntaxError> {
        self.expect(".")?;
        let start = self.lexer.at;
        let token = self.lexer.next()?;
        kinds.iter().find(|(name, _)| token == Token::Name(name)).map(|(_, source)| *source).ok_or_else(|| {
            let names: Vec<String> = kinds.iter().map(|(name, _)| format!("`{name}`")).collect();
            SyntaxError { message: format!("{} is expected here", names.join(" or ")), span: start..self.lexer.at }
        })
    }

    /// `.name`, `."name"`, `["name"]` or `.["name"]`.
    fn first_name(&mut self) -> Result<String, SyntaxError> {
        let dot = self.eat(".")?;
        let start = self.lexer.at;
        match self.lexer.next()? {
            Token::Name(name) if dot => Ok(name.to_owned()),
            Token::Text(name) if dot => Ok(name),
            Token::Symbol("[") => match self.lexer.next()? {
                Token::Text(name) => {
                    self.expect("]")?;
                    Ok(name)
                }
                _ => {
                    Err(SyntaxError { message: "a name in quotes is expected here".into(), span: start..self.lexer.at })
                }
            },
            _ => Err(SyntaxError {
                message: "`.name` or `[\"name\"]` is expected here".into(),
                span: start..self.lexer.at,
            }),
        }
    }

    fn call(&mut self, name: &str, span: std::ops::Range<usize>) -> Result<Node, SyntaxError> {
        let called = self.lexer.rest().trim_start().starts_with('(');
        let Some(function) = Function::parse(name).filter(|_| called) else {
            let kind = if called { "function" } else { "name" };
            let known = if called {
                Function::names().collect()
            } else {
                vec!["payload", "vars", "headers", "params", "props", "properties", "configs"]
            };
            let hint = nearest(name, &known).map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
            return Err(SyntaxError { message: format!("unknown {kind} `{name}`{hint}"), span });
        };
        self.expect("(")?;
        let mut arguments = self.list(")")?;
        if function == Function::Registry && self.property_follows() {
            self.expect(".")?;
            self.lexer.next()?;
            self.expect("(")?;
            arguments.extend(self.list(")")?);
        }
        function.check_arguments(name, arguments.len()).map_err(|message| SyntaxError { message, span })?;
        Ok(Node::Call { function, arguments, path: self.path()? })
    }

    /// `.property(` after `registry(…)`.
    fn property_follows(&self) -> bool {
        let rest = self.lexer.rest().trim_start();
        rest.strip_prefix('.')
            .and_then(|rest| rest.trim_start().strip_prefix("property"))
            .is_some_and(|rest| rest.trim_start().starts_with('('))
    }
}

/// The known name that differs least.
fn nearest<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    crate::suggestion(name, known.iter().copied())
}
