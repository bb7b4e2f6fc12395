//! `penstock bench run`: a whole plan.
use super::arguments::{default_threads, flag, number, option, repeated, text, texts};
use super::overrides::plan;
use super::{Outcome, print, stop_on_interrupt};
use crate::calendar::timestamp;
use crate::error::Error;
use crate::observe::machine::Machine;
use crate::plan::Plan;
use crate::progress::clock;
use crate::report;
use crate::report::published::{CAVEAT, Published};
use crate::report::terminal;
use crate::results::{Results, ResultsDirectory};
use crate::runner::{Report, Session};
use clap::{Arg, ArgMatches};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The file in a directory of results that holds the command line they were made with.
const ARGUMENTS_FILE: &str = "arguments.txt";

pub fn command() -> clap::Command {
    clap::Command::new("run")
        .about("Runs a plan: starts the gateways and the back-end, runs the matrix, writes the reports")
        .arg(
            Arg::new("PLAN")
                .required_unless_present("resume")
                .help("Name of a plan that ships with the program (see `penstock bench plans`), or a TOML file"),
        )
        .arg(flag("quick", "The plan's short form, which ends within two minutes"))
        .arg(flag("peers", "Measure nginx, HAProxy and Envoy too, where installed"))
        .arg(repeated("target", "NAME", "Measure only this gateway of the plan"))
        .arg(repeated("scenario", "NAME", "Measure only this scenario of the plan"))
        .arg(repeated("gateway", "NAME=URL", "Measure a gateway that runs already, instead of the plan's own"))
        .arg(repeated(
            "gateway-pid",
            "NAME=PID",
            "Process of a gateway that runs already, to measure CPU time and memory",
        ))
        .arg(option("users", "N,…", "Numbers of concurrent users"))
        .arg(option("sizes", "BYTES,…", "Message sizes, such as 500,10KB"))
        .arg(option("delays", "MS,…", "Delays of the back-end in milliseconds"))
        .arg(option("duration", "TIME", "Whole time of each test, ramp-up and warm-up included"))
        .arg(option("warm-up", "TIME", "First part of the time, which is not measured"))
        .arg(option("ramp-up", "TIME", "Time over which the users start"))
        .arg(option("rounds", "N", "Rounds of each combination; gateways alternate"))
        .arg(option("rate", "N", "Open loop at N requests per second"))
        .arg(option("threads", "N", "Load threads [default: half the processors]"))
        .arg(option("tokens", "FILE", "CSV file whose first column holds the values for `${token}`"))
        .arg(repeated("port", "[NAME=]PORT", "Port of a gateway the plan starts; without a name, of the first one"))
        .arg(option("backend-port", "PORT", "Port of the embedded back-end"))
        .arg(flag("no-backend", "Start no back-end: one runs already where the gateway expects it"))
        .arg(option("compare", "WHAT", "`published`, or the name of a published report, to compare with"))
        .arg(option("out", "DIR", "Where results go [default: penstock-bench/PLAN-TIME]"))
        .arg(option("resume", "DIR", "Continue an interrupted run with its arguments"))
}

pub fn run(matches: &ArgMatches) -> Result<Outcome, Error> {
    if let Some(directory) = text(matches, "resume") {
        return resume(Path::new(directory));
    }
    let directory = match text(matches, "out") {
        Some(directory) => PathBuf::from(directory),
        None => default_directory(text(matches, "PLAN").unwrap_or("plan")),
    };
    run_in(matches, &directory, false)
}

/// Reads the arguments an interrupted run was started with and goes on.
fn resume(directory: &Path) -> Result<Outcome, Error> {
    let file = directory.join(ARGUMENTS_FILE);
    let text = std::fs::read_to_string(&file).map_err(|error| Error::file(&file, &error))?;
    let arguments = std::iter::once("run").chain(text.lines());
    let matches = command().try_get_matches_from(arguments).map_err(|error| {
        Error::Input(format!("{}: {}", file.display(), error.to_string().trim_start_matches("error: ").trim_end()))
    })?;
    run_in(&matches, directory, true)
}

