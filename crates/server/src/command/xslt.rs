//! `penstock xslt STYLESHEET [SOURCE]`: transforms a document.

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};

use super::Failure;

pub(super) fn command() -> Command {
    Command::new("xslt")
        .about("Transforms a document with a stylesheet")
        .arg(Arg::new("stylesheet").value_name("STYLESHEET").required(true).help("The stylesheet"))
        .arg(Arg::new("source").value_name("SOURCE").help("The document; standard input when it is left out or -"))
        .arg(
            Arg::new("parameter")
                .short('p')
                .long("param")
                .value_name("NAME=VALUE")
                .action(ArgAction::Append)
                .help("Sets a parameter of the stylesheet"),
        )
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("FILE")
                .help("Where the result goes; standard output otherwise"),
        )
}

pub(super) fn run(_matches: &ArgMatches) -> Result<ExitCode, Failure> {
    Err(Failure::environment("`penstock xslt` is not built yet"))
}
