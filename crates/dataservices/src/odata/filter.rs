//! `$filter` and `$orderby` as SQL. Names are checked against the table, values are bound.

use penstock_engine::database::{Dialect, SqlValue};

use super::Refusal;
use super::catalog::Table;

/// A longer text is no query that a person or a tool writes.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// Parentheses inside parentheses.
const DEPTH_MAX: usize = 64;

/// A part of a statement with its values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fragment {
    /// The text.
    pub sql: String,
    /// The values of its places.
    pub values: Vec<SqlValue>,
}

impl Fragment {
    fn text(sql: impl Into<String>) -> Fragment {
        Fragment { sql: sql.into(), values: Vec::new() }
    }

    fn value(value: SqlValue) -> Fragment {
        Fragment { sql: "?".to_owned(), values: vec![value] }
    }

    /// A text with a `{}` for each part.
    fn join(pattern: &str, parts: &[&Fragment]) -> Fragment {
        let mut out = Fragment::default();
        let mut pieces = pattern.split("{}");
        out.sql.push_str(pieces.next().unwrap_or_default());
        for (part, piece) in parts.iter().zip(pieces) {
            out.sql.push_str(&part.sql);
            out.values.extend(part.values.iter().cloned());
            out.sql.push_str(piece);
        }
        out
    }
}

/// Reads `$filter`.
pub fn filter(text: &str, table: &Table, dialect: Dialect) -> Result<Fragment, Refusal> {
    let mut parser = Parser::new(text, table, dialect)?;
    let found = parser.or(0)?;
    parser.end()?;
    Ok(found)
}

/// Reads `$orderby`.
pub fn order(text: &str, table: &Table, dialect: Dialect) -> Result<Fragment, Refusal> {
    let mut parser = Parser::new(text, table, dialect)?;
    let mut out = Fragment::default();
    loop {
        let key = parser.or(0)?;
        let direction = match parser.next_word() {
            Some("desc") => " DESC",
            Some("asc") | None => "",
            Some(other) => return Err(Refusal::invalid(format!("`{other}` is neither asc nor desc"))),
        };
        let separator = if out.sql.is_empty() { "" } else { ", " };
        out = Fragment::join(&format!("{{}}{separator}{{}}{direction}"), &[&out, &key]);
        if !parser.eat(&Token::Comma) {
            break;
        }
    }
    parser.end()?;
    Ok(out)
}

#[derive(Debug, Clone, PartialEq)]
enum Token<'t> {
    Word(&'t str),
    Text(String),
    Number(&'t str),
    Open,
    Close,
    Comma,
}

struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    at: usize,
    table: &'t Table,
    dialect: Dialect,
}

