//! `penstock completions SHELL`: completion of commands and options, made from the table of commands.

use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};
use clap_complete::{Shell, generate};

use super::Failure;

const AFTER: &str = "\
  bash   penstock completions bash > /etc/bash_completion.d/penstock
  zsh    penstock completions zsh > \"${fpath[1]}/_penstock\"
  fish   penstock completions fish > ~/.config/fish/completions/penstock.fish";

pub(super) fn command() -> Command {
    let shell = Arg::new("shell").value_name("SHELL").required(true).value_parser(["bash", "zsh", "fish"]);
    Command::new("completions")
        .about("Prints a script that completes commands and options in a shell")
        .after_help(AFTER)
        .arg(shell.help("The shell"))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let shell = match matches.get_one::<String>("shell").map(String::as_str) {
        Some("zsh") => Shell::Zsh,
        Some("fish") => Shell::Fish,
        _ => Shell::Bash,
    };
    let mut script = Vec::new();
    generate(shell, &mut super::command(), "penstock", &mut script);
    super::print(&String::from_utf8_lossy(&script));
    Ok(ExitCode::SUCCESS)
}
