//! The rows of a CSV text, with the header, without what is skipped, and in order.

use penstock_compile::connector::Arguments;
use penstock_engine::ports::Level;
use penstock_engine::{Exchange, Fault};
use penstock_message::delimited;

use super::columns;

/// Rows.
pub(super) struct Table {
    /// The first row, when it is the header.
    pub(super) header: Option<Vec<String>>,
    pub(super) rows: Vec<Vec<String>>,
}

/// The letter between values.
pub(super) fn separator(text: Option<&str>) -> char {
    match text {
        Some("tab") => '\t',
        Some("space") => ' ',
        Some(text) => text.chars().next().unwrap_or(','),
        None => ',',
    }
}

impl Table {
    pub(super) fn read(text: &str, arguments: &Arguments, exchange: &mut Exchange) -> Result<Table, Fault> {
        let separator = separator(arguments.text("valueSeparator", exchange)?.as_deref());
        let mut rows = delimited::rows(text, separator).peekable();
        let columns = rows.peek().map_or(0, Vec::len);
        let header = match arguments.text("headerPresent", exchange)?.as_deref() {
            Some(word) if word.eq_ignore_ascii_case("Present") => {
                Some(rows.next().ok_or_else(|| Fault::new("the CSV text has no header"))?)
            }
            Some(word) if !word.eq_ignore_ascii_case("Absent") => {
                return Err(Fault::new(format!("the `headerPresent` `{word}` is not one of Present, Absent")));
            }
            _ => None,
        };
        // What is not a number skips nothing, as in Micro Integrator.
        let first: usize = arguments.number("dataRowsToSkip", exchange)?.unwrap_or_default().unwrap_or_default();
        let mut table = Table { header, rows: rows.skip(first).collect() };
        table.sort(arguments, exchange)?;
        table.skip_columns(columns, arguments, exchange)?;
        Ok(table)
    }

    fn sort(&mut self, arguments: &Arguments, exchange: &mut Exchange) -> Result<(), Fault> {
        let Some(text) = arguments.text("orderByColumn", exchange)? else { return Ok(()) };
        let Some(column) = columns::column(&text, self.header.as_deref().unwrap_or_default()) else {
            exchange.log(Level::Error, "CSV", &format!("`{text}` names no column; the rows stay in their order"));
            return Ok(());
        };
        let value = |row: &Vec<String>| row.get(column).cloned().unwrap_or_default();
        let descends = arguments.text("columnOrdering", exchange)?;
        let descends = descends.is_some_and(|word| word.eq_ignore_ascii_case("Descending"));
        self.rows.sort_by(|one, other| {
            penstock_budget::step();
            let order = value(one).cmp(&value(other));
            if descends { order.reverse() } else { order }
        });
        Ok(())
    }

    fn skip_columns(&mut self, columns: usize, arguments: &Arguments, exchange: &mut Exchange) -> Result<(), Fault> {
        let Some(text) = arguments.text("columnsToSkip", exchange)? else { return Ok(()) };
        let header = self.header.as_deref().unwrap_or_default();
        let Some(skipped) = columns::skipped(&text, header, columns) else {
            exchange.log(Level::Error, "CSV", &format!("`{text}` names no columns; none is skipped"));
            return Ok(());
        };
        for row in self.header.iter_mut().chain(&mut self.rows) {
            penstock_budget::step();
            let mut index = 0;
            row.retain(|_| {
                index += 1;
                !skipped.contains(&(index - 1))
            });
        }
        Ok(())
    }

    /// The rows with the header among them, unless `skipHeader` is `true`; and the names of their columns.
    pub(super) fn with_header(
        self,
        names: &str,
        arguments: &Arguments,
        exchange: &mut Exchange,
    ) -> Result<(Vec<Vec<String>>, Names), Fault> {
        let skips_header = arguments.flag("skipHeader", false, exchange)?;
        let names = match arguments.text(names, exchange)? {
            Some(names) => super::list(&names),
            None => self.header.clone().unwrap_or_default(),
        };
        let mut rows = self.rows;
        if let Some(header) = self.header.filter(|_| !skips_header) {
            rows.insert(0, header);
        }
        Ok((rows, Names(names)))
    }
}

/// The names of columns.
pub(super) struct Names(Vec<String>);

impl Names {
    /// The name of a column by its 0-based place.
    pub(super) fn get(&self, index: usize) -> String {
        self.0.get(index).cloned().unwrap_or_else(|| format!("key-{}", index + 1))
    }
}
