//! Comma-separated values (RFC 4180), as JTL files, token files and result files use them.
use crate::error::Error;
use std::io::BufRead;
use std::path::Path;

/// Reads records line by line without holding the file.
pub struct CsvReader<R> {
    input: R,
    text: String,
    line: u64,
}

impl<R: BufRead> CsvReader<R> {
    /// Starts at the first line.
    pub fn new(input: R) -> Self {
        CsvReader { input, text: String::new(), line: 0 }
    }

    /// Number of the line read last, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Reads the next record into `fields`; `false` at the end of the file. Empty lines are skipped.
    pub fn next(&mut self, fields: &mut Vec<String>) -> Result<bool, String> {
        loop {
            self.text.clear();
            if !self.read_line()? {
                return Ok(false);
            }
            // A quoted field may hold line breaks: it is complete when its quotes are even.
            while self.text.bytes().filter(|byte| *byte == b'"').count() % 2 == 1 {
                if !self.read_line()? {
                    return Err("a quoted field does not end".to_owned());
                }
            }
            let record = self.text.trim_end_matches(['\r', '\n']);
            if !record.is_empty() {
                split(record, ",", fields);
                return Ok(true);
            }
        }
    }

    fn read_line(&mut self) -> Result<bool, String> {
        let count = self.input.read_line(&mut self.text).map_err(|error| format!("cannot read on: {error}"))?;
        self.line += u64::from(count > 0);
        Ok(count > 0)
    }
}

/// The first column of a file without a header line, such as a list of tokens.
pub fn first_column(path: &Path) -> Result<Vec<String>, Error> {
    let file = std::fs::File::open(path).map_err(|error| Error::file(path, &error))?;
    let mut reader = CsvReader::new(std::io::BufReader::new(file));
    let (mut fields, mut values) = (Vec::new(), Vec::new());
    loop {
        match reader.next(&mut fields) {
            Ok(true) => values.extend(fields.first().cloned()),
            Ok(false) if values.is_empty() => {
                return Err(Error::Input(format!("{}: the file is empty", path.display())));
            }
            Ok(false) => return Ok(values),
            Err(why) => return Err(Error::Input(format!("{}:{}: {why}", path.display(), reader.line()))),
        }
    }
}

/// Splits one record at a delimiter; fields in quotes may contain it. Reuses the strings already in `fields`.
pub fn split(record: &str, delimiter: &str, fields: &mut Vec<String>) {
    let mut used = 0;
    let mut rest = Some(record);
    while let Some(text) = rest {
        if used == fields.len() {
            fields.push(String::new());
        }
        let field = &mut fields[used];
        field.clear();
        rest = match text.strip_prefix('"') {
            Some(quoted) => take_quoted(quoted, delimiter, field),
            None => {
                let (plain, rest) =
                    text.split_once(delimiter).map_or((text, None), |(plain, rest)| (plain, Some(rest)));
                field.push_str(plain);
                rest
            }
        };
        used += 1;
    }
    fields.truncate(used);
}

fn take_quoted<'a>(mut text: &'a str, delimiter: &str, field: &mut String) -> Option<&'a str> {
    while let Some((part, after)) = text.split_once('"') {
        field.push_str(part);
        match after.strip_prefix('"') {
            Some(more) => {
                field.push('"');
                text = more;
            }
            None => {
                // Text between a closing quote and the separator is malformed; it is kept as it stands.
                let (tail, rest) = after.split_once(delimiter).map_or((after, None), |(tail, rest)| (tail, Some(rest)));
                field.push_str(tail);
                return rest;
            }
        }
    }
    field.push_str(text);
    None
}

/// Writes one field.
pub fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&[&str]]) {
        let mut reader = CsvReader::new(text.as_bytes());
        let (mut fields, mut records) = (Vec::new(), Vec::new());
        while reader.next(&mut fields).unwrap() {
            records.push(fields.clone());
        }
        assert_eq!(records, expected.iter().map(|record| record.to_vec()).collect::<Vec<_>>(), "{text:?}");
    }

    #[test]
    fn records_are_split() {
        check("a,b\r\n\n,c", &[&["a", "b"], &["", "c"]]);
        check("\"a,\"\"b\"\"\",c\n", &[&["a,\"b\"", "c"]]);
        check("\"two\nlines\",x\n", &[&["two\nlines", "x"]]);
        check("a,\n", &[&["a", ""]]);
        assert!(CsvReader::new(&b"\"a"[..]).next(&mut Vec::new()).is_err());
    }
}