fn run_in(matches: &ArgMatches, path: &Path, resumed: bool) -> Result<Outcome, Error> {
    let (plan, plan_directory) = plan(matches)?;
    let published = published(matches, &plan)?;
    let directory = ResultsDirectory::create(path)?;
    let earlier = directory.load()?;
    if !resumed && !earlier.runs.is_empty() {
        let hint = format!("go on with `--resume {}` or choose another directory", path.display());
        return Err(Error::Usage(format!("`{}` holds results already; {hint}", path.display())));
    }
    if !resumed {
        directory.write(ARGUMENTS_FILE, &arguments_of(matches))?;
    }
    let tokens = match text(matches, "tokens") {
        Some(file) => crate::csv::first_column(Path::new(file))?,
        None => Vec::new(),
    };
    let threads = number(matches, "threads")?.unwrap_or_else(default_threads);
    let stop = stop_on_interrupt();
    let session = Session {
        plan: &plan,
        plan_directory,
        tokens: tokens.into(),
        threads,
        directory: &directory,
        done: earlier.runs,
        penstock: penstock_program(),
        stop,
    };
    let begun = Instant::now();
    let mut report = Report::default();
    let outcome = session.run(&mut report);
    let is_whole = outcome.is_ok() && !report.stopped;
    let mut results = directory.load()?;
    let described = if resumed { earlier.about } else { Vec::new() };
    results.about = continued(described, about(&plan, &report, threads, published), is_whole);
    directory.write_about(&results.about)?;
    let mut failures = report.failures.clone();
    let before = if resumed { directory.load_failures()? } else { Vec::new() };
    for (place, failure) in before {
        if !failures.iter().any(|(other, _)| *other == place) {
            failures.push((place, failure));
        }
    }
    directory.write_failures(&failures)?;
    if !results.runs.is_empty() {
        report::write(&directory, &results, &failures)?;
        print(&text_report(&results, published.and_then(Published::find).as_ref()));
    }
    say(&failures_text(&report));
    if !results.runs.is_empty() {
        let took = clock(begun.elapsed());
        say(&format!("{} tests in {took}; reports are in {}\n", results.runs.len(), path.display()));
    }
    if report.stopped {
        say(&format!("stopped; go on with `penstock bench run --resume {}`\n", path.display()));
    }
    outcome.map(|()| {
        let failed = !report.failures.is_empty() || results.runs.is_empty();
        if failed { Outcome::Failures } else { Outcome::Done }
    })
}

fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn published(matches: &ArgMatches, plan: &Plan) -> Result<Option<&'static str>, Error> {
    let wanted = match text(matches, "compare") {
        None => return Ok(None),
        Some("published") => plan.published.clone().unwrap_or_default(),
        Some(name) => name.to_owned(),
    };
    let found = Published::names().find(|name| *name == wanted);
    let names: Vec<&str> = Published::names().collect();
    let unknown = || Error::Usage(format!("no published report `{wanted}`; there are {}", names.join(", ")));
    found.map(Some).ok_or_else(unknown)
}

/// The arguments as lines, for `--resume`. Relative paths stay relative: go on from where you started.
fn arguments_of(matches: &ArgMatches) -> String {
    let mut lines: Vec<String> = text(matches, "PLAN").map(str::to_owned).into_iter().collect();
    for argument in command().get_arguments() {
        let name = argument.get_id().as_str();
        if name == "PLAN" || name == "resume" || name == "out" {
            continue;
        }
        if !argument.get_action().takes_values() {
            if matches.get_flag(name) {
                lines.push(format!("--{name}"));
            }
            continue;
        }
        lines.extend(texts(matches, name).into_iter().map(|value| format!("--{name}={value}")));
    }
    lines.join("\n") + "\n"
}

/// What `{penstock}` in a plan stands for: this very program, unless it is the kit alone.
fn penstock_program() -> String {
    if let Some(program) = std::env::var_os("PENSTOCK") {
        return program.to_string_lossy().into_owned();
    }
    match std::env::current_exe() {
        Ok(program) if program.file_stem().is_none_or(|name| name != "penstock-bench") => program.display().to_string(),
        _ => "penstock".to_owned(),
    }
}

/// Between the dates of the first and the last sitting.
const RESUMED: &str = ", resumed ";

fn default_directory(plan: &str) -> PathBuf {
    let name = Path::new(plan).file_stem().map_or("plan".into(), std::ffi::OsStr::to_string_lossy);
    // A name such as `mi-4.5.0` ends in what looks like an extension.
    let name = if plan.ends_with(".toml") { name.into_owned() } else { plan.replace('/', "-") };
    let time = timestamp().replace([':', ' '], "-").trim_end_matches("-UTC").to_owned();
    Path::new("penstock-bench").join(format!("{name}-{time}"))
}

