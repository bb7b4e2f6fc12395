//! Rows of text with separated values, as CSV has them (RFC 4180): values in quotes may contain separators, line breaks and
//! doubled quotes.

/// Values of one row: a row with more is no row of a table.
const VALUES_MAX: usize = 4096;

/// The values of a row, and where the next begins. `None` at the end of the text.
pub fn row(text: &str, separator: char) -> Option<(Vec<String>, usize)> {
    if text.is_empty() {
        return None;
    }
    penstock_budget::step();
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

/// The rows of a text. Empty lines are no rows.
pub fn rows(text: &str, separator: char) -> impl Iterator<Item = Vec<String>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let (values, end) = row(&text[at..], separator)?;
            at += end;
            if values.len() > 1 || values.first().is_some_and(|value| !value.is_empty()) {
                return Some(values);
            }
        }
    })
}

/// Writes a row. Values that would be read differently are quoted; `doubles_quotes` says whether quotes in them are doubled.
pub fn push_row<'v>(
    out: &mut String,
    values: impl IntoIterator<Item = &'v str>,
    separator: char,
    doubles_quotes: bool,
) {
    penstock_budget::step();
    for (index, value) in values.into_iter().enumerate() {
        if index > 0 {
            out.push(separator);
        }
        if !value.contains([separator, '"', '\n', '\r']) {
            penstock_budget::append(out, value);
            continue;
        }
        out.push('"');
        if doubles_quotes {
            penstock_budget::append(out, &value.replace('"', "\"\""));
        } else {
            penstock_budget::append(out, value);
        }
        out.push('"');
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_divided() {
        for (text, expected, end) in [
            ("a,b\nc", vec!["a", "b"], 4),
            ("\"a,\"\"b\"\"\",\"c\nd\"\r\n", vec!["a,\"b\"", "c\nd"], 17),
            ("a,", vec!["a", ""], 2),
            ("\"a\r\"\r\n", vec!["a\r"], 6),
            ("\"open", vec!["open"], 5),
        ] {
            let (values, found) = row(text, ',').unwrap();
            assert_eq!(values, expected, "{text}");
            assert_eq!(found, end, "{text}");
        }
        assert!(row("", ',').is_none());
    }

    #[test]
    fn a_written_row_is_read_as_it_was() {
        let values = ["a", "b;c", "d\"e\"", "f\ng", "", "h\r"];
        let mut out = String::new();
        push_row(&mut out, values, ';', true);
        assert_eq!(rows(&out, ';').collect::<Vec<_>>(), [values]);
    }
}
