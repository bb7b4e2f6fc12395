//! `summary.csv` and `summary.md`, in the layout of the published tables.
use super::published::{CAVEAT, Published};
use crate::csv;
use crate::figures::Metric;
use crate::results::{KEY_COLUMNS, Results, Row};

/// The columns of the published table, after those that name the combination; then what we measure besides.
const SHOWN: [Metric; 8] = [
    Metric::ErrorPercent,
    Metric::Throughput,
    Metric::Average,
    Metric::StandardDeviation,
    Metric::P99,
    Metric::TargetCpu,
    Metric::TargetMemoryPeak,
    Metric::LoadCpu,
];

/// All figures, one line per gateway and combination: medians over the rounds.
pub fn summary_csv(results: &Results, published: Option<&Published>) -> String {
    let mut titles: Vec<String> = KEY_COLUMNS[..5].iter().map(|title| csv::field(title)).collect();
    titles.extend(Metric::all().map(|metric| csv::field(metric.title())));
    titles.extend(["Rounds", "Invalid", "Warnings"].map(str::to_owned));
    if published.is_some() {
        titles.extend(PUBLISHED_TITLES.map(str::to_owned));
    }
    let mut text = titles.join(",") + "\n";
    for row in results.rows() {
        let cell = &row.cell;
        let mut fields = vec![
            csv::field(&row.target),
            csv::field(&cell.scenario),
            cell.users.to_string(),
            cell.message_bytes.to_string(),
            cell.backend_delay_ms.to_string(),
        ];
        fields.extend(Metric::all().map(|metric| row.figures.text(metric)));
        fields.push(row.rounds.len().to_string());
        fields.extend([row.invalid(), row.warnings()].map(|lines| csv::field(&lines.join("; "))));
        if let Some(published) = published {
            fields.extend(published_fields(&row, published));
        }
        text.push_str(&(fields.join(",") + "\n"));
    }
    text
}

const PUBLISHED_TITLES: [&str; 4] = [
    "Published Throughput (Requests/sec)",
    "Throughput / Published",
    "Published Average Response Time (ms)",
    "Published / Average Response Time",
];

/// Published throughput, ratio, published response time, ratio; a ratio above 1 is in favour of what was measured here.
pub fn published_fields(row: &Row, published: &Published) -> [String; 4] {
    let Some(other) = published.row(&row.cell) else { return Default::default() };
    let ratio = |above: Option<f64>, below: Option<f64>| match (above, below) {
        (Some(above), Some(below)) if below > 0.0 && row.comparable() => ratio_text(above / below),
        _ => String::new(),
    };
    let plain = |value: Option<f64>| value.map(|value| format!("{value:.2}")).unwrap_or_default();
    [
        plain(other.throughput),
        ratio(row.figures.get(Metric::Throughput), other.throughput),
        plain(other.average_ms),
        ratio(other.average_ms, row.figures.get(Metric::Average)),
    ]
}

/// A ratio with as many decimals as it deserves.
pub fn ratio_text(ratio: f64) -> String {
    if ratio >= 20.0 { format!("{ratio:.0}") } else { format!("{ratio:.2}") }
}

