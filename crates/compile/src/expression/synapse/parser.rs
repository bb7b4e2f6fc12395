//! Tokens to syntax tree.

use std::sync::Arc;

use penstock_json::path::{Filter, JsonPath, PathError, Resolve, Selector, TailFunction};

use super::ast::{Node, Operator, Path, Step, StepKind};
use super::functions::Function;
use super::item::Item;
use super::lexer::{Lexer, Token};
use super::{Lint, Source, SyntaxError};

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

struct Parser<'t> {
    lexer: Lexer<'t>,
    depth: usize,
    lints: Vec<Lint>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, depth: usize) -> Parser<'t> {
        Parser { lexer: Lexer::new(text), depth, lints: Vec::new() }
    }

    fn expression(&mut self) -> Result<Node, SyntaxError> {
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
        self.lint("without brackets the original compares after `and` and `or`; put the comparisons in brackets", span);
        let usual = usual_reading(operands.clone(), &operators);
        let original = original_reading(operands, &operators);
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

    fn sum(&mut self) -> Result<Node, SyntaxError> {
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
                self.lint("the original reads a minus that touches the number as its sign; put a blank between", at - 1..at);
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

    /// A name that stands for a value, or a function call.
    fn access(&mut self) -> Result<Node, SyntaxError> {
        self.lexer.skip_space();
        let start = self.lexer.at;
        let Token::Name(name) = self.lexer.next()? else { return Err(self.unexpected()) };
        let span = start..self.lexer.at;
        let source = match name {
            "payload" => return Ok(Node::Payload(self.path()?)),
            "var" | "vars" => Source::Variable,
            "headers" => Source::Header,
            "config" | "configs" => Source::Config,
            "params" => self.one_of(&[
                ("queryParams", Source::QueryParameter),
                ("pathParams", Source::PathParameter),
                ("uriParams", Source::PathParameter),
                ("functionParams", Source::FunctionParameter),
            ])?,
            "props" | "properties" | "attributes" | "attr" => self.one_of(&[
                ("axis2", Source::Axis2Property),
                ("synapse", Source::Property),
                ("queryParams", Source::QueryParameter),
                ("uriParams", Source::PathParameter),
            ])?,
            _ => return self.call(name, span),
        };
        let name = self.first_name()?;
        Ok(Node::Named { source, name, path: self.path()? })
    }

    /// `.kind` out of a few.
    fn one_of(&mut self, kinds: &[(&str, Source)]) -> Result<Source, SyntaxError> {
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
                _ => Err(SyntaxError { message: "a name in quotes is expected here".into(), span: start..self.lexer.at }),
            },
            _ => Err(SyntaxError { message: "`.name` or `[\"name\"]` is expected here".into(), span: start..self.lexer.at }),
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

    fn list(&mut self, end: &'static str) -> Result<Vec<Node>, SyntaxError> {
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

    fn path(&mut self) -> Result<Path, SyntaxError> {
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

    /// `[(@.length-1)]`: the original parses it and fails on every message.
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

    fn enter(&mut self) -> Result<(), SyntaxError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let at = self.lexer.at;
            return Err(SyntaxError { message: "the expression nests too deep".into(), span: at..at });
        }
        Ok(())
    }

    fn eat(&mut self, symbol: &'static str) -> Result<bool, SyntaxError> {
        let found = self.lexer.peek()? == Token::Symbol(symbol);
        if found {
            self.lexer.next()?;
        }
        Ok(found)
    }

    fn expect(&mut self, symbol: &'static str) -> Result<(), SyntaxError> {
        if self.eat(symbol)? {
            return Ok(());
        }
        let mut error = self.unexpected();
        error.message = format!("`{symbol}` is expected here, not {}", error.message.trim_end_matches(" is not expected here"));
        Err(error)
    }

    fn unexpected(&self) -> SyntaxError {
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

    fn lint(&mut self, message: &str, span: std::ops::Range<usize>) {
        let lint = Lint { message: message.to_owned(), span };
        // The same piece is parsed again for a second reading.
        if !self.lints.contains(&lint) {
            self.lints.push(lint);
        }
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
        let node = parser.primary().map_err(|error| PathError {
            message: error.message,
            span: offset + error.span.start..offset + error.span.end,
        })?;
        self.parameters.push(node);
        Ok(Some((parser.lexer.at, self.parameters.len() - 1)))
    }
}

/// Comparisons split the list first; between them logic groups from the right, `and` and `or` alike.
fn original_reading(operands: Vec<Arc<Node>>, operators: &[Operator]) -> Arc<Node> {
    split(operands, operators, |operator| !operator.is_logical(), from_the_right)
}

/// `or` splits first, then `and`, then comparisons.
fn usual_reading(operands: Vec<Arc<Node>>, operators: &[Operator]) -> Arc<Node> {
    split(operands, operators, |operator| operator == Operator::Or, |operands, operators| {
        split(operands, operators, |operator| operator == Operator::And, from_the_left)
    })
}

/// Joins from the left the groups between the operators that split.
fn split(
    operands: Vec<Arc<Node>>,
    operators: &[Operator],
    splits: impl Fn(Operator) -> bool,
    inner: impl Fn(Vec<Arc<Node>>, &[Operator]) -> Arc<Node>,
) -> Arc<Node> {
    let mut operands = operands.into_iter();
    let mut groups = Vec::new();
    let mut between = Vec::new();
    let mut start = 0;
    for (index, operator) in operators.iter().enumerate() {
        if splits(*operator) {
            groups.push(inner(operands.by_ref().take(index - start + 1).collect(), &operators[start..index]));
            between.push(*operator);
            start = index + 1;
        }
    }
    groups.push(inner(operands.collect(), &operators[start..]));
    from_the_left(groups, &between)
}

fn from_the_left(operands: Vec<Arc<Node>>, operators: &[Operator]) -> Arc<Node> {
    let mut operands = operands.into_iter();
    let first = operands.next().unwrap_or_else(|| Arc::new(Node::Literal(Item::Null)));
    operands.zip(operators).fold(first, |left, (right, operator)| Arc::new(Node::Binary(left, *operator, right)))
}

fn from_the_right(operands: Vec<Arc<Node>>, operators: &[Operator]) -> Arc<Node> {
    let mut operands = operands.into_iter().rev();
    let last = operands.next().unwrap_or_else(|| Arc::new(Node::Literal(Item::Null)));
    let pairs = operands.zip(operators.iter().rev());
    pairs.fold(last, |right, (left, operator)| Arc::new(Node::Binary(left, *operator, right)))
}

/// The node itself; it was just made, so nobody else holds it unless both readings are kept.
fn owned(node: Arc<Node>) -> Node {
    Arc::try_unwrap(node).unwrap_or_else(Node::Shared)
}

/// Whether it compares the order of something that is never a number.
fn fails_always(node: &Node) -> bool {
    let Node::Binary(left, operator, right) = node else { return false };
    let boolean = |node: &Node| {
        matches!(node, Node::Binary(_, operator, _) if operator.is_logical() || operator.is_relational()
            || matches!(operator, Operator::Equal | Operator::NotEqual))
    };
    (operator.is_relational() && (boolean(left) || boolean(right))) || fails_always(left) || fails_always(right)
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

/// The known name that differs least.
fn nearest<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    crate::suggestion(name, known.iter().copied())
}
