//! Files with a row on each line, as CSV is written (RFC 4180): values in quotes may contain separators, line breaks and
//! doubled quotes.

use std::sync::Arc;

use penstock_engine::database::{BATCH_ROWS_MAX, Batch, SqlValue};

use crate::model::DelimitedFile;

/// A larger file is a table of a database.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Values of one row: a row with more is no row of a table.
const VALUES_MAX: usize = 4096;

/// The rows of a file.
pub struct Reader {
    text: String,
    at: usize,
    columns: Arc<[Arc<str>]>,
    separator: char,
    left: usize,
}

impl Reader {
    /// Opens a file and reads the names of its columns.
    pub async fn open(file: &DelimitedFile) -> Result<Reader, String> {
        let path = file.path.clone();
        let read = penstock_engine::off_core(FILE_BYTES_MAX as usize * 2, move || {
            let size = std::fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?.len();
            if size > FILE_BYTES_MAX {
                return Err(format!("{} is larger than {FILE_BYTES_MAX} bytes", path.display()));
            }
            std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
        });
        let bytes = read.await.map_err(|fault| fault.message.to_string())??;
        Ok(Reader::new(String::from_utf8_lossy(&bytes).into_owned(), file))
    }

    fn new(text: String, file: &DelimitedFile) -> Reader {
        let left = file.rows_max.unwrap_or(usize::MAX);
        let mut reader = Reader { text, at: 0, columns: Arc::from([]), separator: file.separator, left };
        let mut number = 1;
        while number < file.first_row.max(file.header_row.map_or(0, |row| row + 1)) {
            let Some(values) = reader.line() else { break };
            if file.header_row == Some(number) {
                reader.columns = values.into_iter().map(Arc::from).collect();
            }
            number += 1;
        }
        reader
    }

    /// The next rows.
    pub async fn next(&mut self) -> Result<Option<Batch>, String> {
        let mut rows = Vec::new();
        while rows.len() < BATCH_ROWS_MAX && self.left > 0 {
            let Some(values) = self.line() else { break };
            self.left -= 1;
            rows.push(values.into_iter().map(|value| SqlValue::Text(value.into())).collect());
        }
        Ok((!rows.is_empty()).then(|| Batch { columns: self.columns.clone(), rows, changed: 0 }))
    }

    /// The values of the next line that is not empty.
    fn line(&mut self) -> Option<Vec<String>> {
        loop {
            let (values, end) = line(&self.text[self.at..], self.separator)?;
            self.at += end;
            if values.len() > 1 || values.first().is_some_and(|value| !value.is_empty()) {
                return Some(values);
            }
        }
    }
}

/// All rows of a text.
pub fn rows(text: &str, separator: char) -> Vec<Vec<String>> {
    let file = DelimitedFile { path: "".into(), separator, first_row: 1, rows_max: None, header_row: None };
    let mut reader = Reader::new(text.to_owned(), &file);
    std::iter::from_fn(|| reader.line()).collect()
}

/// The values of a line, and where the next begins. `None` at the end of the text.
fn line(text: &str, separator: char) -> Option<(Vec<String>, usize)> {
    if text.is_empty() {
        return None;
    }
    let mut values = Vec::new();
    let mut value = String::new();
    let mut is_quoted = false;
    // What stood in quotes ends here; a carriage return in them belongs to the value.
    let mut quoted_end = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek().is_some_and(|(_, next)| *next == '"') => {
                value.push('"');
                letters.next();
            }
            '"' if is_quoted => {
                is_quoted = false;
                quoted_end = value.len();
            }
            '"' if value.is_empty() => is_quoted = true,
            _ if is_quoted => value.push(letter),
            '\n' => {
                if value.len() > quoted_end && value.ends_with('\r') {
                    value.pop();
                }
                values.push(value);
                return Some((values, at + 1));
            }
            _ if letter == separator && values.len() < VALUES_MAX => {
                values.push(std::mem::take(&mut value));
                quoted_end = 0;
            }
            _ => value.push(letter),
        }
    }
    values.push(value);
    Some((values, text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_divided() {
        for (text, expected, end) in [
            ("a,b\nc", vec!["a", "b"], 4),
            ("\"a,\"\"b\"\"\",\"c\nd\"\r\n", vec!["a,\"b\"", "c\nd"], 17),
            ("a,", vec!["a", ""], 2),
            ("\"a\r\"\r\n", vec!["a\r"], 6),
            ("\"open", vec!["open"], 5),
        ] {
            let (values, found) = line(text, ',').unwrap();
            assert_eq!(values, expected, "{text}");
            assert_eq!(found, end, "{text}");
        }
        assert!(line("", ',').is_none());
    }

    #[test]
    fn a_header_names_the_columns() {
        let file = |first_row, header_row| DelimitedFile {
            path: "x.csv".into(),
            separator: ';',
            first_row,
            rows_max: Some(1),
            header_row,
        };
        let mut reader = Reader::new("id;name\n\n1;Ada\n2;Grace\n".into(), &file(1, Some(1)));
        assert_eq!(reader.columns.iter().map(|name| &**name).collect::<Vec<_>>(), ["id", "name"]);
        assert_eq!(reader.line(), Some(vec!["1".to_owned(), "Ada".to_owned()]));
        let reader = Reader::new("id;name\n1;Ada\n".into(), &file(2, None));
        assert_eq!(&reader.text[reader.at..], "1;Ada\n");
    }
}
