//! The text of a query: where parameters stand in it, and the statement that a request makes of it.

use std::sync::Arc;

use penstock_engine::database::SqlValue;

use crate::sheet::SheetQuery;

/// What a query runs.
#[derive(Debug)]
pub enum Statement {
    /// SQL.
    Sql(SqlText),
    /// All rows of a file.
    Rows,
    /// Rows of a sheet of a workbook.
    Sheet(SheetQuery),
}

/// SQL, divided where parameters stand.
#[derive(Debug, Clone)]
pub struct SqlText {
    pieces: Vec<Piece>,
    kind: SqlKind,
}

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlKind {
    /// It selects.
    Select,
    /// `UPDATE`, whose optional parameters may be absent.
    Update,
    /// It calls a stored procedure.
    Call,
    /// Anything else.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// The index of a parameter.
    Place(usize),
}

/// The value of a parameter in a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum PlaceValue {
    /// It is bound.
    Bound(SqlValue),
    /// All are bound, with commas between them.
    List(Vec<SqlValue>),
    /// It is a part of the statement itself (`QUERY_STRING`).
    Text(Arc<str>),
    /// An assignment of an UPDATE that is left out.
    Absent,
    /// A place that a procedure writes.
    Written,
}

impl Statement {
    /// Whether it may change something.
    pub fn may_write(&self) -> bool {
        match self {
            Statement::Sql(sql) => sql.kind != SqlKind::Select,
            Statement::Rows | Statement::Sheet(_) => false,
        }
    }

    /// What it does.
    pub fn kind(&self) -> SqlKind {
        match self {
            Statement::Sql(sql) => sql.kind,
            Statement::Rows | Statement::Sheet(_) => SqlKind::Select,
        }
    }
}

impl SqlText {
    /// Divides a text. `names` are those of the parameters in the order of places without names.
    pub fn parse(text: &str, names: &[&str], is_call: bool) -> SqlText {
        let mut pieces = Vec::new();
        let mut current = String::new();
        let mut next_place = 0;
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            let opaque = opaque_length(rest);
            if opaque > 0 {
                current.push_str(&rest[..opaque]);
                rest = &rest[opaque..];
                continue;
            }
            let after = &rest[letter.len_utf8()..];
            let found = match letter {
                '?' => {
                    next_place += 1;
                    (next_place <= names.len()).then_some((next_place - 1, after))
                }
                ':' if !current.ends_with(':') => named(after, names),
                _ => None,
            };
            match found {
                Some((index, after)) => {
                    pieces.push(Piece::Text(std::mem::take(&mut current)));
                    pieces.push(Piece::Place(index));
                    rest = after;
                }
                None => {
                    current.push(letter);
                    rest = after;
                }
            }
        }
        pieces.push(Piece::Text(current));
        let kind = if is_call { SqlKind::Call } else { kind_of(text) };
        SqlText { pieces, kind }
    }

    /// The statement of a request, with the values of its places in order. Values of places that are only written are
    /// absent.
    pub fn statement(&self, value: &dyn Fn(usize) -> PlaceValue) -> (String, Vec<SqlValue>) {
        let mut sql = String::new();
        let mut values = Vec::new();
        let mut swallows_comma = false;
        for piece in &self.pieces {
            let index = match piece {
                Piece::Text(text) => {
                    let text = match text.trim_start().strip_prefix(',').filter(|_| swallows_comma) {
                        Some(rest) => rest,
                        None => text,
                    };
                    swallows_comma = false;
                    sql.push_str(text);
                    continue;
                }
                Piece::Place(index) => *index,
            };
            match value(index) {
                PlaceValue::Bound(value) => {
                    sql.push('?');
                    values.push(value);
                }
                PlaceValue::List(list) => {
                    for (index, value) in list.into_iter().enumerate() {
                        sql.push_str(if index == 0 { "?" } else { ",?" });
                        values.push(value);
                    }
                }
                PlaceValue::Text(text) => sql.push_str(&text),
                PlaceValue::Written => sql.push('?'),
                PlaceValue::Absent => swallows_comma = drop_assignment(&mut sql),
            }
        }
        (sql, values)
    }

    /// The parameters in the order of their places; one may stand in several.
    pub fn places(&self) -> impl Iterator<Item = usize> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Place(index) => Some(*index),
            Piece::Text(_) => None,
        })
    }
}

