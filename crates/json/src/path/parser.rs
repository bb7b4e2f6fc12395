//! Text to path: segments and selectors. Filters are in [`super::filter`], literals in [`super::literal`].

use super::ast::{Segment, Selector, TailFunction, is_singular};
use super::{Dialect, JsonPath, PathError, Resolve};

/// Brackets, parentheses and filters inside filters nest this deep at most: the parser recurses.
const DEPTH_MAX: usize = 64;

/// So many `..` in one path: each multiplies the work by the size of the document.
const DESCENDANT_SEGMENTS_MAX: usize = 8;

/// Integers a path may name (RFC 9535 §2.1): exact in every JSON implementation.
const INTEGER_MAX: i64 = (1 << 53) - 1;

pub(super) struct Parser<'t> {
    pub text: &'t str,
    pub at: usize,
    pub dialect: Dialect,
    pub resolve: Option<&'t mut dyn Resolve>,
    /// Names outside of brackets end at `.`, `[`, `(` and white space only.
    pub tolerant: bool,
    depth: usize,
    descendants: usize,
}

impl<'t> Parser<'t> {
    pub fn new(text: &'t str, dialect: Dialect, resolve: Option<&'t mut dyn Resolve>) -> Parser<'t> {
        Parser { text, at: 0, dialect, resolve, tolerant: false, depth: 0, descendants: 0 }
    }

    pub fn strict(&self) -> bool {
        self.dialect == Dialect::Rfc9535
    }

    pub fn path(mut self) -> Result<JsonPath, PathError> {
        if !self.strict() {
            self.text = self.text.trim();
        }
        let (segments, function) = if self.eat("$") {
            self.segments()?
        } else if self.strict() {
            return Err(self.error("a path starts with `$`"));
        } else {
            // The artifacts may leave out `$.`.
            let (mut segments, mut function) = (Vec::new(), None);
            if !self.rest().is_empty() {
                if self.peek() != Some('[') && !self.rest().starts_with('.') {
                    segments.push(Segment::Child(vec![Selector::Name(self.shorthand_name()?.into())]));
                }
                let (more, tail) = self.segments()?;
                segments.extend(more);
                function = tail;
            }
            (segments, function)
        };
        if !self.rest().is_empty() {
            return Err(self.error_here(format!("`{}` is not expected here", self.rest())));
        }
        let singular = is_singular(&segments);
        Ok(JsonPath { segments, function, singular, dialect: self.dialect })
    }

    /// Everything after `$` or `@`.
    pub fn segments(&mut self) -> Result<(Vec<Segment>, Option<TailFunction>), PathError> {
        let mut segments = Vec::new();
        loop {
            let before = self.at;
            if self.strict() {
                self.space();
            }
            if self.eat("..") {
                self.descendants += 1;
                if self.descendants > DESCENDANT_SEGMENTS_MAX {
                    let span = self.at - 2..self.at;
                    return Err(PathError {
                        message: format!("a path may contain `..` at most {DESCENDANT_SEGMENTS_MAX} times"),
                        span,
                    });
                }
                segments.push(Segment::Descendant(self.step()?));
            } else if self.peek() == Some('[') {
                segments.push(Segment::Child(self.brackets()?));
            } else if self.eat(".") {
                if !self.strict() {
                    if self.rest().is_empty() {
                        // `$.` is another way to write `$`.
                        break;
                    }
                    if let Some(function) = self.tail_function()? {
                        return Ok((segments, Some(function)));
                    }
                }
                segments.push(Segment::Child(self.step()?));
            } else if !self.strict() && matches!(segments.last(), Some(Segment::Child(_))) && self.begins_name() {
                // Micro Integrator does not miss the dot in `list[0]name`.
                segments.push(Segment::Child(self.step()?));
            } else {
                self.at = before;
                break;
            }
        }
        Ok((segments, None))
    }

    /// Whether a name without quotes begins here, behind a bracket.
    fn begins_name(&self) -> bool {
        let begins = |next: char| next.is_alphabetic() || next == '_' || self.is_tolerant() && !next.is_whitespace();
        self.text[..self.at].ends_with(']') && self.peek().is_some_and(begins)
    }

    fn is_tolerant(&self) -> bool {
        self.tolerant && self.depth == 0
    }

    /// What may follow `..`, and `.` in so far as the dialect allows it.
    fn step(&mut self) -> Result<Vec<Selector>, PathError> {
        match self.peek() {
            Some('*') => {
                self.at += 1;
                Ok(vec![Selector::Wildcard])
            }
            // After a single dot only the artifacts' dialect has brackets.
            Some('[') if !self.strict() || self.text[..self.at].ends_with("..") => self.brackets(),
            _ => Ok(vec![Selector::Name(self.shorthand_name()?.into())]),
        }
    }

    fn shorthand_name(&mut self) -> Result<String, PathError> {
        let strict = self.strict();
        let tolerant = self.is_tolerant();
        let end = self
            .rest()
            .char_indices()
            .find(|(index, character)| {
                if strict {
                    !(character.is_ascii_alphabetic()
                        || *character == '_'
                        || !character.is_ascii()
                        || (*index > 0 && character.is_ascii_digit()))
                } else if tolerant {
                    matches!(character, '.' | '[' | '(') || character.is_whitespace()
                } else {
                    // Inside a filter an operator may follow without a space.
                    matches!(character, '.' | '[' | '(' | ')' | ']' | ',' | '=' | '<' | '>' | '!' | '&' | '|' | '~')
                        || character.is_whitespace()
                }
            })
            .map_or(self.rest().len(), |(index, _)| index);
        if end == 0 {
            return Err(self.error("a member name is expected here"));
        }
        let name = self.rest()[..end].to_owned();
        self.at += end;
        Ok(name)
    }

    /// `length()` and its like. Leaves the position when it is not one.
    fn tail_function(&mut self) -> Result<Option<TailFunction>, PathError> {
        let length = self.rest().bytes().take_while(u8::is_ascii_alphabetic).count();
        let (name, after) = self.rest().split_at(length);
        let Some(arguments) = after.strip_prefix('(') else { return Ok(None) };
        let Some((argument, _)) = arguments.split_once(')') else {
            return Err(self.error("a function call lacks its `)`"));
        };
        let function = match (TailFunction::parse(name), argument.trim()) {
            (Some(function), "") => Some(function),
            (None, index) if name == "index" => index.parse().ok().map(TailFunction::Index),
            _ => None,
        };
        let span = self.at..self.at + length + 1 + argument.len() + 1;
        let Some(function) = function else {
            return Err(PathError { message: format!("unknown function `{name}({argument})`"), span });
        };
        self.at = span.end;
        Ok(Some(function))
    }

    fn brackets(&mut self) -> Result<Vec<Selector>, PathError> {
        let opened = self.at;
        self.at += 1;
        self.enter()?;
        let mut selectors = Vec::new();
        loop {
            self.space();
            selectors.push(self.selector()?);
            self.space();
            if self.eat(",") {
                continue;
            }
            if self.eat("]") {
                break;
            }
            return Err(match self.peek() {
                None => PathError { message: "`[` is never closed".into(), span: opened..opened + 1 },
                Some(other) => self.error_here(format!("`,` or `]` is expected here, not `{other}`")),
            });
        }
        self.depth -= 1;
        Ok(selectors)
    }

    fn selector(&mut self) -> Result<Selector, PathError> {
        match self.peek() {
            Some('\'' | '"') => Ok(Selector::Name(self.string()?.into())),
            Some('*') => {
                self.at += 1;
                Ok(Selector::Wildcard)
            }
            Some('?') => {
                self.at += 1;
                self.space();
                Ok(Selector::Filter(Box::new(self.filter()?)))
            }
            Some(':' | '-' | '0'..='9') => self.index_or_slice(),
            _ => Err(self.error("a name in quotes, an index, a slice, `*` or a filter is expected here")),
        }
    }

    fn index_or_slice(&mut self) -> Result<Selector, PathError> {
        let start = self.optional_integer()?;
        let before = self.at;
        self.space();
        if !self.eat(":") {
            self.at = before;
            return match start {
                Some(index) => Ok(Selector::Index(index)),
                None => Err(self.error("an index is expected here")),
            };
        }
        self.space();
        let end = self.optional_integer()?;
        self.space();
        let mut step = 1;
        if self.eat(":") {
            self.space();
            step = self.optional_integer()?.unwrap_or(1);
        }
        Ok(Selector::Slice { start, end, step })
    }

    fn optional_integer(&mut self) -> Result<Option<i64>, PathError> {
        let length = self
            .rest()
            .bytes()
            .enumerate()
            .take_while(|(index, byte)| byte.is_ascii_digit() || (*index == 0 && *byte == b'-'))
            .count();
        if length == 0 {
            return Ok(None);
        }
        let span = self.at..self.at + length;
        let digits = &self.text[span.clone()];
        let wrong = |message: &str| PathError { message: format!("`{digits}` {message}"), span: span.clone() };
        let unsigned = digits.trim_start_matches('-');
        if self.strict() && (digits == "-0" || (unsigned.len() > 1 && unsigned.starts_with('0'))) {
            return Err(wrong("is not an integer: no leading zeros"));
        }
        let value: i64 = digits.parse().map_err(|_| wrong("is not an integer"))?;
        if !(-INTEGER_MAX..=INTEGER_MAX).contains(&value) {
            return Err(wrong("is too large for an index"));
        }
        self.at = span.end;
        Ok(Some(value))
    }

    pub fn enter(&mut self) -> Result<(), PathError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error("the path nests too deep"));
        }
        Ok(())
    }

    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    pub fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    pub fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    pub fn error(&self, message: &str) -> PathError {
        PathError { message: message.to_owned(), span: self.at..self.at }
    }

    pub fn error_here(&self, message: String) -> PathError {
        PathError { message, span: self.at..self.text.len() }
    }
}
