//! Workbooks of Excel (`.xls`, `.xlsx`, `.xlsb`) and OpenDocument as sources: a query reads the rows of one sheet.

use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;

use calamine::{Data, Range, Reader};
use penstock_engine::database::{Batch, SqlValue};

/// A larger file is a table of a database. A sheet is in memory while it is read.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// Cells of a sheet.
const CELLS_MAX: usize = 5_000_000;

/// A workbook.
#[derive(Debug)]
pub struct SheetFile {
    /// Where it is.
    pub path: PathBuf,
}

/// `<excel>`: which rows of which sheet.
#[derive(Debug, Clone)]
pub struct SheetQuery {
    /// The name of the sheet.
    pub sheet: Option<Arc<str>>,
    /// The first row that is read, from 1.
    pub first_row: usize,
    /// The number of rows.
    pub rows_max: Option<usize>,
    /// The row with the names of the columns, from 1.
    pub header_row: Option<usize>,
}

impl SheetFile {
    /// The rows of a sheet.
    pub async fn rows(&self, query: &SheetQuery) -> Result<Batch, String> {
        let (path, query) = (self.path.clone(), query.clone());
        let read = penstock_engine::off_core(usize::MAX, move || {
            let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
            let size = std::fs::metadata(&path).map_err(|error| named(&error))?.len();
            if size > FILE_BYTES_MAX {
                return Err(format!("{} is larger than {FILE_BYTES_MAX} bytes", path.display()));
            }
            let bytes = std::fs::read(&path).map_err(|error| named(&error))?;
            rows(bytes, &query).map_err(|error| named(&error))
        });
        read.await.map_err(|fault| fault.message.to_string())?
    }
}

fn rows(bytes: Vec<u8>, query: &SheetQuery) -> Result<Batch, String> {
    let bytes: Arc<[u8]> = bytes.into();
    let mut workbook =
        calamine::open_workbook_auto_from_rs(Cursor::new(bytes)).map_err(|_| "it is not a workbook".to_owned())?;
    let name = query.sheet.as_deref().unwrap_or_default();
    let sheet = workbook.worksheet_range(name).map_err(|error| format!("the sheet `{name}`: {error}"))?;
    let cells = sheet.width().saturating_mul(sheet.height());
    if cells > CELLS_MAX {
        return Err(format!("the sheet `{name}` has more than {CELLS_MAX} cells"));
    }
    Ok(selected(&sheet, query))
}

fn selected(sheet: &Range<Data>, query: &SheetQuery) -> Batch {
    // The range begins at the first cell with a value; rows and columns count from the first of the sheet.
    let (above, before) = sheet.start().map_or((0, 0), |(row, column)| (row as usize, column as usize));
    let values = |row: &[Data]| {
        let mut values = vec![SqlValue::Text("".into()); before];
        values.extend(row.iter().map(|cell| SqlValue::Text(text_of(cell).into())));
        values
    };
    let row_at = |number: usize| number.checked_sub(above + 1).and_then(|index| sheet.rows().nth(index));
    let header = query.header_row.and_then(row_at).map(values).unwrap_or_default();
    let columns = header.iter().map(|name| if let SqlValue::Text(name) = name { name.clone() } else { "".into() });
    let first = query.first_row.max(query.header_row.map_or(0, |row| row + 1));
    let rows = sheet.rows().skip(first.saturating_sub(above + 1));
    let filled = rows.filter(|row| row.iter().any(|cell| !matches!(cell, Data::Empty)));
    Batch {
        columns: columns.collect(),
        rows: filled.take(query.rows_max.unwrap_or(usize::MAX)).map(values).collect(),
        changed: 0,
    }
}

/// A cell as text; a number without a fraction has no decimal point.
fn text_of(cell: &Data) -> String {
    match cell {
        Data::Empty => String::new(),
        Data::String(text) | Data::DateTimeIso(text) | Data::DurationIso(text) => text.clone(),
        Data::Bool(flag) => flag.to_string(),
        Data::Int(number) => number.to_string(),
        Data::Float(number) => number_text(*number),
        // Dates are numbers of days, as Micro Integrator returns them.
        Data::DateTime(date) => number_text(date.as_f64()),
        Data::Error(error) => error.to_string(),
    }
}

fn number_text(number: f64) -> String {
    match number.fract() == 0.0 && number.abs() < 1e15 {
        true => format!("{number:.0}"),
        false => penstock_message::double_to_text(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workbook() -> Vec<u8> {
        let mut workbook = rust_xlsxwriter::Workbook::new();
        let sheet = workbook.add_worksheet();
        sheet.set_name("Stock").unwrap();
        for (column, name) in ["code", "units", "price", "sold"].into_iter().enumerate() {
            sheet.write(1, column as u16 + 1, name).unwrap();
        }
        sheet.write(2, 1, "L7").unwrap().write(2, 2, 40).unwrap().write(2, 3, 1.5).unwrap().write(2, 4, true).unwrap();
        sheet.write(4, 1, "R8").unwrap().write(4, 2, -3).unwrap();
        workbook.save_to_buffer().unwrap()
    }

    fn read(first_row: usize, header_row: Option<usize>, rows_max: Option<usize>) -> (Vec<String>, Vec<String>) {
        let query = SheetQuery { sheet: Some("Stock".into()), first_row, rows_max, header_row };
        let batch = rows(workbook(), &query).unwrap();
        let text = |value: &SqlValue| if let SqlValue::Text(text) = value { text.to_string() } else { "?".to_owned() };
        let rows = batch.rows.iter().map(|row| row.iter().map(text).collect::<Vec<_>>().join("|"));
        (batch.columns.iter().map(|name| name.to_string()).collect(), rows.collect())
    }

    #[test]
    fn rows_of_a_sheet_are_read() {
        let (columns, rows) = read(1, Some(2), None);
        assert_eq!(columns, ["", "code", "units", "price", "sold"]);
        assert_eq!(rows, ["|L7|40|1.5|true", "|R8|-3||"]);
        assert_eq!(read(4, Some(2), None).1, ["|R8|-3||"]);
        assert_eq!(read(1, None, Some(1)), (Vec::new(), vec!["|code|units|price|sold".to_owned()]));
    }

    #[test]
    fn what_is_no_workbook_is_refused() {
        let query = SheetQuery { sheet: Some("Other".into()), first_row: 1, rows_max: None, header_row: None };
        assert!(rows(workbook(), &query).unwrap_err().starts_with("the sheet `Other`"));
        assert_eq!(rows(b"not a workbook".to_vec(), &query).unwrap_err(), "it is not a workbook");
    }
}
