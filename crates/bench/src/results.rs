//! The directory results go to: one line per run as soon as it is over, so that nothing measured is ever lost.
//! What makes a row invalid or doubtful stands in `judgement`.
pub mod judgement;

use crate::csv;
use crate::error::Error;
use crate::figures::{Figures, Metric, median};
use crate::load::tally::FailedExchange;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One combination of the matrix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Scenario name.
    pub scenario: String,
    /// Concurrent users.
    pub users: usize,
    /// Message size in bytes.
    pub message_bytes: usize,
    /// Delay of the backend in milliseconds.
    pub backend_delay_ms: u64,
}

/// One measured run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Name of the gateway.
    pub target: String,
    /// What was measured.
    pub cell: Cell,
    /// Number of the round, from 1.
    pub round: u32,
    /// What it gave.
    pub figures: Figures,
}

/// All rounds of one combination on one gateway.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Name of the gateway.
    pub target: String,
    /// What was measured.
    pub cell: Cell,
    /// Median of each figure over the rounds.
    pub figures: Figures,
    /// Figures of each round, in order.
    pub rounds: Vec<(u32, Figures)>,
    /// Whether requests came due at a rate; then users are not the requests under way.
    pub open_loop: bool,
}

/// Everything one command measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Results {
    /// Names and values that describe the measurement: plan, machine, gateways, scenarios.
    pub about: Vec<(String, String)>,
    /// The runs in the order they were made.
    pub runs: Vec<Run>,
}

impl Results {
    /// A value of the description.
    pub fn about(&self, name: &str) -> Option<&str> {
        self.about.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Gateways in the order they were first measured.
    pub fn targets(&self) -> Vec<&str> {
        distinct(self.runs.iter().map(|run| run.target.as_str()))
    }

    /// Scenarios in the order they were first measured.
    pub fn scenarios(&self) -> Vec<&str> {
        distinct(self.runs.iter().map(|run| run.cell.scenario.as_str()))
    }

    /// One row for each combination and gateway, scenario by scenario.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        for run in &self.runs {
            let position = rows.iter().position(|row| row.target == run.target && row.cell == run.cell);
            let entry = (run.round, run.figures.clone());
            match position {
                Some(position) => rows[position].rounds.push(entry),
                None => rows.push(Row {
                    target: run.target.clone(),
                    cell: run.cell.clone(),
                    figures: Figures::default(),
                    rounds: vec![entry],
                    open_loop: self.about("rate").is_some(),
                }),
            }
        }
        let (targets, scenarios) = (self.targets(), self.scenarios());
        let place = |all: &[&str], name: &str| all.iter().position(|other| *other == name);
        rows.sort_by_key(|row| {
            let cell = &row.cell;
            let (scenario, target) = (place(&scenarios, &cell.scenario), place(&targets, &row.target));
            (target, scenario, cell.users, cell.message_bytes, cell.backend_delay_ms)
        });
        for row in &mut rows {
            row.figures = Figures::median(&row.rounds.iter().map(|(_, figures)| figures).collect::<Vec<_>>());
        }
        rows
    }
}

/// Ratios of rounds that belong together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairedRatio {
    /// The middle one.
    pub median: f64,
    /// The smallest one.
    pub least: f64,
    /// The largest one.
    pub greatest: f64,
    /// Pairs of rounds.
    pub pairs: usize,
}

impl PairedRatio {
    /// The range of the rounds; empty for a single pair, which has none.
    pub fn range_text(&self) -> String {
        let text = crate::report::tables::ratio_text;
        if self.pairs < 2 {
            return String::new();
        }
        format!(" ({}–{})", text(self.least), text(self.greatest))
    }
}

