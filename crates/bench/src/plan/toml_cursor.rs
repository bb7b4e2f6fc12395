//! Reading a TOML file so that every mistake is reported with its place, and nothing is silently ignored.
use crate::command::parse_duration;
use std::cell::RefCell;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The text of a file and the mistakes found in it.
pub struct TomlSource<'a> {
    name: &'a str,
    text: &'a str,
    mistakes: RefCell<Vec<String>>,
}

impl<'a> TomlSource<'a> {
    /// `name` is what messages call the file.
    pub fn new(name: &'a str, text: &'a str) -> Self {
        TomlSource { name, text, mistakes: RefCell::default() }
    }

    /// Notes a mistake at a position of the text.
    pub fn mistake(&self, at: usize, message: &str) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        self.mistakes.borrow_mut().push(format!("{}:{line}:{column}: {message}", self.name));
    }

    /// All mistakes, in the order they were found.
    pub fn into_mistakes(self) -> Vec<String> {
        self.mistakes.into_inner()
    }
}

/// A table of the file that records which keys were read.
pub struct Cursor<'a> {
    source: &'a TomlSource<'a>,
    what: &'a str,
    at: usize,
    table: &'a DeTable<'a>,
    known: RefCell<Vec<&'static str>>,
}

impl<'a> Cursor<'a> {
    /// `what` names the table in messages; `at` is where it starts.
    pub fn new(source: &'a TomlSource<'a>, what: &'a str, at: usize, table: &'a DeTable<'a>) -> Self {
        Cursor { source, what, at, table, known: RefCell::default() }
    }

    /// Notes a mistake about the table as a whole.
    pub fn mistake(&self, message: &str) {
        self.source.mistake(self.at, message);
    }

    /// Notes a mistake about the value of a key.
    pub fn mistake_at(&self, key: &str, message: &str) {
        let at = self.table.get(key).map_or(self.at, |value| value.span().start);
        self.source.mistake(at, message);
    }

    fn value(&self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.known.borrow_mut().push(key);
        self.table.get(key)
    }

    fn wrong<T>(&self, key: &str, value: &Spanned<DeValue<'_>>, expected: &str) -> Option<T> {
        self.source.mistake(value.span().start, &format!("`{key}` must be {expected}"));
        None
    }

