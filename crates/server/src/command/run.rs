//! `penstock run [PATH…]`: serve.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Arg, ArgAction, ArgMatches, Command};
use penstock_compile::Severity;
use penstock_engine::ports::Level;

use super::Failure;
use crate::build::{self, BuildOptions};
use crate::config::{self, LogFormat, Settings};
use crate::load;
use crate::serve::{self, Plan};

const AFTER: &str = "\
Integrations are served at 8280 (HTTP) and 8243 (HTTPS) plus the offset, which is 10 unless it is given; health and
metrics are at 9191 plus the offset. Managed APIs are served at 8280 and 8243, and the adapter deploys them at 9843;
--offset is added to these ports, too, and one listener serves both kinds where their ports are the same. Ports that
the configuration names are not moved. Without --config, ./penstock.toml is read if it is there. A deployment.toml of Micro Integrator is
read for the keys that have a meaning here.

Files are watched: a change that compiles is taken over without losing a request, one that does not is reported and
what was served before stays.";

pub(super) fn command() -> Command {
    serving_arguments(Command::new("run").about("Serves artifacts").after_help(AFTER)).arg(super::paths_argument())
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
            Arg::new("no-watch").long("no-watch").action(ArgAction::SetTrue).help("Do not take over files that change"),
        )
        .arg(
            Arg::new("log-format")
                .long("log-format")
                .value_name("FORMAT")
                .value_parser(["text", "json"])
                .help("How log lines look [default: text]"),
        )
        .arg(
            Arg::new("log-level")
                .long("log-level")
                .value_name("LEVEL")
                .value_parser(["trace", "debug", "info", "warn", "error"])
                .help("The quietest lines that are written [default: info]"),
        )
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let started = Instant::now();
    let paths = super::paths(matches);
    let surroundings = config::surroundings(&paths);
    let settings = settings(matches, &paths, &surroundings)?;
    let options = BuildOptions {
        strict: matches.get_flag("strict"),
        configurables: surroundings.configurables(),
        ..BuildOptions::default()
    };
    let built = build::build(&paths, &options, &settings)?;
    serve::serve(Plan { paths, settings, surroundings, build: options, started, built, epilogue: None })?;
    Ok(ExitCode::SUCCESS)
}

/// `--config FILE`.
pub(super) fn config_argument() -> Arg {
    Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help("penstock.toml, or a deployment.toml of Micro Integrator")
}

/// The settings: defaults, then the file, then the command line.
pub(super) fn settings(
    matches: &ArgMatches,
    paths: &[PathBuf],
    surroundings: &config::Surroundings,
) -> Result<Settings, Failure> {
    let mut settings = file_settings(matches.get_one::<PathBuf>("config").cloned(), paths, surroundings)?;
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
    Ok(settings)
}

/// The settings of a file: the one that is given, `penstock.toml` in the working directory, or the `deployment.toml` of
/// the first path that is the home of a Micro Integrator.
pub(super) fn file_settings(
    given: Option<PathBuf>,
    paths: &[PathBuf],
    surroundings: &config::Surroundings,
) -> Result<Settings, Failure> {
    let usual = PathBuf::from("penstock.toml");
    let of_home = paths.iter().filter(|path| load::is_home(path)).map(|home| home.join("conf/deployment.toml"));
    let of_home = of_home.into_iter().find(|file| file.is_file());
    let mut settings = match (given.or_else(|| usual.is_file().then_some(usual)), of_home) {
        (Some(file), of_home) => {
            if let Some(unread) = of_home.filter(|unread| !is_same_file(unread, &file)) {
                let at = unread.display();
                serve::say(&format!("{at}:1:1: warning: not read: `{}` is the configuration\n", file.display()));
            }
            read_file(&file, surroundings)?
        }
        (None, Some(file)) => read_as(&file, surroundings, |name, text, lookup| config::read_home(name, text, lookup))?,
        (None, None) => Settings::default(),
    };
    config::take_aws(&mut settings, &surroundings.variables);
    Ok(settings)
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

pub(super) fn read_file(file: &Path, surroundings: &config::Surroundings) -> Result<Settings, Failure> {
    read_as(file, surroundings, |name, text, lookup| config::read(name, text, config::dialect_of(file, text), lookup))
}

fn read_as(
    file: &Path,
    surroundings: &config::Surroundings,
    read: impl FnOnce(&str, &str, &dyn Fn(&str) -> Option<String>) -> config::Configuration,
) -> Result<Settings, Failure> {
    let cannot = |cause| Failure::from(load::LoadError { path: file.to_owned(), cause });
    let text = std::fs::read_to_string(file).map_err(cannot)?;
    let lookup = |name: &str| surroundings.variables.get(name).cloned();
    let found = read(&file.display().to_string(), &text, &lookup);
    for diagnostic in &found.diagnostics {
        serve::say(&format!("{diagnostic}\n"));
    }
    if found.has_errors() {
        let errors = found.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
        return Err(Failure::input(format!("the configuration has {}", super::check::counted(errors, "error"))));
    }
    Ok(found.settings)
}
