//! What may follow a value: members, indexes, slices, filters, functions.

use penstock_json::path::{Filter, JsonPath, PathError, Resolve, Selector, TailFunction};

use super::SyntaxError;
use super::ast::{Node, Path, Step, StepKind};
use super::lexer::Token;
use super::parser::Parser;

impl Parser<'_> {
    pub(super) fn path(&mut self) -> Result<Path, SyntaxError> {
        let mut path = Path::default();
        loop {
            match self.lexer.peek()? {
                Token::Symbol("..") => {
                    self.lexer.next()?;
                    let kind = self.step(&mut path)?;
                    path.steps.push(Step { descendant: true, kind });
                }
                Token::Symbol(".") => {
                    self.lexer.next()?;
                    if let Some(function) = self.tail_function()? {
                        path.function = Some(function);
                        break;
                    }
                    let kind = self.step(&mut path)?;
                    path.steps.push(Step { descendant: false, kind });
                }
                Token::Symbol("[") => {
                    let kind = self.step(&mut path)?;
                    path.steps.push(Step { descendant: false, kind });
                }
                _ => break,
            }
        }
        path.compiled = compiled(&path);
        Ok(path)
    }

    fn tail_function(&mut self) -> Result<Option<TailFunction>, SyntaxError> {
        let mut ahead = self.lexer.clone();
        let Token::Name(name) = ahead.next()? else { return Ok(None) };
        if ahead.next()? != Token::Symbol("(") {
            return Ok(None);
        }
        let function = TailFunction::parse(name).filter(|_| matches!(ahead.next(), Ok(Token::Symbol(")"))));
        if function.is_none() {
            let message = format!("`{name}` is not a function of a path");
            return Err(SyntaxError { message, span: self.lexer.at..ahead.at });
        }
        self.lexer = ahead;
        Ok(function)
    }

    fn step(&mut self, path: &mut Path) -> Result<StepKind, SyntaxError> {
        match self.lexer.peek()? {
            Token::Symbol("*") => {
                self.lexer.next()?;
                Ok(StepKind::Wildcard)
            }
            Token::Name(name) => {
                self.lexer.next()?;
                Ok(StepKind::Name(name.to_owned()))
            }
            Token::Text(name) => {
                self.lexer.next()?;
                Ok(StepKind::Name(name))
            }
            Token::Symbol("[") => {
                self.lexer.next()?;
                self.brackets(path)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn brackets(&mut self, path: &mut Path) -> Result<StepKind, SyntaxError> {
        self.lexer.skip_space();
        let rest = self.lexer.rest();
        if rest.starts_with("(@") || rest.starts_with('@') {
            return self.script();
        }
        match self.lexer.peek()? {
            Token::Symbol("*") => {
                self.lexer.next()?;
                self.expect("]")?;
                return Ok(StepKind::Wildcard);
            }
            Token::Symbol("?") => {
                self.lexer.next()?;
                return self.filter(path);
            }
            _ => {}
        }
        let mut bounds = [None, None, None];
        if self.lexer.peek()? != Token::Symbol(":") {
            let first = self.expression()?;
            if self.eat("]")? {
                return Ok(StepKind::Computed(vec![first]));
            }
            if self.eat(",")? {
                let mut several = vec![first];
                several.extend(self.list("]")?);
                return Ok(StepKind::Computed(several));
            }
            bounds[0] = Some(first);
        }
        for bound in &mut bounds[1..] {
            if !self.eat(":")? {
                break;
            }
            if !matches!(self.lexer.peek()?, Token::Symbol(":" | "]")) {
                *bound = Some(self.expression()?);
            }
        }
        self.expect("]")?;
        Ok(StepKind::Slice(Box::new(bounds)))
    }

    /// `[(@.length-1)]`: Micro Integrator parses it and fails on every message.
    fn script(&mut self) -> Result<StepKind, SyntaxError> {
        let start = self.lexer.at;
        let Some(length) = self.lexer.rest().find(']') else {
            return Err(SyntaxError { message: "`[` is never closed".into(), span: start - 1..start });
        };
        let text = self.lexer.rest()[..length].to_owned();
        self.lexer.at += length + 1;
        self.lint("scripts in brackets are not evaluated; use a negative index or a filter", start..start + length);
        Ok(StepKind::Unsupported(text))
    }

    fn filter(&mut self, path: &mut Path) -> Result<StepKind, SyntaxError> {
        let start = self.lexer.at;
        let mut operands = FilterOperands { parameters: &mut path.parameters, depth: self.depth };
        let parsed = Filter::parse_prefix(self.lexer.rest(), &mut operands);
        let (filter, length) = parsed.map_err(|error| SyntaxError {
            message: error.message,
            span: start + error.span.start..start + error.span.end,
        })?;
        self.lexer.at += length;
        self.expect("]")?;
        Ok(StepKind::Filter(filter))
    }
}

/// Operands of a filter that are expressions themselves.
struct FilterOperands<'p> {
    parameters: &'p mut Vec<Node>,
    depth: usize,
}

impl Resolve for FilterOperands<'_> {
    fn resolve(&mut self, text: &str, offset: usize) -> Result<Option<(usize, usize)>, PathError> {
        let literal = ["true", "false", "null"].iter().any(|word| text.starts_with(word));
        if literal || !text.starts_with(|first: char| first == '$' || first.is_alphabetic()) {
            return Ok(None);
        }
        let mut parser = Parser::new(text, self.depth);
        let node = parser.sum().map_err(|error| PathError {
            message: error.message,
            span: offset + error.span.start..offset + error.span.end,
        })?;
        self.parameters.push(node);
        Ok(Some((parser.lexer.at, self.parameters.len() - 1)))
    }
}

/// The JSONPath of a path whose steps do not depend on the message.
fn compiled(path: &Path) -> Option<JsonPath> {
    let segments = path.steps.iter().map(|step| Some(Path::segment(step, constant(&step.kind)?)));
    Some(JsonPath::from_segments(segments.collect::<Option<_>>()?, path.function))
}

fn constant(kind: &StepKind) -> Option<Vec<Selector>> {
    let literal = |node: &Node| match node {
        Node::Literal(item) => item.selector(),
        _ => None,
    };
    match kind {
        StepKind::Name(name) => Some(vec![Selector::Name(name.as_str().into())]),
        StepKind::Wildcard => Some(vec![Selector::Wildcard]),
        StepKind::Computed(nodes) => nodes.iter().map(literal).collect(),
        StepKind::Filter(filter) => Some(vec![Selector::Filter(Box::new(filter.clone()))]),
        StepKind::Slice(_) | StepKind::Unsupported(_) => None,
    }
}
