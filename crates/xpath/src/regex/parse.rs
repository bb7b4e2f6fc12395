//! The grammar of regular expressions (XML Schema Part 2, Appendix F; F&O §7.6.1), and what it becomes.

use super::class;
use crate::error::{Result, XPathError};

/// Groups inside groups; the parser recurses.
const MAX_NESTING: usize = 100;

/// Whose grammar applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// With anchors, reluctant quantifiers, groups that do not capture, back-references.
    #[default]
    XPath,
    /// XML Schema.
    Schema,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Options {
    pub(super) dialect: Dialect,
    pub(super) ignore_case: bool,
    pub(super) ignore_space: bool,
    pub(super) dot_matches_all: bool,
}

/// A pattern in the syntax of the `regex` crate.
pub(super) struct Translated {
    pub(super) pattern: String,
    pub(super) back_references: bool,
}

#[cold]
pub(super) fn invalid(pattern: &str, why: &str) -> XPathError {
    XPathError::new("FORX0002", format!("invalid regular expression `{pattern}`: {why}"))
}

/// Checks a pattern and rewrites what the two languages write differently.
pub(super) fn translate(pattern: &str, options: Options) -> Result<Translated> {
    let mut parser = Parser {
        rest: pattern.chars().collect(),
        at: 0,
        options,
        out: String::with_capacity(pattern.len() + 16),
        closed: Vec::new(),
        back_references: false,
        depth: 0,
    };
    parser.alternatives().map_err(|why| invalid(pattern, &why))?;
    if parser.peek().is_some() {
        return Err(invalid(pattern, "`)` without its `(`"));
    }
    Ok(Translated { pattern: parser.out, back_references: parser.back_references })
}

/// Parsing fails with a sentence.
pub(super) type Parsed<T> = std::result::Result<T, String>;

pub(super) struct Parser {
    rest: Vec<char>,
    at: usize,
    pub(super) options: Options,
    pub(super) out: String,
    /// By number of the group: whether it has ended.
    closed: Vec<bool>,
    back_references: bool,
    depth: usize,
}

impl Parser {
    pub(super) fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    pub(super) fn peek_second(&self) -> Option<char> {
        self.rest.get(self.at + 1).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let found = self.peek();
        self.at += usize::from(found.is_some());
        found
    }

    pub(super) fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    /// Whether the character just read was written with a backslash.
    pub(super) fn previous_was_escape(&self, c: char) -> bool {
        let before = self.at.checked_sub(2).and_then(|at| self.rest.get(at));
        before == Some(&'\\') && self.rest.get(self.at - 1) == Some(&c)
    }

    fn skip_space(&mut self) {
        while self.options.ignore_space && self.peek().is_some_and(|c| matches!(c, ' ' | '\t' | '\r' | '\n')) {
            self.at += 1;
        }
    }

    fn alternatives(&mut self) -> Parsed<()> {
        loop {
            self.branch()?;
            if !self.eat('|') {
                return Ok(());
            }
            self.out.push('|');
        }
    }

    fn branch(&mut self) -> Parsed<()> {
        loop {
            self.skip_space();
            match self.peek() {
                None | Some('|' | ')') => return Ok(()),
                Some(_) => {}
            }
            self.atom()?;
            self.skip_space();
            self.quantifier()?;
        }
    }

    fn atom(&mut self) -> Parsed<()> {
        let xpath = self.options.dialect == Dialect::XPath;
        match self.next() {
            Some('(') => self.group(),
            Some('[') => {
                let class = class::expression(self, 0)?;
                self.out.push_str(&class);
                Ok(())
            }
            Some('.') => {
                self.out.push_str(if self.options.dot_matches_all { "(?s:.)" } else { r"[^\n\r]" });
                Ok(())
            }
            Some('\\') if xpath && self.peek().is_some_and(|c| c.is_ascii_digit()) => self.back_reference(),
            Some('\\') => {
                // With the flag `x` white space goes before anything else is read.
                self.skip_space();
                let escape = class::escape(self)?;
                self.out.push_str(&escape.alone(self.options.ignore_case));
                Ok(())
            }
            Some(anchor @ ('^' | '$')) if xpath => {
                self.out.push(anchor);
                Ok(())
            }
            Some(c @ ('?' | '*' | '+' | '{')) => Err(format!("`{c}` repeats nothing")),
            Some(c @ (']' | '}')) => Err(format!("`{c}` is written `\\{c}`")),
            Some(c) => {
                push_literal(&mut self.out, c);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn group(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(format!("groups nested more than {MAX_NESTING} levels deep"));
        }
        let mut number = None;
        if self.eat('?') {
            if self.options.dialect == Dialect::Schema || !self.eat(':') {
                return Err("`(?` is not allowed".to_string());
            }
            self.out.push_str("(?:");
        } else {
            self.closed.push(false);
            number = Some(self.closed.len() - 1);
            self.out.push('(');
        }
        self.alternatives()?;
        if !self.eat(')') {
            return Err("`(` without its `)`".to_string());
        }
        self.out.push(')');
        if let Some(number) = number {
            self.closed[number] = true;
        }
        self.depth -= 1;
        Ok(())
    }

    /// `\1` and on; more digits belong to the number as long as there are that many groups before.
    fn back_reference(&mut self) -> Parsed<()> {
        let mut group = 0;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            let longer = group * 10 + digit as usize;
            if group > 0 && longer > self.closed.len() {
                break;
            }
            group = longer;
            self.at += 1;
        }
        if group == 0 || !self.closed.get(group - 1).copied().unwrap_or(false) {
            return Err(format!("`\\{group}` refers to no group that ended before it"));
        }
        self.back_references = true;
        self.out.push_str(&format!("(?:\\{group})"));
        Ok(())
    }

    fn quantifier(&mut self) -> Parsed<()> {
        match self.peek() {
            Some(c @ ('?' | '*' | '+')) => {
                self.at += 1;
                self.out.push(c);
            }
            Some('{') => {
                self.at += 1;
                self.quantity()?;
            }
            _ => return Ok(()),
        }
        if self.options.dialect == Dialect::XPath && self.eat('?') {
            self.out.push('?');
        }
        match self.peek() {
            Some(c @ ('?' | '*' | '+' | '{')) => Err(format!("`{c}` after another quantifier")),
            _ => Ok(()),
        }
    }

    /// `{n}`, `{n,}` or `{n,m}`.
    fn quantity(&mut self) -> Parsed<()> {
        let minimum = self.digits()?;
        self.out.push_str(&format!("{{{minimum}"));
        if self.eat(',') {
            self.out.push(',');
            if self.peek() != Some('}') {
                let maximum = self.digits()?;
                if maximum < minimum {
                    return Err(format!("`{{{minimum},{maximum}}}` ends before it begins"));
                }
                self.out.push_str(&maximum.to_string());
            }
        }
        if !self.eat('}') {
            return Err("`{` without its `}`".to_string());
        }
        self.out.push('}');
        Ok(())
    }

    fn digits(&mut self) -> Parsed<u32> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        let text: String = self.rest[start..self.at].iter().collect();
        text.parse().map_err(|_| "a quantity is written `{n}`, `{n,}` or `{n,m}`".to_string())
    }
}

/// A character that stands for itself.
pub(super) fn push_literal(out: &mut String, c: char) {
    if c.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(c);
}
