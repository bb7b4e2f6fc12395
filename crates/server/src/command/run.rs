//! `penstock run [PATH…]`: serve.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::{Arg, ArgAction, ArgMatches, Command};
use penstock_compile::{Diagnostic, Severity};
use penstock_engine::Place;
use penstock_engine::ports::Level;

use super::Failure;
use crate::build::{self, BuildOptions};
use crate::config::{self, Configuration, LogFormat, Settings, Surroundings};
use crate::load;
use crate::serve::{self, Plan, Reread, Signals};

const AFTER: &str = "\
Integrations are served at 8280 (HTTP) and 8243 (HTTPS) plus the offset (default 10); health and metrics at 9191 plus
the offset. Managed APIs are served at 8280 and 8243, and the adapter deploys them at 9843; --offset is added to these
ports, too, and one listener serves both kinds where their ports are the same. Ports in the configuration are not moved.
Without --config, ./penstock.toml is read if it exists. Of a deployment.toml of Micro Integrator the supported keys are
read; the others are listed.

Files are watched: a change that compiles is deployed without losing a request; one that does not is reported, and the
previous configuration stays. SIGHUP reads the configuration again and opens log files again.";

pub(super) fn command() -> Command {
    serving_arguments(Command::new("run").about("Serves integrations and managed APIs").after_help(AFTER))
        .arg(super::paths_argument())
}

/// The arguments of every command that serves.
pub(super) fn serving_arguments(command: Command) -> Command {
    command
        .arg(config_argument())
        .arg(
            Arg::new("offset")
                .long("offset")
                .value_name("N")
                .allow_negative_numbers(true)
                .value_parser(clap::value_parser!(u16).range(0..=50_000))
                .help(
                    "Added to the ports of integrations (default 10), of managed APIs and of the adapter (default 0)",
                ),
        )
        .arg(
            Arg::new("workers")
                .long("workers")
                .value_name("N")
                .value_parser(clap::value_parser!(u16).range(1..=1024))
                .help("Threads that serve [default: one per core]"),
        )
        .arg(
            Arg::new("strict")
                .long("strict")
                .action(ArgAction::SetTrue)
                .help("Do not start when any artifact has an error"),
        )
        .arg(
            Arg::new("no-watch").long("no-watch").action(ArgAction::SetTrue).help("Do not reload changed files"),
        )
        .arg(
            Arg::new("log-format")
                .long("log-format")
                .value_name("FORMAT")
                .value_parser(["text", "json"])
                .help("Format of log lines [default: text]"),
        )
        .arg(
            Arg::new("log-level")
                .long("log-level")
                .value_name("LEVEL")
                .value_parser(["trace", "debug", "info", "warn", "error"])
                .help("Minimum log level: debug adds a line for each request, trace one for each mediator [default: info]"),
        )
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let started = Instant::now();
    let signals = Signals::receive()?;
    let paths = super::paths(matches);
    let surroundings = config::surroundings(&paths);
    let settings = settings(matches, &paths, &surroundings)?;
    let (again, from) = (matches.clone(), paths.clone());
    let reread = move || reread_settings(&again, &from, &config::surroundings(&from));
    let options = BuildOptions { compiled: Some(Arc::default()), ..build_options(matches, &surroundings) };
    let built = build::build(&paths, &options, &settings)?;
    let reread: Option<Reread> = Some(Box::new(reread));
    serve::serve(Plan { paths, reread, ..Plan::new(settings, surroundings, options, started, built, signals) })?;
    Ok(ExitCode::SUCCESS)
}

/// What the command line and the surroundings say of compiling.
pub(super) fn build_options(matches: &ArgMatches, surroundings: &Surroundings) -> BuildOptions {
    BuildOptions {
        strict: matches.get_flag("strict"),
        configurables: surroundings.configurables(),
        ..BuildOptions::default()
    }
}

/// `--config FILE`.
pub(super) fn config_argument() -> Arg {
    Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help("penstock.toml, or a deployment.toml of Micro Integrator; - for standard input")
}

/// The settings: defaults, then the file, then the command line.
pub(super) fn settings(
    matches: &ArgMatches,
    paths: &[PathBuf],
    surroundings: &Surroundings,
) -> Result<Settings, Failure> {
    let settings = file_settings(matches.get_one::<PathBuf>("config").cloned(), paths, surroundings)?;
    Ok(with_arguments(settings, matches))
}