impl Row {
    /// The rounds' values of a figure compared pair by pair with another row's, as ratios this/other:
    /// median, least and greatest. Runs of the same round follow each other closely, so what disturbs the
    /// machine disturbs both and drops out of the ratio.
    pub fn paired_ratio(&self, other: &Row, metric: Metric) -> Option<PairedRatio> {
        if !self.comparable() || !other.comparable() {
            return None;
        }
        let ratios: Vec<f64> = self
            .rounds
            .iter()
            .filter_map(|(round, figures)| {
                let (_, partner) = other.rounds.iter().find(|(number, _)| number == round)?;
                let (this, that) = (figures.get(metric)?, partner.get(metric)?);
                (that > 0.0).then_some(this / that)
            })
            .collect();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let pairs = ratios.len();
        Some(PairedRatio { median: median(ratios)?, least, greatest, pairs })
    }
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

/// The columns that name a run, before its figures.
pub const KEY_COLUMNS: [&str; 6] =
    ["Gateway", "Scenario Name", "Concurrent Users", "Message Size (Bytes)", "Back-end Service Delay (ms)", "Round"];
const RUNS: &str = "runs.csv";
const ABOUT: &str = "about.csv";
const FAILURES: &str = "failures.csv";

/// A directory of results.
#[derive(Debug, Clone)]
pub struct ResultsDirectory {
    path: PathBuf,
}

impl ResultsDirectory {
    /// Creates the directory, or takes the one that is there.
    pub fn create(path: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(path).map_err(|error| Error::file(path, &error))?;
        Ok(ResultsDirectory { path: path.to_owned() })
    }

    /// Where a file of it is.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file of it.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Error> {
        let path = self.file(name);
        std::fs::write(&path, text).map_err(|error| Error::file(&path, &error))
    }

    /// Writes the description.
    pub fn write_about(&self, about: &[(String, String)]) -> Result<(), Error> {
        let lines: Vec<String> =
            about.iter().map(|(name, value)| format!("{},{}\n", csv::field(name), csv::field(value))).collect();
        self.write(ABOUT, &lines.concat())
    }

    /// Writes the first failing exchange of each gateway and scenario.
    pub fn write_failures(&self, failures: &[(String, FailedExchange)]) -> Result<(), Error> {
        let line = |(place, failure): &(String, FailedExchange)| {
            let FailedExchange { after, reason, request, response } = failure;
            let after = after.as_millis().to_string();
            format!(
                "{}\n",
                [place, &after, reason, request, response].map(|field: &String| csv::field(field)).join(",")
            )
        };
        self.write(FAILURES, &failures.iter().map(line).collect::<String>())
    }

    /// Reads them.
    pub fn load_failures(&self) -> Result<Vec<(String, FailedExchange)>, Error> {
        let mut failures = Vec::new();
        self.each_record(FAILURES, |fields, line| {
            let [place, after, reason, request, response] = fields else {
                return Err(format!("{FAILURES}:{line}: this is not a failure"));
            };
            let after = Duration::from_millis(after.parse().unwrap_or_default());
            let [reason, request, response] = [reason, request, response].map(String::clone);
            failures.push((place.clone(), FailedExchange { after, reason, request, response }));
            Ok(())
        })?;
        Ok(failures)
    }

