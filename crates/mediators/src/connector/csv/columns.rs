//! Columns that are skipped: `1,3:5,"name",2:*,!4,!(6:7)`. What follows `!` is kept again.

use std::collections::BTreeSet;

/// The 0-based columns that an expression names. `None` when it is not one.
pub(super) fn skipped(expression: &str, header: &[String], columns: usize) -> Option<BTreeSet<usize>> {
    let mut reader = Reader { rest: expression.trim_start(), header, columns };
    let mut skipped = BTreeSet::new();
    loop {
        let keeps = reader.eat('!');
        let range = if reader.eat('(') {
            let range = reader.ranges()?;
            reader.eat(')').then_some(range)?
        } else {
            vec![reader.range()?]
        };
        for column in range.into_iter().flatten() {
            if keeps {
                skipped.remove(&column)
            } else {
                skipped.insert(column)
            };
        }
        if !reader.eat(',') {
            return reader.rest.is_empty().then_some(skipped);
        }
    }
}

struct Reader<'e> {
    rest: &'e str,
    header: &'e [String],
    columns: usize,
}

type Range = std::ops::Range<usize>;

impl Reader<'_> {
    fn eat(&mut self, letter: char) -> bool {
        let rest = self.rest.strip_prefix(letter);
        self.rest = rest.unwrap_or(self.rest).trim_start();
        rest.is_some()
    }

    fn ranges(&mut self) -> Option<Vec<Range>> {
        let mut ranges = vec![self.range()?];
        while self.eat(',') {
            ranges.push(self.range()?);
        }
        Some(ranges)
    }

    /// A column, or all from one to another. Columns that no row has are left out.
    fn range(&mut self) -> Option<Range> {
        let first = self.column()?;
        let last = match self.eat(':') {
            false => first,
            true if self.eat('*') => self.columns,
            true => self.column()?,
        };
        Some(first.checked_sub(1)?..last.min(self.columns))
    }

    /// The number of a column from 1.
    fn column(&mut self) -> Option<usize> {
        if let Some(rest) = self.rest.strip_prefix('"') {
            let (name, rest) = rest.split_once('"')?;
            self.rest = rest.trim_start();
            return Some(position(self.header, name)? + 1);
        }
        let end = self.rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        digits.parse().ok()
    }
}

/// The 0-based column of a name.
pub(super) fn position(header: &[String], name: &str) -> Option<usize> {
    header.iter().position(|known| known.eq_ignore_ascii_case(name))
}

/// The 0-based column that is named by a number from 1, or by its name in quotes.
pub(super) fn column(text: &str, header: &[String]) -> Option<usize> {
    let text = text.trim();
    match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(name) => position(header, name),
        None => text.parse::<usize>().ok()?.checked_sub(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_name_columns() {
        let header: Vec<String> = ["id", "name", "mail", "phone", "age"].map(str::to_owned).into();
        for (expression, expected) in [
            ("2", Some(vec![1])),
            ("1, 3:4", Some(vec![0, 2, 3])),
            ("2:*", Some(vec![1, 2, 3, 4])),
            ("1:*,!3", Some(vec![0, 1, 3, 4])),
            ("1:5,!(2:3)", Some(vec![0, 3, 4])),
            ("\"Mail\",(1,5)", Some(vec![0, 2, 4])),
            ("9", Some(vec![])),
            ("3:2", Some(vec![])),
            ("0", None),
            ("\"fax\"", None),
            ("1;2", None),
            ("1,", None),
            ("(1", None),
            ("99999999999999999999", None),
        ] {
            let found = skipped(expression, &header, header.len());
            assert_eq!(found.map(|found| found.into_iter().collect::<Vec<_>>()), expected, "{expression}");
        }
    }
}
