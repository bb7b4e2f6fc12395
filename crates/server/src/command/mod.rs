//! What can be typed. One file per command.

mod check;
mod example;
mod failure;
mod run;
mod test;
mod token;
mod xpath;
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
  penstock example                 start a small integration with a backend and see what to send it
  penstock check app.car           say everything that is wrong with an application, without serving it
  penstock run app.car             serve it on http://localhost:8290 and https://localhost:8253

Exit status: 0 done, 1 the input is wrong, 2 the command line is wrong, 3 the environment is (port taken, file missing).";

/// Runs the command line of the process.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // These two bring their own command lines.
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
        Some(("check", matches)) => check::run(matches),
        Some(("test", matches)) => test::run(matches),
        Some(("token", matches)) => token::run(matches),
        Some(("xslt", matches)) => xslt::run(matches),
        Some(("xpath", matches)) => xpath::run(matches),
        Some(("example", matches)) => example::run(matches),
        _ => Err(Failure::usage("which of the commands? see `penstock --help`")),
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
        .disable_help_subcommand(true)
        .subcommand(run::command())
        .subcommand(check::command())
        .subcommand(test::command())
        .subcommand(example::command())
        .subcommand(token::command())
        .subcommand(xslt::command())
        .subcommand(xpath::command())
        .subcommand(Command::new("echo").about("The backend of the published tests: answers with what it was sent"))
        .subcommand(Command::new("bench").about("Loads, measures and reports"))
}

/// The argument that names artifacts.
fn paths_argument() -> Arg {
    Arg::new("path")
        .value_name("PATH")
        .action(ArgAction::Append)
        .value_parser(clap::value_parser!(PathBuf))
        .help("A .car file, a synapse-configs tree, a project folder, a single artifact, or a folder of any of these")
}

fn paths(matches: &ArgMatches) -> Vec<PathBuf> {
    matches.get_many::<PathBuf>("path").into_iter().flatten().cloned().collect()
}

/// Prints data; a closed pipe is the reader's way to say that it has enough.
fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }
}
