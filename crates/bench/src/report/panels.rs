//! The charts of the page: for every scenario throughput and response time, and what the gateway's CPU did.
use super::chart::{Chart, Series};
use super::published::Published;
use crate::figures::{DISTRIBUTION, Metric};
use crate::results::{Results, Row};
use penstock_xml::escaped;

/// The rows of one scenario with one delay: what shares a heading.
pub fn scenarios(results: &Results, rows: &[Row], published: Option<&Published>) -> String {
    let mut html = String::new();
    for scenario in results.scenarios() {
        let description = escaped(results.about(&format!("scenario: {scenario}")).unwrap_or(""));
        html.push_str(&format!("<section><h2>{}</h2><p>{description}</p>", escaped(scenario)));
        let of_scenario: Vec<&Row> = rows.iter().filter(|row| row.cell.scenario == scenario).collect();
        if of_scenario.is_empty() {
            html.push_str("<p>All rows of this scenario are invalid.</p>");
        }
        let delays = distinct(of_scenario.iter().map(|row| row.cell.backend_delay_ms));
        for delay in &delays {
            if delays.len() > 1 {
                html.push_str(&format!("<h3>Back-end delay {delay} ms</h3>"));
            }
            let rows: Vec<&Row> =
                of_scenario.iter().filter(|row| row.cell.backend_delay_ms == *delay).copied().collect();
            let users = distinct(rows.iter().map(|row| row.cell.users));
            html.push_str("<div class=\"panels\">");
            if users.len() > 1 {
                for target in results.targets() {
                    let rows: Vec<&Row> = rows.iter().filter(|row| row.target == target).copied().collect();
                    html.push_str(&over_users(&rows, &users, target, published));
                }
            } else {
                html.push_str(&over_sizes(&rows, results, published));
            }
            html.push_str(&distributions(&rows, &results.targets()));
            html.push_str("</div>");
        }
        html.push_str("</section>");
    }
    html
}

fn distinct<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.collect();
    values.sort();
    values.dedup();
    values
}

fn position(index: usize) -> f64 {
    index as f64
}

const MEASURES: [(Metric, &str); 2] =
    [(Metric::Throughput, "Throughput (requests/s)"), (Metric::Average, "Average response time (ms)")];

/// Throughput and response time against users, one line per message size.
fn over_users(rows: &[&Row], users: &[usize], target: &str, published: Option<&Published>) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let sizes = distinct(rows.iter().map(|row| row.cell.message_bytes));
    let mut html = String::new();
    for (metric, label) in MEASURES {
        let mut series = Vec::new();
        for (colour, size) in sizes.iter().enumerate() {
            let of_size = || rows.iter().filter(|row| row.cell.message_bytes == *size);
            let place = |row: &Row| users.iter().position(|count| *count == row.cell.users).map_or(0.0, position);
            let points = of_size().filter_map(|row| Some((place(row), row.figures.get(metric)?))).collect();
            series.push(Series { name: size_name(*size), points, colour, foreign: false });
            let Some(published) = published else { continue };
            let figure = |row: &Row| {
                let other = published.row(&row.cell)?;
                if metric == Metric::Throughput { other.throughput } else { other.average_ms }
            };
            let points: Vec<(f64, f64)> = of_size().filter_map(|row| Some((place(row), figure(row)?))).collect();
            if !points.is_empty() {
                series.push(Series { name: format!("{} published", size_name(*size)), points, colour, foreign: true });
            }
        }
        let chart = Chart {
            title: format!("{label} against concurrent users, {target}"),
            y_label: label.to_owned(),
            x_label: "Concurrent users".to_owned(),
            x_ticks: users.iter().enumerate().map(|(index, count)| (position(index), count.to_string())).collect(),
            series,
            bars: false,
            may_be_logarithmic: metric == Metric::Average,
        };
        html.push_str(&panel(target, &chart));
    }
    html
}

/// With one number of users there is no line to draw: bars, one group per message size, one bar per gateway.
fn over_sizes(rows: &[&Row], results: &Results, published: Option<&Published>) -> String {
    let sizes = distinct(rows.iter().map(|row| row.cell.message_bytes));
    let place = |row: &Row| sizes.iter().position(|size| *size == row.cell.message_bytes).map_or(0.0, position);
    let users = rows.first().map_or(0, |row| row.cell.users);
    let mut html = String::new();
    for (metric, label) in MEASURES {
        let mut series = Vec::new();
        for (colour, target) in results.targets().into_iter().enumerate() {
            let of_target = rows.iter().filter(|row| row.target == target);
            let points: Vec<(f64, f64)> =
                of_target.filter_map(|row| Some((place(row), row.figures.get(metric)?))).collect();
            if !points.is_empty() {
                series.push(Series { name: target.to_owned(), points, colour, foreign: false });
            }
        }
        if let Some(published) = published {
            let first = results.targets().first().copied().unwrap_or("").to_owned();
            let figure = |row: &Row| {
                let other = published.row(&row.cell)?;
                if metric == Metric::Throughput { other.throughput } else { other.average_ms }
            };
            let of_first = rows.iter().filter(|row| row.target == first);
            let points: Vec<(f64, f64)> = of_first.filter_map(|row| Some((place(row), figure(row)?))).collect();
            if !points.is_empty() {
                series.push(Series {
                    name: "published".to_owned(),
                    points,
                    colour: super::chart::COLOURS - 1,
                    foreign: true,
                });
            }
        }
        let chart = Chart {
            title: format!("{label} by message size, {users} users"),
            y_label: label.to_owned(),
            x_label: format!("Message size, {users} concurrent users"),
            x_ticks: sizes.iter().enumerate().map(|(index, size)| (position(index), size_name(*size))).collect(),
            series,
            bars: true,
            may_be_logarithmic: false,
        };
        html.push_str(&panel("", &chart));
    }
    html
}