    /// A text.
    pub fn text(&self, key: &'static str) -> Option<String> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            _ => self.wrong(key, value, "a text in quotes"),
        }
    }

    /// A text that must be there.
    pub fn required_text(&self, key: &'static str) -> String {
        if self.table.get(key).is_none() {
            self.mistake(&format!("{} needs the key `{key}`", self.what));
        }
        self.text(key).unwrap_or_default()
    }

    /// A list of texts.
    pub fn texts(&self, key: &'static str) -> Option<Vec<String>> {
        self.list(key, "a list of texts", |value| match value {
            DeValue::String(text) => Some(text.to_string()),
            _ => None,
        })
    }

    /// A truth value.
    pub fn flag(&self, key: &'static str) -> bool {
        let Some(value) = self.value(key) else { return false };
        match value.get_ref() {
            DeValue::Boolean(flag) => *flag,
            _ => self.wrong(key, value, "`true` or `false`").unwrap_or(false),
        }
    }

    /// A whole number.
    pub fn number(&self, key: &'static str) -> Option<u64> {
        let value = self.value(key)?;
        match whole_number(value.get_ref()) {
            Some(number) => Some(number),
            None => self.wrong(key, value, "a whole number"),
        }
    }

    /// A number that may have decimals.
    pub fn decimal(&self, key: &'static str) -> Option<f64> {
        let value = self.value(key)?;
        let parsed = match value.get_ref() {
            DeValue::Integer(integer) => integer.as_str().replace('_', "").parse().ok(),
            DeValue::Float(float) => float.as_str().replace('_', "").parse().ok(),
            _ => None,
        };
        match parsed {
            Some(number) => Some(number),
            None => self.wrong(key, value, "a number"),
        }
    }

    /// A list of whole numbers.
    pub fn numbers(&self, key: &'static str) -> Option<Vec<u64>> {
        self.list(key, "a list of whole numbers", whole_number)
    }

    /// A length of time, such as `"10s"`.
    pub fn duration(&self, key: &'static str) -> Option<Duration> {
        let value = self.value(key)?;
        let parsed = match value.get_ref() {
            DeValue::String(text) => parse_duration(text),
            _ => None,
        };
        match parsed {
            Some(duration) => Some(duration),
            None => self.wrong(key, value, "a time in quotes, such as \"500ms\", \"10s\" or \"15m\""),
        }
    }

    fn list<T>(&self, key: &'static str, expected: &str, read: impl Fn(&DeValue<'_>) -> Option<T>) -> Option<Vec<T>> {
        let value = self.value(key)?;
        let DeValue::Array(array) = value.get_ref() else { return self.wrong(key, value, expected) };
        let items: Option<Vec<T>> = array.iter().map(|item| read(item.get_ref())).collect();
        match items {
            Some(items) if !items.is_empty() => Some(items),
            _ => self.wrong(key, value, &format!("{expected}, with at least one item")),
        }
    }

    /// A table with keys of the user's choice, such as headers: names and texts in order.
    pub fn pairs(&self, key: &'static str) -> Vec<(String, String)> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let DeValue::Table(table) = value.get_ref() else {
            return self.wrong(key, value, "a table of names and texts").unwrap_or_default();
        };
        let mut pairs: Vec<(usize, String, String)> = Vec::new();
        for (name, value) in table {
            match value.get_ref() {
                DeValue::String(text) => pairs.push((name.span().start, name.get_ref().to_string(), text.to_string())),
                _ => self.source.mistake(value.span().start, &format!("`{}` must be a text in quotes", name.get_ref())),
            }
        }
        pairs.sort();
        pairs.into_iter().map(|(_, name, text)| (name, text)).collect()
    }

    /// A table below this one.
    pub fn table(&self, key: &'static str) -> Option<Cursor<'a>> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::Table(table) => Some(Cursor::new(self.source, key, value.span().start, table)),
            _ => self.wrong(key, value, "a table"),
        }
    }

    /// A list of tables, written `[[key]]`.
    pub fn tables(&self, key: &'static str) -> Vec<Cursor<'a>> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let DeValue::Array(array) = value.get_ref() else {
            return self.wrong(key, value, "a list of tables, written `[[…]]`").unwrap_or_default();
        };
        let table = |item: &'a Spanned<DeValue<'a>>| match item.get_ref() {
            DeValue::Table(table) => Some(Cursor::new(self.source, key, item.span().start, table)),
            _ => self.wrong(key, item, "a list of tables, written `[[…]]`"),
        };
        array.iter().filter_map(table).collect()
    }

    /// One table, or a list of tables.
    pub fn table_or_tables(&self, key: &'static str) -> Vec<Cursor<'a>> {
        match self.table.get(key).map(Spanned::get_ref) {
            Some(DeValue::Array(_)) => self.tables(key),
            _ => self.table(key).into_iter().collect(),
        }
    }

    /// Reports every key that was not read.
    pub fn finish(self) {
        let known = self.known.into_inner();
        for (name, _) in self.table {
            let name_text: &str = name.get_ref();
            if known.contains(&name_text) {
                continue;
            }
            let hint = crate::suggest::closest(name_text, known.iter().copied())
                .map_or_else(String::new, |near| format!(", did you mean `{near}`?"));
            self.source.mistake(name.span().start, &format!("unknown key `{name_text}` in `{}`{hint}", self.what));
        }
    }
}

fn whole_number(value: &DeValue<'_>) -> Option<u64> {
    match value {
        DeValue::Integer(integer) => integer.as_str().replace('_', "").parse().ok(),
        _ => None,
    }
}
