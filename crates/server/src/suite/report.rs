//! The report: text for the terminal, JUnit XML for build servers.

use std::fmt::Write;

use super::SuiteReport;
use super::case::{CaseReport, Failed};

/// A text longer than this is cut on the terminal; the report in a file has all of it.
const SHOWN_CHARACTERS_MAX: usize = 2_000;

/// Lines of the log that are shown with a failure.
const LOG_LINES_MAX: usize = 20;

/// The report for people.
pub fn terminal(reports: &[SuiteReport], verbose: bool) -> String {
    let mut out = String::new();
    for report in reports {
        suite(&mut out, report, verbose);
    }
    let cases = reports.iter().map(|report| report.cases.len()).sum::<usize>();
    let passed = reports.iter().flat_map(|report| &report.cases).filter(|case| case.failures.is_empty()).count();
    let good = reports.iter().filter(|report| report.passed()).count();
    let _ =
        writeln!(out, "{passed} of {} passed, {good} of {}", counted(cases, "case"), counted(reports.len(), "suite"));
    out
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn suite(out: &mut String, report: &SuiteReport, verbose: bool) {
    let _ = writeln!(out, "{}", report.file.display());
    for line in report.missing.iter().chain(&report.broken) {
        let _ = writeln!(out, "  cannot run: {line}");
    }
    for note in &report.notes {
        let _ = writeln!(out, "  {note}");
    }
    for case in &report.cases {
        let verdict = if case.failures.is_empty() { "pass" } else { "FAIL" };
        let _ = writeln!(out, "  {verdict} {}", case.name);
        for failed in &case.failures {
            failure(out, failed);
        }
        if verbose || !case.failures.is_empty() {
            log(out, case);
        }
    }
    let (Some(artifact), false) = (&report.artifact, report.cases.is_empty()) else { return };
    let coverage = &report.coverage;
    let _ = write!(
        out,
        "  {} % of {} covered, {} of {}",
        coverage.percent(),
        artifact.display(),
        coverage.reached(),
        counted(coverage.total(), "mediator")
    );
    let missed: Vec<String> = coverage.missed().iter().map(ToString::to_string).collect();
    let _ = match missed.as_slice() {
        [] => writeln!(out),
        [line] => writeln!(out, "; not reached: line {line}"),
        lines => writeln!(out, "; not reached: lines {}", lines.join(", ")),
    };
}

fn failure(out: &mut String, failed: &Failed) {
    let Some(difference) = &failed.assertion else {
        let _ = writeln!(out, "       {}", failed.message);
        return;
    };
    let _ = writeln!(out, "       line {}, {}: {}", difference.line, difference.of, failed.message);
    let _ = match &difference.expected {
        Some(expected) => writeln!(out, "         expected: {}", shown(expected)),
        None => writeln!(out, "         expected: anything"),
    };
    let _ = match &difference.actual {
        Some(actual) => writeln!(out, "         actual:   {}", shown(actual)),
        None => writeln!(out, "         actual:   nothing"),
    };
}

fn log(out: &mut String, case: &CaseReport) {
    let skipped = case.log.len().saturating_sub(LOG_LINES_MAX);
    for line in case.log.iter().skip(skipped) {
        let _ = writeln!(out, "       log: {}", shown(line));
    }
}

/// A text on lines of its own below each other, cut where it is long.
fn shown(text: &str) -> String {
    let cut: String = text.trim().chars().take(SHOWN_CHARACTERS_MAX).collect();
    let dots = if cut.len() < text.trim().len() { "…" } else { "" };
    format!("{}{dots}", cut.replace('\n', "\n                   "))
}

/// The report for machines, as build servers read it.
pub fn junit(reports: &[SuiteReport]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for report in reports {
        junit_suite(&mut out, report);
    }
    out.push_str("</testsuites>\n");
    out
}

fn junit_suite(out: &mut String, report: &SuiteReport) {
    let name = report.file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let troubles: Vec<&String> = report.missing.iter().chain(&report.broken).collect();
    let failures = report.cases.iter().filter(|case| !case.failures.is_empty()).count();
    let errors = usize::from(!troubles.is_empty());
    let _ = writeln!(
        out,
        "  <testsuite name=\"{}\" file=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{:.3}\">",
        escaped(&name),
        escaped(&report.file.display().to_string()),
        report.cases.len() + errors,
        report.took.as_secs_f64()
    );
    let missed: Vec<String> = report.coverage.missed().iter().map(ToString::to_string).collect();
    let _ = writeln!(
        out,
        "    <properties><property name=\"coverage\" value=\"{}\"/><property name=\"lines.missed\" value=\"{}\"/></properties>",
        report.coverage.percent(),
        missed.join(" ")
    );
    if !troubles.is_empty() {
        let text: Vec<&str> = troubles.iter().map(|line| line.as_str()).collect();
        let _ = writeln!(
            out,
            "    <testcase name=\"the suite\" classname=\"{}\"><error message=\"the suite cannot run\">{}</error></testcase>",
            escaped(&name),
            escaped(&text.join("\n"))
        );
    }
    for case in &report.cases {
        junit_case(out, &name, case);
    }
    out.push_str("  </testsuite>\n");
}

fn junit_case(out: &mut String, suite: &str, case: &CaseReport) {
    let _ = write!(
        out,
        "    <testcase name=\"{}\" classname=\"{}\" line=\"{}\" time=\"{:.3}\"",
        escaped(&case.name),
        escaped(suite),
        case.line,
        case.took.as_secs_f64()
    );
    if case.failures.is_empty() {
        out.push_str("/>\n");
        return;
    }
    out.push_str(">\n");
    for failed in &case.failures {
        let mut text = String::new();
        if let Some(difference) = &failed.assertion {
            let _ = writeln!(text, "{} in line {}", difference.of, difference.line);
            let _ = writeln!(text, "expected: {}", difference.expected.as_deref().unwrap_or("anything"));
            let _ = write!(text, "actual: {}", difference.actual.as_deref().unwrap_or("nothing"));
        }
        let _ = writeln!(out, "      <failure message=\"{}\">{}</failure>", escaped(&failed.message), escaped(&text));
    }
    let _ = writeln!(out, "      <system-out>{}</system-out>", escaped(&case.log.join("\n")));
    out.push_str("    </testcase>\n");
}

/// Text that may stand in XML: characters that XML has no way to write are left out.
fn escaped(text: &str) -> String {
    let writable = |letter: &char| matches!(letter, '\n' | '\t') || !letter.is_control();
    penstock_xml::escaped(&text.chars().filter(writable).collect::<String>())
}
