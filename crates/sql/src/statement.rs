//! The text of a statement: where it is divided and where values go.

use std::collections::HashMap;
use std::sync::Arc;

use penstock_engine::database::{DatabaseError, DatabaseErrorKind};

/// One statement of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatementPart {
    /// Its text, with numbered placeholders.
    pub text: String,
    /// How many values it takes.
    pub places: usize,
}

/// How a database writes the places of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Places {
    /// `?`
    QuestionMarks,
    /// `$1`, `$2`
    Numbered,
}

/// Divides a text at its semicolons and finds the places of values. What stands in quotes and comments is left alone.
pub(crate) fn divide(sql: &str, places: Places) -> Vec<StatementPart> {
    let mut parts = Vec::new();
    let mut current = StatementPart { text: String::new(), places: 0 };
    let mut rest = sql;
    while let Some(next) = rest.chars().next() {
        let opaque = opaque_length(rest);
        if opaque > 0 {
            let (before, after) = rest.split_at(opaque);
            current.text.push_str(before);
            rest = after;
            continue;
        }
        match next {
            ';' => finish(&mut parts, &mut current),
            '?' => {
                current.places += 1;
                match places {
                    Places::QuestionMarks => current.text.push('?'),
                    Places::Numbered => current.text.push_str(&format!("${}", current.places)),
                }
            }
            other => current.text.push(other),
        }
        rest = &rest[next.len_utf8()..];
    }
    finish(&mut parts, &mut current);
    parts
}

fn finish(parts: &mut Vec<StatementPart>, current: &mut StatementPart) {
    let part = std::mem::replace(current, StatementPart { text: String::new(), places: 0 });
    let text = part.text.trim();
    if !text.is_empty() {
        parts.push(StatementPart { text: text.to_owned(), places: part.places });
    }
}

/// Divided texts that a connection keeps: the statements of a configuration, of which there are rarely dozens.
const TEXTS_MAX: usize = 256;

/// The statements of texts, each text divided once.
pub(crate) struct Texts {
    places: Places,
    known: HashMap<Arc<str>, Arc<[StatementPart]>>,
}

impl Texts {
    pub(crate) fn new(places: Places) -> Texts {
        Texts { places, known: HashMap::new() }
    }

    pub(crate) fn parts(&mut self, sql: &Arc<str>) -> Arc<[StatementPart]> {
        if let Some(parts) = self.known.get(sql) {
            return parts.clone();
        }
        let parts: Arc<[StatementPart]> = divide(sql, self.places).into();
        if self.known.len() >= TEXTS_MAX {
            self.known.clear();
        }
        self.known.insert(sql.clone(), parts.clone());
        parts
    }
}

pub(crate) fn too_few() -> DatabaseError {
    DatabaseError::new(DatabaseErrorKind::Refused, "the statement has more places for values than there are parameters")
}

pub(crate) fn too_many() -> DatabaseError {
    DatabaseError::new(DatabaseErrorKind::Refused, "there are more parameters than the statement has places for values")
}

/// An INSERT that returns the keys it generates: the named columns, or what the database has for them. Names of columns
/// are those of the artifact.
pub(crate) fn with_returning(insert: &str, columns: &[Arc<str>], otherwise: &str) -> String {
    let has_returning = insert.to_ascii_lowercase().split_whitespace().any(|word| word == "returning");
    match columns {
        _ if has_returning || only_reads(insert) => insert.to_owned(),
        [] => format!("{insert} RETURNING {otherwise}"),
        columns => format!("{insert} RETURNING {}", columns.join(", ")),
    }
}

/// Whether a statement selects rows and changes nothing.
pub(crate) fn is_selection(statement: &str) -> bool {
    only_reads(statement) && !statement.trim_start().to_ascii_lowercase().starts_with("explain")
}

/// Whether a text may change something. One that only seems to is answered no worse.
pub(crate) fn may_write(sql: &str) -> bool {
    divide(sql, Places::QuestionMarks).iter().any(|part| !only_reads(&part.text))
}

fn only_reads(statement: &str) -> bool {
    let start = |text| str::trim_start_matches(text, |letter: char| letter == '(' || letter.is_whitespace());
    let mut rest = start(statement);
    while rest.starts_with("--") || rest.starts_with("/*") {
        rest = start(&rest[opaque_length(rest)..]);
    }
    let mut words = rest.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let is = |word: &str, names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
    match words.next() {
        Some(first) if is(first, &["select", "values", "explain"]) => true,
        Some(first) if is(first, &["with"]) => !words.any(|word| is(word, &["insert", "update", "delete", "replace"])),
        _ => false,
    }
}

/// How many bytes of a quotation or comment begin here; 0 when none does.
fn opaque_length(text: &str) -> usize {
    let until = |opening: usize, closing: &str| {
        text[opening..].find(closing).map_or(text.len(), |at| opening + at + closing.len())
    };
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        // A doubled quote inside ends one quotation and begins the next, which comes to the same.
        (Some('\''), _) => until(1, "'"),
        (Some('"'), _) => until(1, "\""),
        (Some('`'), _) => until(1, "`"),
        (Some('-'), Some('-')) => until(2, "\n"),
        (Some('/'), Some('*')) => until(2, "*/"),
        (Some('$'), _) => match text[1..].find('$') {
            Some(end) if text[1..=end].bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_') => {
                let tag = &text[..end + 2];
                until(tag.len(), tag)
            }
            _ => 0,
        },
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sql: &str, expected: &[(&str, usize)]) {
        let found = divide(sql, Places::Numbered);
        let found: Vec<(&str, usize)> = found.iter().map(|part| (part.text.as_str(), part.places)).collect();
        assert_eq!(found, expected, "{sql}");
    }

    #[test]
    fn statements_that_only_read_are_known() {
        for (sql, writes) in [
            ("select 1", false),
            (" /* all */ -- of\n(SELECT a FROM b) ; ", false),
            ("SELECT 1; DELETE FROM a", true),
            ("with t as (select 1) select * from t", false),
            ("WITH t AS (SELECT 1) INSERT INTO a SELECT * FROM t", true),
            ("insert into a values ('select')", true),
            ("begin", true),
            ("", false),
        ] {
            assert_eq!(may_write(sql), writes, "{sql}");
        }
    }

    #[test]
    fn statements_are_divided_and_places_numbered() {
        check("select 1", &[("select 1", 0)]);
        check(" insert into a values (?, ?); ", &[("insert into a values ($1, $2)", 2)]);
        check("delete from a; delete from b where c = ?;", &[("delete from a", 0), ("delete from b where c = $1", 1)]);
        check("select 'a;b?', \"c?\" , ?", &[("select 'a;b?', \"c?\" , $1", 1)]);
        check("select 'it''s ?' -- what?\n, ?", &[("select 'it''s ?' -- what?\n, $1", 1)]);
        check("select /* ; ? */ ?", &[("select /* ; ? */ $1", 1)]);
        check("do $x$ begin; ? end $x$; select ?", &[("do $x$ begin; ? end $x$", 0), ("select $1", 1)]);
        check("select 'open ;", &[("select 'open ;", 0)]);
        check(";;", &[]);
        assert_eq!(divide("select ?, ?", Places::QuestionMarks)[0].text, "select ?, ?");
    }
}