/// Removes `column =` from the end, with the comma before it; `true` when the comma after it has to go instead.
fn drop_assignment(sql: &mut String) -> bool {
    let Some(before) = sql.trim_end().strip_suffix('=') else { return false };
    let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '"' | '`' | '[' | ']');
    let before = before.trim_end().trim_end_matches(is_name).trim_end();
    let (length, swallows) = match before.strip_suffix(',') {
        Some(before) => (before.len(), false),
        None => (before.len(), true),
    };
    sql.truncate(length);
    sql.push(' ');
    swallows
}

/// The parameter whose name begins here, and what follows it.
fn named<'t>(text: &'t str, names: &[&str]) -> Option<(usize, &'t str)> {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len());
    let (name, after) = text.split_at(end);
    let index = names.iter().position(|known| known.eq_ignore_ascii_case(name))?;
    Some((index, after))
}

/// How many bytes of a quotation or comment begin here; 0 when none does.
fn opaque_length(text: &str) -> usize {
    let until = |opening: usize, closing: &str| {
        text[opening..].find(closing).map_or(text.len(), |at| opening + at + closing.len())
    };
    match text.as_bytes() {
        [b'\'', ..] => until(1, "'"),
        [b'"', ..] => until(1, "\""),
        [b'`', ..] => until(1, "`"),
        [b'-', b'-', ..] => until(2, "\n"),
        [b'/', b'*', ..] => until(2, "*/"),
        _ => 0,
    }
}

/// Words that begin prepared statements in Micro Integrator; what begins with another word is a call.
const STATEMENTS: [&str; 16] = [
    "select", "insert", "update", "delete", "create", "alter", "drop", "truncate", "merge", "with", "replace", "show",
    "grant", "revoke", "values", "set",
];

fn kind_of(text: &str) -> SqlKind {
    let mut rest = text.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '(');
    while rest.starts_with("--") || rest.starts_with("/*") {
        rest = rest[opaque_length(rest)..].trim_start();
    }
    let word = rest.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default().to_ascii_lowercase();
    match word.as_str() {
        "select" | "values" | "show" => SqlKind::Select,
        "update" => SqlKind::Update,
        "" if rest.starts_with('{') => SqlKind::Call,
        "call" | "exec" | "execute" => SqlKind::Call,
        "with" => {
            let lower = text.to_ascii_lowercase();
            let words =
                |word: &str| lower.split(|letter: char| !letter.is_ascii_alphabetic()).any(|found| found == word);
            if ["insert", "update", "delete"].into_iter().any(words) { SqlKind::Other } else { SqlKind::Select }
        }
        word if STATEMENTS.contains(&word) => SqlKind::Other,
        _ => SqlKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, names: &[&str], values: &[PlaceValue], expected: &str, count: usize) {
        let (sql, bound) = SqlText::parse(text, names, false).statement(&|index| values[index].clone());
        assert_eq!((sql.as_str(), bound.len()), (expected, count), "{text}");
    }

    fn number(number: i64) -> PlaceValue {
        PlaceValue::Bound(SqlValue::Integer(number))
    }

    #[test]
    fn places_are_found_outside_quotations() {
        check("select ? from t where a = ?", &["a", "b"], &[number(1), number(2)], "select ? from t where a = ?", 2);
        check(
            "select :B, ':a', x::a, :b -- :a\n",
            &["a", "b"],
            &[number(1), number(2)],
            "select ?, ':a', x::a, ? -- :a\n",
            2,
        );
        check("select :unknown", &["a"], &[number(1)], "select :unknown", 0);
        let list = PlaceValue::List(vec![SqlValue::Integer(1), SqlValue::Integer(2)]);
        check("x in (:ids)", &["ids"], &[list], "x in (?,?)", 2);
        check("select * from :t", &["t"], &[PlaceValue::Text("a".into())], "select * from a", 0);
    }

    #[test]
    fn assignments_of_absent_parameters_are_left_out() {
        let update = "update t set a=:a, b = :b where c=:c";
        let names = ["a", "b", "c"];
        check(update, &names, &[PlaceValue::Absent, number(2), number(3)], "update t set  b = ? where c=?", 2);
        check(update, &names, &[number(1), PlaceValue::Absent, number(3)], "update t set a=?  where c=?", 2);
    }

    #[test]
    fn statements_are_classified() {
        for (text, expected) in [
            (" (select 1)", SqlKind::Select),
            ("/* x */ with a as (select 1) select 2", SqlKind::Select),
            ("with a as (select 1) delete from b", SqlKind::Other),
            ("UPDATE a SET b=1", SqlKind::Update),
            ("{call a()}", SqlKind::Call),
            ("call a()", SqlKind::Call),
            ("insert into a values (1)", SqlKind::Other),
        ] {
            assert_eq!(kind_of(text), expected, "{text}");
        }
    }
}