/// The whole report as Markdown.
pub fn summary_md(results: &Results, published: Option<&Published>) -> String {
    let about = |name: &str| results.about(name).unwrap_or("");
    let mut text = format!("# {}\n\n", about("title"));
    text.push_str(&format!("Measured with `penstock bench` on {}.\n\n", about("date")));
    let described: Vec<(&str, &str)> = results
        .scenarios()
        .into_iter()
        .map(|name| (name, results.about(&format!("scenario: {name}")).unwrap_or("")))
        .collect();
    text.push_str("| Test Scenario | What it does |\n|---|---|\n");
    for (name, description) in described {
        text.push_str(&format!("| {} | {} |\n", md(name), md(description)));
    }
    text.push_str("\n## Parameters\n\n| Test Parameter | Description | Values |\n|---|---|---|\n");
    for (name, description, values) in parameters(results) {
        text.push_str(&format!("| {name} | {description} | {values} |\n"));
    }
    text.push_str(&format!(
        "\nEach test takes **{}**; the first **{}** are warm-up and not measured. Rounds: {}; figures are medians over the rounds.\n",
        about("duration"),
        about("warm-up"),
        about("rounds"),
    ));
    text.push_str("\n## System\n\n| Class | Description | Value |\n|---|---|---|\n");
    for (class, name, key) in SYSTEM {
        text.push_str(&format!("| {class} | {name} | {} |\n", md(about(key))));
    }
    for target in results.targets() {
        let how = results.about(&format!("gateway: {target}")).unwrap_or("");
        text.push_str(&format!("| Gateway | {} | {} |\n", md(target), md(how)));
    }
    let rows = results.rows();
    for target in results.targets() {
        text.push_str(&format!("\n## Results: {}\n\n", md(target)));
        let rows: Vec<&Row> = rows.iter().filter(|row| row.target == target).collect();
        text.push_str(&table(&rows));
    }
    if let Some(published) = published {
        text.push_str(&format!("\n## Beside the published figures of {}\n\n{CAVEAT}\n\n", published.product));
        text.push_str(&published_table(&rows, published));
    }
    text.push_str(&pair_table(results));
    text.push_str(&remarks(results));
    text
}

/// Name, description and values of the test parameters.
pub fn parameters(results: &Results) -> Vec<(&'static str, &'static str, String)> {
    let rows = results.rows();
    let values = |of: &dyn Fn(&Row) -> u64| {
        let mut all: Vec<u64> = rows.iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    vec![
        ("Concurrent Users", "Users who send one request after another", values(&|row| row.cell.users as u64)),
        ("Message Size (Bytes)", "Size of the request body", values(&|row| row.cell.message_bytes as u64)),
        (
            "Back-end Service Delay (ms)",
            "Wait of the back-end before it answers",
            values(&|row| row.cell.backend_delay_ms),
        ),
    ]
}

/// Class, name and key of what is said about the machine.
pub const SYSTEM: [(&str, &str, &str); 6] = [
    ("Processor", "Model name", "cpu model"),
    ("Processor", "CPU(s)", "cpus"),
    ("Memory", "System memory", "memory"),
    ("Operating System", "Distribution", "distribution"),
    ("Operating System", "Kernel", "kernel"),
    ("Load", "Load threads", "load threads"),
];

/// One row per combination, as published.
pub fn table(rows: &[&Row]) -> String {
    let shown: Vec<Metric> =
        SHOWN.into_iter().filter(|metric| rows.iter().any(|row| row.figures.get(*metric).is_some())).collect();
    let mut text =
        String::from("| Scenario Name | Concurrent Users | Message Size (Bytes) | Back-end Service Delay (ms) |");
    for metric in &shown {
        text.push_str(&format!(" {} |", metric.title()));
    }
    text.push_str(&format!(" Warnings |\n|---|---:|---:|---:|{}---|\n", "---:|".repeat(shown.len())));
    for row in rows {
        text.push_str(&key(row));
        let strike = if row.invalid().is_empty() { "" } else { "~~" };
        for metric in &shown {
            text.push_str(&format!(" {strike}{}{strike} |", row.figures.text(*metric)));
        }
        text.push_str(&format!(" {} |\n", md(&remarks_on(row))));
    }
    text
}

fn key(row: &Row) -> String {
    let cell = &row.cell;
    format!("| {} | {} | {} | {} |", md(&cell.scenario), cell.users, cell.message_bytes, row.delay_text())
}

/// Own figures, published figures and ratios.
pub fn published_table(rows: &[Row], published: &Published) -> String {
    let mut text = String::from(
        "| Gateway | Scenario Name | Concurrent Users | Message Size (Bytes) | Back-end Service Delay (ms) | Throughput (Requests/sec) | \
Published | Ratio | Average Response Time (ms) | Published | Ratio |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for row in rows {
        let [throughput, throughput_ratio, average, average_ratio] = published_fields(row, published);
        if throughput.is_empty() {
            continue;
        }
        let strike = if row.invalid().is_empty() { "" } else { "~~" };
        let own = |metric| format!("{strike}{}{strike}", row.figures.text(metric));
        let bold = |ratio: String| if ratio.is_empty() { ratio } else { format!("**{ratio}**") };
        let (throughput_ratio, average_ratio) = (bold(throughput_ratio), bold(average_ratio));
        text.push_str(&format!(
            "| {} {} {} | {throughput} | {throughput_ratio} | {} | {average} | {average_ratio} |\n",
            md(&row.target),
            key(row),
            own(Metric::Throughput),
            own(Metric::Average),
        ));
    }
    text
}

/// Ratios of the first gateway to each other one, round by round.
pub fn pair_table(results: &Results) -> String {
    let rows = results.rows();
    let mut body = String::new();
    for (row, other) in pairs(&rows, &results.targets()) {
        let ratio = |metric| match row.paired_ratio(other, metric) {
            Some(ratio) => format!("**{}**{}", ratio_text(ratio.median), ratio.range_text()),
            None => String::new(),
        };
        let ratios = [Metric::Throughput, Metric::Average, Metric::TargetCpu].map(ratio);
        body.push_str(&format!("| {} {} {} |\n", md(&other.target), key(row), ratios.join(" | ")));
    }
    if body.is_empty() {
        return String::new();
    }
    let first = results.targets().first().copied().unwrap_or("").to_owned();
    format!(
        "\n## {} beside the other gateways\n\nRatios of the same round, median (least–greatest). Above 1 in throughput and below 1 in \
response time and CPU is in favour of {}.\n\n| Beside | Scenario Name | Concurrent Users | Message Size (Bytes) | \
Back-end Service Delay (ms) | Throughput | Average Response Time | CPU per Request |\n|---|---|---:|---:|---:|---:|---:|---:|\n{body}",
        md(&first),
        md(&first),
    )
}

/// Rows of the first gateway with those of the others on the same combination.
pub fn pairs<'a>(rows: &'a [Row], targets: &[&str]) -> Vec<(&'a Row, &'a Row)> {
    let Some((first, others)) = targets.split_first() else { return Vec::new() };
    let mut pairs = Vec::new();
    for other in others {
        for row in rows.iter().filter(|row| row.target == *first) {
            pairs.extend(
                rows.iter().filter(|that| that.target == *other && that.cell == row.cell).map(|that| (row, that)),
            );
        }
    }
    pairs
}