    /// Appends one run.
    pub fn append(&self, run: &Run) -> Result<(), Error> {
        let path = self.file(RUNS);
        let failed = |error: std::io::Error| Error::file(&path, &error);
        let mut file = OpenOptions::new().create(true).append(true).open(&path).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() == 0 {
            let titles = KEY_COLUMNS.into_iter().chain(Metric::all().map(Metric::title)).chain(["Distribution (ms)"]);
            let header: Vec<String> = titles.map(csv::field).collect();
            file.write_all(format!("{}\n", header.join(",")).as_bytes()).map_err(failed)?;
        }
        let cell = &run.cell;
        let mut fields = vec![
            csv::field(&run.target),
            csv::field(&cell.scenario),
            cell.users.to_string(),
            cell.message_bytes.to_string(),
            cell.backend_delay_ms.to_string(),
            run.round.to_string(),
        ];
        fields.extend(Metric::all().map(|metric| run.figures.get(metric).map(|v| v.to_string()).unwrap_or_default()));
        fields.push(run.figures.distribution.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
        file.write_all(format!("{}\n", fields.join(",")).as_bytes()).map_err(failed)
    }

    /// Reads what the directory holds.
    pub fn load(&self) -> Result<Results, Error> {
        let mut results = Results::default();
        self.each_record(ABOUT, |fields, _| {
            if let [name, value, ..] = fields {
                results.about.push((name.clone(), value.clone()));
            }
            Ok(())
        })?;
        let mut metrics: Option<Vec<Option<Metric>>> = None;
        self.each_record(RUNS, |fields, line| {
            let Some(metrics) = &metrics else {
                let by_title = |title: &String| Metric::all().find(|metric| metric.title() == title);
                metrics = Some(fields.iter().map(by_title).collect());
                return Ok(());
            };
            results.runs.push(parse_run(fields, metrics).ok_or_else(|| format!("{RUNS}:{line}: this is not a run"))?);
            Ok(())
        })?;
        Ok(results)
    }

    fn each_record(&self, name: &str, mut act: impl FnMut(&[String], u64) -> Result<(), String>) -> Result<(), Error> {
        let path = self.file(name);
        if !path.exists() {
            return Ok(());
        }
        let file = File::open(&path).map_err(|error| Error::file(&path, &error))?;
        let mut reader = csv::CsvReader::new(BufReader::new(file));
        let mut fields = Vec::new();
        while reader.next(&mut fields).map_err(|why| Error::Input(format!("{}: {why}", path.display())))? {
            act(&fields, reader.line()).map_err(|why| Error::Input(format!("{}/{why}", self.path.display())))?;
        }
        Ok(())
    }
}

fn parse_run(fields: &[String], metrics: &[Option<Metric>]) -> Option<Run> {
    let cell = Cell {
        scenario: fields.get(1)?.clone(),
        users: fields.get(2)?.parse().ok()?,
        message_bytes: fields.get(3)?.parse().ok()?,
        backend_delay_ms: fields.get(4)?.parse().ok()?,
    };
    let mut figures = Figures::default();
    for (metric, field) in metrics.iter().zip(fields) {
        if let (Some(metric), Ok(value)) = (metric, field.parse()) {
            figures.set(*metric, value);
        }
    }
    let distribution = fields.last()?;
    figures.distribution = distribution.split_ascii_whitespace().filter_map(|value| value.parse().ok()).collect();
    Some(Run { target: fields.first()?.clone(), cell, round: fields.get(5)?.parse().ok()?, figures })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn run(target: &str, users: usize, round: u32, throughput: f64) -> Run {
        let cell = Cell { scenario: "Direct, Proxy".into(), users, message_bytes: 500, backend_delay_ms: 0 };
        let mut figures = Figures::default();
        figures.set(Metric::Throughput, throughput);
        figures.set(Metric::Confirmed, 1.0);
        figures.distribution = vec![1.0, 2.5];
        Run { target: target.into(), cell, round, figures }
    }

    #[test]
    fn runs_survive_the_directory() {
        let path = std::env::temp_dir().join(format!("penstock-results-{}", std::process::id()));
        let directory = ResultsDirectory::create(&path).unwrap();
        let runs = vec![run("a", 100, 1, 10.125), run("b", 200, 2, 20.0)];
        for run in &runs {
            directory.append(run).unwrap();
        }
        let about = vec![("title".to_owned(), "one, \"two\"".to_owned())];
        directory.write_about(&about).unwrap();
        let failure = FailedExchange {
            after: Duration::from_millis(1500),
            reason: "status 500, \"not\" 200".into(),
            request: "GET / HTTP/1.1\r\nhost: a\r\n\r\n".into(),
            response: String::new(),
        };
        let failures = vec![("a · Direct, Proxy".to_owned(), failure)];
        directory.write_failures(&failures).unwrap();
        let loaded = directory.load().unwrap();
        assert_eq!(directory.load_failures().unwrap(), failures);
        std::fs::remove_dir_all(&path).unwrap();
        assert_eq!(loaded, Results { about, runs });
        assert_eq!(loaded.about("title"), Some("one, \"two\""));
    }

    #[test]
    fn rounds_become_rows_with_medians_and_paired_ratios() {
        let runs = [("a", 1, 10.0), ("b", 1, 20.0), ("a", 2, 30.0), ("b", 2, 30.0), ("a", 3, 20.0), ("b", 3, 80.0)];
        let runs = runs.into_iter().map(|(target, round, throughput)| run(target, 100, round, throughput)).collect();
        let rows = Results { about: Vec::new(), runs }.rows();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].figures.get(Metric::Throughput), Some(20.0));
        assert_eq!(
            rows[0].paired_ratio(&rows[1], Metric::Throughput),
            Some(PairedRatio { median: 0.5, least: 0.25, greatest: 1.0, pairs: 3 })
        );
        assert_eq!(rows[0].paired_ratio(&rows[1], Metric::Average), None);
    }
}
