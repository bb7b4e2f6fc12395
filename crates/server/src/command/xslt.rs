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
        .arg(Arg::new("source").value_name("SOURCE").help("The document; standard input if omitted or -"))
        .arg(
            Arg::new("parameter")
                .short('p')
                .long("param")
                .value_name("NAME=VALUE")
                .action(ArgAction::Append)
                .help("Sets a parameter of the stylesheet"),
        )
        .arg(
            Arg::new("typed-parameter")
                .long("param-expr")
                .value_name("NAME=EXPRESSION")
                .action(ArgAction::Append)
                .help("Sets a parameter to the value of an XPath expression, for example day=xs:date('2026-01-31')"),
        )
        .arg(
            Arg::new("initial-template")
                .long("initial-template")
                .value_name("NAME")
                .help("Begins with a named template, NAME or {NAMESPACE}NAME; SOURCE may then be omitted"),
        )
        .arg(
            Arg::new("initial-mode")
                .long("initial-mode")
                .value_name("NAME")
                .help("Begins in a mode, NAME or {NAMESPACE}NAME"),
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
        output: path("output"),
        initial_template: matches.get_one::<String>("initial-template").cloned(),
        initial_mode: matches.get_one::<String>("initial-mode").cloned(),
        ..Arguments::default()
    };
    arguments.params = pairs(matches, "parameter", "-p")?;
    arguments.typed_params = pairs(matches, "typed-parameter", "--param-expr")?;
    let status = penstock_xslt::command::run(&arguments, &mut std::io::stderr());
    Ok(ExitCode::from(status as u8))
}

/// The names and values of an option that is written `NAME=VALUE`.
pub(super) fn pairs(matches: &ArgMatches, id: &str, option: &str) -> Result<Vec<(String, String)>, Failure> {
    let given = matches.get_many::<String>(id).into_iter().flatten();
    given
        .map(|text| match text.split_once('=') {
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => Err(Failure::usage(format!("`{option} {text}` must have the form NAME=VALUE"))),
        })
        .collect()
}
