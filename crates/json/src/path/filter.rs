//! Filters: conditions on `@`.

use serde_json::Value;

use super::PathError;
use super::ast::{Call, Condition, Filter, Operand, Operator, Query, is_singular};
use super::parser::Parser;
use super::pattern::Pattern;

/// Longest first, so that `<=` is not read as `<`.
const SYMBOLS: [(&str, Operator, bool); 9] = [
    ("===", Operator::Equal, false),
    ("!==", Operator::NotEqual, false),
    ("==", Operator::Equal, true),
    ("!=", Operator::NotEqual, true),
    ("<=", Operator::LessOrEqual, true),
    (">=", Operator::GreaterOrEqual, true),
    ("=~", Operator::Matches, false),
    ("<", Operator::Less, true),
    (">", Operator::Greater, true),
];

const WORDS: [(&str, Operator); 10] = [
    ("in", Operator::In),
    ("nin", Operator::NotIn),
    ("subsetof", Operator::SubsetOf),
    ("anyof", Operator::AnyOf),
    ("noneof", Operator::NoneOf),
    ("all", Operator::AllOf),
    ("size", Operator::Size),
    ("empty", Operator::Empty),
    ("contains", Operator::Contains),
    ("type", Operator::Type),
];

impl Parser<'_> {
    pub fn filter(&mut self) -> Result<Filter, PathError> {
        self.or().map(Filter)
    }

    fn or(&mut self) -> Result<Condition, PathError> {
        let mut parts = vec![self.and()?];
        while self.eat_logical("||", "or") {
            parts.push(self.and()?);
        }
        Ok(one_or(parts, Condition::Or))
    }

    fn and(&mut self) -> Result<Condition, PathError> {
        let mut parts = vec![self.basic()?];
        while self.eat_logical("&&", "and") {
            parts.push(self.basic()?);
        }
        Ok(one_or(parts, Condition::And))
    }

    fn eat_logical(&mut self, symbol: &str, word: &str) -> bool {
        self.space();
        let found = self.eat(symbol) || (!self.strict() && self.eat_word(word));
        if found {
            self.space();
        }
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let length = self.rest().bytes().take_while(u8::is_ascii_alphabetic).count();
        let found = self.rest()[..length].eq_ignore_ascii_case(word);
        if found {
            self.at += length;
        }
        found
    }

    fn basic(&mut self) -> Result<Condition, PathError> {
        self.enter()?;
        let condition = if self.peek() == Some('!') {
            self.at += 1;
            self.space();
            let inner = if self.peek() == Some('(') { self.parentheses()? } else { self.test()? };
            Condition::Not(Box::new(inner))
        } else if self.peek() == Some('(') {
            self.parentheses()?
        } else {
            self.test_or_comparison()?
        };
        self.leave();
        Ok(condition)
    }

    fn parentheses(&mut self) -> Result<Condition, PathError> {
        let opened = self.at;
        self.at += 1;
        self.space();
        let condition = self.or()?;
        self.space();
        if !self.eat(")") {
            return Err(PathError { message: "`(` is never closed".into(), span: opened..opened + 1 });
        }
        Ok(condition)
    }

    fn test(&mut self) -> Result<Condition, PathError> {
        let start = self.at;
        let operand = self.operand()?;
        self.as_test(operand, start)
    }

    fn as_test(&self, operand: Operand, start: usize) -> Result<Condition, PathError> {
        let wrong = |message: &str| PathError { message: message.to_owned(), span: start..self.at };
        match operand {
            Operand::Query(query) if query.function.is_none() => Ok(Condition::Exists(query)),
            Operand::Call(call) if matches!(*call, Call::Match(..) | Call::Search(..)) => {
                Ok(Condition::Truth(Operand::Call(call)))
            }
            Operand::Call(_) if self.strict() => Err(wrong("the function's value must be compared with something")),
            Operand::Literal(_) | Operand::Pattern(_) if self.strict() => {
                Err(wrong("a literal must be compared with something"))
            }
            other => Ok(Condition::Truth(other)),
        }
    }

    fn test_or_comparison(&mut self) -> Result<Condition, PathError> {
        let start = self.at;
        let left = self.operand()?;
        let end = self.at;
        self.space();
        let Some(operator) = self.operator() else {
            self.at = end;
            return self.as_test(left, start);
        };
        self.comparable(&left, start..end)?;
        self.space();
        let start = self.at;
        let right = self.operand()?;
        self.comparable(&right, start..self.at)?;
        Ok(Condition::Compare(left, operator, right))
    }

    fn operator(&mut self) -> Option<Operator> {
        let strict = self.strict();
        for (symbol, operator, standard) in SYMBOLS {
            if (standard || !strict) && self.eat(symbol) {
                return Some(operator);
            }
        }
        if strict {
            return None;
        }
        WORDS.into_iter().find(|(word, _)| self.eat_word(word)).map(|(_, operator)| operator)
    }

    /// Only what yields one value can be compared (RFC 9535 §2.3.5.1).
    fn comparable(&self, operand: &Operand, span: std::ops::Range<usize>) -> Result<(), PathError> {
        let message = match operand {
            _ if !self.strict() => return Ok(()),
            Operand::Query(query) if !query.singular => "only a path of names and indexes can be compared",
            Operand::Call(call) if matches!(**call, Call::Match(..) | Call::Search(..)) => {
                "the function is a condition, not a value to compare"
            }
            _ => return Ok(()),
        };
        Err(PathError { message: message.into(), span })
    }

    fn operand(&mut self) -> Result<Operand, PathError> {
        if let Some(resolve) = &mut self.resolve
            && !self.text[self.at..].starts_with(['@', '\'', '"', '-', '/'])
            && let Some((length, parameter)) = resolve.resolve(&self.text[self.at..], self.at)?
        {
            self.at += length;
            return Ok(Operand::Parameter(parameter));
        }
        match self.peek() {
            Some('@' | '$') => return self.query().map(Operand::Query),
            Some('/') if !self.strict() => return self.pattern().map(Operand::Pattern),
            _ => {}
        }
        if let Some(value) = self.literal()? {
            return Ok(Operand::Literal(value));
        }
        self.call()
    }

    fn query(&mut self) -> Result<Query, PathError> {
        let from_root = self.peek() == Some('$');
        self.at += 1;
        let (segments, function) = self.segments()?;
        let singular = is_singular(&segments);
        Ok(Query { from_root, segments, function, singular })
    }

    fn pattern(&mut self) -> Result<Pattern, PathError> {
        let start = self.at;
        let mut escaped = false;
        let end = self.rest().char_indices().skip(1).find(|(_, character)| {
            let closes = *character == '/' && !escaped;
            escaped = *character == '\\' && !escaped;
            closes
        });
        let Some((end, _)) = end else {
            return Err(PathError { message: "the regular expression is never closed".into(), span: start..start + 1 });
        };
        let source = self.rest()[1..end].replace("\\/", "/");
        self.at += end + 1;
        let flags = self.rest().bytes().take_while(u8::is_ascii_alphabetic).count();
        let pattern = Pattern::literal(&source, &self.rest()[..flags])
            .map_err(|message| PathError { message, span: start..self.at })?;
        self.at += flags;
        Ok(pattern)
    }

    fn call(&mut self) -> Result<Operand, PathError> {
        let start = self.at;
        let length = self
            .rest()
            .bytes()
            .enumerate()
            .take_while(|(index, byte)| {
                byte.is_ascii_lowercase() || (*index > 0 && (byte.is_ascii_digit() || *byte == b'_'))
            })
            .count();
        let name = &self.rest()[..length];
        if length == 0 || !self.rest()[length..].starts_with('(') {
            return Err(self.error("`@`, `$`, a literal or a function is expected here"));
        }
        self.at += length + 1;
        self.enter()?;
        let mut arguments = Vec::new();
        while self.argument_follows(arguments.is_empty())? {
            arguments.push(self.operand()?);
        }
        self.leave();
        let call = self.checked_call(name, arguments);
        call.map(|call| Operand::Call(Box::new(call))).map_err(|message| PathError { message, span: start..self.at })
    }

    fn argument_follows(&mut self, first: bool) -> Result<bool, PathError> {
        self.space();
        if self.eat(")") {
            return Ok(false);
        }
        if !first && !self.eat(",") {
            return Err(self.error("`,` or `)` is expected here"));
        }
        self.space();
        Ok(true)
    }

    /// Arguments of the right number and type (RFC 9535 §2.4.3).
    fn checked_call(&self, name: &str, arguments: Vec<Operand>) -> Result<Call, String> {
        let count = arguments.len();
        let mut arguments = arguments.into_iter();
        match (name, count, arguments.next(), arguments.next()) {
            ("length", 1, Some(value), _) => Ok(Call::Length(self.value_argument(name, value)?)),
            ("count", 1, Some(Operand::Query(query)), _) => Ok(Call::Count(query)),
            ("value", 1, Some(Operand::Query(query)), _) => Ok(Call::Value(query)),
            ("count" | "value", 1, ..) => Err(format!("the argument of `{name}` is a path")),
            ("match" | "search", 2, Some(text), Some(pattern)) => {
                let text = self.value_argument(name, text)?;
                let pattern = compiled(self.value_argument(name, pattern)?, name == "match");
                Ok(if name == "match" { Call::Match(text, pattern) } else { Call::Search(text, pattern) })
            }
            ("length" | "count" | "value" | "match" | "search", ..) => {
                Err(format!("`{name}` has the wrong number of arguments"))
            }
            _ => Err(format!("unknown function `{name}`")),
        }
    }

    fn value_argument(&self, name: &str, operand: Operand) -> Result<Operand, String> {
        match &operand {
            Operand::Query(query) if !query.singular => {
                Err(format!("an argument of `{name}` is one value, and the path may find several"))
            }
            Operand::Call(call) if matches!(**call, Call::Match(..) | Call::Search(..)) => {
                Err(format!("an argument of `{name}` is a value, not a condition"))
            }
            _ => Ok(operand),
        }
    }
}

/// Compiles a literal pattern once. One that does not compile matches nothing, as RFC 9535 §2.4.6 wants.
fn compiled(operand: Operand, whole: bool) -> Operand {
    match &operand {
        Operand::Literal(Value::String(source)) => {
            Pattern::interoperable(source, whole).map_or(operand, Operand::Pattern)
        }
        _ => operand,
    }
}

fn one_or(mut parts: Vec<Condition>, combine: fn(Vec<Condition>) -> Condition) -> Condition {
    if parts.len() == 1 { parts.remove(0) } else { combine(parts) }
}