fn tokens(text: &str) -> Result<Vec<Token<'_>>, Refusal> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(letter) = rest.chars().next() {
        let length = match letter {
            '(' | ')' | ',' => {
                tokens.push(match letter {
                    '(' => Token::Open,
                    ')' => Token::Close,
                    _ => Token::Comma,
                });
                1
            }
            '\'' => {
                let (value, length) = quotation(rest)?;
                tokens.push(Token::Text(value));
                length
            }
            _ => {
                let is_part = |letter: char| letter.is_alphanumeric() || "_.$:/+-".contains(letter);
                let length = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
                if length == 0 {
                    return Err(Refusal::invalid(format!("`{letter}` is not expected")));
                }
                let word = &rest[..length];
                let is_number = word.trim_start_matches('-').starts_with(|first: char| first.is_ascii_digit());
                tokens.push(if is_number { Token::Number(word) } else { Token::Word(word) });
                length
            }
        };
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// A text in quotes, in which a doubled quote is one, and its length with the quotes.
pub fn quotation(text: &str) -> Result<(String, usize), Refusal> {
    let mut value = String::new();
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\'' if letters.peek().is_some_and(|(_, next)| *next == '\'') => {
                value.push('\'');
                letters.next();
            }
            '\'' => return Ok((value, at + 1)),
            other => value.push(other),
        }
    }
    Err(Refusal::invalid("a text has no closing quote"))
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, table: &'t Table, dialect: Dialect) -> Result<Parser<'t>, Refusal> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(Refusal::invalid(format!("an expression is longer than {TEXT_BYTES_MAX} bytes")));
        }
        Ok(Parser { tokens: tokens(text)?, at: 0, table, dialect })
    }

    fn peek_word(&self) -> Option<&'t str> {
        match self.tokens.get(self.at) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn next_word(&mut self) -> Option<&'t str> {
        let word = self.peek_word()?;
        self.at += 1;
        Some(word)
    }

    fn eat(&mut self, token: &Token<'_>) -> bool {
        let is_there = self.tokens.get(self.at) == Some(token);
        self.at += usize::from(is_there);
        is_there
    }

    fn end(&self) -> Result<(), Refusal> {
        match self.tokens.get(self.at) {
            None => Ok(()),
            Some(token) => Err(Refusal::invalid(format!("{token:?} is not expected"))),
        }
    }

    fn or(&mut self, depth: usize) -> Result<Fragment, Refusal> {
        if depth > DEPTH_MAX {
            return Err(Refusal::invalid(format!("parentheses are nested deeper than {DEPTH_MAX}")));
        }
        let mut left = self.and(depth)?;
        while self.peek_word() == Some("or") {
            self.at += 1;
            left = Fragment::join("({} OR {})", &[&left, &self.and(depth)?]);
        }
        Ok(left)
    }

    fn and(&mut self, depth: usize) -> Result<Fragment, Refusal> {
        let mut left = self.comparison(depth)?;
        while self.peek_word() == Some("and") {
            self.at += 1;
            left = Fragment::join("({} AND {})", &[&left, &self.comparison(depth)?]);
        }
        Ok(left)
    }

    fn comparison(&mut self, depth: usize) -> Result<Fragment, Refusal> {
        if self.peek_word() == Some("not") {
            self.at += 1;
            return Ok(Fragment::join("(NOT {})", &[&self.operand(depth + 1)?]));
        }
        let left = self.sum(depth)?;
        let operator = match self.peek_word() {
            Some("eq") => "=",
            Some("ne") => "<>",
            Some("gt") => ">",
            Some("ge") => ">=",
            Some("lt") => "<",
            Some("le") => "<=",
            Some("has" | "in") => return Err(Refusal::unsupported("`has` and `in`")),
            _ => return Ok(left),
        };
        self.at += 1;
        if self.peek_word() == Some("null") {
            self.at += 1;
            return match operator {
                "=" => Ok(Fragment::join("({} IS NULL)", &[&left])),
                "<>" => Ok(Fragment::join("({} IS NOT NULL)", &[&left])),
                _ => Err(Refusal::invalid("null is compared by `eq` and `ne` only")),
            };
        }
        Ok(Fragment::join(&format!("({{}} {operator} {{}})"), &[&left, &self.sum(depth)?]))
    }

    fn sum(&mut self, depth: usize) -> Result<Fragment, Refusal> {
        let mut left = self.product(depth)?;
        loop {
            let operator = match self.peek_word() {
                Some("add") => "+",
                Some("sub") => "-",
                _ => return Ok(left),
            };
            self.at += 1;
            left = Fragment::join(&format!("({{}} {operator} {{}})"), &[&left, &self.product(depth)?]);
        }
    }

    fn product(&mut self, depth: usize) -> Result<Fragment, Refusal> {
        let mut left = self.operand(depth)?;
        loop {
            let operator = match self.peek_word() {
                Some("mul") => "*",
                Some("div") => "/",
                Some("mod") => "%",
                _ => return Ok(left),
            };
            self.at += 1;
            left = Fragment::join(&format!("({{}} {operator} {{}})"), &[&left, &self.operand(depth)?]);
        }
    }

    fn operand(&mut self, depth: usize) -> Result<Fragment, Refusal> {
        let token = self.tokens.get(self.at).cloned().ok_or_else(|| Refusal::invalid("the expression ends early"))?;
        self.at += 1;
        match token {
            Token::Open => {
                let inner = self.or(depth + 1)?;
                if !self.eat(&Token::Close) {
                    return Err(Refusal::invalid("a parenthesis is not closed"));
                }
                Ok(inner)
            }
            Token::Text(text) => Ok(Fragment::value(SqlValue::Text(text.into()))),
            Token::Number(number) => Ok(Fragment::value(number_value(number))),
            Token::Word("true") => Ok(Fragment::value(SqlValue::Boolean(true))),
            Token::Word("false") => Ok(Fragment::value(SqlValue::Boolean(false))),
            Token::Word("null") => Ok(Fragment::value(SqlValue::Null)),
            Token::Word(word) if self.eat(&Token::Open) => {
                let mut arguments = Vec::new();
                while !self.eat(&Token::Close) {
                    arguments.push(self.or(depth + 1)?);
                    if !self.eat(&Token::Comma) && self.tokens.get(self.at) != Some(&Token::Close) {
                        return Err(Refusal::invalid(format!("the arguments of `{word}` are not closed")));
                    }
                }
                self.function(word, &arguments.iter().collect::<Vec<_>>())
            }
            Token::Word(word) if word.contains('/') => Err(Refusal::unsupported("paths in expressions")),
            Token::Word(word) => match self.table.column(word) {
                Some(column) => Ok(Fragment::text(column.quoted())),
                None => Err(Refusal::invalid(format!("the entity `{}` has no property `{word}`", self.table.name))),
            },
            Token::Close | Token::Comma => Err(Refusal::invalid(format!("{token:?} is not expected"))),
        }
    }

    fn function(&self, name: &str, arguments: &[&Fragment]) -> Result<Fragment, Refusal> {
        let (is_sqlite, is_mysql) = (self.dialect == Dialect::Sqlite, self.dialect == Dialect::Mysql);
        let position = if self.dialect == Dialect::Postgres { "strpos({}, {})" } else { "instr({}, {})" };
        // MySQL's `length` counts bytes.
        let length = if is_mysql { "char_length" } else { "length" };
        let part_of_time = |sqlite: &str, name: &str| match is_sqlite {
            true => format!("CAST(strftime('%{sqlite}', {{}}) AS INTEGER)"),
            false => format!("EXTRACT({name} FROM {{}})"),
        };
        let pattern = match (name, arguments) {
            ("contains", [_, _]) => format!("({position} > 0)"),
            ("indexof", [_, _]) => format!("({position} - 1)"),
            ("startswith", [text, start]) => {
                let pattern = format!("(substr({{}}, 1, {length}({{}})) = {{}})");
                return Ok(Fragment::join(&pattern, &[text, start, start]));
            }
            ("endswith", [text, end]) => {
                let pattern = "({length}({}) >= {length}({}) AND substr({}, {length}({}) - {length}({}) + 1) = {})";
                let pattern = pattern.replace("{length}", length);
                return Ok(Fragment::join(&pattern, &[text, end, text, text, end, end]));
            }
            ("length", [_]) => format!("{length}({{}})"),
            ("substring", [_, _]) => "substr({}, {} + 1)".to_owned(),
            ("substring", [_, _, _]) => "substr({}, {} + 1, {})".to_owned(),
            ("tolower", [_]) => "lower({})".to_owned(),
            ("toupper", [_]) => "upper({})".to_owned(),
            ("trim", [_]) => "trim({})".to_owned(),
            ("concat", [_, _]) if is_mysql => "concat({}, {})".to_owned(),
            ("concat", [_, _]) => "({} || {})".to_owned(),
            ("year", [_]) => part_of_time("Y", "YEAR"),
            ("month", [_]) => part_of_time("m", "MONTH"),
            ("day", [_]) => part_of_time("d", "DAY"),
            ("hour", [_]) => part_of_time("H", "HOUR"),
            ("minute", [_]) => part_of_time("M", "MINUTE"),
            ("second", [_]) => part_of_time("S", "SECOND"),
            ("round", [_]) => "round({})".to_owned(),
            ("floor", [_]) => "floor({})".to_owned(),
            ("ceiling", [_]) => "ceil({})".to_owned(),
            (other, _) => return Err(Refusal::unsupported(&format!("the function `{other}` with such arguments"))),
        };
        Ok(Fragment::join(&pattern, arguments))
    }
}