/// `invalid` and the warnings of a row, for the cell at its end.
pub fn remarks_on(row: &Row) -> String {
    let invalid = (!row.invalid().is_empty()).then(|| "invalid".to_owned());
    invalid.into_iter().chain(row.warnings()).collect::<Vec<_>>().join("; ")
}

/// Every row that is no result, with the reason.
pub fn invalid_lines(rows: &[Row]) -> Vec<String> {
    let mut lines = Vec::new();
    for row in rows {
        let cell = &row.cell;
        for why in row.invalid() {
            lines.push(format!(
                "Invalid: {}, {}, {} users, {} B, {} ms delay: {why}",
                row.target, cell.scenario, cell.users, cell.message_bytes, cell.backend_delay_ms,
            ));
        }
    }
    lines
}

/// What a reader must know before trusting the figures.
pub fn remarks(results: &Results) -> String {
    let mut lines = Vec::new();
    for (_, why) in results.about.iter().filter(|(name, _)| name == "left out") {
        lines.push(format!("Left out: {why}"));
    }
    let rows = results.rows();
    lines.extend(invalid_lines(&rows));
    let costs: Vec<f64> = rows
        .iter()
        .filter_map(|row| Some(row.figures.get(Metric::LoadCpu)? / row.figures.get(Metric::TargetCpu)?))
        .filter(|share| share.is_finite())
        .collect();
    if let Some(share) = crate::figures::median(costs) {
        lines
            .push(format!("The load side cost {:.0} % of the gateway's CPU time per request (median).", share * 100.0));
    }
    if lines.is_empty() {
        return String::new();
    }
    format!("\n## Remarks\n\n{}\n", lines.iter().map(|line| format!("- {}", md(line))).collect::<Vec<_>>().join("\n"))
}

/// Text inside a Markdown table.
fn md(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