fn about(plan: &Plan, report: &Report, threads: usize, published: Option<&str>) -> Vec<(String, String)> {
    let machine = Machine::read();
    let seconds = |duration: std::time::Duration| format!("{} s", duration.as_secs_f64());
    let mut about: Vec<(String, String)> = [
        ("title", plan.title.clone()),
        ("plan", plan.name.clone()),
        ("date", timestamp()),
        ("duration", seconds(plan.timing.duration)),
        ("warm-up", seconds(plan.timing.warm_up)),
        ("ramp-up", seconds(plan.timing.ramp_up)),
        ("rounds", plan.timing.rounds.to_string()),
        ("cpu model", machine.cpu_model),
        ("cpus", machine.cpus.to_string()),
        ("memory", format!("{} MiB", machine.memory_bytes / (1024 * 1024))),
        ("distribution", machine.distribution),
        ("kernel", machine.kernel),
        ("load threads", threads.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    about.extend(plan.timing.rate.map(|rate| ("rate".to_owned(), rate.to_string())));
    about.extend(plan.published.iter().map(|name| ("published".to_owned(), name.clone())));
    about.extend(published.map(|name| ("compare".to_owned(), name.to_owned())));
    let scenarios = plan.scenarios.iter();
    about.extend(scenarios.map(|scenario| (format!("scenario: {}", scenario.name), scenario.description.clone())));
    about.extend(report.gateways.iter().map(|(name, how)| (format!("gateway: {name}"), how.clone())));
    about.extend(report.left_out.iter().map(|why| ("left out".to_owned(), why.clone())));
    about
}

/// The description of results that were measured in several sittings: gateways of earlier ones stay, and what they left
/// out, unless this one tried everything again.
fn continued(earlier: Vec<(String, String)>, now: Vec<(String, String)>, is_whole: bool) -> Vec<(String, String)> {
    let mut about = now;
    let first = earlier.iter().find(|(name, _)| name == "date").and_then(|(_, date)| date.split(RESUMED).next());
    if let (Some(first), Some((_, date))) = (first, about.iter_mut().find(|(name, _)| name == "date")) {
        *date = format!("{first}{RESUMED}{date}");
    }
    for entry in &earlier {
        let stays = if entry.0 == "left out" { !is_whole } else { entry.0.starts_with("gateway: ") };
        let is_there = |(name, value): &(String, String)| *name == entry.0 && (name != "left out" || *value == entry.1);
        if stays && !about.iter().any(is_there) {
            about.push(entry.clone());
        }
    }
    about
}

/// The table for the terminal.
fn text_report(results: &Results, published: Option<&Published>) -> String {
    let rows = results.rows();
    let mut text = terminal::rows(&rows, published);
    if published.is_some() {
        text.push_str(&format!("{CAVEAT}\n"));
    }
    text.push_str(&terminal::ratios(results));
    text
}

fn failures_text(report: &Report) -> String {
    let mut text = String::new();
    for why in &report.left_out {
        text.push_str(&format!("ignored: {why}\n"));
    }
    for (place, failure) in &report.failures {
        text.push_str(&format!("\n{place}\n{}", terminal::failed_exchange(failure)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_of_a_run_are_those_it_resumes_with() {
        let matches = command().try_get_matches_from([
            "run",
            "quick",
            "--quick",
            "--users",
            "1,2",
            "--scenario",
            "Direct Proxy",
            "--scenario",
            "Direct API",
            "--out",
            "x",
        ]);
        let expected = "quick\n--quick\n--scenario=Direct Proxy\n--scenario=Direct API\n--users=1,2\n";
        assert_eq!(arguments_of(&matches.unwrap()), expected);
    }

    #[test]
    fn a_resumed_run_keeps_the_description_of_what_was_measured_before() {
        let about = |entries: &[(&str, &str)]| -> Vec<(String, String)> {
            entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let earlier =
            about(&[("date", "1"), ("gateway: a", "old"), ("gateway: b", "gone"), ("left out", "b · x: it fails")]);
        let now = about(&[("date", "2"), ("gateway: a", "new"), ("left out", "c · x: it fails")]);
        let interrupted = continued(earlier.clone(), now.clone(), false);
        let common =
            [("date", "1, resumed 2"), ("gateway: a", "new"), ("left out", "c · x: it fails"), ("gateway: b", "gone")];
        assert_eq!(interrupted, about(&[common.as_slice(), &[("left out", "b · x: it fails")]].concat()));
        assert_eq!(continued(interrupted, now, true), about(&common));
        let fresh = about(&[("date", "1")]);
        assert_eq!(continued(Vec::new(), fresh.clone(), true), fresh);
    }

    fn check(arguments: &[&str], expected: &str) {
        let matches = command().try_get_matches_from(["run"].iter().chain(arguments)).unwrap();
        let message = plan(&matches).and_then(|(plan, _)| published(&matches, &plan)).err().unwrap().to_string();
        assert_eq!(message, expected);
    }

    #[test]
    fn wrong_arguments_are_explained() {
        check(&["nope"], "no plan `nope`; there are quick, mi-4.5.0, ei-6.6.0, apim, choreo-connect, mediators");
        check(
            &["quick", "--scenario", "Direct Prox"],
            "the plan has no scenario `Direct Prox`; did you mean `Direct Proxy`?",
        );
        check(&["quick", "--users", "1,x"], "`--users 1,x`: `x` is not a value of this list");
        check(&["quick", "--warm-up", "9s"], "the warm-up must be shorter than the duration, which includes it");
        check(
            &["quick", "--compare", "x"],
            "no published report `x`; there are mi-4.5.0, ei-6.6.0, apim, choreo-connect",
        );
        check(&["quick", "--gateway", "x"], "`--gateway x`: expected a name, `=` and a value");
    }
}
