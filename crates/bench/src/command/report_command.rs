//! `penstock bench report`: sums up JTL files, writes the reports of a directory of results anew, or puts their
//! tables into a page of documentation.
use super::arguments::{duration, flag, option, text, texts};
use super::{Outcome, print};
use crate::error::Error;
use crate::figures::Figures;
use crate::jtl::{self, JtlSummary};
use crate::report::published::Published;
use crate::report::{self, tables, terminal};
use crate::results::{Results, ResultsDirectory};
use clap::{Arg, ArgAction, ArgMatches};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

pub fn command() -> clap::Command {
    clap::Command::new("report")
        .about("Summarizes JTL files of this program or of JMeter, or regenerates the reports of earlier results")
        .arg(
            Arg::new("PATH")
                .required(true)
                .action(ArgAction::Append)
                .help("JTL files of one test, or one directory of results"),
        )
        .arg(option("warm-up", "TIME", "First part of each JTL file to leave out"))
        .arg(flag("each", "One summary per JTL file instead of one for all together"))
        .arg(flag("csv", "Print lines of comma-separated values"))
        .arg(option(
            "compare",
            "WHAT",
            "`published`, or the name of a published report, to compare a directory of results with",
        ))
        .arg(option("into", "FILE", "Put the tables of a directory of results between the markers in this file"))
}

pub fn run(matches: &ArgMatches) -> Result<Outcome, Error> {
    let paths = texts(matches, "PATH");
    match paths.as_slice() {
        [path] if Path::new(path).is_dir() => of_directory(matches, Path::new(path)),
        _ => of_jtl(matches, &paths),
    }
}

fn of_directory(matches: &ArgMatches, path: &Path) -> Result<Outcome, Error> {
    let directory = ResultsDirectory::create(path)?;
    let mut results = directory.load()?;
    if results.runs.is_empty() {
        return Err(Error::Input(format!("`{}` holds no results", path.display())));
    }
    if let Some(wanted) = text(matches, "compare") {
        let of_plan = results.about("published").unwrap_or_default();
        let name = if wanted == "published" { of_plan } else { wanted }.to_owned();
        Published::find(&name).ok_or_else(|| Error::Usage(format!("no published report `{name}`")))?;
        results.about.retain(|(key, _)| key != "compare");
        results.about.push(("compare".to_owned(), name));
    }
    match text(matches, "into") {
        Some(file) => into_page(Path::new(file), &results)?,
        None => {
            report::write(&directory, &results, &[])?;
            let published = results.about("compare").and_then(Published::find);
            print(&terminal::rows(&results.rows(), published.as_ref()));
        }
    }
    Ok(Outcome::Done)
}

/// The marker lines between which a page holds generated tables.
const BEGIN: &str = "<!-- begin: penstock bench -->";
const END: &str = "<!-- end: penstock bench -->";

fn into_page(file: &Path, results: &Results) -> Result<(), Error> {
    let page = std::fs::read_to_string(file).map_err(|error| Error::file(file, &error))?;
    let published = results.about("compare").and_then(Published::find);
    let tables = tables::summary_md(results, published.as_ref());
    // The page has a title of its own, and its sections are one level deeper.
    let tables: String = tables.lines().skip(1).map(|line| demote(line) + "\n").collect();
    let replaced = between_markers(&page, tables.trim()).ok_or_else(|| {
        Error::Input(format!("{}: expected a line `{BEGIN}` and after it a line `{END}`", file.display()))
    })?;
    std::fs::write(file, replaced).map_err(|error| Error::file(file, &error))
}

fn demote(line: &str) -> String {
    if line.starts_with("## ") { format!("#{line}") } else { line.to_owned() }
}

fn between_markers(page: &str, text: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{text}\n\n{END}{after}"))
}

fn of_jtl(matches: &ArgMatches, paths: &[&str]) -> Result<Outcome, Error> {
    let warm_up = duration(matches, "warm-up")?.unwrap_or(Duration::ZERO);
    let mut summaries: BTreeMap<String, JtlSummary> = BTreeMap::new();
    for path in paths {
        for (label, summary) in jtl::read(Path::new(path), warm_up)? {
            let name = if matches.get_flag("each") { format!("{path}: {label}") } else { label };
            match summaries.get_mut(&name) {
                Some(other) => other.merge(summary),
                None => {
                    summaries.insert(name, summary);
                }
            }
        }
    }
    if summaries.is_empty() {
        return Err(Error::Input("there are no samples after the warm-up".to_owned()));
    }
    let mut failures = false;
    for (number, (label, summary)) in summaries.iter().enumerate() {
        let figures = Figures::of_tally(&summary.tally, summary.window().as_secs_f64());
        failures |= summary.tally.errors > 0;
        if matches.get_flag("csv") {
            let text = terminal::csv(&figures);
            let mut lines = text.lines();
            let (titles, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
            if number == 0 {
                print(&format!("Label,{titles}\n"));
            }
            print(&format!("{},{values}\n", crate::csv::field(label)));
        } else {
            let users = usize::try_from(summary.users).unwrap_or(usize::MAX);
            print(&format!("{label}\n{}\n", terminal::single(&figures, &summary.tally, users, true)));
        }
    }
    Ok(if failures { Outcome::Failures } else { Outcome::Done })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_replace_what_stands_between_the_markers() {
        let page = format!("# Title\n{BEGIN}\nold\n{END}\nend\n");
        let expected = format!("# Title\n{BEGIN}\n\nnew\n\n{END}\nend\n");
        assert_eq!(between_markers(&page, "new"), Some(expected));
        assert_eq!(between_markers("no markers", "new"), None);
        assert_eq!((demote("## A"), demote("# A")), ("### A".to_owned(), "# A".to_owned()));
    }
}
