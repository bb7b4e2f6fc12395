//! `report.html`: one self-contained page with charts and tables, light and dark, for screens, phones and paper.
use super::chart::short_number;
use super::panels::{cpu_section, scenarios};
use super::published::{CAVEAT, Published};
use super::tables::{SYSTEM, pairs, parameters, published_fields, ratio_text, remarks_on};
use crate::figures::Metric;
use crate::load::tally::FailedExchange;
use crate::results::{Results, Row};
use penstock_xml::escaped;

const STYLE: &str = include_str!("report.css");

/// The page.
pub fn page(results: &Results, published: Option<&Published>, failures: &[(String, FailedExchange)]) -> String {
    let about = |name: &str| escaped(results.about(name).unwrap_or(""));
    let title = about("title");
    let rows = results.rows();
    let mut body = format!(
        "<header><h1>{title}</h1><p>Measured with <code>penstock bench</code> on {}.</p></header>",
        about("date")
    );
    // Invalid figures stand in no chart and are the best of nothing.
    let valid: Vec<Row> = rows.iter().filter(|row| row.invalid().is_empty()).cloned().collect();
    body.push_str(&facts(&rows, &valid));
    body.push_str(&scenarios(results, &valid, published));
    body.push_str(&cpu_section(results, &valid));
    if let Some(published) = published {
        body.push_str(&published_section(&rows, published));
    }
    body.push_str(&pair_section(results, &rows));
    body.push_str(&all_figures(&rows));
    let invalid = super::tables::invalid_lines(&rows);
    if !invalid.is_empty() {
        let items: String = invalid.iter().map(|line| format!("<li>{}</li>", escaped(line))).collect();
        body.push_str(&format!("<section><h2>Invalid rows</h2><ul>{items}</ul></section>"));
    }
    body.push_str(&failure_section(failures));
    body.push_str(&conditions(results));
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, \
initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title><style>{STYLE}</style></head><body>{body}</body></html>\n"
    )
}

fn facts(rows: &[Row], valid: &[Row]) -> String {
    let errors: f64 = rows.iter().filter_map(|row| row.figures.get(Metric::Errors)).sum();
    let best = valid.iter().max_by(|a, b| value(a, Metric::Throughput).total_cmp(&value(b, Metric::Throughput)));
    let mut items = Vec::new();
    if let Some(best) = best {
        let what = format!("requests/s at best: {}, {}", best.target, best.cell.scenario);
        items.push((short_number(value(best, Metric::Throughput)), what));
    }
    let cpu = valid.iter().filter_map(|row| Some((row, row.figures.get(Metric::TargetCpu)?)));
    if let Some((row, cpu)) = cpu.min_by(|a, b| a.1.total_cmp(&b.1)) {
        items.push((format!("{cpu:.1} µs"), format!("CPU per request at best: {}, {}", row.target, row.cell.scenario)));
    }
    items.push((short_number(errors), "failed requests".to_owned()));
    items.push(((rows.len() - valid.len()).to_string(), "invalid rows".to_owned()));
    items.push((
        rows.iter().filter(|row| !row.warnings().is_empty()).count().to_string(),
        "rows with warnings".to_owned(),
    ));
    items.push((rows.iter().map(|row| row.rounds.len()).sum::<usize>().to_string(), "tests run".to_owned()));
    let costs: Vec<f64> = rows
        .iter()
        .filter_map(|row| Some(row.figures.get(Metric::LoadCpu)? / row.figures.get(Metric::TargetCpu)?))
        .collect();
    if let Some(share) = crate::figures::median(costs) {
        items.push((format!("{:.0} %", share * 100.0), "load side CPU per request, of the gateway's".to_owned()));
    }
    let items = items.iter().map(|(figure, what)| format!("<li><b>{figure}</b><span>{}</span></li>", escaped(what)));
    format!("<ul class=\"facts\">{}</ul>", items.collect::<String>())
}

/// A figure of the row, struck out if the row is invalid.
fn own_figure(row: &Row, metric: Metric) -> String {
    let text = row.figures.text(metric);
    if row.invalid().is_empty() { text } else { format!("<s>{text}</s>") }
}

fn value(row: &Row, metric: Metric) -> f64 {
    row.figures.get(metric).unwrap_or(0.0)
}

fn published_section(rows: &[Row], published: &Published) -> String {
    let mut body = String::new();
    for row in rows {
        let [throughput, throughput_ratio, average, average_ratio] = published_fields(row, published);
        if throughput.is_empty() {
            continue;
        }
        let cells = [
            own_figure(row, Metric::Throughput),
            throughput,
            throughput_ratio,
            own_figure(row, Metric::Average),
            average,
            average_ratio,
        ];
        body.push_str(&format!("<tr><td>{}</td>{}{}</tr>", escaped(&row.target), key_cells(row), number_cells(&cells)));
    }
    if body.is_empty() {
        return String::new();
    }
    format!(
        "<section><h2>Beside the published figures of {}</h2><p>{CAVEAT}</p><div class=\"scroll\"><table><thead><tr><th>Gateway</th>{KEY_HEAD}\
<th>Throughput (requests/s)</th><th>Published</th><th>Ratio</th><th>Average response time (ms)</th><th>Published</th><th>Ratio</th></tr></thead>\
<tbody>{body}</tbody></table></div></section>",
        escaped(&published.product)
    )
}

