//! `penstock xslt STYLESHEET [SOURCE]`: transforms a document.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use penstock_xslt::command::Arguments;

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

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let path = |name: &str| matches.get_one::<String>(name).map(PathBuf::from);
    let mut arguments = Arguments {
        stylesheet: path("stylesheet").unwrap_or_default(),
        source: path("source").filter(|source| source.as_os_str() != "-"),
        params: Vec::new(),
        output: path("output"),
    };
    for parameter in matches.get_many::<String>("parameter").into_iter().flatten() {
        let Some((name, value)) = parameter.split_once('=') else {
            return Err(Failure::usage(format!("`-p {parameter}` must have the form NAME=VALUE")));
        };
        arguments.params.push((name.to_owned(), value.to_owned()));
    }
    let status = penstock_xslt::command::run(&arguments, &mut std::io::stderr());
    Ok(ExitCode::from(status as u8))
}
