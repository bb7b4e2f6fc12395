//! Reading JTL files, those of this kit and those of JMeter, into the same figures a load gives.
use crate::csv::CsvReader;
use crate::error::Error;
use crate::load::tally::Tally;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Samples with one label, after the warm-up was cut off.
#[derive(Debug, Clone, Default)]
pub struct JtlSummary {
    /// Counts and response times.
    pub tally: Tally,
    /// Most threads seen at once.
    pub users: u64,
    first_start_ms: Option<u64>,
    last_end_ms: u64,
}

impl JtlSummary {
    /// From the start of the first sample to the end of the last one, as JMeter counts throughput.
    pub fn window(&self) -> Duration {
        Duration::from_millis(self.last_end_ms.saturating_sub(self.first_start_ms.unwrap_or(0)))
    }

    /// Adds the samples of another file of the same test: response times together, users added up.
    pub fn merge(&mut self, other: JtlSummary) {
        self.tally.merge(other.tally);
        self.users += other.users;
        self.last_end_ms = self.last_end_ms.max(other.last_end_ms);
        self.first_start_ms = match (self.first_start_ms, other.first_start_ms) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

/// Reads a file and sums it up by label. Samples that start within `warm_up` of the first one are left out.
pub fn read(path: &Path, warm_up: Duration) -> Result<BTreeMap<String, JtlSummary>, Error> {
    let file = std::fs::File::open(path).map_err(|error| Error::file(path, &error))?;
    let name = path.display().to_string();
    summarize(&name, std::io::BufReader::new(file), warm_up)
}

struct Columns {
    time_stamp: usize,
    elapsed: usize,
    success: usize,
    label: Option<usize>,
    bytes: Option<usize>,
    sent: Option<usize>,
    threads: Option<usize>,
    failure: Option<usize>,
    code: Option<usize>,
}

fn summarize(
    name: &str,
    input: impl std::io::BufRead,
    warm_up: Duration,
) -> Result<BTreeMap<String, JtlSummary>, Error> {
    let mut reader = CsvReader::new(input);
    let mut fields = Vec::new();
    if !reader.next(&mut fields).map_err(|why| Error::Input(format!("{name}:1: {why}")))? {
        return Err(Error::Input(format!("{name}: the file is empty")));
    }
    let columns = find_columns(name, &fields)?;
    let mut summaries: BTreeMap<String, JtlSummary> = BTreeMap::new();
    let mut first_of_all = None;
    let warm_up_ms = u64::try_from(warm_up.as_millis()).unwrap_or(u64::MAX);
    loop {
        let at = |why: &str, line: u64| Error::Input(format!("{name}:{line}: {why}"));
        if !reader.next(&mut fields).map_err(|why| at(&why, reader.line()))? {
            return Ok(summaries);
        }
        let field = |index: usize| fields.get(index).map(String::as_str).unwrap_or_default();
        let number = |column: &str, index: usize| {
            let wrong = || at(&format!("`{}` in column `{column}` is not a number", field(index)), reader.line());
            field(index).parse::<u64>().map_err(|_| wrong())
        };
        let optional = |index: Option<usize>| index.and_then(|index| field(index).parse::<u64>().ok()).unwrap_or(0);
        let start_ms = number("timeStamp", columns.time_stamp)?;
        let elapsed_ms = number("elapsed", columns.elapsed)?;
        // Lines stand in the order in which samples ended, so the first line need not be the first start;
        // JMeter's own tools cut by the first line too.
        let begin = *first_of_all.get_or_insert(start_ms);
        if start_ms < begin.saturating_add(warm_up_ms) && warm_up_ms > 0 {
            continue;
        }
        let label = columns.label.map_or("", field);
        if !summaries.contains_key(label) {
            summaries.insert(label.to_owned(), JtlSummary::default());
        }
        let Some(summary) = summaries.get_mut(label) else { continue };
        summary.first_start_ms = Some(summary.first_start_ms.map_or(start_ms, |first| first.min(start_ms)));
        summary.last_end_ms = summary.last_end_ms.max(start_ms.saturating_add(elapsed_ms));
        summary.users = summary.users.max(optional(columns.threads));
        summary.tally.record(Duration::from_millis(elapsed_ms), optional(columns.sent), optional(columns.bytes));
        if field(columns.success) != "true" {
            let failure = columns.failure.map(field).filter(|text| !text.is_empty());
            summary.tally.record_failure(failure.or(columns.code.map(field)).unwrap_or("failed"));
        }
    }
}

fn find_columns(name: &str, header: &[String]) -> Result<Columns, Error> {
    if header.first().is_some_and(|field| field.starts_with("<?xml") || field.starts_with("<testResults")) {
        let why = "this is a JTL file in XML; run JMeter with `-Jjmeter.save.saveservice.output_format=csv`";
        return Err(Error::Input(format!("{name}:1: {why}")));
    }
    let find = |column: &str| header.iter().position(|field| field == column);
    let need = |column: &str| {
        let why = format!("no column `{column}` in the first line; a JTL file starts with a line of column names");
        find(column).ok_or_else(|| Error::Input(format!("{name}:1: {why}")))
    };
    Ok(Columns {
        time_stamp: need("timeStamp")?,
        elapsed: need("elapsed")?,
        success: need("success")?,
        label: find("label"),
        bytes: find("bytes"),
        sent: find("sentBytes"),
        threads: find("allThreads"),
        failure: find("failureMessage"),
        code: find("responseCode"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jtl::{JtlBuffer, JtlSink, Sample};
    use std::sync::Arc;
    use std::time::Instant;

    #[test]
    fn what_is_written_is_read_back() {
        let path = std::env::temp_dir().join(format!("penstock-jtl-{}.jtl", std::process::id()));
        let sink = Arc::new(JtlSink::create(&path, "HTTP, Request", "Users", "http://h/").unwrap());
        let mut buffer = JtlBuffer::new(sink);
        let start = Instant::now();
        for (milliseconds, failure) in [(10, None), (30, Some("say \"no\", twice"))] {
            buffer.write(&Sample {
                start,
                end: start + Duration::from_millis(milliseconds),
                status: 200,
                failure,
                user: 4,
                users: (9, 9),
                names: None,
                received_bytes: 100,
                sent_bytes: 50,
                first_byte: None,
                connected_after: Duration::ZERO,
            });
        }
        buffer.flush().unwrap();
        let summaries = read(&path, Duration::ZERO).unwrap();
        std::fs::remove_file(&path).unwrap();
        let summary = &summaries["HTTP, Request"];
        assert_eq!((summary.tally.samples(), summary.tally.errors, summary.users), (2, 1, 9));
        assert_eq!(summary.tally.reasons["say \"no\", twice"], 1);
        assert_eq!(summary.window(), Duration::from_millis(30));
        assert!((summary.tally.mean_ns() - 20e6).abs() < 1.0);
    }

    fn check(text: &str, warm_up_ms: u64, expected: Result<u64, &str>) {
        let outcome = summarize("a.jtl", text.as_bytes(), Duration::from_millis(warm_up_ms));
        let seen = outcome.map(|all| all.values().map(|summary| summary.tally.samples()).sum::<u64>());
        assert_eq!(seen, expected.map_err(|why| Error::Input(why.to_owned())));
    }

    #[test]
    fn the_warm_up_is_cut_and_mistakes_have_a_line() {
        let text = "elapsed,timeStamp,success\n5,1000,true\n5,1500,true\n5,2000,false\n";
        check(text, 0, Ok(3));
        check(text, 600, Ok(1));
        check("", 0, Err("a.jtl: the file is empty"));
        check("elapsed,timeStamp,success\nx,1,true\n", 0, Err("a.jtl:2: `x` in column `elapsed` is not a number"));
        let no_column =
            "a.jtl:1: no column `timeStamp` in the first line; a JTL file starts with a line of column names";
        check("1,2,3\n", 0, Err(no_column));
    }

    #[test]
    fn no_text_can_break_the_reader() {
        let seed = "elapsed,timeStamp,success,label,allThreads\n5,1000,true,\"a \"\"b\"\"\",3\n5,1500,false,c,4\n";
        crate::mutations::each(&[seed], |bytes, _| {
            let _ = summarize("a.jtl", bytes, Duration::from_millis(1))
                .map(|all| all.values().map(JtlSummary::window).max());
        });
    }
}
