//! Results as text for a person at the terminal, or one line of them for a script.
use crate::figures::{Figures, Metric};
use crate::load::tally::{FailedExchange, Tally};
use crate::report::published::Published;
use crate::report::tables::{pairs, published_fields, ratio_text};
use crate::results::judgement::{littles_law_holds, littles_law_off, warnings};
use crate::results::{Results, Row};

/// The figures of one load. In a closed loop every user is always inside of a request.
pub fn single(figures: &Figures, tally: &Tally, users: usize, closed_loop: bool) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            text.push_str(&format!("{name:<22} {value}\n"));
        }
    };
    let value = |metric| figures.text(metric);
    let with_unit = |metric, unit: &str| match figures.get(metric) {
        Some(_) => format!("{} {unit}", value(metric)),
        None => String::new(),
    };
    line("Samples", format!("{} in {}", value(Metric::Samples), with_unit(Metric::Seconds, "s")));
    line("Errors", format!("{} ({} %)", value(Metric::Errors), value(Metric::ErrorPercent)));
    line("Throughput", with_unit(Metric::Throughput, "requests/s"));
    let response_times = [
        (Metric::Average, "average"),
        (Metric::StandardDeviation, "standard deviation"),
        (Metric::Minimum, "min"),
        (Metric::Maximum, "max"),
    ];
    let listed = response_times.iter().filter(|(metric, _)| figures.get(*metric).is_some());
    let listed: Vec<String> = listed.map(|(metric, name)| format!("{name} {}", value(*metric))).collect();
    line("Response time (ms)", listed.join(", "));
    let percentiles = [
        (Metric::P50, "50 %"),
        (Metric::P75, "75 %"),
        (Metric::P90, "90 %"),
        (Metric::P95, "95 %"),
        (Metric::P98, "98 %"),
        (Metric::P99, "99 %"),
        (Metric::P999, "99.9 %"),
    ];
    let listed = percentiles.iter().filter(|(metric, _)| figures.get(*metric).is_some());
    let listed: Vec<String> = listed.map(|(metric, name)| format!("{name} {}", value(*metric))).collect();
    line("Percentiles (ms)", listed.join(", "));
    line("Received", with_unit(Metric::Received, "KB/s"));
    line("Sent", with_unit(Metric::Sent, "KB/s"));
    line("Load side CPU", with_unit(Metric::LoadCpu, "µs/request"));
    if figures.get(Metric::TargetCpu).is_some() {
        let split = format!("{} user, {} system", value(Metric::TargetCpuUser), value(Metric::TargetCpuSystem));
        line("Target CPU", format!("{} ({split})", with_unit(Metric::TargetCpu, "µs/request")));
        let memory =
            format!("peak {}, average {}", value(Metric::TargetMemoryPeak), value(Metric::TargetMemoryAverage));
        line("Target memory (MB)", memory);
        line("Target threads", value(Metric::TargetThreads));
        line("Context switches", with_unit(Metric::TargetContextSwitches, "per request"));
    }
    if let Some(in_system) = figures.get(Metric::UsersInSystem) {
        line("Little's law", littles_law(in_system, users, closed_loop));
    }
    if let Some(started) = figures.get(Metric::UsersStarted).filter(|started| *started < users as f64) {
        line("Users", format!("only {started} of {users} had started when the measured time began"));
    }
    if tally.reconnects > 0 {
        line("Reconnects", format!("{} kept connections were closed by the server between requests", tally.reconnects));
    }
    if tally.late.samples > 0 {
        let late = tally.late;
        line(
            "Under way at the end",
            format!("{}, of which {} failed; not part of the throughput", late.samples, late.errors),
        );
    }
    if tally.unsent > 0 {
        line("Never sent", format!("{} requests came due and were not sent: the rate was not reached", tally.unsent));
    }
    for warning in warnings(figures, closed_loop.then_some(users)) {
        line("Warning", warning);
    }
    for (reason, count) in &tally.reasons {
        line("Failed", format!("{count} × {reason}"));
    }
    if let Some(failure) = &tally.first_failure {
        text.push_str(&failed_exchange(failure));
    }
    text
}

/// The figures of one run in one line.
pub fn brief(figures: &Figures) -> String {
    let cpu = match figures.get(Metric::TargetCpu) {
        Some(_) => format!("  {:>7} µs CPU", figures.text(Metric::TargetCpu)),
        None => String::new(),
    };
    let errors = match figures.get(Metric::Errors) {
        Some(errors) if errors > 0.0 => format!("  {} % errors", figures.text(Metric::ErrorPercent)),
        _ => String::new(),
    };
    let (throughput, average) = (figures.text(Metric::Throughput), figures.text(Metric::Average));
    format!("{throughput:>10}/s  {average:>8} ms  p99 {:>8} ms{cpu}{errors}", figures.text(Metric::P99))
}

