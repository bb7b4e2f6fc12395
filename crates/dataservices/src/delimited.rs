//! Files with rows of separated values as tables.

use std::sync::Arc;

use penstock_engine::database::{BATCH_ROWS_MAX, Batch, SqlValue};
use penstock_message::delimited::row;

use crate::model::DelimitedFile;

/// A larger file is a table of a database.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The rows of a file.
pub struct DelimitedReader {
    text: String,
    at: usize,
    columns: Arc<[Arc<str>]>,
    separator: char,
    left: usize,
}

impl DelimitedReader {
    /// Opens a file and reads the names of its columns.
    pub async fn open(file: &DelimitedFile) -> Result<DelimitedReader, String> {
        let path = file.path.clone();
        let read = penstock_engine::off_core(FILE_BYTES_MAX as usize * 2, move || {
            let size = std::fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?.len();
            if size > FILE_BYTES_MAX {
                return Err(format!("{} is larger than {FILE_BYTES_MAX} bytes", path.display()));
            }
            std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
        });
        let bytes = read.await.map_err(|fault| fault.message.to_string())??;
        Ok(DelimitedReader::new(String::from_utf8_lossy(&bytes).into_owned(), file))
    }

    fn new(text: String, file: &DelimitedFile) -> DelimitedReader {
        let left = file.rows_max.unwrap_or(usize::MAX);
        let mut reader = DelimitedReader { text, at: 0, columns: Arc::from([]), separator: file.separator, left };
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
            let (values, end) = row(&self.text[self.at..], self.separator)?;
            self.at += end;
            if values.len() > 1 || values.first().is_some_and(|value| !value.is_empty()) {
                return Some(values);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_names_the_columns() {
        let file = |first_row, header_row| DelimitedFile {
            path: "x.csv".into(),
            separator: ';',
            first_row,
            rows_max: Some(1),
            header_row,
        };
        let mut reader = DelimitedReader::new("id;name\n\n1;Ada\n2;Grace\n".into(), &file(1, Some(1)));
        assert_eq!(reader.columns.iter().map(|name| &**name).collect::<Vec<_>>(), ["id", "name"]);
        assert_eq!(reader.line(), Some(vec!["1".to_owned(), "Ada".to_owned()]));
        let reader = DelimitedReader::new("id;name\n1;Ada\n".into(), &file(2, None));
        assert_eq!(&reader.text[reader.at..], "1;Ada\n");
    }
}
