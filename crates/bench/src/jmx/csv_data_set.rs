//! CSV data sets: files whose columns are the values of variables.
use super::Reading;
use super::tree::Element;
use crate::error::Error;
use std::path::PathBuf;

pub(super) struct CsvDataSet {
    file: PathBuf,
    names: Vec<String>,
    delimiter: char,
    ignore_first_line: bool,
}

pub(super) fn read(reading: &Reading<'_>, element: &Element) -> Result<CsvDataSet, Error> {
    if !reading.flag(element, "recycle")? || reading.flag(element, "stopThread")? {
        return Err(reading.wrong(element, "a CSV data set must start again at its end (recycle, not stop thread)"));
    }
    let share = reading.text(element, "shareMode")?;
    if !matches!(share.as_str(), "" | "shareMode.all" | "shareMode.group") {
        return Err(
            reading.wrong(element, &format!("the sharing mode `{share}` is not supported, only all threads is"))
        );
    }
    let delimiter = reading.text(element, "delimiter")?;
    let delimiter = match delimiter.as_str() {
        "\\t" => '\t',
        "" => ',',
        other => other.chars().next().unwrap_or(','),
    };
    let names = reading.text(element, "variableNames")?;
    Ok(CsvDataSet {
        file: reading.path(&reading.text(element, "filename")?),
        names: names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
        delimiter,
        ignore_first_line: reading.flag(element, "ignoreFirstLine")?,
    })
}

impl CsvDataSet {
    /// The values of one column.
    pub(super) fn column(&self, variable: &str) -> Result<Vec<String>, Error> {
        let text = std::fs::read_to_string(&self.file).map_err(|error| Error::file(&self.file, &error))?;
        let mut lines = text.lines().filter(|line| !line.is_empty());
        let names = if self.names.is_empty() {
            let header = lines.next().unwrap_or_default();
            header.split(self.delimiter).map(|name| name.trim().to_owned()).collect()
        } else {
            if self.ignore_first_line {
                lines.next();
            }
            self.names.clone()
        };
        let unknown =
            || Error::Input(format!("no variable `{variable}`; {} has {}", self.file.display(), names.join(", ")));
        let index = names.iter().position(|name| name == variable).ok_or_else(unknown)?;
        let value = |line: &str| line.split(self.delimiter).nth(index).unwrap_or_default().trim_matches('"').to_owned();
        let values: Vec<String> = lines.map(value).collect();
        if values.is_empty() {
            Err(Error::Input(format!("{}: the file is empty", self.file.display())))
        } else {
            Ok(values)
        }
    }
}