fn number_value(text: &str) -> SqlValue {
    if let Ok(number) = text.parse::<i64>() {
        return SqlValue::Integer(number);
    }
    match text.parse::<f64>() {
        Ok(number) => SqlValue::Double(number),
        // A date, a time or a timestamp.
        Err(_) => SqlValue::Temporal(crate::temporal::to_database(text, text.contains('T')).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalog::Column;
    use super::*;

    fn table() -> Table {
        let column = |name: &str| Column {
            name: name.into(),
            kind: "TEXT".into(),
            is_nullable: true,
            key_position: 0,
            dialect: Dialect::Sqlite,
        };
        let columns = vec![column("NAME"), column("A"), column("od\"d")];
        Table { name: "T".into(), columns, dialect: Dialect::Sqlite, links: Vec::new() }
    }

    #[test]
    fn filters_become_conditions() {
        for (text, expected, count) in [
            ("NAME eq 'O''Neil'", "(\"NAME\" = ?)", 1),
            ("A gt 1 and A lt 2.5 or not (A eq null)", "(((\"A\" > ?) AND (\"A\" < ?)) OR (NOT (\"A\" IS NULL)))", 2),
            ("A add 1 mul 2 ne -3", "((\"A\" + (? * ?)) <> ?)", 3),
            ("contains(NAME,'x')", "(instr(\"NAME\", ?) > 0)", 1),
            ("startswith(tolower(NAME), 'x')", "(substr(lower(\"NAME\"), 1, length(?)) = ?)", 2),
            ("year(A) ge 2003-01-06", "(CAST(strftime('%Y', \"A\") AS INTEGER) >= ?)", 1),
        ] {
            let found = filter(text, &table(), Dialect::Sqlite).unwrap();
            assert_eq!((found.sql.as_str(), found.values.len()), (expected, count), "{text}");
        }
        let found = order("length(NAME) desc,A", &table(), Dialect::Postgres).unwrap();
        assert_eq!(found.sql, "length(\"NAME\") DESC, \"A\"");
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        for text in
            ["", "B eq 1", "A eq", "A eq 'x", "(A eq 1", "A eq 1)", "A; drop table t", "foo(A)", "A/b eq 1", "A in (1)"]
        {
            assert!(filter(text, &table(), Dialect::Sqlite).is_err(), "{text}");
        }
        assert!(filter(&"(".repeat(1000), &table(), Dialect::Sqlite).is_err());
    }
}