/// All rows as a table with aligned columns.
pub fn rows(rows: &[Row], published: Option<&Published>) -> String {
    let mut table: Vec<Vec<String>> = Vec::new();
    let mut head = vec![
        "Gateway",
        "Scenario",
        "Users",
        "Bytes",
        "Delay",
        "Requests/s",
        "Avg ms",
        "p99 ms",
        "Error %",
        "CPU µs",
        "MB",
    ];
    if published.is_some() {
        head.extend(["published", "ratio", "avg ms", "ratio"]);
    }
    head.push(REMARKS);
    table.push(head.into_iter().map(str::to_owned).collect());
    for row in rows {
        let cell = &row.cell;
        let mut line = vec![
            row.target.clone(),
            cell.scenario.clone(),
            cell.users.to_string(),
            cell.message_bytes.to_string(),
            row.delay_text(),
        ];
        let shown = [
            Metric::Throughput,
            Metric::Average,
            Metric::P99,
            Metric::ErrorPercent,
            Metric::TargetCpu,
            Metric::TargetMemoryPeak,
        ];
        let valid = row.invalid().is_empty();
        line.extend(shown.map(|metric| row.figures.text(metric)).map(|text| if valid { text } else { struck(&text) }));
        if let Some(published) = published {
            line.extend(published_fields(row, published));
        }
        line.push(crate::report::tables::remarks_on(row));
        table.push(line);
    }
    let mut text = align(&table);
    for line in crate::report::tables::invalid_lines(rows) {
        text.push_str(&format!("{line}\n"));
    }
    text
}

/// Ratios of the first gateway to the others, round by round; empty with a single gateway.
pub fn ratios(results: &Results) -> String {
    let rows = results.rows();
    let targets = results.targets();
    let mut table: Vec<Vec<String>> = Vec::new();
    for (row, other) in pairs(&rows, &targets) {
        let cell = &row.cell;
        let ratio = |metric| match row.paired_ratio(other, metric) {
            Some(ratio) => format!("{}{}", ratio_text(ratio.median), ratio.range_text()),
            None => String::new(),
        };
        let mut line = vec![other.target.clone(), cell.scenario.clone()];
        line.extend([cell.users.to_string(), cell.message_bytes.to_string(), row.delay_text()]);
        line.extend([Metric::Throughput, Metric::Average, Metric::TargetCpu].map(ratio));
        table.push(line);
    }
    let Some(first) = targets.first().filter(|_| !table.is_empty()) else { return String::new() };
    let head = ["Beside", "Scenario", "Users", "Bytes", "Delay", "Throughput", "Avg response time", "CPU per request"];
    table.insert(0, head.map(str::to_owned).into());
    format!("\nRatios {first}/other of the same round, median (least–greatest):\n{}", align(&table))
}

/// Title of the column that holds words after the numbers.
const REMARKS: &str = "Remarks";

/// Combining stroke: it strikes out the character before it, and takes no room.
const STROKE: char = '\u{336}';

/// Struck-out text, which reads as such in every terminal and file.
fn struck(text: &str) -> String {
    text.chars().flat_map(|character| [character, STROKE]).collect()
}

/// Columns that a text takes on the terminal.
fn columns_of(text: &str) -> usize {
    text.chars().filter(|character| *character != STROKE).count()
}

/// Columns of equal width; the first two and the remarks hold words, the others numbers.
fn align(table: &[Vec<String>]) -> String {
    let columns = table.first().map_or(0, Vec::len);
    let width = |column: usize| table.iter().map(|line| line.get(column).map_or(0, |text| columns_of(text))).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in table {
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let gap = if column == 0 { "" } else { "  " };
            let pad = " ".repeat(width - columns_of(cell));
            let head = table.first().and_then(|head| head.get(column));
            let left = column < 2 || head.is_some_and(|head| head == REMARKS);
            text.push_str(&if left { format!("{gap}{cell}{pad}") } else { format!("{gap}{pad}{cell}") });
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// Samples, errors and times by name.
pub fn counts(title: &str, rows: &[[String; 5]]) -> String {
    let head = [title, "", "Samples", "Errors", "Avg ms", "Max ms"].map(str::to_owned).to_vec();
    let line = |row: &[String; 5]| {
        let [name, figures @ ..] = row;
        [name.clone(), String::new()].into_iter().chain(figures.iter().cloned()).collect()
    };
    align(&std::iter::once(head).chain(rows.iter().map(line)).collect::<Vec<_>>())
}

/// In a closed loop the requests under way are the users; a difference means that the load side lost time.
pub fn littles_law(in_system: f64, users: usize, closed_loop: bool) -> String {
    if !closed_loop {
        return format!("{in_system:.2} requests under way on average");
    }
    let off = littles_law_off(in_system, users);
    let verdict = if littles_law_holds(in_system, users) { "holds" } else { "is off" };
    format!("{verdict}: throughput × average response time = {in_system:.2}, users = {users} ({off:+.1} %)")
}

/// What went over the wire when something failed for the first time.
pub fn failed_exchange(failure: &FailedExchange) -> String {
    let indent = |text: &str| text.lines().map(|line| format!("    {line}\n")).collect::<String>();
    let response = if failure.response.is_empty() { "    (none)\n".to_owned() } else { indent(&failure.response) };
    format!(
        "First failure, {:.3} s after the start: {}\n  sent:\n{}  received:\n{response}",
        failure.after.as_secs_f64(),
        failure.reason,
        indent(&failure.request),
    )
}

/// Two lines of comma-separated values: names and figures.
pub fn csv(figures: &Figures) -> String {
    let names: Vec<&str> = Metric::all().map(Metric::title).collect();
    let values: Vec<String> = Metric::all().map(|metric| figures.text(metric)).collect();
    format!("{}\n{}\n", names.join(","), values.join(","))
}
