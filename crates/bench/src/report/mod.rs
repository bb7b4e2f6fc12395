//! What is made of the figures: text on the terminal, tables, a page.
pub mod chart;
pub mod html;
mod panels;
pub mod published;
pub mod tables;
pub mod terminal;

use crate::error::Error;
use crate::load::tally::FailedExchange;
use crate::results::{Results, ResultsDirectory};
use published::Published;

/// Writes `summary.csv`, `summary.md` and `report.html` into the directory of the results.
pub fn write(
    directory: &ResultsDirectory,
    results: &Results,
    failures: &[(String, FailedExchange)],
) -> Result<(), Error> {
    let published = results.about("compare").and_then(Published::find);
    directory.write("summary.csv", &tables::summary_csv(results, published.as_ref()))?;
    directory.write("summary.md", &tables::summary_md(results, published.as_ref()))?;
    directory.write("report.html", &html::page(results, published.as_ref(), failures))
}