/// The same for a server that runs, which has a log for the diagnostics.
pub(super) fn reread_settings(
    matches: &ArgMatches,
    paths: &[PathBuf],
    surroundings: &Surroundings,
) -> Result<(Settings, Vec<Diagnostic>), Failure> {
    let found = configuration(matches.get_one::<PathBuf>("config").cloned(), paths, surroundings)?;
    if found.has_errors() {
        let errors = found.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
        let texts: Vec<String> = errors.map(ToString::to_string).collect();
        return Err(Failure::input(texts.join("; ")));
    }
    Ok((with_arguments(found.settings, matches), found.diagnostics))
}

fn with_arguments(mut settings: Settings, matches: &ArgMatches) -> Settings {
    if let Some(offset) = matches.get_one::<u16>("offset") {
        settings.move_ports(*offset);
    }
    if let Some(workers) = matches.get_one::<u16>("workers") {
        settings.workers = Some(usize::from(*workers));
    }
    if matches.get_flag("no-watch") {
        settings.watch = false;
    }
    if let Some(format) = matches.get_one::<String>("log-format") {
        settings.log_format = if format == "json" { LogFormat::Json } else { LogFormat::Text };
    }
    if let Some(level) = matches.get_one::<String>("log-level") {
        settings.log_level = match level.as_str() {
            "trace" => Level::Trace,
            "debug" => Level::Debug,
            "warn" => Level::Warn,
            "error" => Level::Error,
            _ => Level::Info,
        };
    }
    settings
}

/// The settings of [`configuration`], when they have no mistake.
pub(super) fn file_settings(
    given: Option<PathBuf>,
    paths: &[PathBuf],
    surroundings: &Surroundings,
) -> Result<Settings, Failure> {
    without_errors(configuration(given, paths, surroundings)?)
}

pub(super) fn read_file(file: &Path, surroundings: &Surroundings) -> Result<Settings, Failure> {
    without_errors(parse_file(file, surroundings)?)
}

/// The configuration of a file, whatever mistakes it has: the one that is given, `penstock.toml` in the working directory, or the `deployment.toml` of
/// the first path that is the home of a Micro Integrator.
pub(super) fn configuration(
    given: Option<PathBuf>,
    paths: &[PathBuf],
    surroundings: &Surroundings,
) -> Result<Configuration, Failure> {
    let usual = PathBuf::from("penstock.toml");
    let of_home = paths.iter().filter(|path| load::is_home(path)).map(|home| home.join("conf/deployment.toml"));
    let of_home = of_home.into_iter().find(|file| file.is_file());
    let mut found = match (given.or_else(|| usual.is_file().then_some(usual)), of_home) {
        (Some(file), of_home) => {
            let mut found = parse_file(&file, surroundings)?;
            if let Some(unread) = of_home.filter(|unread| !is_same_file(unread, &file)) {
                let at = Place { file: unread.display().to_string().into(), line: 1, column: 1 };
                let message = format!("not read: `{}` is the configuration", file.display());
                found.diagnostics.insert(0, Diagnostic { severity: Severity::Warning, at, message });
            }
            found
        }
        (None, Some(file)) => {
            parse_as(&file, surroundings, |name, text, lookup| config::read_home(name, text, lookup))?
        }
        (None, None) => Configuration::default(),
    };
    config::take_aws(&mut found.settings, &surroundings.variables);
    Ok(found)
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn parse_file(file: &Path, surroundings: &Surroundings) -> Result<Configuration, Failure> {
    parse_as(file, surroundings, |name, text, lookup| config::read(name, text, config::dialect_of(file, text), lookup))
}

fn parse_as(
    file: &Path,
    surroundings: &Surroundings,
    read: impl FnOnce(&str, &str, &dyn Fn(&str) -> Option<String>) -> Configuration,
) -> Result<Configuration, Failure> {
    let cannot = |cause| Failure::from(load::LoadError { path: file.to_owned(), cause });
    let bytes = load::standard_input::read_file(file).map_err(cannot)?;
    let not_text = |_| cannot(std::io::Error::other("it is not UTF-8"));
    let text = String::from_utf8(bytes.into()).map_err(not_text)?;
    let name = if load::standard_input::is_named(file) {
        load::standard_input::NAME.to_owned()
    } else {
        file.display().to_string()
    };
    let lookup = |name: &str| surroundings.variables.get(name).cloned();
    Ok(read(&name, &text, &lookup))
}

/// Prints the diagnostics; the settings, unless one of them is an error.
fn without_errors(found: Configuration) -> Result<Settings, Failure> {
    for diagnostic in &found.diagnostics {
        serve::say(&format!("{diagnostic}\n"));
    }
    if found.has_errors() {
        let errors = found.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
        return Err(Failure::input(format!("the configuration has {}", super::check::counted(errors, "error"))));
    }
    Ok(found.settings)
}
