//! Conditions of controllers: the expressions that mean the same in JavaScript, JEXL and Groovy.
//!
//! Numbers, texts in quotes, `true` and `false`; `==`, `!=`, `<`, `<=`, `>`, `>=` between two of a kind; `+` and `-`
//! between numbers; `&&`, `||`, `!` and parentheses. Everything else is refused: the three languages differ in it, or
//! need their interpreters.
use std::fmt;

/// A value of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Truth(bool),
    Number(f64),
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Truth(truth) => truth.fmt(f),
            Value::Number(number) => number.fmt(f),
            Value::Text(text) => text.fmt(f),
        }
    }
}

/// Parentheses inside of parentheses; the evaluator recurses.
const DEPTH_MAX: usize = 64;

/// Evaluates an expression whose variables have been replaced by their values.
pub fn evaluate(text: &str) -> Result<Value, String> {
    let mut parser = Parser { rest: text, depth: 0 };
    let value = parser.or()?;
    parser.space();
    if parser.rest.is_empty() { Ok(value) } else { Err(format!("`{}` is not understood", parser.rest.trim_end())) }
}

/// The expression with a number for each variable that has no value yet.
pub fn with_numbers(text: &str) -> String {
    let (mut result, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((_, tail)) = after.split_once('}') else { break };
        result.push_str(before);
        result.push('1');
        rest = tail;
    }
    result + rest
}

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
}

impl Parser<'_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start();
        if let Some(rest) = self.rest.strip_prefix(';').filter(|rest| rest.trim().is_empty()) {
            self.rest = rest.trim();
        }
    }

    fn eat(&mut self, token: &str) -> bool {
        self.space();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn or(&mut self) -> Result<Value, String> {
        let mut left = self.and()?;
        while self.eat("||") {
            let right = self.and()?;
            left = Value::Truth(truth(&left)? | truth(&right)?);
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Value, String> {
        let mut left = self.comparison()?;
        while self.eat("&&") {
            let right = self.comparison()?;
            left = Value::Truth(truth(&left)? & truth(&right)?);
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Value, String> {
        let left = self.sum()?;
        // The longer operators stand before those they begin with.
        let operators = ["==", "!=", "<=", ">=", "<", ">"];
        let Some(operator) = operators.into_iter().find(|operator| self.eat(operator)) else { return Ok(left) };
        let right = self.sum()?;
        let ordering = match (&left, &right) {
            (Value::Number(left), Value::Number(right)) => left.partial_cmp(right),
            (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
            (Value::Truth(left), Value::Truth(right)) if matches!(operator, "==" | "!=") => Some(left.cmp(right)),
            _ => return Err(format!("`{left} {operator} {right}` compares two kinds of values")),
        };
        Ok(Value::Truth(match operator {
            "==" => ordering.is_some_and(std::cmp::Ordering::is_eq),
            "!=" => !ordering.is_some_and(std::cmp::Ordering::is_eq),
            "<=" => ordering.is_some_and(std::cmp::Ordering::is_le),
            ">=" => ordering.is_some_and(std::cmp::Ordering::is_ge),
            "<" => ordering.is_some_and(std::cmp::Ordering::is_lt),
            _ => ordering.is_some_and(std::cmp::Ordering::is_gt),
        }))
    }

    fn sum(&mut self) -> Result<Value, String> {
        let mut left = self.operand()?;
        loop {
            let sign = if self.eat("+") {
                1.0
            } else if self.eat("-") {
                -1.0
            } else {
                return Ok(left);
            };
            let right = self.operand()?;
            left = match (left, right) {
                (Value::Number(left), Value::Number(right)) => Value::Number(left + sign * right),
                _ => return Err("only numbers are added and subtracted".to_owned()),
            };
        }
    }

    fn operand(&mut self) -> Result<Value, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("parentheses are nested too deep".to_owned());
        }
        let value = self.operand_within();
        self.depth -= 1;
        value
    }

    fn operand_within(&mut self) -> Result<Value, String> {
        if self.eat("!") {
            let value = self.operand()?;
            return Ok(Value::Truth(!truth(&value)?));
        }
        if self.eat("(") {
            let value = self.or()?;
            return if self.eat(")") { Ok(value) } else { Err("a parenthesis is not closed".to_owned()) };
        }
        self.space();
        if let Some(quote @ ('"' | '\'')) = self.rest.chars().next() {
            let (text, rest) = self.rest[1..].split_once(quote).ok_or("a quote is not closed")?;
            if text.contains('\\') {
                return Err("a backslash in a text is not supported".to_owned());
            }
            self.rest = rest;
            return Ok(Value::Text(text.to_owned()));
        }
        let end = self.rest.find(|letter: char| !letter.is_alphanumeric() && letter != '.' && letter != '_');
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        let value = match word {
            "true" => Value::Truth(true),
            "false" => Value::Truth(false),
            _ if word.starts_with(|letter: char| letter.is_ascii_digit()) => {
                Value::Number(word.parse().map_err(|_| format!("`{word}` is not a number"))?)
            }
            _ if self.rest.starts_with('-') && !self.rest.starts_with("--") => {
                self.rest = &self.rest[1..];
                return match self.operand()? {
                    Value::Number(number) => Ok(Value::Number(-number)),
                    _ => Err("only numbers have a sign".to_owned()),
                };
            }
            _ if self.rest.is_empty() => return Err("it ends too early".to_owned()),
            _ => return Err(format!("`{}` is not understood", self.rest.trim_end())),
        };
        self.rest = rest;
        Ok(value)
    }
}

fn truth(value: &Value) -> Result<bool, String> {
    match value {
        Value::Truth(truth) => Ok(*truth),
        other => Err(format!("`{other}` is neither true nor false")),
    }
}