fn pair_section(results: &Results, rows: &[Row]) -> String {
    let mut body = String::new();
    for (row, other) in pairs(rows, &results.targets()) {
        let ratio = |metric| match row.paired_ratio(other, metric) {
            Some(ratio) => format!("<b>{}</b>{}", ratio_text(ratio.median), ratio.range_text()),
            None => String::new(),
        };
        let cells = [Metric::Throughput, Metric::Average, Metric::TargetCpu].map(ratio);
        body.push_str(&format!(
            "<tr><td>{}</td>{}{}</tr>",
            escaped(&other.target),
            key_cells(row),
            number_cells(&cells)
        ));
    }
    if body.is_empty() {
        return String::new();
    }
    let first = escaped(results.targets().first().copied().unwrap_or(""));
    format!(
        "<section><h2>{first} beside the other gateways</h2><p>Ratios of the same round: median (least–greatest). Above 1 in throughput and \
below 1 in response time and CPU is in favour of {first}.</p><div class=\"scroll\"><table><thead><tr><th>Beside</th>{KEY_HEAD}<th>Throughput</th>\
<th>Average response time</th><th>CPU per request</th></tr></thead><tbody>{body}</tbody></table></div></section>"
    )
}

const KEY_HEAD: &str = "<th>Scenario</th><th>Users</th><th>Size (B)</th><th>Delay (ms)</th>";

fn key_cells(row: &Row) -> String {
    let cell = &row.cell;
    let numbers = number_cells(&[cell.users.to_string(), cell.message_bytes.to_string(), row.delay_text()]);
    format!("<td>{}</td>{numbers}", escaped(&cell.scenario))
}

fn number_cells(texts: &[String]) -> String {
    texts.iter().map(|text| format!("<td class=\"n\">{text}</td>")).collect()
}

fn all_figures(rows: &[Row]) -> String {
    let metrics: Vec<Metric> =
        Metric::all().filter(|metric| rows.iter().any(|row| row.figures.get(*metric).is_some())).collect();
    let head: String = metrics.iter().map(|metric| format!("<th>{}</th>", escaped(metric.title()))).collect();
    let mut body = String::new();
    for row in rows {
        let cells: Vec<String> = metrics.iter().map(|metric| own_figure(row, *metric)).collect();
        body.push_str(&format!(
            "<tr><td>{}</td>{}<td class=\"w\">{}</td>{}</tr>",
            escaped(&row.target),
            key_cells(row),
            escaped(&remarks_on(row)),
            number_cells(&cells)
        ));
    }
    format!(
        "<section><h2>All figures</h2><p>Medians over the rounds.</p><div class=\"scroll\"><table><thead><tr><th>Gateway</th>{KEY_HEAD}<th class=\"w\">Remarks</th>{head}</tr>\
</thead><tbody>{body}</tbody></table></div></section>"
    )
}

fn failure_section(failures: &[(String, FailedExchange)]) -> String {
    if failures.is_empty() {
        return String::new();
    }
    let items = failures.iter().map(|(place, failure)| {
        format!(
            "<details><summary>{}: {}</summary><h4>Sent</h4><pre>{}</pre><h4>Received</h4><pre>{}</pre></details>",
            escaped(place),
            escaped(&failure.reason),
            escaped(&failure.request),
            escaped(&failure.response)
        )
    });
    format!("<section><h2>First failures</h2>{}</section>", items.collect::<String>())
}

fn conditions(results: &Results) -> String {
    let mut body = String::new();
    let mut line = |name: &str, value: &str| {
        body.push_str(&format!("<tr><th>{}</th><td>{}</td></tr>", escaped(name), escaped(value)));
    };
    for (name, _, values) in parameters(results) {
        line(name, &values);
    }
    for (name, key) in [
        ("Time of each test", "duration"),
        ("Warm-up, not measured", "warm-up"),
        ("Ramp-up", "ramp-up"),
        ("Rounds", "rounds"),
    ] {
        line(name, results.about(key).unwrap_or(""));
    }
    for (_, name, key) in SYSTEM {
        line(name, results.about(key).unwrap_or(""));
    }
    for target in results.targets() {
        line(&format!("Gateway {target}"), results.about(&format!("gateway: {target}")).unwrap_or(""));
    }
    for (_, value) in results.about.iter().filter(|(name, _)| name == "left out") {
        line("Left out", value);
    }
    format!(
        "<section><h2>Conditions</h2><div class=\"scroll\"><table class=\"plain\"><tbody>{body}</tbody></table></div></section>"
    )
}
