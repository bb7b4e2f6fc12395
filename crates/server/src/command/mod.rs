//! What can be typed. One file per command.

mod check;
mod compare;
mod completions;
mod example;
mod failure;
mod list;
mod manage;
mod run;
mod test;
mod token;
mod xpath;
mod xsd;
mod xslt;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command};

pub use failure::Failure;

const OVERVIEW: &str = "\
Try it:
  penstock example                 start a small integration with a backend and requests to try
  penstock check app.car           report every mistake of an application without serving it
  penstock list app.car            print its APIs, proxy services, endpoints and other artifacts
  penstock run app.car             serve it on http://localhost:8290 and https://localhost:8253

Exit status: 0 done, 1 the input is wrong, 2 the command line is wrong, 3 the environment is (port taken, file missing).";

/// Runs the command line of the process.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // These two run their command lines themselves.
    if let Some(foreign) = arguments.get(1).and_then(|name| name.to_str()) {
        let rest = || arguments.iter().skip(2).map(|argument| argument.to_string_lossy().into_owned()).collect();
        match foreign {
            "bench" => return penstock_bench::command::bench(rest()),
            "echo" => return penstock_bench::command::echo(rest()),
            _ => {}
        }
    }
    let outcome = match command().try_get_matches_from(arguments) {
        Ok(matches) => dispatch(&matches),
        Err(error) => return clap_outcome(&error),
    };
    match outcome {
        Ok(status) => status,
        Err(failure) => {
            let _ = writeln!(std::io::stderr(), "error: {}", failure.message);
            ExitCode::from(failure.status)
        }
    }
}

fn dispatch(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        Some(("run", matches)) => run::run(matches),
        Some(("manage", matches)) => manage::run(matches),
        Some(("check", matches)) => check::run(matches),
        Some(("compare", matches)) => compare::run(matches),
        Some(("list", matches)) => list::run(matches),
        Some(("completions", matches)) => completions::run(matches),
        Some(("test", matches)) => test::run(matches),
        Some(("token", matches)) => token::run(matches),
        Some(("xslt", matches)) => xslt::run(matches),
        Some(("xpath", matches)) => xpath::run(matches),
        Some(("xsd", matches)) => xsd::run(matches),
        Some(("example", matches)) => example::run(matches),
        _ => Err(Failure::usage("missing subcommand; see `penstock --help`")),
    }
}

fn clap_outcome(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = write!(std::io::stdout(), "{error}");
            ExitCode::SUCCESS
        }
        _ => {
            let _ = write!(std::io::stderr(), "{error}");
            ExitCode::from(2)
        }
    }
}

fn command() -> Command {
    Command::new("penstock")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Runs WSO2 integration artifacts: proxies, APIs and their mediation, unmodified")
        .after_help(OVERVIEW)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(run::command())
        .subcommand(manage::command())
        .subcommand(check::command())
        .subcommand(compare::command())
        .subcommand(list::command())
        .subcommand(test::command())
        .subcommand(example::command())
        .subcommand(token::command())
        .subcommand(xslt::command())
        .subcommand(xpath::command())
        .subcommand(xsd::command())
        .subcommand(penstock_bench::command::echo_command())
        .subcommand(penstock_bench::command::bench_command())
        .subcommand(completions::command())
}

/// The argument that names artifacts.
fn paths_argument() -> Arg {
    Arg::new("path")
        .value_name("PATH")
        .action(ArgAction::Append)
        .value_parser(clap::value_parser!(PathBuf))
        .help("A .car file, a synapse-configs tree, a project folder, a single artifact, a folder of any of these, or - for standard input")
}

fn paths(matches: &ArgMatches) -> Vec<PathBuf> {
    matches.get_many::<PathBuf>("path").into_iter().flatten().cloned().collect()
}

/// The bytes of a file; `-` is standard input.
fn read(source: &str) -> Result<Vec<u8>, Failure> {
    let path = PathBuf::from(source);
    let read = crate::load::standard_input::read_file(&path).map(Vec::from);
    read.map_err(|cause| Failure::from(crate::load::LoadError { path, cause }))
}

/// Prints data; a closed pipe is the reader's way to say that it has enough.
fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

#[cfg(test)]
mod tests {
    use clap::Command;
    use clap::error::{ContextKind, ContextValue};

    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }

    /// What the parser suggests for a command line.
    fn suggestions(arguments: &[&str]) -> Vec<(ContextKind, String)> {
        let Err(error) = super::command().try_get_matches_from(arguments) else { return Vec::new() };
        let texts = |value: &ContextValue| match value {
            ContextValue::String(text) => vec![text.clone()],
            ContextValue::Strings(texts) => texts.clone(),
            _ => Vec::new(),
        };
        let kinds = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
        let found = |kind| error.get(kind).map(texts).unwrap_or_default().into_iter().map(move |text| (kind, text));
        kinds.into_iter().flat_map(found).collect()
    }

    /// Mistypings of a word: a letter less, two letters exchanged.
    fn mistypings(word: &str) -> impl Iterator<Item = String> {
        let (head, tail) = word.split_at(word.len() - 1);
        let (first, last) = head.split_at(head.len() - 1);
        [head.to_owned(), format!("{first}{tail}{last}")].into_iter().filter(move |other| other != word)
    }

    fn check_suggestions(path: &[&str], command: &Command, suggested: &mut usize) {
        let mut words: Vec<String> =
            command.get_subcommands().flat_map(|inside| mistypings(inside.get_name()).collect::<Vec<_>>()).collect();
        let options = command.get_arguments().filter_map(|argument| argument.get_long());
        words.extend(options.flat_map(|option| mistypings(option).collect::<Vec<_>>()).map(|word| format!("--{word}")));
        for word in words {
            let arguments: Vec<&str> = path.iter().copied().chain([word.as_str()]).collect();
            for (kind, text) in suggestions(&arguments) {
                let exists = match kind {
                    ContextKind::SuggestedSubcommand => {
                        command.get_subcommands().any(|inside| inside.get_name() == text) || text == "help"
                    }
                    _ => text.trim_start_matches('-').split([' ', '=']).next().is_some_and(|name| {
                        matches!(name, "help" | "version")
                            || command.get_arguments().any(|argument| argument.get_long() == Some(name))
                    }),
                };
                assert!(exists, "{arguments:?} suggests `{text}`");
                *suggested += 1;
            }
        }
        for inside in command.get_subcommands() {
            let path: Vec<&str> = path.iter().copied().chain([inside.get_name()]).collect();
            check_suggestions(&path, inside, suggested);
        }
    }

    #[test]
    fn every_suggested_command_and_option_exists() {
        let mut suggested = 0;
        check_suggestions(&["penstock"], &super::command(), &mut suggested);
        assert!(suggested > 60, "{suggested} suggestions");
    }
}
