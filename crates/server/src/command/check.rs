//! `penstock check PATH…`: compile everything, say everything, serve nothing.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use penstock_compile::Severity;

use super::Failure;
use crate::build::{self, BuildOptions, Built};
use crate::config;
use crate::migration::Report;

const AFTER: &str = "\
Exit status 1 if there is an error or no artifact, with --strict also for a warning. With --report: 1 if anything is not
supported, with --strict also if anything differs.";

pub(super) fn command() -> Command {
    Command::new("check")
        .about("Compiles everything and prints every diagnostic as file:line:column: level: message")
        .after_help(AFTER)
        .arg(super::paths_argument().required(true))
        .arg(super::run::config_argument())
        .arg(Arg::new("strict").long("strict").action(ArgAction::SetTrue).help("Warnings count as errors"))
        .arg(Arg::new("report").long("report").value_name("FORMAT").value_parser(["text", "json", "html"]).help(
            "Prints a migration report: for each artifact and key whether it is exact, differs or is not supported",
        ))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let strict = matches.get_flag("strict");
    let paths = super::paths(matches);
    let surroundings = config::surroundings(&paths);
    if let Some(format) = matches.get_one::<String>("report") {
        return migration(matches, &paths, &surroundings, format);
    }
    let settings = super::run::file_settings(matches.get_one::<PathBuf>("config").cloned(), &paths, &surroundings)?;
    let options = BuildOptions { strict, configurables: surroundings.configurables(), ..BuildOptions::default() };
    let built = build::build(&paths, &options, &settings)?;
    super::print(&report(&built));
    let bad = built.artifacts.is_empty()
        || built.count(Severity::Error) > 0
        || (strict && built.count(Severity::Warning) > 0);
    Ok(if bad { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Prints the migration report on what `run` would serve.
fn migration(
    matches: &ArgMatches,
    paths: &[PathBuf],
    surroundings: &config::Surroundings,
    format: &str,
) -> Result<ExitCode, Failure> {
    let configuration = super::run::configuration(matches.get_one::<PathBuf>("config").cloned(), paths, surroundings)?;
    let options = BuildOptions { configurables: surroundings.configurables(), ..BuildOptions::default() };
    let built = build::build(paths, &options, &configuration.settings)?;
    let report = Report::new(&built, &configuration);
    super::print(&match format {
        "json" => report.as_json(),
        "html" => report.as_html(),
        _ => report.as_text(),
    });
    Ok(if report.is_good(matches.get_flag("strict")) { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn report(built: &Built) -> String {
    let mut out = String::new();
    for diagnostic in &built.diagnostics {
        let _ = writeln!(out, "{diagnostic}");
    }
    if built.artifacts.is_empty() {
        out.push_str("error: no artifact was found under these paths\n");
    }
    let good = built.artifacts.iter().filter(|artifact| artifact.good).count();
    let artifacts = counted(built.artifacts.len(), "artifact");
    let errors = counted(built.count(Severity::Error), "error");
    let warnings = counted(built.count(Severity::Warning), "warning");
    let _ = writeln!(out, "{artifacts}, {good} good: {errors}, {warnings}");
    out
}

/// `1 error`, `2 errors`.
pub(super) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