/// Response time by percentile with the fewest users: one chart with a line per message size, or with several gateways
/// one chart per message size with a line per gateway.
fn distributions(rows: &[&Row], targets: &[&str]) -> String {
    let Some(users) = rows.iter().map(|row| row.cell.users).min() else { return String::new() };
    let rows: Vec<&Row> = rows.iter().filter(|row| row.cell.users == users).copied().collect();
    let sizes = distinct(rows.iter().map(|row| row.cell.message_bytes));
    if let [target] = targets {
        let lines = rows.iter().zip(0..).map(|(row, colour)| (*row, size_name(row.cell.message_bytes), colour));
        return distribution(lines, target, users);
    }
    let mut html = String::new();
    for size in sizes {
        let of_size = rows.iter().filter(|row| row.cell.message_bytes == size);
        let colour = |row: &Row| targets.iter().position(|target| *target == row.target).unwrap_or(0);
        let lines = of_size.map(|row| (*row, row.target.clone(), colour(row)));
        html.push_str(&distribution(lines, &size_name(size), users));
    }
    html
}

/// One chart of response times, on an axis that gives each further nine of the percentile the same room.
fn distribution<'a>(lines: impl Iterator<Item = (&'a Row, String, usize)>, heading: &str, users: usize) -> String {
    let nines = |percentile: f64| -(1.0 - percentile / 100.0).log10();
    let measured = lines.filter(|(row, ..)| row.figures.distribution.len() == DISTRIBUTION.len());
    let series: Vec<Series> = measured
        .map(|(row, name, colour)| {
            let points = DISTRIBUTION.iter().zip(&row.figures.distribution);
            // The maximum would stand infinitely far to the right.
            let points = points.filter(|(percentile, _)| **percentile < 100.0);
            let points = points.map(|(percentile, ms)| (nines(*percentile), *ms)).collect();
            Series { name, points, colour, foreign: false }
        })
        .collect();
    if series.is_empty() {
        return String::new();
    }
    let ticks = [(0.0, "0"), (50.0, "50"), (90.0, "90"), (99.0, "99"), (99.9, "99.9"), (99.99, "99.99")];
    let chart = Chart {
        title: format!("Response time by percentile, {heading}, {users} users"),
        y_label: format!("Response time (ms), {users} users"),
        x_label: "Percentile of requests (%)".to_owned(),
        x_ticks: ticks.into_iter().map(|(percentile, text)| (nines(percentile), text.to_owned())).collect(),
        series,
        bars: false,
        may_be_logarithmic: true,
    };
    panel(heading, &chart)
}

fn panel(target: &str, chart: &Chart) -> String {
    let heading = if target.is_empty() { String::new() } else { format!("<h4>{}</h4>", escaped(target)) };
    format!("<div class=\"panel\">{heading}{}</div>", chart.html())
}

fn size_name(bytes: usize) -> String {
    match bytes {
        0 => "no body".to_owned(),
        whole if whole % 1024 == 0 => format!("{} KiB", whole / 1024),
        whole if whole % 1000 == 0 => format!("{} KB", whole / 1000),
        other => format!("{other} B"),
    }
}

/// CPU per request of every gateway and scenario at the smallest load.
pub fn cpu_section(results: &Results, rows: &[Row]) -> String {
    if rows.iter().all(|row| row.figures.get(Metric::TargetCpu).is_none()) {
        return String::new();
    }
    let users = rows.iter().map(|row| row.cell.users).min().unwrap_or(0);
    let sizes = distinct(rows.iter().map(|row| row.cell.message_bytes));
    let mut panels = String::new();
    for scenario in results.scenarios() {
        let of_scenario: Vec<&Row> =
            rows.iter().filter(|row| row.cell.scenario == scenario && row.cell.users == users).collect();
        let delay = of_scenario.iter().map(|row| row.cell.backend_delay_ms).min().unwrap_or(0);
        let series: Vec<Series> = results
            .targets()
            .into_iter()
            .enumerate()
            .map(|(colour, target)| {
                let rows = of_scenario.iter().filter(|row| row.target == target && row.cell.backend_delay_ms == delay);
                let place =
                    |row: &Row| sizes.iter().position(|size| *size == row.cell.message_bytes).map_or(0.0, position);
                let points = rows.filter_map(|row| Some((place(row), row.figures.get(Metric::TargetCpu)?))).collect();
                Series { name: target.to_owned(), points, colour, foreign: false }
            })
            .filter(|series| !series.points.is_empty())
            .collect();
        let chart = Chart {
            title: format!("CPU time per request, {scenario}"),
            y_label: "CPU per request (µs)".to_owned(),
            x_label: format!("Message size, {users} concurrent users"),
            x_ticks: sizes.iter().enumerate().map(|(index, size)| (position(index), size_name(*size))).collect(),
            series,
            bars: true,
            may_be_logarithmic: false,
        };
        panels.push_str(&panel(scenario, &chart));
    }
    format!("<section><h2>CPU time of the gateway</h2><div class=\"panels\">{panels}</div></section>")
}
